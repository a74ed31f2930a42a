package metrics

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// DefaultOrder is the longest n-gram of BLEU where none is given.
const DefaultOrder = 4

// MaximumOrder bounds the length of n-grams, so that a slip in a flag does not index whole sentences.
const MaximumOrder = 16

// SmoothingMethod names how BLEU treats n-gram lengths without a match (Chen & Cherry 2014, "A Systematic Comparison of Smoothing
// Techniques for Sentence-Level BLEU"; the numbers are those of NLTK's SmoothingFunction).
type SmoothingMethod string

const (
	// NoSmoothing is NLTK's method0: a precision without a match becomes the smallest normal float64, so BLEU-4 comes out near
	// 1e-76 percent and not at exactly 0; with no matching unigram it is exactly 0 under every method.
	NoSmoothing SmoothingMethod = "none"
	// Epsilon is method1: ε (0.1) is the number of matches where there are none.
	Epsilon SmoothingMethod = "epsilon"
	// AddK is method2 (Lin & Och 2004): k (1) is added to matches and totals of every length but 1.
	AddK SmoothingMethod = "add-k"
	// Exponential is method3, the NIST geometric sequence: the i-th length without a match counts 1/2^i matches.
	Exponential SmoothingMethod = "exp"
)

// Smoothing is a method with its constant. The zero value is no smoothing.
type Smoothing struct {
	Method   SmoothingMethod
	Constant float64 // ε or k; 0 = the method's default
}

// SmoothingMethods lists the known methods, the default first.
func SmoothingMethods() []SmoothingMethod {
	return []SmoothingMethod{NoSmoothing, Epsilon, AddK, Exponential}
}

// ParseSmoothing reads "none", "epsilon", "epsilon=0.05", "add-k", "add-k=2" or "exp"; the empty text is none.
func ParseSmoothing(text string) (Smoothing, error) {
	method, constant, given := strings.Cut(text, "=")
	s := Smoothing{Method: SmoothingMethod(method)}
	if given {
		value, err := strconv.ParseFloat(constant, 64)
		if err != nil || value == 0 {
			return Smoothing{}, fmt.Errorf("smoothing %q: the constant after = must be a number above 0", text)
		}
		s.Constant = value
	}
	return s.normal()
}

// normal fills in defaults and checks.
func (s Smoothing) normal() (Smoothing, error) {
	switch s.Method {
	case "":
		s.Method = NoSmoothing
		return s.normal()
	case NoSmoothing, Exponential:
		if s.Constant != 0 {
			return s, fmt.Errorf("smoothing %s takes no constant", s.Method)
		}
	case Epsilon:
		if s.Constant == 0 {
			s.Constant = 0.1
		}
	case AddK:
		if s.Constant == 0 {
			s.Constant = 1
		}
	default:
		names := make([]string, 0, 4)
		for _, m := range SmoothingMethods() {
			names = append(names, string(m))
		}
		return s, fmt.Errorf("unknown smoothing %q: choose one of %s", s.Method, strings.Join(names, ", "))
	}
	if s.Constant < 0 || math.IsNaN(s.Constant) || math.IsInf(s.Constant, 0) {
		return s, fmt.Errorf("smoothing %s: constant %v must be a number above 0", s.Method, s.Constant)
	}
	return s, nil
}

// String is the form the signature shows: "none", "epsilon[0.1]", "add-k[1]", "exp".
func (s Smoothing) String() string {
	s, err := s.normal()
	if err != nil || s.Constant == 0 {
		return string(s.Method)
	}
	return fmt.Sprintf("%s[%v]", s.Method, s.Constant)
}

// BLEUOptions are what changes a BLEU score besides its sentences.
type BLEUOptions struct {
	Order     int // longest n-gram, weights uniform over 1..Order; 0 = [DefaultOrder]
	Smoothing Smoothing
}

func (o BLEUOptions) normal() (BLEUOptions, error) {
	if o.Order == 0 {
		o.Order = DefaultOrder
	}
	if o.Order < 1 || o.Order > MaximumOrder {
		return o, fmt.Errorf("longest n-gram %d: choose 1 to %d", o.Order, MaximumOrder)
	}
	var err error
	o.Smoothing, err = o.Smoothing.normal()
	return o, err
}

// BLEUScore is a corpus BLEU with its ingredients (Papineni et al. 2002).
type BLEUScore struct {
	Score            Value     `json:"score"`             // percent
	Precisions       []float64 `json:"precisions"`        // percent, by n-gram length from 1, before smoothing
	Matches          []int64   `json:"matches"`           // clipped
	Totals           []int64   `json:"totals"`            // at least 1 a sentence, as NLTK counts
	BrevityPenalty   float64   `json:"brevity_penalty"`   // 0..1
	HypothesisLength int64     `json:"hypothesis_length"` // tokens
	ReferenceLength  int64     `json:"reference_length"`  // tokens, sum of the closest reference lengths
}

// BLEU is a corpus BLEU kept as the statistics of each hypothesis, from which the score of any sample of the sentences follows.
type BLEU struct {
	options BLEUOptions
	// [sentences × width], row-major: clipped matches by length, totals by length, hypothesis length, closest reference length.
	rows []float64
}

var _ Metric = (*BLEU)(nil)

func (o BLEUOptions) width() int { return 2*o.Order + 2 }

// bleu computes the score, in percent, of summed statistics as nltk.translate.bleu_score.corpus_bleu does.
func (o BLEUOptions) bleu(sum []float64) float64 {
	matches, totals := sum[:o.Order], sum[o.Order:2*o.Order]
	if matches[0] == 0 {
		return 0
	}
	logarithms, missing := 0.0, 0
	for k := range matches {
		match, total := matches[k], totals[k]
		switch o.Smoothing.Method {
		case Epsilon:
			if match == 0 {
				match = o.Smoothing.Constant
			}
		case AddK:
			if k > 0 {
				match, total = match+o.Smoothing.Constant, total+o.Smoothing.Constant
			}
		case Exponential:
			if match == 0 {
				missing++
				match = math.Ldexp(1, -missing)
			}
		default:
			if match == 0 {
				match, total = 0x1p-1022, 1
			}
		}
		logarithms += math.Log(match / total)
	}
	return 100 * o.brevityPenalty(sum) * math.Exp(logarithms/float64(o.Order))
}

func (o BLEUOptions) brevityPenalty(sum []float64) float64 {
	hypothesis, reference := sum[2*o.Order], sum[2*o.Order+1]
	switch {
	case hypothesis > reference:
		return 1
	case hypothesis == 0:
		return 0
	default:
		return math.Exp(1 - reference/hypothesis)
	}
}

func (o BLEUOptions) score(sum []float64) BLEUScore {
	s := BLEUScore{
		Score: Value(o.bleu(sum)), BrevityPenalty: o.brevityPenalty(sum),
		HypothesisLength: int64(sum[2*o.Order]), ReferenceLength: int64(sum[2*o.Order+1]),
	}
	for k := range o.Order {
		s.Matches = append(s.Matches, int64(sum[k]))
		s.Totals = append(s.Totals, int64(sum[o.Order+k]))
		s.Precisions = append(s.Precisions, 100*sum[k]/sum[o.Order+k])
	}
	return s
}

var errNoReference = errors.New("no reference sentence: BLEU needs at least one")

// SharedBLEU compares every hypothesis with all the references, the corpus BLEU of nyu-dl/bert-gen. The cost is linear in the tokens
// of both sides.
func SharedBLEU(hypotheses, references [][]string, o BLEUOptions) (*BLEU, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	if len(hypotheses) == 0 {
		return nil, errNoHypothesis
	}
	if len(references) == 0 {
		return nil, errNoReference
	}
	x := newIndex(hypotheses, o.Order)
	return x.bleu(x.collect("", references, nil), o), nil
}

// CorpusBLEU gives every hypothesis its own references, as NLTK's corpus_bleu; references[i] must not be empty.
func CorpusBLEU(hypotheses [][]string, references [][][]string, o BLEUOptions) (*BLEU, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	if len(hypotheses) == 0 {
		return nil, errNoHypothesis
	}
	if len(references) != len(hypotheses) {
		return nil, fmt.Errorf("%d hypotheses but references for %d: give one list of references for each hypothesis", len(hypotheses), len(references))
	}
	b := &BLEU{options: o}
	for i := range hypotheses {
		if len(references[i]) == 0 {
			return nil, fmt.Errorf("hypothesis %d: %w", i+1, errNoReference)
		}
		x := newIndex(hypotheses[i:i+1], o.Order)
		b.rows = append(b.rows, x.bleu(x.collect("", references[i], nil), o).rows...)
	}
	return b, nil
}

// bleu fills the statistics of every hypothesis against one reference set. o is normal and o.Order at most x.order.
func (x *index) bleu(set *referenceSet, o BLEUOptions) *BLEU {
	width := o.width()
	b := &BLEU{options: o, rows: make([]float64, len(x.sentences)*width)}
	for i := range x.sentences {
		s, row := &x.sentences[i], b.rows[i*width:(i+1)*width]
		for n := 1; n <= o.Order; n++ {
			matches := int32(0)
			for _, g := range s.ofOrder(n) {
				matches += min(g.count, set.most[g.node])
			}
			row[n-1] = float64(matches)
			row[o.Order+n-1] = float64(max(1, s.total(n)))
		}
		row[2*o.Order] = float64(s.length)
		row[2*o.Order+1] = float64(closest(set.lengths, s.length))
	}
	return b
}

// Sentences is the number of hypotheses.
func (b *BLEU) Sentences() int { return len(b.rows) / b.options.width() }

// Pooled is false: hypotheses are compared with fixed references, so statistics add up.
func (b *BLEU) Pooled() bool { return false }

// Statistics returns those of hypothesis i: clipped matches by n-gram length, totals by length, its length, the closest reference
// length. The slice is the metric's own; callers must not change it.
func (b *BLEU) Statistics(i int) []float64 {
	width := b.options.width()
	return b.rows[i*width : (i+1)*width : (i+1)*width]
}

// Evaluator returns a function that scores samples, in percent.
func (b *BLEU) Evaluator() func(weights []int) float64 {
	sum := make([]float64, b.options.width())
	return func(weights []int) float64 {
		if !addRows(sum, b.rows, weights) {
			return math.NaN()
		}
		return b.options.bleu(sum)
	}
}

// Score is the BLEU of all hypotheses.
func (b *BLEU) Score() BLEUScore {
	sum := make([]float64, b.options.width())
	for k, v := range b.rows {
		sum[k%len(sum)] += v
	}
	return b.options.score(sum)
}

// addRows sets sum to the weighted sum of the rows and reports whether any row had a weight.
func addRows(sum, rows []float64, weights []int) bool {
	clear(sum)
	any := false
	for i, w := range weights {
		if w == 0 {
			continue
		}
		any = true
		for k, v := range rows[i*len(sum) : (i+1)*len(sum)] {
			sum[k] += float64(w) * v
		}
	}
	return any
}
