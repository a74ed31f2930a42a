package metrics

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaximumOrder bounds n-grams: a mistyped flag must not index sentences.
const MaximumOrder = 16

// Smoothing says how BLEU treats n-gram lengths without a match (Chen &
// Cherry 2014, "A Systematic Comparison of Smoothing Techniques for
// Sentence-Level BLEU"; the numbers are those of NLTK's SmoothingFunction).
// The zero value does not smooth. Methods:
//
//   - none, method0: a precision without a match becomes the smallest normal float64. So BLEU-4 comes out near 1e-76
//     percent and not at exactly 0. With no matching unigram it is exactly 0 under every method.
//   - epsilon or epsilon=E, method1: E (0.1) is the number of matches if there are none.
//   - add-k or add-k=K, method2 (Lin & Och 2004): K (1) is added to matches and totals of every length but 1.
//   - exp, method3, the NIST geometric sequence: the i-th length without a match counts 1/2^i matches.
type Smoothing string

const (
	noSmoothing = "none"
	epsilon     = "epsilon"
	addK        = "add-k"
	exponential = "exp"
)

type smoothing struct {
	method   string
	constant float64 // 0 if the method has no constant
}

func (s Smoothing) parse() (smoothing, error) {
	method, constant, given := strings.Cut(cmp.Or(string(s), noSmoothing), "=")
	usual, known := map[string]float64{noSmoothing: 0, epsilon: 0.1, addK: 1, exponential: 0}[method]
	p := smoothing{method, usual}
	switch {
	case !known:
		return p, fmt.Errorf("%q is not one of %s, %s[=E], %s[=K], %s", method, noSmoothing, epsilon, addK, exponential)
	case given && usual == 0:
		return p, fmt.Errorf("%s takes no constant", method)
	case given:
		var err error
		p.constant, err = strconv.ParseFloat(constant, 64)
		if err != nil || !(p.constant > 0) || math.IsInf(p.constant, 0) {
			return p, fmt.Errorf("%q: the constant after = must be a number above 0", s)
		}
	}
	return p, nil
}

// String returns the text in signatures: "none", "epsilon[0.1]", "add-k[1]", "exp".
func (s smoothing) String() string {
	if s.constant == 0 {
		return s.method
	}
	return fmt.Sprintf("%s[%v]", s.method, s.constant)
}

// bleuOptions are the options that change a BLEU of given sentences.
type bleuOptions struct {
	order     int // longest n-gram; lengths 1 to order have equal weights
	smoothing smoothing
}

// BLEUScore is a corpus BLEU with its ingredients (Papineni et al. 2002).
type BLEUScore struct {
	Score            Value     `json:"score"`             // percent
	Precisions       []float64 `json:"precisions"`        // percent, by n-gram length from 1, before smoothing
	Matches          []int64   `json:"matches"`           // clipped matches, by n-gram length
	Totals           []int64   `json:"totals"`            // n-grams by length, at least 1 a sentence, as in NLTK
	BrevityPenalty   float64   `json:"brevity_penalty"`   // from 0 to 1
	HypothesisLength int64     `json:"hypothesis_length"` // tokens
	ReferenceLength  int64     `json:"reference_length"`  // tokens, sum of the closest reference lengths
}

// width returns the number of sums for a BLEU: clipped matches by length,
// totals by length, hypothesis length, and closest reference length.
func (o bleuOptions) width() int { return 2*o.order + 2 }

// score computes a BLEU in percent from its sums, as
// nltk.translate.bleu_score.corpus_bleu does.
func (o bleuOptions) score(sums []float64) float64 {
	matches := sums[:o.order]
	totals := sums[o.order : 2*o.order]
	if matches[0] == 0 {
		return 0
	}
	logarithms := 0.0
	missing := 0
	for k := range matches {
		match := matches[k]
		total := totals[k]
		switch o.smoothing.method {
		case epsilon:
			if match == 0 {
				match = o.smoothing.constant
			}
		case addK:
			if k > 0 {
				match += o.smoothing.constant
				total += o.smoothing.constant
			}
		case exponential:
			if match == 0 {
				missing++
				match = math.Ldexp(1, -missing)
			}
		default:
			if match == 0 {
				match = 0x1p-1022
				total = 1
			}
		}
		logarithms += math.Log(match / total)
	}
	return 100 * o.brevityPenalty(sums) * math.Exp(logarithms/float64(o.order))
}

func (o bleuOptions) brevityPenalty(sums []float64) float64 {
	hypothesis := sums[2*o.order]
	reference := sums[2*o.order+1]
	switch {
	case hypothesis > reference:
		return 1
	case hypothesis == 0:
		return 0
	default:
		return math.Exp(1 - reference/hypothesis)
	}
}

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

// bleu returns the BLEU that compares every hypothesis with one reference set.
// o.order must not exceed x.order.
func (x *index) bleu(set *referenceSet, o bleuOptions) metric {
	width := o.width()
	rows := make([]float64, len(x.sentences)*width)
	for i := range x.sentences {
		s := &x.sentences[i]
		row := rows[i*width : (i+1)*width]
		for n := 1; n <= o.order; n++ {
			matches := int32(0)
			for _, g := range s.grams[n] {
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
