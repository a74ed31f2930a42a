package chains

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// newIsing makes an Ising model on a torus, by default the 5 × 5 model of the
// discrete Langevin paper, section 7.1. The observables are the spins.
func newIsing(f *pflag.FlagSet) maker {
	size := lab.SizeFlag(f, lab.Size{Rows: 5, Columns: 5}, "rows and columns of the lattice")
	coupling := lab.NumberFlag(f, "coupling", 0.1, "", "a; negative is allowed")
	field := lab.NumberFlag(f, "field", 0.2, "", "b")
	own := f.String("couplings", "", "another model, a CSV `FILE`: site,other,coupling, and site,,field")
	lab.Instead(f, "couplings", "size", "coupling", "field")
	return func(ctx context.Context, in *lab.Inputs) (*distribution, error) {
		if *own != "" {
			m, err := lab.ReadAs(in, "couplings", *own, []string{"appendix-h"}, ".csv", parseCouplings)
			if err != nil {
				return nil, err
			}
			d := &distribution{kind: "ising", Target: targets.NewDenseIsing(m.weights, m.field),
				parameters: settings(f, "couplings"), observables: numbered(len(m.field), -1, 1)}
			for _, b := range m.field {
				d.independent = append(d.independent, lab.Bernoulli(logmath.Sigmoid(2*b)))
			}
			return d, d.settleSmall(ctx)
		}
		target, err := targets.NewIsing(size.Rows, size.Columns, *coupling, *field)
		if err != nil {
			return nil, err
		}
		a := *coupling
		b := *field
		sites := size.Sites()
		d := &distribution{kind: "ising", Target: target, parameters: settings(f, "size", "coupling", "field"),
			observables: numbered(sites, -1, 1),
			independent: slices.Repeat([][]float64{lab.Bernoulli(logmath.Sigmoid(2 * b))}, sites)}
		return d, d.settle(func() (string, []float64, error) {
			if b == 0 {
				return "symmetry under a flip of all spins", make([]float64, sites), nil
			}
			return d.lattice(ctx, torus{*size, [][]float64{{2 * a, -2 * a}, {-2 * a, 2 * a}}, []float64{-b, b}})
		})
	}
}

// newPotts makes a Potts model on a torus. The observables are the indicators
// of every state of every site.
func newPotts(f *pflag.FlagSet) maker {
	size := lab.SizeFlag(f, lab.Size{Rows: 4, Columns: 4}, "rows and columns of the lattice")
	coupling := lab.NumberFlag(f, "coupling", 0.5, "", "J; negative is allowed")
	given := lab.NumbersFlag(f, "field", []float64{0.2, 0, -0.2}, "h, a value for each state")
	own := f.String("couplings", "",
		"another model, a CSV `FILE`: site,state,other,state,coupling, and site,state,,,field")
	lab.Instead(f, "couplings", "size", "coupling", "field")
	return func(ctx context.Context, in *lab.Inputs) (*distribution, error) {
		var p *Protein
		var err error
		parameters := settings(f, "couplings")
		if *own != "" {
			p, err = lab.ReadAs(in, "couplings", *own, nil, "", parsePotts)
		} else {
			p, err = pottsTorus(*size, *coupling, *given)
			parameters = append(settings(f, "size", "coupling"), lab.Label{Name: "field", Value: lab.Joined(*given)})
		}
		if err != nil {
			return nil, err
		}
		d := &distribution{kind: "potts", Target: p, observables: indicators(p.categories), parameters: parameters}
		for law := range slices.Chunk(p.Field, p.States) { // law of each site by its field alone
			d.independent = append(d.independent, lab.Softmax(law))
		}
		if *own != "" {
			return d, d.settleSmall(ctx)
		}
		return d, d.settle(func() (string, []float64, error) {
			if slices.Min(*given) == slices.Max(*given) {
				means := slices.Repeat([]float64{1 / float64(p.States)}, len(d.observables))
				return "symmetry of the states", means, nil
			}
			edge := make([][]float64, p.States)
			for v := range edge {
				edge[v] = make([]float64, p.States)
				edge[v][v] = *coupling
			}
			return d.lattice(ctx, torus{*size, edge, *given})
		})
	}
}

// pottsTorus makes the Potts model U(θ) = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i] on
// a torus, with every edge once.
func pottsTorus(size lab.Size, coupling float64, field []float64) (*Protein, error) {
	n := size.Sites() * len(field)
	if n > maxPotts || len(field) > lab.MaxCategories {
		return nil, lab.Refuse("size", "%d sites of %d states: at most %d together", size.Sites(), len(field), maxPotts)
	}
	near, err := targets.Neighbours(size.Rows, size.Columns)
	if err != nil {
		return nil, err
	}
	p := NewProtein(size.Sites(), len(field))
	copy(p.Field, slices.Repeat(field, p.Sites))
	for i, list := range near {
		for _, k := range list {
			for v := range field {
				p.Couplings[(i*p.States+v)*n+k*p.States+v] = coupling
			}
		}
	}
	return p, nil
}

// newTable makes a table of random energies. The observables are the indicators
// of every category of every slot.
func newTable(f *pflag.FlagSet) maker {
	categories := lab.NumbersFlag(f, "categories", []int{4, 4, 4}, "number of categories of each slot")
	scale := lab.NumberFlag(f, "scale", 1, " above 0", "standard deviation of the energies, in nats")
	gradient := lab.NumberFlag(f, "gradient-error", 0, " of 0 or more", "standard deviation of the gradient's error")
	conditional := lab.NumberFlag(f, "conditional-error", 0, " of 0 or more",
		"standard deviation of the conditionals' energies from the others")
	terms := lab.WholeFlag(f, "terms", 1, 1, 1<<20, "terms of the energy, for stochastic gradients")
	own := lab.TargetSeed(f, "seed of the energies")
	file := f.String("energies", "", "another table, a CSV `FILE`: a category of each slot, from 0, and the energy")
	lab.Instead(f, "energies", "categories", "scale", "gradient-error", "conditional-error", "terms", "target-seed")
	return func(ctx context.Context, in *lab.Inputs) (*distribution, error) {
		states := lab.StatesOf(*categories)
		d := &distribution{kind: "table", inconsistent: *conditional > 0, parameters: settings(f, "categories", "scale",
			"gradient-error", "conditional-error", "terms", "target-seed")}
		var target *targets.Table
		var err error
		switch {
		case *file != "":
			d.inconsistent = false
			d.parameters = settings(f, "energies")
			target, err = lab.ReadAs(in, "energies", *file, nil, "", parseEnergies)
		// A table also has errors of its gradient.
		case states*float64(len(*categories)*slices.Max(*categories)**terms) > lab.MaxTable:
			err = lab.Refuse("categories", "%s give a table of %.3g states, too large to keep with its gradients: "+
				"take fewer or smaller slots", lab.Joined(*categories), states)
		default:
			target, err = targets.NewTable(*categories, samplers.Streams(*own, "table", 1)[0], targets.TableOptions{
				Scale: *scale, Terms: *terms, GradientError: *gradient, ConditionalError: *conditional})
		}
		if err != nil {
			return nil, err
		}
		d.Target = target
		d.observables = indicators(target.Categories())
		d.truth.method, d.truth.means, err = d.enumerate(ctx)
		return d, err
	}
}

// torus is a lattice whose sites all have the same categories. Its energy sums
// over pairs of neighbours, each edge once, and over single sites.
type torus struct {
	size lab.Size
	edge [][]float64 // energy of a pair of neighbours, [K][K], symmetric
	site []float64   // energy of a site, [K]
}

// lattice returns the exact means of a torus, from a list of its states if they
// are few, else by its transfer matrix.
func (d *distribution) lattice(ctx context.Context, t torus) (string, []float64, error) {
	if math.Pow(float64(len(t.site)), float64(t.size.Sites())) <= maxListed {
		return d.enumerate(ctx)
	}
	law, err := t.transferMatrix()
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errTooLarge, err)
	}
	means := make([]float64, len(d.observables))
	for i, o := range d.observables {
		means[i] = floats.Dot(o.value, law)
	}
	return "transfer matrix", means, nil
}

// maxListed is the largest number of states that lattice lists.
const maxListed = 1 << 16

// maxRowStates bounds a transfer matrix: 1,024 rows take seconds.
const maxRowStates = 1024

// transferMatrix returns the probabilities of one site's categories, [K], which
// are the same at every site by symmetry. With T(r, r') = exp(½w(r) + v(r, r')
// + ½w(r')) over the states r of one row, a torus of R rows has π(r) ∝ (T^R)(r,
// r) (Kramers and Wannier, Statistics of the Two-Dimensional Ferromagnet,
// 1941). Above 1,024 states of a row, and for sides below 3, it returns an
// error.
func (t torus) transferMatrix() ([]float64, error) {
	k := len(t.site)
	length := min(t.size.Rows, t.size.Columns)
	number := max(t.size.Rows, t.size.Columns)
	states := math.Pow(float64(k), float64(length))
	if states > maxRowStates || length < 3 {
		return nil, fmt.Errorf("a torus of %d × %d sites with %d categories has %.3g states of its shorter side: the "+
			"transfer matrix takes at most %d, and sides of 3", t.size.Rows, t.size.Columns, k, states, maxRowStates)
	}
	n := int(states)
	row := make([][]int, n)
	weight := make([]float64, n)
	for r := range row {
		row[r] = make([]int, length)
		for c, rest := 0, r; c < length; c, rest = c+1, rest/k {
			row[r][c] = rest % k
		}
		for c, v := range row[r] {
			weight[r] += t.site[v] + t.edge[v][row[r][(c+1)%length]]
		}
	}
	transfer := mat.NewSymDense(n, nil)
	for r := range n {
		for s := r; s < n; s++ {
			u := weight[r]/2 + weight[s]/2
			for c, v := range row[r] {
				u += t.edge[v][row[s][c]]
			}
			transfer.SetSym(r, s, u)
		}
	}
	largest := mat.Max(transfer)
	for i, u := range transfer.RawSymmetric().Data {
		transfer.RawSymmetric().Data[i] = math.Exp(u - largest)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(transfer, true) {
		return nil, errors.New("the transfer matrix has no eigenvalues")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil) // in ascending order
	p := make([]float64, k)
	for r := range n {
		share := 0.0
		for e, x := range values {
			share += math.Pow(vectors.At(r, e), 2) * math.Pow(x/values[n-1], float64(number))
		}
		for _, v := range row[r] {
			p[v] += share
		}
	}
	floats.Scale(1/floats.Sum(p), p)
	return p, nil
}
