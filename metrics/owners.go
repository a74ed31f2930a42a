package metrics

import (
	"slices"

	"infill/internal/logmath"
)

// pool lists, for each n-gram, the sentences that have it, by length, for
// scores that compare hypotheses with each other. sole has the n-grams of only
// one sentence, and shared has the n-grams of several sentences.
type pool struct {
	index        *index
	sole, shared [][]pooledGram
}

// pooledGram is an n-gram with the sentences that have it. The sentence with
// the largest count comes first.
type pooledGram struct {
	node   uint32
	owners []owner
}

// owner is a sentence that has an n-gram, and the n-gram's count in the sentence.
type owner struct{ sentence, count int32 }

// newPool lists who has each n-gram. Those of one sentence alone, as most are,
// stand apart: they match no other.
func newPool(x *index) *pool {
	p := &pool{index: x, sole: make([][]pooledGram, x.order+1), shared: make([][]pooledGram, x.order+1)}
	numbers := make([]int, x.nodes) // number of each n-gram among the n-grams of length n, from 1
	for n := 1; n <= x.order; n++ {
		var all []pooledGram
		for i := range x.sentences {
			for _, g := range x.sentences[i].grams[n] {
				if numbers[g.node] == 0 {
					all = append(all, pooledGram{node: g.node})
					numbers[g.node] = len(all)
				}
				pooled := &all[numbers[g.node]-1]
				pooled.owners = append(pooled.owners, owner{int32(i), g.count})
			}
		}
		for _, g := range all {
			if len(g.owners) == 1 {
				p.sole[n] = append(p.sole[n], g)
				continue
			}
			slices.SortStableFunc(g.owners, func(a, b owner) int { return int(b.count) - int(a.count) })
			p.shared[n] = append(p.shared[n], g)
		}
	}
	return p
}

// selfBLEU returns the corpus BLEU in which the references of every
// sentence are all other sentences. A sentence drawn w times counts w times
// as a hypothesis. Its references are the other drawn sentences, once each,
// and never its own copies. With fewer than two different sentences,
// self-BLEU is not defined.
func (p *pool) selfBLEU(o bleuOptions) metric {
	sentences := p.index.sentences
	var lengths []int // different lengths of sentences, ascending
	for i := range sentences {
		lengths = append(lengths, sentences[i].length)
	}
	slices.Sort(lengths)
	lengths = slices.Compact(lengths)
	ranks := make([]int, len(sentences)) // index in lengths of each sentence's length
	for i := range ranks {
		ranks[i], _ = slices.BinarySearch(lengths, sentences[i].length)
	}
	return metric{sentences: len(sentences), pooled: true, score: o.score, sum: func(weights []int) []float64 {
		drawn := 0
		present := make([]int, len(lengths)) // drawn sentences by length
		for i, w := range weights {
			drawn += logmath.Indicator(w > 0)
			present[ranks[i]] += logmath.Indicator(w > 0)
		}
		if drawn < 2 {
			return nil
		}
		sums := make([]float64, o.width())
		for i, w := range weights {
			if w == 0 {
				continue
			}
			for n := 1; n <= o.order; n++ {
				sums[o.order+n-1] += float64(w * max(1, sentences[i].total(n)))
			}
			sums[2*o.order] += float64(w * sentences[i].length)
			sums[2*o.order+1] += float64(w * closestOther(lengths, present, ranks[i]))
		}
		for n := 1; n <= o.order; n++ {
			for _, g := range p.shared[n] {
				sums[n-1] += float64(g.selfMatches(weights))
			}
		}
		return sums
	}}
}

// selfMatches returns the matches of an n-gram between the sentences of a
// sample. Every owner's count is a match, but the first owner has at most the
// count of the second.
func (g pooledGram) selfMatches(weights []int) (matches int) {
	first := 0
	limit := 0
	for _, o := range g.owners {
		w := weights[o.sentence]
		switch {
		case w == 0:
		case first == 0:
			first = w
		default:
			limit = max(limit, int(o.count))
			matches += w * int(o.count)
		}
	}
	return matches + first*limit
}

// closestOther returns, among the other sentences of a sample, the length
// nearest to lengths[rank], or the shorter of two equally near. present counts
// the sentences of each length.
func closestOther(lengths, present []int, rank int) int {
	if present[rank] > 1 {
		return lengths[rank]
	}
	below := rank - 1
	above := rank + 1
	for below >= 0 && present[below] == 0 {
		below--
	}
	for above < len(present) && present[above] == 0 {
		above++
	}
	if above == len(present) || below >= 0 && lengths[rank]-lengths[below] <= lengths[above]-lengths[rank] {
		return lengths[below]
	}
	return lengths[above]
}

// share returns a metric in percent: the sum of count over the different
// n-grams of length n in a sample, divided by the number of all its n-grams.
// count gets the number of sentences of the sample that own the n-gram, the
// number of times that these sentences were drawn, and the last owner, which is
// the only one if there is one.
func (p *pool) share(n int, count func(node uint32, owners, drawn int, last owner) float64) metric {
	sole := make([]float64, len(p.index.sentences)) // sum of count over the n-grams that only this sentence has
	for _, g := range p.sole[n] {
		sole[g.owners[0].sentence] += count(g.node, 1, 1, g.owners[0])
	}
	return metric{sentences: len(sole), pooled: true, score: percentage, sum: func(weights []int) []float64 {
		counted := 0.0
		total := 0
		for i, w := range weights {
			counted += float64(w) * sole[i]
			total += w * p.index.sentences[i].total(n)
		}
		for _, g := range p.shared[n] {
			owners := 0
			drawn := 0
			last := owner{}
			for _, o := range g.owners {
				w := weights[o.sentence]
				if w > 0 {
					owners++
					drawn += w
					last = o
				}
			}
			if owners > 0 {
				counted += count(g.node, owners, drawn, last)
			}
		}
		return []float64{counted, float64(total)}
	}}
}

// selfUnique is nyu-dl/bert-gen's self_unique_ngrams: n-grams that occur
// exactly once in all sentences, over the number of n-grams. A second copy of a
// drawn sentence does not count as another occurrence of its n-grams.
func (p *pool) selfUnique(n int) metric {
	return p.share(n, func(_ uint32, owners, drawn int, last owner) float64 {
		return float64(drawn * logmath.Indicator(owners == 1 && last.count == 1))
	})
}

// distinct counts the different n-grams of the sentences that a reference set
// does not have (nyu-dl/bert-gen's ref_unique_ngrams), over the number of
// n-grams. If set is nil, it is distinct-n (Li et al. 2016, "A
// Diversity-Promoting Objective Function"). An n-gram that k drawn sentences
// share counts 1/k for each sentence. So a sentence drawn w times has w times
// the weight in numerator and denominator alike.
func (p *pool) distinct(n int, set *referenceSet) metric {
	return p.share(n, func(node uint32, owners, drawn int, _ owner) float64 {
		if set != nil && set.most[node] > 0 {
			return 0
		}
		return float64(drawn) / float64(owners)
	})
}

// repeated returns a metric: the sentences that repeat an earlier sentence, in
// percent. It treats each sentence as one token, and counts the tokens that
// are not distinct.
func repeated(sentences [][]string) metric {
	whole := make([][]string, len(sentences))
	for i, tokens := range sentences {
		whole[i] = []string{joined(tokens)}
	}
	m := newPool(newIndex(whole, 1)).distinct(1, nil)
	m.score = func(sums []float64) float64 { return percentage([]float64{sums[1] - sums[0], sums[1]}) }
	return m
}
