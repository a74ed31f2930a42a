package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
	"infill/lm"
)

// The texts that models are compared on, besides sentences of a corpus.
var (
	//go:embed texts/pairs.txt
	pairsText string
	//go:embed texts/clozes.tsv
	clozesText string
	//go:embed texts/probes.tsv
	probesText string
)

// pairsOfTemplate is how many pairs a template of texts/pairs.txt gives at most.
const pairsOfTemplate = 6

const modelLong = `Compare what language models know: of words that are one token in all of them, masked
one at a time in held-out sentences (--corpus), nats and how often the word is the
first choice; of two and three masked words, the nats of the true ones by the chain
rule from left to right; of minimal pairs, how often the right sentence has the
higher pseudo-log-likelihood; of clozes, how often a right answer is the first choice
or among five. The last column is the first model less the second, item by item.

A number stands with its standard error; words of one sentence, and pairs of one
template, count as dependent. Probes of bias are the log-ratio of the probabilities
of two sets of words.`

type modelOptions struct {
	sentences, words int
	list             bool
}

func newModel() *cobra.Command {
	o := modelOptions{sentences: 2000, words: 6}
	return measuring{use: "model [MODEL [BASELINE]]", short: "Compare what language models know", long: modelLong,
		models: 2, corpora: true,
		register: func(f *flag.FlagSet) {
			lab.WholeVar(f, &o.sentences, "sentences", 2, 1<<30, "sentences of each corpus, drawn from the file")
			lab.WholeVar(f, &o.words, "words", 3, 1<<30, "words masked in each sentence at most, one at a time")
			f.BoolVar(&o.list, "list", false,
				"also list every pair with the models that are right, and every cloze with their answers")
		},
		measure: o.compare,
	}.newCmd()
}

// A measurement is one number for every item and model.
type measurement struct {
	name, items string
	format      string  // of a number, as in "%.3f"
	scale       float64 // 100 for percent
	clusters    []int   // items of one cluster depend on each other
	values      [][]float64
}

func (m *measurement) add(cluster int, values ...float64) {
	m.clusters, m.values = append(m.clusters, cluster), append(m.values, values)
}

// cell is the mean of a number of the items and its standard error between clusters.
func (m *measurement) cell(number func(values []float64) float64) string {
	mean := 0.0
	for _, values := range m.values {
		mean += number(values) / float64(len(m.values))
	}
	residuals := map[int]float64{}
	for i, values := range m.values {
		residuals[m.clusters[i]] += number(values) - mean
	}
	squares, n := 0.0, float64(len(residuals))
	for _, r := range residuals {
		squares += r * r
	}
	deviation := math.Sqrt(squares*n/(n-1)) / float64(len(m.values))
	return fmt.Sprintf(m.format+" ± "+m.format, m.scale*mean, m.scale*deviation)
}

// compare writes the tables of one model, or of two and their difference.
func (o *modelOptions) compare(ctx context.Context, s *sheet) error {
	pairs, err := minimalPairs(pairsText, s.seed)
	if err != nil {
		return err
	}
	all := s.models
	var measured []*measurement
	for _, c := range s.corpora {
		found, err := measureSentences(ctx, all, c, *o, s.seed)
		if err != nil {
			return fmt.Errorf("--corpus %s: %w", c.name, err)
		}
		measured = append(measured, found...)
	}
	var list strings.Builder
	found, err := measurePairs(ctx, all, pairs, &list)
	if err != nil {
		return err
	}
	measured = append(measured, found...)
	if found, err = measureClozes(ctx, all, clozesText, &list); err != nil {
		return err
	}
	measured = append(measured, found...)

	head := []string{"measurement", "items"}
	for _, model := range all {
		head = append(head, model.name())
	}
	if len(all) == 2 {
		head = append(head, "difference")
	}
	s.table(head...)
	for _, m := range measured {
		cells := []string{m.name, m.items}
		for i := range all {
			cells = append(cells, m.cell(func(v []float64) float64 { return v[i] }))
		}
		if len(all) == 2 {
			cells = append(cells, m.cell(func(v []float64) float64 { return v[0] - v[1] }))
		}
		s.row(cells...)
	}
	s.printf("\n")
	if err := writeProbes(ctx, s, probesText); err != nil {
		return err
	}
	if o.list {
		s.printf("\n%s", list.String())
	}
	s.printf("\nSignature: `%s|sentences:%d|words:%d|seed:%d|version:%s`\n", s.signature(), o.sentences, o.words,
		s.seed, infill.Version())
	return nil
}

// released undoes how the evaluation texts are published.
var released = strings.NewReplacer("``", `"`, "''", `"`, "@@UNKNOWN@@", "[UNK]", "<unk>", "[UNK]", " @-@ ", "-",
	" @,@ ", ",", " @.@ ", ".")

// shuffledLines are the lines of a text in a random order.
func shuffledLines(text string, random *rand.Rand) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

// words are the places of a sentence's words that are one token for every model.
type words struct {
	ids    [][]int // of each model
	places [][]int // [words][models], positions in ids
}

// sharedWords cuts a sentence; it has no words where a model cannot take it.
func sharedWords(all []*language, text string) words {
	var w words
	spans := map[[2]int][]int{}
	for i, model := range all {
		e, err := model.tokenizer.Plain(text)
		if err != nil || len(e.IDs) > model.Positions() {
			return words{}
		}
		w.ids = append(w.ids, e.IDs)
		for p, word := range e.Words {
			span := e.Offsets[p]
			if word < 0 || e.Words[p-1] == word || e.Words[p+1] == word || e.IDs[p] == model.tokenizer.UnknownID() ||
				!strings.ContainsFunc(text[span[0]:span[1]], unicode.IsLetter) {
				continue
			}
			if len(spans[span]) == i {
				spans[span] = append(spans[span], p)
			}
		}
	}
	for _, places := range spans {
		if len(places) == len(all) {
			w.places = append(w.places, places)
		}
	}
	slices.SortFunc(w.places, func(a, b []int) int { return a[0] - b[0] })
	return w
}

// draw keeps n of the words, in their order.
func (w words) draw(n int, random *rand.Rand) [][]int {
	chosen := random.Perm(len(w.places))
	chosen = chosen[:min(n, len(chosen))]
	slices.Sort(chosen)
	var places [][]int
	for _, c := range chosen {
		places = append(places, w.places[c])
	}
	return places
}

// measureSentences masks words of sentences: one at a time, two, and three.
func measureSentences(ctx context.Context, all []*language, c corpus, o modelOptions,
	seed uint64) ([]*measurement, error) {
	nats := &measurement{name: c.name + ": a word, nats", format: "%.3f", scale: 1}
	right := &measurement{name: c.name + ": a word, % right", format: "%.1f", scale: 100}
	joints := []int{2, 3}
	var joint []*measurement
	for _, blanks := range joints {
		joint = append(joint,
			&measurement{name: fmt.Sprintf("%s: %d blanks, nats", c.name, blanks), format: "%.2f", scale: 1})
	}
	random := rand.New(rand.NewPCG(seed, 0))
	// Of each sentence: its words one at a time, then each joint. Sentences that are asked at once share calls.
	var found [][]blanked
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(lm.InFlight)
	for _, line := range shuffledLines(c.text, random) {
		if len(found) == o.sentences {
			break
		}
		shared := sharedWords(all, released.Replace(line))
		if len(shared.places) < 3 {
			continue
		}
		var asked [][][]int
		for _, place := range shared.draw(o.words, random) {
			asked = append(asked, [][]int{place})
		}
		for _, blanks := range joints {
			asked = append(asked, shared.draw(blanks, rand.New(rand.NewPCG(seed, uint64((len(found)+1)*10+blanks)))))
		}
		of := make([]blanked, len(asked))
		found = append(found, of)
		group.Go(func() (err error) {
			for k := range asked {
				if of[k], err = blank(inner, all, shared.ids, asked[k]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(found) < o.sentences {
		return nil, fmt.Errorf("%d sentences have three words that all models know, and --sentences asks for %d",
			len(found), o.sentences)
	}
	for sentence, of := range found {
		words := len(of) - len(joints)
		for _, b := range of[:words] {
			nats.add(sentence, b.nats...)
			right.add(sentence, b.first...)
		}
		for j, b := range of[words:] {
			joint[j].add(sentence, b.nats...)
		}
	}
	nats.items = fmt.Sprintf("%d words in %d sentences", len(nats.values), o.sentences)
	right.items = nats.items
	for _, m := range joint {
		m.items = fmt.Sprintf("%d sentences", o.sentences)
	}
	return append([]*measurement{nats, right}, joint...), nil
}

// blanked is what each model lost on blanks, by the chain rule from left to right, and whether
// the last of the true words was its first choice, 1 or 0.
type blanked struct{ nats, first []float64 }

// blank fills words of a text that are masked together, the true ones one by one.
func blank(ctx context.Context, all []*language, ids [][]int, places [][]int) (blanked, error) {
	b := blanked{make([]float64, len(all)), make([]float64, len(all))}
	for i, model := range all {
		var slots []int
		for _, p := range places {
			slots = append(slots, p[i])
		}
		for k, slot := range slots {
			rows, err := model.MaskedLogProbabilities(ctx, ids[i], slots[k:])
			if err != nil {
				return b, err
			}
			id := ids[i][slot]
			b.nats[i] -= float64(rows[0][id])
			if b.first[i] = 0; slices.Equal(model.first(rows[0], 1), []int{id}) {
				b.first[i] = 1
			}
		}
	}
	return b, nil
}

// name is that of the model, or of its folder.
func (l *language) name() string { return filepath.Base(l.Bundle().Name) }

// first are the n most probable tokens that may fill a blank, the best first.
func (l *language) first(logp []float32, n int) []int {
	best := infill.Candidates(l.tokenizer.Fillable(), logp, n)
	slices.SortFunc(best, func(a, b int) int {
		if logp[a] > logp[b] {
			return -1
		}
		return 1
	})
	return best
}

// A pair is a right sentence and a wrong one that differ in what kind says.
type pair struct {
	kind         string
	right, wrong string
	template     int
}

var (
	choice   = regexp.MustCompile(`\[([^|\]]*)\|([^\]]*)\]`)
	variable = regexp.MustCompile(`\$[a-z]+\+?`)
)

// minimalPairs expands templates; texts/pairs.txt tells the grammar.
func minimalPairs(text string, seed uint64) ([]pair, error) {
	lists := map[string][]string{} // $list to its entries
	var pairs []pair
	templates := 0
	for number, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, entries, ok := strings.Cut(line, " = "); ok && strings.HasPrefix(name, "$") {
			lists[name] = strings.Split(entries, " | ")
			continue
		}
		kind, sentence, ok := strings.Cut(line, ": ")
		if !ok || !choice.MatchString(sentence) {
			return nil, fmt.Errorf("pairs, line %d: neither a list nor a template", number+1)
		}
		templates++
		random, seen := rand.New(rand.NewPCG(seed, uint64(templates))), map[string]bool{}
		for range 20 * pairsOfTemplate {
			chosen := map[string]string{}
			for _, v := range variable.FindAllString(sentence, -1) {
				name := strings.TrimSuffix(v, "+")
				if lists[name] == nil {
					return nil, fmt.Errorf("pairs, line %d: there is no list %s", number+1, name)
				}
				if chosen[name] == "" {
					chosen[name] = lists[name][random.IntN(len(lists[name]))]
				}
			}
			sides := [2]string{}
			for side, replacement := range []string{"$1", "$2"} {
				sides[side] = variable.ReplaceAllStringFunc(choice.ReplaceAllString(sentence, replacement),
					func(v string) string {
						one, more, _ := strings.Cut(chosen[strings.TrimSuffix(v, "+")], "/")
						if strings.HasSuffix(v, "+") {
							return more
						}
						return one
					})
			}
			if !seen[sides[0]] && len(seen) < pairsOfTemplate {
				seen[sides[0]] = true
				pairs = append(pairs, pair{kind, sides[0], sides[1], templates})
			}
		}
	}
	return pairs, nil
}

// measurePairs asks which sentence of each pair is the likelier, and lists the pairs.
func measurePairs(ctx context.Context, all []*language, pairs []pair, list io.Writer) ([]*measurement, error) {
	kinds, order := map[string]*measurement{}, []*measurement{{name: "pairs, % right", format: "%.1f", scale: 100}}
	for _, p := range pairs {
		m := kinds[p.kind]
		if m == nil {
			m = &measurement{name: "pairs: " + p.kind, format: "%.1f", scale: 100}
			kinds[p.kind], order = m, append(order, m)
		}
		hit := make([]float64, len(all))
		for i, model := range all {
			filler := infill.New(model, model.tokenizer)
			var likelihood [2]float64
			for side, text := range []string{p.right, p.wrong} {
				score, err := filler.Score(ctx, text, infill.WordScore)
				if err != nil {
					return nil, fmt.Errorf("pair %q: %w", text, err)
				}
				likelihood[side] = score.LogLikelihood
			}
			if likelihood[0] > likelihood[1] {
				hit[i] = 1
			}
		}
		fmt.Fprintf(list, "%v %s / %s\n", hit, p.right, p.wrong)
		m.add(p.template, hit...)
		order[0].add(p.template, hit...)
	}
	for _, m := range order {
		templates := slices.Clone(m.clusters)
		slices.Sort(templates)
		m.items = fmt.Sprintf("%d pairs of %d templates", len(m.values), len(slices.Compact(templates)))
	}
	return order, nil
}

// fields are the lines of a table of texts: its columns, apart by tabs.
func fields(text string, columns int) ([][]string, error) {
	var lines [][]string
	for number, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != columns {
			return nil, fmt.Errorf("line %d has %d columns, not %d", number+1, len(cells), columns)
		}
		lines = append(lines, cells)
	}
	return lines, nil
}

// measureClozes asks for the first five answers, and lists them.
func measureClozes(ctx context.Context, all []*language, text string, list io.Writer) ([]*measurement, error) {
	clozes, err := fields(text, 3)
	if err != nil {
		return nil, fmt.Errorf("clozes: %w", err)
	}
	const places = 5
	kinds := []string{"", "fact", "collocation", "grammar"}
	var measured []*measurement
	for _, kind := range kinds {
		for _, what := range []string{"first", "among five"} {
			measured = append(measured,
				&measurement{name: strings.TrimSuffix("clozes: "+kind, ": ") + ", % " + what, format: "%.1f",
					scale: 100})
		}
	}
	for number, cloze := range clozes {
		kind, answers := slices.Index(kinds, cloze[0]), strings.Split(cloze[2], "/")
		if kind < 1 {
			return nil, fmt.Errorf("clozes: there is no kind %q", cloze[0])
		}
		first, five := make([]float64, len(all)), make([]float64, len(all))
		fmt.Fprintf(list, "%s\n", cloze[1])
		for i, model := range all {
			b, err := model.blanks(ctx, cloze[1], places)
			if err != nil {
				return nil, fmt.Errorf("cloze %q: %w", cloze[1], err)
			}
			var given []string
			for _, id := range model.first(b.logp[0], places) {
				given = append(given, model.tokenizer.Token(id))
			}
			if at := slices.IndexFunc(given, func(a string) bool { return slices.Contains(answers, a) }); at >= 0 {
				five[i] = 1
				if at == 0 {
					first[i] = 1
				}
			}
			fmt.Fprintf(list, "  %g %g %s: %s\n", first[i], five[i], model.name(), strings.Join(given, ", "))
		}
		for _, k := range []int{0, kind} {
			measured[2*k].add(number, first...)
			measured[2*k+1].add(number, five...)
		}
	}
	for _, m := range measured {
		m.items = fmt.Sprintf("%d clozes", len(m.values))
	}
	return measured, nil
}

// writeProbes writes log-ratios of the probabilities of two sets of words.
func writeProbes(ctx context.Context, s *sheet, text string) error {
	probes, err := fields(text, 3)
	if err != nil {
		return fmt.Errorf("probes: %w", err)
	}
	head := []string{"probe: ln p(first words) / p(second words), nats", "words"}
	for _, model := range s.models {
		head = append(head, model.name())
	}
	s.table(head...)
	for _, probe := range probes {
		cells := []string{probe[0], probe[1] + " : " + probe[2]}
		for _, model := range s.models {
			b, err := model.blanks(ctx, probe[0], 1)
			if err != nil {
				return fmt.Errorf("probe %q: %w", probe[0], err)
			}
			var sides [2]float64
			for side := range sides {
				var logp []float64
				for _, word := range strings.Split(probe[1+side], "/") {
					id, ok := model.tokenizer.ID(word)
					if !ok {
						return fmt.Errorf("probe %q: %q is no token of %s", probe[0], word, model.name())
					}
					logp = append(logp, float64(b.logp[0][id]))
				}
				sides[side] = floats.LogSumExp(logp)
			}
			cells = append(cells, fmt.Sprintf("%+.2f", sides[0]-sides[1]))
		}
		s.row(cells...)
	}
	return nil
}
