package infill

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"infill/internal/option"
	"infill/tokenize"
)

// Fit narrows which fills are allowed, and changes no probability. Patterns in
// the template do so too.
type Fit struct {
	// Slots lists, by the number of a blank from 1, or under 0 for every blank
	// without a list of its own, the fills that the blank may take. A fill is
	// one word or several. A blank typed without a length may have the length of
	// any fill in its list.
	Slots Lists `option:"slot" alias:"slots" word:"[N=]WORD,..." join:" " help:"what each blank, or blank N, counted from 1, may take; see infill help templates"`
	// Speech lists parts of speech by the number of a blank from 1, or under 0
	// for all blanks. Such a blank takes only a single English word that can be
	// a listed part of speech.
	Speech Parts `option:"pos" examples:"noun,verb,adjective,adverb" word:"[N=]PART,..." join:" " help:"part of speech of the English word in each blank, or in blank N: noun, verb, adjective, adverb"`
	// Ban lists words that no blank may hold. A ban also forbids pieces that
	// spell the word side by side.
	Ban Words `option:"ban" word:"WORD,..." join:"," help:"words that no blank may hold"`
	// Fill says which fills blanks without a list may take.
	Fill FillKind `option:"fill" default:"words" enum:"words,tokens,any" word:"{words|tokens|any}" help:"what a blank may take: words; words and punctuation; or any token, parts of words included"`
	// Case says how fills are capitalised.
	Case Case `option:"case" default:"auto" enum:"auto,keep" word:"{auto|keep}" help:"give fills capitals as the text asks for them, or keep the model's letters"`
	// Distinct forbids two blanks to hold the same text, unless the blanks have
	// the same name.
	Distinct bool `option:"distinct" default:"false" help:"no two blanks hold the same; those of one name count as one"`
}

// FillKind says which fills a blank without a list may take. "words" takes words
// of letters and digits: a blank directly after a word continues that word, and
// every other blank begins a new word. "tokens" takes punctuation too. "any"
// takes every token, also pieces that continue the word on the left, as the
// papers and other tools do. "" is "words".
type FillKind string

// These are the values of FillKind.
const (
	FillWords  FillKind = "words"
	FillTokens FillKind = "tokens"
	FillAny    FillKind = "any"
)

// Case says which capitals a fill has. With "auto" or "", a fill from a model
// without capitals gets the capitals that the text asks for (see
// tokenize.Template.Fill). With "keep", a fill keeps the model's letters.
type Case string

// These are the values of Case.
const (
	CaseAuto Case = "auto"
	CaseKeep Case = "keep"
)

// Words is a list of words. Its text form has commas between the words; a word
// with a comma stands in quotes.
type Words []string

var errWords = errors.New("a list of words, as in red,blue")

// MarshalText writes words with commas between them.
func (w Words) MarshalText() ([]byte, error) { return []byte(option.Join(w)), nil }

// Check returns an error for an empty word.
func (w Words) Check() error {
	if slices.ContainsFunc(w, blank) {
		return errWords
	}
	return nil
}

// Lists are words by the number of a blank, or under 0 for every blank without a
// list of its own, written "1=red,dark blue 2=sky" or "red,blue".
type Lists map[int][]string

var errLists = errors.New("a list of all words that each blank, or that one may take, as in red,dark blue or " +
	"1=red,dark blue")

// Check returns an error for no list, an empty one, and a number below 0.
func (l Lists) Check() error {
	if !filled(l) {
		return errLists
	}
	return nil
}

func filled(lists map[int][]string) bool {
	for number, words := range lists {
		if number < 0 || len(words) == 0 || slices.ContainsFunc(words, blank) {
			return false
		}
	}
	return true
}

func blank(word string) bool { return strings.TrimSpace(word) == "" }

// of returns the list of each blank of a template by its number. Blanks of one
// name share the list of any of them.
func (l Lists) of(t *tokenize.Template) Lists {
	if l[0] == nil {
		return l
	}
	all := maps.Clone(l)
	delete(all, 0)
	for _, group := range t.Groups {
		if slices.ContainsFunc(group, func(blank int) bool { return l[blank+1] != nil }) {
			continue
		}
		for _, blank := range group {
			all[blank+1] = l[0]
		}
	}
	return all
}

// MarshalText writes lists as they are written above.
func (l Lists) MarshalText() ([]byte, error) { return []byte(writeLists(l)), nil }

// Parts are parts of speech by the number of a blank, or under 0 for all blanks,
// written "noun" or "1=noun,verb".
type Parts map[int][]string

var partsOfSpeech = []string{"noun", "verb", "adjective", "adverb"}

var errParts = errors.New("a list of " + strings.Join(partsOfSpeech, ", ") +
	", perhaps of one blank, as in noun or 1=noun,verb")

// Check returns an error for a list that is empty, or has what is no part of speech.
func (p Parts) Check() error {
	unknown := func(word string) bool { return !slices.Contains(partsOfSpeech, word) }
	if !filled(p) || slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(p))...), unknown) {
		return errParts
	}
	return nil
}

// MarshalText writes parts of speech as they are written above.
func (p Parts) MarshalText() ([]byte, error) { return []byte(writeLists(p)), nil }

func writeLists(l map[int][]string) string {
	var lists []string
	for _, n := range slices.Sorted(maps.Keys(l)) {
		list := option.Join(l[n])
		if n != 0 {
			list = strconv.Itoa(n) + "=" + list
		}
		lists = append(lists, list)
	}
	return strings.Join(lists, " ")
}
