package papers

import "slices"

// A Row is a line of the table of the papers.
type Row struct {
	Of, Shows string
	// Here says what came of it. In braces are numbers of the results, as
	// {learn-ising|log-rmse|%.3f|sampler=gwg;steps=5}.
	Here string
	// Smaller says what is smaller or weaker here than in the paper.
	Smaller string
	Claims  []Claim
	// Exact are orders of exact numbers, which need no repetitions.
	Exact []Exact
	// Test names the test that shows the row, in place of numbers.
	Test string
	// Without says why there is no verdict.
	Without string
	// Unjudged are claims of the paper that nothing here judges.
	Unjudged []Claim
	// Paper and Command are of rows without claims: what the paper has, and a
	// command. Those of other rows follow from the claims.
	Paper, Command string
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

// A NotRun is a number of a paper that no claim judges.
type NotRun struct {
	Table  string // as "DLP 1"
	Named  string // the row or the column
	Reason string
}

// NotJudged returns the numbers of the papers that no claim judges, with their
// reasons.
func NotJudged() []NotRun {
	const noVAE = "the laboratory's autoencoders have bits, and none has the Gaussian code of these"
	const bits = "bits a dimension of 256 levels; here are digits of 17 greys, and no autoencoder of greys"
	return []NotRun{
		{"DLP 1", "VAE (Conv)", noVAE},
		{"GWG deep energies", "VAE (MLP)", noVAE},
		{"GWG deep energies", "VAE (Conv)", noVAE},
		{"GWG deep energies", "RBM", "no machine here is learned for its likelihood of test images"},
		{"GWG deep energies", "DBN", "the laboratory has no deep belief network"},
		{"GWG deep energies", "Frey Faces", bits},
		{"GWG deep energies", "Histopathology", bits},
	}
}

// Labels of samplers that several rows name.
const (
	gibbs1  = "gibbs-x:block=1"
	gibbs2  = "gibbs-x:block=2"
	hb      = "hamming-ball:block=10,radius=1"
	lb      = "lb-1"
	dula    = "dula:step-size=0.2"
	dula4   = "dula:step-size=0.4"
	dmala2  = "dmala:step-size=0.2"
	dmala3  = "dmala:step-size=0.3"
	dmala4  = "dmala:step-size=0.4"
	dmala8  = "dmala:step-size=0.8"
	gwg4    = "gwg-x:radius=4"
	gwg5    = "gwg-x:radius=5"
	partESS = "effective sample size per second"
	moving  = "acceptance against slots changed"
	rmala3  = "r-mala:step-size=0.2,smoothing=0.5"
	rhmc3   = "r-hmc:step-size=0.3,smoothing=0.1"
	dsvgd3  = "d-svgd:step-size=0.5,smoothing=1"
	rmala4  = "r-mala:step-size=0.2,smoothing=0.5"
	rhmc4   = "r-hmc:step-size=0.2,smoothing=0.5"
	dsvgd4  = "d-svgd:step-size=0.3,smoothing=0.5"
)

// Rows returns the table of the papers. DLP is the discrete Langevin paper, GWG
// is the slides of Gibbs with Gradients, and ARM the slides of Yin and Zhou.
func Rows() []Row { return slices.Concat(rowsDLP(), rowsGWG(), rowsARM()) }

// Results lists the stored results that a row reads, in the order of its claims.
func (row Row) Results() (list []string) {
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	for _, c := range row.Claims {
		add(c.results()...)
	}
	for _, e := range row.Exact {
		add(e.Results)
	}
	return list
}

// Missing lists the runs whose results the row reads and all lacks.
func (row Row) Missing(all map[string]Results) (list []Run) {
	for _, name := range row.Results() {
		if _, found := all[name]; found {
			continue
		}
		run, known := runOf(name)
		if !known {
			run.Name = name
		}
		list = append(list, run)
	}
	return list
}

// commands lists the commands that make what the row reads.
func (row Row) commands() (list []string) {
	for _, name := range row.Results() {
		run, known := runOf(name)
		if known {
			list = append(list, run.Command)
		}
	}
	if row.Command != "" {
		list = append([]string{row.Command}, list...)
	}
	return list
}

func join(lists ...[]Claim) []Claim { return slices.Concat(lists...) }

// brief leaves out where the claims are about.
func brief(claims []Claim) []Claim {
	for i, c := range claims {
		claims[i].Text = withoutPlace(c.Text)
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
