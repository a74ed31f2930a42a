package tokenize

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is the longest text, in bytes, that Template, Shortest, Plain and
// Candidate take: about a book, which a model reads in windows. Tokenising
// takes time in proportion, and memory of about a hundred times the text.
const MaxText = 1 << 20

// Template is a text with blanks. [Tokenizer.Template], [Tokenizer.Shortest]
// and [Template.Expand] make it. Callers must not change it.
//
// A blank is "[MASK]" or "[MASK:3]" as the user typed it. A slot is its place
// for one token. Most blanks have one slot.
type Template struct {
	Text    string   // as typed
	IDs     []int    // [CLS], the tokens with [MASK] in every slot, [SEP]
	Offsets [][2]int // byte range in Text of each token; {0, 0} for [CLS] and [SEP]
	Slots   []int    // positions of the slots in IDs, ascending
	Blanks  []Blank  // leftmost first
	// Groups holds indices into Blanks, ascending: those of each name, which hold
	// the same, and each other blank by itself.
	Groups [][]int

	Spelling
	escapes []escape
	source  *draft
}

// Spelling says how Template.Fill writes fills.
type Spelling struct {
	// KeepCase keeps the letters of the model's tokens as they are.
	KeepCase bool
	// Written, if not nil, returns a listed word, given as ids, as the user
	// wrote it; "" if ids are not a listed word.
	Written func(blank int, ids []int) string
	// Originals are the words that the blanks replaced, if known, [blanks].
	Originals []string
}

// Blank is one blank of a template.
type Blank struct {
	Start, End int    // byte range in Template.Text, brackets included
	Name       string // the name in [MASK=name]; "" if there is none
	Pattern    string // the regular expression in [MASK~st..d]; "" if there is none
	First      int    // index of the first slot in Template.Slots
	Slots      int    // number of slots
	// Low and High are the numbers of slots as typed: 1 and 3 for [MASK:1-3], 3
	// and 3 for [MASK:3]. For [MASK], which has one slot, both are 0.
	Low, High int
	// TouchesLeft and TouchesRight report whether a letter or digit stands
	// directly beside the blank, as in "high[MASK]" and "[MASK]ing".
	TouchesLeft, TouchesRight bool
	// Opens reports whether a token without a space of its own (Ġ, ▁) may begin a
	// word here, as after a bracket; never for WordPiece.
	Opens bool
	// spaceRead reports whether the white space before the blank is a token
	// that the model reads.
	spaceRead bool
}

// Template reads a text with blanks. The text must be valid UTF-8, with at
// least one blank and one other token. It must not hold control characters
// except white space, or [CLS], [SEP] and [PAD]. Otherwise the error is
// an *InputError. A blank of several lengths is an error too (see
// Tokenizer.Shortest). The caller checks whether the tokens fit the
// model's positions.
//
// The ids are those of Tokenizer.Encode for [MASK], except that tokens over
// characters take the white space before a blank. Text directly beside a blank
// is tokenised by itself: "[MASK]ing" is [MASK] and "ing", not "##ing".
func (t *Tokenizer) Template(text string) (*Template, error) {
	template, err := t.Shortest(text, "")
	if err != nil {
		return nil, err
	}
	for _, b := range template.Blanks {
		if b.Low != b.High {
			return nil, inputFault(ErrBlankLength, b.Start, "%s stands for several lengths; name one, as in [MASK:%d]",
				text[b.Start:b.End], b.Low)
		}
	}
	return template, nil
}

// Shortest reads a text whose blanks may have several lengths,
// "[MASK:1-3]", and gives each blank its shortest length. further is
// another spelling of a blank, beside [MASK], ___, <mask> and the model's
// own mask; "" adds no spelling.
func (t *Tokenizer) Shortest(text, further string) (*Template, error) {
	draft, err := t.draft(text, further)
	if err != nil {
		return nil, err
	}
	lengths := make([]int, len(draft.blanks))
	for i, blank := range draft.blanks {
		lengths[i] = blank.minimum
	}
	return draft.template(lengths), nil
}

// Expand returns a template for each combination of lengths, the shortest
// first. The last blank's length changes fastest. lengths holds the numbers of
// slots that each blank may have, ascending, [blanks][numbers]; nil means as
// typed. Blanks of one name have the length of the first. More than 64
// combinations are an *InputError.
func (tpl *Template) Expand(lengths [][]int) ([]*Template, error) {
	if lengths == nil {
		for _, blank := range tpl.source.blanks {
			var all []int
			for n := blank.minimum; n <= blank.maximum; n++ {
				all = append(all, n)
			}
			lengths = append(lengths, all)
		}
	}
	chosen := [][]int{make([]int, len(tpl.Blanks))}
	for _, group := range tpl.Groups {
		first := group[0] // it decides the length of all
		var longer [][]int
		for _, c := range chosen {
			for _, n := range lengths[first] {
				own := slices.Clone(c)
				for _, blank := range group {
					own[blank] = n
				}
				longer = append(longer, own)
			}
		}
		chosen = longer
		if len(chosen) > maxAlternatives {
			return nil, inputFault(errTooManyLengths, tpl.Blanks[first].Start, "more than %d; narrow a blank",
				maxAlternatives)
		}
	}
	var templates []*Template
	for _, c := range chosen {
		templates = append(templates, tpl.source.template(c))
	}
	return templates, nil
}

// Context returns the tokens of a text that the model reads before another
// text, with the separator after it. Models whose separator is </s> get two
// separators. Errors are those of Tokenizer.Plain.
func (t *Tokenizer) Context(text string) ([]int, error) {
	encoding, err := t.Plain(text)
	if err != nil {
		return nil, err
	}
	ids := encoding.IDs[1:]
	if t.vocabulary[t.separator] == "</s>" {
		ids = append(ids, t.separator)
	}
	return ids, nil
}

// draft is a template whose blanks have no lengths yet.
type draft struct {
	tokenizer *Tokenizer
	text      string
	blanks    []notation
	groups    [][]int // see [Template.Groups]
	escapes   []escape
	cased     bool      // whether fills get capitals, see [Template.Fill]
	shouted   bool      // whether the user's own words are all in capitals
	titled    bool      // whether all words begin with a capital, as in The Lord Of The Rings
	smallI    bool      // whether the text has the word "i"
	encoding  *Encoding // the text with one [MASK] per blank
	masks     []int     // index in encoding of each blank
}

// draft checks a template, finds its blanks, and tokenises the text around them.
func (t *Tokenizer) draft(text, further string) (*draft, error) {
	if err := CheckText(text); err != nil {
		return nil, err
	}
	spelling := spelled(t.vocabulary[t.mask], further)
	spelling.special = t.forbidden
	blanks, escapes, err := spelling.findBlanks(text)
	if err != nil {
		return nil, err
	}
	if err := t.refuseSpecial(ownText(text, blanks, escapes)); err != nil {
		return nil, err
	}
	if len(blanks) == 0 {
		meant, at := MeantBlank(text)
		if len(BlankSpans(meant, further)) > 0 { // a backslash makes it text
			meant = ""
		}
		return nil, noBlank(meant, at, "[MASK] or ___")
	}
	groups, err := grouped(text, blanks)
	if err != nil {
		return nil, err
	}
	d := &draft{tokenizer: t, text: text, blanks: blanks, groups: groups, escapes: escapes,
		masks: make([]int, len(blanks))}
	e := t.newEncoder(text)
	from := 0
	words := false // words is whether the text is more than blanks and white space
	for i, blank := range blanks {
		words = words || strings.TrimSpace(text[from:blank.start]) != ""
		end := blank.start
		if t.maskStripsLeft {
			end = from + len(strings.TrimRightFunc(text[from:end], unicode.IsSpace))
		}
		e.addOwn(from, end, escapes)
		d.hear(text[from:blank.start])
		d.masks[i] = len(e.encoding.IDs)
		e.addWord(t.mask, blank.start, blank.end)
		from = blank.end
	}
	words = words || strings.TrimSpace(text[from:]) != ""
	e.addOwn(from, len(text), escapes)
	d.hear(text[from:])
	d.cased = d.cased || opensSentences(text, blanks[0].start)
	d.shouted, d.titled = heading(strings.FieldsFunc(ownText(text, blanks, escapes), notLetter))
	d.encoding, err = e.finish()
	if err != nil {
		return nil, err
	}
	if len(d.encoding.IDs) == len(blanks)+2 || !words {
		return nil, inputFault(ErrOnlyBlanks, -1, "add at least one word around them")
	}
	return d, nil
}

// grouped puts blanks of one name together, see [Template.Groups]. With different
// lengths they cannot take the same fill: an error.
func grouped(text string, blanks []notation) (groups [][]int, err error) {
	named := map[string]int{} // the group of each name
	for i, blank := range blanks {
		at, seen := named[blank.name]
		if !seen {
			if blank.name != "" {
				named[blank.name] = len(groups)
			}
			groups = append(groups, []int{i})
			continue
		}
		other := blanks[groups[at][0]]
		if other.minimum != blank.minimum || other.maximum != blank.maximum {
			return nil, inputFault(errBlankSyntax, blank.start,
				"%s has another length than %s at byte offset %d; blanks of one name need the same",
				text[blank.start:blank.end], text[other.start:other.end], other.start)
		}
		groups[at] = append(groups[at], i)
	}
	return groups, nil
}

// ownText returns a text with spaces instead of its blanks and of the blanks
// that a backslash turns into text.
func ownText(text string, blanks []notation, escapes []escape) string {
	own := []byte(text)
	for _, blank := range blanks {
		copy(own[blank.start:blank.end], strings.Repeat(" ", blank.end-blank.start))
	}
	for _, x := range escapes {
		copy(own[x.start:x.end], strings.Repeat(" ", x.end-x.start))
	}
	return string(own)
}

// CheckText returns an error for a text that is too long, empty or not UTF-8,
// or that has control characters.
func CheckText(text string) error {
	if len(text) > MaxText {
		return inputFault(ErrTooLong, -1, "%d bytes, at most %d are taken; give one chapter at a time",
			len(text), MaxText)
	}
	blank := true
	for at, r := range text {
		if r == utf8.RuneError {
			_, size := utf8.DecodeRuneInString(text[at:])
			if size == 1 {
				return inputFault(errInvalidUTF8, at, "byte 0x%02x; convert the text to UTF-8", text[at])
			}
		}
		switch {
		case r == '\t' || r == '\n' || r == '\r':
		case r == 0:
			return inputFault(errControl, at, "%U, as text in UTF-16 has; save it as UTF-8", r)
		case unicode.IsControl(r):
			return inputFault(errControl, at, "%U; take it out", r)
		case !unicode.IsSpace(r):
			blank = false
		}
	}
	if blank {
		return inputFault(ErrEmpty, -1, "the text is empty or only white space")
	}
	return nil
}

// template gives each blank its number of slots, without tokenising the text again.
func (d *draft) template(lengths []int) *Template {
	template := &Template{Text: d.text, Blanks: make([]Blank, len(d.blanks)), Groups: d.groups, escapes: d.escapes,
		source: d}
	from := 0
	for i, blank := range d.blanks {
		mask := d.masks[i]
		template.IDs = append(template.IDs, d.encoding.IDs[from:mask]...)
		template.Offsets = append(template.Offsets, d.encoding.Offsets[from:mask]...)
		left := strings.TrimRightFunc(d.text[:blank.start], unicode.IsMark) // accents belong to the letter before
		before, _ := utf8.DecodeLastRuneInString(left)
		after, _ := utf8.DecodeRuneInString(d.text[blank.end:])
		beside := unspacedBeside(d.text[:blank.start], d.text[blank.end:])
		spaced := d.spaceRead(i)
		template.Blanks[i] = Blank{
			Start: blank.start, End: blank.end, Name: blank.name, Pattern: blank.pattern,
			First: len(template.Slots), Slots: lengths[i], Low: blank.low, High: blank.high,
			TouchesLeft: d.tokenizer.touches(before), TouchesRight: d.tokenizer.touches(after),
			Opens: spaced || d.tokenizer.opens(d.text[:blank.start], before, beside), spaceRead: spaced,
		}
		for range lengths[i] {
			template.Slots = append(template.Slots, len(template.IDs))
			template.IDs = append(template.IDs, d.encoding.IDs[mask])
			template.Offsets = append(template.Offsets, d.encoding.Offsets[mask])
		}
		from = mask + 1
	}
	template.IDs = append(template.IDs, d.encoding.IDs[from:]...)
	template.Offsets = append(template.Offsets, d.encoding.Offsets[from:]...)
	return template
}

// spaceRead reports whether the white space before the blank is a token.
func (d *draft) spaceRead(i int) bool {
	start := d.blanks[i].start
	before, _ := utf8.DecodeLastRuneInString(d.text[:start])
	return unicode.IsSpace(before) && d.encoding.Offsets[d.masks[i]-1][1] == start
}

// Beside returns the letters, with marks, directly before and behind a blank.
func (tpl *Template) Beside(b Blank) (left, right string) {
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }
	left = tpl.Text[len(strings.TrimRightFunc(tpl.Text[:b.Start], letter)):b.Start]
	right = tpl.Text[b.End : len(tpl.Text)-len(strings.TrimLeftFunc(tpl.Text[b.End:], letter))]
	return left, right
}

// hear notes capitals and the word "i" in the user's own text. The capitals of
// [UNK] are not the user's.
func (d *draft) hear(text string) {
	text = strings.ReplaceAll(text, d.tokenizer.vocabulary[d.tokenizer.unknown], "")
	d.cased = d.cased || hasCapital(text)
	d.smallI = d.smallI || slices.Contains(strings.FieldsFunc(text, notLetter), "i")
}

// opens reports whether a token without a space of its own may begin a word
// after the text left. before is the last character of left. beside reports
// whether the script beside the blank writes no spaces.
func (t *Tokenizer) opens(left string, before rune, beside bool) bool {
	switch {
	case t.alphabet == alphabetPieces || wordRune(before) && !unspaced(before):
		return false
	case beside:
		return true
	case left == "":
		return t.bare()
	}
	return !unicode.IsSpace(before)
}

// touches reports whether a character makes one word with a blank beside it.
func (t *Tokenizer) touches(r rune) bool { return wordRune(r) && !unspaced(r) }

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Plain reads a whole text for scoring, and the words of its tokens
// ([Encoding.Words]). The rules for the text are those of [Tokenizer.Template],
// except that it needs only one token and may have no blank. If the text breaks
// a rule, the error is an [*InputError].
func (t *Tokenizer) Plain(text string) (*Encoding, error) {
	if err := CheckText(text); err != nil {
		return nil, err
	}
	// Lines of underscores are text here.
	blanks, escapes, err := spelling{special: t.forbidden}.findBlanks(text)
	if err != nil {
		return nil, err
	}
	if err := t.refuseSpecial(ownText(text, nil, escapes)); err != nil {
		return nil, err
	}
	if len(blanks) > 0 {
		return nil, inputFault(ErrUnwantedBlank, blanks[0].start, "%s; write the word that stands there",
			text[blanks[0].start:blanks[0].end])
	}
	e := t.newEncoder(text)
	e.addOwn(0, len(text), escapes)
	encoding, err := e.finish()
	if err != nil {
		return nil, err
	}
	if len(encoding.IDs) == 2 {
		return nil, inputFault(ErrEmpty, -1, "the text holds only characters that the model never sees")
	}
	return encoding, nil
}

// Candidate returns the tokens of a fill for a blank, "red" or "dark blue",
// without [CLS] and [SEP]. The text may also be a "##" piece of the vocabulary.
// If tokens hold the space before a word, as in RoBERTa, the first token gets a
// space, unless its script writes no spaces. A text that Tokenizer.Plain
// refuses, or an unknown word, gives an *InputError.
func (t *Tokenizer) Candidate(text string) ([]int, error) {
	id, ok := t.ids[text]
	if ok && continues(text) {
		return []int{id}, nil
	}
	if t.bare() {
		if err := CheckText(text); err != nil {
			return nil, err
		}
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		first, _ := utf8.DecodeRuneInString(text)
		if !unspaced(first) {
			text = " " + text
		}
	}
	encoding, err := t.Plain(text)
	if err != nil {
		return nil, err
	}
	ids := encoding.IDs[1 : len(encoding.IDs)-1]
	at := slices.Index(ids, t.unknown)
	if at >= 0 {
		offset := encoding.Offsets[at+1]
		return nil, inputFault(errUnknownWord, offset[0], "the model has no token for %q; name another word",
			text[offset[0]:offset[1]])
	}
	return ids, nil
}

// Joined returns a template in which text directly after a blank, as in
// "[MASK]ing", continues the word in the blank: the model reads ##ing. In other
// templates, such text is a word of its own, and it stays one if the vocabulary
// has no pieces for it. Only IDs, Offsets and Slots change.
func (tpl *Template) Joined() *Template {
	joined := *tpl
	for _, b := range tpl.Blanks {
		if b.TouchesRight {
			joined.joinText(b)
		}
	}
	return &joined
}

// joinText reads the word after a blank as pieces that continue the blank.
func (tpl *Template) joinText(b Blank) {
	tokenizer := tpl.source.tokenizer
	from := tpl.Slots[b.First+b.Slots-1] + 1
	to := from + 1
	for tokenizer.Continues(tpl.IDs[to]) {
		to++
	}
	word := ""
	for _, id := range tpl.IDs[from:to] {
		word += tokenizer.Piece(id)
	}
	ids, err := tokenizer.Continuation(word)
	if err != nil {
		return
	}
	offsets := slices.Repeat([][2]int{{tpl.Offsets[from][0], tpl.Offsets[to-1][1]}}, len(ids))
	tpl.IDs = slices.Concat(tpl.IDs[:from], ids, tpl.IDs[to:])
	tpl.Offsets = slices.Concat(tpl.Offsets[:from], offsets, tpl.Offsets[to:])
	tpl.Slots = slices.Clone(tpl.Slots)
	for i := b.First + b.Slots; i < len(tpl.Slots); i++ {
		tpl.Slots[i] += len(ids) - (to - from)
	}
}

// Continuation returns the tokens of a fill that continues the word on its
// left, as in "high[MASK]". It cuts the first word of the text into pieces that
// continue a word, the longest first. A sign goes on with no word: it is its own
// token, as in "warm[MASK]" for "warm.". It returns an error if the vocabulary
// lacks such pieces, and the errors of [Tokenizer.Candidate].
func (t *Tokenizer) Continuation(text string) ([]int, error) {
	first, _ := utf8.DecodeRuneInString(text)
	if t.alphabet == alphabetPieces && !t.touches(first) {
		return t.Candidate(text)
	}
	pieces := t.continuing()
	id, ok := pieces[text]
	if ok {
		return []int{id}, nil
	}
	ids, err := t.Candidate(text)
	if err != nil || t.Continues(ids[0]) {
		return ids, err
	}
	word := t.Piece(ids[0])
	end := 1
	for ; end < len(ids) && t.Continues(ids[end]); end++ {
		word += t.Piece(ids[end])
	}
	var joined []int
	for word != "" {
		length := len(word)
		for length > 0 && pieces[word[:length]] == 0 {
			length--
		}
		if length == 0 {
			return nil, errors.New("the vocabulary has no tokens that continue a word with it")
		}
		joined = append(joined, pieces[word[:length]])
		word = word[length:]
	}
	return append(joined, ids[end:]...), nil
}

// Piece returns a token's text, without ## or the space before a word.
func (t *Tokenizer) Piece(id int) string {
	text := strings.TrimSpace(t.Decode([]int{id}))
	if t.Continues(id) {
		return strings.TrimPrefix(text, "##")
	}
	return text
}

// continuing returns the tokens that continue a word, by their text.
func (t *Tokenizer) continuing() map[string]int {
	t.joins.once.Do(func() {
		t.joins.pieces = map[string]int{}
		for _, id := range t.Fillable() {
			if t.Continues(id) {
				t.joins.pieces[t.Piece(id)] = id
			}
		}
	})
	return t.joins.pieces
}

// Window chooses the tokens that a model reads of a text, from position from to
// position to, without [CLS] and [SEP]. offsets are those of the text's tokens, and
// room is the largest number of tokens. Of a longer text the model reads those around
// the slots, about as many on the left as on the right. The window starts at the
// beginning of a word if one is near. ok is false if the slots have no room.
func Window(offsets [][2]int, slots []int, room int) (from, to int, ok bool) {
	last := len(offsets) - 2 // the last token before [SEP]
	if last <= room {
		return 1, last, true
	}
	first := slots[0]
	end := slots[len(slots)-1]
	spare := room - (end - first + 1)
	if spare < 0 {
		return 0, 0, false
	}
	left := min(first-1, spare/2)
	right := min(last-end, spare-left)
	left = min(first-1, spare-right)
	from = first - left
	for p := from; p <= first-left/2; p++ {
		if p == 1 || offsets[p-1][1] < offsets[p][0] { // white space stands before it
			return p, end + right, true
		}
	}
	return from, end + right, true
}

// Apart returns the error of a template whose blanks are further apart than room
// tokens. It lists the first groups of blanks that fit together.
func (tpl *Template) Apart(room int) error {
	var groups []string
	start := 0
	for i := range tpl.Blanks {
		if i+1 < len(tpl.Blanks) && tpl.span(start, i+1) <= room {
			continue
		}
		group := fmt.Sprint(start + 1)
		if i > start {
			group = fmt.Sprintf("%d to %d", start+1, i+1)
		}
		groups = append(groups, group)
		start = i + 1
	}
	const most = 8
	if len(groups) > most {
		groups = append(groups[:most], fmt.Sprintf("%d more groups", len(groups)-most))
	}
	return inputFault(ErrTooLong, -1, "the model sees %d tokens at once, and the blanks are further apart; "+
		"these fit together: %s; give each group its part of the text", room, strings.Join(groups, ", then "))
}

// span returns the number of tokens from one blank's start to another's end.
func (tpl *Template) span(first, last int) int {
	b := tpl.Blanks[last]
	return tpl.Slots[b.First+b.Slots-1] - tpl.Slots[tpl.Blanks[first].First] + 1
}
