package infill

import (
	"context"
	"math"
	"slices"

	"infill/samplers"
)

const (
	// seeds is how many of a blank's likeliest values get their likeliest fill looked at.
	seeds = 128
	// climbed is what a fill has to be among to be news: so many of the likeliest.
	climbed = 10
	// answered is of how many of the likeliest fills each blank gets its likeliest value,
	// given the others.
	answered = 64
	// variedNumbers bounds the numbers that are asked for at once when they do.
	variedNumbers = 1 << 20
)

// found are fills whose energies are known, each once.
type found struct {
	slots  int
	seen   map[string]bool
	key    []byte // scratch
	states []int
	energy []float64    // U/T
	looked map[int]bool // those that were looked around
}

func newFound(slots int) *found {
	return &found{slots: slots, seen: map[string]bool{}, looked: map[int]bool{}}
}

func (f *found) add(states []int, energy []float64) {
	for i, u := range energy {
		state := states[i*f.slots : (i+1)*f.slots]
		if f.has(state) || math.IsNaN(u) || math.IsInf(u, 0) {
			continue
		}
		f.seen[string(f.key)] = true
		f.states, f.energy = append(f.states, state...), append(f.energy, u)
	}
}

// has reports whether a fill is known, and leaves what it is kept by in key.
func (f *found) has(state []int) bool {
	f.key = appendKey(f.key[:0], state)
	return f.seen[string(f.key)]
}

// state is the i-th fill.
func (f *found) state(i int) []int { return f.states[i*f.slots : (i+1)*f.slots] }

// best are the n likeliest fills, the likeliest first.
func (f *found) best(n int) []int { return largest(f.energy, min(n, len(f.energy))) }

// seed looks at the likeliest fill of each likely value of each blank, so that likely fills
// are listed whether they are drawn or not. It reports whether the budget cut it short.
func (r *run) seed(ctx context.Context, target samplers.Target, known *found) (cut bool, err error) {
	rule, err := samplers.NewChainRule(target, nil)
	if err != nil {
		return false, err
	}
	n := known.slots
	// A value takes two rows at least, and its energy; most share them. One fill is wanted always.
	each := int(max(1, min(seeds, r.left()/4/(r.texts()*float64(2*n)))))
	for i := range r.variables { // one after the other: an interrupted run has what is known by then
		cut = cut || each < min(seeds/4, r.variables[i].categories())
		var states []int
		var open []bool
		for _, category := range largest(doubles(r.variables[i].logWeights(r.logp)), each) {
			state, mask := make([]int, n), slices.Repeat([]bool{true}, n)
			state[i], mask[i] = category, false
			states, open = append(states, state...), append(open, mask...)
		}
		energy := make([]float64, len(states)/n)
		if err := rule.Complete(ctx, states, open, energy); err != nil { // overwritten
			return false, err
		}
		if err := target.Energy(ctx, states, energy); err != nil {
			return false, err
		}
		known.add(states, energy)
	}
	return cut, nil
}

// climb looks around the likeliest fills until none has a likelier one beside it that was
// not looked around. It reports whether it came to that with half of what the budget affords.
func (r *run) climb(ctx context.Context, target samplers.Target, known *found) (done bool, err error) {
	for half := r.left() / 2; r.left() > half; {
		// A fill takes as many rows as there are slots.
		news, err := vary(ctx, target, known, int((r.left()-half)/(r.texts()*float64(known.slots))))
		if err != nil || !news {
			return err == nil, err
		}
	}
	return false, nil
}

// vary looks at the fills that differ in one blank from one of the likeliest, of those that
// were not looked around: the likeliest of each blank given the others, and all that would
// belong to the likeliest if its conditional told how much likelier it is; of these at most so
// many, the likeliest by that. It reports whether there was one to look around.
func vary(ctx context.Context, target samplers.Target, known *found, most int) (news bool, err error) {
	n := known.slots
	var from, states []int
	var open []bool
	for _, i := range known.best(answered) {
		if known.looked[i] {
			continue
		}
		known.looked[i] = true
		for j := range n {
			from, states = append(from, i), append(states, known.state(i)...)
			for k := range n {
				open = append(open, k == j)
			}
		}
	}
	masked, ok := target.(samplers.MaskedConditionalTarget)
	if from == nil || !ok {
		return false, nil
	}
	best := known.best(climbed)
	floor := known.energy[best[len(best)-1]]
	categories := target.Categories()
	wide := slices.Max(categories)
	step := max(1, variedNumbers/(n*wide))
	logp := make([]float64, min(step, len(from))*n*wide)
	var varied []int
	var estimates []float64
	asked := map[string]bool{}
	for first := 0; first < len(from); first += step {
		last := min(first+step, len(from))
		if err := masked.LogMaskedConditionals(ctx, states[first*n:last*n], open[first*n:last*n],
			logp[:(last-first)*n*wide]); err != nil {
			return false, err
		}
		for row := first; row < last; row++ {
			i, j := from[row], row%n
			state := known.state(i)
			conditional := logp[((row-first)*n+j)*wide:][:categories[j]]
			likeliest := largest(conditional, 1)[0]
			other := slices.Clone(state)
			for v, l := range conditional {
				estimate := known.energy[i] + l - conditional[state[j]]
				if other[j] = v; (v == likeliest || estimate >= floor) && !known.has(other) &&
					!asked[string(known.key)] {
					asked[string(known.key)] = true
					varied, estimates = append(varied, other...), append(estimates, estimate)
				}
			}
		}
	}
	var kept []int
	for _, i := range largest(estimates, min(most, len(estimates))) {
		kept = append(kept, varied[i*n:(i+1)*n]...)
	}
	energy := make([]float64, len(kept)/n)
	if err := target.Energy(ctx, kept, energy); err != nil {
		return false, err
	}
	known.add(kept, energy)
	return true, nil
}
