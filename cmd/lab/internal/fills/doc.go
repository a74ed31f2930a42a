// Package fills measures the fills of infill itself. No paper asks for it.
//
//	calibration   calibration.go   how often fills are right, by the share that they are given
//	model         model.go         models against held-out words, clozes, pairs and probes
//	proofs        proofs.go        what it costs to prove the likeliest fills
package fills

import "infill/cmd/lab/internal/lab"

func Studies() []*lab.Study {
	return []*lab.Study{newCalibration(), newModelStudy(), newProofs()}
}
