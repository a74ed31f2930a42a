package fills

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/infill"
	"infill/internal/eval/corpus"
	"infill/internal/logmath"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// pairsOf returns how many pairs the template of a number, from 1, of
// lab/data/pairs.txt gives at most. Tests replace it, as all pairs take half a minute.
var pairsOf = func(int) int { return 6 }

// jointBlanks are the numbers of words that are masked together.
var jointBlanks = []int{2, 3}

type knowledge struct {
	*lab.Study
	texts, models    *[]string
	sentences, words *int
}

func newModelStudy() *lab.Study {
	s := lab.NewStudy("model")
	k := &knowledge{Study: s}
	k.texts = textsFlag(s.Flags)
	k.models = lab.DefineFlag(s.Flags, "models", []string{""},
		"a model, or two with a comma between them: names or folders "+
			"(default: the built-in)", modelsOf, joinedWords)
	k.sentences = lab.WholeFlag(s.Flags, "sentences", 2000, 2, 1<<30, "sentences of each file, drawn by the seed")
	k.words = lab.WholeFlag(s.Flags, "words", 4, 3, 1<<30, "words masked in each sentence at most, one at a time")
	s.Plan = k.plan
	return s
}

func modelsOf(text string) ([]string, error) {
	list := strings.Split(text, ",")
	if len(list) > 2 {
		return nil, errors.New("a model, or two with a comma between them")
	}
	return list, nil
}

type language struct {
	*lm.MaskedLM
	name      string
	tokenizer *tokenize.Tokenizer
	fillable  []int          // tokens that a slot may take
	filler    *infill.Filler // scores texts
}

func newLanguage(model *lm.MaskedLM, name string, tokenizer *tokenize.Tokenizer) *language {
	return &language{model, name, tokenizer, tokenizer.Fillable(), infill.New(model, tokenizer)}
}

func openLanguage(ctx context.Context, name string, in *lab.Inputs) (*language, error) {
	model, tokenizer, err := chains.OpenModel(ctx, in, "models", name)
	if err != nil {
		return nil, err
	}
	return newLanguage(model, filepath.Base(model.Description().Name), tokenizer), nil
}

// A measurement is one number for every item and model.
type measurement struct {
	percent  bool
	clusters []int // items of one cluster depend on each other
	values   [][]float64
}

func (m *measurement) add(cluster int, values ...float64) {
	m.clusters = append(m.clusters, cluster)
	m.values = append(m.values, values)
}

// estimate returns the mean of a number of the items, its standard error
// between clusters, and the number of these.
func (m *measurement) estimate(number func(values []float64) float64) (mean, standardError float64, clusters int) {
	for _, values := range m.values {
		mean += number(values) / float64(len(m.values))
	}
	residuals := map[int]float64{}
	for i, values := range m.values {
		residuals[m.clusters[i]] += number(values) - mean
	}
	squares := 0.0
	for _, cluster := range slices.Sorted(maps.Keys(residuals)) { // so that equal runs round equally
		squares += residuals[cluster] * residuals[cluster]
	}
	n := float64(len(residuals))
	standardError = math.Sqrt(squares*n/(n-1)) / float64(len(m.values))
	if m.percent {
		mean *= 100
		standardError *= 100
	}
	return mean, standardError, len(residuals)
}

// knowledgeRun measures everything once, for all cells.
type knowledgeRun struct {
	of       *knowledge
	texts    []*corpus.Corpus
	pairs    []minimalPair
	clozes   [][]string
	probes   [][]string
	names    []string // of the models, the second perhaps with a number
	measured map[string]*measurement
}

// plan reads the texts, and the models' names; models open when they first run.
func (k *knowledge) plan(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
	run := &knowledgeRun{of: k}
	err := run.read(in, seed)
	if err != nil {
		return nil, err
	}
	for _, name := range *k.models {
		model, err := openLanguage(ctx, name, in)
		if err != nil {
			return nil, lab.Refuse("models", "%w", err)
		}
		run.names = append(run.names, model.name)
		err = model.Close()
		if err != nil {
			return nil, err
		}
	}
	if len(run.names) == 2 && run.names[0] == run.names[1] {
		run.names[1] += ", second"
	}
	p := k.NewPlan("what " + strings.Join(run.names, " and ") + " know")
	p.Between = "sentences, templates or clozes"
	columns := slices.Clone(run.names)
	if len(columns) == 2 {
		columns = append(columns, "difference")
	}
	for _, name := range run.measurements() {
		for i, column := range columns {
			p.Add(1, func(ctx context.Context, b *lab.Bench) error { return run.record(ctx, b, name, i) },
				lab.Label{Name: "measurement", Value: name}, lab.Label{Name: "model", Value: column})
		}
	}
	return p, nil
}

func (r *knowledgeRun) read(in *lab.Inputs, seed uint64) error {
	texts, err := readTexts(in, *r.of.texts)
	if err != nil {
		return err
	}
	for _, text := range texts {
		text.Name = strings.TrimSuffix(text.Name, ".txt")
	}
	r.texts = texts
	own := map[string]string{}
	for _, name := range []string{"pairs.txt", "clozes.tsv", "probes.tsv"} {
		text, err := in.Read("texts", strings.TrimSuffix(name, filepath.Ext(name)),
			[]string{"pairs", "clozes", "probes"}, filepath.Ext(name))
		if err != nil {
			return err
		}
		own[name] = string(text)
	}
	var failed [3]error
	r.pairs, failed[0] = minimalPairs(own["pairs.txt"], seed)
	r.clozes, failed[1] = fieldsOf(own["clozes.tsv"], 3)
	r.probes, failed[2] = fieldsOf(own["probes.tsv"], 3)
	return errors.Join(failed[:]...)
}

// clozeKinds are the kinds of clozes, and all of them.
var clozeKinds = []string{"", "fact", "collocation", "grammar"}

func (r *knowledgeRun) measurements() (names []string) {
	for _, text := range r.texts {
		names = append(names, text.Name+": a word, nats", text.Name+": a word, right")
		for _, blanks := range jointBlanks {
			names = append(names, jointName(text.Name, blanks))
		}
	}
	names = append(names, "pairs, right")
	for _, pair := range r.pairs {
		name := "pairs: " + pair.kind
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, kind := range clozeKinds {
		names = append(names, clozeName(kind, "first"), clozeName(kind, "among five"))
	}
	for _, probe := range r.probes {
		names = append(names, probeName(probe))
	}
	return names
}

func jointName(text string, blanks int) string {
	return fmt.Sprintf("%s: %d blanks, nats", text, blanks)
}

func clozeName(kind, what string) string {
	return strings.TrimSuffix("clozes: "+kind, ": ") + ", " + what
}

func probeName(probe []string) string { return fmt.Sprintf("%s %s : %s", probe[0], probe[1], probe[2]) }

// record records one measurement of one model or, of the third, the difference.
func (r *knowledgeRun) record(ctx context.Context, b *lab.Bench, name string, model int) error {
	if r.measured == nil {
		err := r.measure(ctx, b)
		if err != nil {
			return err
		}
	}
	m := r.measured[name]
	number := func(values []float64) float64 { return values[model] }
	if model == 2 {
		number = func(values []float64) float64 { return values[0] - values[1] }
	}
	mean, standardError, clusters := m.estimate(number)
	switch {
	case len(m.values) == 1:
		b.Number("log-ratio", mean)
		return nil
	case m.percent:
		b.Estimate("percent")(mean, standardError)
	default:
		b.Estimate("nats")(mean, standardError)
	}
	b.Number("items", float64(len(m.values)))
	b.Number("clusters", float64(clusters))
	return nil
}

func (r *knowledgeRun) measure(ctx context.Context, b *lab.Bench) (err error) {
	var all []*language
	for _, name := range *r.of.models {
		model, err := openLanguage(ctx, name, &lab.Inputs{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, model.Close()) }()
		all = append(all, model)
	}
	r.measured = map[string]*measurement{}
	for _, name := range r.measurements() {
		percent := strings.HasPrefix(name, "pairs") || strings.HasPrefix(name, "clozes") ||
			strings.HasSuffix(name, ": a word, right")
		r.measured[name] = &measurement{percent: percent}
	}
	for _, text := range r.texts {
		err := r.measureSentences(ctx, b, all, text)
		if err != nil {
			return fmt.Errorf("%s: %w", text.Name, err)
		}
	}
	return errors.Join(r.measurePairs(ctx, b, all), r.measureClozes(ctx, b, all), r.measureProbes(ctx, all))
}

// released undoes how the evaluation texts are published.
var released = strings.NewReplacer("``", `"`, "''", `"`, "@@UNKNOWN@@", "[UNK]", "<unk>", "[UNK]", " @-@ ", "-",
	" @,@ ", ",", " @.@ ", ".")

// sharedText is a sentence as every model reads it.
type sharedText struct {
	ids    [][]int // of each model
	places [][]int // [words][models], positions in ids of words that are one token for every model
}

// shareText cuts a sentence. It has no words if a model cannot take it.
func shareText(all []*language, text string) sharedText {
	var w sharedText
	spans := map[[2]int][]int{}
	for i, model := range all {
		e, err := model.tokenizer.Plain(text)
		if err != nil || len(e.IDs) > model.Positions() {
			return sharedText{}
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
func (w sharedText) draw(n int, random *rand.Rand) (places [][]int) {
	chosen := random.Perm(len(w.places))
	chosen = chosen[:min(n, len(chosen))]
	slices.Sort(chosen)
	for _, c := range chosen {
		places = append(places, w.places[c])
	}
	return places
}

// askedSentence is a sentence with what is masked: each word, then each joint.
type askedSentence struct {
	sharedText
	masks [][][]int
}

// measureSentences masks words of sentences: one at a time, two, and three.
func (r *knowledgeRun) measureSentences(ctx context.Context, b *lab.Bench, all []*language, text *corpus.Corpus) error {
	random := rand.New(rand.NewPCG(b.Seed, 0))
	lines := text.Raw()
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	var asked []askedSentence
	for _, line := range lines {
		if len(asked) == *r.of.sentences {
			break
		}
		s := askedSentence{sharedText: shareText(all, released.Replace(line))}
		if len(s.places) < 3 {
			continue
		}
		for _, place := range s.draw(*r.of.words, random) {
			s.masks = append(s.masks, [][]int{place})
		}
		for _, blanks := range jointBlanks {
			own := rand.New(rand.NewPCG(b.Seed, uint64((len(asked)+1)*10+blanks)))
			s.masks = append(s.masks, s.draw(blanks, own))
		}
		asked = append(asked, s)
	}
	if len(asked) < *r.of.sentences {
		return lab.Refuse("sentences", "%d of %s have three words that all models know, and %d are wanted", len(asked),
			text.Name, *r.of.sentences)
	}
	found, err := inOrder(ctx, b, asked, func(ctx context.Context, s askedSentence) (of []masked, err error) {
		for _, places := range s.masks {
			m, err := mask(ctx, all, s.ids, places)
			if err != nil {
				return nil, err
			}
			of = append(of, m)
		}
		return of, nil
	})
	if err != nil {
		return err
	}
	nats := r.measured[text.Name+": a word, nats"]
	right := r.measured[text.Name+": a word, right"]
	for sentence, of := range found {
		words := len(of) - len(jointBlanks)
		for _, word := range of[:words] {
			nats.add(sentence, word.nats...)
			right.add(sentence, word.first...)
		}
		for j, joint := range of[words:] {
			r.measured[jointName(text.Name, jointBlanks[j])].add(sentence, joint.nats...)
		}
	}
	return nil
}

// masked is what each model loses on masked words, by the chain rule from left
// to right, and whether the last of the true words is its first choice, 1 or 0.
type masked struct{ nats, first []float64 }

// mask masks words of a text together, and fills in the true ones one by one.
func mask(ctx context.Context, all []*language, ids [][]int, places [][]int) (masked, error) {
	m := masked{make([]float64, len(all)), make([]float64, len(all))}
	for i, model := range all {
		var slots []int
		for _, p := range places {
			slots = append(slots, p[i])
		}
		for k, slot := range slots {
			rows, err := chains.Expected(ctx, model.MaskedLM, ids[i], slots[k:])
			if err != nil {
				return m, err
			}
			id := ids[i][slot]
			m.nats[i] -= float64(rows[0][id])
			m.first[i] = float64(logmath.Indicator(model.likeliest(rows[0], 1)[0] == id))
		}
	}
	return m, nil
}

// likeliest returns the n likeliest tokens for a blank, the best first.
func (l *language) likeliest(logp []float32, n int) []int {
	return samplers.Likeliest(l.fillable, logp, n)
}

// blank returns log P of every token in the one blank of a text.
func (l *language) blank(ctx context.Context, text string) ([]float32, error) {
	template, err := l.tokenizer.Template(text)
	if err != nil {
		return nil, err
	}
	rows, err := chains.Expected(ctx, l.MaskedLM, template.IDs, template.Slots)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// A minimalPair is a right sentence and a wrong one, which differ in kind.
type minimalPair struct {
	kind         string
	right, wrong string
	template     int
}

var (
	choiceOfPair   = regexp.MustCompile(`\[([^|\]]*)\|([^\]]*)\]`)
	variableOfPair = regexp.MustCompile(`\$[a-z]+\+?`)
)

// minimalPairs expands templates; lab/data/pairs.txt tells the grammar.
func minimalPairs(text string, seed uint64) ([]minimalPair, error) {
	lists := map[string][]string{} // $list to its entries
	var pairs []minimalPair
	templates := 0
	for number, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, entries, list := strings.Cut(line, " = ")
		if list && strings.HasPrefix(name, "$") {
			lists[name] = strings.Split(entries, " | ")
			continue
		}
		kind, sentence, ok := strings.Cut(line, ": ")
		if !ok || !choiceOfPair.MatchString(sentence) {
			return nil, fmt.Errorf("pairs, line %d: neither a list nor a template", number+1)
		}
		for _, v := range variableOfPair.FindAllString(sentence, -1) {
			if name := strings.TrimSuffix(v, "+"); lists[name] == nil {
				return nil, fmt.Errorf("pairs, line %d: there is no list %s", number+1, name)
			}
		}
		templates++
		random := rand.New(rand.NewPCG(seed, uint64(templates)))
		seen := map[string]bool{}
		most := pairsOf(templates)
		for range 20 * most {
			right, wrong := expandPair(sentence, lists, random)
			if seen[right] || len(seen) == most {
				continue
			}
			seen[right] = true
			pairs = append(pairs, minimalPair{kind, right, wrong, templates})
		}
	}
	return pairs, nil
}

// expandPair draws a word for each variable of a template, and returns the
// right and the wrong sentence.
func expandPair(sentence string, lists map[string][]string, random *rand.Rand) (right, wrong string) {
	chosen := map[string]string{}
	for _, v := range variableOfPair.FindAllString(sentence, -1) {
		name := strings.TrimSuffix(v, "+")
		if chosen[name] == "" {
			chosen[name] = lists[name][random.IntN(len(lists[name]))]
		}
	}
	word := func(v string) string {
		one, several, _ := strings.Cut(chosen[strings.TrimSuffix(v, "+")], "/")
		if strings.HasSuffix(v, "+") {
			return several
		}
		return one
	}
	right = variableOfPair.ReplaceAllStringFunc(choiceOfPair.ReplaceAllString(sentence, "$1"), word)
	wrong = variableOfPair.ReplaceAllStringFunc(choiceOfPair.ReplaceAllString(sentence, "$2"), word)
	return right, wrong
}

func (r *knowledgeRun) measurePairs(ctx context.Context, b *lab.Bench, all []*language) error {
	hits, err := inOrder(ctx, b, r.pairs, func(ctx context.Context, p minimalPair) ([]float64, error) {
		return p.hits(ctx, all)
	})
	if err != nil {
		return err
	}
	for n, pair := range r.pairs {
		r.measured["pairs, right"].add(pair.template, hits[n]...)
		r.measured["pairs: "+pair.kind].add(pair.template, hits[n]...)
	}
	return nil
}

// hits returns 1 for each model with the right sentence likelier, else 0.
func (p minimalPair) hits(ctx context.Context, all []*language) ([]float64, error) {
	hits := make([]float64, len(all))
	for i, model := range all {
		right, err := model.score(ctx, p.right)
		if err != nil {
			return nil, err
		}
		wrong, err := model.score(ctx, p.wrong)
		if err != nil {
			return nil, err
		}
		hits[i] = float64(logmath.Indicator(right > wrong))
	}
	return hits, nil
}

func (l *language) score(ctx context.Context, text string) (float64, error) {
	score, err := l.filler.Score(ctx, infill.ScoreRequest{Text: text})
	if err != nil {
		return 0, fmt.Errorf("pair %q: %w", text, err)
	}
	return score.LogLikelihood, nil
}

// fieldsOf returns the lines of a table of texts: its columns, apart by tabs.
func fieldsOf(text string, columns int) (lines [][]string, err error) {
	table := csv.NewReader(strings.NewReader(text))
	table.Comma = '\t'
	table.Comment = '#'
	table.LazyQuotes = true
	table.FieldsPerRecord = columns
	return table.ReadAll()
}

// measureClozes asks for the first five answers.
func (r *knowledgeRun) measureClozes(ctx context.Context, b *lab.Bench, all []*language) error {
	hits, err := inOrder(ctx, b, r.clozes, func(ctx context.Context, cloze []string) (clozeHits, error) {
		return answer(ctx, all, cloze)
	})
	if err != nil {
		return err
	}
	for number, cloze := range r.clozes {
		for _, kind := range []string{"", cloze[0]} {
			r.measured[clozeName(kind, "first")].add(number, hits[number].first...)
			r.measured[clozeName(kind, "among five")].add(number, hits[number].five...)
		}
	}
	return nil
}

// clozeHits has 1 for each model whose first answer is right, or whose first
// five have a right one, and 0 for the others.
type clozeHits struct{ first, five []float64 }

// answer asks each model for a cloze, which is a kind, a text and the right answers.
func answer(ctx context.Context, all []*language, cloze []string) (h clozeHits, err error) {
	if !slices.Contains(clozeKinds, cloze[0]) {
		return h, fmt.Errorf("clozes: there is no kind %q", cloze[0])
	}
	answers := strings.Split(cloze[2], "/")
	for _, model := range all {
		logp, err := model.blank(ctx, cloze[1])
		if err != nil {
			return h, fmt.Errorf("cloze %q: %w", cloze[1], err)
		}
		at := slices.IndexFunc(model.likeliest(logp, 5), func(id int) bool {
			return slices.Contains(answers, model.tokenizer.Token(id))
		})
		h.first = append(h.first, float64(logmath.Indicator(at == 0)))
		h.five = append(h.five, float64(logmath.Indicator(at >= 0)))
	}
	return h, nil
}

// measureProbes takes log-ratios of the probabilities of two sets of words.
func (r *knowledgeRun) measureProbes(ctx context.Context, all []*language) error {
	for _, probe := range r.probes {
		ratios := make([]float64, len(all))
		for i, model := range all {
			logp, err := model.blank(ctx, probe[0])
			if err != nil {
				return fmt.Errorf("probe %q: %w", probe[0], err)
			}
			for side, sign := range []float64{1, -1} {
				var own []float64
				for _, word := range strings.Split(probe[1+side], "/") {
					id, known := model.tokenizer.ID(word)
					if !known {
						return fmt.Errorf("probe %q: %q is no token of %s", probe[0], word, model.name)
					}
					own = append(own, float64(logp[id]))
				}
				ratios[i] += sign * floats.LogSumExp(own)
			}
		}
		r.measured[probeName(probe)].add(0, ratios...)
	}
	return nil
}
