package lab

import (
	"context"
	"math/rand/v2"
	"strconv"

	"infill/samplers"
)

// walk is chains that can be stopped and go on. Its exported fields are what a checkpoint keeps.
type walk struct {
	Step      int
	Positions []int   // [chains × slots]
	Accepted  float64 // of proposals since the start
}

// advance makes some steps with a new kernel and streams of their own, so that
// where they lead depends on the positions alone.
func (w *walk) advance(ctx context.Context, b *bench, spec Spec, target samplers.Target, steps int) error {
	label := spec.Label + " from step " + strconv.Itoa(w.Step)
	kernel, err := spec.New(target, b.stream("terms "+label))
	if err != nil {
		return refuse("samplers", "%w", err)
	}
	streams := b.streams(label, len(w.Positions)/len(target.Categories()))
	var acceptance samplers.Acceptance
	run, err := samplers.Sample(ctx, kernel, w.Positions, samplers.Plan{Streams: streams, Steps: steps},
		func(s samplers.Step) error {
			if s.Info != nil {
				acceptance.Observe(s.Info)
			}
			return nil
		})
	if err != nil {
		return err
	}
	rate, _ := acceptance.Rate()
	w.Accepted = (w.Accepted*float64(w.Step) + rate*float64(steps)) / float64(w.Step+steps)
	w.Step += steps
	w.Positions = run.State.Positions
	return nil
}

// ends is where chains of a sampler are after some steps from uniform starts.
func ends(ctx context.Context, sampler string, target samplers.Target, streams []*rand.Rand, steps int,
	observe func(samplers.Step) error) ([]int, error) {
	kernel, err := samplers.New(sampler, target)
	if err != nil {
		return nil, err
	}
	run, err := samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams),
		samplers.Plan{Streams: streams, Steps: steps}, observe)
	if err != nil {
		return nil, err
	}
	return run.State.Positions, nil
}
