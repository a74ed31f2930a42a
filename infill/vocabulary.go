package infill

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"infill/tokenize"
)

// vocabulary is a tokenizer with the properties of its tokens that rules
// and layouts need.
type vocabulary struct {
	tokenizer *tokenize.Tokenizer
	fillable  []int
	classes   func() []tokenClass // class of each token, [vocabulary]
	reads     func() []string     // text of each word or piece, else "", [vocabulary]
	lower     func() []string     // the same in lower case
	all       func() []int        // every token id
	kinds     sync.Map            // cache of rules.kinds
	lists     sync.Map            // cache of vocabulary.list
}

func newVocabulary(tokenizer *tokenize.Tokenizer) *vocabulary {
	v := &vocabulary{tokenizer: tokenizer, fillable: tokenizer.Fillable()}
	v.classes = sync.OnceValue(func() []tokenClass { return classify(tokenizer) })
	v.reads = sync.OnceValue(v.readTokens)
	v.all = sync.OnceValue(func() []int {
		ids := make([]int, tokenizer.VocabularySize())
		for id := range ids {
			ids[id] = id
		}
		return ids
	})
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

// readTokens returns the text of each token that is a word or a piece of one,
// and "" for other tokens, [vocabulary].
func (v *vocabulary) readTokens() []string {
	reads := make([]string, v.tokenizer.VocabularySize())
	for _, id := range v.fillable {
		if v.classes()[id]&wordToken != 0 {
			reads[id] = v.tokenizer.Piece(id)
		}
	}
	return reads
}

// begins counts the longer words of the vocabulary that begin with letters.
func (v *vocabulary) begins(letters string) int {
	texts := v.reads()
	if !v.tokenizer.Cased() {
		texts = v.lower()
		letters = strings.ToLower(letters)
	}
	count := 0
	for id, text := range texts {
		if v.classes()[id]&continuingToken == 0 && len(text) > len(letters) && strings.HasPrefix(text, letters) {
			count++
		}
	}
	return count
}

// candidate reads text as a fill of b. If b touches a word, the fill continues
// that word.
func (v *vocabulary) candidate(text string, b tokenize.Blank) ([]int, error) {
	if b.TouchesLeft {
		return v.tokenizer.Continuation(text)
	}
	return v.tokenizer.Candidate(text)
}

// wordOf returns the word that the pieces of a blank make, or "" if the pieces
// are not one word.
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
