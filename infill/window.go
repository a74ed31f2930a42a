package infill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"infill/tokenize"
)

// Window tells which part of a long text the model saw when it filled some blanks.
type Window struct {
	Blanks [2]int `json:"blanks"` // the first and the last, from 1
	Tokens int    `json:"tokens"` // of the part, [CLS] and [SEP] included
}

// windowTokens is how much of a text the model sees at most.
func (f *Filler) windowTokens(o *Options) int {
	if o.Window > 0 {
		return min(o.Window, f.maxPositions)
	}
	return min(usualWindow, f.maxPositions)
}

// long reads a template, and tells its blanks' longest lengths and whether it has more
// tokens than a window. What is wrong with it Fill finds.
func (f *Filler) long(template string, o *Options) (typed *tokenize.Template, lengths [][2]int, long bool) {
	typed, err := f.tokenizer.Shortest(template)
	if err != nil {
		return nil, nil, false
	}
	rules, err := f.rules(typed, o.Constraints, o.Fill)
	if err != nil {
		return nil, nil, false
	}
	lengths = rules.lengths(typed.Blanks)
	tokens := len(typed.IDs)
	for i, b := range typed.Blanks {
		tokens += lengths[i][1] - b.Slots
	}
	return typed, lengths, tokens > f.windowTokens(o)
}

// fillLong fills the blanks of a long text in groups that have room in one window, from
// left to right. Each group is filled jointly, in the part of the text around it, with the
// likeliest fills of the groups before it in their places.
func (f *Filler) fillLong(ctx context.Context, typed *tokenize.Template, lengths [][2]int, o Options, observe func(Progress)) (*Result, error) {
	start := time.Now()
	tokens := f.windowTokens(&o)
	for i, b := range typed.Blanks {
		if most := lengths[i][1]; most > tokens/2 {
			return nil, &tokenize.InputError{Fault: tokenize.ErrTooLong, Offset: b.Start,
				Detail: fmt.Sprintf("blank %d needs %d of the %d tokens that the model takes; give it fewer", i+1, most, tokens)}
		}
	}
	groups := groupBlanks(typed, lengths, tokens)
	if len(groups) > 1 {
		switch {
		case o.Pins != nil:
			return nil, misfit("pins", "the blanks are too far apart for one window: shorten the text")
		case len(typed.Ties) > 0:
			return nil, misfit("window", "blanks of one name are filled together, and these are too far apart for one window of %d tokens: shorten the text", tokens)
		}
	}
	var whole *Result
	var interrupted error      // beside what was found by then
	text, end := typed.Text, 0 // of the last blank that was filled in it
	for _, g := range groups {
		// The blanks that were filled are text by now: blank g.first is the first.
		rest, err := f.tokenizer.Shortest(text)
		if err != nil {
			return nil, err
		}
		count := g[1] - g[0] + 1
		span := around(rest, count, lengths[g[0]:g[1]+1], tokens)
		if _, err := f.tokenizer.Shortest(text[span[0]:span[1]]); errors.Is(err, tokenize.ErrOnlyBlanks) {
			return nil, misfit("window", "blanks %d to %d leave no room for a word in the %d tokens that the model sees: give fewer blanks, or a larger window, of which the model takes %d", g[0]+1, g[1]+1, tokens, f.maxPositions)
		}
		part := o.of(g, len(typed.Blanks))
		part.Window = f.maxPositions
		var result *Result
		if result, interrupted = f.fillText(ctx, text[span[0]:span[1]], part, true, observe); result == nil {
			break
		}
		shortest, _ := f.tokenizer.Shortest(text[span[0]:span[1]])
		result.Windows = []Window{{Blanks: [2]int{g[0] + 1, g[1] + 1}, Tokens: len(shortest.IDs)}}
		for i := range result.Fills {
			fill := &result.Fills[i]
			fill.Text = text[:span[0]] + fill.Text + text[span[1]:]
			if len(groups) > 1 && fill.Pieces == nil {
				for _, b := range rest.Blanks[:count] {
					fill.Pieces = append(fill.Pieces, b.Slots)
				}
			}
			for k := range fill.Spans {
				fill.Spans[k][0] += span[0]
				fill.Spans[k][1] += span[0]
			}
		}
		if whole == nil {
			whole = result
		} else {
			whole = join(whole, result, end, o.Top)
		}
		if interrupted != nil {
			break
		}
		best := &result.Fills[0]
		text, end = best.Text, best.Spans[count-1][1]
	}
	if whole == nil || interrupted != nil && ctx.Err() == nil {
		return nil, interrupted
	}
	if interrupted != nil && !whole.Unfinished {
		whole.Unfinished, whole.Warnings = true, slices.Insert(whole.Warnings, 0, "unfinished: interrupted before the last blanks")
	}
	// Until here the backslashes kept what is text from becoming a blank.
	for i := range whole.Fills {
		fill := &whole.Fills[i]
		fill.Text = tokenize.Unescape(fill.Text, fill.Spans)
	}
	whole.Template, whole.Blanks = typed.Text, nil
	for _, b := range typed.Blanks {
		whole.Blanks = append(whole.Blanks, [2]int{b.Start, b.End})
	}
	whole.Stats.Seconds = time.Since(start).Seconds()
	whole.Warnings = append([]string{f.windowed(len(typed.IDs), whole.Windows)}, whole.Warnings...)
	return whole, interrupted
}

// windowed says what of a long text the model saw.
func (f *Filler) windowed(tokens int, windows []Window) string {
	if len(windows) == 1 {
		return fmt.Sprintf("of the text's %d tokens the model sees the %d around the blanks", tokens, windows[0].Tokens)
	}
	return fmt.Sprintf("of the text's %d tokens the model sees those around the blanks: in %d windows, from left to right, each with the likeliest fill of those before it", tokens, len(windows))
}

// of are the options for the blanks of a group alone.
func (o Options) of(g [2]int, blanks int) Options {
	if o.Words != nil {
		all := o.Words
		o.Words = map[int][]string{}
		for number, list := range all {
			if at := number - 1; g[0] <= at && at <= g[1] {
				o.Words[number-g[0]] = list
			}
		}
	}
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
// room has them, and no other blank. It returns the bytes of the text.
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
		p := cmp.Or(at(betweenSentences), at(betweenWords), first)
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
		p := cmp.Or(at(betweenSentences), at(betweenWords), last)
		span[1] = typed.Offsets[p][1]
		if p == last {
			span[1] = typed.Blanks[count-1].End
		}
	}
	return span
}

// betweenWords tells whether white space is between two tokens, and betweenSentences
// whether a sentence ends before it too.
func betweenWords(_, between string) bool {
	return strings.ContainsFunc(between, unicode.IsSpace)
}

func betweenSentences(left, between string) bool {
	left = strings.TrimRight(left, `"'”’)]`)
	return betweenWords(left, between) && strings.ContainsFunc(left[max(0, len(left)-3):], func(r rune) bool { return strings.ContainsRune(".!?。！？", r) }) &&
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
		rank float64 // log-probability, or log-likelihood where there is none
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
			Text: x.Text[:last] + y.Text[end:], Values: slices.Concat(x.Values, y.Values), TokenIDs: slices.Concat(x.TokenIDs, y.TokenIDs),
			Spans: slices.Clone(x.Spans), LogLikelihood: x.LogLikelihood + y.LogLikelihood, Frequency: x.Frequency * y.Frequency,
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
	for _, w := range group.Warnings {
		if !slices.Contains(joined.Warnings, w) {
			joined.Warnings = append(joined.Warnings, w)
		}
	}
	s, t := &joined.Stats, &group.Stats
	s.LogNormaliser, s.NormaliserError, s.CandidatesProbability = nil, nil, nil
	s.ListedProbability = listedProbability(joined.Fills)
	s.Candidates = slices.Concat(s.Candidates, t.Candidates)
	s.EffectiveDraws, s.ParetoK = worse(s.EffectiveDraws, t.EffectiveDraws, math.Min), worse(s.ParetoK, t.ParetoK, math.Max)
	s.Draws = max(s.Draws, t.Draws)
	s.Lengths = nil
	s.Slots += t.Slots
	s.ModelRows += t.ModelRows
	s.EnergyEvaluations += t.EnergyEvaluations
	s.GradientEvaluations += t.GradientEvaluations
	s.DistinctFills += t.DistinctFills
	s.MeanLogLikelihood += t.MeanLogLikelihood
	if x, y := s.MeanLogLikelihoodStandardError, t.MeanLogLikelihoodStandardError; x != nil && y != nil {
		e := math.Hypot(*x, *y)
		s.MeanLogLikelihoodStandardError = &e
	}
	return &joined
}

// times is the probability of two fills that are taken for independent, with its
// standard error; nil where one has none.
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
