package tokenize

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filled is a template with its blanks filled.
type Filled struct {
	Text  string
	Fills []string // part of Text in each blank: without "##", with capitals as Fill says
	Spans [][2]int // byte range of each of Fills in Text
}

// Fill puts tokens into the slots, one id for each of Slots, and returns the
// text around them byte for byte as typed. A slot whose id is negative or missing
// is open: a blank with only open slots stays as typed, and in other blanks an
// open slot has the mask. An id outside the vocabulary gives [UNK].
//
// A "##" piece joins the text on its left. So does a token without a space of
// its own (Ġ, ▁) in other vocabularies. Fill then drops the white space before
// the blank, unless only white space is on the left. Otherwise the user's
// spacing stays. If the model reads white space before the blank as a token,
// it stays in any case, and a space of the first token comes behind it. Between
// neighbouring slots, Fill puts a space if the second token has its own; in
// WordPiece, if it is no "##" piece, unless Hugging Face's decoder or the script
// writes none there.
//
// With an uncased model, fills get capitals, unless KeepCase is set. If the
// user wrote a fill with capitals (Written), it keeps them. "i" becomes "I",
// unless the text has an "i" of its own. More rules apply if the template
// has a capital letter, or is whole sentences without capitals. A fill then
// is all capitals among words in capitals, and has capitals in titles, in
// names and at the start of a sentence, even of a quoted one. An original
// replaces the last rule.
func (tpl *Template) Fill(ids []int) Filled {
	missing := len(tpl.Slots) - len(ids)
	if missing > 0 {
		ids = slices.Concat(ids, slices.Repeat([]int{-1}, missing))
	}
	filled := Filled{Fills: make([]string, len(tpl.Blanks)), Spans: make([][2]int, len(tpl.Blanks))}
	var text strings.Builder
	text.Grow(len(tpl.Text) + 8*len(tpl.Slots))
	from := 0
	left := 0       // left is where the user's text before a blank starts
	var last string // last is the last token of the previous blank; "" if that is open
	typed := 0      // typed is where the text after the last open blank starts
	for i, blank := range tpl.Blanks {
		literal := tpl.own(from, blank.Start)
		from = blank.End
		tokens, open := tpl.tokens(blank, ids)
		if open {
			text.WriteString(literal)
			filled.Spans[i][0] = text.Len()
			text.WriteString(tpl.Text[blank.Start:blank.End])
			filled.Spans[i][1] = text.Len()
			filled.Fills[i] = tpl.Text[blank.Start:blank.End]
			left = from
			last = ""
			typed = text.Len()
			continue
		}
		joins := tpl.joins(blank, tokens[0])
		if joins {
			trimmed := strings.TrimRightFunc(literal, unicode.IsSpace)
			if trimmed != "" || i > 0 {
				literal = trimmed
			}
		}
		text.WriteString(literal)
		if literal == "" && last != "" && !joins && tpl.source.tokenizer.apart(last, tokens[0]) ||
			blank.spaceRead && !tpl.source.tokenizer.bound(tokens[0]) {
			text.WriteByte(' ')
		}
		before := text.String()
		if typed > 0 { // nothing typed in an open blank ends a sentence
			before = tpl.source.tokenizer.Token(tpl.source.tokenizer.mask) + before[typed:]
		}
		joined := tpl.source.tokenizer.join(tokens)
		fill := tpl.spell(i, ids, filling{fill: joined, text: before, joins: joins, from: left})
		left = from
		filled.Spans[i][0] = text.Len()
		text.WriteString(fill)
		filled.Spans[i][1] = text.Len()
		filled.Fills[i] = fill
		last = tokens[len(tokens)-1]
	}
	text.WriteString(tpl.own(from, len(tpl.Text)))
	filled.Text = text.String()
	return filled
}

// joins reports whether a fill that begins with token goes on with a word.
func (tpl *Template) joins(blank Blank, token string) bool {
	return !blank.spaceRead && tpl.source.tokenizer.bound(token)
}

// own returns the user's text without the backslashes that escapes drop.
func (tpl *Template) own(from, to int) string {
	var own strings.Builder
	for _, x := range within(tpl.escapes, from, to) {
		own.WriteString(tpl.Text[from:x.dropped])
		from = x.start
	}
	own.WriteString(tpl.Text[from:to])
	return own.String()
}

// tokens returns the tokens of a blank: the mask for an open slot, and [UNK] for an
// id outside the vocabulary. open reports whether all of its slots are open.
func (tpl *Template) tokens(blank Blank, ids []int) (tokens []string, open bool) {
	tokenizer := tpl.source.tokenizer
	tokens = make([]string, blank.Slots)
	open = true
	for i := range tokens {
		slot := blank.First + i
		if ids[slot] < 0 {
			tokens[i] = tokenizer.Token(tokenizer.mask)
			continue
		}
		open = false
		tokens[i] = cmp.Or(tokenizer.Token(ids[slot]), tokenizer.Token(tokenizer.unknown))
	}
	return tokens, open
}

// Spelled returns what tokens read in a blank, without capitals that the text gives.
func (t *Tokenizer) Spelled(ids []int) string {
	tokens := make([]string, len(ids))
	for i, id := range ids {
		tokens[i] = t.Token(id)
	}
	return t.join(tokens)
}

// join returns the text of the tokens of one blank.
func (t *Tokenizer) join(tokens []string) string {
	var text strings.Builder
	for i, token := range tokens {
		if i > 0 && t.apart(tokens[i-1], token) {
			text.WriteByte(' ')
		}
		read, _ := t.read(token)
		text.WriteString(read)
	}
	return strings.ToValidUTF8(text.String(), string(utf8.RuneError)) // byte-level tokens may cut a character
}

// filling is the fill of a blank without its capitals.
type filling struct {
	fill, text string // text is everything on the left of fill, earlier fills included
	joins      bool   // whether the fill continues a word on its left
	from       int    // where the user's text before the blank starts
}

// spell returns the fill of blank i with capitals, as [Template.Fill] says.
func (tpl *Template) spell(i int, ids []int, f filling) string {
	if tpl.KeepCase {
		return f.fill
	}
	blank := tpl.Blanks[i]
	written := ""
	if tpl.Written != nil {
		written = tpl.Written(i, ids[blank.First:blank.First+blank.Slots])
	}
	if strings.ContainsFunc(written, unicode.IsUpper) || tpl.source.tokenizer.Cased() {
		return cmp.Or(written, f.fill)
	}
	fill, named := cmp.Or(written, f.fill), cmp.Or(written, f.fill)
	if written == "" && !f.joins && !blank.TouchesRight {
		if fill == "i" && !tpl.source.smallI {
			fill = "I"
		}
		right, free := tpl.ahead(i, ids)
		named = withNames(f.text, fill, right, free)
	}
	original := ""
	cased := tpl.source.cased
	if i < len(tpl.Originals) {
		original = tpl.Originals[i]
		cased = cased || slices.ContainsFunc(tpl.Originals, hasCapital)
	}
	starts := !f.joins && StartsSentence(f.text)
	first, size := utf8.DecodeRuneInString(original)
	// I and A are written so among small letters and among capitals.
	open := original == "" || unicode.IsUpper(first) && size == len(original)
	switch {
	case !cased:
		return fill
	case inCapitals(original),
		open && (tpl.source.shouted || shouted(tpl.Text[f.from:blank.Start], tpl.after(i))):
		return strings.ToUpper(fill)
	case tpl.source.titled && !f.joins && (open || unicode.IsUpper(first)), original == "" && starts,
		unicode.IsUpper(first) && !f.joins && (starts || original != "I" && !StopWord(fill)):
		return capitalise(named)
	}
	return named
}

// after returns the user's text after a blank, up to the next blank.
func (tpl *Template) after(i int) string {
	if i+1 < len(tpl.Blanks) {
		return tpl.Text[tpl.Blanks[i].End:tpl.Blanks[i+1].Start]
	}
	return tpl.Text[tpl.Blanks[i].End:]
}

// ahead returns the text after blank i, in which a name may continue: the
// user's own or, if the next blank follows directly, that blank's fill without
// capitals. free reports whether this text may still get capitals.
func (tpl *Template) ahead(i int, ids []int) (text string, free bool) {
	text = tpl.after(i)
	i++
	if i == len(tpl.Blanks) || strings.Trim(text, " ") != "" {
		return text, false
	}
	tokens, open := tpl.tokens(tpl.Blanks[i], ids)
	if open {
		return "", false
	}
	if tpl.joins(tpl.Blanks[i], tokens[0]) {
		return tpl.source.tokenizer.join(tokens), false
	}
	return " " + tpl.source.tokenizer.join(tokens), true
}

// Sentences returns where sentences begin, in bytes, and the text's end. No
// abbreviation ends one, nor what a small letter follows.
func Sentences(text string) []int {
	// StartsSentence looks back over all signs that open, which would take the
	// square of a long row of them.
	const mostOpen = 8
	starts := []int{0}
	end := 0     // of the part before
	open := 0    // signs in a row before that open
	goes := true // whether an abbreviation is the part before
	for _, p := range Parts(text) {
		space := text[end:p.Start]
		letter, _ := utf8.DecodeRuneInString(text[p.Start:])
		inside := goes || space == "" || unicode.IsLower(letter) || open > mostOpen
		if strings.Contains(space, "\n") && end > 0 || !inside && StartsSentence(text[:p.Start]) {
			starts = append(starts, p.Start)
		}
		open++
		if p.Word || !opens(letter) {
			open = 0
		}
		end = p.End
		goes = p.Word && text[end-1] == '.'
	}
	return append(starts, len(text))
}

// StartsSentence reports whether a word after the text left starts a sentence.
func StartsSentence(left string) bool {
	before := strings.TrimRightFunc(left, func(r rune) bool { return unicode.IsSpace(r) || opens(r) })
	if before == "" {
		return true
	}
	if !strings.ContainsFunc(left[len(before):], unicode.IsSpace) {
		return false
	}
	said := strings.TrimRight(before, ",:")
	last, _ := utf8.DecodeLastRuneInString(said)
	quoted := strings.ContainsAny(left[len(before):], "\"“«„")
	if quoted && len(said) < len(before) && unicode.IsLetter(last) {
		return true
	}
	before = strings.TrimRightFunc(before, closes)
	end, size := utf8.DecodeLastRuneInString(before)
	switch end {
	case '!', '?', '。', '！', '？':
		return true
	case '.':
	default:
		return false
	}
	before = before[:len(before)-size]
	word := before[strings.LastIndexFunc(before, unicode.IsSpace)+1:]
	return !strings.Contains(word, ".") // false for ".." and "e.g."
}

// opens reports whether a character may stand between the end of a sentence and
// the first word of the next sentence.
func opens(r rune) bool {
	return unicode.In(r, unicode.Ps, unicode.Pi) || strings.ContainsRune("\"'`¿¡", r)
}

// closes reports whether a character may stand between a full stop and the
// white space after the full stop.
func closes(r rune) bool {
	return unicode.In(r, unicode.Pe, unicode.Pf) || r == '"' || r == '\''
}

func capitalise(fill string) string {
	first, size := utf8.DecodeRuneInString(fill)
	return string(unicode.ToTitle(first)) + fill[size:]
}
