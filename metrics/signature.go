package metrics

import (
	"fmt"
	"strings"
)

// Signature holds all that changes a number besides the sentences scored, as sacrebleu prints with every score (Post 2018, "A Call
// for Clarity in Reporting BLEU Scores"). Two scores are comparable where their signatures are equal. In JSON it is its long form.
type Signature []SignatureField

// SignatureField is one choice. Neither part holds a bar, and the key no colon.
type SignatureField struct{ Key, Value string }

// String is the long form, "metric:self-bleu|tokenisation:whitespace|bleu-n:4|…".
func (s Signature) String() string { return s.join(func(key string) string { return key }) }

// Short is the same with short keys, "m:self-bleu|t:whitespace|n:4|…".
func (s Signature) Short() string { return s.join(shortKey) }

func (s Signature) join(name func(key string) string) string {
	parts := make([]string, len(s))
	for i, f := range s {
		parts[i] = name(f.Key) + ":" + f.Value
	}
	return strings.Join(parts, "|")
}

func shortKey(key string) string {
	switch key {
	case "metric", "metrics":
		return "m"
	case "paired":
		return "p"
	case "tokenisation":
		return "t"
	case "bleu-n":
		return "n"
	case "smoothing":
		return "s"
	case "length":
		return "l"
	case "n":
		return "g"
	case "top":
		return "k"
	case "references":
		return "r"
	case "excluded":
		return "x"
	case "union-first":
		return "f"
	case "resamples":
		return "b"
	case "unit":
		return "u"
	case "confidence":
		return "c"
	case "seed":
		return "sd"
	case "version":
		return "v"
	}
	return key
}

// MarshalText writes the long form.
func (s Signature) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the long form.
func (s *Signature) UnmarshalText(text []byte) error {
	var read Signature
	for _, part := range strings.Split(string(text), "|") {
		key, value, ok := strings.Cut(part, ":")
		if !ok {
			return fmt.Errorf("signature part %q has no colon", part)
		}
		read = append(read, SignatureField{key, value})
	}
	*s = read
	return nil
}

// Get returns the value of a key, empty where there is none.
func (s Signature) Get(key string) string {
	for _, f := range s {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

func (s *Signature) add(key string, value any) {
	*s = append(*s, SignatureField{key, fmt.Sprint(value)})
}

// describe names reference sets with their size and the start of their SHA-256, "tbc[5000@0123456789ab]".
func describe(sets ...*referenceSet) string {
	parts := make([]string, len(sets))
	for i, set := range sets {
		parts[i] = fmt.Sprintf("%s[%d@%s]", set.name, set.sentences, set.sha256[:12])
	}
	return strings.Join(parts, "+")
}
