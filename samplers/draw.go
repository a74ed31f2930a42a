// This file makes independent draws from laws by the chain rule (law.go), one
// slot after the other, in the order σ of a law:
//
//	θ_σ(t) ~ f(· | θ_σ(1), ..., θ_σ(t-1), the rest open)^(1/T) / Z
//
// T is the temperature, and Z makes the powers of one conditional sum to one
// over all categories. A stream makes trials: one that holds a category outside the
// law's choices is rejected, and the stream begins another. By this rejection
// sampling (von Neumann 1951), each result is an exact draw from the laws given that
// its state is allowed. The conditional of the first slot of each law is known before
// any trial. So law and first category are drawn together, from allowed choices
// alone. There is no step size.
//
// Whether a trial begins is decided before any of its values is drawn, and each
// trial that has begun is carried to its end. So which draws a budget allows does
// not depend on their values (Wald 1944).

package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Drawn is the result of one stream.
type Drawn struct {
	Found Found
	// Done reports whether the stream has a draw; else Found says nothing.
	Done bool
}

// errNoMass is returned if no draw is possible.
var errNoMass = errors.New("the laws allow no state of positive probability")

// Draw makes an independent draw for each stream, from the laws by their
// weights. The log-probabilities of its states are those of temperature 1.
//
// A trial needs a conditional for each slot after the first. room, if not nil,
// gets the numbers of draws and of rejected trials so far, and returns how many
// more conditionals Draw may ask for. A trial begins only if there is room for all
// that the open trials may still need, and for a whole one of the longest law. When
// none can begin, and those that have begun are done, Draw ends.
//
// Draw returns one Drawn for each stream, in order. If ctx ends or a conditional
// fails, it returns the error with the draws so far: those of the trials that began
// before the first that is open.
func Draw(ctx context.Context, laws []Law, temperature float64, streams []*rand.Rand,
	room func(done, rejected int) int) ([]Drawn, error) {
	err := checkLaws(laws)
	if err != nil {
		return nil, err
	}
	if !(temperature > 0) || math.IsInf(temperature, 1) {
		return nil, fmt.Errorf("temperature %v: give a number above 0", temperature)
	}
	f := &forward{laws: laws, temperature: temperature, streams: streams, trials: make([]trial, len(streams)),
		waiting: ascending(len(streams)), room: room}
	for i := range laws {
		f.longest = max(f.longest, laws[i].slots()-1)
	}
	if room == nil {
		f.room = func(int, int) int { return math.MaxInt }
	}
	err = f.first(ctx)
	if err != nil {
		return nil, err
	}
	for {
		f.admit()
		if len(f.open) == 0 || ctx.Err() != nil {
			return f.drawn(), ctx.Err()
		}
		err := f.step(ctx)
		if err != nil {
			return f.drawn(), err
		}
	}
}

// A trial is a draw in progress: the first depth slots of its law's order are
// filled. logp is the log-probability of these slots at temperature 1.
type trial struct {
	law    int
	depth  int
	state  []int // nil before the stream's first trial
	logp   float64
	number int // of trials that began before
	steps  int // since the trial began
	// rejected says that the trial holds a category outside the choices.
	rejected bool
}

func (t *trial) filled() bool { return t.depth == len(t.state) }

// forward makes draws: all open trials go a slot further in each step.
type forward struct {
	laws        []Law
	temperature float64
	streams     []*rand.Rand
	room        func(done, rejected int) int
	trials      []trial   // the last trial of each stream
	waiting     []int     // the streams that begin a trial next, in this order
	open        []int     // the streams whose trials have begun and not ended
	longest     int       // conditionals of a trial of the longest law
	begun       int       // number of trials that have begun
	rejected    int       // number of trials that were rejected
	starts      []start   // [laws]
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

// begin starts a trial of stream i with a law and its first slot's category.
func (f *forward) begin(i int) {
	stream := f.streams[i]
	number := DrawCumulative(f.weights, stream)
	law := &f.laws[number]
	s := &f.starts[number]
	k := DrawCumulative(s.cumulative, stream)
	t := trial{law: number, depth: 1, state: law.open(), logp: law.LogWeight + s.logp[k], number: f.begun}
	t.state[law.Order[0]] = s.choices[k]
	f.trials[i] = t
	f.begun++
}

// A need is a conditional of a law and state, which trials share.
type need struct {
	law   int
	state string
}

func (t *trial) need() need { return need{t.law, string(AppendKey(nil, t.state...))} }

// admit begins trials as far as there is room.
func (f *forward) admit() {
	shared := map[need]bool{}
	later := 0 // conditionals that open trials may need after the next
	hold := func(i int) {
		t := &f.trials[i]
		if !t.filled() {
			shared[t.need()] = true
			later += len(t.state) - t.depth - 1
		}
	}
	for _, i := range f.open {
		hold(i)
	}
	room := f.room(f.begun-f.rejected-len(f.open), f.rejected)
	for len(f.waiting) > 0 && len(shared)+later+f.longest <= room {
		i := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.begin(i)
		f.open = append(f.open, i)
		hold(i)
	}
}

// A group is the streams whose trials need the same conditional.
type group struct {
	law     int
	partial Partial
	streams []int
}

// groups returns what the open trials need.
func (f *forward) groups() []group {
	var list []group
	at := map[need]int{}
	for _, i := range f.open {
		t := &f.trials[i]
		if t.filled() {
			continue
		}
		n := t.need()
		g, ok := at[n]
		if ok {
			list[g].streams = append(list[g].streams, i)
			continue
		}
		at[n] = len(list)
		list = append(list, group{t.law, Partial{t.state, f.laws[t.law].Order[t.depth]}, []int{i}})
	}
	return list
}

// step draws one more slot of the open trials.
func (f *forward) step(ctx context.Context) error {
	groups := f.groups()
	for number := range f.laws {
		var own []group
		var asked []Partial
		for _, g := range groups {
			if g.law == number {
				own = append(own, g)
				asked = append(asked, g.partial)
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
	f.end()
	return nil
}

// end closes trials that were rejected, and those of all laws after the steps of the
// longest: so whether a trial is open when draws are interrupted does not depend
// on the law that it drew.
func (f *forward) end() {
	f.open = slices.DeleteFunc(f.open, func(i int) bool {
		t := &f.trials[i]
		t.steps++
		return t.rejected || t.steps >= f.longest
	})
}

// A category is what a trial puts into a slot: Open if it is rejected.
type category struct {
	number int
	logp   float64
}

// choose draws a category for every stream of a group, [streams].
func (f *forward) choose(g group, logp []float32) ([]category, error) {
	choices := f.laws[g.law].choices(g.partial.State, g.partial.Slot, len(logp))
	cumulative, err := f.cumulative(choices, logp, g.partial.Slot)
	if err != nil {
		return nil, err
	}
	chosen := make([]category, len(g.streams))
	for j, i := range g.streams {
		k := placed(cumulative, f.streams[i].Float64())
		if k == len(choices) {
			chosen[j] = category{number: Open}
			continue
		}
		chosen[j] = category{choices[k], float64(logp[choices[k]])}
	}
	return chosen, nil
}

// fill puts categories into the slot of a group's trials, [streams]. The stream of a
// rejected one waits for another trial.
func (f *forward) fill(g group, chosen []category) {
	for j, i := range g.streams {
		if chosen[j].number == Open {
			f.rejected++
			f.trials[i].rejected = true
			f.waiting = append(f.waiting, i)
			continue
		}
		t := &f.trials[i]
		t.state[g.partial.Slot] = chosen[j].number
		t.logp += chosen[j].logp
		t.depth++
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

// drawn returns the draws of the trials that began before the first that is open.
func (f *forward) drawn() []Drawn {
	first := f.begun
	for _, i := range f.open {
		first = min(first, f.trials[i].number)
	}
	list := make([]Drawn, len(f.trials))
	for i := range f.trials {
		t := &f.trials[i]
		list[i] = Drawn{Found{t.law, t.state, t.logp}, t.state != nil && !t.rejected && t.number < first}
	}
	return list
}
