// The chain rule makes a joint distribution of conditionals of partly masked states:
//
//	q(θ) = Π_t f(θ_σ(t) | θ_σ(1), ..., θ_σ(t-1), the rest open)
//
// for any order σ that is a function of what is drawn before: it sums to one without any effort, and both a draw and
// log q cost one conditional a slot. σ is fixed (left to right is that of an autoregressive model), or takes the open
// slot of least entropy first. The latter depends on the state, and is replayed to score one: log q of any state is
// exact in every order. Orders of a masked model's conditionals disagree (Torroba Hennigen and Kim, "Deriving Language
// Models from Masked Language Models", ACL 2023): each is a law of its own, near exp(U) and not it. What corrects the
// difference is in importance.go and chainblock.go.

package samplers

import (
	"context"
	"errors"
	"fmt"
	"gonum.org/v1/gonum/floats"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"infill/internal/logmath"
)

// A ChainRule draws states from conditionals, slot by slot, and computes their log q. Draws with equal
// beginnings share an evaluation. It keeps scratch memory: use one per goroutine.
type ChainRule struct {
	target     MaskedConditionalTarget
	categories []int
	order      []int // nil: least entropy first

	streams []*rand.Rand // of this call's draws
	drawing choice       // made once, so that a call allocates nothing
	scoring choice
	states  []int // of this call
	open    []bool
	groups  map[uint64]int
	first   []int // a row of each group, [groups]
	group   []int // of each row; -1 where no slot is open, [rows]
	asked   []int
	mask    []bool
	logp    []float64
	weight  []float64
}

// A choice takes a category of a row's slot, by its conditional, whose sum has the log total.
type choice func(row, slot int, logp []float64, total float64) int

// chainRuleNumbers bounds the numbers that one evaluation asks of a target.
const chainRuleNumbers = 1 << 22

// NewChainRule makes the chain rule of a target's conditionals. order names each slot once, in the order of the
// draws; nil takes the open slot of least entropy each time, of equals the leftmost. The target must be a
// [MaskedConditionalTarget].
func NewChainRule(target Target, order []int) (*ChainRule, error) {
	return newChainRule("the chain rule", target, order)
}

func newChainRule(name string, target Target, order []int) (*ChainRule, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	masked, err := capability[MaskedConditionalTarget](target, name)
	if err != nil {
		return nil, err
	}
	categories := target.Categories()
	if order != nil {
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, ascending(len(categories))) {
			return nil, fmt.Errorf("order %v: name each of the %d slots once", order, len(categories))
		}
	}
	r := &ChainRule{
		target: masked, categories: categories, order: slices.Clone(order),
		groups: map[uint64]int{}, weight: make([]float64, width(categories)),
	}
	r.drawing = func(row, _ int, logp []float64, total float64) int {
		return drawLog(random{r.streams[row]}, logp, total, r.weight)
	}
	r.scoring = func(row, slot int, _ []float64, _ float64) int {
		return r.states[row*len(r.categories)+slot]
	}
	return r, nil
}

// Draw draws the open slots of every state, [draws × slots], each with its own stream, and writes log q of what it drew
// given the slots that are not open, in nats, to logq [draws]. open is [draws × slots]; nil opens all. A conditional
// that is no distribution is an error.
func (r *ChainRule) Draw(ctx context.Context, states []int, open []bool, streams []*rand.Rand, logq []float64) error {
	if len(streams) != len(logq) {
		return fmt.Errorf("%d random streams for %d draws: give one per draw", len(streams), len(logq))
	}
	r.streams = streams
	return r.run(ctx, states, open, logq, r.drawing)
}

// LogProbability writes log q of the open slots of every state given its others, in nats, to logq [states]: as
// Draw does for the states that it draws.
func (r *ChainRule) LogProbability(ctx context.Context, states []int, open []bool, logq []float64) error {
	if _, err := checkPositions(r.categories, states); err != nil {
		return err
	}
	return r.run(ctx, states, open, logq, r.scoring)
}

func (r *ChainRule) run(ctx context.Context, states []int, open []bool, logq []float64, decide choice) error {
	if n := len(logq) * len(r.categories); len(states) != n || open != nil && len(open) != n {
		return fmt.Errorf("%d positions and %d open slots for %d draws of %d slots: give [draws × slots] of both",
			len(states), len(open), len(logq), len(r.categories))
	}
	if _, err := r.walk(ctx, states, open, logq, decide); err != nil {
		return err
	}
	if i := slices.IndexFunc(logq, math.IsNaN); i >= 0 {
		return fmt.Errorf("draw %d: %w", i, errNoDistribution)
	}
	return nil
}

var errNoDistribution = errors.New("the conditional is not a distribution")

// walk goes through the open slots of all rows at once, and counts the
// conditionals it asked for. log q is NaN if a conditional was none.
func (r *ChainRule) walk(ctx context.Context, states []int, open []bool, logq []float64,
	decide choice) (conditionals int, err error) {
	rows, slots, wide := len(logq), len(r.categories), width(r.categories)
	r.states, r.open = states, resized(r.open, rows*slots)
	if open == nil {
		for i := range r.open {
			r.open[i] = true
		}
	} else {
		copy(r.open, open)
	}
	clear(logq)
	step := max(1, chainRuleNumbers/(slots*wide))
	for {
		groups := r.gather()
		if groups == 0 {
			return conditionals, nil
		}
		for from := 0; from < groups; from += step {
			to := min(from+step, groups)
			if err := r.ask(ctx, r.first[from:to]); err != nil {
				return conditionals, err
			}
			for row, g := range r.group[:rows] {
				if g < from || g >= to {
					continue
				}
				conditionals++
				mine := r.open[row*slots : (row+1)*slots]
				rest := r.logp[(g-from)*slots*wide : (g-from+1)*slots*wide]
				slot := r.next(r.mask[(g-from)*slots:(g-from+1)*slots], rest)
				logp := rest[slot*wide : slot*wide+r.categories[slot]]
				total := logmath.LogSumExp(logp)
				if !logmath.Finite(total) {
					logq[row] = math.NaN()
					clear(mine)
					continue
				}
				v := decide(row, slot, logp, total)
				states[row*slots+slot], mine[slot] = v, false
				logq[row] += logp[v] - total
			}
		}
	}
}

// gather puts the rows that agree in what is open, and in what the other slots hold, into groups.
func (r *ChainRule) gather() int {
	slots := len(r.categories)
	rows := len(r.open) / slots
	r.group, r.first = resized(r.group, rows), r.first[:0]
	clear(r.groups)
	for row := range rows {
		states, open := r.states[row*slots:(row+1)*slots], r.open[row*slots:(row+1)*slots]
		if !slices.Contains(open, true) {
			r.group[row] = -1
			continue
		}
		key := uint64(14695981039346656037) // FNV-1a
		for j, o := range open {
			held := uint64(0)
			if !o {
				held = uint64(states[j]) + 1
			}
			key = (key ^ held) * 1099511628211
		}
		g, ok := r.groups[key]
		if !ok || !r.agrees(row, r.first[g]) {
			g = len(r.first)
			r.first = append(r.first, row)
			r.groups[key] = g
		}
		r.group[row] = g
	}
	return len(r.first)
}

func (r *ChainRule) agrees(a, b int) bool {
	slots := len(r.categories)
	for j := range slots {
		i, k := a*slots+j, b*slots+j
		if r.open[i] != r.open[k] || !r.open[i] && r.states[i] != r.states[k] {
			return false
		}
	}
	return true
}

// ask evaluates the conditionals of some rows.
func (r *ChainRule) ask(ctx context.Context, rows []int) error {
	slots := len(r.categories)
	n := len(rows) * slots
	r.asked, r.mask = resized(r.asked, n), resized(r.mask, n)
	r.logp = resized(r.logp, n*width(r.categories))
	for i, row := range rows {
		copy(r.asked[i*slots:(i+1)*slots], r.states[row*slots:])
		copy(r.mask[i*slots:(i+1)*slots], r.open[row*slots:])
	}
	return r.target.LogMaskedConditionals(ctx, r.asked, r.mask, r.logp)
}

// next is the slot whose turn it is.
func (r *ChainRule) next(open []bool, logp []float64) int {
	if r.order != nil {
		return r.order[slices.IndexFunc(r.order, func(j int) bool { return open[j] })]
	}
	wide, least := width(r.categories), math.Inf(1)
	if only := slices.Index(open, true); !slices.Contains(open[only+1:], true) {
		return only
	}
	slot := slices.Index(open, true)
	for j, o := range open {
		if !o {
			continue
		}
		entropy := 0.0
		for _, l := range logp[j*wide : j*wide+r.categories[j]] {
			if p := math.Exp(l); p > 0 {
				entropy -= p * l
			}
		}
		if entropy < least {
			slot, least = j, entropy
		}
	}
	return slot
}

// Complete fills the open slots of every state, [states × slots], each with its likeliest category given those before,
// of equals the smallest, and writes log q of what it filled in to logq [states], in nats.
func (r *ChainRule) Complete(ctx context.Context, states []int, open []bool, logq []float64) error {
	return r.run(ctx, states, open, logq, func(_, _ int, logp []float64, _ float64) int { return floats.MaxIdx(logp) })
}

// resized is s with length n, its contents undefined.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// slotOrder is the setting of a chain rule's order.
type slotOrder struct {
	text string
	list []int // from 1
}

const orderHelp = "in which slots are drawn: least-entropy, forward, backward, or their numbers: 2/3/1"

func (v *slotOrder) Set(text string) error {
	var list []int
	switch text {
	case "least-entropy", "forward", "backward":
	default:
		for word := range strings.SplitSeq(text, "/") {
			n, err := strconv.Atoi(word)
			if err != nil {
				return errors.New("least-entropy, forward, backward, or the slots' numbers with slashes between them")
			}
			list = append(list, n)
		}
		for n := range list {
			if !slices.Contains(list, n+1) {
				return fmt.Errorf("an order of slots: name each from 1 to %d once", len(list))
			}
		}
	}
	v.text, v.list = text, list
	return nil
}

func (v *slotOrder) String() string {
	if v.text == "" {
		return "least-entropy"
	}
	return v.text
}

// of is the order for a target of so many slots; nil for least entropy first.
func (v *slotOrder) of(slots int) ([]int, error) {
	order := ascending(slots)
	switch {
	case v.list != nil && len(v.list) != slots:
		return nil, fmt.Errorf("order %s: it names %d slots, and there are %d", v.text, len(v.list), slots)
	case v.list != nil:
		for i, n := range v.list {
			order[i] = n - 1
		}
	case v.text == "backward":
		slices.Reverse(order)
	case v.text != "forward":
		return nil, nil
	}
	return order, nil
}

// rule makes the chain rule in this order.
func (v *slotOrder) rule(name string, target Target) (*ChainRule, error) {
	order, err := v.of(len(target.Categories()))
	if err != nil {
		return nil, err
	}
	return newChainRule(name, target, order)
}
