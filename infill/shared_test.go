package infill

import (
	"testing"
)

// TestSharedStart: every chain starts where the first does, seeds start at
// different places, and the chains part ways after it.
func TestSharedStart(t *testing.T) {
	f, _ := newFake(t)
	starts := map[[2]int]bool{}
	for seed := range uint64(20) {
		o := chainOptions()
		o.Chains.Initial.Kind, o.Seed, o.Samples = StartShared, seed, 6
		parted := false
		_, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) {
			for c := range o.Samples {
				same := p.TokenIDs[2*c] == p.TokenIDs[0] && p.TokenIDs[2*c+1] == p.TokenIDs[1]
				if p.Step == 0 && !same {
					t.Errorf("seed %d: chain %d starts at %v, chain 0 at %v", seed, c, p.TokenIDs[2*c:2*c+2],
						p.TokenIDs[:2])
				}
				parted = parted || !same
			}
			if p.Step == 0 {
				starts[[2]int{p.TokenIDs[0], p.TokenIDs[1]}] = true
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if !parted {
			t.Errorf("seed %d: the chains never part", seed)
		}
	}
	if len(starts) < 5 {
		t.Errorf("20 seeds start at %d places", len(starts))
	}
}
