package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
	"infill/internal/targets"
	"infill/lm"
	"infill/samplers"
)

const calibrateLong = `Measure which joint distribution of several blanks is best: in held-out sentences
(--corpus) one to five words that are one token are masked, and the nats of the true
ones are taken under each joint; of fills that a joint gives a probability, how many
are true. The temperature of the pseudo-log-likelihood is fitted on the way: write it
to the model's manifest.

The chain rule's joints are normalised over the whole vocabulary by themselves, and are
measured on all --sentences. The others have to be normalised: over --candidates words
a blank, on the sentences whose true words are among these, exactly for two blanks and
by weighted draws for more.

It takes long: --cells FOLDER keeps what has been measured, sentence by sentence, so that
the same command goes on where it was ended. The first sentences are the same whatever
--sentences is: a smaller number makes the tables of what there is.`

type calibrateOptions struct {
	sentences, candidates, drawings int
	cells                           string
	seed                            uint64
}

// mostBlanks is how many blanks a sentence gets at most.
const mostBlanks = 5

// mostTokens is the length of the longest sentence that is taken.
const mostTokens = 60

func newCalibrate() *cobra.Command {
	o := calibrateOptions{sentences: 500, candidates: 30, drawings: 12}
	return measuring{use: "calibrate [MODEL]", short: "Compare joint distributions of several blanks on held-out " +
		"sentences", long: calibrateLong, models: 1, corpora: true, needed: true,
		register: func(f *flag.FlagSet) {
			lab.WholeVar(f, &o.sentences, "sentences", 4, 1<<30, "sentences of each corpus, drawn from the file")
			lab.WholeVar(f, &o.candidates, "candidates", 2, 1<<16,
				"likeliest words a blank that these are normalised over")
			lab.WholeVar(f, &o.drawings, "draws", 2, 1<<16, "weighted draws that normalise over three blanks and more")
			f.StringVar(&o.cells, "cells", "",
				"`FOLDER` that keeps what has been measured; the same command goes on from it")
		},
		measure: func(ctx context.Context, s *sheet) error {
			o.seed = s.seed
			return calibrate(ctx, s, o)
		},
	}.newCmd()
}

// A masking is what is masked in a sentence.
type masking struct {
	sentence int // of its corpus
	corpus   string
	kind     string // how many blanks, and which
	ids      []int
	slots    []int // in their order
}

// kinds are the numbers of blanks; two are measured side by side and apart.
func maskingKinds() []string {
	kinds := []string{"1", "2, side by side"}
	for n := 2; n <= mostBlanks; n++ {
		kinds = append(kinds, fmt.Sprint(n))
	}
	return kinds
}

// maskings masks the sentences of a corpus in every way.
func (l *language) maskings(name, text string, sentences int, random *rand.Rand) ([]masking, error) {
	var all []masking
	found := 0
	for _, line := range shuffledLines(text, random) {
		if found == sentences {
			break
		}
		w := sharedWords([]*language{l}, released.Replace(line))
		if len(w.places) < mostBlanks || len(w.ids[0]) > mostTokens {
			continue
		}
		var pairs [][]int
		for i, p := range w.places[1:] {
			if p[0] == w.places[i][0]+1 {
				pairs = append(pairs, []int{w.places[i][0], p[0]})
			}
		}
		if pairs == nil {
			continue
		}
		for _, kind := range maskingKinds() {
			m := masking{found, name, kind, w.ids[0], nil}
			var blanks int
			fmt.Sscan(strings.TrimSuffix(kind, ", side by side"), &blanks)
			for _, p := range w.draw(blanks, random) {
				m.slots = append(m.slots, p[0])
			}
			if strings.HasSuffix(kind, "side by side") {
				m.slots = pairs[random.IntN(len(pairs))]
			}
			all = append(all, m)
		}
		found++
	}
	if found < sentences {
		return nil, fmt.Errorf("%d sentences have %d words of one token, two of them side by side, and at most %d "+
			"tokens, and --sentences asks for %d", found, mostBlanks, mostTokens, sentences)
	}
	return all, nil
}

// truth is the state of the true words; a category is -1 where a word is no candidate.
func (m *masking) truth(support [][]int) []int {
	state := make([]int, len(m.slots))
	for j, slot := range m.slots {
		state[j] = slices.Index(support[j], m.ids[slot])
	}
	return state
}

// chainNats are the nats of the true words of a sentence's maskings over the whole vocabulary: each by itself, by the
// chain rule in both directions, and their mean. logp is what the model says of the slots of each masking, all of them
// masked, [maskings][slots × vocabulary].
func (l *language) chainNats(ctx context.Context, maskings []masking, logp [][][]float32) ([][]float64, error) {
	var queries []lm.Query
	for _, m := range maskings {
		for t := 1; t < len(m.slots); t++ {
			queries = append(queries, lm.Query{Position: m.slots[t], Masked: m.slots[t:]},
				lm.Query{Position: m.slots[t-1], Masked: m.slots[:t]})
		}
	}
	rest, err := l.Score(ctx, maskings[0].ids, queries)
	if err != nil {
		return nil, err
	}
	nats := make([][]float64, len(maskings))
	for i, m := range maskings {
		of := func(slot int) float64 { return -float64(logp[i][slot][m.ids[m.slots[slot]]]) }
		last := len(m.slots) - 1
		alone, forth, back := of(0), of(0), of(last)
		for t := 1; t <= last; t++ {
			alone, forth, back = alone+of(t), forth-rest[0], back-rest[1]
			rest = rest[2:]
		}
		nats[i] = []float64{alone, forth, back, -logMean(-forth, -back)}
	}
	return nats, nil
}

// logMean is the logarithm of the mean of two probabilities.
func logMean(a, b float64) float64 { return floats.LogSumExp([]float64{a, b}) - math.Ln2 }

// scored is a masking with its fills: all, or some that were drawn, some that a beam found and the true one.
type scored struct {
	Truth           int       // its place; -1 where a true word is no candidate
	Drawn           int       // the first are draws of the mean of both directions; 0 where these are all fills
	Energy          []float64 // pseudo-log-likelihood
	Forth, Back, AG []float64 // log-probabilities; AG for two blanks
	Distinct        []int     // each fill once; nil where these are all fills
}

// A cell is what was measured of a masking.
type cell struct {
	Corpus   string
	Sentence int
	Kind     string
	Nats     []float64 // of chainNats
	Scored   *scored   `json:",omitempty"` // for several blanks
}

// cluster names the sentence, over all corpora: its cells depend on each other.
func (c *cell) cluster() int {
	h := fnv.New32a()
	io.WriteString(h, c.Corpus)
	return int(h.Sum32())<<20 | c.Sentence
}

// exact tells whether the joints are normalised over all fills.
func (s *scored) exact() bool { return s.Drawn == 0 }

// mean is the log-probability of a fill by the mean of both directions.
func (s *scored) mean(fill int) float64 { return logMean(s.Forth[fill], s.Back[fill]) }

// tempered normalises exp(U/T), and gives the log-probabilities of all fills.
func (s *scored) tempered(energy []float64, temperature float64) []float64 {
	logp := make([]float64, len(energy))
	for i, u := range energy {
		logp[i] = u / temperature
	}
	if s.exact() {
		floats.AddConst(-floats.LogSumExp(logp), logp)
		return logp
	}
	weights := make([]float64, s.Drawn)
	for i := range weights {
		weights[i] = logp[i] - s.mean(i)
	}
	n := float64(s.Drawn)
	total := floats.LogSumExp(weights)
	squares := 0.0
	for _, w := range weights {
		squares += math.Exp(2 * (w - total))
	}
	// The logarithm of a mean of n is too low by half the mean's relative variance.
	total += (squares*n-1)/(n-1)/2 - math.Log(n)
	floats.AddConst(-total, logp)
	return logp
}

// score finds the log-probabilities of a masking's fills. logp is what the model says of
// its slots, all of them masked, [slots × vocabulary].
func (l *language) score(ctx context.Context, m masking, logp [][]float32, o calibrateOptions) (*scored, error) {
	var support [][]int
	for _, row := range logp {
		support = append(support, l.first(row, o.candidates))
	}
	truth := m.truth(support)
	if slices.Contains(truth, -1) {
		return &scored{Truth: -1}, nil
	}
	target, err := l.NewTarget(m.ids, m.slots, lm.TargetOptions{Support: support})
	if err != nil {
		return nil, err
	}
	n := len(m.slots)
	s := &scored{}
	order := make([]int, n)
	for j := range order {
		order[j] = j
	}
	forth, err := samplers.NewChainRule(target, order)
	if err != nil {
		return nil, err
	}
	slices.Reverse(order)
	back, err := samplers.NewChainRule(target, order)
	if err != nil {
		return nil, err
	}
	var states []int
	if n == 2 {
		all, err := targets.Enumerate(ctx, target)
		if err != nil {
			return nil, err
		}
		states = all.States
	} else {
		streams := samplers.Streams(o.seed, fmt.Sprint(m.sentence, m.kind), o.drawings)
		states, s.Drawn = make([]int, len(streams)*n), len(streams)
		half := len(streams) / 2
		// Half of the draws from each direction are draws of their mean.
		for k, rule := range []*samplers.ChainRule{forth, back} {
			from, to := k*half, len(streams)*k+half*(1-k)
			if err := rule.Draw(ctx, states[from*n:to*n], nil, streams[from:to], make([]float64, to-from)); err != nil {
				return nil, err
			}
			likely := make([]int, n)
			if err := rule.Complete(ctx, likely, slices.Repeat([]bool{true}, n), make([]float64, 1)); err != nil {
				return nil, err
			}
			states = append(states, likely...)
		}
		states = append(states, truth...)
	}
	count := len(states) / n
	s.Truth = -1
	for i := 0; i < count && s.Truth < 0; i++ {
		if slices.Equal(states[i*n:(i+1)*n], truth) {
			s.Truth = i
		}
	}
	s.Forth, s.Back, s.Energy = make([]float64, count), make([]float64, count), make([]float64, count)
	if err := forth.LogProbability(ctx, states, nil, s.Forth); err != nil {
		return nil, err
	}
	if err := back.LogProbability(ctx, states, nil, s.Back); err != nil {
		return nil, err
	}
	if err := target.Energy(ctx, states, s.Energy); err != nil {
		return nil, err
	}
	if n == 2 {
		s.AG, _, err = samplers.ClosestJoint(ctx, target.(samplers.ConditionalTarget))
	}
	seen := map[string]bool{}
	for i := 0; i < count && !s.exact(); i++ {
		if key := fmt.Sprint(states[i*n : (i+1)*n]); !seen[key] {
			seen[key], s.Distinct = true, append(s.Distinct, i)
		}
	}
	return s, err
}

// A joint is one way to make a distribution of several blanks.
type joint struct {
	name        string
	temperature string                    // with its error, where it is fitted
	logp        func(s *scored) []float64 // of all fills; nil where it is not defined
}

// bothDirections are the log-probabilities of the chain rule's mean.
func bothDirections(s *scored) []float64 {
	logp := make([]float64, len(s.Forth))
	for i := range logp {
		logp[i] = s.mean(i)
	}
	return logp
}

// pll are the pseudo-log-likelihoods.
func pll(s *scored) []float64 { return s.Energy }

// The places of joints that are compared.
const (
	jointMean = 2
	jointPLL  = 5
	jointAG   = 6
)

func joints(all []*cell) []joint {
	at := func(name string, energy func(s *scored) []float64) joint {
		t, standardError := fitTemperature(all, energy)
		return joint{fmt.Sprintf("%s, T = %.2f", name, t), fmt.Sprintf("%.2f ± %.2f (%s)", t, standardError, name),
			func(s *scored) []float64 { return s.tempered(energy(s), t) }}
	}
	return []joint{
		{"left to right", "", func(s *scored) []float64 { return s.Forth }},
		{"right to left", "", func(s *scored) []float64 { return s.Back }},
		{"mean of both", "", bothDirections},
		at("mean", bothDirections),
		{"pll", "", func(s *scored) []float64 { return s.tempered(s.Energy, 1) }},
		at("pll", pll),
		{"ag", "", func(s *scored) []float64 { return s.AG }},
	}
}

// fitTemperature is the temperature at which the true words have the fewest nats: of two blanks, where all fills are
// enumerated; with its standard error, by drawing the sentences again.
func fitTemperature(all []*cell, energy func(s *scored) []float64) (best, standardError float64) {
	temperatures := make([]float64, 51)
	for step := range temperatures {
		temperatures[step] = 0.5 + 0.05*float64(step)
	}
	nats := map[int][]float64{} // by sentence, [temperatures]
	var sentences []int
	for _, c := range all {
		if !c.Scored.exact() {
			continue
		}
		key := c.cluster()
		if nats[key] == nil {
			nats[key], sentences = make([]float64, len(temperatures)), append(sentences, key)
		}
		for step, temperature := range temperatures {
			nats[key][step] -= c.Scored.tempered(energy(c.Scored), temperature)[c.Scored.Truth]
		}
	}
	if len(sentences) == 0 {
		return 1, math.NaN()
	}
	fit := func(sentence func(i int) int) float64 {
		sum := make([]float64, len(temperatures))
		for i := range sentences {
			floats.Add(sum, nats[sentence(i)])
		}
		return temperatures[floats.MinIdx(sum)]
	}
	random := rand.New(rand.NewPCG(1, 0))
	again := make([]float64, 500)
	for i := range again {
		again[i] = fit(func(int) int { return sentences[random.IntN(len(sentences))] })
	}
	return fit(func(i int) int { return sentences[i] }), stat.StdDev(again, nil)
}

// measured finds the cells of all maskings, the first sentence of every corpus first, and
// keeps those of a sentence in the folder o.cells, from which it goes on.
func (l *language) measured(ctx context.Context, masked []masking, signature string,
	o calibrateOptions) (all []*cell, err error) {
	if o.cells != "" {
		if err := lab.Claim("cells", o.cells, signature); err != nil {
			return nil, err
		}
	}
	bySentence := slices.Collect(slices.Chunk(masked, len(maskingKinds())))
	slices.SortStableFunc(bySentence, func(a, b []masking) int { return a[0].sentence - b[0].sentence })
	for _, sentence := range bySentence {
		cells, err := lab.Kept(o.cells, signature, fmt.Sprintf("%s-%d", sentence[0].corpus, sentence[0].sentence),
			func() (*[]*cell, error) {
				found, err := l.cells(ctx, sentence, o)
				return &found, err
			})
		if err != nil {
			return nil, err
		}
		all = append(all, *cells...)
	}
	return all, nil
}

// cells measures the maskings of a sentence.
func (l *language) cells(ctx context.Context, sentence []masking, o calibrateOptions) ([]*cell, error) {
	var logp [][][]float32
	for _, m := range sentence {
		found, err := l.MaskedLogProbabilities(ctx, m.ids, m.slots)
		if err != nil {
			return nil, err
		}
		logp = append(logp, found)
	}
	nats, err := l.chainNats(ctx, sentence, logp)
	if err != nil {
		return nil, err
	}
	var list []*cell
	for i, m := range sentence {
		c := &cell{Corpus: m.corpus, Sentence: m.sentence, Kind: m.kind, Nats: nats[i]}
		if len(m.slots) > 1 {
			if c.Scored, err = l.score(ctx, m, logp[i], o); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// calibrate writes the tables.
func calibrate(ctx context.Context, s *sheet, o calibrateOptions) error {
	model := s.models[0]
	var masked []masking
	var names []string
	for _, c := range s.corpora {
		found, err := model.maskings(c.name, c.text, o.sentences, rand.New(rand.NewPCG(o.seed, 0)))
		if err != nil {
			return fmt.Errorf("--corpus %s: %w", c.name, err)
		}
		masked, names = append(masked, found...), append(names, c.name)
	}
	signature := fmt.Sprintf("%s|candidates:%d|draws:%d|seed:%d", s.signature(), o.candidates, o.drawings, o.seed)
	cells, err := model.measured(ctx, masked, signature, o)
	if err != nil {
		return err
	}
	s.printf(`# Which joint distribution is best

Written by `+"`go run ./cmd/lab calibrate --corpus NAME=FILE … -o docs/measured/calibration.md`"+`; do not edit. docs/explanation/probabilities.md explains the joints. Model %s,
%d sentences of each of %s, held out from its training. In every sentence, one to five words of one token are masked, and two side by side. A number is
the mean over the sentences ± its standard error, in nats of all masked words together. Fewer nats are better. Differences are taken sentence by sentence.

## Over the whole vocabulary

These joints sum to one by themselves. "Each by itself" takes the words as independent, as peers that fill masks do.

`, model.name(), o.sentences, strings.Join(names, " and "))
	writeChains(s, cells, names)
	var all []*cell
	tried, found := map[string]int{}, map[string]int{}
	for _, c := range cells {
		if c.Scored != nil {
			if tried[c.Kind]++; c.Scored.Truth >= 0 {
				all = append(all, c)
				found[c.Kind]++
			}
		}
	}
	compared := joints(all)
	var shares []string
	for _, kind := range maskingKinds()[1:] {
		shares = append(shares, fmt.Sprintf("%.0f %% (%s)", 100*float64(found[kind])/float64(tried[kind]), kind))
	}
	var temperatures []string
	for _, j := range compared {
		if j.temperature != "" {
			temperatures = append(temperatures, j.temperature)
		}
	}
	s.printf(`
## Over the likeliest words

The pseudo-log-likelihood (pll) and the joint of Arnold and Gokhale (ag) do not sum to one. Here they do: over the %d likeliest words of each blank, on the sentences whose true
words are among these. That is %s of them by their blanks. Two blanks are normalised exactly, more by %d weighted draws. A
temperature T is the one with the fewest nats at two blanks: %s, ± by drawing these sentences again. Where draws normalise, half
their relative variance is added, because the logarithm of a mean of few draws is too low.

`, o.candidates, strings.Join(shares, ", "), o.drawings, strings.Join(temperatures, ", "))
	writeJoints(s, all, names, compared)
	s.printf(`
## Calibration

How many of the fills with a probability are true? A cell has the mean probability that the joint gave, and the share that was true ± its standard error between
sentences. The number of fills follows, of all corpora together.

`)
	writeCalibration(s, all, compared)
	s.printf("\nSignature: `%s|sentences:%d|version:%s`\n", signature, o.sentences, infill.Version())
	return nil
}

// writeChains writes the table over the whole vocabulary.
func writeChains(s *sheet, cells []*cell, names []string) {
	nats := map[[2]string]*measurement{}
	for _, c := range cells {
		key := [2]string{c.Corpus, c.Kind}
		if nats[key] == nil {
			nats[key] = &measurement{format: "%.2f", scale: 1}
		}
		nats[key].add(c.cluster(), c.Nats...)
	}
	s.table("corpus", "blanks", "each by itself", "left to right", "right to left", "mean of both",
		"mean less left to right", "mean less each by itself")
	for _, name := range names {
		for _, kind := range maskingKinds() {
			m := nats[[2]string{name, kind}]
			cells := []string{name, kind}
			for i := range 4 {
				cells = append(cells, m.cell(func(v []float64) float64 { return v[i] }))
			}
			s.row(append(cells, m.cell(func(v []float64) float64 { return v[3] - v[1] }),
				m.cell(func(v []float64) float64 { return v[3] - v[0] }))...)
		}
	}
}

// writeJoints writes the nats of all joints.
func writeJoints(s *sheet, all []*cell, names []string, joints []joint) {
	head := []string{"corpus", "blanks", "sentences"}
	for _, j := range joints {
		head = append(head, j.name)
	}
	s.table(append(head, "mean less pll at T", "mean less ag")...)
	for _, name := range names {
		for _, kind := range maskingKinds()[1:] {
			m := &measurement{format: "%.2f", scale: 1}
			for _, c := range all {
				if c.Corpus == name && c.Kind == kind {
					var nats []float64
					for _, j := range joints {
						if logp := j.logp(c.Scored); logp != nil {
							nats = append(nats, -logp[c.Scored.Truth])
						}
					}
					m.add(c.cluster(), nats...)
				}
			}
			if len(m.values) < 2 {
				continue
			}
			cells := []string{name, kind, fmt.Sprint(len(m.values))}
			for i := range joints {
				if i == len(m.values[0]) {
					cells = append(cells, "–")
					continue
				}
				cells = append(cells, m.cell(func(v []float64) float64 { return v[i] }))
			}
			for _, other := range []int{jointPLL, jointAG} {
				cell := "–"
				if other < len(m.values[0]) {
					cell = m.cell(func(v []float64) float64 { return v[jointMean] - v[other] })
				}
				cells = append(cells, cell)
			}
			s.row(cells...)
		}
	}
}

// writeCalibration writes how many of the fills said to have a probability are true.
func writeCalibration(s *sheet, all []*cell, joints []joint) {
	edges := []float64{0.03, 0.1, 0.3, 1}
	head := []string{"blanks", "joint"}
	for b := range edges[1:] {
		head = append(head, fmt.Sprintf("%.0f to %.0f %%", 100*edges[b], 100*edges[b+1]))
	}
	s.table(head...)
	for _, few := range []bool{true, false} {
		for place, j := range joints {
			if place == jointAG && !few {
				continue
			}
			bins := make([]measurement, len(edges)-1)
			for _, c := range all {
				scored, logp := c.Scored, j.logp(c.Scored)
				if scored.exact() != few || logp == nil {
					continue
				}
				for i, l := range logp {
					if scored.Distinct != nil && !slices.Contains(scored.Distinct, i) {
						continue
					}
					p := math.Exp(l)
					if p < edges[0] {
						continue
					}
					b, hit := 0, 0.0
					for b < len(bins)-1 && p >= edges[b+1] {
						b++
					}
					if i == scored.Truth {
						hit = 1
					}
					bins[b].add(c.cluster(), p, hit)
				}
			}
			cells := []string{"2", j.name}
			if !few {
				cells[0] = fmt.Sprintf("3 to %d", mostBlanks)
			}
			for b := range bins {
				m := &bins[b]
				m.format, m.scale = "%.1f", 100
				clusters := slices.Clone(m.clusters)
				slices.Sort(clusters)
				if len(slices.Compact(clusters)) < 2 {
					cells = append(cells, fmt.Sprintf("– (%d)", len(m.values)))
					continue
				}
				said := 0.0
				for _, v := range m.values {
					said += 100 * v[0] / float64(len(m.values))
				}
				cells = append(cells,
					fmt.Sprintf("%.1f: %s (%d)", said, m.cell(func(v []float64) float64 { return v[1] }),
						len(m.values)))
			}
			s.row(cells...)
		}
	}
}
