package papers

func rowsARM() []Row {
	toy := family{"arm-toy", "deviation", "estimator"}
	variance := family{"arm-gradients", "variance", "estimator"}
	byDraw := family{"arm-gradients", "by-draw", "estimator"}
	vae := family{"arm-vae", "nll", "estimator"}
	halves := family{"arm-vae-halves", "nll", "estimator"}
	var ascents []Claim
	for _, p0 := range []string{"0.49", "0.499", "0.501", "0.51"} {
		ascents = append(ascents, toy.below("a simple example: ARM “exhibits significant lower variance given the "+
			"same number "+
			"of Monte Carlo samples”", "p0="+p0, "arm", "reinforce")...)
	}
	const proposition = "proposition: “the variance reduction of ARM gradient is better than score baseline even " +
		"with " +
		"optimal m”"
	var merges, draws, variances []Claim
	for _, target := range []string{"square:0.49", "ising:size=3x3", "rbm:data=none,visible=8,hidden=5,scale=1"} {
		merges = append(merges, byDraw.below("“Marginalizing … reduces variance by the law of total variance”",
			"target="+target, "arm", "augment-merge")...)
		merges = append(merges, byDraw.below("the merge, “equivalent to the antithetic sampling”", "target="+target,
			"augment-merge", "augment")...)
		draws = append(draws, byDraw.below(proposition, "target="+target, "arm", "ar")...)
		variances = append(variances, variance.below(proposition+", where a draw of ARM takes two evaluations",
			"target="+target, "arm", "ar")...)
	}
	tables := map[string]string{"MNIST": "2", "OMNIGLOT": "3"}
	structure := func(paper, here string) []Claim {
		t := paperTable{"tables 2, 3, " + paper, []string{"MNIST", "OMNIGLOT"},
			func(set, method string) Place { return Place{"ARM", tables[set], method, paper} }}
		return t.against(vae, "structure="+here, method{"ARM", "arm"}, method{"NVIL", "nvil"}, method{"WS",
			"wake-sleep"},
			method{"REBAR", "rebar"}, method{"MuProp", "muprop"}, method{"Concrete", "concrete"}, method{"RELAX",
				"relax"},
			method{"LeGrad", "legrad"})
	}
	half := paperTable{"table 4", []string{"lower half of MNIST"},
		func(set, method string) Place { return Place{"ARM", "4", method, set} }}
	const sizes = "digits of 64 pixels, 20 bits, 1,500 updates for a million"
	const weaker = sizes + "; λ of REBAR and RELAX is fixed, NVIL has no variance normalisation, MuProp no baselines"
	const place = "[all three structures](../measured/laboratory.md#arm)"
	return []Row{
		{Of: "ARM algorithm 1", Shows: "unbiased gradient of bits", Command: "arm gradients --repeats 10",
			Paper: "unbiased", Here: "the sum over all noise is the exact gradient",
			Test: "cmd/lab/internal/bits TestEstimatorBias"},
		{Of: "ARM, derivation", Shows: "the steps before ARM", Here: "of a draw: [ARM](../measured/laboratory.md#arm)",
			Claims: merges},
		{Of: "ARM, proposition", Shows: "variance below that of AR with any constant baseline",
			Here: "of a draw: [ARM](../measured/laboratory.md#arm)", Claims: draws},
		{Of: "the same", Shows: "at equal evaluations",
			Here: "two draws of AR have the mean of all estimates before as their baseline", Claims: variances},
		{Of: "ARM, example, figures 2, 3", Shows: "gradient and probability over steps",
			Here: "[ARM](../measured/laboratory.md#arm)", Claims: ascents},
		{Of: "ARM tables 2, 3", Shows: "discrete VAEs, linear", Smaller: weaker, Here: place,
			Claims: structure("linear", "linear")},
		{Of: "the same", Shows: "nonlinear", Smaller: weaker, Here: place, Claims: structure("nonlinear", "nonlinear")},
		{Of: "the same", Shows: "two layers", Smaller: weaker, Here: place, Claims: structure("two layers",
			"two-layers")},
		{Of: "ARM figures 5, 6", Shows: "negative ELBO by iterations and by time", Command: "arm vae --repeats 5 -o " +
			"DIR",
			Paper: "curves, and no sentence", Here: "the command draws the curves", Without: "pictures"},
		{Of: "ARM table 4, figure 4", Shows: "lower half of a digit from the upper",
			Smaller: "64 pixels, 20 bits, 5,000 updates for 1,100,000; MuProp has no baselines",
			Here: "ARM {arm-vae-halves|nll|%.2f|estimator=arm} nats, straight-through " +
				"{arm-vae-halves|nll|%.2f|estimator=straight-through}, annealed " +
				"{arm-vae-halves|nll|%.2f|estimator=annealed-st}, DARN {arm-vae-halves|nll|%.2f|estimator=darn}",
			Claims: brief(half.against(halves, "structure=halves", method{"ARM", "arm"}, method{"ST",
				"straight-through"},
				method{"DARN", "darn"}, method{"Annealed ST", "annealed-st"}, method{"ST Gumbel-S.", "st-gumbel"},
				method{"SF", "reinforce"}, method{"MuProp", "muprop"}))},
		{Of: "ARM, future work", Shows: "categories", Command: "arm gradients --target potts:size=2x2", Paper: "none",
			Here: "unbiased", Test: "cmd/lab/internal/bits TestEstimators"},
	}
}
