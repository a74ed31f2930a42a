// Package bits estimates gradients through random bits, as ARM's slides do.
//
//	arm toy         arm.go   figures 2 and 3: one bit
//	arm gradients   arm.go   estimators against the exact gradient
//	arm vae         vae.go   tables 2 and 3: autoencoders; wakesleep.go trains them without a gradient
//
// estimators.go lists the estimators, which have files *_estimator.go.
package bits

import "infill/cmd/lab/internal/lab"

func Studies() []*lab.Study {
	return []*lab.Study{newARMToy(), newARMGradients(), newARMAutoencoders()}
}
