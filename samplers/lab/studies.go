package lab

import "context"

// Machinery is what studies need from elsewhere.
type Machinery struct {
	// Network opens an energy of images, its weights all 0.
	Network func(context.Context, NetworkShape) (Network, error)
}

// Studies lists the experiments of many cells, with their default settings, which
// take minutes.
func Studies(m Machinery) []*Study {
	return []*Study{
		newLearnIsing(),
		newLearnImages(m.Network),
		newNetworks(),
		newLearnContacts(),
		newCoverage(),
	}
}
