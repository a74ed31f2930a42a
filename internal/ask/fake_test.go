package ask

import (
	"testing"

	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
)

const twoSlots = "the [MASK] sat on the [MASK]"

// newFake makes a filler of the fake model.
func newFake(t *testing.T) *infill.Filler {
	t.Helper()
	words := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]",
		"the", "cat", "dog", "sat", "ran", "on", "mat", "rug", "un", "##seen", "##known", ".", "seen"}
	return infill.New(lmtest.New(len(words), 32), check.Must(lmtest.Tokenizer(words))(t))
}
