// Package chains compares samplers on distributions that are known exactly.
//
//	ising   lattice.go   Ising models; of one's own: own.go
//	potts   lattice.go   Potts models; of one's own: own.go, potts.go
//	rbm     rbm.go       restricted Boltzmann machines
//	fhmm    fhmm.go      factorial hidden Markov models
//	table   lattice.go   tables of random energies; of one's own: own.go
//	text    text.go      fills of a text
//	ais     ais.go       normalising constants by annealed importance sampling
//
//	infilling   infilling.go   a run of infill eval by sentences: table 3 of the discrete Langevin paper
//	trace       trace.go       U of chains and its autocorrelation, from a trace
//
// compare.go runs a comparison, and measure.go measures it. preset.go runs the
// figures of presets.yaml, which --preset names.
package chains

import "infill/cmd/lab/internal/lab"

func Studies() (list []*lab.Study) {
	for _, k := range kinds() {
		list = append(list, newComparison(k))
	}
	return append(list, newAnnealing(), newInfilling(), newTrace())
}
