package infill

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// A fill that is called off gives what it has found, whatever the method and however early, in a result that can be
// printed.
func TestUnfinished(t *testing.T) {
	for _, c := range []struct {
		name, template string
		change         func(*Options)
		calls          int // of the model before it is called off
		want           string
	}{
		{"search", "the [MASK] sat [MASK] on [MASK] the [MASK]", func(o *Options) {}, 12,
			"nothing left out has more than"},
		{"draws", "the [MASK] sat [MASK] on [MASK] the [MASK]",
			func(o *Options) { o.Candidates, o.Error, o.Joint = 0, 0.001, JointPLL }, 140,
			"interrupted before the end"},
		{"chains", "the [MASK] sat [MASK] .", func(o *Options) { o.Sampler, o.Steps = "dmala", 1<<20 }, 30,
			"these are the likeliest fills met by then"},
		{"chains without energies", "the [MASK] sat [MASK] .", func(o *Options) { o.Sampler, o.Steps = "gibbs", 1<<20 },
			30, "these are the likeliest fills met by then"},
		{"lengths by search", "the [MASK:1-3] .", func(o *Options) {}, 6, "nothing left out has more than"},
		{"search by chains", "the [MASK] sat [MASK] .",
			func(o *Options) { o.Mode, o.Sampler, o.Steps = ModeBest, "dmala", 1<<20 }, 30,
			"these are the likeliest fills met by then"},
		{"lengths", "the [MASK:1-3] .", func(o *Options) { o.Sampler, o.Steps = "dmala", 1<<20 }, 30,
			"these are the likeliest fills met by then"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, model := newFake(t)
			ctx, cancel := context.WithCancel(t.Context())
			model.bond, model.deaf = 1, true
			calls := 0
			model.before = func(ctx context.Context) error {
				if calls++; calls > c.calls {
					cancel()
				}
				return ctx.Err()
			}
			o := DefaultOptions()
			o.Fill, o.Seed = FillAny, 1
			c.change(&o)
			r, err := f.Fill(ctx, c.template, o, nil)
			if !errors.Is(err, context.Canceled) || r == nil {
				t.Fatalf("%d calls, result %v, error %v", calls, r != nil, err)
			}
			t.Log(calls, r.Method, r.Warnings, r.Stats.DistinctFills, r.Stats.Steps, r.Fills[0].Text,
				r.Fills[0].LogLikelihood)
			if !r.Unfinished || len(r.Fills) == 0 || len(r.Fills) > o.Top || !strings.Contains(r.Warnings[0], c.want) ||
				!strings.HasPrefix(r.Warnings[0], "unfinished: interrupted ") {
				t.Errorf("%d fills, warnings %q", len(r.Fills), r.Warnings)
			}
			if c.name == "draws" && (r.Method != MethodImportance || r.Fills[0].Probability == nil) {
				t.Errorf("method %q", r.Method)
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

// Whoever interrupts chains that know no energies waits for no more of them than come in a moment: what is rated is
// listed, those rated before the end among it, and what is not is counted, or the error tells that nothing is.
func TestUnfinishedRatings(t *testing.T) {
	for _, c := range []struct {
		name     string
		steps    int
		calls    int // of the model before the interruption
		rated    int // states after the interruption, until the model stands still
		earlier  bool
		want     string
		noResult bool
	}{
		{"some", 1 << 20, 40, 3, false, " of the last fills were not rated in time, and are missing", false},
		{"none", 1 << 20, 40, 0, false, ", before a fill was rated", true},
		{"while the draws are rated", 10, 13, 0, true, "these are the likeliest fills met by then", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, model := newFake(t)
			model.bond = 1
			ctx, cancel := context.WithCancel(t.Context())
			calls, after := 0, 0
			model.before = func(own context.Context) error {
				if calls++; calls == c.calls {
					cancel()
				}
				if ctx.Err() == nil || own.Err() != nil {
					return own.Err()
				}
				if after++; after > c.rated {
					<-own.Done()
				}
				return own.Err()
			}
			o := DefaultOptions()
			o.Fill, o.Seed, o.Sampler, o.Steps, o.Chains = FillAny, 1, "gibbs", c.steps, 25
			r, err := f.Fill(ctx, "the [MASK] sat [MASK] on [MASK] .", o, nil)
			if !errors.Is(err, context.Canceled) || (r == nil) != c.noResult {
				t.Fatalf("%d calls, result %v, error %v", calls, r != nil, err)
			}
			if r == nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %q", err)
				}
				return
			}
			t.Log(calls, len(r.Fills), r.Stats.DistinctFills, r.Warnings)
			if !strings.Contains(r.Warnings[0], c.want) {
				t.Errorf("warnings %q", r.Warnings)
			}
			if rated := r.Stats.DistinctFills; (rated > c.rated) != c.earlier || rated == 0 {
				t.Errorf("%d fills of %d states", rated, c.rated)
			}
		})
	}
}
