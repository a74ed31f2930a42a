package lab

import (
	"context"
	"image"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"

	"infill/samplers"
)

// learner is a target with parameters that a training learns.
type learner interface {
	samplers.Target
	// parameters returns the target's own slice of parameters, so that writes
	// to it change the target.
	parameters() []float64
	// addGradient adds scale times the mean over the states of ∂U/∂parameters
	// to gradient.
	addGradient(ctx context.Context, states []int, scale float64, gradient []float64) error
}

// pcdOptions are the options that all trainings by persistent contrastive
// divergence share.
type pcdOptions struct {
	updates, batch, buffer *int
	rate, shrink           *float64
}

func pcdFlags(f *pflag.FlagSet, updates, batch, buffer int, rate, shrink float64) pcdOptions {
	return pcdOptions{
		wholeFlag(f, "updates", updates, 1, 1<<30, "updates of each training"),
		wholeFlag(f, "batch", batch, 1, 1<<20, "examples, and chains, of each update"),
		wholeFlag(f, "buffer", buffer, 1, 1<<20, "chains that are kept from update to update"),
		number(f, "learning-rate", rate, " above 0", "of Adam"),
		number(f, "l1", shrink, " of 0 or more", "coefficient of the ℓ1 penalty of the couplings"),
	}
}

// check returns an error if the buffer is smaller than a batch, or if list has
// a spec that only comparisons take.
func (o *pcdOptions) check(list []Spec) error {
	if *o.buffer < *o.batch {
		return refuse("buffer", "%d chains, and a batch moves %d of them: take at least as many", *o.buffer, *o.batch)
	}
	return checkedSpecs(list)
}

func checkedSpecs(list []Spec) error {
	if slices.ContainsFunc(list, func(s Spec) bool { return s.Name == all || s.Steps > 0 }) {
		return refuse("samplers",
			"all, and steps of one sampler, are not for trainings: name the samplers, and give --steps")
	}
	return nil
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
	Adam       adam
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
func (o pcdOptions) newPCD(b *bench, model learner, spec Spec, steps int, buffer []int) (*pcd, error) {
	kernel, err := spec.New(model, b.stream("terms"))
	if err != nil {
		return nil, refuse("samplers", "%w", err)
	}
	parameters := model.parameters()
	n := len(parameters)
	return &pcd{Parameters: parameters, Mean: slices.Clone(parameters), Adam: newAdam(n), Buffer: buffer, model: model,
		kernel: kernel, steps: steps, options: o, gradient: make([]float64, n)}, nil
}

// run makes an update with each batch of next. Then it calls after with the
// batch, and with whether a report is due.
func (p *pcd) run(ctx context.Context, b *bench, next func() []int, after func(batch []int, due bool) error) error {
	updates := *p.options.updates
	reports := reportsOf(updates, 50)
	for p.Update < updates {
		batch := next()
		if err := p.update(ctx, b, batch); err != nil {
			return err
		}
		if err := after(batch, reports(p.Update)); err != nil {
			return err
		}
		if err := b.tick(ctx, p.Update, updates); err != nil {
			return err
		}
	}
	b.number("acceptance", p.Accepted)
	return nil
}

// update makes an update, given states of the data, [any number × slots].
func (p *pcd) update(ctx context.Context, b *bench, data []int) error {
	p.Update++
	clear(p.gradient)
	if err := p.model.addGradient(ctx, data, 1, p.gradient); err != nil {
		return err
	}
	chains, err := p.negative(ctx, b)
	if err != nil {
		return err
	}
	if err := p.model.addGradient(ctx, chains, -1, p.gradient); err != nil {
		return err
	}
	for i, w := range p.Parameters {
		if i >= p.free && w != 0 {
			p.gradient[i] -= math.Copysign(*p.options.shrink, w)
		}
	}
	rate := *p.options.rate * math.Min(1, float64(p.Update)/float64(max(p.warmUp, 1)))
	p.Adam.ascend(p.Parameters, p.gradient, rate, p.Update)
	floats.Scale(p.average, p.Mean)
	floats.AddScaled(p.Mean, 1-p.average, p.Parameters)
	return nil
}

// negative moves a batch of the chains in the buffer and returns their states,
// [batch × slots].
func (p *pcd) negative(ctx context.Context, b *bench) ([]int, error) {
	slots := len(p.model.Categories())
	streams := samplers.Streams(b.seed, b.repeat+" chains "+decimal(float64(p.Update)), *p.options.batch)
	places := streams[0].Perm(len(p.Buffer) / slots)[:len(streams)]
	state, err := p.kernel.Init(ctx, rows(p.Buffer, slots, places))
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

// rows returns copies of those rows of a table that which lists.
func rows[T any](table []T, width int, which []int) []T {
	list := make([]T, 0, len(which)*width)
	for _, i := range which {
		list = append(list, table[i*width:(i+1)*width]...)
	}
	return list
}

// batches draws rows of the data, epoch by epoch, each epoch in a new random
// order.
type batches struct {
	data        []int
	slots, size int
	order       []int
	epoch       int
}

func (d *batches) at(b *bench, update int) []int {
	examples := len(d.data) / d.slots
	size := min(d.size, examples)
	perEpoch := examples / size
	epoch := (update - 1) / perEpoch
	place := (update - 1) % perEpoch
	if d.order == nil || epoch != d.epoch {
		d.epoch = epoch
		d.order = b.stream("epoch " + decimal(float64(epoch))).Perm(examples)
	}
	return rows(d.data, d.slots, d.order[place*size:(place+1)*size])
}

// reportsOf returns a function that is true for about n updates, evenly spread,
// and for the last update.
func reportsOf(updates, n int) func(update int) bool {
	every := max(1, updates/n)
	return func(update int) bool { return update%every == 0 || update == updates }
}

// adam holds the two moments of a parameter vector (Kingma and Ba, 2015, with
// their β₁ = 0.9, β₂ = 0.999).
type adam struct{ First, Second []float64 }

func newAdam(n int) adam { return adam{make([]float64, n), make([]float64, n)} }

// ascend moves the parameters along the gradient; update counts from 1.
func (a *adam) ascend(parameters, gradient []float64, rate float64, update int) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	correct1 := 1 - math.Pow(beta1, float64(update))
	correct2 := 1 - math.Pow(beta2, float64(update))
	for i, g := range gradient {
		a.First[i] += (1 - beta1) * (g - a.First[i])
		a.Second[i] += (1 - beta2) * (g*g - a.Second[i])
		parameters[i] += rate * (a.First[i] / correct1) / (math.Sqrt(a.Second[i]/correct2) + epsilon)
	}
}

// couplingsOptions are the options of trainings of couplings, with several
// samplers and numbers of sampling steps.
type couplingsOptions struct {
	pcd                   pcdOptions
	samplers              *[]Spec
	steps                 *[]int
	data, sweeps, repeats *int
}

func couplingsFlags(f *pflag.FlagSet, pcd pcdOptions, data, sweeps int, usage string) couplingsOptions {
	return couplingsOptions{pcd,
		samplersFlag(f, "samplers", "gibbs,gwg,dula:step-size=0.2,dmala:step-size=0.4", "samplers of the chains"),
		numbersFlag(f, "steps", []int{1, 5, 25}, "sampling steps of each update"),
		wholeFlag(f, "data", data, 1, 1<<20, usage),
		wholeFlag(f, "data-sweeps", sweeps, 1, 1<<20, "sweeps of Gibbs behind each of them"),
		repeatsFlag(f, 2),
	}
}

// trainee is a model that a cell learns. Its first free parameters have no ℓ1
// penalty.
type trainee struct {
	model learner
	free  int
	// found returns the cell's numbers so far; the plan's curve shows one of
	// these.
	found   func() map[string]float64
	picture func() image.Image
}

// trainings adds a cell for each sampler, number of sampling steps in an
// update, and repetition. The cells of a repetition share the data. Their
// seconds do not count the time to make the data.
func (o couplingsOptions) trainings(p *plan, data func(context.Context, *bench) ([]int, error),
	begin func(*bench) trainee) error {
	known := map[string][]int{}
	for _, spec := range *o.samplers {
		for _, n := range *o.steps {
			p.add(*o.repeats, func(ctx context.Context, b *bench) (err error) {
				if known[b.repeat] == nil {
					began := clock()
					known[b.repeat], err = data(ctx, b)
					if err != nil {
						return err
					}
					b.start = b.start.Add(clock().Sub(began))
				}
				return o.train(ctx, b, begin(b), spec, n, known[b.repeat], p.curves[0].name)
			}, parameter{"sampler", spec.Label}, parameter{"steps", strconv.Itoa(n)})
		}
	}
	return o.pcd.check(*o.samplers)
}

func (o couplingsOptions) train(ctx context.Context, b *bench, t trainee, spec Spec, steps int, data []int,
	curve string) error {
	p, err := o.pcd.newPCD(b, t.model, spec, steps,
		samplers.RandomPositions(t.model, b.streams("buffer", *o.pcd.buffer)))
	if err != nil {
		return err
	}
	p.free = t.free
	examples := &batches{data: data, slots: len(t.model.Categories()), size: *o.pcd.batch}
	err = p.run(ctx, b, func() []int { return examples.at(b, p.Update+1) }, func(_ []int, due bool) error {
		if due {
			b.point(curve, float64(p.Update), t.found()[curve])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, x := range t.found() {
		b.number(name, x)
	}
	b.number("seconds", b.seconds())
	return b.picture("couplings", t.picture())
}
