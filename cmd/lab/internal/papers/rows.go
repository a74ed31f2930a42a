package papers

import "strings"

// A Row is a line of the table of the papers.
type Row struct {
	Of, Shows, Command, Paper string
	// Here says what came of it. In braces are numbers of the results, as
	// {learn-ising|log-rmse|%.3f|sampler=gwg;steps=5}.
	Here   string
	Claims []Claim
	// Exact are orders of exact numbers, which need no repetitions.
	Exact []Exact
	// Test names the test that shows the row, in place of numbers.
	Test string
	// Without says why there is no verdict.
	Without string
}

// Exact is an order of exact numbers that holds in each of some rows.
type Exact struct {
	Text, Results string
	Where         map[string]string
	Number        string
	// Most is the number that Number stays below. If it is "", Number rises
	// from row to row.
	Most string
}

// A family makes claims about cells of one experiment that differ in a label.
type family struct{ results, number, label string }

// below claims that the cell low has a smaller number than each of the others.
// where is empty, or the labels that the cells share, as "steps=5;part=x".
func (f family) below(where, low string, others ...string) (list []Claim) {
	for _, other := range others {
		list = append(list, Claim{short(low) + " below " + short(other) + at(where), f.results, f.number,
			f.cell(where, low), f.cell(where, other)})
	}
	return list
}

// above claims that the cell high has a larger number than each of the others.
func (f family) above(where, high string, others ...string) (list []Claim) {
	for _, other := range others {
		list = append(list, Claim{short(high) + " above " + short(other) + at(where), f.results, f.number,
			f.cell(where, other), f.cell(where, high)})
	}
	return list
}

func (f family) cell(where, of string) map[string]string {
	labels := labelsOf(where)
	labels[f.label] = of
	return labels
}

// short returns a sampler's name without its settings.
func short(sampler string) string {
	name, _, _ := strings.Cut(sampler, ":")
	return name
}

// at says where a claim is about: numbers with their label, and words alone.
func at(where string) string {
	name, value, _ := strings.Cut(where, "=")
	switch name {
	case "":
		return ""
	case "steps", "p0":
		return " (" + name + " " + value + ")"
	}
	return " (" + value + ")"
}

// labelsOf reads labels as "steps=5;part=x". A value may have = itself.
func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, found := strings.Cut(part, "=")
		if found {
			labels[name] = value
		}
	}
	return labels
}

// Labels of samplers that several rows name.
const (
	gibbs1 = "gibbs-x:block=1"
	hb     = "hamming-ball:block=10,radius=1"
	lb     = "lb-1"
	dula   = "dula:step-size=0.2"
	dmala4 = "dmala:step-size=0.4"
	dmala8 = "dmala:step-size=0.8"
)

// Rows returns the table of the papers. DLP is the discrete Langevin paper, GWG
// is Gibbs with Gradients, and ARM is the slides of Yin and Zhou.
func Rows() []Row {
	ising := family{"learn-ising", "log-rmse", "sampler"}
	graph := family{"learn-ising-random", "log-rmse", "sampler"}
	figure2 := family{"dlp-figure-2", "ess-by-second", "sampler"}
	steps2 := family{"dlp-figure-2", "ess", "sampler"}
	figure3 := family{"dlp-figure-3", "log-rmse-at-steps", "sampler"}
	figure4 := family{"dlp-figure-4", "log-mmd-at-steps", "sampler"}
	after5000 := family{"dlp-figure-4-steps", "log-mmd-at-steps", "sampler"}
	digits := family{"dlp-figure-4-digits", "log-mmd-at-steps", "sampler"}
	figure7 := family{"dlp-figure-7", "log-rmse-at-steps", "sampler"}
	seconds7 := family{"dlp-figure-7", "log-rmse-at-seconds", "sampler"}
	appendixH := family{"dlp-appendix-h", "log-rmse-at-steps", "sampler"}
	images := family{"learn-images", "test-ll", "sampler"}
	networks := family{"networks", "train-ll", "sampler"}
	infilling := family{"infilling", "self-bleu", "sampler"}
	hidden := family{"fhmm", "log-rmse-at-steps", "sampler"}
	hidden100 := family{"gwg-fhmm", "log-rmse-at-steps", "sampler"}
	recall := family{"learn-contacts", "recall", "sampler"}
	norms := family{"learn-contacts", "log-rmse", "sampler"}
	text := family{"learn-text", "test-ll", "sampler"}
	lattice10 := family{"gwg-ising", "ess", "sampler"}
	toy := family{"arm-toy", "deviation", "estimator"}
	variance := family{"arm-gradients", "variance", "estimator"}
	byDraw := family{"arm-gradients", "by-draw", "estimator"}
	vae := family{"arm-vae", "nll", "estimator"}
	halves := family{"arm-vae-halves", "nll", "estimator"}

	const preconditioned = "dula:step-size=0.5,preconditioner=1000/0.001"
	var plain []string
	for _, alpha := range []string{"0.0005", "0.01", "1", "500"} {
		plain = append(plain, "dula:step-size="+alpha)
	}
	var couplings []Claim
	for _, coupling := range []string{"0.1", "0.15", "0.2", "0.25"} {
		couplings = append(couplings, figure7.below("part=coupling "+coupling, dmala8, gibbs1+",steps=125000", "gwg",
			"dula:step-size=0.4,steps=125000")...)
	}
	seconds5 := family{"learn-ising", "log-rmse-at-seconds", "sampler"}
	var learned, lattice, faster, fewer []Claim
	for _, n := range []string{"1", "5", "25"} {
		faster = append(faster, seconds5.below("steps="+n, dmala4, "gibbs", "gwg")...)
		faster = append(faster, seconds5.below("steps="+n, dula, "gibbs", "gwg")...)
		fewer = append(fewer, ising.below("steps="+n, dmala4, "gwg")...)
		fewer = append(fewer, ising.below("steps="+n, dula, "gwg")...)
		learned = append(learned, ising.below("steps="+n, dmala4, "gibbs", "gwg")...)
		learned = append(learned, ising.below("steps="+n, dula, "gibbs", "gwg")...)
		lattice = append(lattice, ising.below("steps="+n, "gwg", "gibbs")...)
	}
	var batches []Claim
	for _, data := range []string{"diabetes", "election"} {
		batches = append(batches, renamed(networks.above("data="+data, dula, dula+",terms=10", dula+",terms=100"),
			"all above 10 ("+data+")", "all above 100 ("+data+")")...)
		batches = append(batches, renamed(networks.above("data="+data, dula+",terms=100", dula+",terms=10"),
			"100 above 10 ("+data+")")...)
	}
	var contacts []Claim
	for _, n := range []string{"1", "5", "25"} {
		contacts = append(contacts, recall.above("steps="+n, "gwg", "gibbs")...)
		contacts = append(contacts, norms.below("steps="+n, "gwg", "gibbs")...)
	}
	others := []string{"ar", "reinforce", "leave-one-out", "rebar", "relax", "nvil", "muprop", "legrad", "concrete",
		"wake-sleep"}
	var autoencoders []Claim
	for _, structure := range []string{"linear", "nonlinear", "two-layers"} {
		autoencoders = append(autoencoders, vae.below("structure="+structure, "arm", others...)...)
	}
	var ascents []Claim
	for _, p0 := range []string{"0.49", "0.499", "0.501", "0.51"} {
		ascents = append(ascents, toy.below("p0="+p0, "arm", "reinforce")...)
	}
	var merges, draws, variances []Claim
	for _, target := range []string{"square:0.49", "ising:size=3x3", "rbm:data=none,visible=8,hidden=5,scale=1"} {
		merges = append(merges, byDraw.below("target="+target, "arm", "augment-merge")...)
		merges = append(merges, byDraw.below("target="+target, "augment-merge", "augment")...)
		draws = append(draws, byDraw.below("target="+target, "arm", "ar")...)
		variances = append(variances, variance.below("target="+target, "arm", "ar")...)
	}

	return []Row{
		{Of: "DLP algorithms 1, 2", Shows: "DULA, DMALA",
			Command: "ising --samplers dula:step-size=0.4,dmala:step-size=0.8", Paper: "DMALA exact, DULA biased",
			Here: "transition matrices agree with equation 2", Test: "samplers TestTransitionMatrix"},
		{Of: "DLP appendix B", Shows: "one-hot and ordinal slots", Command: "table --samplers dmala,dmala-ordinal",
			Paper: "both", Here: "both, and exact", Test: "samplers TestTransitionMatrix"},
		{Of: "DLP appendix C", Shows: "infinite domains", Command: "integers --rate 0.5 --slots 4",
			Paper: "a window of ±1", Here: "numbers without an end: DMALA leaves exp U as it is, DULA does not",
			Test: "cmd/lab/internal/lab TestWindowed"},
		{Of: "DLP appendix D", Shows: "no term in α: hardly accepted", Command: "rbm --data none --visible 784 " +
			"--hidden 500 --scale 0.2236 --warm-up 200 --steps 50 --reference-steps 5 --samplers " +
			"dmala:step-size=inf,dmala:step-size=0.4", Paper: "0.005 %, 51 % with it",
			Here: "acceptance {dlp-appendix-d|acceptance|%.3f|sampler=dmala:step-size=inf}, " +
				"{dlp-appendix-d|acceptance|%.3f|sampler=dmala:step-size=0.4} with it",
			Claims: []Claim{{"acceptance without it below", "dlp-appendix-d", "acceptance",
				labelsOf("sampler=dmala:step-size=inf"), labelsOf("sampler=" + dmala4)}}},
		{Of: "DLP theorem 5.1, figure 1a", Shows: "bias of DULA", Command: "--preset dlp-figure-1",
			Paper: "falls as exp(−1/(2α)), below a bound", Here: "[exact laws](../measured/laboratory.md#the-figures-" +
				"of-the-discrete-langevin-paper)",
			Exact: []Exact{{"below the bound", "dlp-figure-1", labelsOf("bias=2 × 2 Ising model by α"), "exact",
				"bound"}}},
		{Of: "DLP theorem 5.2, figure 1b", Shows: "bias by ε, the counterexample", Command: "--preset dlp-figure-1",
			Paper: "grows with ε", Here: "from {dlp-figure-1|exact|%.3f|bias=a = 1, b = 0.1 by ε;at=0} to " +
				"{dlp-figure-1|exact|%.2f|bias=a = 1, b = 0.1 by ε;at=1} at ε = 1",
			Exact: []Exact{{"it grows", "dlp-figure-1", labelsOf("bias=a = 1, b = 0.1 by ε"), "exact", ""}}},
		{Of: "DLP theorem 6.1", Shows: "bias of stochastic gradients", Command: "--preset dlp-figure-1",
			Paper: "at most 2σ exp(−1/(2α) + L)", Here: "far below",
			Exact: []Exact{{"below the bound", "dlp-figure-1", labelsOf("bias=2 × 2 Ising model by α"), "stochastic",
				"bound-6.1"}}},
		{Of: "DLP section 6, appendix H", Shows: "preconditioned sampler", Command: "--preset dlp-appendix-h",
			Paper: "log RMSE −6.2; −0.34 without, at any α", Here: "{dlp-appendix-h|log-rmse-at-steps|%.2f|sampler=" +
				preconditioned + "}; without at α = 0.01 {dlp-appendix-h|log-rmse-at-steps|%.2f|sampler=" +
				"dula:step-size=0.01}, at α = 500, where the second spin turns every step, " +
				"{dlp-appendix-h|log-rmse-at-steps|%.2f|sampler=dula:step-size=500}",
			Claims: renamed(appendixH.below("", preconditioned, plain...), "below plain DULA, α = 0.0005",
				"below plain DULA, α = 0.01", "below plain DULA, α = 1", "below plain DULA, α = 500")},
		{Of: "DLP figure 2", Shows: "ESS by seconds", Command: "--preset dlp-figure-2", Paper: "DMALA has most",
			Here: "DMALA {dlp-figure-2|ess-by-second|%.0f|sampler=" + dmala8 + ";part=" + partESS + "}, Gibbs, which " +
				"is cheap in compiled code, {dlp-figure-2|ess-by-second|%.0f|sampler=gibbs;part=" + partESS + "}",
			Claims: brief(figure2.above("part="+partESS, dmala8, hb, gibbs1, "gibbs", lb, "gwg", "gwg-x:radius=4"))},
		{Of: "the same", Shows: "ESS by steps", Command: "--preset dlp-figure-2",
			Paper: "DMALA has most, moves 6 slots at an acceptance of 52 %",
			Here: "{dlp-figure-2|ess|%.1f|sampler=" + dmala8 + ";part=" + partESS + "} of 1,000 steps; GWG-4 " +
				"{dlp-figure-2|ess|%.1f|sampler=gwg-x:radius=4;part=" + partESS + "}; moves " +
				"{dlp-figure-2|proposed|%.2f|sampler=dmala:step-size=1.2} at " +
				"{dlp-figure-2|acceptance|%.3f|sampler=dmala:step-size=1.2}",
			Claims: brief(steps2.above("part="+partESS, dmala8, hb, gibbs1, "gibbs", lb, "gwg", "gwg-x:radius=4"))},
		{Of: "DLP figure 3", Shows: "log RMSE, 5 × 5 Ising", Command: "--preset dlp-figure-3",
			Paper: "DMALA leads", Here: "at the paper's sizes: DMALA {dlp-figure-3|log-rmse-at-steps|%.2f|sampler=" + dmala8 + "}, GWG-4 " +
				"{dlp-figure-3|log-rmse-at-steps|%.2f|sampler=gwg-x:radius=4}",
			Claims: figure3.below("", dmala8, hb, gibbs1, "gibbs", lb, "gwg", "gwg-x:radius=4", "dula:step-size=0.4",
				rmala3, rhmc3, dsvgd3)},
		{Of: "the same", Shows: "relaxations", Command: "--preset dlp-figure-3", Paper: "behind GWG",
			Here: "R-HMC {dlp-figure-3|log-rmse-at-steps|%.2f|sampler=" + rhmc3 + "}, GWG-1 " +
				"{dlp-figure-3|log-rmse-at-steps|%.2f|sampler=gwg}",
			Claims: figure3.below("", "gwg", rmala3, rhmc3, dsvgd3)},
		{Of: "DLP figure 4", Shows: "MMD on an RBM", Command: "--preset dlp-figure-4",
			Paper: "DMALA lowest, DULA second", Here: "random weights: {dlp-figure-4|log-mmd-at-steps|%.2f|sampler=" +
				dmala4 + "}, {dlp-figure-4|log-mmd-at-steps|%.2f|sampler=" + dula + "}; GWG " +
				"{dlp-figure-4|log-mmd-at-steps|%.2f|sampler=gwg}",
			Claims: join(figure4.below("", dmala4, dula, "gwg", gibbs1), figure4.below("", dula, "gwg", gibbs1))},
		{Of: "the same", Shows: "after the paper's 5,000 steps", Command: "rbm --data none --visible 784 --hidden 500 " +
			"--scale 0.2236 --reference block-gibbs --reference-steps 40 --chains 100 --steps 5000 --warm-up 0 " +
			"--samplers rbm-gibbs," + gibbs1 + ",gwg," + dula + "," + dmala4,
			Paper: "DMALA lowest, about −6.5", Here: "random weights: {dlp-figure-4-steps|log-mmd-at-steps|%.2f|sampler=" +
				dmala4 + "}, {dlp-figure-4-steps|log-mmd-at-steps|%.2f|sampler=" + dula + "}; GWG " +
				"{dlp-figure-4-steps|log-mmd-at-steps|%.2f|sampler=gwg}",
			Claims: after5000.below("", dmala4, dula, "gwg", gibbs1)},
		{Of: "the same", Shows: "on a machine that has learned images", Command: "rbm --data digits --hidden 500 " +
			"--learning-rate 0.001 --chains 100 --steps 300 --warm-up 0 --samplers " +
			"rbm-gibbs," + gibbs1 + ",gwg," + dula +
			"," + dmala4, Paper: "the same, on MNIST", Here: "{dlp-figure-4-digits|log-mmd-at-steps|%.2f|sampler=" +
			dmala4 + "}, {dlp-figure-4-digits|log-mmd-at-steps|%.2f|sampler=" + dula + "}; GWG " +
			"{dlp-figure-4-digits|log-mmd-at-steps|%.2f|sampler=gwg}",
			Claims: join(digits.below("", dmala4, dula, "gwg", gibbs1), digits.below("", dula, "gwg", gibbs1))},
		{Of: "DLP figure 5a", Shows: "learning an Ising model", Command: "learn ising --repeats 5",
			Paper: "DMALA and DULA below GWG and Gibbs", Here: "[table](../measured/laboratory.md#learning-an-ising-" +
				"model)", Claims: learned},
		{Of: "DLP figure 5b", Shows: "the same by seconds", Command: "learn ising --repeats 5",
			Paper: "DMALA and DULA below GWG and Gibbs",
			Here: "at the seconds of the whole training with Gibbs, which is cheap in compiled code, the others have " +
				"hardly begun: [table](../measured/laboratory.md#learning-an-ising-model)",
			Claims: faster},
		{Of: "DLP figure 5c", Shows: "the same by steps of an update", Command: "learn ising --repeats 5",
			Paper: "DMALA and DULA below GWG at each, more so at few steps",
			Here: "at 1 step DMALA {learn-ising|log-rmse|%.3f|sampler=dmala:step-size=0.4;steps=1}, GWG " +
				"{learn-ising|log-rmse|%.3f|sampler=gwg;steps=1}; at 25 " +
				"{learn-ising|log-rmse|%.3f|sampler=dmala:step-size=0.4;steps=25}, " +
				"{learn-ising|log-rmse|%.3f|sampler=gwg;steps=25}",
			Claims: fewer},
		{Of: "DLP figures 6, 10, table 3", Shows: "text infilling", Command: "infill eval --preset dlp",
			Paper: "self-BLEU: DMALA and DULA below GWG below Gibbs", Here: "Gibbs {infilling|self-bleu|%.1f|" +
				"sampler=gibbs:paper}, GWG {infilling|self-bleu|%.1f|sampler=gwg:paper}, DULA " +
				"{infilling|self-bleu|%.1f|sampler=dula:paper}, DMALA " +
				"{infilling|self-bleu|%.1f|sampler=dmala:paper}, " +
				"by `lab infilling --run DIR`; but the start of the chains has the least " +
				"([why](../measured/evaluation.md#what-it-says)); on BERT-base: `infill models pull " +
				"google-bert/bert-base-uncased`, `-m google-bert/bert-base-uncased`",
			Claims: join(infilling.below("", "gwg:paper", "gibbs:paper"),
				infilling.below("", "dula:paper", "gibbs:paper", "gwg:paper"),
				infilling.below("", "dmala:paper", "gibbs:paper", "gwg:paper"))},
		{Of: "the same", Shows: "on BERT-large", Command: "infill eval --preset dlp -m google-bert/bert-large-uncased",
			Paper: "none", Here: "the command runs; its model is 15 times the built-in one", Without: "needs a card"},
		{Of: "DLP figure 7", Shows: "other couplings", Command: "--preset dlp-figure-7", Paper: "DMALA leads at all",
			Here: "[table](../measured/laboratory.md#the-figures-of-the-discrete-langevin-paper)", Claims: couplings},
		{Of: "the same", Shows: "by seconds", Command: "--preset dlp-figure-7", Paper: "DMALA leads",
			Here: "Gibbs is cheap in compiled code",
			Claims: join(seconds7.below("part=coupling 0.1", dmala8, gibbs1+",steps=125000"),
				seconds7.below("part=coupling 0.15", dmala8, gibbs1+",steps=125000"),
				seconds7.below("part=coupling 0.2", dmala8, gibbs1+",steps=125000"),
				seconds7.below("part=coupling 0.25", dmala8, gibbs1+",steps=125000"))},
		{Of: "DLP figure 8", Shows: "pictures of an RBM's samples", Command: "rbm --data digits --samplers " +
			"rbm-gibbs,gibbs,gwg,dula:step-size=0.2,dmala:step-size=0.4 -o DIR",
			Paper: "DMALA and DULA look like block Gibbs", Here: "all look alike on 64 pixels, Gibbs too",
			Without: "pictures"},
		{Of: "DLP figure 9", Shows: "pictures of deep energies' samples", Command: "learn images -o DIR",
			Paper: "DMALA's look like data", Here: "digits for GWG and DMALA", Without: "pictures"},
		{Of: "DLP table 1", Shows: "likelihood of deep energies", Command: "learn images --repeats 5",
			Paper: "DMALA > GWG > DULA ≫ Gibbs", Here: "{learn-images|test-ll|%.2f|sampler=dmala:step-size=0.3}, " +
				"{learn-images|test-ll|%.2f|sampler=gwg}, {learn-images|test-ll|%.2f|sampler=" + dula + "}, " +
				"{learn-images|test-ll|%.2f|sampler=" + gibbs1 + "} nats",
			Claims: join(images.above("", "dmala:step-size=0.3", "gwg"), images.above("", "gwg", dula),
				images.above("", dula, gibbs1))},
		{Of: "DLP table 2", Shows: "binary Bayesian networks", Command: "networks --data diabetes,election --repeats 5",
			Paper: "DMALA, DULA ≫ GWG > Gibbs",
			Here:  "[table](../measured/laboratory.md#binary-bayesian-networks)", Claims: posteriors("", "diabetes",
				"election", "breast-cancer")},
		{Of: "the same", Shows: "inputs from 0 to 1, as the paper's",
			Command: "networks --inputs unit --data diabetes,election --repeats 5",
			Paper:   "the same", Here: "[table](../measured/laboratory.md#binary-bayesian-networks)",
			Claims: posteriors("-unit", "diabetes", "election")},
		{Of: "DLP table 4", Shows: "batches of the gradient", Command: "networks --data diabetes,election --repeats 5",
			Paper: "larger batches are better",
			Here:  "[table](../measured/laboratory.md#binary-bayesian-networks)", Claims: batches},
		{Of: "GWG algorithm 1", Shows: "one slot by gradient", Command: gwgCommand,
			Paper: "better than Gibbs by steps", Here: "ESS of 1,000 steps {gwg|ess|%.1f|sampler=gwg:balance=sqrt} " +
				"against {gwg|ess|%.1f|sampler=gibbs}",
			Claims: family{"gwg", "ess", "sampler"}.above("", "gwg:balance=sqrt", "gibbs")},
		{Of: "GWG, fixed q(i)", Shows: "each slot proposed with the same probability", Command: gwgCommand,
			Paper: "slow: q(i) should know which slots are likely to flip",
			Here: "ESS of 1,000 steps {gwg|ess|%.1f|sampler=gwg:gradient=none}, with the gradient " +
				"{gwg|ess|%.1f|sampler=gwg:balance=sqrt}",
			Claims: family{"gwg", "ess", "sampler"}.above("", "gwg:balance=sqrt", "gwg:gradient=none")},
		{Of: "GWG, τ = 2", Shows: "the balance of the proposal", Command: gwgCommand, Paper: "acceptance near 1",
			Here: "{gwg|acceptance|%.3f|sampler=gwg:balance=sqrt}; " +
				"{gwg|acceptance|%.3f|sampler=gwg:balance=1} for τ = 1",
			Claims: []Claim{{"acceptance of τ = 1 below", "gwg", "acceptance", labelsOf("sampler=gwg:balance=1"),
				labelsOf("sampler=gwg:balance=sqrt")}}},
		{Of: "GWG, sampling", Shows: "relaxations on an RBM", Command: "--preset dlp-figure-4",
			Paper: "they fail above 200 slots", Here: "GWG {dlp-figure-4|log-mmd-at-steps|%.2f|sampler=gwg}, R-HMC " +
				"{dlp-figure-4|log-mmd-at-steps|%.2f|sampler=" + rhmc4 + "}, R-MALA " +
				"{dlp-figure-4|log-mmd-at-steps|%.2f|sampler=" + rmala4 + "}, D-SVGD " +
				"{dlp-figure-4|log-mmd-at-steps|%.2f|sampler=" + dsvgd4 + "}: the best of " +
				"`--preset dlp-figure-4-grid`",
			Claims: figure4.below("", "gwg", rhmc4, rmala4, dsvgd4)},
		{Of: "the same", Shows: "an Ising model, at the sizes of the authors' program", Command: latticeCommand,
			Paper: "GWG ahead of Gibbs and Hamming ball, by steps", Here: "ESS of 1,000 steps: GWG " +
				"{gwg-ising|ess|%.1f|sampler=gwg}, Hamming ball {gwg-ising|ess|%.1f|sampler=" + hb + "}, Gibbs " +
				"{gwg-ising|ess|%.1f|sampler=" + gibbs1 + "}",
			Claims: lattice10.above("", "gwg", gibbs1, "gibbs-x:block=2", hb)},
		{Of: "GWG, FHMM", Shows: "posterior of hidden chains", Command: "fhmm --chains 8 --steps 2000 " + hiddenFlags,
			Paper:  "GWG ahead of Gibbs and Hamming ball, by steps",
			Here:   "[table](../measured/laboratory.md#hidden-chains)",
			Claims: hidden.below("", "gwg", "gibbs", "gibbs-x:block=2", hb)},
		{Of: "the same", Shows: "at the sizes of the authors' program",
			Command: "fhmm --chains 100 --steps 5000 " + hiddenFlags, Paper: "the same",
			Here:   "[table](../measured/laboratory.md#hidden-chains)",
			Claims: hidden100.below("", "gwg", "gibbs", "gibbs-x:block=2", hb)},
		{Of: "GWG, Ising learning", Shows: "lattice", Command: "learn ising --repeats 5",
			Paper: "GWG better than Gibbs",
			Here:  "as figure 5", Claims: lattice},
		{Of: "GWG, Ising learning", Shows: "random graph",
			Command: "learn ising --graph random --steps 1,5 --repeats 5",
			Paper:   "GWG better than Gibbs", Here: "[table](../measured/laboratory.md#learning-an-ising-model)",
			Claims: join(graph.below("steps=1", "gwg", "gibbs"), graph.below("steps=5", "gwg", "gibbs"))},
		{Of: "GWG, contacts", Shows: "Potts model of proteins", Command: "learn contacts --repeats 5",
			Paper: "GWG finds more contacts than Gibbs", Here: "[table](../measured/laboratory.md#contacts)",
			Claims: contacts},
		{Of: "GWG, deep energies", Shows: "binary images", Command: "learn images --repeats 5", Paper: "GWG ≫ Gibbs",
			Here: "as DLP table 1", Claims: images.above("", "gwg", gibbs1)},
		{Of: "GWG, likelihoods", Shows: "annealed importance sampling", Command: "ais", Paper: "log-likelihoods",
			Here:    "[how often intervals hold](../measured/laboratory.md#log-likelihoods)",
			Without: "the paper has no order"},
		{Of: "GWG, grey images", Shows: "energies over 256 categories", Command: "learn images --levels 17 " +
			"--learning-rate 0.0002 --repeats 5 --samplers gwg,dula:step-size=0.2,dmala:step-size=0.3",
			Paper: "on a par with other models", Here: "digits of 17 greys: GWG " +
				"{learn-images-grey|test-ll|%.1f|sampler=gwg}, DMALA " +
				"{learn-images-grey|test-ll|%.1f|sampler=dmala:step-size=0.3}, independent pixels " +
				"{learn-images-grey|independent|%.1f|sampler=gwg} nats",
			Without: "the paper has no order of samplers"},
		{Of: "GWG, text", Shows: "energies of sentences", Command: "learn text --repeats 5",
			Paper: "20 of 10,000 words: autoregressive −74, GWG −77, categorical −100 nats; Gibbs takes too long",
			Here: "12 of 200 words: bigrams {learn-text|test-ll|%.2f|sampler=bigrams}, GWG " +
				"{learn-text|test-ll|%.2f|sampler=gwg}, independent {learn-text|test-ll|%.2f|sampler=independent}, " +
				"Gibbs, which is cheap here, {learn-text|test-ll|%.2f|sampler=gibbs}",
			Claims: join(text.above("", "bigrams", "gwg"), text.above("", "gwg", "independent", "gibbs"))},
		{Of: "ARM algorithm 1", Shows: "unbiased gradient of bits", Command: "arm gradients --repeats 5",
			Paper: "unbiased", Here: "the sum over all noise is the exact gradient",
			Test: "cmd/lab/internal/lab TestEstimatorBias"},
		{Of: "ARM, derivation", Shows: "the steps before ARM", Command: "arm gradients --repeats 5",
			Paper: "each step lowers the variance", Here: "of a draw: [ARM](../measured/laboratory.md#arm)",
			Claims: merges},
		{Of: "ARM, proposition", Shows: "variance below that of AR with any constant baseline",
			Command: "arm gradients --repeats 5", Paper: "guaranteed",
			Here: "of a draw: [ARM](../measured/laboratory.md#arm)", Claims: draws},
		{Of: "the same", Shows: "at equal evaluations", Command: "arm gradients --repeats 5",
			Paper: "a draw of ARM takes two",
			Here:  "two draws of AR have the mean of all estimates before as their baseline", Claims: variances},
		{Of: "ARM, example, figures 2, 3", Shows: "gradient and probability over steps", Command: "arm toy",
			Paper: "ARM follows the exact gradient, REINFORCE does not", Here: "[ARM](../measured/laboratory.md#arm)",
			Claims: ascents},
		{Of: "ARM tables 2, 3, figures 5, 6", Shows: "discrete VAEs", Command: "arm vae --repeats 5",
			Paper: "ARM below all others", Here: "[all three structures](../measured/laboratory.md#arm)",
			Claims: autoencoders},
		{Of: "ARM table 4, figure 4", Shows: "lower half of a digit from the upper",
			Command: halvesCommand, Paper: "ARM 57.9, others 58.7 to 72.0",
			Here: "ARM {arm-vae-halves|nll|%.2f|estimator=arm} nats, straight-through " +
				"{arm-vae-halves|nll|%.2f|estimator=straight-through}, annealed " +
				"{arm-vae-halves|nll|%.2f|estimator=annealed-st}, DARN {arm-vae-halves|nll|%.2f|estimator=darn}",
			Claims: halves.below("structure=halves", "arm", "reinforce", "muprop", "straight-through", "annealed-st",
				"darn", "st-gumbel")},
		{Of: "ARM, multiple layers", Shows: "gradient through two layers",
			Command: "arm vae --structures two-layers --repeats 5",
			Paper:   "ARM best on Omniglot", Here: "as tables 2, 3",
			Claims: vae.below("structure=two-layers", "arm", others...)},
		{Of: "ARM, future work", Shows: "categories", Command: "arm gradients --target potts:size=2x2", Paper: "none",
			Here: "unbiased", Test: "cmd/lab/internal/lab TestEstimators"},
	}
}

// Labels that several rows name.
const (
	partESS = "effective sample size per second"
	rmala3  = "r-mala:step-size=0.2,smoothing=0.5"
	rhmc3   = "r-hmc:step-size=0.3,smoothing=0.1"
	dsvgd3  = "d-svgd:step-size=0.5,smoothing=1"
	rmala4  = "r-mala:step-size=0.2,smoothing=0.5"
	rhmc4   = "r-hmc:step-size=0.2,smoothing=0.5"
	dsvgd4  = "d-svgd:step-size=0.3,smoothing=0.5"
	// Of table 4 and beside it; LeGrad takes an evaluation for each bit.
	halvesCommand = "arm vae --structures halves --updates 5000 --repeats 5 --estimators " +
		"arm,reinforce,leave-one-out,muprop,straight-through,annealed-st,darn,st-gumbel"
	hiddenFlags    = "--initial independent --samplers gibbs,gibbs-x:block=2," + hb + ",gwg,gwg-x:radius=5,dmala"
	latticeCommand = "ising --size 10x10 --coupling 0.1 --field 0 --chains 100 --steps 5000 --warm-up 0 --samplers " +
		gibbs1 + ",gibbs-x:block=2," + hb + ",gwg,gwg-x:radius=3,gwg-x:radius=5"
	gwgCommand = "ising --samplers gibbs,gwg:balance=sqrt,gwg:balance=1,gwg:gradient=none"
)

func join(lists ...[]Claim) (all []Claim) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// posteriors has the claims about binary Bayesian networks, in the results with
// a suffix.
func posteriors(suffix string, tables ...string) (list []Claim) {
	for _, data := range tables {
		of := family{"networks" + suffix, "train-ll", "sampler"}
		if data == "breast-cancer" { // it has fewer chains and steps
			of.results = "networks-breast-cancer"
		}
		list = append(list, of.above("data="+data, "dmala:step-size=0.2", "gwg")...)
		list = append(list, of.above("data="+data, dula, "gwg")...)
		list = append(list, of.above("data="+data, "gwg", gibbs1)...)
	}
	return list
}

// brief leaves out where the claims are about.
func brief(claims []Claim) []Claim {
	for i := range claims {
		claims[i].Text, _, _ = strings.Cut(claims[i].Text, " (")
	}
	return claims
}

// renamed gives the claims other texts.
func renamed(claims []Claim, texts ...string) []Claim {
	for i := range claims {
		claims[i].Text = texts[i]
	}
	return claims
}
