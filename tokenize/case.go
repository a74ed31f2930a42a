package tokenize

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The English words that are written with a capital wherever they stand, or with several as NASA and McDonald, one a line;
// names.py wrote them.
//
//go:embed names.txt
var nameList string

// names are the lines of nameList, by how they read without capitals.
var names = sync.OnceValue(func() map[string]string {
	list := map[string]string{}
	for line := range strings.Lines(nameList) {
		name := strings.TrimSpace(line)
		list[strings.ToLower(name)] = name
	}
	return list
})

// withNames gives the names in a fill their capitals.
func withNames(fill string) string {
	words := strings.Split(fill, " ")
	for i, word := range words {
		if name := names()[word]; name != "" {
			words[i] = name
		}
	}
	return strings.Join(words, " ")
}

// shouted reports whether the words beside a blank are all in capitals: those of the text on its left and right, at most two of
// each. One word alone, or letters like "I" and "A" alone, do not tell.
func shouted(left, right string) bool {
	before, after := strings.FieldsFunc(left, notLetter), strings.FieldsFunc(right, notLetter)
	words := append(before[max(0, len(before)-2):], after[:min(2, len(after))]...)
	long := false
	for _, word := range words {
		if strings.ContainsFunc(word, unicode.IsLower) || !strings.ContainsFunc(word, unicode.IsUpper) {
			return false
		}
		long = long || utf8.RuneCountInString(word) > 1
	}
	return long && len(words) > 1
}

func notLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' && r != '’'
}
