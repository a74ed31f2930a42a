package infill

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"infill/tokenize"
)

// windowTokens is how much of a text the model sees at most, beside its context, which was checked.
func (f *Filler) windowTokens(o *Options) int {
	context, _ := f.context(o)
	return f.ownWindow(o) - len(context)
}

// window is what the model sees of a long text when it fills some of its blanks.
type window struct {
	span [2]int             // of the text, in bytes
	rest *tokenize.Template // the whole text: the blanks that were filled are words by now
	plan *Plan              // of the part
}

// divide cuts a long text into windows.
func (p *Plan) divide() (err error) {
	f, o := p.filler, &p.Options
	tokens := f.windowTokens(o)
	if o.Together != nil {
		return misfit("together",
			"the first text has more tokens than the window of %d: shorten it, or give a larger window", tokens)
	}
	for i, b := range p.typed.Blanks {
		if most := p.lengths[i][1]; most > tokens/2 {
			return &tokenize.InputError{Fault: tokenize.ErrTooLong, Offset: b.Start,
				Detail: fmt.Sprintf("blank %d needs %d of the %d tokens that the model takes; give it fewer", i+1, most,
					tokens)}
		}
	}
	p.windows = groupBlanks(p.typed, p.lengths, tokens)
	if len(p.windows) > 1 {
		switch {
		case o.Pins != nil:
			return misfit("pins", "the blanks are too far apart for one window: shorten the text")
		case len(p.typed.Ties) > 0:
			return misfit("window", "blanks of one name are filled together, and these are too far apart for one "+
				"window of %d tokens: shorten the text", tokens)
		}
	}
	p.first, err = p.window(0, p.typed)
	return err
}

// window is that of a number, in a text that the windows before it have filled.
func (p *Plan) window(number int, rest *tokenize.Template) (*window, error) {
	f, g := p.filler, p.windows[number]
	w := &window{rest: rest, span: around(rest, g[1]-g[0]+1, p.lengths[g[0]:g[1]+1], f.windowTokens(&p.Options))}
	part, err := f.read(rest.Text[w.span[0]:w.span[1]])
	if errors.Is(err, tokenize.ErrOnlyBlanks) {
		return nil, misfit("window", "blanks %d to %d leave no room for a word in the %d tokens that the model sees: "+
			"give fewer blanks, or a larger window, of which the model takes %d",
			g[0]+1, g[1]+1, f.windowTokens(&p.Options), f.maxPositions)
	}
	if err != nil {
		return nil, err
	}
	o := p.Options.of(g, len(p.typed.Blanks))
	o.Window = f.maxPositions
	request := Request{Options: o}
	if len(p.Originals) > g[1] {
		request.Originals = p.Originals[g[0] : g[1]+1]
	}
	w.plan, err = f.plan(part, request, true)
	return w, err
}

// windowed says what of a long text the model saw.
func windowed(tokens int, windows []Window) string {
	if len(windows) == 1 {
		return fmt.Sprintf("of the text's %d tokens the model sees the %d around the blanks", tokens, windows[0].Tokens)
	}
	return fmt.Sprintf("of the text's %d tokens the model sees those around the blanks: in %d windows, from left to "+
		"right, each with the likeliest fill of those before it", tokens, len(windows))
}

// of are the options for the blanks of a group alone.
func (o Options) of(g [2]int, blanks int) Options {
	within := func(all map[int][]string) map[int][]string {
		part := map[int][]string{}
		for number, list := range all {
			if at := number - 1; number == 0 {
				part[0] = list
			} else if g[0] <= at && at <= g[1] {
				part[number-g[0]] = list
			}
		}
		return part
	}
	o.Words, o.Speech = within(o.Words), within(o.Speech)
	if len(o.Initial.Fill) == blanks {
		o.Initial.Fill = o.Initial.Fill[g[0] : g[1]+1]
	}
	return o
}

// groupBlanks puts blanks together that have room in one window with some text around
// them; of each group the first and the last, [groups].
func groupBlanks(typed *tokenize.Template, lengths [][2]int, tokens int) (groups [][2]int) {
	start := 0
	extra := 0
	for i, b := range typed.Blanks {
		extra += lengths[i][1] - b.Slots
		first := typed.Slots[typed.Blanks[start].First]
		last := typed.Slots[b.First+b.Slots-1]
		if i > start && last-first+extra > tokens*3/4 {
			groups = append(groups, [2]int{start, i - 1})
			start, extra = i, lengths[i][1]-b.Slots
		}
	}
	return append(groups, [2]int{start, len(typed.Blanks) - 1})
}

// around chooses the part of a text that its first blanks, count of them, are filled in:
// about as many tokens on their left as on their right, whole sentences where half of the
// room has them, else whole words where there are blanks, and no other blank. It returns the bytes of the text.
func around(typed *tokenize.Template, count int, lengths [][2]int, tokens int) [2]int {
	end := len(typed.IDs) - 2 // the last token before [SEP]
	first, last := typed.Slots[0], typed.Slots[typed.Blanks[count-1].First+typed.Blanks[count-1].Slots-1]
	room := tokens - 2 - (last - first + 1)
	for i, b := range typed.Blanks[:count] {
		room -= lengths[i][1] - b.Slots
	}
	stop := end
	if count < len(typed.Blanks) {
		stop = typed.Slots[typed.Blanks[count].First] - 1
	}
	left := min(first-1, room/2)
	right := min(stop-last, room-left)
	left = min(first-1, room-right)

	text := typed.Text
	var span [2]int
	if from := first - left; from > 1 {
		// The first beginning of a sentence, or of a word, in the left half of what there is.
		at := func(begins func(left, between string) bool) int {
			for p := from; p <= first-left/2; p++ {
				if before := typed.Offsets[p-1][1]; begins(text[:before], text[before:typed.Offsets[p][0]]) {
					return p
				}
			}
			return 0
		}
		p := cmp.Or(at(betweenSentences), at(betweenWords), from) // the last where no white space is, as in Chinese
		span[0] = typed.Offsets[p][0]
		if p == first {
			span[0] = typed.Blanks[0].Start
		}
	}
	span[1] = len(text)
	if to := last + right; to < end {
		at := func(ends func(left, between string) bool) int {
			for p := to; p >= last+right/2 && p > last; p-- {
				if after := typed.Offsets[p][1]; ends(text[:after], text[after:typed.Offsets[p+1][0]]) {
					return p
				}
			}
			return 0
		}
		p := cmp.Or(at(betweenSentences), at(betweenWords), to)
		span[1] = typed.Offsets[p][1]
		if p == last {
			span[1] = typed.Blanks[count-1].End
		}
	}
	return span
}

// betweenWords reports whether white space is between two tokens, and betweenSentences
// whether a sentence ends before it too.
func betweenWords(_, between string) bool {
	return strings.ContainsFunc(between, unicode.IsSpace)
}

func betweenSentences(left, between string) bool {
	left = strings.TrimRight(left, `"'”’)]`)
	return betweenWords(left, between) &&
		strings.ContainsFunc(left[max(0, len(left)-3):],
			func(r rune) bool { return strings.ContainsRune(".!?。！？", r) }) &&
		strings.TrimRight(left, ".!?。！？") != left
}

// join puts the fills of a group behind those of the groups before it. The group was filled
// with the likeliest fill of those in its place, which its others are taken to go with as well;
// end is where that fill ends in the texts of the group.
func join(before, group *Result, end, top int) *Result {
	const most = 100 // fills of each that are combined
	a, b := before.Fills[:min(most, len(before.Fills))], group.Fills[:min(most, len(group.Fills))]
	joined := *before
	joined.Fills = nil
	type pair struct {
		x, y *Fill
		rank float64 // log-probability, or log-likelihood if there is none
	}
	pairs := make([]pair, 0, len(a)*len(b))
	for i := range a {
		for j := range b {
			x, y := &a[i], &b[j]
			p := pair{x, y, x.LogLikelihood + y.LogLikelihood}
			if before.Stats.Sampler == Auto && x.Probability != nil && y.Probability != nil {
				p.rank = math.Log(*x.Probability * *y.Probability)
			}
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(q.rank, p.rank) })
	for i, p := range pairs[:min(top, len(pairs))] {
		x, y := p.x, p.y
		last := x.Spans[len(x.Spans)-1][1]
		f := Fill{
			Rank: i + 1,
			Text: x.Text[:last] + y.Text[end:], Values: slices.Concat(x.Values, y.Values),
			TokenIDs: slices.Concat(x.TokenIDs, y.TokenIDs),
			Spans:    slices.Clone(x.Spans), LogLikelihood: x.LogLikelihood + y.LogLikelihood,
			Frequency: x.Frequency * y.Frequency,
		}
		for _, s := range y.Spans {
			f.Spans = append(f.Spans, [2]int{s[0] + last - end, s[1] + last - end})
		}
		f.Probability, f.ProbabilityError = times(*x, *y)
		f.Pieces = slices.Concat(x.Pieces, y.Pieces)
		joined.Fills = append(joined.Fills, f)
	}
	if before.Proven != nil && group.Proven != nil {
		// The joined law is the product of the windows'.
		left := max(*before.LeftOutAtMost**b[0].Probability, *a[0].Probability**group.LeftOutAtMost)
		if len(pairs) > len(joined.Fills) {
			left = max(left, math.Exp(pairs[len(joined.Fills)].rank))
		}
		last := &joined.Fills[len(joined.Fills)-1]
		proven := *before.Proven && *group.Proven && left <= *last.Probability*(1+1e-9)
		joined.Proven, joined.LeftOutAtMost = &proven, &left
	}
	joined.Marginals = slices.Concat(before.Marginals, group.Marginals)
	if group.Method != MethodExact {
		joined.Method = group.Method
	}
	joined.Windows = slices.Concat(before.Windows, group.Windows)
	joined.warn(group.Warnings)
	s, t := &joined.Stats, &group.Stats
	s.LogNormaliser, s.NormaliserError, s.CandidatesProbability = nil, nil, nil
	s.ListedProbability = listedProbability(joined.Fills)
	s.Candidates = slices.Concat(s.Candidates, t.Candidates)
	s.EffectiveDraws, s.ParetoK = worse(s.EffectiveDraws, t.EffectiveDraws, math.Min),
		worse(s.ParetoK, t.ParetoK, math.Max)
	s.Draws = max(s.Draws, t.Draws)
	s.Lengths = nil
	s.Slots += t.Slots
	s.spend(t)
	s.MeanLogLikelihood += t.MeanLogLikelihood
	if x, y := s.MeanLogLikelihoodStandardError, t.MeanLogLikelihoodStandardError; x != nil && y != nil {
		e := math.Hypot(*x, *y)
		s.MeanLogLikelihoodStandardError = &e
	}
	return &joined
}

// times is the probability of two fills that are taken for independent, with its
// standard error; nil if one has none.
func times(x, y Fill) (p, standardError *float64) {
	if x.Probability == nil || y.Probability == nil {
		return nil, nil
	}
	product := *x.Probability * *y.Probability
	if x.ProbabilityError == nil || y.ProbabilityError == nil {
		return &product, nil
	}
	e := math.Hypot(*x.ProbabilityError**y.Probability, *y.ProbabilityError**x.Probability)
	return &product, &e
}
