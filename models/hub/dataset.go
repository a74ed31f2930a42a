package hub

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// datasets begins the names of data sets, in the hub's addresses too.
const datasets = "datasets/"

// FetchDataset fetches the files of a data set, "org/name", that match one of
// the patterns (path.Match) into dir, each whole and verified, under the last
// element of its name. It returns them in the order of their names in the data
// set, with the commit they are of. A file that is there already is not fetched
// again, and a fetch that broke off goes on where it stopped. The revision is a
// branch, a tag or a commit.
func FetchDataset(ctx context.Context, dir, name, revision string, patterns []string, o Options) (files []string, commit string, err error) {
	fail := func(err error) ([]string, string, error) {
		if ctx.Err() != nil {
			return nil, "", fmt.Errorf("fetch %s: %w; what was fetched is kept, and the next fetch goes on with it", name, context.Cause(ctx))
		}
		return nil, "", fmt.Errorf("fetch %s: %w", name, err)
	}
	o = o.withDefaults()
	if o.Offline {
		return fail(ErrOffline)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fail(err)
	}
	c, err := newClient(datasets+name, o)
	if err != nil {
		return nil, "", err
	}
	defer c.close()
	info, err := c.repository(ctx, revision)
	if err != nil {
		return fail(err)
	}
	var wanted []file
	var have, total int64
	for _, f := range info.Files {
		for _, pattern := range patterns {
			matched, err := path.Match(pattern, f.Name)
			if err != nil {
				return fail(err)
			}
			if !matched {
				continue
			}
			if err := c.complete(ctx, info.Commit, &f); err != nil {
				return fail(err)
			}
			wanted = append(wanted, f)
			break
		}
	}
	if len(wanted) == 0 {
		return fail(fmt.Errorf("the data set has no file like %s at revision %s", strings.Join(patterns, ", "), revision))
	}
	slices.SortFunc(wanted, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	for i, f := range wanted {
		local := path.Base(f.Name)
		if local == "." || local == ".." || strings.ContainsAny(local, `\:`) || slices.Contains(files, filepath.Join(dir, local)) {
			return fail(fmt.Errorf("the data set has a file that cannot be placed: %.100q", f.Name))
		}
		target := filepath.Join(dir, local)
		total += wanted[i].Size
		have += min(f.Size, max(sizeOf(target), sizeOf(target+partSuffix)))
		files = append(files, target)
	}
	c.Progress.Begin(len(wanted), have, total)
	c.begun = true
	for i, f := range wanted {
		c.Progress.File(f.Name)
		if err := c.fetchTo(ctx, info.Commit, f, files[i]); err != nil {
			return fail(err)
		}
	}
	return files, info.Commit, nil
}
