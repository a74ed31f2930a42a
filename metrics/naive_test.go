package metrics

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"infill/internal/logmath"
)

// The oracle: every definition written out pair by pair with maps of
// joined words, as the papers and NLTK's documentation state it. It shares
// nothing with the package but the weights' meaning, and is the baseline
// of the benchmarks.

func naiveCounts(tokens []string, n int) map[string]int {
	counts := map[string]int{}
	for p := 0; p+n <= len(tokens); p++ {
		counts[strings.Join(tokens[p:p+n], "\x00")]++
	}
	return counts
}

type naiveSums struct {
	matches, totals        []int
	hypothesis, references int
}

func (s *naiveSums) add(hypothesis []string, references [][]string, order, times int) {
	if s.matches == nil {
		s.matches, s.totals = make([]int, order), make([]int, order)
	}
	for n := 1; n <= order; n++ {
		counts := naiveCounts(hypothesis, n)
		most := map[string]int{}
		for _, reference := range references {
			for gram, count := range naiveCounts(reference, n) {
				most[gram] = max(most[gram], count)
			}
		}
		total := 0
		for gram, count := range counts {
			s.matches[n-1] += times * min(count, most[gram])
			total += count
		}
		s.totals[n-1] += times * max(1, total)
	}
	s.hypothesis += times * len(hypothesis)
	closest := slices.MinFunc(references, func(a, b []string) int {
		distance := func(reference []string) float64 { return math.Abs(float64(len(reference) - len(hypothesis))) }
		return cmp.Or(cmp.Compare(distance(a), distance(b)), len(a)-len(b))
	})
	s.references += times * len(closest)
}

func (s *naiveSums) bleu() float64 {
	if s.matches[0] == 0 {
		return 0
	}
	product := 1.0
	for k := range s.matches {
		precision := float64(s.matches[k]) / float64(s.totals[k])
		if s.matches[k] == 0 {
			precision = math.SmallestNonzeroFloat64 * (1 << 52) // Python's sys.float_info.min
		}
		product *= math.Pow(precision, 1/float64(len(s.matches)))
	}
	if s.hypothesis <= s.references {
		product *= math.Exp(1 - float64(s.references)/float64(s.hypothesis))
	}
	return 100 * product
}

func naiveCorpusBLEU(hypotheses, references [][]string, order int) float64 {
	var s naiveSums
	for _, hypothesis := range hypotheses {
		s.add(hypothesis, references, order, 1)
	}
	return s.bleu()
}

// naiveSelfBLEU scores a weighted sample: copies are hypotheses, and references
// of nobody a second time.
func naiveSelfBLEU(sentences [][]string, weights []int, order int) float64 {
	var s naiveSums
	different := 0
	for i := range sentences {
		if weights[i] == 0 {
			continue
		}
		different++
		var others [][]string
		for j := range sentences {
			if j != i && weights[j] > 0 {
				others = append(others, sentences[j])
			}
		}
		if len(others) == 0 {
			return math.NaN()
		}
		s.add(sentences[i], others, order, weights[i])
	}
	if different < 2 {
		return math.NaN()
	}
	return s.bleu()
}

func naiveSelfUnique(sentences [][]string, n int) float64 {
	counts, total := naiveTotal(sentences, n)
	once := 0
	for _, count := range counts {
		once += logmath.Indicator(count == 1)
	}
	return 100 * float64(once) / float64(total)
}

func naiveUnique(sentences, references [][]string, n int) float64 {
	ours, total := naiveTotal(sentences, n)
	theirs, _ := naiveTotal(references, n)
	for gram := range theirs {
		delete(ours, gram)
	}
	return 100 * float64(len(ours)) / float64(total)
}

// naiveTotal counts the n-grams of all sentences, each and together.
func naiveTotal(sentences [][]string, n int) (counts map[string]int, total int) {
	counts = map[string]int{}
	for _, tokens := range sentences {
		for gram, count := range naiveCounts(tokens, n) {
			counts[gram] += count
			total += count
		}
	}
	return counts, total
}

// pickWeighted lists the sentences with a weight, once each.
func pickWeighted(sentences [][]string, weights []int) [][]string {
	var picked [][]string
	for i, w := range weights {
		if w > 0 {
			picked = append(picked, sentences[i])
		}
	}
	return picked
}
