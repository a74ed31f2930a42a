package metrics

import (
	"slices"
)

// pool holds, for the scores that compare hypotheses with each other, which sentences share which n-grams. N-grams that
// only one sentence has ("sole") need no look at the other sentences and are kept as counts.
type pool struct {
	index    *index
	nodes    []uint32  // shared n-gram → node of the index
	first    []int     // shared n-grams of length n are first[n-1]..first[n]
	start    []int     // postings of shared n-gram k are start[k]..start[k+1]
	postings []posting // largest count first
	grams    []shared  // of sentence i and length n: grams[from[i*order+n-1]:from[i*order+n]]
	from     []int
}

type posting struct{ sentence, count int32 }

type shared struct{ id, count int32 }

func newPool(x *index) *pool {
	p := &pool{index: x, first: make([]int, x.order+1), from: make([]int, 1, len(x.sentences)*x.order+1)}
	owners := make([]int32, x.nodes)
	for i := range x.sentences {
		for _, g := range x.sentences[i].grams {
			owners[g.node]++
		}
	}
	ids := make([]int32, x.nodes)
	p.start = append(p.start, 0)
	for n := 1; n <= x.order; n++ {
		for i := range x.sentences {
			for _, g := range x.sentences[i].ofOrder(n) {
				// The count of owners is spent here so that an n-gram gets its number once.
				if k := owners[g.node]; k > 1 {
					ids[g.node] = int32(len(p.nodes)) + 1
					p.nodes = append(p.nodes, g.node)
					p.start = append(p.start, p.start[len(p.start)-1]+int(k))
					owners[g.node] = 0
				}
			}
		}
		p.first[n] = len(p.nodes)
	}
	p.postings = make([]posting, p.start[len(p.start)-1])
	p.grams = make([]shared, 0, len(p.postings))
	filled := slices.Clone(p.start[:len(p.nodes)])
	for i := range x.sentences {
		for n := 1; n <= x.order; n++ {
			for _, g := range x.sentences[i].ofOrder(n) {
				if id := ids[g.node] - 1; id >= 0 {
					p.grams = append(p.grams, shared{id, g.count})
					p.postings[filled[id]] = posting{int32(i), g.count}
					filled[id]++
				}
			}
			p.from = append(p.from, len(p.grams))
		}
	}
	for id := range p.nodes {
		list := p.postings[p.start[id]:p.start[id+1]]
		slices.SortStableFunc(list, func(a, b posting) int { return int(b.count) - int(a.count) })
	}
	return p
}

func (p *pool) ofOrder(sentence, n int) []shared {
	k := sentence*p.index.order + n
	return p.grams[p.from[k-1]:p.from[k]]
}

// selfBLEU is the corpus BLEU in which the references of every sentence are all the other sentences. It is kept in a
// form from which the score of any sample of the sentences follows in time linear in the sample's shared n-grams: for
// every n-gram the largest count with its owner and the second largest, so that leaving a sentence out costs nothing.
type selfBLEU struct {
	pool    *pool
	options bleuOptions
	lengths []int // distinct lengths, ascending
	rank    []int // of every sentence, its length in lengths
}

func (p *pool) selfBLEU(o bleuOptions) *selfBLEU {
	m := &selfBLEU{pool: p, options: o, rank: make([]int, len(p.index.sentences))}
	for i := range p.index.sentences {
		m.lengths = append(m.lengths, p.index.sentences[i].length)
	}
	slices.Sort(m.lengths)
	m.lengths = slices.Compact(m.lengths)
	for i := range m.rank {
		m.rank[i], _ = slices.BinarySearch(m.lengths, p.index.sentences[i].length)
	}
	return m
}

// metric scores samples. A sentence drawn w times counts w times as a hypothesis; its references are the other
// sentences drawn, once each, and never its own copies. Fewer than two different sentences have no self-BLEU: NaN.
func (m *selfBLEU) metric() metric { return m.options.metric(len(m.rank), true, m.summer) }

// score is the self-BLEU of all sentences, undefined for fewer than two.
func (m *selfBLEU) score() BLEUScore { return m.options.score(m.summer()(ones(len(m.rank)))) }

// summer returns a function that sums the statistics of a sample, or returns nil if there are none.
func (m *selfBLEU) summer() func(weights []int) []float64 {
	p, order := m.pool, m.options.order
	sum := make([]float64, m.options.width())
	most := make([]posting, len(p.nodes)) // the largest count in the sample and its owner
	second := make([]int32, len(p.nodes))
	present := make([]int, len(m.lengths)) // sentences of that length in the sample
	below, above := make([]int, len(m.lengths)), make([]int, len(m.lengths))
	return func(weights []int) []float64 {
		clear(sum)
		clear(present)
		sentences := 0
		for i, w := range weights {
			if w > 0 {
				sentences++
				present[m.rank[i]]++
			}
		}
		if sentences < 2 {
			return nil
		}
		for id := range p.nodes[:p.first[order]] {
			most[id], second[id] = posting{sentence: -1}, 0
			for _, entry := range p.postings[p.start[id]:p.start[id+1]] {
				if weights[entry.sentence] == 0 {
					continue
				}
				if most[id].sentence >= 0 {
					second[id] = entry.count
					break
				}
				most[id] = entry
			}
		}
		// The nearest occupied length on either side, for sentences that are the only one of their length.
		last := -1
		for k, n := range present {
			if below[k] = last; n > 0 {
				last = k
			}
		}
		last = -1
		for k, n := range slices.Backward(present) {
			if above[k] = last; n > 0 {
				last = k
			}
		}
		for i, w := range weights {
			if w == 0 {
				continue
			}
			weight, s := float64(w), &p.index.sentences[i]
			for n := 1; n <= order; n++ {
				matches := int32(0)
				for _, g := range p.ofOrder(i, n) {
					limit := most[g.id].count
					if most[g.id].sentence == int32(i) {
						limit = second[g.id]
					}
					matches += min(g.count, limit)
				}
				sum[n-1] += weight * float64(matches)
				sum[order+n-1] += weight * float64(max(1, s.total(n)))
			}
			sum[2*order] += weight * float64(s.length)
			sum[2*order+1] += weight * float64(m.closestOther(m.rank[i], present, below, above))
		}
		return sum
	}
}

// closestOther is the length nearest to that of rank k among the other sentences of the sample, the shorter of two
// equally near.
func (m *selfBLEU) closestOther(k int, present, below, above []int) int {
	switch {
	case present[k] > 1:
		return m.lengths[k]
	case above[k] < 0 || below[k] >= 0 && m.lengths[k]-m.lengths[below[k]] <= m.lengths[above[k]]-m.lengths[k]:
		return m.lengths[below[k]]
	default:
		return m.lengths[above[k]]
	}
}

// sole counts, for each sentence, the n-grams for which yes is true and that no other sentence has.
func (p *pool) sole(n int, yes func(node uint32, count int32) bool) []float64 {
	sole := make([]float64, len(p.index.sentences))
	for i := range sole {
		for _, g := range p.index.sentences[i].ofOrder(n) {
			sole[i] += float64(indicator(yes(g.node, g.count)))
		}
		for _, g := range p.ofOrder(i, n) {
			sole[i] -= float64(indicator(yes(p.nodes[g.id], g.count)))
		}
	}
	return sole
}

// share is a metric, in percent: what each sentence counts by itself, to which shared adds what the sample's sentences
// count for the n-grams that they share, over the number of n-grams.
func (p *pool) share(n int, sole []float64, shared func(sum float64, weights []int) float64) metric {
	return metric{sentences: len(sole), pooled: true, evaluator: func() func(weights []int) float64 {
		return func(weights []int) float64 {
			counted, total := 0.0, 0.0
			for i, w := range weights {
				counted += float64(w) * sole[i]
				total += float64(w) * float64(p.index.sentences[i].total(n))
			}
			return quotient(100*shared(counted, weights), total)
		}
	}}
}

// owners goes through the shared n-grams of length n that sentences of a sample have: how many sentences own each, how
// often they were drawn, and the last of them.
func (p *pool) owners(n int, weights []int, visit func(node uint32, owners, drawn int, last posting)) {
	for id := p.first[n-1]; id < p.first[n]; id++ {
		owners, drawn, last := 0, 0, posting{}
		for _, entry := range p.postings[p.start[id]:p.start[id+1]] {
			if w := weights[entry.sentence]; w > 0 {
				owners, drawn, last = owners+1, drawn+w, entry
			}
		}
		if owners > 0 {
			visit(p.nodes[id], owners, drawn, last)
		}
	}
}

// selfUnique is nyu-dl/bert-gen's self_unique_ngrams: n-grams that occur exactly once in all sentences, over the number
// of n-grams. A second copy of a drawn sentence is no other occurrence of its n-grams.
func (p *pool) selfUnique(n int) metric {
	once := p.sole(n, func(_ uint32, count int32) bool { return count == 1 })
	return p.share(n, once, func(unique float64, weights []int) float64 {
		p.owners(n, weights, func(_ uint32, owners, drawn int, last posting) {
			if owners == 1 && last.count == 1 {
				unique += float64(drawn)
			}
		})
		return unique
	})
}

// distinct counts the different n-grams of the sentences that a reference set does not have (nyu-dl/bert-gen's
// ref_unique_ngrams), over the number of n-grams. Without a reference set it is distinct-n (Li et al. 2016, "A
// Diversity-Promoting Objective Function"). An n-gram that k drawn sentences share counts 1/k for each, so that a
// sentence drawn w times weighs w times as much in numerator and denominator alike.
func (p *pool) distinct(n int, set *referenceSet) metric {
	counts := func(node uint32, _ int32) bool { return set == nil || set.most[node] == 0 }
	return p.share(n, p.sole(n, counts), func(different float64, weights []int) float64 {
		p.owners(n, weights, func(node uint32, owners, drawn int, _ posting) {
			if counts(node, 0) {
				different += float64(drawn) / float64(owners)
			}
		})
		return different
	})
}

// texts numbers sentences by what they say, in the order in which each is first said, and counts the different ones.
func texts(sentences [][]string) (of []int, different int) {
	numbers := make(map[string]int)
	for _, tokens := range sentences {
		of = append(of, number(numbers, joined(tokens)))
	}
	return of, len(numbers)
}

// repeated is the share of sentences that say the same as another one before them, in percent.
func repeated(sentences [][]string) metric {
	text, different := texts(sentences)
	return metric{sentences: len(text), pooled: true, evaluator: func() func(weights []int) float64 {
		owners, drawn := make([]int, different), make([]int, different)
		return func(weights []int) float64 {
			clear(owners)
			clear(drawn)
			total := 0
			for i, w := range weights {
				if w > 0 {
					owners[text[i]]++
					drawn[text[i]] += w
					total += w
				}
			}
			first := 0.0
			for k, n := range owners {
				if n > 0 {
					first += float64(drawn[k]) / float64(n)
				}
			}
			return quotient(100*(float64(total)-first), float64(total))
		}
	}}
}
