package infill

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"infill/samplers"

	"infill/internal/lmtest"
)

// drawError is the standard error of a frequency: between chains, or, where few
// chains met the fill, that of its interval.
func drawError(s Fill) float64 {
	if e := s.ShareError; e != nil {
		return *e
	}
	return (s.ShareInterval[1] - s.ShareInterval[0]) / 2 / 1.96
}

// The intervals of named samplers hold the enumerated probability about as often as
// they say, fills that one chain alone met included.
func TestIntervalsCover(t *testing.T) {
	f, model := newFake(t)
	target := model
	held, all, few := 0, 0, 0
	for _, sampler := range []string{"dmala", "gwg", "gibbs", "mlm-mh"} {
		for seed := range 30 {
			o := chainOptions()
			o.Chains.Sampler, o.Fill, o.Samples, o.Chains.Steps, o.Top, o.Chains.Candidates, o.Seed = sampler, FillAny,
				10, 60, 1000, 6,
				uint64(seed)
			result := fill(t, f, twoSlots, o)
			// The fake's support is the same in every run: what is drawn in all is it.
			weights, total := map[string]float64{}, 0.0
			best := bestTokens(f, 6)
			for _, a := range best {
				for _, b := range best {
					w := math.Exp(target.U([]int{a, b}))
					weights[fmt.Sprint([]int{a, b})] = w
					total += w
				}
			}
			for _, s := range result.Fills[:8] {
				p := weights[fmt.Sprint(s.TokenIDs)] / total
				all++
				if s.ShareInterval[0] <= p && p <= s.ShareInterval[1] {
					held++
				}
				if s.ShareError == nil {
					few++
				}
			}
		}
	}
	// 960 intervals, 8 of each run, of which those of a run hang together.
	if share := float64(held) / float64(all); share < 0.92 || share > 0.99 {
		t.Errorf("%d of %d intervals (%d of fills that few chains met) hold the enumerated probability", held, all, few)
	}
	t.Logf("%d of %d intervals hold the enumerated probability, %d of them of fills that few chains met", held, all,
		few)
}

// Chains in modes that they do not leave are reported of, and their shares have
// no small errors.
func TestUnconverged(t *testing.T) {
	s := newVisited(10, 1)
	for range 25 {
		state := &samplers.State{}
		for chain := range 10 {
			v := 0
			if chain == 7 {
				v = 1
			}
			state.Positions, state.Energy = append(state.Positions, v), append(state.Energy, -1-2*float64(v))
		}
		s.add(state, 1)
	}
	a := &answer{chains: &ChainStats{}, fills: []found{{share: &share{value: 0.9}}, {share: &share{value: 0.1}}}}
	e := 0.1
	a.fills[1].share.error = &e
	s.diagnose(a, []int{0, 1})
	s.believe(a, []int{0, 1})
	second := a.fills[1].share
	if r := a.chains.SplitRHat; r == nil || *r != CappedRHat {
		t.Errorf("split R-hat %v of chains that never move", r)
	}
	if second.error != nil || second.interval == nil || second.interval[1] < 0.35 {
		t.Errorf("a fill that one chain met: error %v, interval %v", second.error, second.interval)
	}
	if n := second.effective; n == nil || *n > 20 {
		t.Errorf("%v effective draws of 10 chains that never move", n)
	}
	if w := unconverged(&Result{Stats: Stats{Chains: a.chains}}); len(w) != 1 ||
		!strings.Contains(w[0], "not converged: split R-hat") {
		t.Errorf("warnings %q", w)
	}
	// Final states are one draw a chain: nothing to compare, and an
	// interval all the same.
	f, _ := newFake(t)
	o := chainOptions()
	o.Rank = RankFinal
	r, err := f.Fill(context.Background(), o.request(twoSlots), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stats.Chains.SplitRHat != nil || r.Fills[0].ShareInterval == nil {
		t.Errorf("final states: split R-hat %v, interval %v", r.Stats.Chains.SplitRHat, r.Fills[0].ShareInterval)
	}
}

// bestTokens are the n tokens of the largest weight.
func bestTokens(f *Filler, n int) []int {
	best := f.tokenizer.Fillable()
	for i := range best {
		for j := i; j > 0 && lmtest.Weight(best[j]) > lmtest.Weight(best[j-1]); j-- {
			best[j], best[j-1] = best[j-1], best[j]
		}
	}
	return best[:n]
}

// TestOneThreshold: what is above the threshold of R-hat is warned of, and what
// is at it is not.
func TestOneThreshold(t *testing.T) {
	at := samplers.LargestRHat
	above := math.Nextafter(at, 2)
	for _, c := range []struct {
		chains, fill float64
		want         string
	}{{at, at, ""}, {above, at, "of their log-likelihood is 1.10, and at most 1.1"}, {at, above, "of fill 1 is 1.10"}} {
		r := &Result{Fills: []Fill{{Rank: 1, SplitRHat: &c.fill}},
			Stats: Stats{Chains: &ChainStats{SplitRHat: &c.chains}}}
		got := strings.Join(unconverged(r), " ")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("R-hat %g and %g: %q, want %q", c.chains, c.fill, got, c.want)
		}
	}
}
