package metrics

import (
	"fmt"
	"strings"
)

// Signature holds everything that changes a score besides the sentences, as sacrebleu prints with every score
// (Post 2018, "A Call for Clarity in Reporting BLEU Scores"). Two scores are comparable where their signatures
// are equal. In JSON it is its long form.
type Signature [][2]string // keys and values; neither holds a bar, and the key no colon

// String is the long form, "metric:self-bleu|tokenisation:whitespace|bleu-n:4|…".
func (s Signature) String() string {
	parts := make([]string, len(s))
	for i, field := range s {
		parts[i] = field[0] + ":" + field[1]
	}
	return strings.Join(parts, "|")
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
		read = append(read, [2]string{key, value})
	}
	*s = read
	return nil
}

func (s *Signature) add(key string, value any) {
	*s = append(*s, [2]string{key, fmt.Sprint(value)})
}

// describe names reference sets with their size and the start of their SHA-256, "tbc[5000@0123456789ab]".
func describe(sets ...*referenceSet) string {
	parts := make([]string, len(sets))
	for i, set := range sets {
		parts[i] = fmt.Sprintf("%s[%d@%s]", set.Name, set.Sentences, set.SHA256[:12])
	}
	return strings.Join(parts, "+")
}
