package infill

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"infill/lm"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		change       func(*Options)
		option, want string
	}{
		{func(o *Options) { o.Sampler = "metropolis" }, "sampler", `"metropolis" is not one of auto, dmala, `},
		{func(o *Options) { o.Chains = -1 }, "samples", `"-1" is not`},
		{func(o *Options) { o.Chains = 1 << 20 }, "samples", `"1048576" is not`},
		{func(o *Options) { o.Top = 0 }, "top", `"0" is not`},
		{func(o *Options) { o.Steps = -1 }, "steps", `"-1" is not`},
		{func(o *Options) { o.WarmUp = 51 }, "warm-up", "51 is not a whole number from 0 to the number of steps, 50"},
		{func(o *Options) { o.WarmUp = -2 }, "warm-up", `"-2" is not`},
		{func(o *Options) { o.StepSize = -1 }, "step-size", `"-1" is not`},
		{func(o *Options) { o.StepSize = math.NaN() }, "step-size", `"NaN" is not`},
		{func(o *Options) { o.StepSize = math.Inf(1) }, "step-size", `"+Inf" is not`},
		{func(o *Options) { o.StepSize, o.Sampler = 1, "gibbs" }, "step-size", "gibbs has none"},
		{func(o *Options) { o.StepSize, o.Sampler = 1, "gwg" }, "step-size", "gwg has none"},
		{func(o *Options) { o.Balance = "0.4" }, "balance", `"0.4" is not one of auto, sqrt, `},
		{func(o *Options) { o.Balance, o.Sampler = "sqrt", "gibbs" }, "balance", "gibbs has none to choose"},
		{func(o *Options) { o.Candidates, o.Joint = -2, JointPLL }, "candidates", `"-2" is not`},
		{func(o *Options) { o.Joint = "mle" }, "joint", `"mle" is not one of chain, pll, ag, filled`},
		{func(o *Options) { o.Gradient = "none" }, "gradient", `"none" is not one of auto, local, full, stochastic`},
		{func(o *Options) { o.Gradient, o.Sampler = "full", "gibbs" }, "gradient", "gibbs uses none"},
		{func(o *Options) { o.Temperature = 0 }, "temperature", `"0" is not a number above 0`},
		{func(o *Options) { o.Temperature = math.NaN() }, "temperature", `"NaN" is not`},
		{func(o *Options) { o.Initial.Kind = "masks" }, "initial",
			`"masks" is not one of model, random, shared, mask, fill:WORD,...`},
		{func(o *Options) { o.Rank = "all" }, "rank", `"all" is not one of distinct, final`},
		{func(o *Options) { o.Mode = "guess" }, "mode", `"guess" is not one of sample, best, decode`},
		{func(o *Options) { o.Mode, o.WarmUp = ModeBest, 3 }, "warm-up", "best has none"},
		{func(o *Options) { o.Mode, o.Steps = ModeDecode, 0 }, "steps", "decode needs at least one"},
		{func(o *Options) { o.Mode, o.Ladder = ModeBest, []float64{1, 2} }, "ladder",
			"best draws from no distribution"},
		{func(o *Options) { o.Mode, o.Temperature = ModeBest, 2 }, "temperature", "best lowers it itself"},
		{func(o *Options) { o.Mode, o.Gradient = ModeBest, "stochastic" }, "gradient", "best needs the same gradient"},
		{func(o *Options) { o.Mode, o.Sampler = ModeDecode, "gibbs" }, "sampler", "decode uses none: leave it out"},
		{func(o *Options) { o.LengthScore = wordLeftToRight }, "length-score", "the chain rule needs no length score"},
		{func(o *Options) { o.Mode, o.StepSize = ModeDecode, 2 }, "step-size", "decode has none"},
		{func(o *Options) { o.Mode, o.Balance = ModeDecode, "sqrt" }, "balance", "decode has none"},
		{func(o *Options) { o.Mode, o.Gradient = ModeDecode, "full" }, "gradient", "decode uses none"},
		{func(o *Options) { o.Mode, o.Initial = ModeDecode, Start{Kind: startRandom} }, "initial",
			"decode always starts from slots that are all masked"},
		{func(o *Options) { o.Ladder = []float64{1} }, "ladder", "one temperature alone"},
		{func(o *Options) { o.Ladder = []float64{} }, "ladder", "one temperature alone"},
		{func(o *Options) { o.Ladder = []float64{1, math.NaN()} }, "ladder", "NaN is not a temperature"},
		{func(o *Options) { o.Ladder = []float64{1, 3, 2} }, "ladder", "2 after 3: temperatures must ascend"},
		{func(o *Options) { o.Ladder = []float64{2, 3} }, "ladder",
			"it begins with 2, and what is drawn from is temperature 1"},
		{func(o *Options) { o.Ladder, o.Sampler = []float64{1, 2}, "gibbs" }, "ladder",
			"replicas swap by their energies"},
		{func(o *Options) { o.Sampler, o.Ladder, o.Gradient = "dmala", []float64{1, 2}, lm.Stochastic }, "ladder",
			"replicas with stochastic gradients"},
	}
	for _, test := range tests {
		t.Run(test.option+" "+test.want, func(t *testing.T) {
			o := DefaultOptions()
			test.change(&o)
			err := o.Validate()
			var option *OptionError
			if !errors.As(err, &option) || option.Option != test.option ||
				!strings.HasPrefix(option.Reason, test.want) {
				t.Errorf("got %v, want %s: %s", err, test.option, test.want)
			}
		})
	}
}

// TestSamplers walks every sampler that fills text: one whose defaults on text do
// not fit its kernel could not run.
func TestSamplers(t *testing.T) {
	f, _ := newFake(t)
	names := Samplers()
	if names[0] != defaultSampler {
		t.Errorf("the sampler of chains that none is named for, %s, is not the first of %v", defaultSampler, names)
	}
	for _, name := range append(names, Auto) {
		o := DefaultOptions()
		o.Sampler = name
		if err := o.Validate(); err != nil {
			t.Error(err)
		}
		fill(t, f, twoSlots, o)
	}
}

func TestNewSeed(t *testing.T) {
	seen := map[uint64]bool{}
	for range 64 {
		seed, err := NewSeed()
		if err != nil {
			t.Fatal(err)
		}
		if seed > math.MaxUint32 {
			t.Errorf("seed %d has more than 32 bits", seed)
		}
		seen[seed] = true
	}
	// Two equal ones among 64 have probability 5e-7.
	if len(seen) < 63 {
		t.Errorf("%d different seeds among 64", len(seen))
	}
}

// TestTable: what an option writes, it reads again, and its values can be set.
func TestTable(t *testing.T) {
	texts := map[string]string{
		"sampler": "hamming-ball:radius=2", "slot": "1=red,dark blue 2=sky", "pos": "noun,verb 2=adverb",
		"ban": "red,dark blue", "characters": "-8", "pieces": "1-3", "samples": "3", "top": "4", "warm-up": "7",
		"step-size": "0.25", "balance": "0.75", "ladder": "1,2,4", "context": "A dog ran.",
		"initial": "fill:dark blue,sky", "seed": "18446744073709551615",
	}
	seen := map[string]bool{}
	for _, option := range Table() {
		if seen[option.Name] || option.Help == "" {
			t.Errorf("%s: twice, or its help is %q", option.Name, option.Help)
		}
		seen[option.Name] = true
		defaults := DefaultOptions()
		if option.fault(&defaults) != "" {
			t.Errorf("%s: the default is refused: %s", option.Name, option.fault(&defaults))
		}
		list := option.Values
		if text, ok := texts[option.Name]; ok {
			list = append(slices.Clone(list), text)
			delete(texts, option.Name)
		}
		for _, text := range list {
			o := DefaultOptions()
			if err := option.Set(&o, text); err != nil {
				t.Errorf("%s %s: %v", option.Name, text, err)
			}
			if got := option.Get(&o); got != text {
				t.Errorf("%s %s reads %s", option.Name, text, got)
			}
		}
		o := DefaultOptions()
		if err := option.Set(&o, "?"); err == nil &&
			!slices.Contains([]string{"ban", "context", "together"}, option.Name) {
			t.Errorf("%s takes ?", option.Name)
		}
	}
	if len(texts) > 0 {
		t.Errorf("no options: %v", texts)
	}
	o := DefaultOptions()
	o.Sampler = "gibbs"
	if why := Find("step-size").Unfit(&o); why != "gibbs has none: leave it out" {
		t.Errorf("a step size for gibbs: %q", why)
	}
}

// TestSigned: every option that changes the numbers is in the signature.
func TestSigned(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Constraints = Constraints{Words: map[int][]string{1: {"cat", "the cat"}}, Speech: map[int][]string{1: {"noun"}},
		Ban: []string{"rug"}, MinCharacters: 1, MaxCharacters: 9, MinPieces: 1, MaxPieces: 2}
	o.Ladder, o.Case, o.Window = []float64{1, 2}, caseKeep, 64
	o.Distinct, o.Together, o.Context = true, []string{twoSlots}, "the cat"
	signature := "|" + fill(t, f, twoSlots, o).Signature
	// Weighted draws have no chains, and chains have no error to reach; energy is joint.
	answers := DefaultOptions()
	proven := "|" + fill(t, f, twoSlots, answers).Signature
	if !strings.Contains(proven, "|budget:") || strings.Contains(proven, "|seed:") ||
		strings.Contains(proven, "|error:") || strings.Contains(proven, "|candidates:") {
		t.Errorf("a proof depends on its budget alone: %s", proven)
	}
	answers.Joint = JointPLL
	answered := "|" + fill(t, f, twoSlots, answers).Signature
	for _, option := range Table() {
		if option.Name == "energy" {
			continue
		}
		if option.Name == "error" || option.Name == "budget" {
			if !strings.Contains(answered, "|"+option.Name+":") {
				t.Errorf("%s is not in %s", option.Name, answered)
			}
			continue
		}
		key := map[string]string{"length-score": "lengths", "step-size": "alpha", "balance": "beta",
			"samples": "chains", "together": "texts"}[option.Name]
		if key == "" {
			key = option.Name
		}
		if in := strings.Contains(signature, "|"+key+":"); in == (option.Name == "top" || option.Name == "mode") {
			t.Errorf("%s: %t in %s", option.Name, in, signature)
		}
	}
}

// TestSamplerGrammar: a sampler's settings that are options of a fill become those,
// others stay with its name.
func TestSamplerGrammar(t *testing.T) {
	f, _ := newFake(t)
	tests := []struct{ text, err, signature string }{
		{text: "dmala:step-size=0.4,balance=sqrt,steps=6",
			signature: "sampler:dmala|alpha:0.4|beta:sqrt|joint:chain|order:both|gradient:local|candidates:250|" +
				"temperature:1|chains:25|steps:6|"},
		{text: "hamming-ball:radius=2,candidates=3",
			signature: "sampler:hamming-ball:radius=2|joint:chain|order:both|candidates:3|"},
		{text: "dmala:terms=1", signature: "sampler:dmala:terms=1|alpha:auto|"},
		{text: "mh", err: "one of auto, dmala, gibbs, "},
		{text: "gwg,dmala", err: "a sampler, as in dmala:step-size=0.4,balance=sqrt"},
		{text: "dmala:step-size=much",
			err: `a sampler with its settings: step-size: "much" is not a number above 0, or auto`},
		{text: "hamming-ball:radius=0",
			err: `a sampler with its settings: hamming-ball: radius "0" is not a whole number of 1 or more`},
		{text: "dmala:speed=3", err: "a sampler with its settings: dmala has no speed: "},
		{text: "dula-ordinal", err: "one of auto, dmala, gibbs, "},
	}
	for _, test := range tests {
		o := DefaultOptions()
		switch err := Find("sampler").Set(&o, test.text); {
		case test.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%s: got %v, want %q", test.text, err, test.err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.text, err)
		default:
			if got := fill(t, f, twoSlots, o).Signature; !strings.HasPrefix(got, test.signature) {
				t.Errorf("%s: signature %s", test.text, got)
			}
		}
	}
	o := DefaultOptions()
	if err := Find("sampler").Set(&o, "hamming-ball:radius=9"); err != nil {
		t.Fatal(err)
	}
	var option *OptionError
	if _, err := f.Fill(t.Context(), twoSlots, o, nil); !errors.As(err, &option) || !option.Misfit ||
		!strings.Contains(err.Error(), "sampler: radius 9: ") {
		t.Errorf("a radius beyond the slots: %v", err)
	}
}
