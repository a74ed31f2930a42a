package infill

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/samplers"
)

// visitor is a sampler of another module: Gibbs under another name, with a step size that
// a warm-up adapts.
type visitor struct {
	name string
	Size float64 `option:"size" minimum:"0"`
}

func (f visitor) Describe() samplers.Description {
	return samplers.Description{Name: f.name, Exact: true}
}

func (f visitor) Kernel(target samplers.Target, shared *rand.Rand) (samplers.Kernel, error) {
	own, err := samplers.GWG{}.Kernel(target, shared)
	return &visitorKernel{Kernel: own, size: 1 + f.Size}, err
}

type visitorKernel struct {
	samplers.Kernel
	size float64
}

var _ samplers.Tuned = (*visitorKernel)(nil)

func (k *visitorKernel) StepSize() float64                 { return k.size }
func (k *visitorKernel) SetStepSize(size float64) error    { k.size = size; return nil }
func (k *visitorKernel) Bounds() (lowest, highest float64) { return 0.5, 2 }

// TestForeignSampler: a sampler of another module fills text with a warm-up, diagnostics
// and an own name, and JSON cannot name it.
func TestForeignSampler(t *testing.T) {
	f, _ := newFake(t)
	chains := Chains{Sampler: visitor{"mine", 0.25}, Steps: 40, Samples: 4, Candidates: 6}
	r, err := f.Fill(context.Background(), Request{Template: twoSlots, Method: chains, Seed: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Stats.Chains
	if r.Method != "mine" || s.Sampler != "mine" || s.AcceptanceRate == nil || s.SplitRHat == nil ||
		s.StepSize == nil || *s.StepSize < 0.5 || *s.StepSize > 2 || *s.StepSize == 1.25 ||
		!strings.Contains(r.Signature, "sampler:mine:size=0.25|") || len(r.Fills) == 0 {
		t.Errorf("%s, %+v, signature %s", r.Method, s, r.Signature)
	}
	for _, name := range []string{"dmala", "search", "draws", "chains", ""} {
		err := Request{Method: Chains{Sampler: visitor{name: name}}}.Check()
		check.Says(t, err, "sampler: a sampler of another module is called", "give it a name of its own")
	}
	for want, c := range map[string]Chains{
		"step-size: mine has none":        {Sampler: visitor{name: "mine"}, StepSize: 3},
		"balance: mine has none":          {Sampler: visitor{name: "mine"}, Balance: "1"},
		`"mine:size=-1" is not a sampler`: {Sampler: visitor{"mine", -1}},
	} {
		check.Says(t, Request{Method: c}.Check(), want)
	}
}

// A setting that stands in the sampler and beside it is an error: which of the two
// should count?
func TestGivenTwice(t *testing.T) {
	for want, c := range map[string]Chains{
		"step-size: it is given twice, as 3 and by the sampler as 0.4": {Sampler: samplers.DMALA{StepSize: 0.4},
			StepSize: 3},
		"balance: it is given twice, as ratio and by the sampler as sqrt": {
			Sampler: samplers.DMALA{Balance: samplers.SqrtBalance}, Balance: samplers.RatioBalance},
	} {
		check.Says(t, Request{Method: c}.Check(), want)
	}
}
