package infill

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"infill/internal/lines"
	"infill/samplers"
	"infill/tokenize"
)

// GapsRequest asks for an exercise: a text with gaps for its readers. Every, Part
// and Words choose the gaps together: each Every-th of the words that can be the
// Part and are among Words. Without any of them, the text has its gaps in
// brackets: "the [gate] was open". Behind the key, a bracket may have answers of its own,
// of which those that begin with = are right: "the [gate|=door|barn] was open".
type GapsRequest struct {
	Text string
	// Every is 0 for every word that Part and Words allow, Part is "" for all, and
	// Words is nil for all.
	Every int    `option:"every" minimum:"1" word:"N" help:"each N-th word is a gap"`
	Part  string `option:"pos" enum:"noun,verb,adjective,adverb" word:"{noun|verb|adjective|adverb}" help:"part of speech of the gaps"`
	Words Words  `option:"words" word:"WORD,..." help:"words that become gaps"`
	// Names says whether a name may be a gap that Every, Part or Words chooses: a word
	// that the text writes with a capital within a sentence, or nowhere without one.
	Names bool `option:"names" help:"names become gaps, too: words that the text writes with a capital within a sentence, or nowhere without one"`
	// Protect lists texts and patterns that are no gaps, see [tokenize.Find].
	Protect []string `option:"protect" word:"TEXT,..." help:"words and other texts that are no gaps; ~ begins a pattern, as in ~[A-Z]+-[0-9]+"`
	// Options is the number of answers, the key among them; 0 for those in brackets only.
	// Answers in brackets all stay, and wrong answers of the model fill up the number.
	Options int `option:"options" minimum:"2" maximum:"10" word:"N" help:"answers to choose from at each gap, the right one among them"`
	// Below is what a wrong answer has at most in the gap, by the model. It always has
	// less than a 300th of the key's probability.
	Below float64 `option:"below" default:"1" exclusiveMinimum:"0" maximum:"1" word:"P" help:"the largest probability of a wrong answer, such as 0.0001"`
	// Apart is how many bits more the sentence alone has, by Score, with a wrong answer than
	// with the key, at least; 0 asks nothing. A wrong answer then needs the rows of a score.
	Apart float64 `option:"apart" minimum:"0" word:"BITS" help:"leave out wrong answers with which the sentence alone, by infill score, has less than BITS more than with the right one, such as 12"`
	// Bits bounds how surprising the keys are; the zero value bounds nothing.
	Bits Bits `option:"bits" word:"LOW-HIGH" help:"take only gaps whose key has so many bits by the model, such as 1-6: the more, the harder"`
	// Clear leaves out gaps whose key has a rival.
	Clear bool   `option:"clear" help:"leave out gaps where another word is nearly as likely as the right one"`
	Seed  uint64 `option:"seed" word:"N" help:"start of all random numbers"`
}

const (
	// A wrong answer is this much less likely than the key, at least.
	farBelow = 300
	// lettersApart is how many letters more or fewer a wrong answer has than
	// the key; asCommon is how many times more or less common it is.
	lettersApart = 2
	asCommon     = 10
	leastLetters = 3 // fewer are signs of elements and units
	mostRivals   = 3
	// toChoose is how many words there are for each wrong answer that is drawn.
	toChoose = 8
	// mostOptions is how many answers have letters.
	mostOptions = 26
	// exerciseFormat is the value of Exercise.Format.
	exerciseFormat = 1
)

// Exercise is a text with gaps.
type Exercise struct {
	// Format is the version of the JSON of an Exercise, 1.
	Format    int      `json:"format"`
	Text      string   `json:"text"` // with the keys, and without brackets
	Gaps      []Gap    `json:"gaps"` // leftmost first
	Model     Model    `json:"model"`
	Signature string   `json:"signature"`
	Warnings  []string `json:"warnings"`
}

// Gap is a place in a text that its readers fill.
type Gap struct {
	Span [2]int `json:"span"` // range of characters (code points) of the key in the text, from 0
	Key  string `json:"key"`
	// Right are further right answers, which somebody wrote. If there are Options, they
	// are among them.
	Right []string `json:"right,omitempty"`
	// Probability is the model's probability of the key there. It is 0, as are Bits, for
	// a gap that was written by hand.
	Probability float64 `json:"probability"`
	// Bits is -log2 of the probability, as the surprisal of a word.
	Bits float64 `json:"bits"`
	// Options are the right answers and wrong ones, shuffled; nil if none were wanted, or
	// there are no wrong ones.
	Options []string `json:"options,omitempty"`
	// Rivals are other words that have more than half of the key's
	// probability, three at most, the likeliest first.
	Rivals []string `json:"rivals"`
}

// Gaps makes an exercise of a text. A wrong answer has the part of speech that
// the key has there, about as many letters, is about as common by the model's
// probabilities of both alone, and is unlikely in the gap. It runs a row for each gap,
// and for a key of several tokens one more for each. Errors: *OptionError, and *tokenize.InputError for the text.
func (f *Filler) Gaps(ctx context.Context, r GapsRequest) (*Exercise, error) {
	declaredGaps.Settle(&r)
	err := r.check()
	if err != nil {
		return nil, err
	}
	text, keys, written := r.Text, [][2]int(nil), []Gap(nil)
	if !r.chooses() {
		text, keys, written, err = bracketed(r.Text)
	}
	if err != nil {
		return nil, err
	}
	encoding, err := f.Plain(text)
	if err != nil {
		return nil, err
	}
	if r.chooses() {
		keys = r.keys(f, encoding)
		written = make([]Gap, len(keys))
	}
	g := gapMaker{filler: f, request: r, text: text, offsets: encoding.Offsets}
	if r.Apart > 0 {
		g.sentences = tokenize.Sentences(text)
	}
	g.asker, err = f.asker(ctx, false)
	if err != nil {
		return nil, err
	}
	e := &Exercise{Format: exerciseFormat, Text: text, Gaps: []Gap{}, Model: f.Model(), Warnings: r.unused(text, keys)}
	seen := 0
	counted := 0
	due := false                 // whether the next word that can is a gap
	var refused, passed []string // keys that Clear or Bits leave out, and those with too few answers
	spans := lines.Characters(text, keys)
	for i, key := range keys {
		fault := func(err error) error {
			return cancelled(ctx, fmt.Errorf("the gap of %q: %w", text[key[0]:key[1]], err))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		place, err := g.place(key)
		var unknown *tokenize.InputError
		if errors.As(err, &unknown) {
			e.Warnings = append(e.Warnings, fmt.Sprintf("no gap for %q: %v", text[key[0]:key[1]], err))
			continue
		}
		if err != nil {
			return nil, fault(err)
		}
		if r.Part != "" {
			err = g.look(ctx, place)
			if err != nil {
				return nil, fault(err)
			}
			if place.part() != letterOf(r.Part) {
				continue // "saw" is no noun here
			}
		}
		place.written = written[i]
		seen = max(seen, place.layout.question.seen())
		counted++
		due = due || r.Every == 0 || counted%r.Every == 0
		if !due {
			continue
		}
		gap, warning, err := g.gap(ctx, place)
		if err != nil {
			return nil, fault(err)
		}
		if r.Clear && len(gap.Rivals) > 0 || !r.Bits.holds(gap.Bits) {
			refused = append(refused, gap.Key)
			continue
		}
		if r.chooses() && len(gap.Options) < r.Options {
			passed = append(passed, gap.Key)
			continue
		}
		due = false
		if warning != "" {
			e.Warnings = append(e.Warnings, fmt.Sprintf("gap %d (%s): %s", len(e.Gaps)+1, gap.Key, warning))
		}
		gap.Span = spans[i]
		e.Gaps = append(e.Gaps, *gap)
	}
	switch {
	case len(e.Gaps) > 0:
	case passed != nil:
		return nil, constrained("no gap is left: no word has %d wrong answers; ask for fewer, or for none if the text "+
			"is not English", r.Options-1)
	case refused != nil:
		return nil, constrained("no gap is left: clear or bits leaves out each word that may be one")
	default:
		return nil, constrained("no gap is left: the text has no word that may be one; with names, a name may")
	}
	if refused != nil && r.Every == 0 { // else the next word takes its place
		e.Warnings = append(e.Warnings, "no gaps, by clear or bits: "+strings.Join(refused, ", "))
	}
	if passed != nil {
		e.Warnings = append(e.Warnings, "no gaps, as they have too few wrong answers: "+strings.Join(passed, ", "))
	}
	e.Warnings = append(e.Warnings, tooLong(len(encoding.IDs), seen, "each gap")...)
	typed := f.typography(nil, text)
	if typed != "" {
		e.Warnings = append(e.Warnings, typed)
	}
	e.Warnings = lines.ShortAll(e.Warnings)
	e.Signature = r.signature(e, seen)
	return e, nil
}

// GapsCost returns upper bounds of what Gaps needs for a text. It does not run the model.
// Its errors are *tokenize.InputError.
func (f *Filler) GapsCost(r GapsRequest) (Cost, error) {
	encoding, err := f.Plain(r.Text)
	if err != nil {
		return Cost{}, err
	}
	// A gap needs a row, and one more for each of its tokens. The question of
	// the first token is as large as any.
	rows := 2 * len(encoding.IDs)
	q, _ := f.newQuestion(encoding.IDs, encoding.Offsets, []int{1}, nil)
	cost := Cost{Rows: rows, Tokens: float64(rows * q.size()), Bytes: bytesOfGap}
	if r.Apart == 0 || r.Options == 0 {
		return cost, nil
	}
	starts := tokenize.Sentences(r.Text)
	for i, end := range starts[1:] {
		one, err := f.ScoreCost(ScoreRequest{Text: r.Text[starts[i]:end]})
		if err != nil {
			continue // it holds no word
		}
		// Each of its tokens may be a key, with this many sentences.
		sentences := (one.Rows + 2) * (1 + toChoose*(r.Options-1))
		cost.Rows += sentences * (one.Rows + 2)
		cost.Tokens += float64(sentences) * (one.Tokens + 2*float64(q.size()))
		cost.Bytes = max(cost.Bytes, bytesOfGap+one.Bytes)
	}
	return cost, nil
}

// bytesOfGap is a gap's memory: two rows over the vocabulary, and a window.
const bytesOfGap = 8 << 20

func (r *GapsRequest) check() error {
	if r.Words != nil && len(r.Words) == 0 {
		return wrong("words", "the list is empty")
	}
	for _, p := range r.Protect {
		_, err := tokenize.Find("", p)
		if err != nil {
			return wrong("protect", "%v", err)
		}
	}
	return checkValues(declaredGaps, *r)
}

// unused returns warnings about what chooses no gap.
func (r *GapsRequest) unused(text string, keys [][2]int) []string {
	warnings := []string{}
	if text == r.Text && strings.Contains(text, "[") {
		warnings = append(warnings, "brackets are text here, as every, pos or words choose the gaps")
	}
	found := map[string]bool{}
	for _, key := range keys {
		found[tokenize.Folded(text[key[0]:key[1]])] = true
	}
	for _, word := range r.Words {
		if !found[tokenize.Folded(word)] {
			warnings = append(warnings, fmt.Sprintf("the text has no word %q that may be a gap", word))
		}
	}
	return warnings
}

func (r *GapsRequest) signature(e *Exercise, seen int) string {
	var s signature
	s.add("method", "gaps")
	if r.Options > 0 {
		s.add("options", fmt.Sprint(r.Options))
		s.add("below", fmt.Sprint(r.Below))
	}
	if r.Options > 0 && r.Apart > 0 {
		s.add("apart", fmt.Sprint(r.Apart))
	}
	if r.Options > 0 || slices.ContainsFunc(e.Gaps, func(g Gap) bool { return g.Options != nil }) {
		s.add("seed", fmt.Sprint(r.Seed))
	}
	s.seen(seen)
	s.model(e.Model)
	return s.String()
}

// chooses reports whether rules choose the gaps, and not brackets.
func (r *GapsRequest) chooses() bool { return r.Every > 0 || r.Part != "" || r.Words != nil }

// keys returns the byte ranges of the words of e that may be gaps.
func (r *GapsRequest) keys(f *Filler, e *tokenize.Encoding) (keys [][2]int) {
	listed := map[string]bool{}
	for _, word := range r.Words {
		listed[tokenize.Folded(word)] = true
	}
	var protected [][2]int
	for _, p := range r.Protect {
		found, _ := tokenize.Find(r.Text, p) // check has returned the error
		protected = append(protected, found...)
	}
	parts := f.maskable(r.Text, e, protected)
	name := func(string) bool { return false }
	if !r.Names {
		name = namesIn(r.Text, parts)
	}
	for _, part := range parts {
		word := r.Text[part.Start:part.End]
		if r.Words != nil && !listed[tokenize.Folded(word)] || name(word) && !slices.Contains(r.Words, word) {
			continue
		}
		if r.Part != "" && strings.IndexByte(speech()[strings.ToLower(word)], letterOf(r.Part)) < 0 {
			continue
		}
		keys = append(keys, [2]int{part.Start, part.End})
	}
	return keys
}

// namesIn returns a function that reports whether a word of a text is a name, see
// [GapsRequest.Names]. I is no name, no function word is one because it begins a
// sentence, and in a text all in capitals nothing is.
func namesIn(text string, words []tokenize.Part) func(word string) bool {
	within, small := map[string]bool{}, map[string]bool{}
	for _, p := range words {
		word := text[p.Start:p.End]
		folded := tokenize.Folded(word)
		if word == strings.ToLower(word) {
			small[folded] = true
		} else if !tokenize.StartsSentence(text[:p.Start]) {
			within[folded] = true
		}
	}
	loud := text == strings.ToUpper(text)
	return func(word string) bool {
		if loud || word == strings.ToLower(word) || word == "I" || strings.HasPrefix(word, "I'") ||
			strings.HasPrefix(word, "I’") {
			return false
		}
		folded := tokenize.Folded(word)
		return within[folded] || !small[folded] && !tokenize.StopWord(word)
	}
}

// bracketed returns a text without its brackets, where their keys stand, and what is
// written for each gap. A backslash makes a bracket text.
func bracketed(typed string) (text string, keys [][2]int, written []Gap, err error) {
	var b strings.Builder
	from := 0
	for _, at := range brackets.FindAllStringSubmatchIndex(typed, -1) {
		b.WriteString(typed[from:at[0]])
		from = at[1]
		found := typed[at[0]:at[1]]
		if found[0] == '\\' {
			b.WriteByte(found[1])
			continue
		}
		var inside string
		var answers []string
		if at[2] >= 0 {
			answers = betweenBars.FindAllString(typed[at[2]:at[3]], -1)
			inside = unescaped.Replace(answers[0])
		}
		key := strings.TrimSpace(inside)
		if key == "" || key == "…" || len(key) > 1 && strings.Trim(key, ".") == "" {
			return "", nil, nil, misfit("text", "a bracket holds no word, or is not closed, at character %d: "+
				`write the [gate] was open, or \[ for a bracket that is text`, utf8.RuneCountInString(typed[:at[0]])+1)
		}
		gap := Gap{Key: key}
		if len(answers) > 1 {
			inside = key
			err = gap.write(answers[1:])
		}
		if err == nil && len(answers) > 1 && strings.HasPrefix(key, "=") {
			err = fmt.Errorf("its first answer is the right one without =: write [%s|...]", key[1:])
		}
		if err != nil {
			return "", nil, nil, misfit("text", "gap %d (%s): %v", len(keys)+1, key, err)
		}
		start := b.Len() + strings.Index(inside, key)
		keys = append(keys, [2]int{start, start + len(key)})
		written = append(written, gap)
		b.WriteString(inside)
	}
	b.WriteString(typed[from:])
	if keys == nil {
		return "", nil, nil, misfit("text", "which words become gaps? Put them in brackets, as in the [gate] was "+
			"open, or choose them by every, pos or words")
	}
	return b.String(), keys, written, nil
}

// write takes the answers that a bracket has behind the key, each with the | before it.
func (g *Gap) write(answers []string) error {
	wrong := false
	options := []string{g.Key}
	for _, a := range answers {
		a, right := strings.CutPrefix(strings.TrimSpace(a[1:]), "=")
		a = strings.TrimSpace(unescaped.Replace(a))
		if right {
			g.Right = append(g.Right, a)
		}
		wrong = wrong || !right
		options = append(options, a)
	}
	if wrong {
		g.Options = options
	}
	return g.check()
}

// brackets finds a bracket that is text, one with its content, and one that is not closed.
// betweenBars finds the parts of a content, with the | before each but the first.
var (
	brackets    = regexp.MustCompile(`\\[\[\]]|\[((?:\\.|[^\[\]\\])*)\]|\[`)
	betweenBars = regexp.MustCompile(`(?:^|\|)(?:\\\||[^|])*`)
)

var unescaped = strings.NewReplacer(`\[`, "[", `\]`, "]", `\|`, "|", `\=`, "=")

// Check returns an error for the first gap, by its number and key, that the text or
// itself contradicts, as in an exercise that somebody has edited.
func (e *Exercise) Check() error {
	if e.Format != exerciseFormat {
		return fmt.Errorf(`it has not "format": %d, as a sheet has that infill gaps writes in JSON`, exerciseFormat)
	}
	err := tokenize.CheckText(e.Text)
	if err != nil {
		return err
	}
	if len(e.Gaps) == 0 {
		return errors.New("it has no gap")
	}
	text := []rune(e.Text)
	free := 0 // where the next gap may begin
	for i, g := range e.Gaps {
		from, to := g.Span[0], g.Span[1]
		err := g.check()
		switch {
		case g.Key == "":
			return fmt.Errorf("gap %d has no key", i+1)
		case err != nil:
		case from < free || from >= to || to > len(text):
			err = fmt.Errorf("its span, %d to %d, is not within the text behind the gaps before it, %d to %d: write "+
				"gaps in the order of the text, each with the number of its first character, from 0, and of the "+
				"one behind it", from, to, free, len(text))
		case string(text[from:to]) != g.Key:
			err = fmt.Errorf("its span, %d to %d, holds %q: the key is what the text has there%s", from, to,
				string(text[from:to]), stands(e.Text, g.Key))
		case g.Probability < 0 || g.Probability > 1 || g.Bits < 0:
			err = errors.New("its probability is not from 0 to 1, or its bits are below 0")
		}
		if err != nil {
			return fmt.Errorf("gap %d (%s): %w", i+1, g.Key, err)
		}
		free = to
	}
	return nil
}

// stands says where a text has a word, if it has it once.
func stands(text, word string) string {
	before, behind, found := strings.Cut(text, word)
	if !found || strings.Contains(behind, word) {
		return ""
	}
	from := utf8.RuneCountInString(before)
	return fmt.Sprintf(", and it has %q at %d to %d", word, from, from+utf8.RuneCountInString(word))
}

func (g *Gap) check() error {
	right := append([]string{g.Key}, g.Right...)
	most := max(len(right), len(g.Options))
	if most > mostOptions { // before answers are compared with each other
		return fmt.Errorf("it has %d options, and at most %d are taken", most, mostOptions)
	}
	for _, list := range [][]string{right, g.Options} {
		for i, a := range list {
			switch {
			case strings.TrimSpace(a) == "":
				return errors.New("an answer is empty: write a word, or take it out")
			case a != g.Key && a != strings.TrimSpace(a):
				return fmt.Errorf("the answer %q begins or ends with a space", a)
			case a != g.Key && strings.ContainsFunc(a, unicode.IsControl):
				return fmt.Errorf("the answer %q has a line break, a tab or another control character", a)
			case !slices.Contains(list[:i], a):
			case slices.Contains(g.Right, a):
				return fmt.Errorf("the answer %q is given twice, also as right: take one out", a)
			default:
				return fmt.Errorf("the answer %q is given twice: take one out", a)
			}
		}
	}
	if g.Options == nil {
		return nil
	}
	for _, a := range right {
		if !slices.Contains(g.Options, a) {
			return fmt.Errorf("the right answer %q is not among its options: add it, or take the options out for a "+
				"line to write on", a)
		}
	}
	if len(g.Options) == len(right) {
		return errors.New("none of its options is wrong: add one that is, or take the options out for a line to " +
			"write on")
	}
	return nil
}

type gapMaker struct {
	filler  *Filler
	asker   *asker
	request GapsRequest
	text    string
	offsets [][2]int // of the text's tokens
	// sentences are where those of the text begin, and its end; nil if Apart is 0.
	sentences []int
	common    []float32 // log P of each token where nothing else is, [vocabulary]; nil before it is needed
}

// place prepares the gap of a key without the model. The error is a
// *tokenize.InputError if the model has no tokens for the key.
func (g *gapMaker) place(key [2]int) (*gapPlace, error) {
	from, to := g.around(key)
	r := Request{Template: tokenize.BeforeBlank(g.text[from:key[0]]) + "[MASK]" + g.text[key[1]:to], Method: Search{},
		Originals: []string{g.text[key[0]:key[1]]}}
	number := !strings.ContainsFunc(g.text[key[0]:key[1]], unicode.IsLetter) // or a sign
	if number || g.ends(key) {
		r.Fit.Fill = FillAny // which reads what follows as a word of its own
	}
	plan, err := g.filler.Plan(context.Background(), r)
	if err != nil {
		return nil, err
	}
	l := plan.shortest
	if len(l.question.slots) != 1 {
		return nil, misfit("text", "it holds a blank itself: fill it first")
	}
	p := &gapPlace{layout: l, span: key, key: g.text[key[0]:key[1]]}
	p.held.tokens, err = g.filler.vocabulary.candidate(p.key, l.template.Blanks[0])
	if err != nil {
		return nil, err
	}
	p.held.question, err = plan.question(len(p.held.tokens))
	return p, err
}

// ends reports whether another word follows a key directly, as in 日本the.
func (g *gapMaker) ends(key [2]int) bool {
	next, size := utf8.DecodeRuneInString(g.text[key[1]:])
	parts := tokenize.Parts(g.text[key[0] : key[1]+size])
	return (unicode.IsLetter(next) || unicode.IsDigit(next)) && parts[len(parts)-1].Start == key[1]-key[0]
}

// around returns the range of bytes around a key with all that the model can see
// from the gap, so that a text takes time in proportion to its length.
func (g *gapMaker) around(key [2]int) (from, to int) {
	tokens := g.offsets[1 : len(g.offsets)-1]
	reach := 2 * g.filler.maxPositions // what a cut changes is out of sight
	first := sort.Search(len(tokens), func(i int) bool { return tokens[i][1] > key[0] })
	before := max(0, first-reach)
	if before > 0 {
		from = tokens[before][0]
	}
	for from > 0 && g.text[from-1] == '\\' { // it belongs to what stands behind it
		from--
	}
	last := sort.Search(len(tokens), func(i int) bool { return tokens[i][0] >= key[1] })
	if last+reach >= len(tokens) {
		return from, len(g.text)
	}
	return from, tokens[last+reach][0]
}

// look asks the model what it expects in a gap, once.
func (g *gapMaker) look(ctx context.Context, p *gapPlace) error {
	if p.logp != nil {
		return nil
	}
	root, err := g.asker.root(ctx, p.layout.question)
	if err != nil {
		return err
	}
	logp := []float64{float64(root[0][p.held.tokens[0]])}
	if len(p.held.tokens) > 1 {
		given, err := g.asker.given(ctx, []held{p.held})
		if err != nil {
			return err
		}
		logp = given[0]
	}
	for _, one := range logp {
		p.keyLogP += one
	}
	p.logp = root[0]
	p.tokens = p.layout.alone(0)
	return nil
}

// gap makes the gap of a key. warning says which wrong answers are missing, or that one
// of those written by hand suits.
func (g *gapMaker) gap(ctx context.Context, p *gapPlace) (gap *Gap, warning string, err error) {
	err = g.look(ctx, p)
	if err != nil {
		return nil, "", err
	}
	gap = &Gap{Key: p.key, Right: p.written.Right, Probability: math.Exp(p.keyLogP),
		Bits: max(0, -p.keyLogP/math.Ln2), Rivals: p.rivals()}
	right := append([]string{p.key}, gap.Right...)
	options := slices.Clone(p.written.Options)
	if options == nil {
		options = right
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(g.request.Seed))
	binary.LittleEndian.PutUint64(seed[8:], uint64(p.span[0]))
	random := rand.New(rand.NewChaCha8(seed))
	wanted := g.request.Options - len(options)
	if wanted > 0 {
		common, err := g.frequency(ctx, p)
		if err != nil {
			return nil, "", err
		}
		wrong := g.wrong(p, common, options, toChoose*wanted)
		random.Shuffle(len(wrong), func(i, j int) { wrong[i], wrong[j] = wrong[j], wrong[i] })
		wrong, err = g.apart(ctx, p, wrong, wanted)
		if err != nil {
			return nil, "", err
		}
		options = append(options, wrong...)
	}
	wanted = g.request.Options - len(right)
	switch got := len(options) - len(right); {
	case g.request.Options == 0 && got == 0:
		return gap, "", nil
	case wanted <= 0 && got == 0:
		return gap, "no wrong answers: its right answers are as many as the options that are wanted", nil
	case got == 0:
		return gap, "no wrong answers: no other word is like the key and so unlikely here", nil
	case got < wanted:
		warning = fmt.Sprintf("%d of %d wrong answers are there: no further word is like the key and so unlikely here",
			got, wanted)
	}
	for _, rival := range gap.Rivals {
		if warning == "" && slices.Contains(options, rival) {
			warning = fmt.Sprintf("its wrong answer %q is nearly as likely as the key", rival)
		}
	}
	gap.Options = options
	random.Shuffle(len(gap.Options), func(i, j int) {
		gap.Options[i], gap.Options[j] = gap.Options[j], gap.Options[i]
	})
	return gap, warning, nil
}

// apart returns the first words, most at most, with which the sentence of a gap is as much
// less likely than with the key as the request asks for.
func (g *gapMaker) apart(ctx context.Context, p *gapPlace, words []string, most int) (far []string, err error) {
	if g.request.Apart == 0 {
		return words[:min(len(words), most)], nil
	}
	key, err := g.sentence(ctx, p, p.key)
	for _, word := range words {
		if err != nil || len(far) == most {
			break
		}
		var own float64
		own, err = g.sentence(ctx, p, word)
		if key-own >= g.request.Apart*math.Ln2 {
			far = append(far, word)
		}
	}
	return far, err
}

// sentence returns the log-likelihood, by Score, of the sentence of a gap with a word in it.
func (g *gapMaker) sentence(ctx context.Context, p *gapPlace, word string) (float64, error) {
	first := sort.SearchInts(g.sentences, p.span[0]+1) - 1
	last := sort.SearchInts(g.sentences, p.span[1])
	s, err := g.filler.Score(ctx, ScoreRequest{Text: g.text[g.sentences[first]:p.span[0]] + word +
		g.text[p.span[1]:g.sentences[last]]})
	if err != nil {
		return 0, err
	}
	return s.LogLikelihood, nil
}

// frequency returns log P of a word where nothing else is, which tells how common
// it is; of a word of several pieces that of the first.
func (g *gapMaker) frequency(ctx context.Context, p *gapPlace) (float64, error) {
	if g.common == nil {
		ids := p.layout.template.IDs
		q, _ := g.filler.newQuestion([]int{ids[0], ids[0], ids[len(ids)-1]}, make([][2]int, 3), []int{1}, nil)
		root, err := g.asker.root(ctx, q)
		if err != nil {
			return 0, err
		}
		g.common = root[0]
	}
	return float64(g.common[p.held.tokens[0]]), nil
}

// closed are the English words of which no others are made: determiners, pronouns,
// conjunctions, prepositions. A word counts for the first list that has it.
var closed = [][]string{
	strings.Fields("the a an this that these those my your his her its our their some any no every each"),
	strings.Fields("i you he she it we they me him us them who whom what which myself yourself himself herself " +
		"itself ourselves themselves"),
	strings.Fields("and but or nor so yet because although though while if unless until since when whereas whether"),
	strings.Fields("of in to for with on at by from about into over after under between through during before " +
		"against without within among across behind beyond near above below beside along around toward towards upon"),
}

// wrong returns words that may be wrong answers beside others, most at most, the likeliest in
// the gap first: they have the form that the sentence asks for, such as the past of an
// irregular verb. Those for a word of a closed list are of that list.
func (g *gapMaker) wrong(place *gapPlace, common float64, beside []string, most int) (words []string) {
	fits := g.like(place, common)
	follows := follower(g.text[:place.span[0]])
	limit := min(math.Log(g.request.Below), place.keyLogP-math.Log(farBelow))
	name := tokenize.Name(place.key)
	seen := map[string]bool{} // a cased model has gate and Gate
	for _, answer := range beside {
		seen[tokenize.Folded(answer)] = true
	}
	for _, token := range samplers.Likeliest(place.tokens, place.logp, len(place.tokens)) {
		word := g.filler.vocabulary.lower()[token]
		folded := tokenize.Folded(word)
		likelier := seen[folded]
		seen[folded] = true
		if likelier || float64(place.logp[token]) >= limit || !fits(token) ||
			!follows(word) || tokenize.Name(word) != name {
			continue
		}
		words = append(words, tokenize.Like(word, place.key))
		if len(words) == most {
			break
		}
	}
	return words
}

// follower returns a function that reports whether a word may follow the article a
// or an, if text ends with one: another would give the answer away. It goes by the
// first letter, as few words (hour, union) need another article.
func follower(text string) func(word string) bool {
	near := strings.TrimRight(text[max(0, len(text)-32):], " \t\n")
	other := func(r rune) bool { return !unicode.IsLetter(r) }
	article := strings.ToLower(near[strings.LastIndexFunc(near, other)+1:])
	if article != "a" && article != "an" {
		return func(string) bool { return true }
	}
	return func(word string) bool { return strings.ContainsRune("aeiou", rune(word[0])) == (article == "an") }
}

// like returns a function that reports whether a token is a word like the key: of its
// closed list, or of its part of speech, form, length and frequency.
func (g *gapMaker) like(place *gapPlace, common float64) func(token int) bool {
	v := g.filler.vocabulary
	key := strings.ToLower(place.key)
	for _, list := range closed {
		if slices.Contains(list, key) {
			return func(token int) bool { return slices.Contains(list, v.lower()[token]) }
		}
	}
	part := place.part()
	letters := utf8.RuneCountInString(place.key)
	noLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	return func(token int) bool {
		lower := v.lower()[token]
		own := utf8.RuneCountInString(lower)
		switch {
		case part == 0, v.classes()[token] != wordToken, own < leastLetters, strings.ContainsFunc(lower, noLetter),
			max(own-letters, letters-own) > lettersApart,
			math.Abs(float64(g.common[token])-common) > math.Log(asCommon):
			return false
		}
		return strings.IndexByte(speech()[lower], part) >= 0 && ending(lower) == ending(place.key) &&
			!slices.Contains(unfit, lower)
	}
}

// unfit are words that no sheet for a class has as a wrong answer.
var unfit = strings.Fields("anal anus ass asshole bastard bitch cock crap cunt damn dick erotic fuck fucking horny " +
	"idiot kill killed murder murdered naked nazi nigger nude orgasm penis porn prostitute psycho pussy rape raped " +
	"rapist semen sex sexual sexy shit slut stupid suicide terrorist tits vagina whore")

// ending returns the ending of an English word that tells its form: a plural
// beside singulars would give the answer away.
func ending(word string) string {
	for _, end := range []string{"ing", "ed", "s", "ly"} {
		if strings.HasSuffix(strings.ToLower(word), end) {
			return end
		}
	}
	return ""
}

type gapPlace struct {
	layout  *layout // with one slot
	span    [2]int  // byte range of the key in the text
	key     string
	written Gap       // what its bracket has
	held    held      // the key's tokens, and the question with as many slots
	tokens  []int     // that may stand there, ascending; this and the rest are known after look
	logp    []float32 // of each token, [vocabulary]
	keyLogP float64
}

func (p *gapPlace) word(token int) string { return p.layout.with(0, token).Fills[0] }

// rivals returns words, but right answers, with more than half of the key's P.
func (p *gapPlace) rivals() []string {
	words := []string{}
	for _, token := range samplers.Likeliest(p.tokens, p.logp, mostRivals+1+len(p.written.Right)) {
		word := p.word(token)
		right := slices.ContainsFunc(append(p.written.Right, p.key),
			func(answer string) bool { return strings.EqualFold(word, answer) })
		if float64(p.logp[token]) > p.keyLogP-math.Ln2 && !right && len(words) < mostRivals {
			words = append(words, word)
		}
	}
	return words
}

// part returns the letter of the part of speech of the key: of those that the
// key can be, the one that the model expects most there; 0 for an unknown word.
func (p *gapPlace) part() byte {
	parts := speech()[strings.ToLower(p.key)]
	if len(parts) < 2 {
		return (parts + "\x00")[0]
	}
	expected := map[byte]float64{}
	lower := p.layout.rules.vocabulary.lower()
	for _, token := range p.tokens {
		other := speech()[lower[token]]
		// A word of several parts of speech, or in another form, says nothing.
		if len(other) == 1 && ending(lower[token]) == ending(p.key) {
			expected[other[0]] += math.Exp(float64(p.logp[token]))
		}
	}
	best := parts[0]
	for i := range parts {
		if expected[parts[i]] > expected[best] {
			best = parts[i]
		}
	}
	return best
}

// Bits are bounds of a surprisal in bits, both included. The zero Bits bound nothing.
type Bits struct{ Low, High float64 }

// MarshalText writes the bounds as UnmarshalText reads them, such as "1-6"; "" for none.
func (b Bits) MarshalText() ([]byte, error) {
	if b == (Bits{}) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%g-%g", b.Low, b.High), nil
}

// UnmarshalText reads bounds such as "1-6".
func (b *Bits) UnmarshalText(text []byte) error {
	low, high, ok := strings.Cut(string(text), "-")
	var read Bits
	var fine [2]bool
	read.Low, fine[0] = number([]byte(low), 0, math.MaxFloat64)
	read.High, fine[1] = number([]byte(high), math.SmallestNonzeroFloat64, math.MaxFloat64)
	if !ok || !fine[0] || !fine[1] || read.Low > read.High {
		return errBits
	}
	*b = read
	return nil
}

var errBits = errors.New("two numbers of bits, the lower one first, as in 1-6")

// Check returns an error for bounds in the wrong order.
func (b Bits) Check() error {
	if b.Low < 0 || !(b.High >= b.Low && b.High <= math.MaxFloat64) {
		return errBits
	}
	return nil
}

func (b Bits) holds(bits float64) bool { return b == (Bits{}) || bits >= b.Low && bits <= b.High }
