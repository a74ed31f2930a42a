package energies

import (
	"context"
	"image"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/samplers"
)

// learner is a target with parameters that a training learns.
type learner interface {
	samplers.Target
	// Parameters returns the target's own slice of parameters, so that writes
	// to it change the target.
	Parameters() []float64
	// AddGradient adds scale times the states' mean ∂U/∂parameters.
	AddGradient(ctx context.Context, states []int, scale float64, gradient []float64) error
}

type pcdOptions struct {
	updates, batch, buffer *int
	rate, shrink           *float64
}

func pcdFlags(f *pflag.FlagSet, updates, batch, buffer int, rate, shrink float64) pcdOptions {
	return pcdOptions{
		lab.WholeFlag(f, "updates", updates, 1, 1<<30, "updates of each training"),
		lab.WholeFlag(f, "batch", batch, 1, 1<<20, "examples, and chains, of each update"),
		lab.WholeFlag(f, "buffer", buffer, 1, 1<<20, "chains that are kept from update to update"),
		lab.NumberFlag(f, "learning-rate", rate, " above 0", "of Adam"),
		lab.NumberFlag(f, "l1", shrink, " of 0 or more", "coefficient of the ℓ1 penalty of the couplings"),
	}
}

// check returns an error if the buffer is smaller than a batch, or if list has
// a spec that only comparisons take.
func (o *pcdOptions) check(list []lab.Spec) error {
	if *o.buffer < *o.batch {
		return lab.Refuse("buffer", "%d chains, and a batch moves %d of them: take at least as many", *o.buffer,
			*o.batch)
	}
	return lab.CheckedSpecs(list)
}

// pcd is a training by persistent contrastive divergence (Tieleman 2008):
//
//	∂/∂w E_data[log p_w(x)] = E_data[∂U/∂w] - E_{p_w}[∂U/∂w]
//
// Chains that continue from update to update give the second mean. A buffer
// holds them, and each update moves a batch of them (Du and Mordatch 2019).
// Adam climbs the gradient.
type pcd struct {
	Update     int
	Parameters []float64
	Mean       []float64 // running mean of the parameters
	Adam       lab.Adam
	Buffer     []int // [buffer × slots]
	Accepted   float64

	model    learner
	kernel   samplers.Kernel
	steps    int // steps of the sampler in each update
	options  pcdOptions
	warmUp   int     // number of updates over which the rate rises
	average  float64 // share of the running mean that an update keeps
	free     int     // number of parameters, from the first, without ℓ1 penalty
	gradient []float64
}

// newPCD prepares a training that starts with the chains in buffer.
func (o pcdOptions) newPCD(b *lab.Bench, model learner, spec lab.Spec, steps int, buffer []int) (*pcd, error) {
	kernel, err := spec.Sampler.Kernel(model, b.Stream("terms"))
	if err != nil {
		return nil, lab.Refuse("samplers", "%w", err)
	}
	parameters := model.Parameters()
	n := len(parameters)
	return &pcd{Parameters: parameters, Mean: slices.Clone(parameters), Adam: lab.NewAdam(n), Buffer: buffer,
		model:  model,
		kernel: kernel, steps: steps, options: o, gradient: make([]float64, n)}, nil
}

// run makes an update with each batch of next. Then it calls after with the
// batch, and with whether a report is due.
func (p *pcd) run(ctx context.Context, b *lab.Bench, next func() []int, after func(batch []int, due bool) error) error {
	updates := *p.options.updates
	reports := lab.ReportsOf(updates, 50)
	for p.Update < updates {
		batch := next()
		if err := p.update(ctx, b, batch); err != nil {
			return err
		}
		if err := after(batch, reports(p.Update)); err != nil {
			return err
		}
		if err := b.Tick(ctx, p.Update, updates); err != nil {
			return err
		}
	}
	b.Number("acceptance", p.Accepted)
	return nil
}

// update makes an update, given states of the data, [any number × slots].
func (p *pcd) update(ctx context.Context, b *lab.Bench, data []int) error {
	p.Update++
	clear(p.gradient)
	if err := p.model.AddGradient(ctx, data, 1, p.gradient); err != nil {
		return err
	}
	chains, err := p.negative(ctx, b)
	if err != nil {
		return err
	}
	if err := p.model.AddGradient(ctx, chains, -1, p.gradient); err != nil {
		return err
	}
	for i, w := range p.Parameters {
		if i >= p.free && w != 0 {
			p.gradient[i] -= math.Copysign(*p.options.shrink, w)
		}
	}
	rate := *p.options.rate * math.Min(1, float64(p.Update)/float64(max(p.warmUp, 1)))
	p.Adam.Ascend(p.Parameters, p.gradient, rate, p.Update)
	floats.Scale(p.average, p.Mean)
	floats.AddScaled(p.Mean, 1-p.average, p.Parameters)
	return nil
}

// negative moves a batch of the buffer's chains: their states, [batch × slots].
func (p *pcd) negative(ctx context.Context, b *lab.Bench) ([]int, error) {
	slots := len(p.model.Categories())
	streams := samplers.Streams(b.Seed, b.Repeat+" chains "+lab.Decimal(float64(p.Update)), *p.options.batch)
	places := streams[0].Perm(len(p.Buffer) / slots)[:len(streams)]
	state, err := p.kernel.Init(ctx, lab.RowsOf(p.Buffer, slots, places))
	if err != nil {
		return nil, err
	}
	var info samplers.Info
	var acceptance samplers.Acceptance
	for range p.steps {
		if err := p.kernel.Step(ctx, state, streams, &info); err != nil {
			return nil, err
		}
		acceptance.Observe(info.Accepted, info.Changed)
	}
	p.Accepted, _ = samplers.MeanAndError(acceptance.Rates())
	for i, at := range places {
		copy(p.Buffer[at*slots:(at+1)*slots], state.Position(i))
	}
	return state.Positions, nil
}

type couplingsOptions struct {
	pcd                   pcdOptions
	samplers              *[]lab.Spec
	steps                 *[]int
	data, sweeps, repeats *int
}

func couplingsFlags(f *pflag.FlagSet, pcd pcdOptions, data, sweeps int, usage string) couplingsOptions {
	return couplingsOptions{pcd,
		lab.SamplersFlag(f, "samplers", "gibbs,gwg,dula:step-size=0.2,dmala:step-size=0.4", "samplers of the chains"),
		lab.NumbersFlag(f, "steps", []int{1, 5, 25}, "sampling steps of each update"),
		lab.WholeFlag(f, "data", data, 1, 1<<20, usage),
		lab.WholeFlag(f, "data-sweeps", sweeps, 1, 1<<20, "sweeps of Gibbs behind each of them"),
		lab.RepeatsFlag(f, 2),
	}
}

// trainee is a cell's model, whose first free parameters have no ℓ1 penalty.
type trainee struct {
	model learner
	free  int
	// found returns the cell's numbers so far, one of them the curve's.
	found   func() map[string]float64
	picture func() image.Image
}

// trainings adds a cell for each sampler, number of sampling steps in an
// update, and repetition. The cells of a repetition share the data. Their
// seconds do not count the time to make the data.
func (o couplingsOptions) trainings(p *lab.Plan, data func(context.Context, *lab.Bench) ([]int, error),
	begin func(*lab.Bench) trainee) error {
	known := map[string][]int{}
	for _, spec := range *o.samplers {
		for _, n := range *o.steps {
			p.Add(*o.repeats, func(ctx context.Context, b *lab.Bench) (err error) {
				if known[b.Repeat] == nil {
					began := lab.Clock()
					known[b.Repeat], err = data(ctx, b)
					if err != nil {
						return err
					}
					b.Start = b.Start.Add(lab.Clock().Sub(began))
				}
				return o.train(ctx, b, begin(b), spec, n, known[b.Repeat], p.Curves[0].Name)
			}, lab.Label{Name: "sampler", Value: spec.Label}, lab.Label{Name: "steps", Value: strconv.Itoa(n)})
		}
	}
	return o.pcd.check(*o.samplers)
}

func (o couplingsOptions) train(ctx context.Context, b *lab.Bench, t trainee, spec lab.Spec, steps int, data []int,
	curve string) error {
	p, err := o.pcd.newPCD(b, t.model, spec, steps,
		samplers.RandomPositions(t.model, b.Streams("buffer", *o.pcd.buffer)))
	if err != nil {
		return err
	}
	p.free = t.free
	examples := &lab.Batches{Data: data, Slots: len(t.model.Categories()), Size: *o.pcd.batch}
	err = p.run(ctx, b, func() []int { return examples.At(b, p.Update+1) }, func(_ []int, due bool) error {
		if due {
			b.Point(curve, float64(p.Update), t.found()[curve])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, x := range t.found() {
		b.Number(name, x)
	}
	b.Number("seconds", b.Seconds())
	return b.Picture("couplings", t.picture())
}
