package eval

import (
	"context"
	"fmt"
	"io"
	"os"

	"infill/infill/eval/internal/corpus"
	"infill/models"
)

// Corpus is a text of a run, cut into sentences.
type Corpus struct {
	*corpus.Corpus
	Path string
	// Reference says that no sentence is taken of it: it is compared with alone.
	Reference bool
}

// Forms lists what a line of a text can be, the default first: found out; a sentence;
// a paragraph of WikiText; or running text.
func Forms() []string { return names(corpus.Forms()) }

// Encodings lists those of texts, the default first: found out.
func Encodings() []string { return names(corpus.Encodings()) }

func names[T ~string](values []T) []string {
	var list []string
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// ReadCorpus reads a text of one of Forms() and one of Encodings(), "" being the
// defaults: what r gives, or where that is nil the file at path, which names the text
// in errors and tells its form.
func ReadCorpus(name, path string, r io.Reader, form, encoding string) (Corpus, error) {
	if r == nil {
		file, err := os.Open(path)
		if err != nil {
			return Corpus{}, fmt.Errorf("corpus %s: %w", name, err)
		}
		defer file.Close()
		r = file
	}
	c, err := corpus.Read(name, path, r, corpus.Form(form), corpus.Encoding(encoding))
	return Corpus{Corpus: c, Path: path}, err
}

// LeftOut says line by line what was left out while reading, headings excepted.
func (c Corpus) LeftOut() (list []string) {
	for _, skip := range c.Skipped {
		if skip.Reason != corpus.SkipHeading {
			lines := "1 line"
			if skip.Count > 1 {
				lines = fmt.Sprintf("%d lines", skip.Count)
			}
			list = append(list, fmt.Sprintf("%s left out: %s (the first is line %d)", lines, skip.Reason, skip.Line))
		}
	}
	return list
}

// WikiText lists the parts of WikiText-103 and the forms of its text that
// PullWikiText can fetch, the defaults first.
func WikiText() (splits, variants []string) { return corpus.WikiSplits(), corpus.WikiVariants() }

// PullWikiText makes sure that dir has a split of WikiText-103, and returns its path.
func PullWikiText(ctx context.Context, dir, split, variant string, o models.HubOptions) (path string, err error) {
	return corpus.PullWikiText(ctx, dir, split, variant, o)
}
