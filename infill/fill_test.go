package infill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/internal/lmtest"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

const twoSlots = "the [MASK] sat on the [MASK]"

func newFake(t testing.TB) (*Filler, *lmtest.Model) {
	model := newModel(16, 1)
	return New(model, newTokenizer(t)), model
}

func fill(t testing.TB, f *Filler, template string, o asked) *Result {
	t.Helper()
	result, err := f.Fill(t.Context(), o.request(template), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// planned tells what is wrong with a template and its options.
func planned(t *testing.T, f *Filler, template string, o asked) error {
	_, err := f.Plan(t.Context(), o.request(template))
	return err
}

// TestKnown: the observer may ask for the result so far at every step, of the
// warm-up while that lasts, and after the end for all that the result counts.
func TestKnown(t *testing.T) {
	for _, sampler := range []string{"dmala", "gibbs"} {
		f, _ := newFake(t)
		o := chainOptions()
		o.Chains.Sampler, o.Samples, o.Chains.Steps, o.Chains.WarmUp = sampler, 5, 9, 4
		var last Progress
		result, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) {
			last = p
			r := p.Result()
			want := p.Step - o.Chains.WarmUp
			if p.WarmUp {
				want = p.Step + 1
			}
			if r.Stats.Draws != want*o.Samples || len(r.Draws) != o.Samples || len(r.Draws[0]) != want {
				t.Errorf("%s, step %d: %d draws, want %d of each chain", sampler, p.Step, r.Stats.Draws, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		known := last.Result()
		ignored := cmpopts.IgnoreFields(Fill{}, "ShareInterval", "SplitRHat", "EffectiveDraws")
		if diff := cmp.Diff(result.Fills, known.Fills[:len(result.Fills)], ignored); diff != "" {
			t.Errorf("%s: the end is not what the result says: %s", sampler, diff)
		}
		if diff := cmp.Diff(result.Stats, known.Stats,
			cmpopts.IgnoreFields(Stats{}, "Seconds", "ModelRows")); diff != "" {
			t.Errorf("%s: %s", sampler, diff)
		}
	}
}

// TestDistribution compares how often each fill is drawn with the exact
// distribution over all fills, for every sampler that targets it, at two
// temperatures. The oracle enumerates; it shares only the energy of a fill.
func TestDistribution(t *testing.T) {
	for _, sampler := range textSamplers() {
		for _, temperature := range []float64{1, 2} {
			// The fake's conditionals are those of its energy, so Gibbs is exact
			// here; at another temperature a conditional to the power 1/T is too.
			if sampler == "dula" {
				continue
			}
			t.Run(fmt.Sprintf("%s at %g", sampler, temperature), func(t *testing.T) {
				f, model := newFake(t)
				o := chainOptions()
				o.Fill = FillAny
				o.Chains.Sampler, o.Temperature = sampler, temperature
				o.Samples, o.Chains.Steps, o.Top, o.Chains.Candidates, o.Seed = followed(200), 300, 1000, 4, 11
				result := fill(t, f, twoSlots, o)

				best := candidatesOf(t, f, model, twoSlots, 4)
				target := model
				exact := map[[2]int]float64{}
				total := 0.0
				for _, a := range best[0] {
					for _, b := range best[1] {
						p := math.Exp(target.U([]int{a, b}) / temperature)
						exact[[2]int{a, b}] = p
						total += p
					}
				}
				found := 0.0
				for _, s := range result.Fills {
					ids := [2]int{s.TokenIDs[0], s.TokenIDs[1]}
					p, ok := exact[ids]
					if !ok {
						t.Fatalf("fill %v is not among the candidates", ids)
					}
					p /= total
					found += p
					// 16 fills, 3 samplers, 2 temperatures: 4.5 standard errors
					// are passed by chance once in some thousand runs; the seed is fixed.
					if e := s.ShareError; e != nil && math.Abs(*s.Share-p) > 4.5**e {
						t.Errorf("%v: drawn %.4f ± %.4f, exact %.4f", s.Values, *s.Share, *e, p)
					}
					if u := target.U(s.TokenIDs); math.Abs(u-s.LogLikelihood) > 1e-9 {
						t.Errorf("%v: log-likelihood %v, want %v", s.Values, s.LogLikelihood, u)
					}
				}
				if found < 0.999 {
					t.Errorf("fills of probability %.4f in all were drawn", found)
				}
			})
		}
	}
}

func TestRanking(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	o.Top, o.Chains.Candidates, o.Seed = 100, 5, 3
	for _, sampler := range textSamplers() {
		t.Run(sampler, func(t *testing.T) {
			o := o
			o.Chains.Sampler = sampler
			result := fill(t, f, twoSlots, o)
			seen := map[string]bool{}
			count, finals := 0, 0
			for i, s := range result.Fills {
				if s.Rank != i+1 {
					t.Errorf("entry %d has rank %d", i, s.Rank)
				}
				if i > 0 && s.LogLikelihood > result.Fills[i-1].LogLikelihood {
					t.Errorf("rank %d is better than the one before", s.Rank)
				}
				if seen[s.Text] {
					t.Errorf("%q comes twice", s.Text)
				}
				seen[s.Text] = true
				if s.Count < 1 || *s.Share != float64(s.Count)/float64(result.Stats.Draws) {
					t.Errorf("%q: count %d, frequency %v of %d draws", s.Text, s.Count, *s.Share, result.Stats.Draws)
				}
				count += s.Count
				finals += s.FinalCount
				for slot, span := range s.Spans {
					if got := s.Text[span[0]:span[1]]; got != s.Values[slot] {
						t.Errorf("%q: span of slot %d holds %q, want %q", s.Text, slot, got, s.Values[slot])
					}
				}
			}
			if want := 25 * 25; count != want || result.Stats.Draws != want {
				t.Errorf("counts sum to %d of %d draws, want %d", count, result.Stats.Draws, want)
			}
			if finals != 25 {
				t.Errorf("final counts sum to %d, want 25", finals)
			}
			if len(result.Fills) != result.Stats.DistinctFills {
				t.Errorf("%d fills ranked of %d distinct ones", len(result.Fills), result.Stats.DistinctFills)
			}
		})
	}
}

// TestAlike: tokens that make one text are one entry, that of the likelier.
func TestAlike(t *testing.T) {
	model := newModel(16, 1)
	tokenizer, err := lmtest.Tokenizer(append(fakeWords(), "uns", "##een"))
	if err != nil {
		t.Fatal(err)
	}
	model.Size = tokenizer.VocabularySize()
	f := New(model, tokenizer)
	id := func(token string) int {
		id, ok := tokenizer.ID(token)
		if !ok {
			t.Fatalf("no token %s", token)
		}
		return id
	}
	o := chainOptions()
	o.Top, o.Samples, o.Seed = 100, 60, 3
	o.Slots = Lists{1: {"un", "uns"}, 2: {"##seen", "##een"}}
	seen, best := map[string]bool{}, math.Inf(-1)
	result := fill(t, f, "the [MASK] [MASK] cat", o)
	for _, s := range result.Fills {
		if seen[s.Text] {
			t.Errorf("%q comes twice", s.Text)
		}
		seen[s.Text] = true
		if s.Text == "the unseen cat" {
			best = s.LogLikelihood
		}
	}
	target := model
	if want := math.Max(target.U([]int{id("un"), id("##seen")}),
		target.U([]int{id("uns"), id("##een")})); math.Abs(best-want) > 1e-9 {
		t.Errorf("kept the one of log-likelihood %v, want %v", best, want)
	}
	if result.Stats.DistinctFills != len(result.Fills)+1 {
		t.Errorf("%d entries of %d fills, of which two read alike", len(result.Fills), result.Stats.DistinctFills)
	}
}

// TestFinalRanking is the papers' protocol: the best of the final states,
// repeats included. The observer tells what the final states were.
func TestFinalRanking(t *testing.T) {
	for _, sampler := range []string{"dmala", "gibbs"} {
		t.Run(sampler, func(t *testing.T) {
			f, model := newFake(t)
			o := chainOptions()
			o.Chains.Sampler, o.Rank, o.Chains.Candidates, o.Top, o.Seed = sampler, "final", 3, 12, 5
			var last Progress
			result, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) { last = p })
			if err != nil {
				t.Fatal(err)
			}
			target := model
			var want, got []float64
			for chain := range 25 {
				want = append(want, target.U(last.TokenIDs[2*chain:2*chain+2]))
			}
			slices.SortFunc(want, func(a, b float64) int {
				if a > b {
					return -1
				}
				return 1
			})
			for _, s := range result.Fills {
				got = append(got, s.LogLikelihood)
			}
			if diff := cmp.Diff(want[:12], got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Error(diff)
			}
			if result.Stats.Draws != 25 {
				t.Errorf("%d draws, want 25", result.Stats.Draws)
			}
		})
	}
}

// withoutTime is a result's JSON without what may differ between equal runs.
func withoutTime(t *testing.T, r *Result) string {
	t.Helper()
	copied := *r
	copied.Stats.Seconds = 0
	text, err := json.Marshal(copied)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReproducible(t *testing.T) {
	const other = "the dog ran on the [MASK] ."
	for _, gradient := range []lm.Gradient{lm.Full, lm.Local} {
		t.Run(string(gradient), func(t *testing.T) {
			o := chainOptions()
			o.Chains.Gradient, o.Seed = gradient, 7
			f, _ := newFake(t)
			first := fill(t, f, twoSlots, o)
			fill(t, f, other, o)
			again := fill(t, f, twoSlots, o)
			if diff := cmp.Diff(withoutTime(t, first), withoutTime(t, again)); diff != "" {
				t.Errorf("the same seed after another template: %s", diff)
			}
			fresh, _ := newFake(t)
			if diff := cmp.Diff(withoutTime(t, first), withoutTime(t, fill(t, fresh, twoSlots, o))); diff != "" {
				t.Errorf("the same seed in another filler: %s", diff)
			}
			o.Seed = 8
			differs := fill(t, f, twoSlots, o)
			if differs.Stats.Chains.MeanLogLikelihood == first.Stats.Chains.MeanLogLikelihood {
				t.Error("another seed gave the same chains")
			}
		})
	}
}

// TestChainsStandAlone: with a fixed step size a chain's path does not depend on
// how many chains run beside it.
func TestChainsStandAlone(t *testing.T) {
	f, _ := newFake(t)
	path := func(chains int) (ids []int) {
		o := chainOptions()
		o.Samples, o.Chains.StepSize, o.Seed = chains, 3, 2
		_, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) { ids = append(ids, p.TokenIDs[:4]...) })
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if diff := cmp.Diff(path(2), path(9)); diff != "" {
		t.Error(diff)
	}
}

func TestObserver(t *testing.T) {
	f, model := newFake(t)
	target := model
	o := chainOptions()
	o.Chains.Steps, o.Chains.WarmUp, o.Temperature, o.Samples = 6, 2, 2, 3
	var seen, frozen []Progress
	_, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) {
		seen = append(seen, p)
		c := p
		c.TokenIDs, c.LogLikelihoods = slices.Clone(p.TokenIDs), slices.Clone(p.LogLikelihoods)
		c.Accepted, c.Changed = slices.Clone(p.Accepted), slices.Clone(p.Changed)
		frozen = append(frozen, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(frozen, seen, cmpopts.IgnoreUnexported(Progress{})); diff != "" {
		t.Errorf("what the observer was given changed afterwards: %s", diff)
	}
	if len(seen) != 7 {
		t.Fatalf("%d reports, want the start and 6 steps", len(seen))
	}
	for i, p := range seen {
		if p.Step != i || p.Steps != 6 || p.Template != twoSlots || p.WarmUp != (i <= 2) {
			t.Errorf("report %d: step %d of %d, warm-up %t", i, p.Step, p.Steps, p.WarmUp)
		}
		for chain, u := range p.LogLikelihoods {
			if want := target.U(p.TokenIDs[2*chain : 2*chain+2]); math.Abs(u-want) > 1e-9 {
				t.Errorf("report %d, chain %d: log-likelihood %v, want %v whatever the temperature", i, chain, u, want)
			}
		}
		for chain := range p.Accepted {
			moved := 0
			for slot := range 2 {
				if p.TokenIDs[2*chain+slot] != seen[i-1].TokenIDs[2*chain+slot] {
					moved++
				}
			}
			if moved != p.Changed[chain] {
				t.Errorf("report %d, chain %d: %d slots changed, want %d", i, chain, p.Changed[chain], moved)
			}
		}
	}
	if size := seen[6].StepSize; size != seen[3].StepSize || size == seen[0].StepSize {
		t.Errorf("step sizes %v at the start, %v and %v after the warm-up: must adapt, then stay", seen[0].StepSize,
			seen[3].StepSize, size)
	}
}

// TestStats counts from what the observer saw.
func TestStats(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	o.Chains.Steps, o.Chains.WarmUp, o.Samples, o.Chains.Candidates = 20, 5, 4, 6
	var accepted, changed, warmAccepted, warmChanged float64
	result, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) {
		for c, a := range p.Accepted {
			switch {
			case p.WarmUp && a:
				warmAccepted++
			case a:
				accepted++
			}
			if p.WarmUp {
				warmChanged += float64(p.Changed[c])
			} else {
				changed += float64(p.Changed[c])
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	s := result.Stats.Chains
	near := func(name string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) < 1e-12) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("acceptance", *s.AcceptanceRate, accepted/60)
	near("changed slots", s.ChangedSlotsPerStep, changed/60)
	near("acceptance in the warm-up", *s.WarmUp.AcceptanceRate, warmAccepted/20)
	near("changed slots in the warm-up", s.WarmUp.ChangedSlotsPerStep, warmChanged/20)
	if result.Stats.Draws != 60 || s.Chains != 4 || s.Steps != 20 || s.WarmUp.Steps != 5 || result.Stats.Slots != 2 {
		t.Errorf("counts: %+v", s)
	}
	// One gradient a step and one at the start; two rows each, and one row
	// for the candidates.
	if s.GradientEvaluations != 4*21 || s.EnergyEvaluations != 4*21 || result.Stats.ModelRows != 2*4*21+1 {
		t.Errorf("%d gradients, %d energies, %d rows", s.GradientEvaluations, s.EnergyEvaluations,
			result.Stats.ModelRows)
	}
	mean := 0.0
	o.Top = 1000
	for _, f := range fill(t, f, twoSlots, o).Fills {
		mean += *f.Share * f.LogLikelihood
	}
	near("mean log-likelihood", s.MeanLogLikelihood, mean)
}

// TestUnadjusted: a rate of acceptance of a sampler that accepts always would
// say nothing, so there is none.
func TestUnadjusted(t *testing.T) {
	f, _ := newFake(t)
	for sampler, adjusted := range map[string]bool{"gibbs": false, "dula": false, "gwg": true, "dmala": true} {
		o := chainOptions()
		o.Chains.Sampler = sampler
		s := fill(t, f, twoSlots, o).Stats.Chains
		if (s.AcceptanceRate != nil) != adjusted || (s.WarmUp.AcceptanceRate != nil) != adjusted {
			t.Errorf("%s: acceptance %v, in the warm-up %v", sampler, s.AcceptanceRate, s.WarmUp.AcceptanceRate)
		}
		if s.ChangedSlotsPerStep <= 0 {
			t.Errorf("%s: no slot changed", sampler)
		}
	}
}

func TestFewSteps(t *testing.T) {
	f, _ := newFake(t)
	tests := []struct{ steps, warmUp, draws int }{{0, halfSteps, 25}, {0, 0, 25}, {1, halfSteps, 25}, {3, 3, 25},
		{2, 0, 50}}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%d steps, %d warm-up", test.steps, test.warmUp), func(t *testing.T) {
			o := chainOptions()
			o.Chains.Steps, o.Chains.WarmUp = test.steps, test.warmUp
			result := fill(t, f, twoSlots, o)
			if result.Stats.Draws != test.draws {
				t.Errorf("%d draws, want %d", result.Stats.Draws, test.draws)
			}
			if _, err := json.Marshal(result); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOneChain(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	o.Samples = 1
	result := fill(t, f, twoSlots, o)
	if e := result.Stats.Chains.AcceptanceStandardError; e != nil {
		t.Errorf("one chain has no standard error, got %v", *e)
	}
	if _, err := json.Marshal(result); err != nil {
		t.Error(err)
	}
}

func TestCandidates(t *testing.T) {
	fillable := []int{1, 3, 4, 6}
	logp := []float32{9, -1, 9, -3, -1, 9, -2}
	tests := []struct {
		number int
		want   []int
	}{{0, fillable}, {4, fillable}, {9, fillable}, {1, []int{1}}, {2, []int{1, 4}}, {3, []int{1, 4, 6}}}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, mostProbable(fillable, logp, test.number)); diff != "" {
			t.Errorf("%d: %s", test.number, diff)
		}
	}
}

// candidatesOf returns the n likeliest tokens of each slot of a template while all are
// masked, ascending.
func candidatesOf(t *testing.T, f *Filler, m LanguageModel, template string, n int) (best [][]int) {
	t.Helper()
	typed, err := f.tokenizer.Template(template)
	if err != nil {
		t.Fatal(err)
	}
	for _, logp := range expected(t, m, typed.IDs, typed.Slots...) {
		best = append(best, mostProbable(f.tokenizer.Fillable(), logp, n))
	}
	return best
}

// TestInitial compares the frequencies of first states with the distribution
// they are to be drawn from, by a chi-square statistic.
func TestInitial(t *testing.T) {
	const count = 20000
	f, model := newFake(t)
	best := candidatesOf(t, f, model, twoSlots, 3)
	template, err := f.tokenizer.Template(twoSlots)
	if err != nil {
		t.Fatal(err)
	}
	logp := expected(t, model, template.IDs, template.Slots...)
	for _, how := range []StartKind{StartModel, StartRandom} {
		o := chainOptions()
		o.Fill, o.Samples, o.Seed = FillAny, count, 1
		o.Chains.Steps, o.Chains.Candidates, o.Chains.Initial.Kind = 0, 3, how
		var counts [2][3]float64
		_, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) {
			for i, id := range p.TokenIDs {
				counts[i%2][slices.Index(best[i%2], id)]++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for slot := range counts {
			want := [3]float64{1. / 3, 1. / 3, 1. / 3}
			if how == StartModel {
				of := func(v int) float64 { return float64(logp[slot][best[slot][v]]) }
				want = softmax(of(0), of(1), of(2))
			}
			chiSquare := 0.0
			for v, p := range want {
				chiSquare += (counts[slot][v] - count*p) * (counts[slot][v] - count*p) / (count * p)
			}
			// The 99.9 % point at 2 degrees of freedom is 13.8.
			if chiSquare > 13.8 {
				t.Errorf("%s, slot %d: %v of %d, want shares %v", how, slot, counts[slot], count, want)
			}
		}
	}
}

func softmax(a, b, c float64) [3]float64 {
	x, y, z := 1.0, math.Exp(b-a), math.Exp(c-a)
	return [3]float64{x / (x + y + z), y / (x + y + z), z / (x + y + z)}
}

func TestFillErrors(t *testing.T) {
	f, model := newFake(t)
	loads := 0
	f = newFiller(f.tokenizer, model.Limit,
		func(context.Context) (LanguageModel, error) { loads++; return model, nil })
	tests := []struct {
		name, template string
		change         func(*asked)
		want           string
	}{
		{"no slot", "the cat", nil, "no blank"},
		{"only blanks", "[MASK] [MASK]", nil, "nothing but blanks"},
		{"too many lengths", "the [MASK:1-9] [MASK:1-9]", nil, "more than 64; narrow a blank"},
		{"no pattern alone", `the [MASK~\Qcat]`, nil, "blank 1: error parsing regexp: missing closing )"},
		{"too long", "the [MASK:15]", nil, "the model sees 14 tokens at once, and the blanks are further apart"},
		{"bad option", twoSlots, func(o *asked) { o.Samples = -1 },
			`samples: "-1" is not a whole number from 1 to`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := chainOptions()
			if test.change != nil {
				test.change(&o)
			}
			_, err := f.Fill(t.Context(), o.request(test.template), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			var input *tokenize.InputError
			var option *OptionError
			var constraint *ConstraintError
			if !errors.As(err, &input) && !errors.As(err, &option) && !errors.As(err, &constraint) {
				t.Errorf("%T is no error of an input, an option or a constraint", err)
			}
		})
	}
	if loads != 0 {
		t.Error("the model was loaded for inputs that never reach it")
	}
}

func TestCancel(t *testing.T) {
	f, model := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	// A model call that comes back only when it is cancelled.
	model.Before = func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return fmt.Errorf("session run: %w", ctx.Err())
	}
	if _, err := f.Fill(ctx, chainOptions().request(twoSlots), nil); err != context.Canceled {
		t.Errorf("fill: got %v, want context.Canceled itself", err)
	}
	if _, err := f.Score(ctx, ScoreRequest{Text: "the cat sat"}); err != context.Canceled {
		t.Errorf("score: got %v, want context.Canceled itself", err)
	}
}

func TestWarnings(t *testing.T) {
	f, model := newFake(t)
	tests := []struct {
		name, template string
		change         func(*asked)
		want           string // "" for no warning
	}{
		{"none", twoSlots, func(o *asked) { o.Chains.Candidates, o.Chains.Steps, o.Fill = 0, 400, FillAny }, ""},
		{"unknown word", "the zebra [MASK]", func(o *asked) { o.Chains.Candidates = 0 },
			"words outside the model's vocabulary (1)"},
		{"few fills", "the [MASK] sat", func(o *asked) { o.Chains.Candidates = 3 },
			"5 fills were asked for and 3 found"},
		{"no more fills", "the [MASK] sat",
			func(o *asked) { *o = asked{}; o.Slots = Lists{1: {"cat", "dog"}} }, ""},
		{"stuck", twoSlots, func(o *asked) { o.Chains.Candidates, o.Chains.Sampler = 1, "gibbs" }, "no slot changed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := chainOptions()
			test.change(&o)
			warnings := strings.Join(fill(t, f, test.template, o).Warnings, "\n")
			if test.want == "" && warnings != "" || !strings.Contains(warnings, test.want) {
				t.Errorf("got %q, want %q", warnings, test.want)
			}
		})
	}
	// Proposals that know nothing of a strong bond are nearly always wrong.
	model.Bond, model.Blind = 60, true
	o := chainOptions()
	o.Chains.StepSize, o.Chains.Candidates = 100, 0
	if w := fill(t, f, "the [MASK] [MASK] [MASK] [MASK] sat", o).Warnings; len(w) == 0 ||
		!strings.Contains(strings.Join(w, "\n"), "of the proposals were accepted") {
		t.Errorf("rejected proposals: got warnings %q", w)
	}
}

func TestSignature(t *testing.T) {
	f, _ := newFake(t)
	hash := f.tokenizer.SHA256()[:12]
	tests := []struct {
		change func(*asked)
		want   string
	}{
		{func(o *asked) {},
			"sampler:dmala|balance:1|energy:pll|gradient:local|candidates:250|temperature:1|" +
				"samples:25|steps:50|warm-up:25|initial:model|rank:distinct|seed:7"},
		{func(o *asked) { o.Chains.Sampler = "gibbs"; o.Chains.Candidates = 0 },
			"sampler:gibbs|energy:pll|candidates:0|temperature:1|samples:25|steps:50|warm-up:25|initial:model|" +
				"rank:distinct|seed:7"},
		{func(o *asked) { o.Chains.StepSize = 0.25; o.Chains.Balance = "ratio"; o.Rank = "final" },
			"sampler:dmala|step-size:0.25|balance:ratio|energy:pll|gradient:local|candidates:250|temperature:1|" +
				"samples:25|steps:50|warm-up:25|initial:model|rank:final|seed:7"},
	}
	for _, test := range tests {
		o := chainOptions()
		o.Seed = 7
		test.change(&o)
		want := test.want + "|fill:words|model:fake@0123456789ab|tokenizer:" + hash +
			"|onnxruntime:1.2.3|device:cpu|version:" + Version()
		if diff := cmp.Diff(want, fill(t, f, twoSlots, o).Signature); diff != "" {
			t.Error(diff)
		}
	}
}

// TestJSON pins the names of the fields: scripts depend on them.
func TestJSON(t *testing.T) {
	f, _ := newFake(t)
	text, err := json.Marshal(fill(t, f, twoSlots, chainOptions()))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	names := func(v any) (list []string) {
		for name := range v.(map[string]any) {
			list = append(list, name)
		}
		slices.Sort(list)
		return list
	}
	want := map[string][]string{
		"top": {"alone", "entropy", "fills", "format", "method", "model", "seed", "signature", "stats", "template",
			"warnings"},
		"model": {"name", "sha256"},
		"fill": {"count", "effective_draws", "final_count", "log_likelihood", "rank", "share", "share_error",
			"share_interval", "spans", "split_r_hat", "text", "token_ids", "tokens", "values"},
		"stats": {"chains", "device", "distinct_fills", "draws", "model_rows", "seconds", "slots"},
		"chains": {"acceptance_rate", "acceptance_standard_error", "candidates", "chains", "changed_slots_per_step",
			"effective_draws", "energy", "energy_evaluations", "gradient_evaluations", "mean_log_likelihood",
			"mean_log_likelihood_standard_error", "sampler", "split_r_hat", "step_size", "steps", "warm_up"},
		"value": {"probability", "text", "token_id"},
	}
	stats := object["stats"].(map[string]any)
	got := map[string][]string{"top": names(object), "model": names(object["model"]),
		"fill": names(object["fills"].([]any)[0]), "stats": names(stats), "chains": names(stats["chains"]),
		"value": names(object["alone"].([]any)[0].([]any)[0])}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestClosed(t *testing.T) {
	f, _ := newFake(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fill(t.Context(), chainOptions().request(twoSlots), nil); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}

// TestParallel: one filler serves several goroutines, and each gets what it would
// get alone.
func TestParallel(t *testing.T) {
	f, _ := newFake(t)
	o := chainOptions()
	templates := []string{twoSlots, "the [MASK] ran", "a [MASK] and a [MASK=x] or [MASK=x]"}
	want := make([]string, len(templates))
	for i, template := range templates {
		want[i] = withoutTime(t, fill(t, f, template, o))
	}
	var group sync.WaitGroup
	for round := range 12 {
		group.Go(func() {
			i := round % len(templates)
			result, err := f.Fill(t.Context(), o.request(templates[i]), func(Progress) {})
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(want[i], withoutTime(t, result)); diff != "" {
				t.Error(diff)
			}
		})
	}
	group.Wait()
}

// TestEnergies: an observer that wants U of every state gets it also of Gibbs,
// and the result is the same.
func TestEnergies(t *testing.T) {
	f, _ := newFake(t)
	for _, temperature := range []float64{1, 2} {
		chains := Chains{Sampler: samplers.Gibbs{}, Samples: 4, Steps: 6, WarmUp: 2,
			Temperature: temperature, Rank: RankFinal}
		want := map[bool][]Fill{}
		for _, wanted := range []bool{false, true} {
			chains.Energies = wanted
			plan, err := f.Plan(t.Context(), Request{Template: twoSlots, Seed: 1, Method: chains})
			if err != nil {
				t.Fatal(err)
			}
			var last []float64
			unknown := 0
			r, err := plan.Fill(t.Context(), func(p Progress) {
				last = p.LogLikelihoods
				for _, u := range last {
					if math.IsNaN(u) {
						unknown++
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if wanted != (unknown == 0) {
				t.Errorf("U wanted %v: %d are not known", wanted, unknown)
			}
			want[wanted] = r.Fills
			if !wanted {
				continue
			}
			slices.Sort(last)
			slices.Reverse(last)
			for i, fill := range r.Fills {
				if math.Abs(fill.LogLikelihood-last[i]) > 1e-9 {
					t.Errorf("fill %d has U %v, and its chain ended with %v", i+1, fill.LogLikelihood, last[i])
				}
			}
		}
		if diff := cmp.Diff(want[false], want[true]); diff != "" {
			t.Error(diff)
		}
	}
}
