package tokenize

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// nameList has the English words that always have a capital, or several as NASA
// and McDonald, one word a line. names.py wrote names.txt.
//
//go:embed names.txt
var nameList string

var names = sync.OnceValue(func() map[string]string { return byLowerCase(nameList) })

// phraseList has the names of several words, some of which are no names by
// themselves, as New York and White House, one name a line. phrases.py
// wrote phrases.txt.
//
//go:embed phrases.txt
var phraseList string

var phrases = sync.OnceValue(func() map[string]string { return byLowerCase(phraseList) })

// byLowerCase returns a map from each line of a list in lower case to the line itself.
func byLowerCase(list string) map[string]string {
	lines := map[string]string{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		lines[strings.ToLower(line)] = line
	}
	return lines
}

const phraseWords = 4 // largest number of words in a name

// withNames returns fill with the capitals of names in it. A name of several
// words may begin in left or end in right, if the text there has the capitals
// of the name. If free is set, the capitals in right do not matter.
func withNames(left, fill, right string, free bool) string {
	words := strings.Split(fill, " ")
	before := wordsBefore(left)
	row := slices.Concat(before, words, wordsAfter(right))
	fixed := func(at int) bool { return at < len(before) || at >= len(before)+len(words) && !free }
	for i, word := range words {
		name := names()[word]
		if name != "" {
			words[i] = name
		}
	}
	for from := range len(before) + len(words) { // names that have none of the words say nothing of them
		for to := min(from+phraseWords, len(row)); to > max(from+1, len(before)); to-- {
			phrase, ok := phrases()[strings.ToLower(strings.Join(row[from:to], " "))]
			if !ok {
				continue
			}
			name := strings.Split(phrase, " ")
			for k := range name {
				ok = ok && !(fixed(from+k) && row[from+k] != name[k]) // the user writes the word otherwise
			}
			if !ok {
				continue
			}
			for at := max(from, len(before)); at < min(to, len(before)+len(words)); at++ {
				words[at-len(before)] = name[at-from]
			}
			break
		}
	}
	return strings.Join(words, " ")
}

// wordsBefore returns the last words of a text that ends in one space.
// wordsAfter returns the first words of a text that begins with one space.
func wordsBefore(text string) []string {
	words := strings.Split(text[strings.LastIndexFunc(text, func(r rune) bool { return r != ' ' && notLetter(r) })+1:],
		" ")
	if words[len(words)-1] != "" {
		return nil
	}
	words = words[:len(words)-1]
	return words[max(0, len(words)-phraseWords+1):]
}

func wordsAfter(text string) []string {
	end := strings.IndexFunc(text, func(r rune) bool { return r != ' ' && notLetter(r) })
	if end < 0 {
		end = len(text)
	}
	words := strings.SplitN(text[:end], " ", phraseWords+1)
	if words[0] != "" {
		return nil
	}
	return words[1:min(phraseWords, len(words))]
}

func hasCapital(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) })
}

// loud reports whether all letters of a word that can be capitals are.
func loud(word string) bool {
	return !strings.ContainsFunc(word, unicode.IsLower) && strings.ContainsFunc(word, unicode.IsUpper)
}

// inCapitals reports whether a word is loud, and more than a letter, as in I and A.
func inCapitals(word string) bool {
	return loud(word) && strings.IndexFunc(word, unicode.IsUpper) < strings.LastIndexFunc(word, unicode.IsUpper)
}

// Like returns a word in the way in which another is written. There are four: for GATE
// or O'NEIL the word gets capitals, for Gate, I or McDonald a capital first letter, and
// for gate or iPhone it stays as it is.
func Like(word, other string) string {
	first, _ := utf8.DecodeRuneInString(other)
	switch {
	case inCapitals(other):
		return strings.ToUpper(word)
	case unicode.IsUpper(first):
		return capitalise(word)
	}
	return word
}

// Folded returns a text for comparisons that ignore how words are written.
func Folded(text string) string { return strings.ToLower(strings.ToUpper(text)) }

// Name reports whether an English word always has a capital, or several.
func Name(word string) bool { return names()[strings.ToLower(word)] != "" }

// opensSentences reports whether a text begins with the blank, ends a sentence,
// and begins none with a small letter.
func opensSentences(text string, blank int) bool {
	ended := strings.TrimRightFunc(text, func(r rune) bool { return unicode.IsSpace(r) || closes(r) })
	if !StartsSentence(text[:blank]) || strings.ContainsFunc(text[:blank], unicode.IsLetter) ||
		!strings.ContainsAny(ended[max(0, len(ended)-3):], ".!?。！？") {
		return false
	}
	for i, r := range text {
		if !unicode.IsLower(r) || !StartsSentence(text[:i]) {
			continue
		}
		before := strings.TrimRightFunc(text[:i], unicode.IsSpace)
		last, _ := utf8.DecodeLastRuneInString(before)
		if !closes(last) { // "Why?" he asked: the same sentence continues
			return false
		}
	}
	return true
}

// heading reports whether two or more words are all in capitals (shouted). It
// also reports whether three or more words all begin with a capital, and one
// after the first is a function word (titled).
func heading(words []string) (shouted, titled bool) {
	shouted = allLoud(words)
	small := slices.ContainsFunc(words, func(word string) bool {
		first, _ := utf8.DecodeRuneInString(word)
		return !unicode.IsUpper(first)
	})
	return shouted, len(words) > 2 && !small && slices.ContainsFunc(words[1:], StopWord) && !shouted
}

// allLoud reports whether two or more words are all in capitals. Only single letters like
// "I" and "A" are not enough.
func allLoud(words []string) bool {
	quiet := slices.ContainsFunc(words, func(word string) bool { return !loud(word) })
	long := slices.ContainsFunc(words, func(word string) bool { return utf8.RuneCountInString(word) > 1 })
	return len(words) > 1 && !quiet && long
}

// shouted reports whether the words beside a blank, two on each side, are in
// capitals. One word alone or single letters are not enough.
func shouted(left, right string) bool {
	before := strings.FieldsFunc(left, notLetter)
	after := strings.FieldsFunc(right, notLetter)
	return allLoud(append(before[max(0, len(before)-2):], after[:min(2, len(after))]...))
}

func notLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' && r != '’'
}

// StopWord reports whether an English word, in any capitals, is a function word
// such as "the" or "of".
func StopWord(word string) bool { return stopWords()[strings.ToLower(word)] }

var stopWords = sync.OnceValue(func() map[string]bool {
	list := map[string]bool{}
	for word := range strings.FieldsSeq(
		`a about above after again against all also although always am among an and any anybody anyone anything are as at be because been
		before behind being below between both but by can cannot could did do does doing done down during each either else enough ever every everybody
		everyone everything few for from had has have having he her here hers herself him himself his how however i if in into is it its itself just less
		many may me might mine more most much must my myself n't neither never no nobody none nor not nothing now of off often on once one only onto or other
		others our ours ourselves out over own perhaps quite rather same shall she should since so some somebody someone something still such than that the
		their theirs them themselves then there these they this those though through thus to too under until up upon us very was we were what whatever when
		where whether which while who whom whose why will with within without would yet you your yours yourself yourselves`) {
		list[word] = true
	}
	return list
})
