package energies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
)

// sentenceSet holds sentences of at most words words, each filled up with
// endMark. Words beyond the vocabulary are unknownWord.
type sentenceSet struct {
	words      int
	vocabulary []string
	states     []int // [sentences × words]
	note       string
}

// The first entries of each vocabulary.
const (
	endMark = iota
	unknownWord
	firstWord
)

// parseSentences reads a sentence from each line: words with spaces between
// them. It leaves out sentences of more words.
func parseSentences(text string, words, vocabulary int) (*sentenceSet, error) {
	s := &sentenceSet{words: words, vocabulary: []string{"", "?"}}
	var kept [][]string
	lines := 0
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		sentence := strings.Fields(line)
		if len(sentence) == 0 {
			continue
		}
		lines++
		if len(sentence) > words {
			continue
		}
		kept = append(kept, sentence)
		for _, word := range sentence {
			counts[word]++
		}
	}
	if len(kept) < 5 {
		return nil, fmt.Errorf("%d sentences of at most %d words: at least 5 are needed", len(kept), words)
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	s.vocabulary = append(s.vocabulary, frequent[:min(len(frequent), vocabulary-firstWord)]...)
	ids := map[string]int{}
	for id, word := range s.vocabulary[firstWord:] {
		ids[word] = id + firstWord
	}
	for _, sentence := range kept {
		for _, word := range sentence {
			s.states = append(s.states, max(ids[word], unknownWord))
		}
		s.states = append(s.states, slices.Repeat([]int{endMark}, words-len(sentence))...)
	}
	known := 0
	for _, v := range s.states {
		known += logmath.Indicator(v >= firstWord)
	}
	all := 0
	for _, sentence := range kept {
		all += len(sentence)
	}
	s.note = fmt.Sprintf("%d of %d sentences have at most %d words; the vocabulary has %d of their %d words, which "+
		"are %.0f %% of what they say, and a mark for others and one for the end", len(kept), lines, words,
		len(s.vocabulary)-firstWord, len(frequent), 100*float64(known)/float64(all))
	return s, nil
}

// bigrams is a law by the chain rule, of each word given the one before it. To
// the counts of pairs come priorPairs more, spread as the law of the slot.
type bigrams struct {
	laws   [][]float64
	pairs  map[[2]int]float64
	before map[int]float64
}

const priorPairs = 10

func newBigrams(laws [][]float64, data [][]int) *bigrams {
	m := &bigrams{laws, map[[2]int]float64{}, map[int]float64{}}
	for _, x := range data {
		for j := range x[1:] {
			m.pairs[[2]int{x[j], x[j+1]}]++
			m.before[x[j]]++
		}
	}
	return m
}

func (m *bigrams) log(x []int) float64 {
	sum := math.Log(m.laws[0][x[0]])
	for j, v := range x[1:] {
		pairs := m.pairs[[2]int{x[j], v}] + priorPairs*m.laws[j+1][v]
		sum += math.Log(pairs / (m.before[x[j]] + priorPairs))
	}
	return sum
}

// newLearnText trains deep energies of sentences, as the slides of Gibbs with
// Gradients do over 20 words of 10,000.
func newLearnText() *lab.Study {
	s := lab.NewStudy("learn text")
	f := s.Flags
	o := deepFlags(f, pcdFlags(f, 500, 50, 500, 0.003, 0), "gibbs,gwg", "gwg")
	data := f.String("data", "sentences", "sentences, or a `FILE` with one on each line")
	words := lab.WholeFlag(f, "words", 12, 2, 1<<8, "slots of a sentence; longer sentences are left out")
	vocabulary := lab.WholeFlag(f, "vocabulary", 200, firstWord+1, lab.MaxCategories,
		"words, the most frequent ones, with a mark for others and one for the end")
	dimensions := lab.WholeFlag(f, "dimensions", 8, 1, 1<<10, "numbers of an embedding")
	reach := lab.WholeFlag(f, "reach", 1, 0, 1<<4, "words that a window sees on either side")
	hidden := lab.WholeFlag(f, "hidden", 16, 1, 1<<12, "hidden units of the network")
	s.Plan = func(_ context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		if err := o.check(); err != nil {
			return nil, err
		}
		set, err := lab.ReadAs(in, "data", *data, []string{"sentences"}, ".txt",
			func(text []byte) (*sentenceSet, error) { return parseSentences(string(text), *words, *vocabulary) })
		if err != nil {
			return nil, err
		}
		p := s.NewPlan(fmt.Sprintf("deep energies of sentences, %d words of %d", *words, len(set.vocabulary)))
		p.Notes = []string{set.note}
		for _, spec := range *o.samplers {
			p.Add(*o.repeats, func(ctx context.Context, b *lab.Bench) error {
				examples, tests, laws := set.parts(b)
				return o.train(ctx, b, spec, &subject{
					examples: examples, tests: tests, laws: laws,
					network: newWordNetwork(*words, len(set.vocabulary), *dimensions, *reach, *hidden),
					show:    func(name string, states []int) error { return set.show(b, name, states) },
				})
			}, lab.Label{Name: "sampler", Value: spec.Label})
		}
		for _, name := range []string{"independent", "bigrams"} {
			p.Add(*o.repeats, func(_ context.Context, b *lab.Bench) error {
				examples, tests, laws := set.parts(b)
				log := chains.NewBase(laws).Log
				if name == "bigrams" {
					log = newBigrams(laws, slices.Collect(slices.Chunk(examples, *words))).log
				}
				b.Number("test-ll", chains.MeanLog(tests, *words, log))
				return nil
			}, lab.Label{Name: "sampler", Value: name})
		}
		return p, nil
	}
	return s
}

// parts returns what a repetition learns from, a fifth of the sentences, drawn to
// test with, and the law of each slot.
func (s *sentenceSet) parts(b *lab.Bench) (examples, tests []int, laws [][]float64) {
	count := len(s.states) / s.words
	all := lab.RowsOf(s.states, s.words, b.Stream("split").Perm(count))
	cut := count / 5 * s.words
	examples = all[cut:]
	return examples, all[:cut], chains.CategoryLaws(slices.Collect(slices.Chunk(examples, s.words)), len(s.vocabulary))
}

// show writes up to 100 sentences to a file of the folder, if there is one.
func (s *sentenceSet) show(b *lab.Bench, name string, states []int) error {
	if b.Folder == "" {
		return nil
	}
	file, err := b.Create(name, ".txt")
	if err != nil {
		return err
	}
	var text strings.Builder
	for sentence := range slices.Chunk(states[:min(len(states), 100*s.words)], s.words) {
		var words []string
		for _, v := range sentence {
			words = append(words, s.vocabulary[v])
		}
		text.WriteString(strings.TrimRight(strings.Join(words, " "), " ") + "\n")
	}
	_, err = file.WriteString(text.String())
	return errors.Join(err, file.Close())
}
