// This file makes independent draws from laws by the chain rule (law.go), one
// slot after the other, in the order σ of a law:
//
//	θ_σ(t) ~ f(· | θ_σ(1), ..., θ_σ(t-1), the rest open)^(1/T) / Z
//
// T is the temperature, and Z makes the powers of one conditional sum to one
// over all categories. If a draw holds a category outside the law's choices, it
// is rejected and made again. By this rejection sampling (von Neumann 1951),
// each result is an exact draw from the laws given that its state is allowed.
// The conditional of the first slot of each law is known before any draw. So law
// and first category are drawn together, from allowed choices alone. There is no
// step size.

package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Drawn is the result of one draw.
type Drawn struct {
	Found Found
	// Done reports whether the draw was finished before room returned 0. If it
	// was not, Found says nothing.
	Done bool
}

// errNoMass is returned if no draw is possible.
var errNoMass = errors.New("the laws allow no state of positive probability")

// Draw makes an independent draw for each stream, from the laws by their
// weights. The log-probabilities of its states are those of temperature 1.
//
// A draw needs a conditional for each slot after the first. Rejected draws need
// conditionals too. room, if not nil, gets the number of conditionals so far,
// plus one for each rejection, and returns how many more Draw may ask for. If
// room returns 0, Draw ends. Draw returns one Drawn for each stream, in order,
// and if a conditional fails, the draws so far with the error.
func Draw(ctx context.Context, laws []Law, temperature float64, streams []*rand.Rand,
	room func(spent int) int) ([]Drawn, error) {
	err := checkLaws(laws)
	if err != nil {
		return nil, err
	}
	if !(temperature > 0) || math.IsInf(temperature, 1) {
		return nil, fmt.Errorf("temperature %v: give a number above 0", temperature)
	}
	f := &forward{laws: laws, temperature: temperature, streams: streams, draws: make([]draw, len(streams)),
		pending: ascending(len(streams))}
	err = f.first(ctx)
	if err != nil {
		return nil, err
	}
	for i := range f.draws {
		f.begin(i)
	}
	for {
		f.pending = slices.DeleteFunc(f.pending, func(i int) bool { return f.draws[i].done() })
		most := len(f.pending)
		if room != nil {
			most = min(most, room(f.spent))
		}
		if most <= 0 || ctx.Err() != nil {
			return f.drawn(), ctx.Err()
		}
		err := f.step(ctx, most)
		if err != nil {
			return f.drawn(), err
		}
	}
}

// A draw is a draw in progress: the first depth slots of its law's order are
// filled. logp is the log-probability of these slots at temperature 1.
type draw struct {
	law   int
	depth int
	state []int
	logp  float64
}

func (d *draw) done() bool { return d.depth == len(d.state) }

// forward makes draws, all of them a slot further in each step.
type forward struct {
	laws        []Law
	temperature float64
	streams     []*rand.Rand
	draws       []draw
	pending     []int // the draws that are not done
	spent       int   // conditionals asked for, and draws made again
	starts      []start
	weights     []float64 // cumulative after first, [laws]
}

// A start is the first slot of a law: its choices, their cumulative
// probabilities at the temperature, and their log-probabilities without it.
type start struct {
	choices    []int
	cumulative []float64
	logp       []float64
}

// first learns the starts of all laws, and what the laws weigh with them.
func (f *forward) first(ctx context.Context) error {
	for i := range f.laws {
		law := &f.laws[i]
		open := law.open()
		slot := law.Order[0]
		var s start
		var failed error
		err := law.Target.PartialConditionals(ctx, []Partial{{open, slot}}, func(_ int, logp []float32) {
			s.choices = law.choices(open, slot, len(logp))
			s.cumulative, failed = f.cumulative(s.choices, logp, slot)
			s.logp = make([]float64, len(s.choices))
			for k, category := range s.choices {
				s.logp[k] = float64(logp[category])
			}
		})
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		mass := 0.0
		n := len(s.cumulative)
		if n > 0 {
			mass = s.cumulative[n-1]
		}
		f.starts = append(f.starts, s)
		f.weights = append(f.weights, math.Exp(law.LogWeight)*mass)
	}
	total := Accumulate(f.weights)
	if !(total > 0) {
		return errNoMass
	}
	return nil
}

// begin starts draw i: it draws a law, and the category of its first slot.
func (f *forward) begin(i int) {
	stream := f.streams[i]
	number := DrawCumulative(f.weights, stream)
	law := &f.laws[number]
	s := &f.starts[number]
	k := DrawCumulative(s.cumulative, stream)
	d := draw{law: number, depth: 1, state: law.open(), logp: law.LogWeight + s.logp[k]}
	d.state[law.Order[0]] = s.choices[k]
	f.draws[i] = d
}

// again starts draw i once more, after it was rejected.
func (f *forward) again(i int) {
	f.spent++
	f.begin(i)
}

// A group is the draws that need the same conditional.
type group struct {
	law   int
	need  Partial
	draws []int
}

// groups returns what the pending draws need, most groups at most. Draws of one
// state share a conditional. Draws beyond most wait.
func (f *forward) groups(most int) []group {
	type key struct {
		law   int
		state string
	}
	var list []group
	at := map[key]int{}
	for _, i := range f.pending {
		d := &f.draws[i]
		k := key{d.law, string(AppendKey(nil, d.state...))}
		g, ok := at[k]
		if ok {
			list[g].draws = append(list[g].draws, i)
			continue
		}
		if len(list) == most {
			continue
		}
		at[k] = len(list)
		list = append(list, group{d.law, Partial{d.state, f.laws[d.law].Order[d.depth]}, []int{i}})
	}
	return list
}

// step draws one more slot of pending draws. It asks for most conditionals at
// most.
func (f *forward) step(ctx context.Context, most int) error {
	groups := f.groups(most)
	f.spent += len(groups)
	for number := range f.laws {
		var own []group
		var asked []Partial
		for _, g := range groups {
			if g.law == number {
				own = append(own, g)
				asked = append(asked, g.need)
			}
		}
		if len(own) == 0 {
			continue
		}
		chosen := make([][]category, len(own))
		var failed error
		err := f.laws[number].Target.PartialConditionals(ctx, asked, func(i int, logp []float32) {
			var err error
			chosen[i], err = f.choose(own[i], logp)
			if err != nil {
				failed = err
			}
		})
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		for i, g := range own {
			f.fill(g, chosen[i])
		}
	}
	return nil
}

// A category is what a draw puts into a slot; number is Open if the draw is
// rejected.
type category struct {
	number int
	logp   float64
}

// choose draws a category for every draw of a group, [draws].
func (f *forward) choose(g group, logp []float32) ([]category, error) {
	choices := f.laws[g.law].choices(g.need.State, g.need.Slot, len(logp))
	cumulative, err := f.cumulative(choices, logp, g.need.Slot)
	if err != nil {
		return nil, err
	}
	chosen := make([]category, len(g.draws))
	for j, i := range g.draws {
		k := placed(cumulative, f.streams[i].Float64())
		if k == len(choices) {
			chosen[j] = category{number: Open}
			continue
		}
		chosen[j] = category{choices[k], float64(logp[choices[k]])}
	}
	return chosen, nil
}

// fill puts categories into the slot of a group's draws, [draws].
func (f *forward) fill(g group, chosen []category) {
	for j, i := range g.draws {
		if chosen[j].number == Open {
			f.again(i)
			continue
		}
		d := &f.draws[i]
		d.state[g.need.Slot] = chosen[j].number
		d.logp += chosen[j].logp
		d.depth++
	}
}

// cumulative returns the cumulative probabilities of choices at the
// temperature. The probabilities of all categories together are those of logp at
// temperature 1.
func (f *forward) cumulative(choices []int, logp []float32, slot int) ([]float64, error) {
	power := func(l float32) float64 { return math.Exp(float64(l)) }
	if f.temperature != 1 {
		norm := f.norm(logp)
		power = func(l float32) float64 { return math.Exp(float64(l)/f.temperature - norm) }
	}
	cumulative := make([]float64, len(choices))
	for k, v := range choices {
		cumulative[k] = power(logp[v])
	}
	sum := Accumulate(cumulative)
	if math.IsNaN(sum) || sum > 1+1e-3 {
		return nil, fmt.Errorf("slot %d: %w", slot, errNoDistribution)
	}
	return cumulative, nil
}

// norm returns the log of the sum of the powers 1/T of all categories, less the
// log of the sum at T = 1: a conditional that lacks some mass lacks it at every
// temperature.
func (f *forward) norm(logp []float32) float64 {
	highest := float64(slices.Max(logp))
	sum := 0.0
	powers := 0.0
	for _, l := range logp {
		sum += math.Exp(float64(l) - highest)
		powers += math.Exp((float64(l) - highest) / f.temperature)
	}
	return highest/f.temperature + math.Log(powers) - highest - math.Log(sum)
}

// drawn returns the draws, of which those not done say so.
func (f *forward) drawn() []Drawn {
	list := make([]Drawn, len(f.draws))
	for i := range f.draws {
		d := &f.draws[i]
		list[i] = Drawn{Found{d.law, d.state, d.logp}, d.done()}
	}
	return list
}
