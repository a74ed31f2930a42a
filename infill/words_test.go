package infill

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestLongWords: a blank by itself takes words of several pieces, weighed by their prior
// together with those of one, and U is that of as many slots.
func TestLongWords(t *testing.T) {
	f, err := Open(OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const before, after = "It was quite ", " that he came."
	o := DefaultOptions()
	o.MinCharacters, o.Top = 12, 20
	fill := func(change func(*Options)) *Result {
		t.Helper()
		o := o
		change(&o)
		r, err := f.Fill(t.Context(), before+"[MASK]"+after, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r, one := fill(func(*Options) {}), fill(func(o *Options) { o.MinPieces, o.MaxPieces = 1, 1 })
	if r.Stats.LongerWords == 0 || r.Method != MethodExact || !strings.Contains(r.Signature, "|pieces:word:1-3|") {
		t.Fatalf("%d words of several pieces, %s, %s", r.Stats.LongerWords, r.Method, r.Signature)
	}
	shares := map[string]float64{}
	for _, fill := range one.Fills {
		shares[fill.Text] = *fill.Probability
	}
	long, listed, compared, rest := 0.0, 0, 0, 0.0
	for _, fill := range r.Fills {
		if !slices.Equal(fill.Pieces, []int{len(fill.TokenIDs)}) {
			t.Errorf("%q of %d tokens has pieces %v", fill.Text, len(fill.TokenIDs), fill.Pieces)
		}
		n := len(fill.TokenIDs)
		if n == 1 {
			continue
		}
		listed++
		long += *fill.Probability
		u, err := f.LogLikelihoods(t.Context(), before+"[MASK:"+string(rune('0'+n))+"]"+after, o, [][]int{fill.TokenIDs})
		if err != nil || math.Abs(u[0]-fill.LogLikelihood) > 1e-4 {
			t.Errorf("%s: U %v, of its pieces %v, %v", fill.Text, fill.LogLikelihood, u, err)
		}
		best := r.Fills[slices.IndexFunc(r.Fills, func(f Fill) bool { return len(f.TokenIDs) == 1 })]
		if want := *best.Probability * piecesPrior[n] * math.Exp(fill.LogLikelihood-best.LogLikelihood); math.Abs(*fill.Probability/want-1) > 1e-9 {
			t.Errorf("%s: probability %v, want %v", fill.Text, *fill.Probability, want)
		}
	}
	last := r.Fills[len(r.Fills)-1] // words that are not listed have no more
	for _, fill := range r.Fills {
		if p, ok := shares[fill.Text]; ok {
			if compared++; compared == 1 {
				rest = *fill.Probability / p // what is left to words of one piece
			}
			if math.Abs(*fill.Probability/p/rest-1) > 1e-9 || rest > 1-long || rest < 1-long-float64(r.Stats.LongerWords-listed)**last.Probability {
				t.Errorf("%s: %v beside words of several pieces, of which those listed hold %v, and %v without", fill.Text, *fill.Probability, long, p)
			}
		}
	}
	if listed == 0 || listed > r.Stats.LongerWords || compared < 10 || len(r.Marginals[0]) < listed {
		t.Errorf("%d fills in both, %d marginals", compared, len(r.Marginals[0]))
	}
	for name, change := range map[string]func(*Options){
		"pieces": func(o *Options) { o.MinPieces, o.MaxPieces = 1, 1 }, "pll": func(o *Options) { o.Joint = JointPLL }, "any": func(o *Options) { o.Fill = FillAny },
		"list": func(o *Options) { o.Words, o.MinCharacters = map[int][]string{1: {"likely", "strange"}}, 0 }, "rows": func(o *Options) { o.Budget.Rows = 1 },
	} {
		if r := fill(change); r.Stats.LongerWords != 0 || r.Fills[0].Pieces != nil {
			t.Errorf("%s: %d words of several pieces", name, r.Stats.LongerWords)
		}
	}
}
