package lab

import "context"

// A NetworkOpener opens an energy of images, its weights all 0.
type NetworkOpener func(context.Context, NetworkShape) (Network, error)

// Studies lists the experiments of many cells, with their default settings, which take minutes.
func Studies(open NetworkOpener) []*Study {
	var list []*Study
	for _, k := range Kinds() {
		list = append(list, newComparison(k))
	}
	list = append(list, newLearnIsing(), newLearnImages(open), newNetworks(), newLearnContacts(), newARMToy(),
		newARMGradients())
	for _, k := range Kinds() {
		list = append(list, newARMFit(k))
	}
	return list
}
