package energies

import (
	"context"
	"fmt"
	"image"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/internal/targets"
	"infill/samplers"
)

// newLearnIsing learns an Ising model's couplings from its states: figure 5 of
// the discrete Langevin paper, appendix I.4. The paper's code takes Adam at
// 0.001, 256 chains, batches of 256 of 2,000 states, and an ℓ1 penalty of 0.01.
func newLearnIsing() *lab.Study {
	s := lab.NewStudy("learn ising")
	size := lab.SizeFlag(s.Flags, lab.Size{Rows: 6, Columns: 6}, "rows and columns of the lattice")
	graph := lab.ChoiceFlag(s.Flags, "graph", []string{"lattice", "random"},
		"which sites are coupled; random is a graph of Erdős and Rényi with 4 neighbours on average")
	own := lab.TargetSeed(s.Flags, "seed of the random graph of the first repetition; each has its own")
	coupling := lab.NumberFlag(s.Flags, "coupling", 0.25, "", "that the data are drawn with; the paper's is 0.25")
	level := lab.NumberFlag(s.Flags, "level", -2.8, "",
		"log RMSE whose seconds are told: when a training comes to it first")
	o := couplingsFlags(s.Flags, pcdFlags(s.Flags, 1000, 100, 100, 0.001, 0.01), 2000, 200,
		"states that are learnt from")
	s.Plan = func(context.Context, *lab.Inputs, uint64) (*lab.Plan, error) {
		sites := size.Sites()
		if sites > chains.MaxLearnt {
			return nil, lab.Refuse("size", "%d sites: couplings of at most %d are learnt", sites, chains.MaxLearnt)
		}
		learnt, err := isingModels(*size, *coupling, *graph == "random", *o.repeats, *own)
		if err != nil {
			return nil, err
		}
		p := s.NewPlan(fmt.Sprintf("learning an Ising model of %d × %d sites, %s", size.Rows, size.Columns, *graph),
			"{level}", lab.Decimal(*level))
		p.Level = *level
		zero := func(n int) float64 { return math.Log(floats.Norm(learnt[n].couplings, 2) / float64(sites)) }
		p.Notes = []string{fmt.Sprintf("couplings that are all 0 have a log-rmse of %.3f in the first repetition",
			zero(0))}
		data := func(ctx context.Context, b *lab.Bench) ([]int, error) {
			steps := *o.sweeps * sites
			streams := b.Streams("data", *o.data)
			model := learnt[b.Repetition()].target
			return chains.Ends(ctx, samplers.Gibbs{}, model, streams, steps, func(s samplers.Step) error {
				if s.Number%1000 == 0 {
					b.Observe(s.Number, steps)
				}
				return ctx.Err()
			})
		}
		return p, o.trainings(p, data, func(b *lab.Bench) trainee {
			// As in the paper's code, training starts at small random
			// couplings, each the mean of two draws.
			w := lab.SymmetricNormals(sites, 0.01/math.Sqrt2, b.Stream("couplings"))
			truth := learnt[b.Repetition()].couplings
			return trainee{
				model: newPairwise(w, make([]float64, sites)),
				found: func() map[string]float64 {
					e := logRoot(w, truth)
					return map[string]float64{"log-rmse": e, "above-zero": e - zero(b.Repetition())}
				},
				picture: func() image.Image { return matrixImage(w, sites, 4) },
			}
		})
	}
	return s
}

type isingModel struct {
	target    *targets.Ising
	couplings []float64 // W, [sites × sites]
}

// isingModels returns the model of each repetition: on the lattice, or on a random
// graph of its own, which is drawn with seed and the repetition's number.
func isingModels(size lab.Size, coupling float64, random bool, repeats int, seed uint64) ([]isingModel, error) {
	sites := size.Sites()
	lattice, err := targets.NewIsing(size.Rows, size.Columns, coupling, 0)
	if err != nil {
		return nil, err
	}
	near, _ := targets.Neighbours(size.Rows, size.Columns)
	var models []isingModel
	for n := range repeats {
		if random {
			near = randomGraph(sites, 4, samplers.Streams(seed+uint64(n), "graph", 1)[0])
		}
		m := isingModel{target: lattice, couplings: make([]float64, sites*sites)}
		for i, list := range near {
			for _, k := range list {
				m.couplings[i*sites+k] = coupling
			}
		}
		if random {
			m.target = targets.NewDenseIsing(m.couplings, make([]float64, sites))
		}
		models = append(models, m)
	}
	return models, nil
}

// randomGraph draws a graph that joins each two sites with the same
// probability. It returns each site's neighbours.
func randomGraph(sites, degree int, r *rand.Rand) [][]int {
	near := make([][]int, sites)
	for i := range near {
		for k := range i {
			if r.Float64()*float64(sites-1) < float64(degree) {
				near[i] = append(near[i], k)
				near[k] = append(near[k], i)
			}
		}
	}
	return near
}

func logRoot(a, b []float64) float64 { return math.Log(lab.RootMeanSquare(a, b)) }

// matrixImage draws a square matrix in greys, with the largest value in black.
func matrixImage(values []float64, n, pixel int) image.Image {
	m := image.NewGray(image.Rect(0, 0, n*pixel, n*pixel))
	most := math.Max(floats.Max(values), 1e-12)
	for y := range n * pixel {
		for x := range n * pixel {
			v := math.Max(0, values[y/pixel*n+x/pixel]/most)
			m.Pix[y*m.Stride+x] = uint8(math.Round(255 * (1 - v)))
		}
	}
	return m
}

// pairwise is an Ising model with a coupling to learn between each two sites.
type pairwise struct {
	*targets.Ising
	weights []float64 // W, the couplings
}

func newPairwise(weights, field []float64) *pairwise {
	return &pairwise{targets.NewDenseIsing(weights, field), weights}
}

func (t *pairwise) Parameters() []float64 { return t.weights }

// AddGradient adds scale times the mean over the states of ssᵀ, which is ∂U/∂W,
// except on the diagonal.
func (t *pairwise) AddGradient(_ context.Context, states []int, scale float64, gradient []float64) error {
	n := len(t.Categories())
	s := lab.Matrix(len(states)/n, n, nil)
	for _, v := range states {
		s.Data = append(s.Data, targets.Spin(v))
	}
	blas64.Gemm(blas.Trans, blas.NoTrans, scale/float64(s.Rows), s, s, 1, lab.Matrix(n, n, gradient))
	for i := range n {
		gradient[i*n+i] = 0
	}
	return nil
}
