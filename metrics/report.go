package metrics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Hypotheses are the generated sentences to score.
type Hypotheses struct {
	Sentences []string
	// Prompts names, for every sentence, the prompt (template) that the
	// sentence fills. Sentences of one prompt are not independent, so the
	// jackknife leaves out a prompt with all its sentences, and some
	// scores are computed for each prompt. If Prompts is nil, each
	// sentence is its own prompt.
	Prompts []string
	// LogLikelihoods is U of every sentence in nats; nil if not known.
	LogLikelihoods []float64
}

// Reference is a named text with which hypotheses are compared.
type Reference struct {
	Name      string
	Sentences []string
}

// Union is the name of all references together.
const Union = "all"

// Self is the reference name for unique n-grams among the hypotheses themselves.
const Self = "self"

// Options change a report; the zero value is nyu-dl/bert-gen's.
type Options struct {
	Tokenisation Tokenisation
	// Order 0 means 4. All lengths of n-grams have the same weight.
	Order     int `option:"order" help:"longest n-gram of BLEU"`
	Smoothing Smoothing
	// UniqueOrders nil means 1 to 4.
	UniqueOrders []int `option:"ngrams" help:"lengths for unique and distinct n-grams"`
	// Sources are the sentences that were masked to make hypotheses. Reference
	// sentences with the same tokens are left out, and counted.
	Sources []string
	// UnionFirst limits the union of the references to the first sentences of
	// each reference, not counting sentences that are left out (2500 in
	// nyu-dl/bert-gen's notebook); 0 means all.
	UnionFirst int `option:"union-first" help:"limit the union of the references to the first N sentences of each; 0 is all"`
	// Top needs LogLikelihoods; 0 means no such score.
	Top int `option:"top" short:"k" help:"repetition among the N likeliest of each template as well, for JSONL; 0 is not"`
	// NoIntervals leaves out the intervals, which take most of the time.
	NoIntervals bool    `option:"no-intervals" help:"no intervals, which take most of the time"`
	Confidence  float64 `option:"confidence" help:"of the intervals, between 0 and 1"` // 0 means 0.95
	// Seed is the start of the random numbers that group units for intervals,
	// if there are more than 200 units.
	Seed uint64 `option:"seed" help:"start of the random numbers that group sentences for the intervals; 0 when not given"`
	// Version is the program's version, for the signature.
	Version string

	smoothing smoothing // Smoothing as parsed by normal
}

// OptionError reports an option with a wrong value.
type OptionError struct{ Option, Reason string }

var _ error = (*OptionError)(nil)

func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

// Validate returns an *OptionError for the first option with a wrong value.
func (o Options) Validate() error {
	_, err := o.normal()
	return err
}

// DefaultOptions returns the zero Options with every default written out.
func DefaultOptions() Options {
	o, err := Options{}.normal()
	if err != nil {
		panic(err) // a bug in the program
	}
	return o
}

// normal returns o with its defaults, or an *OptionError.
func (o Options) normal() (_ Options, err error) {
	o.Tokenisation = cmp.Or(o.Tokenisation, WhiteSpace)
	o.Order = cmp.Or(o.Order, 4)
	o.Confidence = cmp.Or(o.Confidence, 0.95)
	o.Smoothing = cmp.Or(o.Smoothing, noSmoothing)
	o.Version = cmp.Or(o.Version, "devel")
	if o.UniqueOrders == nil {
		o.UniqueOrders = []int{1, 2, 3, 4}
	}
	o.UniqueOrders = slices.Compact(slices.Sorted(slices.Values(o.UniqueOrders)))
	o.smoothing, err = o.Smoothing.parse()
	if err != nil {
		return o, &OptionError{"smoothing", err.Error()}
	}
	wrong := func(option, format string, args ...any) (Options, error) {
		return o, &OptionError{option, fmt.Sprintf(format, args...)}
	}
	for _, n := range o.UniqueOrders {
		if n < 1 || n > MaximumOrder {
			return wrong("ngrams", "%d is not a whole number from 1 to %d", n, MaximumOrder)
		}
	}
	switch {
	case !slices.Contains(o.Tokenisation.Values(), o.Tokenisation):
		return wrong("tokenisation", "%q is not one of %s, %s, %s", string(o.Tokenisation), WhiteSpace, BertGen, DISCS)
	case o.Order < 1 || o.Order > MaximumOrder:
		return wrong("order", "%d is not a whole number from 1 to %d", o.Order, MaximumOrder)
	case o.UnionFirst < 0:
		return wrong("union-first", "%d is not a whole number of 0 (all) or more", o.UnionFirst)
	case o.Top < 0:
		return wrong("top", "%d is not a whole number of 0 or more", o.Top)
	case !(o.Confidence > 0 && o.Confidence < 1):
		return wrong("confidence", "%v is not a number between 0 and 1", o.Confidence)
	case strings.ContainsAny(o.Version, "|:"):
		return wrong("version", "%q may hold neither a bar nor a colon", o.Version)
	}
	return o, nil
}

// Report is the result of [Evaluate], in per cent from 0 to 100, and nats.
type Report struct {
	Sentences int `json:"sentences"`
	Tokens    int `json:"tokens"`
	Prompts   int `json:"prompts,omitempty"` // 0 if prompts are not known
	// References describes the references in the given order; the union is last.
	References []ReferenceSummary `json:"references"`
	// Scores holds every score, with its interval and signature, in a fixed order.
	Scores    []Score   `json:"scores"`
	Warnings  []Warning `json:"warnings"`
	SHA256    string    `json:"hypotheses_sha256"` // of the tokenised hypotheses
	Signature string    `json:"signature"`
}

// ReferenceSummary summarises a reference.
type ReferenceSummary struct {
	Name      string `json:"name"`
	Sentences int    `json:"sentences"`
	Tokens    int    `json:"tokens"`
	Excluded  int    `json:"excluded"` // sentences left out because they are sources
	SHA256    string `json:"sha256"`   // of the tokenised sentences that were used
}

// Score is one number with its interval and signature.
type Score struct {
	Metric    string `json:"metric"`              // "self_bleu", "corpus_bleu", "unique_ngrams", …
	Reference string `json:"reference,omitempty"` // "" if the metric has no reference
	N         int    `json:"n,omitempty"`         // length of unique or distinct n-grams, else 0
	Value     Value  `json:"value"`
	Unit      string `json:"unit"` // "percent" or "nats"
	// Interval is nil with Options.NoIntervals, and for under FewestUnits.
	Interval  *Interval  `json:"interval,omitempty"`
	BLEU      *BLEUScore `json:"bleu,omitempty"` // ingredients of a BLEU
	Signature string     `json:"signature"`
}

// Name returns the score's name in one word, such as "unique_ngrams/tbc/2".
func (s Score) Name() string {
	name := s.Metric
	if s.Reference != "" {
		name += "/" + s.Reference
	}
	if s.N > 0 {
		name += fmt.Sprint("/", s.N)
	}
	return name
}

// Title returns the score's name for people.
func (s Score) Title() string {
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == s.Metric })]
	return inWords(k.title, s.Reference, s.N)
}

// Value returns the value of a score by its name, such as "corpus_bleu/tbc". It
// is undefined if there is no such score.
func (r *Report) Value(name string) Value {
	s, ok := r.Score(name)
	if ok {
		return s.Value
	}
	return undefined
}

// Score returns a score by its name. It returns false if there is no such score.
func (r *Report) Score(name string) (Score, bool) {
	i := slices.IndexFunc(r.Scores, func(s Score) bool { return s.Name() == name })
	if i < 0 {
		return Score{}, false
	}
	return r.Scores[i], true
}

// Warning is something that the reader of a score should know.
type Warning struct {
	Score   string `json:"score,omitempty"` // name of the score; "" if it is about all scores
	Message string `json:"message"`
}

// A number below one of these bounds gives a warning or, for FewestUnits, no interval.
const (
	FewestUnits = 5  // sentences, or prompts: with fewer, scores have no interval
	fewUnits    = 20 // sentences, or prompts: the coverage of intervals was measured from this number on
	fewMatches  = 10 // matches of the longest n-grams: with fewer, BLEU and its interval depend on single matches
)

// Evaluate scores hypotheses by themselves and against references.
func Evaluate(ctx context.Context, hypotheses Hypotheses, references []Reference, o Options) (*Report, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	e, err := newEvaluation(hypotheses, references, o)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Sentences: len(e.tokens), SHA256: fingerprint(e.tokens),
		References: []ReferenceSummary{}, Signature: e.wholeSignature("metrics"),
	}
	for _, tokens := range e.tokens {
		r.Tokens += len(tokens)
	}
	for _, set := range e.sets {
		r.References = append(r.References, set.ReferenceSummary)
	}
	for _, m := range e.metrics() {
		score, err := e.score(ctx, m)
		if err != nil {
			return nil, err
		}
		r.Scores = append(r.Scores, score)
	}
	units := e.units
	switch {
	case o.NoIntervals:
	case units.count < FewestUnits:
		e.warn("no intervals: %s, at least %d are needed", units, FewestUnits)
	case units.count < fewUnits:
		e.warn("intervals from %s are rough: what they cover was measured from %d on", units, fewUnits)
	}
	r.Warnings = append([]Warning{}, e.warnings...)
	if e.groups != nil {
		r.Prompts = e.units.count
	}
	return r, nil
}
