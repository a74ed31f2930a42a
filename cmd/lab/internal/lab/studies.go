package lab

import (
	"context"

	"infill/samplers"
)

// Machinery is what studies need from elsewhere.
type Machinery struct {
	// Network opens an energy of images, its weights all 0.
	Network func(context.Context, NetworkShape) (Network, error)
	// Choices is the target over a template's fills that take one of the two
	// likeliest words in each slot: binary slots.
	Choices func(ctx context.Context, template string) (samplers.Target, error)
}

// Studies lists the experiments of many cells, with their default settings, which take minutes.
func Studies(m Machinery) []*Study {
	list := []*Study{
		newLearnIsing(),
		newLearnImages(m.Network),
		newNetworks(),
		newLearnContacts(),
		newCoverage(),
		newARMToy(),
		newARMGradients(),
		newARMVAE(),
		newARMFills(m.Choices),
	}
	for _, k := range Kinds() {
		list = append(list, newARMFit(k))
	}
	return list
}
