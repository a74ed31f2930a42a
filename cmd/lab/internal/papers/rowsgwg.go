package papers

func rowsGWG() []Row {
	gwg := family{"gwg", "ess", "sampler"}
	accepted := family{"gwg", "acceptance", "sampler"}
	random := family{"rbm-random", "log-mmd-at-steps", "sampler"}
	small := family{"rbm-small", "log-mmd-at-steps", "sampler"}
	lattice10 := family{"gwg-ising", "ess", "sampler"}
	hidden := family{"fhmm", "log-rmse-at-steps", "sampler"}
	text := family{"learn-text", "test-ll", "sampler"}
	textSeconds := family{"learn-text", "seconds", "sampler"}
	const (
		better   = "“Compared to Gibbs sampling, GWG finds better solutions”"
		cheaper  = "“Does so much more efficiently”"
		outdoes  = "“We find this sampler outperforms prior samplers for discrete data”"
		contacts = "contact prediction, a figure without a sentence: GWG above Gibbs"
	)
	var lattice, graph, sooner, soonerGraph, recalled, norms []Claim
	for _, n := range []string{"1", "5", "25"} {
		lattice = append(lattice, family{"learn-ising", "log-rmse", "sampler"}.below(better, "steps="+n, "gwg",
			"gibbs")...)
		sooner = append(sooner,
			family{"learn-ising", "seconds-to-level", "sampler"}.below(cheaper, "steps="+n, "gwg", "gibbs")...)
		recalled = append(recalled,
			family{"learn-contacts", "recall", "sampler"}.above(contacts, "steps="+n, "gwg", "gibbs")...)
		norms = append(norms,
			family{"learn-contacts", "log-rmse", "sampler"}.below("Ising and Potts: "+better, "steps="+n, "gwg",
				"gibbs")...)
	}
	for _, n := range []string{"1", "5"} {
		graph = append(graph,
			family{"learn-ising-random", "log-rmse", "sampler"}.below(better, "steps="+n, "gwg", "gibbs")...)
		soonerGraph = append(soonerGraph,
			family{"learn-ising-random", "seconds-to-level", "sampler"}.below(cheaper, "steps="+n, "gwg", "gibbs")...)
	}
	energies := paperTable{"deep energies, log-likelihood",
		[]string{"Static MNIST", "Dynamic MNIST", "Omniglot", "Caltech Silhouettes"},
		func(set, method string) Place { return Place{"GWG", "deep energies", set, method} }}
	var outperformed []Claim
	for _, other := range []string{"VAE (MLP)", "VAE (Conv)", "RBM", "DBN"} {
		c := Claim{Text: other + " below GWG", Stated: true,
			Place: "deep energies: “Outperforms VAEs, RBM, and Deep belief net in log-likelihood”"}
		for _, set := range energies.sets {
			c.Sets = append(c.Sets, Set{set, energies.cell(set, other), energies.cell(set, "EBM (GWG)")})
		}
		outperformed = append(outperformed, c)
	}
	var well []Claim
	for _, one := range []string{rhmc4, rmala4, dsvgd4} {
		well = append(well, small.similar("“They behave well with < 200 dimensions”", "", 0.5, one, "gwg")...)
	}
	const gwgSqrt = "gwg:balance=sqrt"
	return []Row{
		{Of: "GWG algorithm 1", Shows: "one slot by gradient", Here: "ESS of 1,000 steps " +
			"{gwg|ess|%.1f|sampler=gwg:balance=sqrt} against {gwg|ess|%.1f|sampler=gibbs}",
			Claims: gwg.above(outdoes, "", gwgSqrt, "gibbs")},
		{Of: "GWG, fixed q(i)", Shows: "each slot proposed with the same probability",
			Here: "ESS of 1,000 steps {gwg|ess|%.1f|sampler=gwg:gradient=none}, with the gradient " +
				"{gwg|ess|%.1f|sampler=gwg:balance=sqrt}",
			Claims: renamed(gwg.above("“Bias q(i) towards dims which are likely to flip → Efficient sampling!”", "",
				gwgSqrt,
				"gwg:gradient=none"), "with the gradient above without")},
		{Of: "GWG, τ = 2", Shows: "the balance of the proposal",
			Here: "{gwg|acceptance|%.3f|sampler=gwg:balance=sqrt}; " +
				"{gwg|acceptance|%.3f|sampler=gwg:balance=1} for τ = 1",
			Claims: renamed(accepted.below("“Choosing τ”: with τ = 2 the acceptance “should be near 1”", "",
				"gwg:balance=1",
				gwgSqrt), "acceptance of τ = 1 below")},
		{Of: "GWG, sampling", Shows: "relaxations on an RBM of 784 units",
			Smaller: "random weights, 300 steps, 20 chains for 100",
			Here: "GWG {rbm-random|log-mmd-at-steps|%.2f|sampler=gwg}, R-HMC " +
				"{rbm-random|log-mmd-at-steps|%.2f|sampler=" + rhmc4 + "}, R-MALA " +
				"{rbm-random|log-mmd-at-steps|%.2f|sampler=" + rmala4 + "}, D-SVGD " +
				"{rbm-random|log-mmd-at-steps|%.2f|sampler=" + dsvgd4 + "}: the best settings of `--preset " +
				"dlp-figure-4-grid`",
			Claims: random.below("“Perform poorly above” 200 dimensions", "", "gwg", rhmc4, rmala4, dsvgd4)},
		{Of: "the same", Shows: "relaxations on an RBM of 100 units",
			Smaller: "“well” is taken as a log MMD² within 0.5 of GWG's; settings are those for 784 units",
			Here: "GWG {rbm-small|log-mmd-at-steps|%.2f|sampler=gwg}, R-HMC " +
				"{rbm-small|log-mmd-at-steps|%.2f|sampler=" + rhmc4 + "}, R-MALA " +
				"{rbm-small|log-mmd-at-steps|%.2f|sampler=" + rmala4 + "}, D-SVGD " +
				"{rbm-small|log-mmd-at-steps|%.2f|sampler=" + dsvgd4 + "}",
			Claims: well},
		{Of: "the same", Shows: "Gibbs-2, Hamming ball and GWG-5 on an RBM",
			Smaller: "random weights, 300 steps, 20 chains for 100",
			Here: "GWG-5 {rbm-random|log-mmd-at-steps|%.2f|sampler=gwg-x:radius=5}, GWG " +
				"{rbm-random|log-mmd-at-steps|%.2f|sampler=gwg}, Hamming ball " +
				"{rbm-random|log-mmd-at-steps|%.2f|sampler=" + hb +
				"}, Gibbs-2 {rbm-random|log-mmd-at-steps|%.2f|sampler=gibbs-x:block=2}, Gibbs-1 " +
				"{rbm-random|log-mmd-at-steps|%.2f|sampler=gibbs-x:block=1}",
			Claims: join(random.below(outdoes, "", "gwg", gibbs1, gibbs2, hb),
				random.below("the figure has a line of GWG-5, and no sentence", "", gwg5, "gwg", gibbs1, gibbs2, hb))},
		{Of: "the same", Shows: "an Ising model, at the sizes of the authors' program",
			Here: "ESS of 1,000 steps: GWG {gwg-ising|ess|%.1f|sampler=gwg}, Hamming ball " +
				"{gwg-ising|ess|%.1f|sampler=" + hb +
				"}, Gibbs {gwg-ising|ess|%.1f|sampler=" + gibbs1 + "}; the slides have Hamming ball on hidden " +
				"chains only",
			Claims: renamed(lattice10.above(outdoes, "", "gwg", gibbs1, gibbs2), "gwg above Gibbs-1",
				"gwg above Gibbs-2")},
		{Of: "GWG, FHMM", Shows: "posterior of hidden chains, by steps", Smaller: "10 chains on each of 10 targets " +
			"for 100 on one",
			Here: "[table](../measured/laboratory.md#hidden-chains)",
			Claims: renamed(hidden.below(outdoes, "", "gwg", "gibbs", gibbs2, hb), "gwg below Gibbs-1",
				"gwg below Gibbs-2",
				"gwg below hamming-ball")},
		{Of: "GWG, Ising learning", Shows: "lattice", Smaller: "6 × 6 sites, 1,000 updates", Here: "as DLP figure 5",
			Claims: lattice},
		{Of: "the same", Shows: "lattice, seconds to a log RMSE of −2.8", Smaller: "6 × 6 sites, 1,000 updates",
			Here: "as DLP figure 5", Claims: sooner},
		{Of: "GWG, Ising learning", Shows: "random graph", Smaller: "36 sites, 1,000 updates",
			Here: "[table](../measured/laboratory.md#learning-an-ising-model)", Claims: graph},
		{Of: "the same", Shows: "random graph, seconds to a log RMSE of −2.8", Smaller: "36 sites, 1,000 updates",
			Command: "learn ising --graph random --steps 1,5 --repeats 10", Unjudged: soonerGraph,
			Here: "on the other six all do", Without: "on four graphs no training comes to −2.8"},
		{Of: "GWG, contacts", Shows: "Potts model of proteins", Smaller: "20 sites of 5 states, made up; 300 " +
			"updates for 10,000",
			Here: "[table](../measured/laboratory.md#contacts)", Claims: join(renamed(recalled,
				"recall of gwg above gibbs (steps 1)",
				"recall of gwg above gibbs (steps 5)", "recall of gwg above gibbs (steps 25)"), norms)},
		{Of: "GWG, deep energies", Shows: "binary images", Smaller: "as DLP table 1", Here: "as DLP table 1",
			Claims: energies.pairs(family{"learn-images", "test-ll", "sampler"}, "", method{"EBM (Gibbs)", gibbs1},
				method{"EBM (GWG)", "gwg"})},
		{Of: "the same", Shows: "beside autoencoders, an RBM and a deep belief network",
			Unjudged: outperformed, Here: "not run: the laboratory's autoencoders have bits, and it has no deep " +
				"belief network",
			Without: "not run"},
		{Of: "GWG, likelihoods", Shows: "annealed importance sampling", Command: "ais", Paper: "log-likelihoods",
			Here:    "[how often intervals hold](../measured/laboratory.md#log-likelihoods)",
			Without: "the paper has no order"},
		{Of: "GWG, grey images", Shows: "energies over 256 categories", Command: "learn images --levels 17 " +
			"--learning-rate 0.0002 --repeats 5 --samplers gwg,dula:step-size=0.2,dmala:step-size=0.3",
			Paper: "bits a dimension beside autoencoders", Here: "digits of 17 greys: GWG " +
				"{learn-images-grey|test-ll|%.1f|sampler=gwg}, DMALA " +
				"{learn-images-grey|test-ll|%.1f|sampler=dmala:step-size=0.3}, independent pixels " +
				"{learn-images-grey|independent|%.1f|sampler=gwg} nats",
			Without: "the paper has no order of samplers"},
		{Of: "GWG, text", Shows: "energies of sentences",
			Smaller: "12 words of 200 for 20 of 10,000; bigrams for an autoregressive network",
			Here: "bigrams {learn-text|test-ll|%.2f|sampler=bigrams}, GWG {learn-text|test-ll|%.2f|sampler=gwg}, " +
				"independent " +
				"{learn-text|test-ll|%.2f|sampler=independent} nats",
			Claims: join(text.above("autoregressive −74, GWG −77.14, categorical −100.05, uniform −184.18 nats", "",
				"bigrams",
				"gwg"), text.above("autoregressive −74, GWG −77.14, categorical −100.05, uniform −184.18 nats", "",
				"gwg",
				"independent"))},
		{Of: "the same", Shows: "beside Gibbs", Smaller: "12 words of 200 for 20 of 10,000",
			Here: "seconds of a training: GWG {learn-text|seconds|%.0f|sampler=gwg}, Gibbs " +
				"{learn-text|seconds|%.0f|sampler=gibbs}",
			Claims: join(renamed(textSeconds.below("“For large k GWG is much faster per iterations”", "", "gwg",
				"gibbs"),
				"seconds of gwg below gibbs"), text.above("“AND converges in fewer iterations”", "", "gwg", "gibbs"))},
	}
}
