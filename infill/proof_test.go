package infill

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func openMini(t *testing.T) *Filler {
	t.Helper()
	f, err := Open(OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestProofByBruteForce goes through all words of two blanks of a fake vocabulary: the fills
// found are the likeliest, whatever the order, the temperature and the constraints.
func TestProofByBruteForce(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"both": func(*Options) {}, "l2r": func(o *Options) { o.Order = orderLeftToRight },
		"2,1":         func(o *Options) { o.Order = "2,1" },
		"temperature": func(o *Options) { o.Temperature = 2 }, "any": func(o *Options) { o.Fill = FillAny },
		"ban":      func(o *Options) { o.Ban = []string{"cat"} },
		"distinct": func(o *Options) { o.Distinct = true }, "characters": func(o *Options) { o.MinCharacters = 3 },
		"best": func(o *Options) { o.Mode = ModeBest },
	} {
		f, model := newFake(t)
		model.bond = 1.5
		o := DefaultOptions()
		o.Top = 7
		change(&o)
		r := fill(t, f, twoSlots, o)
		plan, err := f.Plan(Request{Template: twoSlots, Options: o})
		if err != nil {
			t.Fatal(err)
		}
		plans := plan.layouts
		var rows int64
		text, err := f.newLaw(t.Context(), model, plans[0], o.Temperature, &rows)
		if err != nil {
			t.Fatal(err)
		}
		law, err := text.law(o.Order, 0)
		if err != nil {
			t.Fatal(err)
		}
		var states [][]int
		for _, a := range plans[0].variables[0].support {
			for _, b := range plans[0].variables[1].support {
				if state := []int{a, b}; text.allows(state) {
					states = append(states, state)
				}
			}
		}
		logp, err := law.LogProbability(t.Context(), states)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(logp)
		slices.Reverse(logp)
		if !*r.Proven || r.Method != MethodSearch || len(r.Fills) != min(7, len(logp)) {
			t.Fatalf("%s: proven %v, %d fills", name, *r.Proven, len(r.Fills))
		}
		for i, fill := range r.Fills {
			if math.Abs(*fill.Probability/math.Exp(logp[i])-1) > 1e-9 || math.Abs(fill.LogLikelihood-logp[i]) > 1e-9 {
				t.Errorf("%s: fill %d has %v, log-likelihood %v, want %v", name, i+1, *fill.Probability,
					fill.LogLikelihood, logp[i])
			}
		}
		if len(logp) > 7 && math.Abs(*r.LeftOutAtMost-math.Exp(logp[7])) > 1e-9 &&
			*r.LeftOutAtMost < math.Exp(logp[7]) {
			t.Errorf("%s: left out at most %v, the eighth has %v", name, *r.LeftOutAtMost, math.Exp(logp[7]))
		}
	}
}

// TestMarginals: a value of a blank has what the listed fills hold of it at least, and what
// all fills hold of it lies within the bounds.
func TestMarginals(t *testing.T) {
	f, model := newFake(t)
	model.bond = 1.5
	o := DefaultOptions()
	o.Fill = FillAny
	few := fill(t, f, twoSlots, o)
	o.Top = 1000
	all := fill(t, f, twoSlots, o)
	for blank, values := range few.Marginals {
		listed := map[string]float64{}
		for _, fill := range few.Fills {
			listed[fill.Values[blank]] += *fill.Probability
		}
		for _, v := range values {
			sum := 0.0
			for _, fill := range all.Fills {
				if fill.TokenIDs[blank] == v.TokenIDs[0] {
					sum += *fill.Probability
				}
			}
			if v.Probability < listed[v.Text]-1e-9 || sum > *v.AtMost+1e-6 || v.Probability > *v.AtMost {
				t.Errorf("blank %d, %q: %v to %v, listed fills hold %v, all %v", blank+1, v.Text, v.Probability,
					*v.AtMost, listed[v.Text], sum)
			}
		}
	}
}

// TestLists: probabilities are among what is listed, exactly where few fills are, and by
// draws with their error where one blank has no list.
func TestLists(t *testing.T) {
	f := openMini(t)
	o := DefaultOptions()
	o.Words = map[int][]string{1: {"door", "window"}, 2: {"bed", "sleep"}}
	r, err := f.Fill(t.Context(), "She closed the [MASK] and went to [MASK].", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, fill := range r.Fills {
		sum += *fill.Probability
	}
	if len(r.Fills) != 4 || math.Abs(sum-1) > 1e-9 || *r.LeftOutAtMost != 0 || r.Seed != nil {
		t.Errorf("%d fills hold %v, left out at most %v, seed %v", len(r.Fills), sum, *r.LeftOutAtMost, r.Seed)
	}
	o.Chains, o.Seed = 1000, 5
	drawn := fill(t, f, "She closed the [MASK] and went to [MASK].", o)
	for _, d := range drawn.Fills {
		at := slices.IndexFunc(r.Fills, func(f Fill) bool { return f.Text == d.Text })
		p := *d.Probability
		if at < 0 || p != *r.Fills[at].Probability || *d.ProbabilityError != 0 ||
			math.Abs(float64(d.Count)-1000*p) > 5*math.Sqrt(1000*p*(1-p)) {
			t.Errorf("%s was drawn %d times of 1000: %v ± %v", d.Text, d.Count, p, *d.ProbabilityError)
		}
	}
	o.Words = map[int][]string{1: {"door"}}
	o.Chains = DefaultOptions().Chains
	if r := fill(t, f, "She closed the [MASK] and went to [MASK].", o); r.Marginals[0][0].Probability != 1 ||
		len(r.Marginals[0]) != 1 || !strings.Contains(r.Signature, "|seed:5|") {
		t.Errorf("a list of one word: %v, %s", r.Marginals[0], r.Signature)
	}
	o.Words[1] = []string{"door", "window"}
	o.Top, o.Seed = 3, 5
	part, err := f.Fill(t.Context(), "She closed the [MASK] and went to [MASK].", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	free := DefaultOptions()
	free.Top = 200
	all, err := f.Fill(t.Context(), "She closed the [MASK] and went to [MASK].", free, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fill := range part.Fills {
		if *fill.Probability <= math.Exp(fill.LogLikelihood) || !(*fill.ProbabilityError > 0) || part.Seed == nil {
			t.Errorf("%s: %v ± %v of a list, %v of all", fill.Text, *fill.Probability, *fill.ProbabilityError,
				math.Exp(fill.LogLikelihood))
		}
	}
	for blank, values := range part.Marginals {
		sum := 0.0
		for _, v := range values {
			sum += v.Probability
		}
		if sum > 1.05 || blank == 0 && len(values) != 2 {
			t.Errorf("blank %d: %d values hold %v", blank+1, len(values), sum)
		}
	}
	held := 0.0 // by the listed words, from below
	for _, fill := range all.Fills {
		if slices.Contains([]string{"door", "window"}, fill.Values[0]) {
			held += *fill.Probability
		}
	}
	share := math.Exp(part.Fills[0].LogLikelihood) / *part.Fills[0].Probability
	e := *part.Fills[0].ProbabilityError / *part.Fills[0].Probability
	if share*(1+4*e) < held || share > 1 {
		t.Errorf("the list holds %v ± %v, and its fills %v already", share, share*e, held)
	}
}

// TestLongWords: a blank by itself takes words of several pieces, weighed by their prior.
func TestLongWords(t *testing.T) {
	f := openMini(t)
	const before, after = "It was quite ", " that he came."
	o := DefaultOptions()
	o.MinCharacters, o.Top = 12, 20
	r, err := f.Fill(t.Context(), before+"[MASK]"+after, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !*r.Proven || !strings.Contains(r.Signature, "|pieces:word:1-3|") {
		t.Fatalf("proven %v, %s", *r.Proven, r.Signature)
	}
	long := 0
	for _, fill := range r.Fills {
		n := len(fill.TokenIDs)
		if !slices.Equal(fill.Pieces, []int{n}) {
			t.Errorf("%q of %d tokens has pieces %v", fill.Text, n, fill.Pieces)
		}
		if n > 1 {
			long++
			continue
		}
		if want := math.Exp(fill.LogLikelihood); math.Abs(*fill.Probability/want-1) > 1e-9 {
			t.Errorf("%s: probability %v, want %v", fill.Text, *fill.Probability, want)
		}
	}
	if long == 0 {
		t.Error("no word of several pieces")
	}
	f.model.Lexicon = noWords
	if r, err = f.Fill(t.Context(), before+"[MASK]"+after, o, nil); err != nil ||
		!strings.Contains(r.Signature, "|lexicon:none|") {
		t.Fatalf("%v, %s", err, r.Signature)
	}
	for _, fill := range r.Fills {
		n := len(fill.TokenIDs)
		u, err := f.LogLikelihoods(t.Context(), before+"[MASK:"+string(rune('0'+n))+"]"+after, DefaultOptions(),
			[][]int{fill.TokenIDs})
		if want := math.Exp(u[0] + newPieceWeights(usualWeights, 1).log(n)); err != nil ||
			math.Abs(*fill.Probability/want-1) > 1e-4 {
			t.Errorf("%s: probability %v, of its pieces %v, %v", fill.Text, *fill.Probability, want, err)
		}
	}
	for name, change := range map[string]func(*Options){
		"pieces": func(o *Options) { o.MinPieces, o.MaxPieces = 1, 1 }, "pll": func(o *Options) { o.Joint = JointPLL },
		"any":  func(o *Options) { o.Fill = FillAny },
		"list": func(o *Options) { o.Words, o.MinCharacters = map[int][]string{1: {"likely", "strange"}}, 0 },
	} {
		o := o
		change(&o)
		if r, err := f.Fill(t.Context(), before+"[MASK]"+after, o, nil); err != nil || r.Fills[0].Pieces != nil {
			t.Errorf("%s: pieces %v, %v", name, r.Fills[0].Pieces, err)
		}
	}
}

// TestDraws: independent draws follow the law, given what the blanks may take.
func TestDraws(t *testing.T) {
	f, model := newFake(t)
	model.bond = 1.5
	o := DefaultOptions()
	o.Top = 1000
	all := fill(t, f, twoSlots, o)
	held := 0.0
	for _, fill := range all.Fills {
		held += *fill.Probability
	}
	o.Chains, o.Seed = 4000, 3
	drawn := fill(t, f, twoSlots, o)
	if drawn.Method != MethodDraws || drawn.Stats.Draws != 4000 || *drawn.Seed != 3 {
		t.Fatalf("method %s, %d draws", drawn.Method, drawn.Stats.Draws)
	}
	counts := map[string]int{}
	for _, fill := range drawn.Fills {
		counts[fill.Text] = fill.Count
	}
	squares, cells := 0.0, 0
	for _, fill := range all.Fills {
		if want := 4000 * *fill.Probability / held; want > 5 {
			squares += (float64(counts[fill.Text]) - want) * (float64(counts[fill.Text]) - want) / want
			cells++
		}
	}
	// Six standard deviations of χ².
	if cells < 10 || squares > float64(cells)+6*math.Sqrt(2*float64(cells)) {
		t.Errorf("χ² %v of %d fills", squares, cells)
	}
	if other := fill(t, f, twoSlots, o); withoutTime(t, other) != withoutTime(t, drawn) {
		t.Error("the same seed gives other draws")
	}
	o.Rank, o.Chains, o.Top = RankFinal, 12, 5
	if r := fill(t, f, twoSlots, o); len(r.Fills) != 5 || r.Fills[0].Count != 1 {
		t.Errorf("%d draws, one counted %d times", len(r.Fills), r.Fills[0].Count)
	}
}
