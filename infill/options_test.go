package infill

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	chains := func(change func(c *askedChains)) func(o *asked) {
		return func(o *asked) {
			c := newAskedChains("dmala")
			change(&c)
			o.Chains = &c
		}
	}
	tests := []struct {
		change       func(*asked)
		option, want string
	}{
		{chains(func(c *askedChains) { c.Sampler = "r-mala" }), "sampler",
			`"r-mala" is not a sampler with its settings: r-mala is not for text`},
		{func(o *asked) { o.Samples = -1 }, "samples", `"-1" is not`},
		{func(o *asked) { o.Samples = 1 << 20 }, "samples", `"1048576" is not`},
		{func(o *asked) { o.Top = -1 }, "top", `"-1" is not`},
		{func(o *asked) { o.Top = 1 << 14 }, "top", "16384 are too many to prove"},
		{func(o *asked) { o.Order = "1,3" }, "order", `"1,3" is not`},
		{func(o *asked) { o.Budget = Budget{Rows: -3} }, "budget", `"-3" is not`},
		{func(o *asked) { o.Fill = "all" }, "fill", `"all" is not one of words, tokens, any`},
		{func(o *asked) { o.Samples, o.Temperature = 1, -1 }, "temperature",
			`"-1" is not a number from 0.000001 to 1000000`},
		{func(o *asked) { o.Samples, o.Temperature = 1, math.NaN() }, "temperature", `"NaN" is not`},
		{func(o *asked) { o.Samples, o.Rank = 1, "all" }, "rank", `"all" is not one of distinct, final`},
		{chains(func(c *askedChains) { c.Steps = -2 }), "steps", `"-2" is not`},
		{chains(func(c *askedChains) { c.WarmUp = 51 }), "warm-up",
			"51 is not a whole number from 0 to the number of steps, 50"},
		{chains(func(c *askedChains) { c.WarmUp = -3 }), "warm-up", `"-3" is not`},
		{chains(func(c *askedChains) { c.StepSize = -1 }), "step-size", `"-1" is not`},
		{chains(func(c *askedChains) { c.StepSize = math.NaN() }), "step-size", `"NaN" is not`},
		{chains(func(c *askedChains) { c.StepSize = math.Inf(1) }), "step-size", `"+Inf" is not`},
		{chains(func(c *askedChains) { c.StepSize, c.Sampler = 1, "gibbs" }), "step-size", "gibbs has none"},
		{chains(func(c *askedChains) { c.StepSize, c.Sampler = 1, "gwg" }), "step-size", "gwg has none"},
		{chains(func(c *askedChains) { c.Balance = "0.4" }), "balance", `"0.4" is not one of auto, sqrt, `},
		{chains(func(c *askedChains) { c.Balance, c.Sampler = "sqrt", "gibbs" }), "balance",
			"gibbs has none to choose"},
		{chains(func(c *askedChains) { c.Candidates = -2 }), "candidates", `"-2" is not`},
		{chains(func(c *askedChains) { c.Energy = "mle" }), "energy", `"mle" is not one of pll, filled`},
		{chains(func(c *askedChains) { c.Gradient = "none" }), "gradient",
			`"none" is not one of auto, local, full`},
		{chains(func(c *askedChains) { c.Gradient, c.Sampler = "full", "gibbs" }), "gradient", "gibbs uses none"},
	}
	for _, test := range tests {
		t.Run(test.option+" "+test.want, func(t *testing.T) {
			o := asked{}
			test.change(&o)
			err := o.request("").Check()
			var option *OptionError
			if !errors.As(err, &option) || option.Option != test.option ||
				!strings.HasPrefix(option.Reason, test.want) {
				t.Errorf("got %v, want %s: %s", err, test.option, test.want)
			}
		})
	}
}

// TestZeroMethods: of the methods, only a search needs no option.
func TestZeroMethods(t *testing.T) {
	for _, test := range []struct {
		method Method
		want   string
	}{
		{Search{}, ""},
		{Draws{}, "samples: draws need a number of them"},
		{Chains{}, "sampler: chains need one: name one, such as dmala"},
	} {
		err := Request{Method: test.method}.Check()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%T{}: got %v, want %q", test.method, err, test.want)
		}
	}
}

// TestSamplers walks every sampler that fills text: one whose defaults on text do
// not fit its kernel could not run.
func TestSamplers(t *testing.T) {
	f, _ := newFake(t)
	for _, name := range textSamplers() {
		o := chainOptions()
		o.Chains.Sampler = name
		fill(t, f, twoSlots, o)
	}
}

func TestNewSeed(t *testing.T) {
	seen := map[uint64]bool{}
	for range 64 {
		seed := NewSeed()
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
