package corpus

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"infill/models/hub"
)

// wikiArchive is a file of WikiText-103 as its authors gave it away.
type wikiArchive struct{ address, sha256 string }

// wikiArchives has the two forms of the text, from the page of the first author. The hub has it in Parquet alone.
var wikiArchives = map[string]wikiArchive{
	"tokens": {"https://wikitext.smerity.com/wikitext-103-v1.zip",
		"242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590"},
	"raw": {"https://wikitext.smerity.com/wikitext-103-raw-v1.zip",
		"91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794"},
}

// WikiSplits lists the parts of WikiText-103, the default first; train is 100 times as large as the others.
func WikiSplits() []string { return []string{"validation", "test", "train"} }

// WikiVariants lists the forms of its text, the default first: cut into words, with <unk> for rare ones, or raw.
func WikiVariants() []string { return []string{"tokens", "raw"} }

// PullWikiText makes sure that dir has a split of WikiText-103 (Merity et al. 2016, CC BY-SA), wiki.train.tokens and
// its like, a paragraph a line, and returns its path. The archive is verified by its SHA-256, and a fetch that stopped
// goes on.
func PullWikiText(ctx context.Context, dir, split, variant string, o hub.Options) (file string, err error) {
	if !slices.Contains(WikiSplits(), split) {
		return "", fmt.Errorf("split %q is not one of %s", split, strings.Join(WikiSplits(), ", "))
	}
	if !slices.Contains(WikiVariants(), variant) {
		return "", fmt.Errorf("variant %q is not one of %s", variant, strings.Join(WikiVariants(), ", "))
	}
	// The authors called it so.
	file = filepath.Join(dir, "wiki."+strings.TrimSuffix(split, "ation")+"."+variant)
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		return file, nil
	}
	archive := wikiArchives[variant]
	if o.Offline {
		return "", fmt.Errorf("fetch %s: the network may not be used (offline)", archive.address)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	ctx, cancel := o.Bounded(ctx)
	defer cancel()
	zipped := filepath.Join(dir, "."+path.Base(archive.address))
	if err := hub.FetchFile(ctx, archive.address, archive.sha256, zipped, o); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("fetch %s: %w", archive.address, err)
	}
	if err := unzip(zipped, file); err != nil {
		return "", fmt.Errorf("%s: %w", zipped, err)
	}
	return file, os.Remove(zipped)
}

// unzip writes the file of an archive that has the base name of to.
func unzip(archive, to string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return path.Base(f.Name) == filepath.Base(to) })
	if i < 0 {
		return fmt.Errorf("it has no %s", filepath.Base(to))
	}
	from, err := z.File[i].Open()
	if err != nil {
		return err
	}
	defer from.Close()
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return maybe.WriteFile(to, text, 0o666)
}
