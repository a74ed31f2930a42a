package metrics

import (
	"fmt"
	"strings"
)

// Signature holds all that changes a number besides the sentences scored, as sacrebleu prints with every score (Post 2018, "A Call
// for Clarity in Reporting BLEU Scores"). Two scores are comparable where their signatures are equal. In JSON it is its long form.
type Signature []SignatureField

// SignatureField is one choice.
type SignatureField struct {
	Key   string // "smoothing"
	Short string // "s"
	Value string
}

// String is the long form, "metric:self-bleu|n:4|tokenisation:whitespace|…".
func (s Signature) String() string { return s.join(func(f SignatureField) string { return f.Key }) }

// Short is the same with abbreviated keys, "m:self-bleu|n:4|t:whitespace|…".
func (s Signature) Short() string { return s.join(func(f SignatureField) string { return f.Short }) }

func (s Signature) join(key func(SignatureField) string) string {
	parts := make([]string, len(s))
	for i, f := range s {
		parts[i] = key(f) + ":" + f.Value
	}
	return strings.Join(parts, "|")
}

// MarshalText writes the long form.
func (s Signature) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Get returns the value of a key, empty where there is none.
func (s Signature) Get(key string) string {
	for _, f := range s {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

func (s *Signature) add(key, short string, value any) {
	*s = append(*s, SignatureField{key, short, fmt.Sprint(value)})
}

// describe names reference sets with their size and the start of their SHA-256, "tbc[5000@0123456789ab]".
func describe(sets ...*referenceSet) string {
	parts := make([]string, len(sets))
	for i, set := range sets {
		parts[i] = fmt.Sprintf("%s[%d@%s]", set.name, set.sentences, set.sha256[:12])
	}
	return strings.Join(parts, "+")
}
