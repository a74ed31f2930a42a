package energies

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/internal/network"
)

// learnImages trains deep energies, as table 1 of the discrete Langevin paper
// does (section 7.3.2, appendix I.4).
type learnImages struct {
	deepOptions
	dynamic                        *bool
	features, blocks, downsampling *int
	levels                         *int
	validations, validationSteps   *int
}

func newLearnImages() *lab.Study {
	s := lab.NewStudy("learn images")
	f := s.Flags
	images := lab.ImageFlags(f)
	o := &learnImages{
		deepOptions: deepFlags(f, pcdFlags(f, 500, 50, 500, 0.001, 0),
			"gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.3", "dmala:step-size=0.3"),
		dynamic: f.Bool("dynamic", false,
			"draw training pixels by their grey at each update, instead of cutting at a half"),
		features:    lab.WholeFlag(f, "features", 16, 1, 512, "features of the network"),
		blocks:      lab.WholeFlag(f, "blocks", 4, 0, 64, "residual blocks"),
		levels:      lab.WholeFlag(f, "levels", 2, 2, lab.MaxCategories, "greys of a pixel"),
		validations: lab.WholeFlag(f, "validations", 10, 1, 1<<20, "times that the images of --validation are asked"),
		validationSteps: lab.WholeFlag(f, "validation-ais-steps", 200, 1, 1<<30,
			"temperatures of annealed importance sampling for them"),
		downsampling: lab.WholeFlag(f, "downsampling", 2, 0, 8, "blocks that halve the sides"),
	}
	s.Plan = func(_ context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		switch {
		case *o.dynamic && *o.levels > 2:
			return nil, lab.Refuse("dynamic", "pixels of %d levels are not drawn by their grey", *o.levels)
		case *o.downsampling > *o.blocks:
			return nil, lab.Refuse("downsampling", "%d of %d blocks", *o.downsampling, *o.blocks)
		}
		if err := o.check(); err != nil {
			return nil, err
		}
		set, err := images(in)
		if err != nil {
			return nil, err
		}
		p := s.NewPlan(fmt.Sprintf("deep energies of images, %d × %d pixels", set.Rows, set.Columns))
		for _, spec := range *o.samplers {
			p.Add(*o.repeats, func(ctx context.Context, b *lab.Bench) error { return o.learn(ctx, b, spec, set) },
				lab.Label{Name: "sampler", Value: spec.Label})
		}
		return p, nil
	}
	return s
}

// greyNetwork gives a network of images gradients by the levels of pixels.
type greyNetwork struct {
	*network.Energy
	levels  int
	scratch []float64
}

var _ energyNetwork = (*greyNetwork)(nil)

// SlotGradient continues each level's indicator along the grey of the pixel.
func (n *greyNetwork) SlotGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	n.scratch = slices.Grow(n.scratch[:0], len(states))[:len(states)]
	if err := n.PixelGradient(ctx, states, energy, n.scratch); err != nil {
		return err
	}
	for i, g := range n.scratch {
		for v := range n.levels {
			gradient[n.levels*i+v] = g * float64(v) / float64(n.levels-1)
		}
	}
	return nil
}

func (o *learnImages) learn(ctx context.Context, b *lab.Bench, spec lab.Spec, images *lab.ImageSet) error {
	greys, testGreys := images.Split(b)
	examples := o.states(greys, b.Stream("pixels"))
	energy, err := network.Open(ctx,
		network.Shape{Rows: images.Rows, Columns: images.Columns, Features: *o.features, Blocks: *o.blocks,
			Downsampling: *o.downsampling, Levels: *o.levels}, 1) // one thread, as everywhere in the laboratory
	if err != nil {
		return err
	}
	defer energy.Close()
	s := &subject{
		examples:     examples,
		tests:        o.states(testGreys, b.Stream("test pixels")),
		laws:         chains.PixelLaws(slices.Collect(slices.Chunk(examples, images.Pixels())), *o.levels),
		network:      &greyNetwork{Energy: energy, levels: *o.levels},
		validation:   o.states(images.Validation, b.Stream("validation pixels")),
		validations:  *o.validations,
		temperatures: *o.validationSteps,
		show: func(name string, states []int) error {
			return b.Picture(name, images.Grid(states, *o.levels))
		},
	}
	if *o.dynamic {
		s.redraw = func(update int) []int { return o.states(greys, b.Stream("pixels "+strconv.Itoa(update))) }
	}
	return o.train(ctx, b, spec, s)
}

func (o *learnImages) states(greys []float64, r *rand.Rand) []int {
	if *o.levels == 2 {
		return lab.Binarised(greys, *o.dynamic, r)
	}
	return lab.Quantised(greys, *o.levels)
}
