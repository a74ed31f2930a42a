// Package energies learns energies with samplers, by persistent contrastive
// divergence, and Bayesian networks of binary weights.
//
//	learn ising      learnising.go    couplings of an Ising model: figure 5 of the discrete Langevin paper
//	learn contacts   protein.go       contacts of a protein: section 6 of Gibbs with Gradients
//	learn images     learnimages.go   deep energies of images: table 1 of the discrete Langevin paper
//	learn text       learntext.go     a deep energy of sentences, of which wordnetwork.go is the network
//	networks         networks.go      binary Bayesian networks: tables 2 and 4 of the discrete Langevin paper
//
// pcd.go has the training, and deepenergy.go what deep energies share.
package energies

import "infill/cmd/lab/internal/lab"

func Studies() []*lab.Study {
	return []*lab.Study{newLearnIsing(), newLearnImages(), newLearnText(), newNetworks(), newLearnContacts()}
}
