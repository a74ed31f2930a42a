package ask

import (
	_ "embed"
	"fmt"
	"strings"

	"infill/internal/option"
)

// papers are the options that the papers have on text, a sampler a line: the whole
// vocabulary, proposals from the square root of the whole gradient, and no warm-up,
// unless the sampler adapts. The step sizes are those of the authors' code for
// categorical variables, because the paper gives no step sizes for text.
//
//go:embed papers.txt
var papers string

func paper(name string) (given []Given, err error) {
	for line := range strings.Lines(papers) {
		named, err := option.ParseOne(line)
		if err != nil {
			return nil, err
		}
		if named.Name != name {
			continue
		}
		for _, s := range named.Settings {
			given = append(given, MustGive(s.Name, s.Value))
		}
		return given, nil
	}
	return nil, fmt.Errorf("a sampler that the papers run on text, which %s is not: leave paper out", name)
}
