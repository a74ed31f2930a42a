package infill_test

import (
	"testing"

	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
)

// TestNoPieces: in a vocabulary without pieces, as ProtBERT's, no blank
// continues a word, whatever it may hold.
func TestNoPieces(t *testing.T) {
	words := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "l", "a", "g"}
	f := infill.New(lmtest.New(len(words), 16), check.Must(lmtest.Tokenizer(words))(t))
	for _, kind := range []infill.FillKind{"", infill.FillAny, infill.FillWords} {
		_, err := f.Plan(t.Context(), infill.Request{Template: "l[MASK] a", Fit: infill.Fit{Fill: kind}})
		check.Says(t, err, "blank 1 continues the word on its left, and the model's vocabulary has no tokens that "+
			"continue a word: write a space before the blank")
	}
}
