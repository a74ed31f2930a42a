package infill

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// A fill that is called off gives what it has found, whatever the method and
// however early, in a result that can be printed.
func TestUnfinished(t *testing.T) {
	for _, c := range []struct {
		name, template string
		change         func(*asked)
		calls          int // of the model before it is called off
		want           string
	}{
		{"search", "the [MASK] sat [MASK] on [MASK] the [MASK]", func(o *asked) {}, 12,
			"nothing left out has more than"},
		{"chains", "the [MASK] sat [MASK] .",
			func(o *asked) { c := newAskedChains("dmala"); c.Steps = 1 << 20; o.Chains = &c }, 30,
			"these are the likeliest fills met by then"},
		{"chains without energies", "the [MASK] sat [MASK] .",
			func(o *asked) { c := newAskedChains("gibbs"); c.Steps = 1 << 20; o.Chains = &c },
			30, "these are the likeliest fills met by then"},
		{"draws", "the [MASK] sat [MASK] on [MASK] .",
			func(o *asked) { o.Samples, o.Ban = 400, Words{"cat", "dog"} }, 8, " of 400 draws"},
		{"lengths by search", "the [MASK:1-3] .", func(o *asked) {}, 4, "nothing left out has more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, model := newFake(t)
			ctx, cancel := context.WithCancel(t.Context())
			model.Bond, model.Deaf = 1, true
			calls := 0
			model.Before = func(ctx context.Context) error {
				if calls++; calls > c.calls {
					cancel()
				}
				return ctx.Err()
			}
			o := asked{}
			o.Fill, o.Seed = FillAny, 1
			c.change(&o)
			r, err := f.Fill(ctx, o.request(c.template), nil)
			if !errors.Is(err, context.Canceled) || r == nil {
				t.Fatalf("%d calls, result %v, error %v", calls, r != nil, err)
			}
			t.Log(calls, r.Method, r.Warnings, r.Stats.DistinctFills, r.Fills[0].Text,
				r.Fills[0].LogLikelihood)
			if !r.Unfinished || len(r.Fills) == 0 || len(r.Fills) > 5 || !strings.Contains(r.Warnings[0], c.want) ||
				!strings.HasPrefix(r.Warnings[0], "unfinished: interrupted ") {
				t.Errorf("%d fills, warnings %q", len(r.Fills), r.Warnings)
			}
			if r.Stats.Chains != nil && r.Stats.Chains.MeanLogLikelihood == 0 {
				t.Error("all met fills are rated, and have no mean")
			}
			for i, fill := range r.Fills {
				if math.IsNaN(fill.LogLikelihood) || fill.Rank != i+1 ||
					i > 0 && fill.LogLikelihood > r.Fills[i-1].LogLikelihood {
					t.Errorf("fill %d: %+v", i, fill)
				}
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}
