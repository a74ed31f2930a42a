package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

// evaluation is the sentences of one method, or of two that are compared, ready for scoring.
type evaluation struct {
	options     Options
	bleu        bleuOptions
	tokens      [][]string
	second      []bool // per sentence: whether of the second method
	units       units
	groups      [][]int // sentences of one method and prompt; nil without prompts
	likelihoods []float64
	index       *index
	pool        *pool
	sets        []*referenceSet // the union last; empty without references
	warnings    []Warning
}

func newEvaluation(methods []Hypotheses, references []Reference, o Options) (*evaluation, error) {
	e := &evaluation{options: o, bleu: bleuOptions{o.Order, o.Smoothing}, units: units{name: "sentence"}}
	prompts := make(map[string]int)
	for k, h := range methods {
		if len(h.Sentences) == 0 {
			return nil, errors.New("no hypotheses: give at least one sentence")
		}
		if h.Prompts != nil && len(h.Prompts) != len(h.Sentences) {
			return nil, fmt.Errorf("%d sentences but %d prompts: name the prompt of every sentence", len(h.Sentences),
				len(h.Prompts))
		}
		if h.LogLikelihoods != nil && len(h.LogLikelihoods) != len(h.Sentences) {
			return nil, fmt.Errorf("%d sentences but %d log-likelihoods: give one for every sentence", len(h.Sentences),
				len(h.LogLikelihoods))
		}
		if (h.Prompts == nil) != (methods[0].Prompts == nil) ||
			(h.LogLikelihoods == nil) != (methods[0].LogLikelihoods == nil) {
			return nil, errors.New(
				"one method has prompts or log-likelihoods and the other has not: give both or neither")
		}
		tokens, empty := 0, 0
		before, groups := len(e.groups), make(map[string]int)
		for i, text := range h.Sentences {
			words := o.Tokenisation.hypothesis(text)
			tokens += len(words)
			empty += indicator(len(words) == 0)
			unit := i
			if h.Prompts != nil {
				group := before + number(groups, h.Prompts[i])
				if group == len(e.groups) {
					e.groups = append(e.groups, nil)
				}
				e.groups[group] = append(e.groups[group], len(e.tokens))
				unit = number(prompts, h.Prompts[i])
			}
			e.units.of = append(e.units.of, unit)
			if h.LogLikelihoods != nil {
				if u := h.LogLikelihoods[i]; math.IsNaN(u) || math.IsInf(u, 0) {
					return nil, fmt.Errorf("log-likelihood of sentence %d is %v: leave such sentences out", i+1, u)
				}
				e.likelihoods = append(e.likelihoods, h.LogLikelihoods[i])
			}
			e.tokens = append(e.tokens, words)
			e.second = append(e.second, k > 0)
		}
		if tokens == 0 {
			return nil, errors.New("hypotheses hold no tokens: every sentence is empty")
		}
		if empty > 0 {
			e.warnings = append(e.warnings, warn("%d of %d sentences hold no token and count as empty hypotheses",
				empty, len(h.Sentences)))
		}
	}
	e.units.count = slices.Max(e.units.of) + 1
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

// read fills the reference sets.
func (e *evaluation) read(references []Reference) error {
	if len(references) == 0 {
		return nil
	}
	o := e.options
	var skip func([]string) bool
	if len(o.Sources) > 0 {
		sources := map[string]bool{}
		for _, text := range o.Sources {
			sources[joined(o.Tokenisation.Reference(text))] = true
		}
		skip = func(tokens []string) bool { return sources[joined(tokens)] }
	}
	names := map[string]bool{}
	var limited []*referenceSet
	excluded := 0
	for _, r := range references {
		if err := checkName(r.Name); err != nil {
			return err
		}
		if names[r.Name] {
			return fmt.Errorf("two references are named %q: give each its own name", r.Name)
		}
		names[r.Name] = true
		if len(r.Sentences) == 0 {
			return fmt.Errorf("reference %q has no sentence", r.Name)
		}
		sentences := make([][]string, len(r.Sentences))
		for i, text := range r.Sentences {
			sentences[i] = o.Tokenisation.Reference(text)
		}
		set := e.index.collect(r.Name, sentences, skip)
		if set.Sentences == 0 {
			return fmt.Errorf("reference %q has no sentence left: all %d are sources of the hypotheses", r.Name,
				set.Excluded)
		}
		if set.Tokens == 0 {
			return fmt.Errorf("reference %q holds no tokens: every sentence is empty", r.Name)
		}
		if set.lengths[0] == 0 {
			e.warnings = append(e.warnings,
				warn("reference %q has empty sentences, which count as references of length 0", r.Name))
		}
		excluded += set.Excluded
		e.sets = append(e.sets, set)
		if o.UnionFirst > 0 {
			taken := 0
			limited = append(limited, e.index.collect(r.Name, sentences, func(tokens []string) bool {
				if taken == o.UnionFirst || skip != nil && skip(tokens) {
					return true
				}
				taken++
				return false
			}))
		}
	}
	if limited == nil {
		limited = e.sets
	}
	all := union(limited)
	all.Excluded = excluded
	e.sets = append(e.sets, all)
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a reference has no name: write NAME=FILE")
	case name == Union || name == Self:
		return fmt.Errorf("reference name %q is taken: it stands for %s", name,
			map[string]string{Union: "all references together", Self: "the hypotheses themselves"}[name])
	case strings.ContainsAny(name, "|:+[]@/=,") ||
		strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return fmt.Errorf("reference name %q: use letters, digits, dot, hyphen and underscore", name)
	}
	return nil
}

// measured is a metric of an evaluation with what names it.
type measured struct {
	metric, reference string
	n                 int
	unit              string
	of                metric
	signature         Signature
	bleu              func() BLEUScore // nil if it is no BLEU
}

// metrics lists all scores that the sentences allow.
func (e *evaluation) metrics() []measured {
	o := e.options
	var list []measured
	add := func(m measured, c choices) {
		c.metric = strings.ReplaceAll(m.metric, "_", "-")
		c.n = m.n
		if m.unit == "" {
			m.unit = unitPercent
		}
		m.signature = e.signature("metric", c)
		list = append(list, m)
	}
	self := e.pool.selfBLEU(e.bleu)
	add(measured{metric: MetricSelfBLEU, of: self.metric(), bleu: self.score}, choices{bleu: true})
	for _, set := range e.sets {
		b := e.index.bleu(set, e.bleu)
		add(measured{metric: MetricCorpusBLEU, reference: set.Name, of: b.metric(), bleu: b.score},
			choices{bleu: true, sets: []*referenceSet{set}})
	}
	for _, n := range o.UniqueOrders {
		add(measured{metric: MetricUniqueNGrams, reference: Self, n: n, of: e.pool.selfUnique(n)}, choices{})
	}
	for _, set := range e.sets {
		for _, n := range o.UniqueOrders {
			add(measured{metric: MetricUniqueNGrams, reference: set.Name, n: n, of: e.pool.distinct(n, set)},
				choices{sets: []*referenceSet{set}})
		}
	}
	for _, n := range o.UniqueOrders {
		add(measured{metric: metricDistinctNGrams, n: n, of: e.pool.distinct(n, nil)}, choices{})
	}
	add(measured{metric: metricRepeatedSentences, of: repeated(e.tokens)}, choices{})
	if e.groups != nil {
		add(measured{metric: metricSelfBLEUPerPrompt, of: e.perPromptSelfBLEU()}, choices{bleu: true})
		add(measured{metric: metricRepeatedWithinPrompt, of: e.repeatedAmong(func(group []int) []int { return group })},
			choices{})
	}
	if o.Top > 0 {
		add(measured{metric: metricRepeatedTop, of: e.repeatedAmong(func(group []int) []int {
			return e.likeliest(group)[:min(len(group), o.Top)]
		})}, choices{top: o.Top})
	}
	if e.likelihoods != nil {
		add(measured{metric: MetricLogLikelihoodMean, unit: unitNats,
			of: ratio(e.likelihoods, slices.Repeat([]float64{1}, len(e.tokens)), 1)}, choices{})
		if e.groups != nil {
			add(measured{metric: metricLogLikelihoodBest, unit: unitNats,
				of: e.byPrompt(1, func(group []int) (above, below float64) {
					return e.likelihoods[e.likeliest(group)[0]], 1
				})}, choices{})
		}
	}
	return list
}

// byPrompt is a ratio of what is taken within each prompt. It is booked on the prompt's first sentence, as samples draw
// whole prompts.
func (e *evaluation) byPrompt(scale float64, of func(group []int) (above, below float64)) metric {
	above, below := make([]float64, len(e.tokens)), make([]float64, len(e.tokens))
	for _, group := range e.groups {
		above[group[0]], below[group[0]] = of(group)
	}
	return ratio(above, below, scale)
}

func (e *evaluation) perPromptSelfBLEU() metric {
	return e.byPrompt(1, func(group []int) (above, below float64) {
		if len(group) < 2 {
			return 0, 0
		}
		return float64(newPool(newIndex(e.pick(group), e.bleu.order)).selfBLEU(e.bleu).score().Score), 1
	})
}

// repeatedAmong is the share of sentences that say the same as an earlier one among those that pick takes of each
// prompt's.
func (e *evaluation) repeatedAmong(pick func(group []int) []int) metric {
	return e.byPrompt(100, func(group []int) (above, below float64) {
		group = pick(group)
		_, different := texts(e.pick(group))
		return float64(len(group) - different), float64(len(group))
	})
}

func (e *evaluation) pick(sentences []int) [][]string {
	tokens := make([][]string, len(sentences))
	for k, i := range sentences {
		tokens[k] = e.tokens[i]
	}
	return tokens
}

// likeliest orders sentences by falling log-likelihood, earlier ones first among equals.
func (e *evaluation) likeliest(sentences []int) []int {
	sorted := slices.Clone(sentences)
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(e.likelihoods[b], e.likelihoods[a]) })
	return sorted
}

func (e *evaluation) score(ctx context.Context, m measured) (Score, []Warning, error) {
	s := Score{Metric: m.metric, Reference: m.reference, N: m.n, Unit: m.unit, Signature: m.signature}
	var warnings []Warning
	if m.bleu != nil {
		b := m.bleu()
		s.Value = b.Score
		if b.Score.Defined() {
			s.BLEU = &b
			switch matches := b.Matches[len(b.Matches)-1]; {
			case matches == 0:
				warnings = append(warnings, Warning{s.Name(), fmt.Sprintf("no matching %d-gram: the score says "+
					"nothing of the shorter ones", len(b.Matches))})
			case matches < fewMatches:
				warnings = append(warnings, Warning{s.Name(), fmt.Sprintf("only %d matching %d-grams: the score "+
					"depends on them", matches, len(b.Matches))})
			}
		}
	} else {
		s.Value = m.of.value()
	}
	if !s.Value.Defined() {
		return s, append(warnings, Warning{s.Name(), e.whyUndefined(m)}), nil
	}
	if e.options.Resamples > 0 && e.units.count >= FewestUnits {
		interval, err := interval(ctx, m.of, e.units, e.random(), resampling{e.options.Resamples, e.options.Confidence})
		if err != nil {
			return s, nil, fmt.Errorf("interval of %s: %w", s.Name(), err)
		}
		if m.unit == unitPercent {
			interval.clamp(0, 100)
		}
		s.Interval = interval
	}
	return s, warnings, nil
}

func (e *evaluation) whyUndefined(m measured) string {
	switch m.metric {
	case MetricSelfBLEU:
		return "not defined for one sentence"
	case metricSelfBLEUPerPrompt:
		return "not defined: no prompt has two sentences"
	case MetricUniqueNGrams, metricDistinctNGrams:
		return fmt.Sprintf("not defined: no sentence has %d tokens", m.n)
	}
	return "not defined on these sentences"
}

// random starts the same stream for every score, so that all are resampled alike.
func (e *evaluation) random() *rand.Rand { return rand.New(rand.NewPCG(e.options.Seed, 0)) }

func (interval *Interval) clamp(low, high Value) {
	if interval.Low.Defined() {
		interval.Low = min(max(interval.Low, low), high)
		interval.High = min(max(interval.High, low), high)
	}
}

// choices are those parts of a signature that differ from score to score.
type choices struct {
	metric string
	bleu   bool  // whether n-gram length, smoothing and reference length matter
	n      int   // of a score of n-grams of one length
	unique []int // of the report
	top    int
	sets   []*referenceSet
}

func (e *evaluation) signature(key string, c choices) Signature {
	o := e.options
	var s Signature
	s.add(key, c.metric)
	s.add("tokenisation", o.Tokenisation)
	if c.bleu {
		s.add("bleu-n", o.Order)
		s.add("smoothing", o.Smoothing)
		s.add("length", "closest")
	}
	if c.n > 0 {
		s.add("n", c.n)
	}
	if len(c.unique) > 0 {
		s.add("n", strings.Trim(strings.ReplaceAll(fmt.Sprint(c.unique), " ", ","), "[]"))
	}
	if c.top > 0 {
		s.add("top", c.top)
	}
	if len(c.sets) > 0 {
		excluded := c.sets[len(c.sets)-1].Excluded
		s.add("references", describe(c.sets...))
		if excluded > 0 {
			s.add("excluded", excluded)
		}
		if o.UnionFirst > 0 && c.sets[len(c.sets)-1].Name == Union {
			s.add("union-first", o.UnionFirst)
		}
	}
	if o.Resamples > 0 {
		s.add("intervals", "jackknife")
		s.add("resamples", o.Resamples)
		s.add("unit", e.units.name)
		s.add("confidence", o.Confidence)
		s.add("seed", o.Seed)
	}
	s.add("version", o.Version)
	return s
}

// whole is the signature of all scores together.
func (e *evaluation) whole(key string) Signature {
	return e.signature(key,
		choices{metric: "bleu+self-bleu+unique-n-grams", bleu: true, unique: e.options.UniqueOrders, top: e.options.Top,
			sets: e.sets})
}
