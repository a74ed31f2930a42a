package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"infill/internal/logmath"
)

// evaluation holds the sentences of a method, ready for scoring.
type evaluation struct {
	options     Options
	bleu        bleuOptions
	tokens      [][]string
	units       units
	groups      [][]int // sentences of each prompt; nil if prompts are not known
	likelihoods []float64
	index       *index
	pool        *pool
	sets        []*referenceSet // reference sets, the union last; empty without references
	warnings    []Warning
}

// newEvaluation cuts the sentences into tokens and counts n-grams. Sentences of
// one prompt are one unit of the intervals, as they depend on each other.
func newEvaluation(h Hypotheses, references []Reference, o Options) (*evaluation, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	e := &evaluation{options: o, bleu: bleuOptions{o.Order, o.smoothing}, units: units{name: "sentence"},
		likelihoods: h.LogLikelihoods}
	prompts := map[string]int{}
	empty := 0
	for i, text := range h.Sentences {
		words := o.Tokenisation.hypothesis(text)
		unit := i
		empty += logmath.Indicator(len(words) == 0)
		if h.Prompts != nil {
			unit = number(prompts, h.Prompts[i])
			e.groups = append(e.groups, make([][]int, len(prompts)-len(e.groups))...)
			e.groups[unit] = append(e.groups[unit], i)
		}
		e.units.bySentence = append(e.units.bySentence, unit)
		e.tokens = append(e.tokens, words)
	}
	switch empty {
	case 0:
	case len(h.Sentences):
		return nil, errors.New("hypotheses hold no tokens: every sentence is empty")
	default:
		e.warn("%d of %d sentences hold no token and count as empty hypotheses", empty, len(h.Sentences))
	}
	e.units.count = slices.Max(e.units.bySentence) + 1
	if e.groups != nil {
		e.units.name = "prompt"
	}
	if o.Top > 0 && (e.likelihoods == nil || e.groups == nil) {
		return nil, errors.New(
			"repetition among the top sentences needs the prompt and the log-likelihood of every sentence")
	}
	e.index = newIndex(e.tokens, max(e.bleu.order, slices.Max(append(slices.Clone(o.UniqueOrders), 1))))
	e.pool = newPool(e.index)
	return e, e.read(references)
}

func (e *evaluation) warn(format string, args ...any) {
	e.warnings = append(e.warnings, Warning{Message: fmt.Sprintf(format, args...)})
}

// check returns an error for hypotheses whose lists have different lengths or
// whose likelihoods are not finite.
func (h Hypotheses) check() error {
	sentences := len(h.Sentences)
	switch {
	case sentences == 0:
		return errors.New("no hypotheses: give at least one sentence")
	case h.Prompts != nil && len(h.Prompts) != sentences:
		return fmt.Errorf("%d sentences but %d prompts: name the prompt of every sentence", sentences, len(h.Prompts))
	case h.LogLikelihoods != nil && len(h.LogLikelihoods) != sentences:
		return fmt.Errorf("%d sentences but %d log-likelihoods: give one for every sentence", sentences,
			len(h.LogLikelihoods))
	}
	for i, u := range h.LogLikelihoods {
		if !Value(u).Defined() {
			return fmt.Errorf("log-likelihood of sentence %d is %v: leave such sentences out", i+1, u)
		}
	}
	return nil
}

func (e *evaluation) read(references []Reference) error {
	o := e.options
	sources := map[string]bool{}
	for _, text := range o.Sources {
		sources[joined(o.Tokenisation.Reference(text))] = true
	}
	names := map[string]bool{}
	var limited []*referenceSet // the sets of which the union consists
	excluded := 0
	for _, r := range references {
		if err := checkName(r.Name); err != nil {
			return err
		}
		sentences := make([][]string, len(r.Sentences))
		for i, text := range r.Sentences {
			sentences[i] = o.Tokenisation.Reference(text)
		}
		set := e.index.collect(r.Name, sentences, sources, 0)
		switch {
		case names[r.Name]:
			return fmt.Errorf("two references are named %q: give each its own name", r.Name)
		case len(sentences) == 0:
			return fmt.Errorf("reference %q has no sentence", r.Name)
		case set.Sentences == 0:
			return fmt.Errorf("reference %q has no sentence left: all %d are sources of the hypotheses; take fewer, "+
				"or keep them", r.Name, set.Excluded)
		case set.Tokens == 0:
			return fmt.Errorf("reference %q holds no tokens: every sentence is empty", r.Name)
		case set.lengths[0] == 0:
			e.warn("reference %q has empty sentences, which count as references of length 0", r.Name)
		}
		names[r.Name] = true
		excluded += set.Excluded
		e.sets = append(e.sets, set)
		if o.UnionFirst > 0 {
			set = e.index.collect(r.Name, sentences, sources, o.UnionFirst)
		}
		limited = append(limited, set)
	}
	if len(e.sets) > 0 {
		all := union(limited)
		all.Excluded = excluded
		e.sets = append(e.sets, all)
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return &OptionError{"reference", "it has no name: write NAME=FILE"}
	case name == Union || name == Self:
		return &OptionError{"reference", fmt.Sprintf("the name %q is taken: it stands for %s", name,
			map[string]string{Union: "all references together", Self: "the hypotheses themselves"}[name])}
	case strings.ContainsAny(name, "|:+[]@/=,") ||
		strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return &OptionError{"reference",
			fmt.Sprintf("the name %q: use letters, digits, dot, hyphen and underscore", name)}
	}
	return nil
}

// byPrompt returns a metric of two sums over prompts. The numbers of a prompt
// belong to its first sentence, because samples draw whole prompts.
func (e *evaluation) byPrompt(score func(sums []float64) float64,
	count func(group []int) (above, below float64)) metric {
	rows := make([]float64, 2*len(e.tokens))
	for _, group := range e.groups {
		rows[2*group[0]], rows[2*group[0]+1] = count(group)
	}
	return additive(rows, 2, score)
}

// countRepeated returns the number of sentences that repeat an earlier
// sentence, and the number of all sentences.
func (e *evaluation) countRepeated(sentences []int) (repeated, all float64) {
	said := map[string]bool{}
	for _, tokens := range e.pick(sentences) {
		said[joined(tokens)] = true
	}
	return float64(len(sentences) - len(said)), float64(len(sentences))
}

func (e *evaluation) pick(sentences []int) [][]string {
	tokens := make([][]string, len(sentences))
	for k, i := range sentences {
		tokens[k] = e.tokens[i]
	}
	return tokens
}

// likeliest orders sentences by falling log-likelihood. Among equals, the
// earlier sentence comes first.
func (e *evaluation) likeliest(sentences []int) []int {
	sorted := slices.Clone(sentences)
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(e.likelihoods[b], e.likelihoods[a]) })
	return sorted
}

func (e *evaluation) score(ctx context.Context, m measured) (Score, error) {
	s := Score{Metric: m.kind.name, Reference: m.reference, N: m.n, Unit: m.kind.unit, Value: undefined,
		Signature: m.signature}
	warn := func(format string, args ...any) {
		e.warnings = append(e.warnings, Warning{s.Name(), fmt.Sprintf(format, args...)})
	}
	sums := m.metric.sum(ones(m.metric.sentences))
	if sums != nil {
		s.Value = Value(m.metric.score(sums))
	}
	if !s.Value.Defined() {
		warn("not defined%s", inWords(cmp.Or(m.kind.undefined, " on these sentences"), m.reference, m.n))
		return s, nil
	}
	if m.kind.bleu && !m.kind.prompts {
		s.BLEU = e.bleu.ingredients(sums)
		matches := s.BLEU.Matches[e.bleu.order-1]
		switch {
		case matches == 0 && e.bleu.smoothing.method == noSmoothing:
			warn("no matching %d-gram: the score says nothing of the shorter ones", e.bleu.order)
		case matches < fewMatches:
			warn("%d matching %d-grams: the score depends on them", matches, e.bleu.order)
		}
	}
	if !e.options.NoIntervals && e.units.count >= FewestUnits {
		interval, err := interval(ctx, m.metric, e.units, e.random(), e.options.Confidence)
		if err != nil {
			return s, fmt.Errorf("interval of %s: %w", s.Name(), err)
		}
		if m.kind.unit == percent && interval.Low.Defined() {
			interval.Low = min(max(interval.Low, 0), 100)
			interval.High = min(max(interval.High, 0), 100)
		}
		s.Interval = interval
	}
	return s, nil
}

// random returns one stream for every score: all leave out the same groups.
func (e *evaluation) random() *rand.Rand { return rand.New(rand.NewPCG(e.options.Seed, 0)) }
