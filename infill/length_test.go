package infill

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/tokenize"
)

// scoreOf writes the score down once more for fills of one blank: the fake rates
// a piece by its id and by how much is masked with it.
func scoreOf(f *Filler, ids []int) float64 {
	sum, words := 0.0, 0
	for i, id := range ids {
		if i == 0 || !strings.HasPrefix(f.tokenizer.Token(id), "##") {
			words++
		}
		rest := 1
		for i+rest < len(ids) && strings.HasPrefix(f.tokenizer.Token(ids[i+rest]), "##") {
			rest++
		}
		sum -= float64(id) + float64(rest)/8
	}
	return sum / float64(words)
}

// TestLengths: a list of words of one and two pieces. Every fill of every length
// is found, has the law of its length, and is ranked by score.
func TestLengths(t *testing.T) {
	f, model := newFake(t)
	target := &fakeTarget{model: model}
	for _, template := range []string{"a [MASK] .", "a [MASK:1-3] ."} {
		o := chainOptions()
		o.Chains, o.Steps, o.Seed, o.LengthScore = 100, 300, 8, "word-l2r"
		o.Constraints = Constraints{Words: map[int][]string{1: {"cat", "unseen", "dog", "the cat", "un"}}}
		last := 0
		result, err := f.Fill(t.Context(), template, o, func(p Progress) {
			if p.Step < last || p.Steps != 600 || len(p.TokenIDs) != 100*p.Pieces[0] {
				t.Errorf("step %d after %d of %d: %d tokens, pieces %v", p.Step, last, p.Steps, len(p.TokenIDs),
					p.Pieces)
			}
			last = p.Step
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != 600 {
			t.Errorf("the last step is %d", last)
		}
		total := map[int]float64{}
		for _, s := range result.Fills {
			total[s.Pieces[0]] += math.Exp(target.energyOf(s.TokenIDs))
		}
		var fills []string
		for i, s := range result.Fills {
			fills = append(fills, s.Values[0])
			if want := scoreOf(f, s.TokenIDs); math.Abs(*s.Score-want) > 1e-9 {
				t.Errorf("%v: score %v, want %v", s.Values, *s.Score, want)
			}
			if i > 0 && *s.Score > *result.Fills[i-1].Score || s.Rank != i+1 || len(s.TokenIDs) != s.Pieces[0] {
				t.Errorf("rank %d: %+v", i+1, s)
			}
			u := target.energyOf(s.TokenIDs)
			if math.Abs(u-s.LogLikelihood) > 1e-9 {
				t.Errorf("%v: U %v, want %v", s.Values, s.LogLikelihood, u)
			}
			if p := math.Exp(u) / total[s.Pieces[0]]; math.Abs(p-s.Frequency) > 5*drawError(s) {
				t.Errorf("%v: drawn %.4f ± %.4f within its length, exact %.4f", s.Values, s.Frequency, drawError(s), p)
			}
		}
		slices.Sort(fills)
		if diff := cmp.Diff([]string{"cat", "dog", "the cat", "un", "unseen"}, fills); diff != "" {
			t.Error(diff)
		}
		if result.Template != template || result.Blanks[0] != [2]int{2, len(template) - 2} {
			t.Errorf("template %q, blank %v", result.Template, result.Blanks[0])
		}
		s := result.Stats
		if len(s.Lengths) != 2 || s.Lengths[1].Pieces[0] != 2 || s.Draws != 2*150*100 || s.DistinctFills != 5 ||
			s.StepSize != nil || s.Slots != 1 {
			t.Errorf("stats: %+v", s)
		}
		if a := s.Lengths; math.Abs(*s.AcceptanceRate-(*a[0].AcceptanceRate+*a[1].AcceptanceRate)/2) > 1e-12 {
			t.Errorf("acceptance %v of %v and %v", *s.AcceptanceRate, *a[0].AcceptanceRate, *a[1].AcceptanceRate)
		}
		if !strings.HasPrefix(result.Signature, "lengths:word-l2r|") ||
			!strings.Contains(result.Signature, "|slot:1=cat,unseen,dog,the cat,un|") {
			t.Errorf("signature %s", result.Signature)
		}
	}
}

// TestBlankScore: by blanks, all that is to the right in the blank is masked.
func TestBlankScore(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	o.Constraints = Constraints{Words: map[int][]string{1: {"cat", "unseen dog rug", "the cat"}}}
	result := fill(t, f, "a [MASK] . [MASK] .", o)
	for _, s := range result.Fills {
		sum, words := 0.0, len(strings.Fields(s.Values[0]))+1
		first := s.TokenIDs[:s.Pieces[0]]
		for i, id := range first {
			sum -= float64(id) + float64(len(first)-i)/8
		}
		sum -= float64(s.TokenIDs[len(first)]) + 1./8
		if want := sum / float64(words); math.Abs(*s.Score-want) > 1e-9 {
			t.Errorf("%v: score %v, want %v", s.Values, *s.Score, want)
		}
	}
	if len(result.Fills) != 5 || !strings.HasPrefix(result.Signature, "lengths:blank-l2r|") {
		t.Errorf("%d fills, signature %s", len(result.Fills), result.Signature)
	}
}

// TestLengthCombinations: every combination of lengths has a run; a bound on the
// pieces gives plain blanks their lengths.
func TestLengthCombinations(t *testing.T) {
	f, _ := newFake(t)
	tests := []struct {
		template string
		c        Constraints
		want     string
	}{
		{"a [MASK:1-2] or [MASK:2-3]", Constraints{}, "[[1 2] [1 3] [2 2] [2 3]]"},
		{"a [MASK] or [MASK:3] or [MASK=x] or [MASK=x]", Constraints{MinPieces: 1, MaxPieces: 2},
			"[[1 3 1 1] [1 3 2 2] [2 3 1 1] [2 3 2 2]]"},
		{"a [MASK] or [MASK]", Constraints{Words: map[int][]string{1: {"cat", "un cat dog"}}}, "[[1 1] [3 1]]"},
	}
	for _, test := range tests {
		o := chainOptions()
		o.Chains, o.Steps, o.Constraints = 2, 2, test.c
		result := fill(t, f, test.template, o)
		var got [][]int
		for _, l := range result.Stats.Lengths {
			got = append(got, l.Pieces)
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, want %s", test.template, got, test.want)
		}
		for _, s := range result.Fills {
			if len(s.Values) != len(s.Pieces) || len(s.Spans) != len(s.Values) {
				t.Errorf("%s: %d fills of %v pieces", test.template, len(s.Values), s.Pieces)
			}
		}
	}
	o := chainOptions()
	o.Constraints = Constraints{MinPieces: 2, MaxPieces: 2}
	if s := fill(t, f, "a [MASK]", o); s.Stats.Lengths != nil || s.Fills[0].Score != nil ||
		len(s.Fills[0].TokenIDs) != 2 {
		t.Errorf("one length of two pieces: %+v", s.Fills[0])
	}
}

// TestLengthsAlike: one text of two lengths comes once, with its better score;
// the likelier of two modes of one text does not hide it.
func TestLengthsAlike(t *testing.T) {
	model := &fakeModel{positions: 16, bond: 1}
	tokenizer, err := tokenize.New(append(fakeWords(), "unseen"), tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	model.tokens = tokenizer.VocabularySize()
	f := New(model, tokenizer)
	o := chainOptions()
	o.Top, o.Steps = 1000, 300
	o.Constraints = Constraints{MinCharacters: 6, MaxCharacters: 6}
	seen, scores := map[string]bool{}, 0
	for _, s := range fill(t, f, "a [MASK:1-2] .", o).Fills {
		if seen[s.Text] {
			t.Errorf("%q comes twice", s.Text)
		}
		seen[s.Text] = true
		if s.Values[0] == "unseen" {
			scores++
			one, _ := tokenizer.ID("unseen")
			un, _ := tokenizer.ID("un")
			end, _ := tokenizer.ID("##seen")
			if want := math.Max(scoreOf(f, []int{one}), scoreOf(f, []int{un, end})); math.Abs(*s.Score-want) > 1e-9 {
				t.Errorf("score %v, want %v", *s.Score, want)
			}
		}
	}
	if scores != 1 || len(seen) < 5 {
		t.Errorf("%d of %d fills are unseen", scores, len(seen))
	}
	o.Rank, o.Chains = "final", 5
	result := fill(t, f, "a [MASK:1-2] .", o)
	if len(result.Fills) != 10 {
		t.Errorf("%d final states of two lengths of 5 chains", len(result.Fills))
	}
}
