package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"infill/internal/hub"
	"infill/internal/safetensors"
)

// errOffline says that a file is missing which may not be fetched.
var errOffline = errors.New("the network may not be used (offline)")

// PullOptions say from where and how a model is fetched. The zero value fetches
// from the public hub.
type PullOptions struct {
	Endpoint string // address of a mirror; "" for the public hub
	Token    string // for private and gated models; sent to Endpoint only, never to a server that it redirects to
	// TokenFrom names the variable or the file that has the token.
	TokenFrom string
	Offline   bool         // whether to use only files that are already stored
	Cache     string       // folder in which the hub's own clients keep models, of which files are copied; "" for none
	Progress  PullProgress // nil if nobody observes

	Attempts int           // attempts in a row without progress before giving up; 0 for 5
	WaitMin  time.Duration // wait before the second attempt, doubled for each further one; 0 for 1 s
	Stall    time.Duration // the longest time without data; 0 for 60 s
}

// PullProgress observes downloads. All calls come from one goroutine.
type PullProgress = interface {
	// Begin is called at most once, before the weights, with their name, the
	// bytes already on disk and all bytes. It is not called for a
	// model that is already stored, or that is refused for its config.
	Begin(name string, have, total int64)
	// Advance reports downloaded bytes. bytes is negative if bytes reported
	// before are thrown away.
	Advance(bytes int64)
	// Waiting reports that nothing will happen for the time wait, and why. It
	// may come before Begin.
	Waiting(reason error, wait time.Duration)
}

// Pull fetches a model, "org/name" or "org/name@revision", into the store,
// verifies it and opens it. The revision is a branch, a tag or a commit of
// the model's repository, by default "main". Pull does not fetch a stored
// commit again, and it continues an interrupted pull. It fetches weights
// as safetensors, or, if the repository has none, as pytorch_model.bin,
// which it converts.
//
// Each error is one line: what was requested, what came back, and what to do.
func (s *Store) Pull(ctx context.Context, name string, o PullOptions) (*Bundle, error) {
	base, revision, err := splitName(name)
	if err != nil {
		return nil, err
	}
	b, err := s.pull(ctx, base, revision, o)
	if err == nil {
		err = s.Reading.check(b)
	}
	if err != nil && ctx.Err() != nil { // err itself would say only at which step ctx ended
		err = fmt.Errorf("%w; what was fetched is kept, and the next pull goes on with it", context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", base, err)
	}
	return b, nil
}

func (s *Store) pull(ctx context.Context, name, revision string, o PullOptions) (*Bundle, error) {
	if name == BuiltInName {
		return nil, errors.New("the model is part of the program: there is nothing to fetch")
	}
	revision = cmp.Or(revision, "main") // the hub's default
	stored, err := s.Find(name + "@" + revision)
	if err == nil && (o.Offline || stored.Revision == revision) {
		var b *Bundle
		b, err = s.Open(name)
		if err == nil {
			return b, nil
		}
	}
	if o.Offline {
		return nil, elsewhere(fmt.Errorf("%w, and %w", err, errOffline), name, revision, o)
	}
	repository, err := hub.Open(ctx, name, revision, hub.Options(o))
	if err != nil {
		return nil, elsewhere(err, name, revision, o)
	}
	if revision == repository.Commit {
		revision = "" // the user named a commit, not a branch or tag
	}
	b, err := s.place(ctx, name, repository.Commit, revision, func(dir string) (*Manifest, error) {
		files, err := s.fetch(ctx, repository, dir)
		if err != nil {
			return nil, err
		}
		m := Manifest{Licence: repository.Licence, Source: repository.Address, Revision: repository.Commit}
		return s.seal(ctx, name, dir, "", m, files)
	})
	path := new(*fs.PathError)
	if errors.As(err, path) {
		err = fmt.Errorf("%w; make room in %s, or set %s to a folder that can be written", err, s.Dir, CacheVariable)
	}
	return b, err
}

// elsewhere adds to the error of a pull where a client of the hub keeps the
// model, or revisions of which it does not say the branch.
func elsewhere(err error, name, revision string, o PullOptions) error {
	folder, others := hub.Options(o).Cached(name, revision)
	switch {
	case folder != "":
		return fmt.Errorf("%w; the hub's own client has it: infill models import %s --name %s", err, folder, name)
	case len(others) > 0:
		return fmt.Errorf("%w; the hub's own client does not say which is %s, of %s: infill models import FOLDER "+
			"--name %s", err, revision, strings.Join(others, " and "), name)
	}
	return err
}

// fetch fetches a bundle's files into dir, and returns their names.
func (s *Store) fetch(ctx context.Context, r *hub.Repository, dir string) (names []string, err error) {
	// No further attempt could mend a refused model.
	refused := func(err error) error {
		return errors.Join(&renamedError{err, dir + string(filepath.Separator), ""}, os.RemoveAll(dir))
	}
	// Small files come first, because they may show that the model cannot be used.
	for _, name := range append([]string{configName, "README.md", "LICENSE", "LICENSE.txt", "LICENSE.md"},
		tokenizerFiles()...) {
		f, ok := r.Find(name)
		if ok {
			err = r.Fetch(ctx, f, dir)
			names = append(names, name)
		} else if name == configName {
			err = refused(fmt.Errorf("the repository is not a model: it has no %s", configName))
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := s.prepare(dir); err != nil {
		return nil, refused(err)
	}
	weights := weightsFile(func(name string) bool { _, ok := r.Find(name); return ok })
	parts := []string{weights}
	switch weights {
	case "":
		return nil, refused(fmt.Errorf("the repository is not a model: %w; a revision that has one may exist, often a "+
			"pull request: NAME@refs/pr/NUMBER", errWeights))
	case indexName:
		f, _ := r.Find(indexName)
		err := r.Fetch(ctx, f, dir)
		if err != nil {
			return nil, err
		}
		names = append(names, indexName)
		weights = weightsName
		parts, err = safetensors.Shards(filepath.Join(dir, indexName))
		if err != nil {
			return nil, refused(err)
		}
	}
	var files []hub.File
	for _, name := range parts {
		f, ok := r.Find(name)
		if !ok {
			return nil, refused(fmt.Errorf("the repository has no %s, which is a part of the weights", name))
		}
		files = append(files, f)
	}
	return append(names, parts...), r.FetchWeights(ctx, weights, files, dir)
}
