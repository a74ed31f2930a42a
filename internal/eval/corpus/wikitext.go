package corpus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"github.com/parquet-go/parquet-go"

	"infill/models"
)

// The data set's name on the hub, and the branch that is fetched.
const (
	wikiDataset  = "Salesforce/wikitext"
	wikiRevision = "main"
)

// WikiSplits lists the parts of WikiText-103, the default first; train is 100 times as large as the others.
func WikiSplits() []string { return []string{"validation", "test", "train"} }

// WikiVariants lists the forms of its text, the default first: cut into words, with <unk> for rare ones, or raw.
func WikiVariants() []string { return []string{"tokens", "raw"} }

// PullWikiText makes sure that dir has a split of WikiText-103 (Merity et al. 2016, CC BY-SA) in the form that it used
// to be given away in, wiki.train.tokens and its like, a paragraph a line, and returns its path. What is fetched from
// the Hugging Face hub is verified by the hub's checksums, and goes on where it stopped.
func PullWikiText(ctx context.Context, dir, split, variant string, o models.HubOptions) (path string, err error) {
	if !slices.Contains(WikiSplits(), split) {
		return "", fmt.Errorf("split %q is not one of %s", split, strings.Join(WikiSplits(), ", "))
	}
	if !slices.Contains(WikiVariants(), variant) {
		return "", fmt.Errorf("variant %q is not one of %s", variant, strings.Join(WikiVariants(), ", "))
	}
	// The authors called it so.
	path = filepath.Join(dir, "wiki."+strings.TrimSuffix(split, "ation")+"."+variant)
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return path, nil
	}
	folder := map[string]string{"tokens": "wikitext-103-v1", "raw": "wikitext-103-raw-v1"}[variant]
	parts := filepath.Join(dir, "."+folder) // files of the two variants have the same names
	files, err := models.FetchDataset(ctx, parts, wikiDataset, wikiRevision,
		[]string{folder + "/" + split + "-*.parquet"}, o)
	if err != nil {
		return "", err
	}
	if err := convert(files, path); err != nil {
		return "", fmt.Errorf("%s: %w; remove %s to fetch it again", wikiDataset, err, parts)
	}
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	if rest, readErr := os.ReadDir(parts); readErr == nil && len(rest) == 0 {
		err = errors.Join(err, os.Remove(parts))
	}
	return path, err
}

// row is a line of the corpus.
type row struct {
	Text string `parquet:"text,optional"`
}

// convert writes the rows of the files as lines, at once into their place.
func convert(files []string, path string) (err error) {
	// A panic of the library over a strange file must not end the program.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file cannot be read: %v", p)
		}
	}()
	var text strings.Builder
	for _, name := range files {
		rows, err := parquet.ReadFile[row](name)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		for _, r := range rows {
			// Rows end as lines do, except for the empty ones.
			text.WriteString(strings.TrimRight(r.Text, "\n") + "\n")
		}
	}
	if text.Len() == 0 {
		return errors.New("the files hold no text")
	}
	return maybe.WriteFile(path, []byte(text.String()), 0o666)
}
