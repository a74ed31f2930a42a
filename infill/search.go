package infill

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"infill/samplers"
)

const (
	// beamWidth is how many likely fills a beam searches in each order, where the budget
	// affords it.
	beamWidth = 32
	// climbed is how many of the likeliest fills are climbed from, and what a fill has to
	// be among to be news.
	climbed = 10
	// climbWidth is how many completions of a block are looked at, climbBlock of how many
	// blanks it is at most.
	climbWidth, climbBlock = 4, 2
	// answered is of how many of the likeliest fills each blank gets its likeliest value,
	// given the others.
	answered = 64
	// variedNumbers bounds the numbers that are asked for at once when they do.
	variedNumbers = 1 << 20
	// seeds is how many of a blank's likeliest values get their likeliest fill looked at.
	seeds = 128
)

// found are fills whose energies are known, each once.
type found struct {
	slots  int
	seen   map[string]bool
	key    []byte // scratch
	states []int
	energy []float64 // U/T
	// looked are those that were looked around: with blocks of blanks, and of one.
	looked [2]map[int]bool
}

func newFound(slots int) *found {
	return &found{slots: slots, seen: map[string]bool{}, looked: [2]map[int]bool{{}, {}}}
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

// has tells whether a fill is known, and leaves what it is kept by in key.
func (f *found) has(state []int) bool {
	f.key = f.key[:0]
	for _, v := range state {
		f.key = binary.AppendUvarint(f.key, uint64(v))
	}
	return f.seen[string(f.key)]
}

// state is the i-th fill.
func (f *found) state(i int) []int { return f.states[i*f.slots : (i+1)*f.slots] }

// best are the n likeliest fills, the likeliest first.
func (f *found) best(n int) []int { return largest(f.energy, min(n, len(f.energy))) }

// search looks for likely fills with a beam in each order, so that they are listed
// whether they are drawn or not: with the widest beam that takes half of what the budget
// affords, and then wider ones while there is more, for beams share most of their rows. It
// tells whether the budget cut it short.
func (r *run) search(ctx context.Context, target samplers.Target, orders [][]int, known *found) (cut bool, err error) {
	rows := r.beamRows(len(orders))
	wide := beamWidth
	if r.options.Budget.Seconds > 0 {
		wide = 1 // tells how long a row takes
	}
	for wide > 1 && float64(wide)*rows > r.left()/2 {
		wide /= 2
	}
	for {
		before := r.target.Counts().Rows
		for _, order := range orders {
			rule, err := samplers.NewChainRule(target, order)
			if err != nil {
				return false, err
			}
			if err := r.complete(ctx, target, known, rule, make([]int, known.slots), slices.Repeat([]bool{true}, known.slots), wide); err != nil {
				return false, err
			}
		}
		rows = min(rows, float64(r.target.Counts().Rows-before)/float64(wide))
		if wide *= 2; wide > beamWidth || float64(wide)*rows > r.left()/2 {
			return wide <= beamWidth, nil
		}
	}
}

// beamRows is what beams in so many orders take at most for each fill that they are wide:
// a row a slot, and the energy.
func (r *run) beamRows(orders int) float64 {
	return float64(orders*2*len(r.variables)) * r.texts()
}

// seed looks at the likeliest fill of each likely value of each blank: words that belong
// together may be likely although no beam begins with either.
func (r *run) seed(ctx context.Context, target samplers.Target, known *found) error {
	rule, err := samplers.NewChainRule(target, nil)
	if err != nil {
		return err
	}
	n := known.slots
	// A value takes two rows at least, and its energy; most share them.
	each := int(max(0, min(seeds, r.left()/4/(r.texts()*float64(2*n)))))
	var states []int
	var open []bool
	for i := range r.variables {
		for _, category := range largest(doubles(r.variables[i].logWeights(r.logp)), each) {
			state, mask := make([]int, n), slices.Repeat([]bool{true}, n)
			state[i], mask[i] = category, false
			states, open = append(states, state...), append(open, mask...)
		}
	}
	if states == nil {
		return nil
	}
	return r.complete(ctx, target, known, rule, states, open, 1)
}

// complete adds the likeliest completions of states to what is known.
func (r *run) complete(ctx context.Context, target samplers.Target, known *found, rule *samplers.ChainRule, states []int, open []bool, wide int) error {
	completed, logq, err := rule.Complete(ctx, states, open, wide)
	if err != nil {
		return err
	}
	energy := logq // overwritten
	if err := target.Energy(ctx, completed, energy); err != nil {
		return err
	}
	known.add(completed, energy)
	return nil
}

// climb looks around the likeliest fills, until none of them has a likelier one beside it
// that was not looked around: of each block of a few blanks, the completions that the
// chain rule finds likeliest, given the others; of the fills that come after them the
// likeliest value of each blank. It tells whether it came to that with half of what the
// budget affords.
func (r *run) climb(ctx context.Context, target samplers.Target, known *found) (done bool, err error) {
	forth := make([]int, known.slots)
	for i := range forth {
		forth[i] = i
	}
	back := slices.Clone(forth)
	slices.Reverse(back)
	var rules []*samplers.ChainRule
	for _, order := range [][]int{forth, back} {
		rule, err := samplers.NewChainRule(target, order)
		if err != nil {
			return false, err
		}
		rules = append(rules, rule)
	}
	blocks := blocksOf(known.slots, climbBlock)
	for half := r.left() / 2; r.left() > half; {
		best := known.best(climbed)
		first := slices.IndexFunc(best, func(i int) bool { return !known.looked[0][i] })
		if first < 0 {
			// A fill takes as many rows as there are slots.
			news, err := vary(ctx, target, known, int((r.left()-half)/(r.texts()*float64(known.slots))))
			if err != nil || !news {
				return err == nil, err
			}
			continue
		}
		known.looked[0][best[first]] = true
		states := slices.Repeat(known.state(best[first]), len(blocks))
		for _, rule := range rules {
			if err := r.complete(ctx, target, known, rule, states, slices.Concat(blocks...), climbWidth); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// vary looks at the fills that differ in one blank from one of the likeliest, of those that
// were not looked around: the likeliest of each blank given the others, and all that would
// belong to the likeliest if its conditional told how much likelier it is; of these at most so
// many, the likeliest by that. It tells whether there was one to look around.
func vary(ctx context.Context, target samplers.Target, known *found, most int) (news bool, err error) {
	n := known.slots
	var from, states []int
	var open []bool
	for _, i := range known.best(answered) {
		if known.looked[1][i] {
			continue
		}
		known.looked[1][i] = true
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
		if err := masked.LogMaskedConditionals(ctx, states[first*n:last*n], open[first*n:last*n], logp[:(last-first)*n*wide]); err != nil {
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
				if other[j] = v; (v == likeliest || estimate >= floor) && !known.has(other) && !asked[string(known.key)] {
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

// blocksOf are the sets of at most so many of n slots, as masks.
func blocksOf(n, most int) (blocks [][]bool) {
	var choose func(mask []bool, from, left int)
	choose = func(mask []bool, from, left int) {
		if from == n || left == 0 {
			if slices.Contains(mask, true) {
				blocks = append(blocks, slices.Clone(mask))
			}
			return
		}
		mask[from] = true
		choose(mask, from+1, left-1)
		mask[from] = false
		choose(mask, from+1, left)
	}
	choose(make([]bool, n), 0, most)
	return blocks
}
