package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// index gives numbers to the tokens and n-grams of the hypotheses. An n-gram
// is a node of a trie, so one map look-up leads from an n-gram to the next
// longer n-gram. A reference n-gram that no hypothesis has is dropped at its
// first unknown token.
type index struct {
	order      int // length of the longest n-grams
	vocabulary map[string]uint32
	children   map[uint64]uint32 // node<<32 | token → node; the root is 0
	nodes      int               // number of nodes, the root included
	sentences  []sentence
	counts     []int32  // scratch by node, zero between uses
	ids        []uint32 // scratch by token
}

// sentence holds the different n-grams of one hypothesis, by length.
type sentence struct {
	length int
	grams  [][]gram
}

type gram struct {
	node  uint32
	count int32
}

// total returns the number of n-grams of length n, repeats included.
func (s *sentence) total(n int) int { return max(0, s.length-n+1) }

// newIndex numbers the n-grams of sentences up to an order, as nodes of a tree
// of tokens. counts holds those of the present sentence, and is empty between
// two.
func newIndex(sentences [][]string, order int) *index {
	x := &index{
		order: order, nodes: 1, counts: make([]int32, 1),
		vocabulary: make(map[string]uint32),
		children:   make(map[uint64]uint32, 16*len(sentences)),
	}
	for _, tokens := range sentences {
		for _, token := range tokens {
			number(x.vocabulary, token)
		}
		s := sentence{length: len(tokens), grams: make([][]gram, order+1)}
		x.walk(tokens, true, func(n int, node uint32) {
			if x.counts[node] == 0 {
				s.grams[n] = append(s.grams[n], gram{node: node})
			}
			x.counts[node]++
		})
		for _, grams := range s.grams {
			for k := range grams {
				grams[k].count = x.counts[grams[k].node]
				x.counts[grams[k].node] = 0
			}
		}
		x.sentences = append(x.sentences, s)
	}
	return x
}

// walk calls visit for the n-grams of a sentence, by their first token and then
// by length. If add is set, it adds n-grams that the index lacks; else it
// leaves them out.
func (x *index) walk(tokens []string, add bool, visit func(n int, node uint32)) {
	const unknown = ^uint32(0)
	x.ids = x.ids[:0]
	for _, token := range tokens {
		id, known := x.vocabulary[token]
		if !known {
			id = unknown
		}
		x.ids = append(x.ids, id)
	}
	for p := range x.ids {
		var node uint32
		for k, id := range x.ids[p:min(p+x.order, len(x.ids))] {
			key := uint64(node)<<32 | uint64(id)
			next, known := x.children[key]
			if !known && !add || id == unknown {
				break
			}
			if !known {
				next = uint32(x.nodes)
				x.nodes++
				x.children[key] = next
				x.counts = append(x.counts, 0)
			}
			node = next
			visit(k+1, node)
		}
	}
}

// number returns the number of a key. A new key gets the next number.
func number[K comparable, N int | uint32](numbers map[K]N, key K) N {
	n, known := numbers[key]
	if !known {
		n = N(len(numbers))
		numbers[key] = n
	}
	return n
}

// referenceSet summarises any number of reference sentences. For every n-gram
// of the hypotheses it has the largest count in one reference sentence. It also
// has the lengths of the reference sentences.
type referenceSet struct {
	ReferenceSummary
	most    []int32 // largest count of each node
	lengths []int   // different lengths, ascending
}

// collect reads reference sentences, only the first limit of them if limit is
// not 0. It leaves out and counts sources.
func (x *index) collect(name string, sentences [][]string, sources map[string]bool, limit int) *referenceSet {
	set := &referenceSet{ReferenceSummary{Name: name}, make([]int32, x.nodes), nil}
	hash := sha256.New()
	var touched []uint32
	for _, tokens := range sentences {
		text := joined(tokens)
		if sources[text] {
			set.Excluded++
			continue
		}
		if limit > 0 && set.Sentences == limit {
			break
		}
		set.Sentences++
		set.Tokens += len(tokens)
		at, known := slices.BinarySearch(set.lengths, len(tokens))
		if !known {
			set.lengths = slices.Insert(set.lengths, at, len(tokens))
		}
		hash.Write([]byte(text + "\n"))
		touched = touched[:0]
		x.walk(tokens, false, func(_ int, node uint32) {
			if x.counts[node] == 0 {
				touched = append(touched, node)
			}
			x.counts[node]++
		})
		for _, node := range touched {
			set.most[node] = max(set.most[node], x.counts[node])
			x.counts[node] = 0
		}
	}
	set.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return set
}

// union returns the set of all sentences, by their largest counts.
func union(sets []*referenceSet) *referenceSet {
	all := &referenceSet{ReferenceSummary{Name: Union}, slices.Clone(sets[0].most), nil}
	hash := sha256.New()
	for _, set := range sets {
		all.Sentences += set.Sentences
		all.Tokens += set.Tokens
		all.lengths = append(all.lengths, set.lengths...)
		for node, most := range set.most {
			all.most[node] = max(all.most[node], most)
		}
		hash.Write([]byte(set.SHA256))
	}
	slices.Sort(all.lengths)
	all.lengths = slices.Compact(all.lengths)
	all.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return all
}

// closest returns the length nearest to wanted, or the shorter of two equally
// near, as NLTK's closest_ref_length does. lengths is ascending and not empty.
func closest(lengths []int, wanted int) int {
	k, _ := slices.BinarySearch(lengths, wanted)
	if k == len(lengths) || k > 0 && wanted-lengths[k-1] <= lengths[k]-wanted {
		return lengths[k-1]
	}
	return lengths[k]
}

func fingerprint(sentences [][]string) string {
	hash := sha256.New()
	for _, tokens := range sentences {
		hash.Write([]byte(joined(tokens) + "\n"))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// joined returns a key for a tokenised sentence. A space between tokens is
// enough, because tokens hold no white space.
func joined(tokens []string) string { return strings.Join(tokens, " ") }
