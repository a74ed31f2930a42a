package papers

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Sentences and figures of the discrete Langevin paper that several rows name.
const (
	fastest = "7.1, figure 3: “DMALA is the fastest to converge in terms of both runtime and iterations”"
	faster  = "7.2, figure 4: DULA and DMALA “converge remarkably faster than baselines in both iterations and " +
		"runtime”"
	connects = "I.2, figure 7: at the same time, “DMALA outperforms other methods on all connectivity strength”"
)

// table2 has the columns of one measure of DLP's table 2, and table4 those of
// table 4.
func networksTable(number, measure string) paperTable {
	return paperTable{"table " + number + ", " + measure, []string{"COMPAS", "News", "Adult", "Blog"},
		func(set, method string) Place { return Place{"DLP", number, set, measure + ", " + method} }}
}

// posteriors has the claims of DLP's table 2 about a data set here, which stands
// for all four of the paper.
func posteriors(results string, data ...string) (list []Claim) {
	for _, one := range data {
		list = append(list, measured("2", results, one, method{"Gibbs", gibbs1}, method{"GWG", "gwg"},
			method{"DULA", dula}, method{"DMALA", dmala2})...)
	}
	return list
}

// measured has the claims of a table of DLP about both of its measures.
func measured(number, results, data string, methods ...method) (list []Claim) {
	for _, column := range []struct{ here, paper string }{
		{"train-ll", "training log-likelihood"}, {"test-rmse", "test RMSE"}} {
		of := networksTable(number, column.paper).pairs(family{results, column.here, "sampler"}, "data="+data,
			methods...)
		for i := range of {
			of[i].Text = withoutPlace(of[i].Text) + " (" + data + " " + column.here + ")"
		}
		list = append(list, of...)
	}
	return list
}

// A textColumn is a column of DLP's table 3, with its name here.
type textColumn struct{ paper, here string }

var textColumns = []textColumn{
	{"self-BLEU", "self-bleu"},
	{"unique 2-grams, self", "self-2"}, {"unique 3-grams, self", "self-3"},
	{"unique 2-grams, WT103", "wt103-2"}, {"unique 3-grams, WT103", "wt103-3"},
	{"unique 2-grams, TBC", "tbc-2"}, {"unique 3-grams, TBC", "tbc-3"},
	{"corpus BLEU", "bleu"},
}

// The methods of DLP's table 3: with the paper's settings, and with those of the highest
// mean U in a grid over α and the balance.
var (
	asInPaper = []method{{"Gibbs", "gibbs:paper"}, {"GWG", "gwg:paper"}, {"DULA", "dula:paper"},
		{"DMALA", "dmala:paper"}}
	bestOfGrid = []method{{"Gibbs", "gibbs:paper"}, {"GWG", "gwg:paper,balance=0.75"}, {"DULA", "dula:paper"},
		{"DMALA", "dmala:paper"}}
)

// textClaims has the claims of some columns of DLP's table 3, for which one model
// here stands: it is neither of the paper's two.
func textClaims(results string, methods []method, columns []textColumn) (list []Claim) {
	for _, column := range columns {
		t := paperTable{"table 3, " + column.paper, []string{"BERT-base", "BERT-large"},
			func(set, method string) Place { return Place{"DLP", "3", set + ", " + method, column.paper} }}
		of := t.pairs(family{results, column.here, "sampler"}, "", methods...)
		for i := range of {
			of[i].Text += " (" + column.paper + ")"
		}
		list = append(list, of...)
	}
	return list
}

// similarBLEU has what DLP says in words of the last column of table 3.
func similarBLEU() (list []Claim) {
	const margin = 2 // the largest difference in the paper that it calls similar, 23.82 less 21.82
	f := family{"infilling", "bleu", "sampler"}
	for _, one := range []string{"dula:paper", "dmala:paper"} {
		list = append(list, f.similar("table 3: DULA and DMALA have “a similar level of quality as Gibbs and GWG "+
			"(measured by Corpus BLEU)”", "", margin, one, "gibbs:paper", "gwg:paper")...)
	}
	return list
}

// textRows has the four rows of a model in DLP's table 3, without the n-grams.
func textRows(model string) string {
	var parts []string
	for _, column := range []string{"self-BLEU", "corpus BLEU"} {
		var values []string
		for _, method := range []string{"Gibbs", "GWG", "DULA", "DMALA"} {
			number := Numbers()[Place{"DLP", "3", model + ", " + method, column}]
			values = append(values, fmt.Sprintf("%s %.2f", method, number.Value))
		}
		parts = append(parts, column+" of "+strings.Join(values, ", "))
	}
	return "table 3: " + strings.Join(parts, "; ") + "; and unique n-grams"
}

// cost claims that a step of one sampler takes so many times the seconds of
// another's, within a quarter.
func cost(text, place, one, other string, times float64) Claim {
	f := family{"cost", "seconds", "sampler"}
	c := Claim{Text: text, Place: place, Stated: true, Low: f.cell("", one), High: f.cell("", other),
		Margin: math.Log(1.25), Shift: math.Log(times)}
	c.Low.Log = true
	c.High.Log = true
	return c
}

func rowsDLP() []Row {
	const preconditioned = "dula:step-size=0.5,preconditioner=1000/0.001"
	var plain []string
	for _, alpha := range []string{"0.0005", "0.01", "1", "500"} {
		plain = append(plain, "dula:step-size="+alpha)
	}
	figure2 := family{"dlp-figure-2", "ess-by-second", "sampler"}
	steps2 := family{"dlp-figure-2", "ess", "sampler"}
	accepted2 := family{"dlp-figure-2", "acceptance", "sampler"}
	figure3 := family{"dlp-figure-3", "log-rmse-at-steps", "sampler"}
	seconds3 := family{"dlp-figure-3", "log-rmse-at-seconds", "sampler"}
	accepted3 := family{"dlp-figure-3", "acceptance", "sampler"}
	all3 := []string{hb, gibbs1, "gibbs", lb, "gwg", gwg4, dula4, rmala3, rhmc3, dsvgd3}
	ising := family{"learn-ising", "log-rmse", "sampler"}
	secondsIsing := family{"learn-ising", "log-rmse-at-seconds", "sampler"}
	toLevel := family{"learn-ising", "seconds-to-level", "sampler"}
	figure7 := family{"dlp-figure-7", "log-rmse-at-steps", "sampler"}
	seconds7 := family{"dlp-figure-7", "log-rmse-at-seconds", "sampler"}
	appendixH := family{"dlp-appendix-h", "log-rmse-at-steps", "sampler"}

	var couplings, couplingsBySeconds []Claim
	for _, coupling := range []string{"0.1", "0.15", "0.2", "0.25"} {
		others := []string{gibbs1 + ",steps=125000", "gwg", "dula:step-size=0.4,steps=125000"}
		couplings = append(couplings, figure7.below(connects, "part=coupling "+coupling, dmala8, others...)...)
		couplingsBySeconds = append(couplingsBySeconds,
			seconds7.below(connects, "part=coupling "+coupling, dmala8, others...)...)
	}
	const (
		figure5a = "7.3.1, figure 5a: “DMALA and DULA always have smaller RMSE than baselines given the same number " +
			"of " +
			"iterations”"
		figure5b = "7.3.1, figure 5b: “a log-RMSE of −5.0 in 800s, while the baseline methods fail to reach −5.0 in " +
			"1,400s”"
		figure5c = "7.3.1, figure 5c: “DMALA and DULA outperform GWG consistently”; that fewer steps make more of " +
			"it is not judged"
	)
	var learned, bySeconds, sooner, fewer, diverged []Claim
	for _, n := range []string{"1", "5", "25"} {
		for _, one := range []string{dmala4, dula} {
			learned = append(learned, ising.below(figure5a, "steps="+n, one, "gibbs", "gwg")...)
			bySeconds = append(bySeconds, secondsIsing.below(figure5b, "steps="+n, one, "gibbs", "gwg")...)
			sooner = append(sooner, toLevel.below(figure5b, "steps="+n, one, "gibbs", "gwg")...)
			fewer = append(fewer, ising.below(figure5c, "steps="+n, one, "gwg")...)
		}
		diverged = append(diverged, Claim{Text: "couplings of 0 below gibbs (steps " + n + ")", Stated: true,
			Place: "7.3.1: Gibbs-1 “diverges with less than 100 steps”",
			Low:   Cell{Given: 0}, High: family{"learn-ising", "above-zero", "sampler"}.cell("steps="+n, "gibbs")})
	}
	energies := paperTable{"table 1", []string{"Static MNIST", "Dynamic MNIST", "Omniglot", "Caltech Silhouettes"},
		func(set, method string) Place { return Place{"DLP", "1", set, method} }}
	images := energies.pairs(family{"learn-images", "test-ll", "sampler"}, "", method{"EBM (Gibbs)", gibbs1},
		method{"EBM (GWG)", "gwg"}, method{"EBM (DULA)", dula}, method{"EBM (DMALA)", dmala3})
	full := method{"full-batch(DULA)", dula}
	hundred := method{"batchsize=100", dula + ",terms=100"}
	ten := method{"batchsize=10", dula + ",terms=10"}
	fiveHundred := method{"batchsize=500", dula + ",terms=500"}
	larger := func(results, data, one string, others ...string) []Claim {
		list := family{results, "train-ll", "sampler"}.above("I.5: “the performance increases as the batch size "+
			"becomes "+
			"larger”", "data="+data, one, others...)
		names := map[string]string{dula: "all", hundred.here: "100", ten.here: "10", fiveHundred.here: "500"}
		inPaper := map[string]method{dula: full, hundred.here: hundred, ten.here: ten, fiveHundred.here: fiveHundred}
		for i, other := range others {
			list[i].Text = names[one] + " above " + names[other] + " (" + data + ")"
			t := networksTable("4", "training log-likelihood")
			for _, set := range t.sets {
				list[i].Sets = append(list[i].Sets, Set{set, t.cell(set, inPaper[other].paper), t.cell(set,
					inPaper[one].paper)})
			}
		}
		return list
	}
	const sizesRBM = "random weights, not a machine trained on MNIST"
	const smallNetworks = "100 hidden units for 500, 10 chains for 50, 200 steps for 1,000; three tables of ours " +
		"for four"
	rbmClaims := func(results, number, place string) []Claim {
		f := family{results, number, "sampler"}
		return join(f.below(place, "", dmala4, "gwg", gibbs1), f.below(place, "", dula, "gwg", gibbs1))
	}
	lowest := func(results string) []Claim {
		return family{results, "log-mmd-at-steps", "sampler"}.below("7.2: “DMALA reaches the lowest MMD (≈ −6.5) "+
			"among all "+
			"the methods after 5,000 iterations”", "", dmala4, dula, "gwg", gibbs1)
	}
	const textCommand = "infill eval --preset dlp --samplers gibbs:paper,gwg:paper,dula:paper,dmala:paper --tbc " +
		"tbc.5k.txt " +
		"--wt103 wiki103.5k.txt"
	const gridCommand = "infill eval --preset dlp --max-tokens 12 --samplers gibbs:paper,gwg:paper,dula:paper," +
		"dmala:paper,dula:paper,step-size=0.05,dula:paper,step-size=0.2,dula:paper,step-size=0.3,dula:paper," +
		"step-size=0.5,dmala:paper,step-size=0.05,dmala:paper,step-size=0.1,dmala:paper,step-size=0.3,dmala:paper," +
		"step-size=0.5,gwg:paper,balance=0.75,gwg:paper,balance=1,gwg:paper,balance=ratio --tbc tbc.5k.txt --wt103 " +
		"wiki103.5k.txt -o grid"

	return []Row{
		{Of: "DLP algorithms 1, 2", Shows: "DULA, DMALA",
			Command: "ising --samplers dula:step-size=0.4,dmala:step-size=0.8", Paper: "DMALA exact, DULA biased",
			Here: "transition matrices agree with equation 2", Test: "samplers TestTransitionMatrix"},
		{Of: "DLP appendix B", Shows: "one-hot and ordinal slots", Command: "table --samplers dmala,dmala-ordinal",
			Paper: "both", Here: "both, and exact", Test: "samplers TestTransitionMatrix"},
		{Of: "DLP appendix C", Shows: "infinite domains",
			Paper: "a window of ±1",
			Here:  "numbers without an end in a test: DMALA leaves exp U as it is, DULA does not",
			Test:  "cmd/lab/internal/chains TestWindowed"},
		{Of: "DLP appendix D", Shows: "no term in α: hardly accepted", Smaller: sizesRBM,
			Here: "acceptance {dlp-appendix-d|acceptance|%.3f|sampler=dmala:step-size=inf}, " +
				"{dlp-appendix-d|acceptance|%.3f|sampler=dmala:step-size=0.4} with it",
			Claims: renamed(family{"dlp-appendix-d", "acceptance", "sampler"}.below("D: acceptance 0.005 % without "+
				"the term, "+
				"51 % with it", "", "dmala:step-size=inf", dmala4), "acceptance without it below")},
		{Of: "DLP theorem 5.1, figure 1a", Shows: "bias of DULA",
			Paper: "falls as exp(−1/(2α)), below a bound", Here: "[exact laws](../measured/laboratory.md#the-figures-" +
				"of-the-discrete-langevin-paper)",
			Exact: []Exact{{"below the bound", "dlp-figure-1", labelsOf("bias=2 × 2 Ising model by α"), "exact",
				"bound"}}},
		{Of: "DLP theorem 5.2, figure 1b", Shows: "bias by ε, the counterexample",
			Paper: "grows with ε", Here: "from {dlp-figure-1|exact|%.3f|bias=a = 1, b = 0.1 by ε;at=0} to " +
				"{dlp-figure-1|exact|%.2f|bias=a = 1, b = 0.1 by ε;at=1} at ε = 1",
			Exact: []Exact{{"it grows", "dlp-figure-1", labelsOf("bias=a = 1, b = 0.1 by ε"), "exact", ""}}},
		{Of: "DLP theorem 6.1", Shows: "bias of stochastic gradients",
			Paper: "at most 2σ exp(−1/(2α) + L)", Here: "far below",
			Exact: []Exact{{"below the bound", "dlp-figure-1", labelsOf("bias=2 × 2 Ising model by α"), "stochastic",
				"bound-6.1"}}},
		{Of: "DLP section 6, appendix H", Shows: "preconditioned sampler",
			Here: "{dlp-appendix-h|log-rmse-at-steps|%.2f|sampler=" +
				preconditioned + "}; without at α = 0.01 {dlp-appendix-h|log-rmse-at-steps|%.2f|sampler=" +
				"dula:step-size=0.01}, at α = 500, where the second spin turns every step, " +
				"{dlp-appendix-h|log-rmse-at-steps|%.2f|sampler=dula:step-size=500}",
			Claims: renamed(appendixH.below("H: log RMSE −6.2, “whereas the standard DLP with any α can only "+
				"achieve around "+
				"−0.34”", "", preconditioned, plain...), "below plain DULA, α = 0.0005", "below plain DULA, α = 0.01",
				"below plain DULA, α = 1", "below plain DULA, α = 500")},
		{Of: "DLP figure 2, left", Shows: "acceptance where many slots move",
			Here: "DMALA proposes {dlp-figure-2|proposed|%.2f|sampler=dmala:step-size=1.2} slots at " +
				"{dlp-figure-2|acceptance|%.3f|sampler=dmala:step-size=1.2}, GWG-6 " +
				"{dlp-figure-2|proposed|%.2f|sampler=gwg-x:radius=6} at " +
				"{dlp-figure-2|acceptance|%.3f|sampler=gwg-x:radius=6}",
			Claims: brief(accepted2.above("7.1, figure 2: DMALA changes 6 slots at an acceptance of 52 %, GWG-6 has "+
				"43 %",
				"part="+moving, "dmala:step-size=1.2", "gwg-x:radius=6"))},
		{Of: "DLP figure 2, right", Shows: "ESS by seconds",
			Here: "DMALA {dlp-figure-2|ess-by-second|%.0f|sampler=" + dmala8 + ";part=" + partESS +
				"}, Gibbs by conditionals " +
				"{dlp-figure-2|ess-by-second|%.0f|sampler=gibbs;part=" + partESS + "}",
			Claims: brief(figure2.above("7.1, figure 2: in ESS a second, “DMALA significantly outperforms other "+
				"methods”",
				"part="+partESS, dmala8, hb, gibbs1, "gibbs", lb, "gwg", gwg4))},
		{Of: "the same", Shows: "ESS by steps",
			Here: "{dlp-figure-2|ess|%.1f|sampler=" + dmala8 + ";part=" + partESS + "} of 1,000 steps; GWG-4 " +
				"{dlp-figure-2|ess|%.1f|sampler=gwg-x:radius=4;part=" + partESS + "}",
			Claims: brief(steps2.above("7.1, figure 2, by steps in place of seconds", "part="+partESS, dmala8, hb,
				gibbs1,
				"gibbs", lb, "gwg", gwg4))},
		{Of: "DLP figure 3", Shows: "log RMSE, 5 × 5 Ising, by steps", Here: "at the paper's sizes: DMALA " +
			"{dlp-figure-3|log-rmse-at-steps|%.2f|sampler=" + dmala8 + "}, GWG-4 " +
			"{dlp-figure-3|log-rmse-at-steps|%.2f|sampler=gwg-x:radius=4}",
			Claims: figure3.below(fastest, "", dmala8, all3...)},
		{Of: "the same", Shows: "by run time", Here: "DMALA {dlp-figure-3|log-rmse-at-seconds|%.2f|sampler=" + dmala8 +
			"}, Gibbs by conditionals {dlp-figure-3|log-rmse-at-seconds|%.2f|sampler=gibbs}, R-HMC " +
			"{dlp-figure-3|log-rmse-at-seconds|%.2f|sampler=" + rhmc3 + "}",
			Claims: seconds3.below(fastest, "", dmala8, all3...)},
		{Of: "the same", Shows: "relaxations", Here: "R-HMC {dlp-figure-3|log-rmse-at-steps|%.2f|sampler=" + rhmc3 +
			"}, GWG-1 {dlp-figure-3|log-rmse-at-steps|%.2f|sampler=gwg}; they have the best settings of a grid",
			Claims: figure3.below("7.1, figure 3: relaxations are behind samplers “in the original discrete space”",
				"", "gwg",
				rmala3, rhmc3, dsvgd3)},
		{Of: "the same", Shows: "DULA beside LB-1 and GWG-1",
			Here: "DULA {dlp-figure-3|log-rmse-at-steps|%.2f|sampler=" +
				dula4 + "}, LB-1 {dlp-figure-3|log-rmse-at-steps|%.2f|sampler=lb-1}, GWG-1 " +
				"{dlp-figure-3|log-rmse-at-steps|%.2f|sampler=gwg}",
			Claims: join(figure3.similar("7.1: “DULA can achieve a similar result as LB-1 and GWG-1”", "", 0.25,
				dula4, lb, "gwg"),
				figure3.above("7.1: DULA is “worse than DMALA”", "", dula4, dmala8))},
		{Of: "the same", Shows: "acceptance of GWG-4", Here: "{dlp-figure-3|acceptance|%.3f|sampler=gwg-x:radius=4} " +
			"against " +
			"{dlp-figure-3|acceptance|%.3f|sampler=" + dmala8 + "}",
			Claims: accepted3.below("7.1: “GWG-4 underperforms because of a lower acceptance rate than DMALA”", "",
				gwg4, dmala8)},
		{Of: "DLP section 7", Shows: "cost of a step", Here: "seconds of 10 chains × 10,000 steps on the 5 × 5 " +
			"model: Gibbs-1 " +
			"{cost|seconds|%.2f|sampler=" + gibbs1 + "}, DULA {cost|seconds|%.2f|sampler=" + dula4 + "}, GWG " +
			"{cost|seconds|%.2f|sampler=gwg}, DMALA {cost|seconds|%.2f|sampler=" + dmala8 + "}",
			Smaller: "compiled code on one thread: a gradient costs more beside two energies than in PyTorch",
			Claims: []Claim{
				cost("DMALA within a quarter of 2.5 × Gibbs-1", "7: DMALA and GWG-1 cost “roughly 2.5x of Gibbs-1” "+
					"a step", dmala8,
					gibbs1, 2.5),
				cost("GWG within a quarter of 2.5 × Gibbs-1", "7: DMALA and GWG-1 cost “roughly 2.5x of Gibbs-1” a "+
					"step", "gwg",
					gibbs1, 2.5),
				cost("DMALA within a quarter of GWG", "7: DMALA “has a similar cost per step with GWG-1”", dmala8,
					"gwg", 1),
				cost("DULA within a quarter of Gibbs-1", "7: DULA “has a similar cost per step with Gibbs-1”",
					dula4, gibbs1, 1)}},
		{Of: "DLP figure 4", Shows: "MMD on an RBM, first 300 steps", Smaller: sizesRBM + "; 20 chains for 100",
			Here: "DMALA {rbm-random|log-mmd-at-steps|%.2f|sampler=" + dmala4 + "}, DULA " +
				"{rbm-random|log-mmd-at-steps|%.2f|sampler=" + dula +
				"}, GWG {rbm-random|log-mmd-at-steps|%.2f|sampler=gwg}",
			Claims: rbmClaims("rbm-random", "log-mmd-at-steps", faster)},
		{Of: "the same", Shows: "by run time", Smaller: sizesRBM + "; 20 chains for 100",
			Here: "DMALA {rbm-random|log-mmd-at-seconds|%.2f|sampler=" + dmala4 + "}, DULA " +
				"{rbm-random|log-mmd-at-seconds|%.2f|sampler=" + dula +
				"}, GWG {rbm-random|log-mmd-at-seconds|%.2f|sampler=gwg}",
			Claims: rbmClaims("rbm-random", "log-mmd-at-seconds", faster)},
		{Of: "the same", Shows: "after the paper's 5,000 steps", Smaller: sizesRBM + "; 20 chains for 100",
			Here: "DMALA {rbm-steps|log-mmd-at-steps|%.2f|sampler=" + dmala4 + "}, DULA " +
				"{rbm-steps|log-mmd-at-steps|%.2f|sampler=" + dula +
				"}, GWG {rbm-steps|log-mmd-at-steps|%.2f|sampler=gwg}; with the paper's 100 chains on one " +
				"machine DMALA {dlp-figure-4-steps|log-mmd-at-steps|%.2f|sampler=" + dmala4 + "}, DULA " +
				"{dlp-figure-4-steps|log-mmd-at-steps|%.2f|sampler=" + dula + "}, GWG " +
				"{dlp-figure-4-steps|log-mmd-at-steps|%.2f|sampler=gwg}",
			Claims: lowest("rbm-steps")},
		{Of: "the same", Shows: "after 5,000 steps, by run time", Smaller: sizesRBM + "; 20 chains for 100",
			Here: "DMALA {rbm-steps|log-mmd-at-seconds|%.2f|sampler=" + dmala4 + "}, DULA " +
				"{rbm-steps|log-mmd-at-seconds|%.2f|sampler=" + dula +
				"}, GWG {rbm-steps|log-mmd-at-seconds|%.2f|sampler=gwg}",
			Claims: rbmClaims("rbm-steps", "log-mmd-at-seconds", faster)},
		{Of: "the same", Shows: "on a machine that has learned images", Smaller: "64 pixels, 300 steps",
			Here: "DMALA {dlp-figure-4-digits|log-mmd-at-steps|%.2f|sampler=" + dmala4 + "}, DULA " +
				"{dlp-figure-4-digits|log-mmd-at-steps|%.2f|sampler=" + dula + "}, GWG " +
				"{dlp-figure-4-digits|log-mmd-at-steps|%.2f|sampler=gwg}",
			Claims: join(rbmClaims("dlp-figure-4-digits", "log-mmd-at-steps", faster),
				lowest("dlp-figure-4-digits")[:1])},
		{Of: "the same", Shows: "on that machine, by run time", Smaller: "64 pixels, 300 steps",
			Here:   "[table](../measured/laboratory.md#the-figures-of-the-discrete-langevin-paper)",
			Claims: rbmClaims("dlp-figure-4-digits", "log-mmd-at-seconds", faster)},
		{Of: "DLP figure 5a", Shows: "learning an Ising model", Smaller: "6 × 6 sites for 25 × 25, 1,000 updates " +
			"for 10,000",
			Here: "[table](../measured/laboratory.md#learning-an-ising-model)", Claims: learned},
		{Of: "DLP figure 5b", Shows: "the same by seconds", Smaller: "6 × 6 sites for 25 × 25, 1,000 updates for " +
			"10,000",
			Here:   "at the seconds of a whole training with Gibbs, the others have made few of their updates",
			Claims: bySeconds},
		{Of: "the same", Shows: "seconds to a log RMSE of −2.8", Smaller: "6 × 6 sites for 25 × 25, 1,000 updates " +
			"for 10,000",
			Here: "at 1 step DMALA {learn-ising|seconds-to-level|%.2f|sampler=dmala:step-size=0.4;steps=1}, DULA " +
				"{learn-ising|seconds-to-level|%.2f|sampler=dula:step-size=0.2;steps=1}, GWG " +
				"{learn-ising|seconds-to-level|%.2f|sampler=gwg;steps=1}, Gibbs " +
				"{learn-ising|seconds-to-level|%.2f|sampler=gibbs;steps=1}", Claims: sooner},
		{Of: "DLP figure 5c", Shows: "the same by steps of an update",
			Smaller: "as figure 5a, and 1, 5, 25 steps for 5 to 100",
			Here: "at 1 step DMALA {learn-ising|log-rmse|%.3f|sampler=dmala:step-size=0.4;steps=1}, GWG " +
				"{learn-ising|log-rmse|%.3f|sampler=gwg;steps=1}; at 25 " +
				"{learn-ising|log-rmse|%.3f|sampler=dmala:step-size=0.4;steps=25}, " +
				"{learn-ising|log-rmse|%.3f|sampler=gwg;steps=25}",
			Claims: fewer},
		{Of: "the same", Shows: "Gibbs-1 with few steps", Smaller: "6 × 6 sites for 25 × 25, 1,000 updates for 10,000",
			Here: "log RMSE less that of couplings of 0: {learn-ising|above-zero|%.3f|sampler=gibbs;steps=1} at 1 " +
				"step, " +
				"{learn-ising|above-zero|%.3f|sampler=gibbs;steps=25} at 25", Claims: diverged},
		{Of: "DLP figures 6, 10, table 3", Shows: "text infilling with BERT-base", Paper: textRows("BERT-base"),
			Command: textCommand + " -m google-bert/bert-base-uncased", Here: "not run: the weights are not ours to " +
				"give; " +
				"`infill models pull google-bert/bert-base-uncased` has them", Without: "needs the weights"},
		{Of: "the same", Shows: "with BERT-large", Paper: textRows("BERT-large"),
			Command: textCommand + " -m google-bert/bert-large-uncased", Here: "not run", Without: "needs the weights"},
		{Of: "the same", Shows: "with the built-in model, which is neither of them", Command: textCommand + " -o run",
			Smaller: "23 M weights for 110 and 340 M",
			Here: "self-BLEU: Gibbs {infilling|self-bleu|%.1f|sampler=gibbs:paper}, GWG " +
				"{infilling|self-bleu|%.1f|sampler=gwg:paper}, DULA {infilling|self-bleu|%.1f|sampler=dula:paper}, " +
				"DMALA " +
				"{infilling|self-bleu|%.1f|sampler=dmala:paper}; but the start of the chains has the least " +
				"([why](../measured/evaluation.md#what-it-says))",
			Claims: textClaims("infilling", asInPaper, textColumns[:1])},
		{Of: "the same", Shows: "n-grams and corpus BLEU with the built-in model",
			Command: textCommand + " -o run", Smaller: "23 M weights for 110 and 340 M",
			Here: "corpus BLEU: Gibbs {infilling|bleu|%.1f|sampler=gibbs:paper}, GWG " +
				"{infilling|bleu|%.1f|sampler=gwg:paper}, DULA {infilling|bleu|%.1f|sampler=dula:paper}, DMALA " +
				"{infilling|bleu|%.1f|sampler=dmala:paper}",
			Claims: join(textClaims("infilling", asInPaper, textColumns[1:]), similarBLEU())},
		{Of: "the same", Shows: "with the likeliest fills of a grid over α and the balance", Command: gridCommand,
			Smaller: "23 M weights for 110 and 340 M; sentences of 12 words at most",
			Here: "self-BLEU: Gibbs {infilling-grid|self-bleu|%.1f|sampler=" + bestOfGrid[0].here +
				"}, GWG at β = 0.75 {infilling-grid|self-bleu|%.1f|sampler=" + bestOfGrid[1].here +
				"}, DULA at α = 0.1 " +
				"{infilling-grid|self-bleu|%.1f|sampler=" + bestOfGrid[2].here + "}, DMALA at α = 0.2 " +
				"{infilling-grid|self-bleu|%.1f|sampler=" + bestOfGrid[3].here + "} " +
				"([the grid](../measured/evaluation.md#step-sizes-and-balances))",
			Claims: textClaims("infilling-grid", bestOfGrid, textColumns)},
		{Of: "DLP figure 7", Shows: "other couplings, by steps",
			Here: "[table](../measured/laboratory.md#the-figures-of-the-discrete-langevin-paper)", Claims: couplings},
		{Of: "the same", Shows: "by run time",
			Here: "[table](../measured/laboratory.md#the-figures-of-the-discrete-langevin-" +
				"paper)", Claims: couplingsBySeconds},
		{Of: "DLP figure 8", Shows: "pictures of an RBM's samples", Command: "rbm --data digits --samplers " +
			"rbm-gibbs,gibbs,gwg,dula:step-size=0.2,dmala:step-size=0.4 -o DIR",
			Paper: "DMALA and DULA look like block Gibbs", Here: "all look alike on 64 pixels, Gibbs too",
			Without: "pictures"},
		{Of: "DLP figure 9", Shows: "pictures of deep energies' samples", Command: "learn images -o DIR",
			Paper: "DMALA's look like data", Here: "digits for GWG and DMALA", Without: "pictures"},
		{Of: "DLP table 1", Shows: "likelihood of deep energies", Here: "{learn-images|test-ll|%.2f|sampler=" +
			dmala3 + "}, " +
			"{learn-images|test-ll|%.2f|sampler=gwg}, {learn-images|test-ll|%.2f|sampler=" + dula + "}, " +
			"{learn-images|test-ll|%.2f|sampler=" + gibbs1 + "} nats",
			Smaller: "digits of 64 pixels; 16 features and 4 blocks for 64 and 8, 500 updates for 50,000, 10 steps " +
				"for 40",
			Claims: images},
		{Of: "DLP table 2", Shows: "binary Bayesian networks", Smaller: smallNetworks,
			Here:   "[table](../measured/laboratory.md#binary-bayesian-networks)",
			Claims: posteriors("networks", "diabetes", "election")},
		{Of: "the same", Shows: "a third table, breast-cancer", Smaller: "5 chains for 50, 60 steps for 1,000",
			Here:   "[table](../measured/laboratory.md#binary-bayesian-networks)",
			Claims: posteriors("networks-breast-cancer", "breast-cancer")},
		{Of: "the same", Shows: "inputs from 0 to 1, as the paper's", Smaller: smallNetworks,
			Here:   "[table](../measured/laboratory.md#binary-bayesian-networks)",
			Claims: posteriors("networks-unit", "diabetes", "election")},
		{Of: "DLP table 4", Shows: "batches of the gradient", Smaller: smallNetworks,
			Here: "[table](../measured/laboratory.md#binary-bayesian-networks); 500 of the 755 examples of `election`",
			Claims: join(measured("4", "networks", "diabetes", ten, hundred, full), measured("4", "networks",
				"election", ten,
				hundred, full),
				slices.DeleteFunc(measured("4", "networks-500", "election", ten, hundred, fiveHundred, full),
					func(c Claim) bool {
						return c.Low.Where["sampler"] != fiveHundred.here && c.High.Where["sampler"] != fiveHundred.here
					}))},
		{Of: "DLP appendix I.5", Shows: "larger batches are better", Smaller: smallNetworks,
			Here: "[table](../measured/laboratory.md#binary-bayesian-networks)",
			Claims: join(larger("networks", "diabetes", dula, ten.here, hundred.here),
				larger("networks", "diabetes", hundred.here, ten.here),
				larger("networks", "election", dula, ten.here, hundred.here),
				larger("networks", "election", hundred.here, ten.here),
				larger("networks-500", "election", dula, fiveHundred.here),
				larger("networks-500", "election", fiveHundred.here, hundred.here, ten.here))},
	}
}
