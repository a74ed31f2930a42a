package infill_test

import "infill/infill"

// chainOptions are the defaults of chains that move by the papers' energy.
func chainOptions() infill.Options {
	o := infill.DefaultOptions()
	o.Sampler, o.Joint, o.Candidates = "dmala", infill.JointPLL, 250
	return o
}
