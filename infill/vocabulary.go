package infill

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"infill/tokenize"
)

// vocabulary is a tokenizer with the properties of its tokens that rules and layouts need.
type vocabulary struct {
	tokenizer *tokenize.Tokenizer
	fillable  []int
	classes   func() []tokenClass // class of each token, [vocabulary]
	reads     func() []string     // text of each word or piece, else "", [vocabulary]
	lower     func() []string     // the same in lower case
	kinds     sync.Map            // cache of rules.kinds
	lists     sync.Map            // cache of vocabulary.list
}

func newVocabulary(tokenizer *tokenize.Tokenizer) *vocabulary {
	v := &vocabulary{tokenizer: tokenizer, fillable: tokenizer.Fillable()}
	v.classes = sync.OnceValue(func() []tokenClass { return classify(tokenizer) })
	v.reads = sync.OnceValue(v.readTokens)
	v.lower = sync.OnceValue(func() []string {
		texts := slices.Clone(v.reads())
		for i, text := range texts {
			texts[i] = strings.ToLower(text)
		}
		return texts
	})
	return v
}

// A tokenClass says whether a token is a word, and whether it continues a word.
type tokenClass uint8

const (
	wordToken       tokenClass = 1 << iota // only letters and digits
	continuingToken                        // continues the word on its left
)

func classify(t *tokenize.Tokenizer) []tokenClass {
	classes := make([]tokenClass, t.VocabularySize())
	for id := range classes {
		if t.Word(id) {
			classes[id] |= wordToken
		}
		if t.Continues(id) {
			classes[id] |= continuingToken
		}
	}
	return classes
}

// readTokens returns the text of each token that is a word or a piece of one, and "" for other tokens, [vocabulary].
func (v *vocabulary) readTokens() []string {
	reads := make([]string, v.tokenizer.VocabularySize())
	for _, id := range v.fillable {
		if v.classes()[id]&wordToken != 0 {
			reads[id] = v.pieceText(id)
		}
	}
	return reads
}

// pieceText returns the text of a token, without the mark ## of a piece or the space before a word.
func (v *vocabulary) pieceText(id int) string {
	text := strings.TrimSpace(v.tokenizer.Decode([]int{id}))
	if v.tokenizer.Continues(id) {
		return strings.TrimPrefix(text, "##")
	}
	return text
}

// continuations returns the tokens that continue a word, by their text.
func (v *vocabulary) continuations() map[string]int {
	tokens := map[string]int{}
	for _, id := range v.fillable {
		if v.tokenizer.Continues(id) {
			tokens[v.pieceText(id)] = id
		}
	}
	return tokens
}

// candidate reads text as a fill of b. If b touches a word, candidate cuts text's first word into pieces that continue
// that word, the longest first, as WordPiece does. continuing is continuations(), or nil for other blanks.
func (v *vocabulary) candidate(text string, b tokenize.Blank, continuing map[string]int) ([]int, error) {
	if id, ok := continuing[text]; ok && b.TouchesLeft {
		return []int{id}, nil
	}
	ids, err := v.tokenizer.Candidate(text)
	if err != nil || !b.TouchesLeft || v.tokenizer.Continues(ids[0]) {
		return ids, err
	}
	word, end := v.pieceText(ids[0]), 1
	for ; end < len(ids) && v.tokenizer.Continues(ids[end]); end++ {
		word += v.pieceText(ids[end])
	}
	var joined []int
	for word != "" {
		length := len(word)
		for length > 0 && continuing[word[:length]] == 0 {
			length--
		}
		if length == 0 {
			return nil, errors.New("the vocabulary has no pieces that continue a word with it")
		}
		joined = append(joined, continuing[word[:length]])
		word = word[length:]
	}
	return append(joined, ids[end:]...), nil
}

// wordOf returns the word that the pieces of a blank make, or "" if the pieces are not one word.
func (v *vocabulary) wordOf(ids []int) string {
	text := ""
	for i, id := range ids {
		class := v.classes()[id]
		if class&wordToken == 0 || i > 0 && class&continuingToken == 0 {
			return ""
		}
		text += v.reads()[id]
	}
	return text
}

func countPieces(n int) string {
	if n == 1 {
		return "1 piece"
	}
	return strconv.Itoa(n) + " pieces"
}
