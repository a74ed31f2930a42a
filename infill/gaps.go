package infill

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"infill/internal/option"
	"infill/samplers"
	"infill/tokenize"
)

// GapsRequest asks for an exercise: a text with gaps for its readers. Every, Part
// and Words choose the gaps together: each Every-th of the words that can be the
// Part and are among Words. Without any of them, the text has its gaps in
// brackets: "the [gate] was open".
type GapsRequest struct {
	Text string
	// Every is 0 for every word that Part and Words allow, Part is "" for all, and
	// Words is nil for all.
	Every int    `option:"every" minimum:"1" word:"N" help:"each N-th word is a gap"`
	Part  string `option:"pos" enum:"noun,verb,adjective,adverb" word:"{noun|verb|adjective|adverb}" help:"part of speech of the gaps"`
	Words Words  `option:"words" word:"WORD,..." help:"words that become gaps"`
	// Options is the number of answers, the key among them; 0 for none.
	Options int `option:"options" minimum:"2" maximum:"10" word:"N" help:"answers to choose from at each gap, the right one among them"`
	// Below is what a wrong answer has at most in the gap, by the model. It always has
	// less than a 300th of the key's probability.
	Below float64 `option:"below" default:"1" exclusiveMinimum:"0" maximum:"1" word:"P" help:"the largest probability of a wrong answer, such as 0.0001"`
	// Bits bounds how surprising the keys are; the zero value bounds nothing.
	Bits Bits `option:"bits" word:"LOW-HIGH" help:"take only gaps whose key has so many bits by the model, such as 1-6: the more, the harder"`
	// Clear leaves out gaps whose key has a rival.
	Clear bool   `option:"clear" help:"leave out gaps where another word is nearly as likely as the right one"`
	Seed  uint64 `option:"seed" word:"N" help:"start of all random numbers"`
}

// GapsOptions are the options of a GapsRequest.
var GapsOptions = option.Of(option.Owner{Zero: GapsRequest{}})

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
)

// Exercise is a text with gaps.
type Exercise struct {
	Text      string   `json:"text"` // with the keys, and without brackets
	Gaps      []Gap    `json:"gaps"` // leftmost first
	Model     Model    `json:"model"`
	Signature string   `json:"signature"`
	Warnings  []string `json:"warnings"`
}

// Gap is a place in a text that its readers fill.
type Gap struct {
	Span [2]int `json:"span"` // byte range of the key in the text
	Key  string `json:"key"`
	// Probability is the model's probability of the key there.
	Probability float64 `json:"probability"`
	// Bits is -log2 of the probability, as the surprisal of a word.
	Bits float64 `json:"bits"`
	// Options are the key and wrong answers, shuffled; nil if none were wanted, or there
	// are none.
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
	GapsOptions.Settle(&r)
	err := r.check()
	if err != nil {
		return nil, err
	}
	text, keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	encoding, err := f.Plain(text)
	if err != nil {
		return nil, err
	}
	g := gapMaker{filler: f, request: r, text: text}
	g.asker, err = f.asker(ctx)
	if err != nil {
		return nil, err
	}
	e := &Exercise{Text: text, Gaps: []Gap{}, Model: f.Model(), Warnings: r.unused(text, keys)}
	seen := 0
	counted := 0
	due := false     // whether the next word that can is a gap
	refused := false // whether Clear or Bits left one out
	var passed []string
	for _, key := range keys {
		fault := func(err error) error {
			return cancelled(ctx, fmt.Errorf("the gap of %q: %w", text[key[0]:key[1]], err))
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
			if place.part() != r.letter() {
				continue // "saw" is no noun here
			}
		}
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
			refused = true
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
		e.Gaps = append(e.Gaps, *gap)
	}
	switch {
	case len(e.Gaps) > 0:
	case passed != nil:
		return nil, constrained("no gap is left: no word has %d wrong answers; ask for fewer, or for none if the text "+
			"is not English", r.Options-1)
	case refused:
		return nil, constrained("no gap is left: clear or bits leaves out each word that may be one")
	default:
		return nil, constrained("no gap is left: the text has no word that may be one")
	}
	if passed != nil {
		e.Warnings = append(e.Warnings, "no gaps, as they have too few wrong answers: "+strings.Join(passed, ", "))
	}
	e.Warnings = append(e.Warnings, tooLong(len(encoding.IDs), seen, "each gap")...)
	e.Signature = r.signature(e.Model, seen)
	return e, nil
}

// GapsEffort returns upper bounds of the model rows that Gaps asks for a text,
// and of what they cost, as a number of tokens. It does not run the model. Its
// errors are *tokenize.InputError.
func (f *Filler) GapsEffort(r GapsRequest) (rows int, tokens float64, err error) {
	encoding, err := f.Plain(r.Text)
	if err != nil {
		return 0, 0, err
	}
	// A gap needs a row, and one more for each of its tokens. The question of
	// the first token is as large as any.
	rows = 2 * len(encoding.IDs)
	q, _ := f.newQuestion(encoding.IDs, encoding.Offsets, []int{1}, nil)
	return rows, float64(rows * q.size()), nil
}

// check returns an *OptionError for a wrong setting.
func (r *GapsRequest) check() error {
	if r.Words != nil && len(r.Words) == 0 {
		return wrong("words", "the list is empty")
	}
	return optionError(GapsOptions.Check(*r))
}

// unused returns warnings about what chooses no gap.
func (r *GapsRequest) unused(text string, keys [][2]int) []string {
	warnings := []string{}
	if text == r.Text && strings.Contains(text, "[") {
		warnings = append(warnings, "brackets are text here, as every, pos or words choose the gaps")
	}
	for _, word := range r.Words {
		found := func(key [2]int) bool { return strings.EqualFold(text[key[0]:key[1]], word) }
		if !slices.ContainsFunc(keys, found) {
			warnings = append(warnings, fmt.Sprintf("the text has no word %q that may be a gap", word))
		}
	}
	return warnings
}

func (r *GapsRequest) letter() byte { return letterOf(r.Part) }

func (r *GapsRequest) signature(m Model, seen int) string {
	var s signature
	s.add("method", "gaps")
	if r.Options > 0 {
		s.add("options", fmt.Sprint(r.Options))
		s.add("below", fmt.Sprint(r.Below))
		s.add("seed", fmt.Sprint(r.Seed))
	}
	s.seen(seen)
	s.model(m)
	return s.String()
}

// chooses reports whether rules choose the gaps, and not brackets.
func (r *GapsRequest) chooses() bool { return r.Every > 0 || r.Part != "" || r.Words != nil }

// keys returns the text without brackets, and the byte ranges of the words that
// may be gaps.
func (r *GapsRequest) keys() (text string, keys [][2]int, err error) {
	if !r.chooses() {
		return bracketed(r.Text)
	}
	for _, part := range tokenize.Maskable(r.Text) {
		word := r.Text[part.Start:part.End]
		first, _ := utf8.DecodeRuneInString(word)
		listed := func(other string) bool { return strings.EqualFold(word, other) }
		if r.Words != nil && !slices.ContainsFunc(r.Words, listed) {
			continue
		}
		if r.Part != "" && strings.IndexByte(speech()[strings.ToLower(word)], r.letter()) < 0 {
			continue
		}
		if r.Part != "" && unicode.IsUpper(first) && !tokenize.StartsSentence(r.Text[:part.Start]) {
			continue // a name
		}
		keys = append(keys, [2]int{part.Start, part.End})
	}
	return r.Text, keys, nil
}

// bracketed returns a text without its brackets, and where their contents stand.
func bracketed(typed string) (text string, keys [][2]int, err error) {
	var b strings.Builder
	for rest := typed; ; {
		before, after, found := strings.Cut(rest, "[")
		b.WriteString(before)
		if !found {
			break
		}
		key, behind, closed := strings.Cut(after, "]")
		if !closed || strings.TrimSpace(key) == "" || strings.Contains(key, "[") {
			return "", nil, &OptionError{Option: "text", Misfit: true,
				Reason: "a bracket holds no word, or is not closed: write the [gate] was open"}
		}
		word := strings.TrimSpace(key)
		b.WriteString(key[:strings.Index(key, word)])
		keys = append(keys, [2]int{b.Len(), b.Len() + len(word)})
		b.WriteString(key[strings.Index(key, word):])
		rest = behind
	}
	if keys == nil {
		return "", nil, &OptionError{Option: "text", Misfit: true, Reason: "which words become gaps? Put them in " +
			"brackets, as in the [gate] was open, or choose them by every, pos or words"}
	}
	return b.String(), keys, nil
}

// gapMaker makes the gaps of a text.
type gapMaker struct {
	filler  *Filler
	asker   *asker
	request GapsRequest
	text    string
	common  []float32 // log P of each token where nothing else is, [vocabulary]; nil before it is needed
}

// place prepares the gap of a key without the model. The error is a
// *tokenize.InputError if the model has no tokens for the key.
func (g *gapMaker) place(key [2]int) (*gapPlace, error) {
	r := Request{Template: tokenize.BeforeBlank(g.text[:key[0]]) + "[MASK]" + g.text[key[1]:], Method: Search{}}
	if !strings.ContainsFunc(g.text[key[0]:key[1]], unicode.IsLetter) { // a number, or a sign
		r.Fit.Fill = FillAny
	}
	plan, err := g.filler.Plan(r)
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

// gap makes the gap of a key. warning says which wrong answers are missing.
func (g *gapMaker) gap(ctx context.Context, p *gapPlace) (gap *Gap, warning string, err error) {
	err = g.look(ctx, p)
	if err != nil {
		return nil, "", err
	}
	gap = &Gap{Span: p.span, Key: p.key, Probability: math.Exp(p.keyLogP), Bits: max(0, -p.keyLogP/math.Ln2),
		Rivals: p.rivals()}
	if g.request.Options == 0 {
		return gap, "", nil
	}
	common, err := g.frequency(ctx, p)
	if err != nil {
		return nil, "", err
	}
	random := g.random(p.span)
	wanted := g.request.Options - 1
	wrong := g.wrong(p, common, toChoose*wanted)
	random.Shuffle(len(wrong), func(i, j int) { wrong[i], wrong[j] = wrong[j], wrong[i] })
	switch {
	case len(wrong) == 0:
		return gap, "no wrong answers: no other word is like the key and so unlikely here", nil
	case len(wrong) < wanted:
		warning = fmt.Sprintf("%d of %d wrong answers are there: no further word is like the key and so unlikely here",
			len(wrong), wanted)
	}
	gap.Options = append([]string{p.key}, wrong[:min(len(wrong), wanted)]...)
	random.Shuffle(len(gap.Options), func(i, j int) {
		gap.Options[i], gap.Options[j] = gap.Options[j], gap.Options[i]
	})
	return gap, warning, nil
}

func (g *gapMaker) random(key [2]int) *rand.Rand {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(g.request.Seed))
	binary.LittleEndian.PutUint64(seed[8:], uint64(key[0]))
	return rand.New(rand.NewChaCha8(seed))
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

// wrong returns words that may be wrong answers, most at most, the likeliest in
// the gap first: they have the form that the sentence asks for, such as the past of an
// irregular verb. Those for a word of a closed list are of that list.
func (g *gapMaker) wrong(place *gapPlace, common float64, most int) (words []string) {
	fits := g.like(place, common)
	limit := min(math.Log(g.request.Below), place.keyLogP-math.Log(farBelow))
	for _, token := range samplers.Likeliest(place.tokens, place.logp, len(place.tokens)) {
		if float64(place.logp[token]) >= limit || !fits(token) {
			continue
		}
		word := place.word(token)
		if strings.EqualFold(word, place.key) || capital(word) != capital(place.key) { // also a name
			continue
		}
		words = append(words, word)
		if len(words) == most {
			break
		}
	}
	return words
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
	return func(token int) bool {
		lower := v.lower()[token]
		own := utf8.RuneCountInString(lower)
		switch {
		case part == 0, v.classes()[token] != wordToken, own < leastLetters, !onlyLetters(lower),
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

func capital(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(first)
}

func onlyLetters(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// gapPlace is a gap with what the model expects there.
type gapPlace struct {
	layout  *layout // with one slot
	span    [2]int  // byte range of the key in the text
	key     string
	held    held      // the key's tokens, and the question with as many slots
	tokens  []int     // that may stand there, ascending; this and the rest are known after look
	logp    []float32 // of each token, [vocabulary]
	keyLogP float64
}

// word returns a token as it would stand in the gap, with its capitals.
func (p *gapPlace) word(token int) string { return p.layout.with(0, token).Fills[0] }

// rivals returns the words that have more than half of the key's probability.
func (p *gapPlace) rivals() []string {
	words := []string{}
	for _, token := range samplers.Likeliest(p.tokens, p.logp, mostRivals+1) {
		word := p.word(token)
		if float64(p.logp[token]) > p.keyLogP-math.Ln2 && !strings.EqualFold(word, p.key) && len(words) < mostRivals {
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
		// A word that can be several parts of speech, or has another form, says
		// nothing.
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

// Schema implements option.Syntax.
func (Bits) Schema() option.Schema { return option.Schema{Kind: "string"} }

func (b Bits) holds(bits float64) bool { return b == (Bits{}) || bits >= b.Low && bits <= b.High }
