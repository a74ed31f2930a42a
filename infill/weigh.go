package infill

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"infill/samplers"
)

const (
	// drawnAtOnce is how many weighted draws are made at once.
	drawnAtOnce = 64
	// believedAfter is how many draws it takes until weights that may differ much are
	// believed.
	believedAfter = 256
	// quietBatches is how many batches of draws in a row have to find none of the
	// likeliest fills before these are thought to be all.
	quietBatches = 2
)

// weigh draws from the chain rule, and weighs the draws, until the probabilities are
// accurate enough, and no draw finds a fill that belongs to the likeliest.
func (r *run) weigh(ctx context.Context, observe func(Progress)) (*answer, error) {
	o := &r.options
	target, err := samplers.Temper(r.target, r.temperature())
	if err != nil {
		return nil, err
	}
	orders := r.variableOrders()
	r.pricedFrom, r.pricedRows = time.Now(), r.target.Counts().Rows
	known := newFound(len(r.variables))
	var draws *samplers.Importance
	var forgotten *answer // what draws said that are dropped
	r.sofar = func() *answer {
		if draws != nil && draws.Len() > 0 {
			if z := draws.Normaliser(); !math.IsNaN(z.Log) && !math.IsInf(z.Log, 0) {
				return r.weighed(draws, z, known)
			}
		}
		if forgotten != nil {
			return forgotten
		}
		return r.searched(known)
	}
	if masked, ok := target.(samplers.MaskedConditionalTarget); ok && observe != nil {
		target = heard{masked, func() {
			progress := r.advance(int(r.share()*100), 100, nil)
			if len(known.energy) > 0 {
				progress.Result = func() *Result { return r.state(r.sofar()) }
			}
			observe(progress)
		}}
	}
	cut, err := r.seed(ctx, target, known)
	if err != nil {
		return nil, err
	}
	if _, err := r.climb(ctx, target, known); err != nil {
		return nil, err
	}
	if draws, err = samplers.NewImportance(target, orders...); err != nil {
		return nil, err
	}
	draws.Know(known.states, known.energy)
	streams := samplers.Streams(o.Seed, r.label, drawnAtOnce)
	// What a draw takes at most, until it is known: a row a slot in each order, and the
	// energy.
	slots := float64(len(r.variables)) * r.texts()
	price := slots * float64(len(orders)+1)
	quiet, all := 0, 0
	for {
		n := int(max(2, min(drawnAtOnce, r.left()/price)))
		before, known0 := r.target.Counts().Rows, len(known.energy)
		if err := draws.Draw(ctx, streams[:n]); err != nil {
			return nil, err
		}
		price = max(1, float64(r.target.Counts().Rows-before)/float64(n))
		all += n
		for i := draws.Len() - n; i < draws.Len(); i++ {
			known.add(draws.State(i), []float64{draws.Energy(i)})
		}
		quiet++
		around, err := r.climb(ctx, target, known)
		if err != nil {
			return nil, err
		}
		if !around {
			quiet = 0
		}
		z := draws.Normaliser()
		// Draws whose rows are all remembered take none, and still have to come to an end.
		spent := r.left() < 2*price || o.Budget.Rows > 0 && all >= o.Budget.Rows
		if slices.Max(known.best(climbed)) >= known0 {
			// What was just found belongs to the likeliest: draws tell what it is worth
			// once it is known, and whether there is more of its kind.
			quiet = 0
			draws.Know(known.states[known0*known.slots:], known.energy[known0:])
			if !spent {
				forgotten = r.sofar()
				draws.Forget()
				continue
			}
		}
		// Few draws that met nothing heavy believe themselves, unless their error is as
		// large as all that is not known.
		done := z.Believable() && z.Error <= o.Error && quiet >= quietBatches && (z.Rough() || z.Draws >= believedAfter)
		if !done && !spent {
			if observe != nil {
				observe(r.advance(int(r.share()*100), 100, r.sofar))
			}
			continue
		}
		if math.IsNaN(z.Log) || math.IsInf(z.Log, 0) {
			return nil, fmt.Errorf("model %s gives the drawn fills the total probability %v: its weights may be "+
				"unusable, or the constraints forbid all of %d draws", r.filler.Model().Name, math.Exp(z.Log), z.Draws)
		}
		a := r.weighed(draws, z, known)
		a.missed, a.few, a.news = !done, all < drawnAtOnce, quiet < quietBatches
		if cut && !a.news { // which says so itself
			a.warnings = append(a.warnings, fmt.Sprintf("the search for likely fills was cut short by the budget of "+
				"%s, so that some may be missing: give more with --budget", o.Budget.text()))
		}
		return a, nil
	}
}

// texts is how many texts are filled with the same words.
func (r *run) texts() float64 { return float64(1 + len(r.others)) }

// left is how many model rows the budget still affords; of seconds by what a row took.
func (r *run) left() float64 {
	b, rows := r.options.Budget, float64(r.target.Counts().Rows+r.rows)
	if b.Seconds == 0 {
		return float64(b.Rows) - rows
	}
	since := float64(r.target.Counts().Rows - r.pricedRows)
	left := (b.Seconds - time.Since(r.began).Seconds()) * since / time.Since(r.pricedFrom).Seconds()
	if b.Rows > 0 {
		left = min(left, float64(b.Rows)-rows)
	}
	return left
}

// share is what of the budget is used up.
func (r *run) share() float64 { return r.options.Budget.share(r.target.Counts().Rows+r.rows, r.began) }

// weighed is what weighted draws say.
func (r *run) weighed(draws *samplers.Importance, z samplers.Normaliser, known *found) *answer {
	t := r.temperature()
	a := &answer{method: MethodImportance, logZ: z.Log, relative: z.Error, draws: z.Draws,
		effective: finiteOrNil(z.EffectiveSampleSize), paretoK: finiteOrNil(z.ParetoK), unbelieved: !z.Believable()}
	a.distinct = len(known.energy)
	for _, i := range known.best(r.kept()) {
		a.states, a.energy = append(a.states, known.state(i)), append(a.energy, known.energy[i]*t)
	}
	a.mean, a.meanError = draws.Mean(func(p samplers.Point) float64 {
		if math.IsInf(p.Energy, 0) || math.IsNaN(p.Energy) {
			return 0 // forbidden
		}
		return p.Energy * t
	})
	points := draws.Points()
	squares := 0.0
	for _, p := range points {
		if p.Drawn {
			squares += p.Weight * p.Weight
		}
	}
	a.marginals = r.listed(r.weighedMargins(points, z.Log), squares, z.Unseen)
	return a
}
