package metrics

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

const (
	MetricSelfBLEU             = "self_bleu"
	MetricCorpusBLEU           = "corpus_bleu"
	MetricUniqueNGrams         = "unique_ngrams"
	MetricLogLikelihoodMean    = "log_likelihood_mean"
	metricDistinctNGrams       = "distinct_ngrams"
	metricRepeatedSentences    = "repeated_sentences"
	metricSelfBLEUPerPrompt    = "self_bleu_per_prompt"
	metricRepeatedWithinPrompt = "repeated_within_prompt"
	metricRepeatedTop          = "repeated_top"
	metricLogLikelihoodBest    = "log_likelihood_best"
)

const percent, nats = "percent", "nats"

// kind describes a metric: its names, its parameters and the data that it needs.
type kind struct {
	name, unit string
	title      string // name for people, with {n} and {reference}
	undefined  string // the case in which the metric is not defined

	bleu       bool // whether it depends on Order and Smoothing
	lengths    bool // whether it has a score for each length of n-grams
	references bool // whether it has a score for each reference
	self       bool // whether it also has a score against the sentences themselves

	prompts, likelihoods, top bool // which data it needs
}

// kinds lists the metrics in the order of a report.
var kinds = []kind{
	{name: MetricSelfBLEU, unit: percent, title: "self-BLEU", undefined: " for one sentence", bleu: true},
	{name: MetricCorpusBLEU, unit: percent, title: "corpus BLEU {reference}", bleu: true, references: true},
	{name: MetricUniqueNGrams, unit: percent, title: "unique {n}-grams {reference}",
		undefined: ": no sentence has {n} tokens", lengths: true, references: true, self: true},
	{name: metricDistinctNGrams, unit: percent, title: "distinct {n}-grams",
		undefined: ": no sentence has {n} tokens", lengths: true},
	{name: metricRepeatedSentences, unit: percent, title: "repeated sentences"},
	{name: metricSelfBLEUPerPrompt, unit: percent, title: "self-BLEU within templates",
		undefined: ": no prompt has two sentences", bleu: true, prompts: true},
	{name: metricRepeatedWithinPrompt, unit: percent, title: "repeated within templates", prompts: true},
	{name: metricRepeatedTop, unit: percent, title: "repeated among the likeliest", top: true},
	{name: MetricLogLikelihoodMean, unit: nats, title: "mean log-likelihood, nats", likelihoods: true},
	{name: metricLogLikelihoodBest, unit: nats, title: "best log-likelihood, nats", likelihoods: true, prompts: true},
}

// compute returns the metric of a kind, against a reference if set is not nil,
// for n-grams of length n.
func (e *evaluation) compute(k kind, set *referenceSet, n int) metric {
	switch k.name {
	case MetricSelfBLEU:
		return e.pool.selfBLEU(e.bleu)
	case MetricCorpusBLEU:
		return e.index.bleu(set, e.bleu)
	case MetricUniqueNGrams:
		if set == nil {
			return e.pool.selfUnique(n)
		}
		return e.pool.distinct(n, set)
	case metricDistinctNGrams:
		return e.pool.distinct(n, nil)
	case metricRepeatedSentences:
		return repeated(e.tokens)
	case metricSelfBLEUPerPrompt:
		return e.byPrompt(quotient, func(group []int) (above, below float64) {
			if len(group) < 2 {
				return 0, 0
			}
			return newPool(newIndex(e.pick(group), e.bleu.order)).selfBLEU(e.bleu).value(), 1
		})
	case metricRepeatedWithinPrompt:
		return e.byPrompt(percentage, e.countRepeated)
	case metricRepeatedTop:
		return e.byPrompt(percentage, func(group []int) (above, below float64) {
			return e.countRepeated(e.likeliest(group)[:min(len(group), e.options.Top)])
		})
	case MetricLogLikelihoodMean:
		return mean(e.likelihoods)
	case metricLogLikelihoodBest:
		return e.byPrompt(quotient, func(group []int) (above, below float64) {
			return e.likelihoods[e.likeliest(group)[0]], 1
		})
	}
	panic(k.name + " is not computed") // a bug in the program
}

func inWords(text, reference string, n int) string {
	where := map[string]string{Self: "among themselves", Union: "against all references"}[reference]
	where = cmp.Or(where, "against "+reference)
	return strings.NewReplacer("{n}", strconv.Itoa(n), "{reference}", where).Replace(text)
}

// measured is a metric of an evaluation, with its kind, reference and length of n-grams.
type measured struct {
	kind      kind
	metric    metric
	reference string
	n         int
	signature string
}

// metrics lists all metrics for which the sentences have the data.
func (e *evaluation) metrics() (list []measured) {
	for _, k := range kinds {
		if k.prompts && e.groups == nil || k.likelihoods && e.likelihoods == nil || k.top && e.options.Top == 0 {
			continue
		}
		var sets []*referenceSet
		if k.self || !k.references {
			sets = append(sets, nil)
		}
		if k.references {
			sets = append(sets, e.sets...)
		}
		lengths := []int{0}
		if k.lengths {
			lengths = e.options.UniqueOrders
		}
		for _, set := range sets {
			for _, n := range lengths {
				m := measured{kind: k, metric: e.compute(k, set, n), n: n}
				var against []*referenceSet
				if set != nil {
					m.reference = set.Name
					against = append(against, set)
				} else if k.self {
					m.reference = Self
				}
				m.signature = e.signature("metric", k, against, n)
				list = append(list, m)
			}
		}
	}
	return list
}

// signature returns everything that changes a score besides the sentences, as
// sacrebleu prints with every score (Post 2018, "A Call for Clarity in
// Reporting BLEU Scores"):
// "metric:self-bleu|tokenisation:whitespace|bleu-n:4|…". Two scores are
// comparable if their signatures are equal. Keys and values hold no bar, and
// keys hold no colon.
func (e *evaluation) signature(key string, k kind, sets []*referenceSet, lengths ...int) string {
	o := e.options
	var fields []string
	add := func(key string, value any) { fields = append(fields, fmt.Sprintf("%s:%v", key, value)) }
	add(key, strings.ReplaceAll(k.name, "_", "-"))
	add("tokenisation", o.Tokenisation)
	if k.bleu {
		add("bleu-n", o.Order)
		add("smoothing", o.smoothing)
		add("length", "closest")
	}
	if k.lengths {
		add("n", strings.Trim(strings.ReplaceAll(fmt.Sprint(lengths), " ", ","), "[]"))
	}
	if k.top && o.Top > 0 {
		add("top", o.Top)
	}
	if len(sets) > 0 {
		// A set has its size and its SHA-256's start, "tbc[5000@0123456789ab]".
		var names []string
		for _, set := range sets {
			names = append(names, fmt.Sprintf("%s[%d@%s]", set.Name, set.Sentences, set.SHA256[:12]))
		}
		add("references", strings.Join(names, "+"))
		last := sets[len(sets)-1]
		if last.Excluded > 0 {
			add("excluded", last.Excluded)
		}
		if o.UnionFirst > 0 && last.Name == Union {
			add("union-first", o.UnionFirst)
		}
	}
	if !o.NoIntervals {
		add("intervals", "jackknife")
		add("unit", e.units.name)
		add("confidence", o.Confidence)
		add("seed", o.Seed)
	}
	add("version", o.Version)
	return strings.Join(fields, "|")
}

func (e *evaluation) wholeSignature(key string) string {
	all := kind{name: "bleu+self-bleu+unique-n-grams", bleu: true, lengths: len(e.options.UniqueOrders) > 0, top: true}
	return e.signature(key, all, e.sets, e.options.UniqueOrders...)
}
