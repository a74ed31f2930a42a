package infill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"infill/samplers"
	"infill/tokenize"
)

// The methods that Auto takes, see Result.Method.
const (
	// MethodExact enumerates all fills of the candidates: probabilities have no error.
	MethodExact = "exact"
	// MethodImportance draws from the chain rule and weighs the draws.
	MethodImportance = "importance"
)

const (
	// exactRows is up to how many model rows all fills are enumerated: two slots of
	// 250 candidates take 501.
	exactRows = 1000
	// exactStates bounds the fills that are enumerated.
	exactStates = 1 << 22
	// enough is the share of what the model believes of a slot, all slots masked, that
	// its candidates are to hold where their number is left to us.
	enough = 0.995
)

// An answer is what a method says of the fills: which are likeliest, and how likely.
type answer struct {
	method string
	// states are fills by probability, the likeliest first, [fills][variables];
	// energy is their U in nats, by which a probability is exp(U/T - logZ) with the
	// relative standard error relative.
	states          [][]int
	energy          []float64
	logZ            float64
	relative        float64
	marginals       [][]Marginal
	distinct        int // fills that were looked at
	draws           int
	effective       *float64
	paretoK         *float64
	mean, meanError float64 // of U
	missed          bool    // the accuracy within the budget
	unbelieved      bool    // its errors do not tell how far off it is
	few             bool    // the budget afforded too few draws for it
	news            bool    // the last draws still found some of the likeliest fills
	found           bool    // by a search: there are no probabilities yet
	note            string  // where an interrupted run ended, in words
	steps           int     // that chains have made of a run that was interrupted
	warnings        []string
}

// of is the probability of a fill, with its standard error.
func (a *answer) of(fill int, temperature float64) (p, standardError float64) {
	p = math.Exp(a.energy[fill]/temperature - a.logZ)
	return p, p * a.relative
}

// run is a problem on its way to an answer.
type run struct {
	*problem
	// sofar is what is known where the run ends here; nil if nothing is.
	sofar func() *answer
	// pricedFrom is since when, and since how many rows, the time of a row is taken.
	pricedFrom time.Time
	pricedRows int64
}

// answer finds probabilities by the cheapest method that is accurate enough.
func (r *run) answer(ctx context.Context, observe func(Progress)) (*answer, error) {
	if r.enumerable() {
		return r.enumerate(ctx, observe)
	}
	if r.options.Joint == jointAG {
		return nil, misfit("joint", "ag needs a model row for each candidate of both blanks, %.0f, and may take "+
			"%.0f: give fewer candidates, a larger budget, or take chain",
			enumerationRows(r.target), r.enumeratedRows())
	}
	return r.weigh(ctx, observe)
}

// states is the number of all fills of the candidates.
func (r *run) states() float64 {
	n := 1.0
	for i := range r.variables {
		n *= float64(r.variables[i].categories())
	}
	return n
}

// enumerable reports whether all fills can be gone through for few rows.
func (r *run) enumerable() bool {
	states := r.states()
	if r.target == nil {
		return true
	}
	return states <= exactStates && enumerationRows(r.target) <= r.enumeratedRows()
}

// enumeratedRows is up to how many model rows all fills are enumerated.
func (r *run) enumeratedRows() float64 {
	rows := float64(exactRows) * r.texts()
	if r.options.Budget.Rows > 0 {
		rows = min(rows, float64(r.options.Budget.Rows))
	}
	return rows
}

// enumerate goes through all fills.
func (r *run) enumerate(ctx context.Context, observe func(Progress)) (*answer, error) {
	n := len(r.variables)
	energy := slices.Repeat([]float64{math.NaN()}, int(r.states()))
	r.sofar = func() *answer { return r.enumerated(energy) }
	target, enumerable := r.target.(enumerableTarget)
	a := &answer{method: MethodExact, distinct: len(energy)}
	var err error
	switch {
	case r.target == nil:
		for category, token := range r.variables[0].support {
			energy[category] = float64(r.logp[0][token])
		}
	case r.options.Joint == jointAG && n == 2:
		var closest []float64
		if closest, err = r.closest(ctx, a); err == nil {
			energy = closest
		}
	case enumerable:
		rows := int(target.EnumerationRows())
		err = target.Enumerate(ctx, energy, func(done int) {
			if observe != nil {
				observe(r.advance(done, rows, nil))
			}
		})
	default:
		err = energies(ctx, r.target, energy)
	}
	if err != nil {
		return nil, err
	}
	t := r.temperature()
	highest := math.Inf(-1)
	for _, u := range energy {
		highest = max(highest, u)
	}
	if math.IsInf(highest, -1) {
		return nil, misfit("constraints",
			"the constraints forbid every fill of the candidates: loosen them, or raise candidates")
	}
	for _, i := range largest(energy, r.kept()) {
		a.states, a.energy = append(a.states, r.combination(i)), append(a.energy, energy[i])
	}
	probability, total := energy, 0.0
	for i, u := range energy {
		if p := math.Exp((u - highest) / t); p > 0 {
			probability[i] = p
			total += p
			a.mean += p * u
		} else {
			probability[i] = 0
		}
	}
	a.mean /= total
	for i := range probability {
		probability[i] /= total
	}
	a.logZ = highest/t + math.Log(total)
	a.marginals = r.listed(r.enumeratedMargins(probability), 0, 0)
	return a, nil
}

// combination is the state number i of an enumeration, the last variable's category
// running fastest.
func (r *run) combination(i int) []int {
	state := make([]int, len(r.variables))
	for n := len(state) - 1; n >= 0; n-- {
		k := r.variables[n].categories()
		state[n] = i % k
		i /= k
	}
	return state
}

// closest is log J of two slots, by their conditionals.
func (r *run) closest(ctx context.Context, a *answer) ([]float64, error) {
	target, ok := r.target.(samplers.ConditionalTarget)
	if !ok {
		return nil, fmt.Errorf("%T has no conditionals, which joint ag needs", r.target)
	}
	joint, change, err := samplers.ClosestJoint(ctx, target)
	if change > samplers.ClosestEnough {
		a.warnings = append(a.warnings,
			"joint ag has not converged, so that its probabilities are rough: take fewer candidates, or joint chain")
	}
	return joint, err
}

// kept is how many fills an answer holds: those that read alike are listed once, so a few
// more than asked for.
func (r *run) kept() int { return 4*r.options.Top + 64 }

// doubles are the numbers in double precision.
func doubles(numbers []float32) []float64 {
	list := make([]float64, len(numbers))
	for i, x := range numbers {
		list[i] = float64(x)
	}
	return list
}

// mostMarginals is how many values of a blank are listed.
const mostMarginals = 20

// blankVariables are the variables of each blank, [blanks].
func (r *run) blankVariables() [][]int {
	of := make([][]int, len(r.template.Blanks))
	for n, v := range r.variables {
		for _, slot := range v.slots {
			blank := slices.IndexFunc(r.template.Blanks, func(b tokenize.Blank) bool { return slot < b.First+b.Slots })
			if !slices.Contains(of[blank], n) {
				of[blank] = append(of[blank], n)
			}
		}
	}
	return of
}

// margin is what is known of one value of a blank: a state that has it, and the sums
// over the fills that do of their probabilities, of those that are known, and of the squares
// of those that are drawn.
type margin struct {
	state             []int
	p, known, squares float64
}

// listed writes the likeliest values of the blanks, nil if nothing is known of those of one. squares is the sum over
// all draws of their squared weights, 0 if the probabilities have no error, and unseen what one draw more may weigh.
func (r *run) listed(margins [][]*margin, squares, unseen float64) [][]Marginal {
	list := make([][]Marginal, len(margins))
	for blank, all := range margins {
		b := r.template.Blanks[blank]
		slices.SortFunc(all,
			func(x, y *margin) int { return cmp.Or(cmp.Compare(y.p, x.p), slices.Compare(x.state, y.state)) })
		for _, m := range all[:min(len(all), mostMarginals)] {
			m.p = min(m.p, 1) // sums of shares may be a little more
			tokens := r.tokens(m.state)
			value := Marginal{Text: r.template.Fill(tokens).Fills[blank], TokenIDs: tokens[b.First : b.First+b.Slots],
				Probability: m.p}
			// The delta method for a ratio: Σ w² (1[has it] − p)².
			// What one draw more weighs may all have it, or none of it.
			more := unseen * max(m.p, 1-m.p)
			value.StandardError = math.Sqrt(max(0, m.squares*(1-2*m.p)+m.p*m.p*squares) + more*more)
			if value.StandardError < 0.5 { // else it says nothing
				list[blank] = append(list[blank], value)
			}
		}
		if len(list[blank]) == 0 {
			return nil
		}
	}
	return list
}

// enumeratedMargins sums the probabilities of all fills by what each blank holds.
func (r *run) enumeratedMargins(probability []float64) [][]*margin {
	n := len(r.variables)
	margins := make([][]*margin, len(r.template.Blanks))
	for blank, of := range r.blankVariables() {
		size := 1
		strides := make([]int, n)
		for _, v := range slices.Backward(of) {
			strides[v] = size
			size *= r.variables[v].categories()
		}
		sums := probability
		if len(of) < n {
			sums = make([]float64, size)
			state, at := make([]int, n), 0
			for _, p := range probability {
				sums[at] += p
				for v := n - 1; v >= 0; v-- {
					if state[v]++; state[v] < r.variables[v].categories() {
						at += strides[v]
						break
					}
					at -= strides[v] * (state[v] - 1)
					state[v] = 0
				}
			}
		}
		for _, at := range largest(sums, mostMarginals) {
			m := &margin{state: make([]int, n), p: sums[at]}
			for _, v := range of {
				m.state[v] = at / strides[v] % r.variables[v].categories()
			}
			margins[blank] = append(margins[blank], m)
		}
	}
	return margins
}

// weighedMargins sums the weights of points, which add up to one, by what each blank
// holds. No value has less than the known fills with it.
func (r *run) weighedMargins(points []samplers.Point, logZ float64) [][]*margin {
	margins := make([][]*margin, len(r.template.Blanks))
	var key []byte
	for blank, of := range r.blankVariables() {
		seen := map[string]*margin{}
		for _, point := range points {
			key = key[:0]
			for _, v := range of {
				key = appendKey(key, point.State[v:v+1])
			}
			m := seen[string(key)]
			if m == nil {
				m = &margin{state: point.State}
				seen[string(key)] = m
				margins[blank] = append(margins[blank], m)
			}
			m.p += point.Weight
			if point.Drawn {
				m.squares += point.Weight * point.Weight
			} else {
				m.known += math.Exp(point.Energy - logZ)
			}
		}
		for _, m := range margins[blank] {
			m.p = max(m.p, m.known)
		}
	}
	return margins
}

// variableOrders are the orders in which weighted draws take the variables: both
// directions, and least entropy first: where one of them hardly reaches a fill, another does.
func (r *run) variableOrders() [][]int {
	forth := make([]int, len(r.variables))
	for i := range forth {
		forth[i] = i
	}
	back := slices.Clone(forth)
	slices.Reverse(back)
	return [][]int{forth, back, nil}
}

// heard is a target whose conditionals tell when they have been asked for.
type heard struct {
	samplers.MaskedConditionalTarget
	hear func()
}

// LogMaskedConditionals implements samplers.MaskedConditionalTarget.
func (h heard) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	err := h.MaskedConditionalTarget.LogMaskedConditionals(ctx, states, open, logp)
	if err == nil {
		h.hear()
	}
	return err
}

// searched is what a search alone has found: likely fills without probabilities.
func (r *run) searched(known *found) *answer {
	a := &answer{found: true, distinct: len(known.energy)}
	for _, i := range known.best(r.kept()) {
		a.states, a.energy = append(a.states, known.state(i)), append(a.energy, known.energy[i]*r.temperature())
	}
	return a
}

func finiteOrNil(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// advance tells the observer how far an answer is; found, if not nil, is what is
// known so far.
func (r *run) advance(done, of int, found func() *answer) Progress {
	p := Progress{Template: r.typed.Text, Step: r.place*of + done, Steps: r.places * of, Pieces: r.pieces()}
	if found != nil {
		p.Result = func() *Result { return r.state(found()) }
	}
	return p
}

// state makes a result of an answer.
func (r *run) state(a *answer) *Result {
	o := &r.options
	result := r.newResult()
	result.Method, result.Marginals = a.method, a.marginals
	if a.method == MethodImportance {
		result.Seed = &o.Seed
	}
	s := &result.Stats
	*s = Stats{Mode: o.Mode, Sampler: o.Sampler, Joint: o.Joint, Slots: len(r.variables), Draws: a.draws,
		DistinctFills:  a.distinct,
		EffectiveDraws: a.effective, ParetoK: a.paretoK, MeanLogLikelihood: a.mean, Device: result.Model.Device,
		ModelRows: r.rows}
	if t := r.pllTemperature(); t != 1 {
		s.PLLTemperature = &t
	}
	if a.method != MethodExact && !a.found {
		s.MeanLogLikelihoodStandardError = &a.meanError
	}
	if !a.found {
		s.LogNormaliser, s.NormaliserError = &a.logZ, &a.relative
	}
	for i := range r.variables {
		s.Candidates = append(s.Candidates, r.variables[i].categories())
	}
	if r.target != nil {
		c := r.target.Counts()
		s.ModelRows += c.Rows
		s.EnergyEvaluations = c.EnergyEvaluations
	}
	if share := r.candidatesShare(a); share > 0 && !a.found {
		s.CandidatesProbability = &share
	}
	top := r.wanted()
	seen := map[string]bool{}
	for i, state := range a.states {
		if len(result.Fills) == top {
			break
		}
		fill := r.filled(r.tokens(state), a.energy[i])
		if seen[fill.Text] {
			continue
		}
		seen[fill.Text] = true
		fill.Rank = len(result.Fills) + 1
		if !a.found {
			p, standardError := a.of(i, r.temperature())
			fill.Probability, fill.ProbabilityError = &p, &standardError
		}
		if r.places > 1 {
			fill.Pieces = r.pieces()
		}
		result.Fills = append(result.Fills, fill)
	}
	s.ListedProbability = listedProbability(result.Fills)
	return result
}

// candidatesShare is what the candidates hold of the probability of all fills over the
// whole vocabulary; 0 if it is not known: of several slots.
func (r *run) candidatesShare(a *answer) float64 {
	if r.others == nil && r.options.Temperature == 1 && len(r.template.Slots) == 1 && r.options.Joint != JointFilled {
		return min(math.Exp(a.logZ), 1)
	}
	return 0
}

// answered makes the result of a run that answers.
func (r *run) answered(ctx context.Context, a *answer) (*Result, error) {
	result := r.state(a)
	if u := result.Stats.MeanLogLikelihood; math.IsNaN(u) || math.IsInf(u, 0) {
		return nil, fmt.Errorf("model %s gives a fill the log-likelihood %v: its weights may be unusable",
			result.Model.Name, u)
	}
	if err := r.rate(ctx, result); err != nil {
		return nil, err
	}
	result.Stats.ModelRows = r.rows
	if r.target != nil {
		result.Stats.ModelRows += r.target.Counts().Rows
	}
	result.Signature = r.signature(result)
	result.Warnings = append(r.warnings(result), a.warnings...)
	if a.missed {
		result.Warnings = append(result.Warnings, r.missedAccuracy(a))
	}
	return result, nil
}

// missedAccuracy says what the budget did not suffice for.
func (r *run) missedAccuracy(a *answer) string {
	if a.few {
		return fmt.Sprintf("%d slots are too many for the budget of %s: these are likely fills, and their "+
			"probabilities, from %d draws, are rough; give more with --budget, or fewer blanks",
			len(r.variables), r.options.Budget.text(), a.draws)
	}
	why := fmt.Sprintf("the probabilities have a relative standard error of %.2g, wanted was %g", a.relative,
		r.options.Error)
	if a.news {
		why = "the last draws still found some of the likeliest fills, so that others may be missing"
	} else if a.unbelieved {
		why = "the errors of the probabilities cannot be believed: a few draws weigh more than all others"
		if k := a.paretoK; k != nil {
			why += fmt.Sprintf(" (Pareto k %.2f)", *k)
		}
	}
	return fmt.Sprintf("%s, after the budget of %s: give more with --budget", why, r.options.Budget.text())
}

// unfinished is what was found of a run that ended with err: a result where it was called off and has found something.
func (r *run) unfinished(ctx context.Context, err error) (*Result, error) {
	if ctx.Err() == nil || r.sofar == nil || errors.Is(context.Cause(ctx), ErrUnwanted) {
		return nil, err
	}
	a := r.sofar()
	result := r.state(a)
	if len(result.Fills) == 0 {
		return nil, &InterruptedError{cmp.Or(a.note, "before a fill was found"), ctx.Err()}
	}
	result.Unfinished = true
	result.Warnings = []string{"unfinished: interrupted " + cmp.Or(a.note, "before the end")}
	if s := &result.Stats; s.Sampler != Auto { // finds, not draws
		s.Law, s.Chains, s.Steps = noLaw, r.options.Chains, a.steps
	}
	return result, err
}

// enumerated is what an enumeration knows that broke off: energy holds NaN if it does not.
func (r *run) enumerated(energy []float64) *answer {
	a := &answer{found: true, note: "before the end: log-likelihoods are what the model rows give that have run"}
	known := make([]float64, len(energy))
	for i, u := range energy {
		if known[i] = u; math.IsNaN(u) {
			known[i] = math.Inf(-1)
		}
		if known[i] > math.Inf(-1) {
			a.distinct++
		}
	}
	if a.distinct == 0 {
		a.note = ""
		return a
	}
	for _, i := range largest(known, min(r.kept(), a.distinct)) {
		a.states, a.energy = append(a.states, r.combination(i)), append(a.energy, energy[i])
	}
	return a
}
