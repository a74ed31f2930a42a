// Package product measures infill itself.
//
//	calibration   calibration.go   how often fills are right, by the share that they are given
//	model         model.go         models against held-out words, clozes, pairs and probes
//	proofs        proofs.go        what it costs to prove the likeliest fills
//	joints        joints.go        joints of two blanks, from each other and from held-out words
//	infilling     infilling.go     a run of infill eval by sentences: table 3 of the discrete Langevin paper
//	trace         trace.go         convergence of the chains of one fill
package product

import "infill/cmd/lab/internal/lab"

// Studies returns the experiments of the package.
func Studies() []*lab.Study {
	return []*lab.Study{newCalibration(), newModelStudy(), newProofs(), newInfilling(), newJoints(), newTrace()}
}
