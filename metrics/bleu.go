package metrics

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaximumOrder bounds the length of n-grams, so that a mistyped flag does not index whole sentences.
const MaximumOrder = 16

// Smoothing says how BLEU treats n-gram lengths without a match (Chen & Cherry 2014, "A Systematic Comparison of
// Smoothing Techniques for Sentence-Level BLEU"; the numbers are those of NLTK's SmoothingFunction). The zero value is
// none. Methods:
//
//   - none, method0: a precision without a match becomes the smallest normal float64, so BLEU-4 comes out near 1e-76
//     percent and not at
//     exactly 0; with no matching unigram it is exactly 0 under every method.
//   - epsilon, method1: ε (0.1) is the number of matches if there are none.
//   - add-k, method2 (Lin & Och 2004): k (1) is added to matches and totals of every length but 1.
//   - exp, method3, the NIST geometric sequence: the i-th length without a match counts 1/2^i matches.
type Smoothing struct {
	Method   string  // empty: none
	Constant float64 // ε or k; 0 = the method's default
}

const (
	noSmoothing = "none"
	epsilon     = "epsilon"
	addK        = "add-k"
	exponential = "exp"
)

// ParseSmoothing reads "none", "epsilon", "epsilon=0.05", "add-k", "add-k=2" or "exp"; the empty text means none.
func ParseSmoothing(text string) (Smoothing, error) {
	method, constant, given := strings.Cut(text, "=")
	s := Smoothing{Method: method}
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
	switch s.Method = cmp.Or(s.Method, noSmoothing); s.Method {
	case noSmoothing, exponential:
		if s.Constant != 0 {
			return s, fmt.Errorf("smoothing %s takes no constant", s.Method)
		}
	case epsilon:
		s.Constant = cmp.Or(s.Constant, 0.1)
	case addK:
		s.Constant = cmp.Or(s.Constant, 1)
	default:
		return s, fmt.Errorf("unknown smoothing %q: choose one of %s", s.Method,
			strings.Join([]string{noSmoothing, epsilon, addK, exponential}, ", "))
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
		return s.Method
	}
	return fmt.Sprintf("%s[%v]", s.Method, s.Constant)
}

// bleuOptions are what changes a BLEU score besides its sentences.
type bleuOptions struct {
	order     int // longest n-gram, weights uniform over 1..order
	smoothing Smoothing
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

// width is the number of sums of a BLEU: clipped matches by length, totals by length, hypothesis length, closest
// reference length.
func (o bleuOptions) width() int { return 2*o.order + 2 }

// score computes a BLEU, in percent, of its sums as nltk.translate.bleu_score.corpus_bleu does.
func (o bleuOptions) score(sums []float64) float64 {
	matches, totals := sums[:o.order], sums[o.order:2*o.order]
	if matches[0] == 0 {
		return 0
	}
	logarithms, missing := 0.0, 0
	for k := range matches {
		match, total := matches[k], totals[k]
		switch o.smoothing.Method {
		case epsilon:
			if match == 0 {
				match = o.smoothing.Constant
			}
		case addK:
			if k > 0 {
				match, total = match+o.smoothing.Constant, total+o.smoothing.Constant
			}
		case exponential:
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
	return 100 * o.brevityPenalty(sums) * math.Exp(logarithms/float64(o.order))
}

func (o bleuOptions) brevityPenalty(sums []float64) float64 {
	hypothesis, reference := sums[2*o.order], sums[2*o.order+1]
	switch {
	case hypothesis > reference:
		return 1
	case hypothesis == 0:
		return 0
	default:
		return math.Exp(1 - reference/hypothesis)
	}
}

// ingredients are those of the score of sums.
func (o bleuOptions) ingredients(sums []float64) *BLEUScore {
	s := &BLEUScore{
		Score: Value(o.score(sums)), BrevityPenalty: o.brevityPenalty(sums),
		HypothesisLength: int64(sums[2*o.order]), ReferenceLength: int64(sums[2*o.order+1]),
	}
	for k := range o.order {
		s.Matches = append(s.Matches, int64(sums[k]))
		s.Totals = append(s.Totals, int64(sums[o.order+k]))
		s.Precisions = append(s.Precisions, 100*sums[k]/sums[o.order+k])
	}
	return s
}

// bleu is the metric that compares every hypothesis with one reference set. o is normal and o.order at most x.order.
func (x *index) bleu(set *referenceSet, o bleuOptions) metric {
	width := o.width()
	rows := make([]float64, len(x.sentences)*width)
	for i := range x.sentences {
		s, row := &x.sentences[i], rows[i*width:(i+1)*width]
		for n := 1; n <= o.order; n++ {
			matches := int32(0)
			for _, g := range s.ofOrder(n) {
				matches += min(g.count, set.most[g.node])
			}
			row[n-1] = float64(matches)
			row[o.order+n-1] = float64(max(1, s.total(n)))
		}
		row[2*o.order] = float64(s.length)
		row[2*o.order+1] = float64(closest(set.lengths, s.length))
	}
	return additive(rows, width, o.score)
}
