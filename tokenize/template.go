package tokenize

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is the longest text, in bytes, that Template, Shortest, Plain and Candidate take. It is many times what the 512
// positions of a BERT model hold; the word that the WordPiece model is slowest on, a hundred letters of nonsense, repeated
// to that length takes it less than a second.
const MaxText = 32 << 10

// Template is a text with slots, made by [Tokenizer.Template], [Tokenizer.Shortest] or [Template.Expand]; callers must not change it.
//
// A blank is what the user typed, "[MASK]" or "[MASK:3]"; a slot is one token of it. Most blanks have one slot.
type Template struct {
	Text    string   // as typed
	IDs     []int    // [CLS], the tokens with [MASK] at every slot, [SEP]
	Offsets [][2]int // of each token, bytes of Text; {0, 0} for [CLS] and [SEP]
	Slots   []int    // positions of the slots in IDs, ascending
	Blanks  []Blank  // leftmost first
	Ties    [][]int  // sets of indices into Slots, ascending, that must hold the same token: the slots of blanks of one name

	*draft
}

// Blank is one blank of a template.
type Blank struct {
	Start, End int    // bytes of Template.Text, brackets included
	Name       string // of [MASK=name]; "" without one
	First      int    // index into Template.Slots of its first slot
	Slots      int    // how many slots it has
	// Low and High are the numbers of slots as typed: 1 and 3 of [MASK:1-3], 3 and 3 of [MASK:3], 0 and 0 of [MASK], which has one.
	Low, High int
	// TouchesLeft and TouchesRight: a letter or digit of the user stands directly beside it, as in "high[MASK]" and "[MASK]ing".
	TouchesLeft, TouchesRight bool
}

// Template reads a text with slots. The text must be valid UTF-8 and hold at least one slot and one other token, no control
// character but white space, and none of [CLS], [SEP] and [PAD]; else, and for a slot of unknown length, which
// [Tokenizer.Shortest] is for, the error is an [*InputError]. Whether the tokens fit the model's positions is the caller's to check.
//
// The ids are those of [Tokenizer.Encode] for [MASK]; a text directly beside a slot is cut into tokens by itself: "[MASK]ing"
// is [MASK] and "ing", not "##ing".
func (t *Tokenizer) Template(text string) (*Template, error) {
	template, err := t.Shortest(text)
	if err != nil {
		return nil, err
	}
	for _, b := range template.Blanks {
		if b.Low != b.High {
			return nil, &InputError{Fault: ErrSlotLength, Offset: b.Start,
				Detail: fmt.Sprintf("%s stands for several lengths; name one, as in [MASK:%d]", text[b.Start:b.End], b.Low)}
		}
	}
	return template, nil
}

// Shortest reads a text whose blanks may have several lengths, "[MASK:1-3]", and gives each its smallest.
func (t *Tokenizer) Shortest(text string) (*Template, error) {
	draft, err := t.draft(text)
	if err != nil {
		return nil, err
	}
	lengths := make([]int, len(draft.slots))
	for i, slot := range draft.slots {
		lengths[i] = slot.minimum
	}
	return draft.template(lengths), nil
}

// Expand returns the same text once for each combination of lengths, shortest first, the last blank's length changing fastest.
// lengths holds the fewest and the most slots of each blank [blanks]; nil takes those that were typed. Blanks of one name have
// one length, that of the first. More than 64 combinations give an [*InputError].
func (tpl *Template) Expand(lengths [][2]int) ([]*Template, error) {
	if lengths == nil {
		for _, slot := range tpl.slots {
			lengths = append(lengths, [2]int{slot.minimum, slot.maximum})
		}
	}
	// first[i] is the blank that decides the length of blank i: itself, or the first of its name.
	first := make([]int, len(lengths))
	combinations := 1
	for i, b := range tpl.Blanks {
		first[i] = i
		if b.Name != "" {
			first[i] = slices.IndexFunc(tpl.Blanks, func(other Blank) bool { return other.Name == b.Name })
		}
		if first[i] == i {
			combinations *= lengths[i][1] - lengths[i][0] + 1
		}
		if combinations > maxAlternatives {
			return nil, &InputError{Fault: errTooManyLengths, Offset: b.Start, Detail: fmt.Sprintf("more than %d; narrow a slot", maxAlternatives)}
		}
	}
	chosen := make([]int, len(lengths))
	for i := range chosen {
		chosen[i] = lengths[first[i]][0]
	}
	templates := make([]*Template, 0, combinations)
	for {
		templates = append(templates, tpl.template(chosen))
		// Count up, the last deciding blank being the lowest digit.
		digit := len(chosen) - 1
		for ; digit >= 0; digit-- {
			if first[digit] != digit {
				continue
			}
			if chosen[digit]++; chosen[digit] <= lengths[digit][1] {
				break
			}
			chosen[digit] = lengths[digit][0]
		}
		if digit < 0 {
			return templates, nil
		}
		for i := range chosen {
			chosen[i] = chosen[first[i]]
		}
	}
}

// draft is a template whose blanks have no lengths yet.
type draft struct {
	tokenizer *Tokenizer
	text      string
	slots     []notation
	cased     bool      // the user's own text holds a capital
	encoding  *Encoding // with one [MASK] per blank
	masks     []int     // its place in the encoding
}

// draft checks a template, finds its slots and cuts the text around them into tokens.
func (t *Tokenizer) draft(text string) (*draft, error) {
	if err := t.checkText(text); err != nil {
		return nil, err
	}
	slots, err := findSlots(text)
	if err != nil {
		return nil, err
	}
	if len(slots) == 0 {
		detail := "write [MASK] where a word is wanted"
		if hint := slotHint(text); hint != "" {
			detail = hint + "; " + detail
		}
		return nil, &InputError{Fault: errNoSlot, Offset: -1, Detail: detail}
	}
	if err := checkNames(text, slots); err != nil {
		return nil, err
	}
	d := &draft{tokenizer: t, text: text, slots: slots, masks: make([]int, len(slots))}
	e := t.newEncoder(text)
	from, words := 0, false // words: more than white space beside the slots
	for i, slot := range slots {
		words = words || strings.TrimSpace(text[from:slot.start]) != ""
		end := slot.start
		if t.maskStripsLeft {
			end = from + len(strings.TrimRightFunc(text[from:end], unicode.IsSpace))
		}
		if err := e.addPlain(from, end); err != nil {
			return nil, err
		}
		d.cased = d.cased || t.capital(text[from:slot.start])
		d.masks[i] = len(e.encoding.IDs)
		e.addWord(t.mask, slot.start, slot.end)
		from = slot.end
	}
	words = words || strings.TrimSpace(text[from:]) != ""
	if err := e.addPlain(from, len(text)); err != nil {
		return nil, err
	}
	d.cased = d.cased || t.capital(text[from:])
	d.encoding = e.finish()
	if len(d.encoding.IDs) == len(slots)+2 || !words {
		return nil, &InputError{Fault: errOnlySlots, Offset: -1, Detail: "add at least one word around them"}
	}
	return d, nil
}

// checkNames refuses slots of one name and different lengths: they could not take the same fill.
func checkNames(text string, slots []notation) error {
	first := map[string]notation{}
	for _, slot := range slots {
		if slot.name == "" {
			continue
		}
		other, seen := first[slot.name]
		if !seen {
			first[slot.name] = slot
		} else if other.minimum != slot.minimum || other.maximum != slot.maximum {
			return &InputError{Fault: errSlotSyntax, Offset: slot.start,
				Detail: fmt.Sprintf("%s has another length than %s at byte offset %d; slots of one name need the same", text[slot.start:slot.end], text[other.start:other.end], other.start)}
		}
	}
	return nil
}

// checkText refuses what no text for a model may hold.
func (t *Tokenizer) checkText(text string) error {
	if len(text) > MaxText {
		return &InputError{Fault: ErrTooLong, Offset: -1, Detail: fmt.Sprintf("%d bytes, at most %d are taken; give one sentence or paragraph at a time", len(text), MaxText)}
	}
	blank := true
	for at, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[at:]); size == 1 {
				return &InputError{Fault: errInvalidUTF8, Offset: at, Detail: fmt.Sprintf("byte 0x%02x; convert the text to UTF-8", text[at])}
			}
		}
		switch {
		case r == '\t' || r == '\n' || r == '\r':
		case unicode.IsControl(r):
			return &InputError{Fault: errControl, Offset: at, Detail: fmt.Sprintf("%U; take it out", r)}
		case !unicode.IsSpace(r):
			blank = false
		}
	}
	if blank {
		return &InputError{Fault: ErrEmpty, Offset: -1, Detail: "the text is empty or only white space"}
	}
	return t.refuseSpecial(text)
}

// template gives each blank its number of slots; the text is not cut again.
func (d *draft) template(lengths []int) *Template {
	template := &Template{Text: d.text, Blanks: make([]Blank, len(d.slots)), draft: d}
	named := map[string][]int{} // the blanks of a name
	from := 0
	for i, slot := range d.slots {
		mask := d.masks[i]
		template.IDs = append(template.IDs, d.encoding.IDs[from:mask]...)
		template.Offsets = append(template.Offsets, d.encoding.Offsets[from:mask]...)
		before, _ := utf8.DecodeLastRuneInString(d.text[:slot.start])
		after, _ := utf8.DecodeRuneInString(d.text[slot.end:])
		template.Blanks[i] = Blank{
			Start: slot.start, End: slot.end, Name: slot.name,
			First: len(template.Slots), Slots: lengths[i], Low: slot.low, High: slot.high,
			TouchesLeft: wordRune(before), TouchesRight: wordRune(after),
		}
		for range lengths[i] {
			template.Slots = append(template.Slots, len(template.IDs))
			template.IDs = append(template.IDs, d.encoding.IDs[mask])
			template.Offsets = append(template.Offsets, d.encoding.Offsets[mask])
		}
		if slot.name != "" {
			named[slot.name] = append(named[slot.name], i)
		}
		from = mask + 1
	}
	template.IDs = append(template.IDs, d.encoding.IDs[from:]...)
	template.Offsets = append(template.Offsets, d.encoding.Offsets[from:]...)
	for _, slot := range d.slots {
		blanks := named[slot.name]
		delete(named, slot.name) // once per name, in the order of the text
		if len(blanks) < 2 {
			continue
		}
		for piece := range template.Blanks[blanks[0]].Slots {
			tie := make([]int, len(blanks))
			for k, blank := range blanks {
				tie[k] = template.Blanks[blank].First + piece
			}
			template.Ties = append(template.Ties, tie)
		}
	}
	return template
}

// capital reports whether the user's own text holds an upper-case or title-case letter; those of [UNK] are not the user's.
func (t *Tokenizer) capital(text string) bool {
	return strings.ContainsFunc(strings.ReplaceAll(text, t.vocabulary[t.unknown], ""), func(r rune) bool {
		return unicode.IsUpper(r) || unicode.IsTitle(r)
	})
}

// wordRune reports whether a character beside a slot makes one word with it.
func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Plain reads a whole text for scoring, with the words its tokens form ([Encoding.Words]). The text is held to the rules of
// [Tokenizer.Template], except that it must have a token and may have no slot; else the error is an [*InputError].
func (t *Tokenizer) Plain(text string) (*Encoding, error) {
	if err := t.checkText(text); err != nil {
		return nil, err
	}
	slots, err := findSlots(text)
	if err != nil {
		return nil, err
	}
	if len(slots) > 0 {
		return nil, &InputError{Fault: ErrUnwantedSlot, Offset: slots[0].start,
			Detail: fmt.Sprintf("%s; write the word that stands there", text[slots[0].start:slots[0].end])}
	}
	e := t.newEncoder(text)
	if err := e.addPlain(0, len(text)); err != nil {
		return nil, err
	}
	encoding := e.finish()
	if len(encoding.IDs) == 2 {
		return nil, &InputError{Fault: ErrEmpty, Offset: -1, Detail: "the text holds only characters that the model never sees"}
	}
	return encoding, nil
}

// Candidate returns the tokens of one candidate for a blank, "red" or "dark blue", without [CLS] and [SEP]; a "##" piece of
// the vocabulary is taken as it stands. Where tokens hold the blank before a word, as in RoBERTa, a candidate gets one: it is
// read as standing inside a text. A text that [Tokenizer.Plain] refuses, or with a word outside the vocabulary, gives an
// [*InputError].
func (t *Tokenizer) Candidate(text string) ([]int, error) {
	if id, ok := t.ids[text]; ok && continues(text) {
		return []int{id}, nil
	}
	if p, ok := t.scheme.(*pipeline); ok && p.byteLevel {
		if err := t.checkText(text); err != nil {
			return nil, err
		}
		text = " " + strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	encoding, err := t.Plain(text)
	if err != nil {
		return nil, err
	}
	ids := encoding.IDs[1 : len(encoding.IDs)-1]
	if at := slices.Index(ids, t.unknown); at >= 0 {
		offset := encoding.Offsets[at+1]
		return nil, &InputError{Fault: errUnknownWord, Offset: offset[0],
			Detail: fmt.Sprintf("the model has no token for %s; name another word", excerpt(text[offset[0]:offset[1]]))}
	}
	return ids, nil
}
