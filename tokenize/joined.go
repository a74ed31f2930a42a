package tokenize

import (
	"errors"
	"slices"
	"strings"
)

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
// continue a word, the longest first. It returns an error if the vocabulary
// lacks such pieces, and the errors of [Tokenizer.Candidate].
func (t *Tokenizer) Continuation(text string) ([]int, error) {
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
			return nil, errors.New("the vocabulary has no pieces that continue a word with it")
		}
		joined = append(joined, pieces[word[:length]])
		word = word[length:]
	}
	return append(joined, ids[end:]...), nil
}

// Piece returns the text of a token, without the mark ## of a piece or the
// space before a word.
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
