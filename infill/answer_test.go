package infill

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"infill/tokenize"
)

// Probabilities of enumerated fills are those of the energy, at any temperature, and
// marginals sum them up.
func TestExactProbabilities(t *testing.T) {
	f, model := newFake(t)
	for _, temperature := range []float64{1, 2} {
		o := DefaultOptions()
		o.Joint, o.Fill, o.Candidates, o.Temperature, o.Top = JointPLL, FillAny, 0, temperature, 1000
		result := fill(t, f, twoSlots, o)
		if result.Method != MethodExact {
			t.Fatalf("method %s", result.Method)
		}
		z := 0.0
		tokens := f.fillable
		energy := func(a, b int) float64 { return (weight(a) + weight(b) + model.bondOf(a, b)) / temperature }
		for _, a := range tokens {
			for _, b := range tokens {
				z += math.Exp(energy(a, b))
			}
		}
		for _, fill := range result.Fills {
			want := math.Exp(energy(fill.TokenIDs[0], fill.TokenIDs[1])) / z
			if math.Abs(*fill.Probability-want) > 1e-9 || *fill.ProbabilityError != 0 {
				t.Errorf("%s: %v ± %v, want %v", fill.Text, *fill.Probability, *fill.ProbabilityError, want)
			}
		}
		for blank, values := range result.Marginals {
			for _, v := range values {
				want := 0.0
				for _, other := range tokens {
					pair := [2]int{v.TokenIDs[0], other}
					if blank == 1 {
						pair = [2]int{other, v.TokenIDs[0]}
					}
					want += math.Exp(energy(pair[0], pair[1])) / z
				}
				if math.Abs(v.Probability-want) > 1e-9 {
					t.Errorf("blank %d, %s: %v, want %v", blank+1, v.Text, v.Probability, want)
				}
			}
		}
	}
}

// A budget that ends before the proof gives the best so far with a bound of all others,
// tells of its progress, and has an answer on the way.
func TestManyBlanks(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Fill, o.Order, o.Budget = FillAny, orderLeftToRight, Budget{Rows: 100}
	const template = "the [MASK] sat [MASK] on [MASK] the [MASK]"
	plan, err := f.Plan(Request{Template: template, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	if rows := plan.MaxRows(); rows != o.Budget.Rows || plan.Slots() != 4 {
		t.Fatalf("before: %d rows, %d slots", rows, plan.Slots())
	}
	var steps, answers int
	var on *Result
	result, err := plan.Fill(t.Context(), func(p Progress) {
		steps++
		if p.Result != nil {
			answers++
			if on == nil {
				on = p.Result()
			}
		}
		if p.Step > p.Steps {
			t.Errorf("step %d of %d", p.Step, p.Steps)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if steps < 4 || answers == 0 {
		t.Errorf("%d steps heard, %d with an answer", steps, answers)
	}
	for _, r := range []*Result{result, on} {
		if r.Method != MethodSearch || *r.Proven || len(r.Fills) == 0 || r.Seed != nil ||
			!(*r.LeftOutAtMost > 0 && *r.LeftOutAtMost <= 1) {
			t.Errorf("method %q, proven %v, %d fills, left out at most %v", r.Method, *r.Proven, len(r.Fills),
				*r.LeftOutAtMost)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
	if *on.LeftOutAtMost < *result.LeftOutAtMost || on.Fills[0].LogLikelihood > result.Fills[0].LogLikelihood {
		t.Error("the search lost what it had")
	}
	if rows := result.Stats.ModelRows; rows != int64(o.Budget.Rows) {
		t.Errorf("%d rows of a budget of %d", rows, o.Budget.Rows)
	}
}

// However small the budget is, there is an answer, and it is said to be rough.
func TestSmallBudgets(t *testing.T) {
	f, _ := newFake(t)
	for _, joint := range []Joint{JointChain, JointPLL} {
		for _, rows := range []int{1, 20, 60} {
			o := DefaultOptions()
			o.Fill, o.Seed, o.Joint, o.Budget = FillAny, 1, joint, Budget{Rows: rows}
			if joint == JointPLL {
				o.Candidates, o.Error = 0, 1e-6
			}
			r := fill(t, f, "the [MASK] sat [MASK] on [MASK] the [MASK]", o)
			rough := strings.Contains(strings.Join(r.Warnings, "\n"), "the budget of")
			if joint == JointChain {
				rough = !*r.Proven
			}
			if len(r.Fills) == 0 || r.Fills[0].Probability == nil || !rough {
				t.Errorf("%s, %d rows: %d fills, warnings %q", joint, rows, len(r.Fills), r.Warnings)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("%s, %d rows: %v", joint, rows, err)
			}
		}
	}
}

// A model's table may be longer than the vocabulary: what it holds there is no hint.
func TestTableLongerThanVocabulary(t *testing.T) {
	model := longTable{&fakeModel{positions: 16, bond: 1, tokens: len(fakeWords()) + 13}}
	result, err := New(model, newTokenizer(t)).Fill(t.Context(), "the [MASK] sat on the mat", DefaultOptions(), nil)
	if err != nil || len(result.Fills) == 0 {
		t.Fatalf("%v, %v", result, err)
	}
	for _, w := range result.Warnings {
		if strings.Contains(w, "would rather") {
			t.Errorf("a hint of a token that the vocabulary lacks: %s", w)
		}
	}
}

// longTable is all but sure of a token behind the vocabulary.
type longTable struct{ *fakeModel }

func (m longTable) MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error) {
	logp, err := m.fakeModel.MaskedLogProbabilities(ctx, ids, slots)
	for _, row := range logp {
		row[len(row)-1] = 20
	}
	return logp, err
}

// A vocabulary without words is the model's fault, not the constraints', and is reported with its name.
func TestVocabularyWithoutWords(t *testing.T) {
	tokenizer, err := tokenize.New([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."}, tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(&fakeModel{positions: 16}, tokenizer).Fill(t.Context(), "[MASK] .", DefaultOptions(), nil)
	if err == nil || !strings.Contains(err.Error(), "model fake: its vocabulary") {
		t.Errorf("got %v", err)
	}
}
