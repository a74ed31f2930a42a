package lab

import (
	"context"
	"math"
	"slices"

	"infill/samplers"
)

// learner is a target whose parameters are to be learnt.
type learner interface {
	samplers.Target
	// parameters are what the target follows: to write to them changes it.
	parameters() []float64
	// addGradient adds scale times the mean over the states of ∂U/∂parameters to gradient.
	addGradient(ctx context.Context, states []int, scale float64, gradient []float64) error
}

// pcd is a training by persistent contrastive divergence (Tieleman 2008):
//
//	∂/∂w E_data[log p_w(x)] = E_data[∂U/∂w] - E_{p_w}[∂U/∂w]
//
// where the second mean is taken over chains that go on from update to update, in a buffer of which each update moves a
// batch (Du and Mordatch 2019). Adam climbs. Its exported fields are what a checkpoint keeps.
type pcd struct {
	Update     int
	Parameters []float64
	First      []float64 // Adam's moments
	Second     []float64
	Buffer     []int // [buffer × slots]
	Accepted   float64

	model    learner
	kernel   samplers.Kernel
	steps    int // of the sampler, each update
	batch    int
	rate     float64
	warmUp   int     // updates over which the rate rises
	shrink   float64 // the ℓ1 penalty of penalised parameters
	free     int     // the first parameters have no penalty
	gradient []float64
}

// update makes one update from the data's states [any number × slots].
func (p *pcd) update(ctx context.Context, b *bench, data []int) error {
	p.Update++
	if p.gradient == nil {
		p.gradient = make([]float64, len(p.model.parameters()))
	}
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
	parameters := p.model.parameters()
	for i := p.free; i < len(parameters) && p.shrink > 0; i++ {
		if w := parameters[i]; w != 0 {
			p.gradient[i] -= math.Copysign(p.shrink, w)
		}
	}
	rate := p.rate * math.Min(1, float64(p.Update)/float64(max(p.warmUp, 1)))
	optimiser := &adam{p.First, p.Second}
	optimiser.ascend(parameters, p.gradient, rate, p.Update)
	p.Parameters = parameters
	return nil
}

// negative moves a batch of the buffer and returns it, [batch × slots].
func (p *pcd) negative(ctx context.Context, b *bench) ([]int, error) {
	slots := len(p.model.Categories())
	streams := samplers.Streams(b.seed, b.repeat+" chains "+decimal(float64(p.Update)), p.batch)
	places := streams[0].Perm(len(p.Buffer) / slots)[:p.batch]
	positions := make([]int, 0, p.batch*slots)
	for _, at := range places {
		positions = append(positions, p.Buffer[at*slots:(at+1)*slots]...)
	}
	state, err := p.kernel.Init(ctx, positions)
	if err != nil {
		return nil, err
	}
	var info samplers.Info
	var acceptance samplers.Acceptance
	for range p.steps {
		if err := p.kernel.Step(ctx, state, streams, &info); err != nil {
			return nil, err
		}
		acceptance.Observe(&info)
	}
	p.Accepted, _ = acceptance.Rate()
	for i, at := range places {
		copy(p.Buffer[at*slots:(at+1)*slots], state.Position(i))
	}
	return state.Positions, nil
}

// pcd is a training of a model by a sampler, from chains that start uniformly.
func (o *pcdOptions) pcd(model learner, kernel samplers.Kernel, steps int, b *bench) *pcd {
	return &pcd{model: model, kernel: kernel, steps: steps, batch: o.batch, rate: o.rate, shrink: o.shrink,
		Buffer: samplers.RandomPositions(model, b.streams("buffer", o.buffer))}
}

// run makes the updates, in batches of the data, and reports after some of them.
func (p *pcd) run(ctx context.Context, b *bench, updates int, data []int, report func(update float64)) error {
	if err := p.begin(b, p); err != nil {
		return err
	}
	examples := &batches{data: data, slots: len(p.model.Categories()), size: p.batch}
	return p.updates(ctx, b, p, updates, func() []int { return examples.at(b, p.Update+1) },
		func(_ []int, due bool) error {
			if due {
				report(float64(p.Update))
			}
			return nil
		})
}

// updates makes the updates by batches, and tells after each whether a report is due; state is what a checkpoint keeps.
func (p *pcd) updates(ctx context.Context, b *bench, state any, updates int, next func() []int,
	after func(batch []int, due bool) error) error {
	reports := reportsOf(updates, 50)
	for p.Update < updates {
		batch := next()
		if err := p.update(ctx, b, batch); err != nil {
			return err
		}
		if err := after(batch, reports(p.Update)); err != nil {
			return err
		}
		if err := b.tick(ctx, p.Update, updates, state); err != nil {
			return err
		}
	}
	b.number("acceptance", p.Accepted)
	return nil
}

// begin readies a training, or takes up one that was stopped, with the state that its checkpoint has.
func (p *pcd) begin(b *bench, state any) error {
	resumed, err := b.resume(state)
	if err != nil {
		return err
	}
	parameters := p.model.parameters()
	if resumed {
		copy(parameters, p.Parameters)
		return nil
	}
	p.Parameters = parameters
	p.First, p.Second = make([]float64, len(parameters)), make([]float64, len(parameters))
	return nil
}

// batches draws rows of the data: an epoch after the other, each in an order of its
// own, a function of the update alone.
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
	epoch, place := (update-1)/perEpoch, (update-1)%perEpoch
	if d.order == nil || epoch != d.epoch {
		d.epoch, d.order = epoch, b.streams("epoch "+decimal(float64(epoch)), 1)[0].Perm(examples)
	}
	rows := make([]int, 0, size*d.slots)
	for _, i := range d.order[place*size : (place+1)*size] {
		rows = append(rows, d.data[i*d.slots:(i+1)*d.slots]...)
	}
	return rows
}

// reportsOf are the updates after which a training says how far it is: about n of them, and the last.
func reportsOf(updates, n int) func(update int) bool {
	every := max(1, updates/n)
	return func(update int) bool { return update%every == 0 || update == updates }
}

// checkedSpecs refuses what a list of samplers can say of comparisons alone.
func checkedSpecs(list []Spec) error {
	if slices.ContainsFunc(list, func(s Spec) bool { return s.Name == all || s.Steps > 0 }) {
		return refuse("samplers",
			"all, and steps of one sampler, are not for trainings: name the samplers, and give --steps")
	}
	return nil
}
