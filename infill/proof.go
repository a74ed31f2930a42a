package infill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"

	"infill/samplers"
)

// MethodSearch finds the likeliest fills under the chain rule, and proves them: their
// probabilities are the model's own.
const MethodSearch = "search"

// MethodDraws makes independent draws from the model, word after word.
const MethodDraws = "draws"

const (
	// mostListed is up to how many fills lists of words are summed over one by one.
	mostListed = 4096
	// listError is the relative standard error to which draws tell what longer lists hold,
	// and listDraws how many are made at once.
	listError, listDraws = 0.02, 64
)

// proof is a search for the likeliest fills of a template, of all lengths that its blanks
// may have.
type proof struct {
	filler  *Filler
	options Options
	began   time.Time
	runs    []*problem // of each length, for what is said of it
	texts   []*textLaw
	laws    []samplers.Law
	kinds   []wordKind // of each
	search  *samplers.Search
	rows    int64
	// logLengths is the logarithm of the number of lengths of blanks that are no words, each as likely.
	logLengths float64
	// logShare is what lists hold of the law, 0 if nothing is listed, with its relative
	// standard error.
	logShare, shareError float64
	complete             bool // all fills of the lists were found
	observe              func(Progress)
}

// A wordKind says which words of several pieces a law takes.
type wordKind int

const (
	anyWord wordKind = iota
	existingWord
	inventedWord
)

// leastInvented is the probability below which a word that is put together of pieces for a pattern is taken for none,
// unless the lexicon has it: words that exist had far more in their places, and what was made up for xqz.* less.
const leastInvented = 1e-7

var errNoFill = misfit("constraints", "the constraints forbid every fill: loosen them")

// unfit is the pattern of an only blank that no word fits; "" if one does, or pieces were asked for.
func (p *proof) unfit(r *Result) string {
	t := p.runs[0].template
	b := t.Blanks[0]
	if len(t.Blanks) > 1 || b.Pattern == "" || b.High > 0 || b.TouchesLeft || b.TouchesRight ||
		p.options.Fill != fillWords || p.options.MinPieces > 1 ||
		p.options.Together != nil ||
		slices.ContainsFunc(p.runs, func(run *problem) bool { return len(run.template.Slots) == 1 }) {
		return ""
	}
	if p.kinds[p.search.Found()[0].Law] == existingWord || *r.Fills[0].Probability >= leastInvented {
		return ""
	}
	return b.Pattern
}

// prove fills a template by search, or by draws.
func (f *Filler) prove(ctx context.Context, model LanguageModel, plans []*layout, o Options, start time.Time,
	observe func(Progress)) (*Result, error) {
	p := &proof{filler: f, options: o, began: start, observe: observe}
	if err := p.prepare(ctx, model, plans); err != nil {
		return nil, err
	}
	if o.draws() {
		return p.draw(ctx)
	}
	if err := p.run(ctx); err != nil {
		if ctx.Err() == nil || p.search.Len() == 0 || errors.Is(context.Cause(ctx), ErrUnwanted) {
			return nil, err
		}
		result := p.result()
		result.Unfinished = true
		result.Warnings = slices.Insert(result.Warnings, 0,
			"unfinished: interrupted before the end: "+p.leftOut(result))
		return result, err
	}
	result := p.result()
	if len(result.Fills) == 0 { // the search goes on until there is one
		return nil, errNoFill
	}
	if pattern := p.unfit(result); pattern != "" {
		return nil, misfit("pattern", "no word of up to %d pieces fits %s; --fill any takes pieces that are no words",
			patternPieces, pattern)
	}
	return result, nil
}

// prepare makes a law of each length.
func (p *proof) prepare(ctx context.Context, model LanguageModel, plans []*layout) error {
	if rules := plans[0].rules; rules != nil && p.options.searches() {
		for n := 2; n <= wordPieces && len(plans[0].template.IDs)+n-1 <= p.filler.maxPositions; n++ {
			longer, err := rules.longWord(plans[0], n)
			if err != nil {
				return err
			}
			plans = append(plans, longer)
		}
	}
	weights, list := p.filler.words()
	usual := newPieceWeights(usualWeights, p.options.Temperature)
	var existing, invented pieceWeights
	if list != nil {
		existing = newPieceWeights(weights.Existing, p.options.Temperature)
		invented = newPieceWeights(weights.Invented, p.options.Temperature)
		if len(plans[0].template.Blanks) == 1 { // what exists has 100 % over all numbers of pieces
			usual.share, existing.share, invented.share = existing.sum(), existing.sum(), existing.sum()
		}
	}
	free := map[string]bool{} // the lengths of blanks that are no words, each as likely
	for _, plan := range plans {
		free[fmt.Sprint(plan.lengths)] = true
	}
	p.logLengths = math.Log(float64(len(free)))
	for number, plan := range plans {
		text, err := p.filler.newLaw(ctx, model, plan, p.options.Temperature, &p.rows)
		if err != nil {
			return err
		}
		r := &problem{filler: p.filler, model: model, options: p.options, layout: *plan, logp: text.root}
		if number == 0 { // longer rows would rather have commas where one mask has a word
			r.foreign()
			for n := range r.variables {
				r.hint(&r.variables[n], text.root)
			}
		}
		law, err := text.law(p.options.Order, 0)
		if err != nil {
			return err
		}
		add := func(law samplers.Law, kind wordKind, weights pieceWeights) {
			one := -p.logLengths // of each text
			for _, pieces := range plan.counted {
				one += weights.log(pieces)
			}
			if kind == inventedWord && len(plan.counted) == 0 { // of a known length
				for _, b := range plan.words {
					one += weights.log(b.Slots) - existing.log(b.Slots)
				}
			}
			law.LogWeight += one * float64(1+len(plan.others))
			p.runs, p.texts = append(p.runs, r), append(p.texts, text)
			p.laws, p.kinds = append(p.laws, law), append(p.kinds, kind)
		}
		if list == nil || len(plan.words) == 0 {
			add(law, anyWord, usual)
			continue
		}
		exist := text.existing(law, list)
		if p.filler.lexicon != nil {
			exist.LogWeight = text.logCovered(list())
		}
		add(exist, existingWord, existing)
		if !plan.known {
			add(text.invented(law, list), inventedWord, invented)
		}
	}
	var err error
	p.search, err = samplers.NewSearch(p.laws)
	return err
}

// room is how many model rows the budget still affords.
func (p *proof) room() int {
	b := p.options.Budget
	if b.Seconds > 0 && time.Since(p.began).Seconds() >= b.Seconds {
		return 0
	}
	if b.Rows == 0 {
		return math.MaxInt
	}
	return max(0, b.Rows-int(p.rows))
}

// run searches until as many fills as are wanted are proven, and finds what lists hold.
func (p *proof) run(ctx context.Context) error {
	tell := func() {}
	if p.observe != nil {
		tell = func() {
			progress := Progress{Template: p.runs[0].typed.Text,
				Step: int(100 * p.options.Budget.share(p.rows, p.began)), Steps: 100, Pieces: p.runs[0].pieces()}
			if p.search.Len() > 0 {
				progress.Result = p.result
			}
			p.observe(progress)
		}
	}
	listed, states := p.listed()
	wanted := p.options.Top
	if listed && states <= mostListed {
		wanted = max(wanted, int(states))
	}
	for {
		if err := p.search.Run(ctx, wanted, p.room, tell); err != nil {
			return err
		}
		// Fills that read alike are listed once.
		fills, _ := p.fills()
		missing := p.options.Top - len(fills)
		if missing <= 0 || !p.search.Proven() || p.search.Len() < wanted {
			break
		}
		wanted += max(missing, wanted/2)
	}
	if !listed {
		return nil
	}
	if p.complete = p.search.Proven() && states <= mostListed; p.complete {
		var logs []float64
		for _, f := range p.search.Found() {
			logs = append(logs, f.LogProbability)
		}
		if p.logShare = 0; len(logs) > 0 {
			p.logShare = floats.LogSumExp(logs)
		}
		return nil
	}
	return p.estimate(ctx)
}

// estimate finds by draws what lists hold of the law.
func (p *proof) estimate(ctx context.Context) error {
	laws := slices.Clone(p.laws)
	for i := range laws {
		laws[i].Support, laws[i].Allows = p.texts[i].listedSupport(), nil
		if p.kinds[i] == inventedWord {
			_, list := p.filler.words()
			laws[i].Allows = p.texts[i].isInvented(list)
		}
	}
	streams := samplers.Streams(p.options.Seed, p.label()+"\x00lists", listDraws)
	share, err := samplers.EstimateShare(ctx, laws, listError, streams, func(int) bool { return p.room() > 0 })
	p.logShare, p.shareError = share.Log, share.Error
	return err
}

// label names the random streams.
func (p *proof) label() string {
	return strings.Join(append([]string{p.runs[0].typed.Text}, p.options.Together...), "\x00")
}

// listed reports whether a blank has a list, and how many fills the lists make where all have.
func (p *proof) listed() (any bool, states float64) {
	for _, text := range p.texts {
		n := 1.0
		for i := range text.plan.variables {
			v := &text.plan.variables[i]
			if any = any || v.listed; !v.listed {
				n = math.Inf(1)
			}
			n *= float64(v.categories())
		}
		states += n
	}
	return any, states
}

// fills are the likeliest that read differently, as many as are wanted, and how many of those
// found were gone through for them.
func (p *proof) fills() (fills []Fill, through int) {
	seen := map[string]bool{}
	for _, found := range p.search.Found() {
		if len(fills) == p.options.Top {
			break
		}
		through++
		if fill := p.fill(found); !seen[fill.Text] {
			seen[fill.Text] = true
			fill.Rank = len(fills) + 1
			fills = append(fills, fill)
		}
	}
	return fills, through
}

// result is what is known so far.
func (p *proof) result() *Result {
	r := p.newResult(MethodSearch)
	proven := p.search.Proven()
	r.Proven = &proven
	found := p.search.Found()
	var at int
	r.Fills, at = p.fills()
	if !p.complete || at < len(found) {
		bound := p.search.LeftOut()
		if at < len(found) {
			bound = found[at].LogProbability
		}
		most := min(1, math.Exp(bound-p.logShare))
		r.LeftOutAtMost = &most
	} else {
		r.LeftOutAtMost = new(float64)
	}
	r.Stats.DistinctFills = len(found)
	r.Stats.ListedProbability = listedProbability(r.Fills)
	r.Marginals = p.marginals()
	if p.shareError > 0 {
		r.Seed = &p.options.Seed
	}
	p.finish(r)
	return r
}

// newResult is a result without fills.
func (p *proof) newResult(method string) *Result {
	o := &p.options
	r := p.runs[0].newResult()
	r.Method = method
	r.Stats = Stats{Mode: o.Mode, Sampler: Auto, Joint: JointChain, Order: o.Order, Device: r.Model.Device}
	for _, run := range p.runs {
		r.Stats.Slots = max(r.Stats.Slots, len(run.variables))
	}
	return r
}

// finish writes what every result has.
func (p *proof) finish(r *Result) {
	r.Stats.ModelRows, r.Stats.Seconds = p.rows, time.Since(p.began).Seconds()
	r.Signature = p.runs[0].signature(r)
	r.Warnings = []string{}
	for _, run := range p.runs {
		r.warn(run.warnings(r))
	}
}

// fill writes a state that was found.
func (p *proof) fill(found samplers.Found) Fill {
	run := p.runs[found.Law]
	tokens := slices.Clone(found.State[:p.texts[found.Law].texts[0].number])
	fill := run.filled(tokens, found.LogProbability)
	fill.LogLikelihood += p.logLengths * float64(1+len(run.others))
	probability := min(1, math.Exp(found.LogProbability-p.logShare))
	e := probability * p.shareError
	fill.Probability, fill.ProbabilityError = &probability, &e
	if len(p.runs) > 1 {
		fill.Pieces = run.pieces()
	}
	return fill
}

// leftOut says what of other fills is known.
func (p *proof) leftOut(r *Result) string {
	return fmt.Sprintf("nothing left out has more than %.3g", *r.LeftOutAtMost)
}

// marginals are what the beginnings that were followed hold of each blank's values.
func (p *proof) marginals() [][]Marginal {
	blanks := len(p.runs[0].template.Blanks)
	list := make([][]Marginal, blanks)
	for blank := range blanks {
		values := map[string]*Marginal{}
		spared := map[string]float64{} // of open, what cannot come to a value
		open := 0.0
		choices := 0 // that lists leave the blank
		for law, run := range p.runs {
			b := run.template.Blanks[blank]
			var slots []int
			for slot := b.First; slot < b.First+b.Slots; slot++ {
				slots = append(slots, slot)
			}
			choices += run.choices(b)
			if blanks == 1 && len(run.words) > 0 { // each value is a fill, and known or not listed
				for _, found := range p.search.Found() {
					if found.Law == law {
						fill := p.fill(found)
						values[fill.Values[0]] = &Marginal{Text: fill.Values[0], TokenIDs: fill.TokenIDs,
							Probability: math.Exp(found.LogProbability)}
					}
				}
				continue
			}
			// The other slots of its variable decide with it, and so do lists.
			all := p.texts[law].settling(slots)
			byTokens := map[string]*Marginal{}
			sparedTokens := map[string]float64{}
			var key []byte
			missing := p.search.Hold(law, all, func(tokens []int, probability, spared float64) {
				tokens = tokens[:b.Slots]
				key = appendKey(key[:0], tokens)
				m := byTokens[string(key)]
				if m == nil {
					m = &Marginal{TokenIDs: slices.Clone(tokens)}
					byTokens[string(key)] = m
				}
				m.Probability += probability
				sparedTokens[string(key)] += spared
			})
			if run.filler.Model().Cased || p.options.Fill == FillAny {
				missing *= 3 // "new", "New" and "NEW" may read alike, or "s" and "##s"
			}
			open += missing
			own := make([]Marginal, 0, len(byTokens))
			for _, m := range byTokens {
				own = append(own, *m)
			}
			for _, m := range listMarginals(own, 2*mostMarginals) {
				state := make([]int, len(run.template.Slots))
				for i := range state {
					state[i] = run.filler.tokenizer.MaskID() // begins no sentence
				}
				copy(state[b.First:], m.TokenIDs)
				m.Text = run.template.Fill(state).Fills[blank]
				spared[m.Text] += sparedTokens[string(appendKey(key[:0], m.TokenIDs))]
				if other := values[m.Text]; other == nil {
					values[m.Text] = &m
				} else {
					other.Probability += m.Probability
				}
			}
		}
		for _, m := range values {
			list[blank] = append(list[blank], *m)
		}
		list[blank] = listMarginals(list[blank], mostMarginals)
		for i := range list[blank] {
			m := &list[blank][i]
			most := min(1, (m.Probability+open-spared[m.Text])*math.Exp(-p.logShare))
			m.Probability = min(most, m.Probability*math.Exp(-p.logShare))
			if choices == 1 {
				most, m.Probability = 1, 1
			}
			m.AtMost = &most
		}
	}
	return list
}

// draw makes independent draws.
func (p *proof) draw(ctx context.Context) (*Result, error) {
	o := &p.options
	if listed, states := p.listed(); listed && states <= mostListed {
		if err := p.run(ctx); err != nil {
			return nil, err
		}
		switch {
		case p.complete && p.search.Len() == 0:
			return nil, errNoFill
		case p.complete:
			return p.drawListed(), nil
		}
	} else if listed {
		if err := p.estimate(ctx); err != nil {
			return nil, err
		}
	}
	streams := samplers.Streams(o.Seed, p.label(), o.Chains)
	weights := make([]float64, len(p.laws))
	total := 0.0
	for i, l := range p.laws {
		total += math.Exp(l.LogWeight)
		weights[i] = total
	}
	drawn := make([]samplers.Found, o.Chains)
	missing := make([]int, o.Chains)
	for i := range missing {
		missing[i] = i
	}
	attempts := 0
	for len(missing) > 0 {
		if attempts > 0 && p.room() == 0 {
			return nil, misfit("samples", "%s sufficed for %d of %d draws: each slot of a draw takes a row, and a "+
				"draw that the blanks may not take is made again; give more with --budget, or name a sampler",
				o.Budget.text(), o.Chains-len(missing), o.Chains)
		}
		type kind struct{ law, order int }
		of := map[kind][]int{}
		var kinds []kind
		for _, i := range missing {
			law := 0
			for u := streams[i].Float64() * total; law < len(weights)-1 && u >= weights[law]; law++ {
			}
			k := kind{law, streams[i].IntN(len(p.laws[law].Orders))}
			if of[k] == nil {
				kinds = append(kinds, k)
			}
			of[k] = append(of[k], i)
		}
		missing = missing[:0]
		for _, k := range kinds {
			var own []*rand.Rand
			for _, i := range of[k] {
				own = append(own, streams[i])
			}
			draws, err := p.laws[k.law].Draw(ctx, k.order, own)
			if err != nil {
				return nil, err
			}
			for j, d := range draws {
				i := of[k][j]
				if streams[i].Float64() < math.Exp(d.LogWeight) {
					drawn[i] = samplers.Found{Law: k.law, State: d.State}
				} else {
					missing = append(missing, i)
				}
			}
		}
		slices.Sort(missing)
		attempts++
	}
	for number := range p.laws {
		var states [][]int
		var at []int
		for i, d := range drawn {
			if d.Law == number {
				states, at = append(states, d.State), append(at, i)
			}
		}
		logp, err := p.laws[number].LogProbability(ctx, states)
		if err != nil {
			return nil, err
		}
		for j, i := range at {
			drawn[i].LogProbability = logp[j]
		}
	}
	return p.drawnResult(drawn), nil
}

// drawListed draws from the fills of the lists, whose probabilities are all known.
func (p *proof) drawListed() *Result {
	found := p.search.Found()
	drawn := make([]samplers.Found, p.options.Chains)
	for i, stream := range samplers.Streams(p.options.Seed, p.label(), len(drawn)) {
		share := func(at int) float64 { return math.Exp(found[at].LogProbability - p.logShare) }
		at := 0
		for u := stream.Float64() - share(at); u >= 0 && at+1 < len(found); u -= share(at) {
			at++
		}
		drawn[i] = found[at]
	}
	return p.drawnResult(drawn)
}

func (p *proof) drawnResult(drawn []samplers.Found) *Result {
	o := &p.options
	r := p.newResult(MethodDraws)
	r.Seed = &o.Seed
	index := map[string]int{}
	for _, d := range drawn {
		fill := p.fill(d)
		at, seen := index[fill.Text]
		if !seen || o.Rank == RankFinal {
			at = len(r.Fills)
			index[fill.Text] = at
			r.Fills = append(r.Fills, fill)
		}
		r.Fills[at].Count++
	}
	r.Stats.Draws, r.Stats.DistinctFills = len(drawn), len(index)
	if o.Rank == rankDistinct {
		slices.SortStableFunc(r.Fills, func(a, b Fill) int { return cmp.Compare(*b.Probability, *a.Probability) })
	}
	r.rank(o.Top)
	p.finish(r)
	return r
}
