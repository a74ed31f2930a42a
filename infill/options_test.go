package infill

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"infill/samplers"
)

func TestValidate(t *testing.T) {
	chains := func(change func(c *Chains)) func(o *Options) {
		return func(o *Options) {
			c := DefaultChains("dmala")
			change(&c)
			o.Chains = &c
		}
	}
	tests := []struct {
		change       func(*Options)
		option, want string
	}{
		{chains(func(c *Chains) { c.Sampler = "metropolis" }), "sampler", `"metropolis" is not one of dmala, `},
		{func(o *Options) { o.Samples = -1 }, "samples", `"-1" is not`},
		{func(o *Options) { o.Samples = 1 << 20 }, "samples", `"1048576" is not`},
		{func(o *Options) { o.Top = 0 }, "top", `"0" is not`},
		{func(o *Options) { o.Top = 1 << 14 }, "top", "16384 are too many to prove"},
		{func(o *Options) { o.Order = "1,3" }, "order", `"1,3" is not`},
		{func(o *Options) { o.Budget = Budget{} }, "budget", `"0" is not`},
		{func(o *Options) { o.Fill = "all" }, "fill", `"all" is not one of words, tokens, any`},
		{func(o *Options) { o.Temperature = 2 }, "temperature", "it shapes draws and chains: add --samples"},
		{func(o *Options) { o.Rank = RankFinal }, "rank", "it says which draws are listed: add --samples"},
		{func(o *Options) { o.Samples, o.Temperature = 1, 0 }, "temperature", `"0" is not a number from 0.000001 to 1000000`},
		{func(o *Options) { o.Samples, o.Temperature = 1, math.NaN() }, "temperature", `"NaN" is not`},
		{func(o *Options) { o.Rank = "all" }, "rank", `"all" is not one of distinct, final`},
		{chains(func(c *Chains) { c.Steps = -1 }), "steps", `"-1" is not`},
		{chains(func(c *Chains) { c.WarmUp = 51 }), "warm-up",
			"51 is not a whole number from 0 to the number of steps, 50"},
		{chains(func(c *Chains) { c.WarmUp = -2 }), "warm-up", `"-2" is not`},
		{chains(func(c *Chains) { c.StepSize = -1 }), "step-size", `"-1" is not`},
		{chains(func(c *Chains) { c.StepSize = math.NaN() }), "step-size", `"NaN" is not`},
		{chains(func(c *Chains) { c.StepSize = math.Inf(1) }), "step-size", `"+Inf" is not`},
		{chains(func(c *Chains) { c.StepSize, c.Sampler = 1, "gibbs" }), "step-size", "gibbs has none"},
		{chains(func(c *Chains) { c.StepSize, c.Sampler = 1, "gwg" }), "step-size", "gwg has none"},
		{chains(func(c *Chains) { c.Balance = "0.4" }), "balance", `"0.4" is not one of auto, sqrt, `},
		{chains(func(c *Chains) { c.Balance, c.Sampler = "sqrt", "gibbs" }), "balance", "gibbs has none to choose"},
		{chains(func(c *Chains) { c.Candidates = -2 }), "candidates", `"-2" is not`},
		{chains(func(c *Chains) { c.Energy = "mle" }), "energy", `"mle" is not one of pll, filled`},
		{chains(func(c *Chains) { c.Gradient = "none" }), "gradient",
			`"none" is not one of auto, local, full`},
		{chains(func(c *Chains) { c.Gradient, c.Sampler = "full", "gibbs" }), "gradient", "gibbs uses none"},
		{func(o *Options) { chains(func(*Chains) {})(o); o.Order = "r2l" }, "order", "it is the chain rule's"},
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

// TestAskedFor: the options choose the method. An option of chains without a sampler is refused, the value of its
// default too, and with a sampler the order in which both are given is all the same.
func TestAskedFor(t *testing.T) {
	f, _ := newFake(t)
	set := func(assignments ...string) (Options, error) {
		o := DefaultOptions()
		for _, a := range assignments {
			name, value, _ := strings.Cut(a, "=")
			if err := Find(name).Set(&o, value); err != nil {
				return o, err
			}
		}
		return o, o.Validate()
	}
	for _, row := range Table() {
		if !row.Chains || row.Name == "sampler" {
			continue
		}
		defaults := DefaultOptions()
		text := row.Get(&defaults)
		if _, err := set(row.Name + "=" + text); err == nil || !strings.HasPrefix(err.Error(), row.Name+": ") ||
			!strings.Contains(err.Error(), "name one with --sampler, as in --sampler dmala") {
			t.Errorf("%s %s without a sampler: %v", row.Name, text, err)
		}
		one, err := set(row.Name+"="+text, "sampler=dmala")
		two, err2 := set("sampler=dmala", row.Name+"="+text)
		three, err3 := set("sampler=dmala")
		if errors.Join(err, err2, err3) != nil || fill(t, f, twoSlots, one).Signature != fill(t, f, twoSlots,
			two).Signature ||
			fill(t, f, twoSlots, two).Signature != fill(t, f, twoSlots, three).Signature {
			t.Errorf("%s: the default that is given is another than the one that is not", row.Name)
		}
	}
	for want, assignments := range map[string][]string{MethodSearch: {"budget=4000", "top=5", "order=l2r",
		"samples=auto"},
		MethodDraws: {"samples=2", "temperature=1"}, "gibbs": {"sampler=gibbs", "samples=2"}} {
		o, err := set(assignments...)
		if err != nil {
			t.Error(err)
		} else if r := fill(t, f, twoSlots, o); r.Method != want {
			t.Errorf("%v are answered by %s", assignments, r.Method)
		}
	}
}

// TestSamplers walks every sampler that fills text: one whose defaults on text do
// not fit its kernel could not run.
func TestSamplers(t *testing.T) {
	f, _ := newFake(t)
	for _, name := range Samplers() {
		o := chainOptions()
		o.Chains.Sampler = name
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

// TestTable: an option reads the text that it writes, and its values can be set.
func TestTable(t *testing.T) {
	texts := map[string]string{
		"sampler": "hamming-ball:radius=2", "slot": `1=red,dark blue,"Troy, Ohio" 2=sky`, "pos": "noun,verb 2=adverb",
		"ban": "red,dark blue", "samples": "3", "top": "4", "warm-up": "7", "step-size": "0.25", "balance": "0.75",
		"context": "A dog ran.", "blank": "{}", "initial": "fill:dark blue,sky", "seed": "18446744073709551615",
	}
	seen := map[string]bool{}
	for _, option := range Table() {
		if seen[option.Name] || option.Help == "" {
			t.Errorf("%s: twice, or its help is %q", option.Name, option.Help)
		}
		seen[option.Name] = true
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
			!slices.Contains([]string{"ban", "context", "blank", "slot", "pos"}, option.Name) {
			t.Errorf("%s takes ?", option.Name)
		}
	}
	if len(texts) > 0 {
		t.Errorf("no options: %v", texts)
	}
	// Chains stand for their own fields, of which the settings belong to the sampler.
	fields := reflect.TypeFor[Options]().NumField() - 1
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Chains]()) {
		if f.IsExported() && f.Name != "Settings" {
			fields++
		}
	}
	if len(seen) != fields {
		t.Errorf("%d rows for %d fields", len(seen), fields)
	}
	before := DefaultOptions()
	o := before
	if err := Find("steps").Set(&o, "3"); err != nil || before.Chains != nil {
		t.Errorf("a value reaches into other options: %v", err)
	}
}

// TestSigned: every option that changes the numbers is in the signature.
func TestSigned(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Slots, o.Speech, o.Ban = Lists{1: {"cat", "dog"}}, Lists{1: {"noun"}}, []string{"rug"}
	o.Case, o.Distinct, o.Context = caseKeep, true, "the cat"
	proven := "|" + fill(t, f, twoSlots, o).Signature
	o.Samples = 3
	drawn := "|" + fill(t, f, twoSlots, o).Signature
	c := DefaultChains("dmala")
	c.StepSize = 0.5
	o.Chains = &c
	moved := "|" + fill(t, f, twoSlots, o).Signature
	for _, option := range Table() {
		if slices.Contains([]string{"top", "blank"}, option.Name) {
			continue
		}
		key := "|" + option.Name + ":"
		draws := slices.Contains([]string{"samples", "temperature", "rank", "seed"}, option.Name)
		law := slices.Contains([]string{"order", "budget"}, option.Name)
		for name, signature := range map[string]string{"search": proven, "draws": drawn, "chains": moved} {
			want := !option.Chains && !draws && !law || draws && name != "search" || law && name != "chains" ||
				option.Chains && name == "chains"
			if strings.Contains(signature, key) != want {
				t.Errorf("%s, %s: want it %t in %s", name, option.Name, want, signature)
			}
		}
	}
}

// TestSamplerGrammar: a sampler's settings that are options of a fill become those,
// others stay with its name.
func TestSamplerGrammar(t *testing.T) {
	f, _ := newFake(t)
	tests := []struct{ text, err, signature string }{
		{text: "dmala:step-size=0.4,balance=sqrt,steps=6",
			signature: "sampler:dmala|step-size:0.4|balance:sqrt|energy:pll|gradient:local|candidates:250|" +
				"temperature:1|samples:25|steps:6|"},
		{text: "hamming-ball:radius=2,candidates=3",
			signature: "sampler:hamming-ball:radius=2|energy:pll|candidates:3|"},
		{text: "dmala:balance=ratio,temperature=2", signature: "sampler:dmala|balance:ratio|energy:pll|"},
		{text: "mh", err: "one of dmala, gibbs, "},
		{text: "auto", err: "one of dmala, gibbs, "},
		{text: "gwg,dmala", err: "a sampler, as in dmala:step-size=0.4,balance=sqrt"},
		{text: "dmala:step-size=much",
			err: `a sampler with its settings: step-size: "much" is not a number above 0, or auto`},
		{text: "hamming-ball:radius=0",
			err: `a sampler with its settings: hamming-ball: radius "0" is not a whole number of 1 or more`},
		{text: "dmala:speed=3", err: "a sampler with its settings: dmala has no speed: "},
		{text: "dula-ordinal", err: "one of dmala, gibbs, "},
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
	if err := o.Take(samplers.Spec{Name: "hamming-ball", Settings: []samplers.Assignment{{Setting: "radius",
		Value: "9"}}}); err != nil {
		t.Fatal(err)
	}
	var option *OptionError
	if _, err := f.Fill(t.Context(), twoSlots, o, nil); !errors.As(err, &option) || !option.Misfit ||
		!strings.Contains(err.Error(), "sampler: radius 9: ") {
		t.Errorf("a radius beyond the slots: %v", err)
	}
}
