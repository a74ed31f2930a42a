package infill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// TestUnrated: gibbs needs no U. What it met before it is called off is rated
// afterwards; fills that the model does not rate then are counted, and left out.
func TestUnrated(t *testing.T) {
	for _, failing := range []int{0, 2, 1} { // of the calls afterwards none, every second, or all fail
		f, model := newFake(t)
		ctx, cancel := context.WithCancel(t.Context())
		calls, failed := 0, 0
		model.Before = func(own context.Context) error {
			calls++
			if calls == 30 {
				cancel()
			}
			if calls > 30 && failing > 0 && calls%failing == 0 {
				failed++
				return errFault
			}
			return own.Err()
		}
		c := newAskedChains("gibbs")
		c.Steps = 1 << 20
		o := asked{Fill: FillAny, Seed: 1, Samples: 2, Chains: &c, Top: 1000}
		r, err := f.Fill(ctx, o.request(twoSlots), nil)
		if err != context.Canceled || (r == nil) != (failing == 1) {
			t.Fatalf("%d calls, %d failed: result %v, error %v", calls, failed, r != nil, err)
		}
		if r == nil { // no fill has a U
			continue
		}
		said := fmt.Sprintf("; %d were not rated in time, and are missing", failed)
		if strings.Contains(r.Warnings[0], said) != (failing > 0) || (failed > 0) != (failing > 0) {
			t.Errorf("%d fills failed, warnings %q", failed, r.Warnings)
		}
		if strings.Contains(r.Warnings[0], "not rated") != (failing > 0) {
			t.Errorf("%d fills failed, warnings %q", failed, r.Warnings)
		}
		if len(r.Fills) != r.Stats.DistinctFills-failed || (r.Stats.Chains.MeanLogLikelihood != 0) != (failing == 0) {
			t.Errorf("%d of %d fills, %d failed, mean U %v", len(r.Fills), r.Stats.DistinctFills, failed,
				r.Stats.Chains.MeanLogLikelihood)
		}
		for _, fill := range r.Fills {
			if u := model.U(fill.TokenIDs); math.Abs(fill.LogLikelihood-u) > 1e-9 {
				t.Errorf("%q has %v, want %v", fill.Text, fill.LogLikelihood, u)
			}
		}
	}
}
