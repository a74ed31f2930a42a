package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// index interns the tokens and the n-grams of the hypotheses. An n-gram is a node of a trie, so it costs one map
// look-up to go from an n-gram to the next longer one, and a reference n-gram that no hypothesis has is given up at its
// first unknown token.
type index struct {
	order      int // longest n-gram kept
	vocabulary map[string]uint32
	children   map[uint64]uint32 // node<<32 | token → node; the root is 0
	nodes      int               // including the root
	sentences  []sentence
	counts     []int32 // scratch by node, zero between uses
}

// sentence holds the distinct n-grams of one hypothesis, those of length n at grams[start[n-1]:start[n]].
type sentence struct {
	length int
	grams  []gram
	start  []int
}

type gram struct {
	node  uint32
	count int32
}

func (s *sentence) ofOrder(n int) []gram { return s.grams[s.start[n-1]:s.start[n]] }

// total is the number of n-grams of length n, repeats included.
func (s *sentence) total(n int) int { return max(0, s.length-n+1) }

func newIndex(sentences [][]string, order int) *index {
	x := &index{
		order: order, nodes: 1, counts: make([]int32, 1),
		vocabulary: make(map[string]uint32),
		children:   make(map[uint64]uint32, 16*len(sentences)),
		sentences:  make([]sentence, len(sentences)),
	}
	var ids, at []uint32
	for i, tokens := range sentences {
		ids = ids[:0]
		for _, token := range tokens {
			ids = append(ids, number(x.vocabulary, token))
		}
		at = append(at[:0], make([]uint32, len(ids))...)
		x.sentences[i] = x.add(ids, at)
	}
	return x
}

// number is that of a key, the next one if it is new.
func number[K comparable, N int | uint32](numbers map[K]N, key K) N {
	n, known := numbers[key]
	if !known {
		n = N(len(numbers))
		numbers[key] = n
	}
	return n
}

// add counts the n-grams of one sentence; at is scratch of its length, zeroed: the node of the n-gram that starts at
// each token.
func (x *index) add(ids, at []uint32) sentence {
	s := sentence{length: len(ids), start: make([]int, x.order+1)}
	for n := 1; n <= x.order; n++ {
		first := len(s.grams)
		for p := 0; p+n <= len(ids); p++ {
			key := uint64(at[p])<<32 | uint64(ids[p+n-1])
			node, ok := x.children[key]
			if !ok {
				node = uint32(x.nodes)
				x.nodes++
				x.children[key] = node
				x.counts = append(x.counts, 0)
			}
			at[p] = node
			if x.counts[node] == 0 {
				s.grams = append(s.grams, gram{node: node})
			}
			x.counts[node]++
		}
		for k := first; k < len(s.grams); k++ {
			s.grams[k].count = x.counts[s.grams[k].node]
			x.counts[s.grams[k].node] = 0
		}
		s.start[n] = len(s.grams)
	}
	s.grams = slices.Clip(s.grams)
	return s
}

// referenceSet is what any number of reference sentences come down to: for every n-gram of the hypotheses its largest
// count in one reference sentence, and the lengths that occur.
type referenceSet struct {
	ReferenceSummary
	most    []int32 // by node
	lengths []int   // distinct, ascending
}

// collect reads reference sentences; those for which skip is true are left out and counted.
func (x *index) collect(name string, sentences [][]string, skip func(tokens []string) bool) *referenceSet {
	set := &referenceSet{ReferenceSummary{Name: name}, make([]int32, x.nodes), nil}
	hash := sha256.New()
	const unknown = ^uint32(0)
	var ids, touched []uint32
	for _, tokens := range sentences {
		if skip != nil && skip(tokens) {
			set.Excluded++
			continue
		}
		set.Sentences++
		set.Tokens += len(tokens)
		if at, known := slices.BinarySearch(set.lengths, len(tokens)); !known {
			set.lengths = slices.Insert(set.lengths, at, len(tokens))
		}
		ids, touched = ids[:0], touched[:0]
		for _, token := range tokens {
			id, ok := x.vocabulary[token]
			if !ok {
				id = unknown
			}
			ids = append(ids, id)
		}
		hash.Write([]byte(joined(tokens) + "\n"))
		for p := range ids {
			var node uint32
			for _, id := range ids[p:min(p+x.order, len(ids))] {
				if id == unknown {
					break
				}
				next, ok := x.children[uint64(node)<<32|uint64(id)]
				if !ok {
					break
				}
				node = next
				if x.counts[node] == 0 {
					touched = append(touched, node)
				}
				x.counts[node]++
			}
		}
		for _, node := range touched {
			set.most[node] = max(set.most[node], x.counts[node])
			x.counts[node] = 0
		}
	}
	set.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return set
}

// union is the reference set of all the sentences of the sets: largest counts and lengths need no second reading.
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

// closest returns the length nearest to the wanted one, the shorter of two equally near, as NLTK's closest_ref_length.
// lengths is ascending and not empty.
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

// joined is a key of a tokenised sentence; tokens hold no white space, so a blank between them is enough.
func joined(tokens []string) string { return strings.Join(tokens, " ") }
