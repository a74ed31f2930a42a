package infill

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// likeliest is the fill of highest energy of two neighbouring slots, of all.
func likeliest(f *Filler, model *fakeModel) (best float64) {
	target := &fakeTarget{model: model}
	best = math.Inf(-1)
	for _, a := range f.fillable {
		for _, b := range f.fillable {
			best = math.Max(best, target.energyOf([]int{a, b}))
		}
	}
	return best
}

// TestBest: annealing with any sampler finds the likeliest of all fills, keeps
// the best state of each chain, and claims no frequencies.
func TestBest(t *testing.T) {
	for _, sampler := range Samplers() {
		for _, rank := range []Rank{rankDistinct, RankFinal} {
			t.Run(sampler+" "+string(rank), func(t *testing.T) {
				f, model := newFake(t)
				target := &fakeTarget{model: model}
				o := chainOptions()
				o.Mode, o.Sampler, o.Rank, o.Steps, o.Candidates, o.Seed = ModeBest, sampler, rank, 100, 0, 2
				bests := slices.Repeat([]float64{math.Inf(-1)}, o.Chains)
				steps := 0
				result, err := f.Fill(t.Context(), twoSlots, o, func(p Progress) {
					steps++
					for c := range bests {
						u := target.energyOf(p.TokenIDs[2*c : 2*c+2])
						bests[c] = math.Max(bests[c], u)
						// Gibbs knows no energies, but annealing evaluates them.
						if math.Abs(p.LogLikelihoods[c]-u) > 1e-9 {
							t.Fatalf("step %d: U reported as %v, is %v", p.Step, p.LogLikelihoods[c], u)
						}
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				if steps != 100 {
					t.Errorf("%d steps were reported, want 100", steps)
				}
				if got, want := result.Fills[0].LogLikelihood, likeliest(f, model); math.Abs(got-want) > 1e-9 {
					t.Errorf("found %v, the likeliest has %v", got, want)
				}
				if s := result.Stats; s.Law != noLaw || s.Mode != ModeBest || s.WarmUp.Steps != 0 ||
					s.Sampler != sampler {
					t.Errorf("stats: %+v", s)
				}
				for _, s := range result.Fills {
					if u := target.energyOf(s.TokenIDs); math.Abs(s.LogLikelihood-u) > 1e-9 {
						t.Errorf("%v: U %v, want %v", s.Values, s.LogLikelihood, u)
					}
					if s.FrequencyStandardError != nil {
						t.Errorf("%v has the standard error of a frequency", s.Values)
					}
				}
				text, err := json.Marshal(result)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), `"frequency":`) ||
					!strings.Contains(string(text), `"law":"none known"`) {
					t.Errorf("the result gives frequencies, or no word on the law: %s", text)
				}
				if rank == "final" {
					// The best of each chain; its start, which is not observed, may be that.
					slices.SortFunc(bests, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
					for i, s := range result.Fills {
						if s.LogLikelihood < bests[i]-1e-9 {
							t.Errorf("rank %d has %v, a chain saw %v", s.Rank, s.LogLikelihood, bests[i])
						}
					}
				}
			})
		}
	}
}

// TestDecode: the first chain is mask-predict as a second writing of it has it,
// for two slots: both predicted, the less sure one again.
func TestDecode(t *testing.T) {
	f, model := newFake(t)
	model.bond = 3
	target := &fakeTarget{model: model}
	marginal := [2]map[int]float64{{}, {}}
	total := 0.0
	for _, a := range f.fillable {
		for _, b := range f.fillable {
			p := math.Exp(target.energyOf([]int{a, b}))
			marginal[0][a] += p
			marginal[1][b] += p
			total += p
		}
	}
	var greedy []int
	var sure [2]float64
	for slot, m := range marginal {
		best := f.fillable[0]
		for _, id := range f.fillable {
			if m[id] > m[best] {
				best = id
			}
		}
		greedy, sure[slot] = append(greedy, best), m[best]/total
	}
	again := 0
	if sure[1] < sure[0] {
		again = 1
	}
	best := math.Inf(-1)
	for _, id := range f.fillable {
		pair := slices.Clone(greedy)
		pair[again] = id
		if u := target.energyOf(pair); u > best {
			best = u
			greedy = pair
		}
	}

	o := chainOptions()
	o.Fill = FillAny
	o.Mode, o.Sampler, o.Candidates, o.Top, o.Seed = ModeDecode, Auto, 0, 1000, 4
	reports := 0
	result, err := f.Fill(t.Context(), twoSlots, o, func(p Progress) {
		reports++
		if !slices.Equal(p.TokenIDs[:2], greedy) {
			t.Errorf("the first chain decodes %v, want %v", p.TokenIDs[:2], greedy)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if reports != 1 {
		t.Errorf("%d reports, want that of the end", reports)
	}
	s := result.Stats
	if s.Law != noLaw || s.Sampler != "mask-predict" || s.Steps != 2 || s.Draws != 25 || s.AcceptanceRate != nil ||
		s.StepSize != nil {
		t.Errorf("stats: %+v", s)
	}
	if s.DistinctFills < 2 {
		t.Error("the other chains do not draw")
	}
	for _, sample := range result.Fills {
		if u := target.energyOf(sample.TokenIDs); math.Abs(u-sample.LogLikelihood) > 1e-9 {
			t.Errorf("%v: U %v, want %v", sample.Values, sample.LogLikelihood, u)
		}
	}
	if !strings.HasPrefix(result.Signature, "mode:decode|rounds:2|joint:pll|") {
		t.Errorf("signature %s", result.Signature)
	}
	o.Steps, o.Chains = 1, 1
	if s := fill(t, f, twoSlots, o).Stats; s.Steps != 1 || s.Draws != 1 {
		t.Errorf("one round of one chain: %+v", s)
	}
}

// TestLadder: under parallel tempering the chains that are drawn from keep the
// law of their temperature, whatever the kernel, in every form there is.
func TestLadder(t *testing.T) {
	for _, sampler := range Samplers() {
		if sampler == "gibbs" {
			continue // knows no energies, see TestValidate
		}
		t.Run(sampler, func(t *testing.T) {
			f, model := newFake(t)
			o := chainOptions()
			o.Fill = FillAny
			o.Sampler, o.Ladder, o.Chains, o.Steps, o.Seed = sampler, []float64{1, 2, 5}, followed(100), 400, 3
			if sampler == "dula" {
				// Not exact: its law is its own, so it only has to run.
				o.Steps = 10
				fill(t, f, twoSlots, o)
				return
			}
			result := checkLaw(t, f, model, twoSlots, 2, o, func([]string) bool { return true })
			s := result.Stats
			if len(s.Ladder) != 3 || len(s.SwapRates) != 2 || !(s.SwapRates[0] > 0 && s.SwapRates[0] <= 1) {
				t.Errorf("ladder %v, swap rates %v", s.Ladder, s.SwapRates)
			}
			if !strings.Contains(result.Signature, "|temperature:1|ladder:1,2,5|") {
				t.Errorf("signature %s", result.Signature)
			}
			if o.has("step-size") && s.StepSize == nil {
				t.Error("no step size is told")
			}
		})
	}
	t.Run("at 2, of words", func(t *testing.T) {
		f, model := newFake(t)
		o := chainOptions()
		o.Fill = FillAny
		o.Ladder, o.Temperature, o.Chains, o.Steps, o.Seed = []float64{2, 4}, 2, followed(100), 400, 3
		o.Constraints = Constraints{Words: map[int][]string{1: {"unseen", "the cat", "mat rug"}}}
		checkLaw(t, f, model, "a [MASK] [MASK]", 3, o, func(w []string) bool {
			return slices.Contains([]string{"un##seen", "thecat", "matrug"}, w[0]+w[1])
		})
	})
}

// TestMaskedStart: the fake's conditionals are those of its energy, so slots that
// are drawn one by one from masks have its law already, in any order.
func TestMaskedStart(t *testing.T) {
	f, model := newFake(t)
	o := chainOptions()
	o.Fill = FillAny
	o.Initial.Kind, o.Steps, o.Chains, o.Seed = StartMask, 0, followed(20000), 6
	checkLaw(t, f, model, twoSlots, 2, o, func([]string) bool { return true })
	// Drawn independently they have not.
	o.Initial.Kind = startModel
	o.Top, o.Candidates = 1000, 0
	mean := fill(t, f, twoSlots, o).Stats.MeanLogLikelihood
	o.Initial.Kind = StartMask
	if m := fill(t, f, twoSlots, o).Stats.MeanLogLikelihood; m < mean+0.1 {
		t.Errorf("mean U %v from masks, %v from independent draws: the slots do not see each other", m, mean)
	}
}

func TestGivenStart(t *testing.T) {
	f, _ := newFake(t)
	tests := []struct {
		template, initial string
		change            func(*Options)
		want              []string // tokens
		err               string
	}{
		{template: twoSlots, initial: "fill:Cat,mat", want: []string{"cat", "mat"}},
		{template: "the [MASK:2] and [MASK]", initial: "fill:unseen,dog", want: []string{"un", "##seen", "dog"}},
		{template: "un[MASK] and [MASK]", initial: "fill:known,dog", want: []string{"##known", "dog"}},
		{template: "the [MASK=x] and [MASK=x]", initial: "fill:cat,cat", want: []string{"cat", "cat"}},
		{template: "the [MASK:2]", initial: "fill:the cat",
			change: func(o *Options) { o.Constraints = Constraints{Words: map[int][]string{1: {"the cat", "unseen"}}} },
			want:   []string{"the", "cat"}},
		{template: twoSlots, initial: "fill:cat", err: "initial: 1 fills given, the template has 2 blanks"},
		{template: twoSlots, initial: "fill:cat,", err: `initial: blank 2 cannot take "": no text`},
		{template: twoSlots, initial: "fill:cat,unseen", err: `initial: "unseen" has 2 pieces, blank 2 has 1`},
		{template: twoSlots, initial: "fill:cat,mat", change: func(o *Options) { o.Candidates = 1 },
			err: `is not among the 1 candidates of its blank: raise candidates`},
		{template: "the [MASK=x] and [MASK=x]", initial: "fill:cat,dog", err: `is not among`},
		{template: "the [MASK:1-2]", initial: "fill:cat",
			err: "initial: a given fill has one length, and the template several: name one"},
		{template: "un[MASK]", initial: "fill:cat",
			err: "initial: blank 1 cannot take \"cat\": the vocabulary has no pieces that continue a word with it"},
		{template: "the [MASK:2]", initial: "fill:unseen",
			change: func(o *Options) { o.Constraints = Constraints{MaxCharacters: 5} },
			err:    `initial: the constraints forbid "unseen"`},
		{template: "the [MASK:2]", initial: "fill:the cat",
			change: func(o *Options) { o.Constraints = Constraints{MaxCharacters: 5} },
			err:    `initial: the constraints forbid "the cat"`},
	}
	for _, test := range tests {
		t.Run(test.template+" "+test.initial, func(t *testing.T) {
			o := chainOptions()
			o.Chains, o.Steps, o.Candidates = 3, 2, 0
			if err := Find("initial").Set(&o, test.initial); err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(&o)
			}
			_, err := f.Fill(t.Context(), test.template, o, func(p Progress) {
				if p.Step > 0 {
					return
				}
				for i, id := range p.TokenIDs {
					if got, want := f.tokenizer.Token(id), test.want[i%len(test.want)]; got != want {
						t.Errorf("slot %d starts at %s, want %s", i%len(test.want)+1, got, want)
					}
				}
			})
			var option *OptionError
			switch {
			case test.err == "" && err != nil:
				t.Error(err)
			case test.err != "" &&
				(!errors.As(err, &option) || !option.Misfit || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}
