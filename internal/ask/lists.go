package ask

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"infill/infill"
	"infill/internal/option"
)

// This file reads the values that have lists: the text of a flag, of a column
// or of a string in JSON, or a list in JSON. Errors complete `"x" is not …`.

// wordsType reads infill.Words: words with commas between them.
type wordsType struct{}

var (
	_ option.Listed = wordsType{}
	_ option.Joined = wordsType{}
)

var errWords = infill.Words{""}.Check()

func (w wordsType) Read(text string) (any, error) {
	if strings.TrimSpace(text) == "" { // no list
		return infill.Words(nil), nil
	}
	err := plainWords(text)
	if err != nil {
		return nil, err
	}
	words, err := option.Split(text)
	if err != nil {
		return nil, errWords
	}
	return w.List(words)
}

func (wordsType) Schema() option.Schema { return option.Schema{Kind: "array", Want: errWords.Error()} }

func (wordsType) Join(one, later any) (both any, ok bool) {
	return slices.Concat(one.(infill.Words), later.(infill.Words)), true
}

// List also refuses a word that looks like the list of a blank.
func (wordsType) List(values []string) (any, error) {
	list, _ := trimmed(values)
	words := append(infill.Words{}, list...) // an empty list is one
	err := words.Check()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(words, listStart.MatchString) {
		return nil, fmt.Errorf("%w, for every blank: no number stands before it", errWords)
	}
	return words, nil
}

// numberedLists are values with lists by the numbers of blanks.
type numberedLists interface {
	~map[int][]string
	Check() error
}

// listsType reads lists by the number of a blank, as in "red,blue" for every blank or
// "1=red,dark blue 2=sky".
type listsType[L numberedLists] struct {
	kind  string
	plain func(text string) error // what is wrong with a text before it is read
}

var (
	_ option.Listed   = listsType[infill.Lists]{}
	_ option.Numbered = listsType[infill.Lists]{}
	_ option.Joined   = listsType[infill.Lists]{}
)

func (t listsType[L]) Schema() option.Schema { return option.Schema{Kind: t.kind} }

// take returns lists unless they are none. A word with an equals sign is likely a list whose
// number is mistyped.
func (listsType[L]) take(lists map[int][]string, ok bool) (any, error) {
	equals := func(word string) bool { return strings.Contains(word, "=") }
	if !ok || slices.ContainsFunc(lists[0], equals) {
		return nil, L{0: nil}.Check()
	}
	return L(lists), L(lists).Check()
}

func (t listsType[L]) Read(text string) (any, error) {
	err := t.plain(text)
	if err != nil {
		return nil, err
	}
	return t.take(readLists(text))
}

func (t listsType[L]) List(values []string) (any, error) { return t.take(listsOf(values)) }

func (t listsType[L]) Lists(values map[string][]string) (any, error) { return t.take(numbered(values)) }

func (t listsType[L]) Split(text string) ([]string, error) {
	err := t.plain(text)
	if err != nil {
		return nil, err
	}
	words, err := option.Split(text)
	if err != nil {
		return nil, L{0: nil}.Check()
	}
	return words, nil
}

// Join joins lists unless both have one for the same blank.
func (listsType[L]) Join(one, later any) (both any, ok bool) {
	lists := maps.Clone(one.(L))
	for number, words := range later.(L) {
		if lists[number] != nil {
			return nil, false
		}
		lists[number] = words
	}
	return lists, true
}

// orderType reads infill.Order. A list is a permutation, one text for each number.
type orderType struct{}

var _ option.Listed = orderType{}

func (orderType) Schema() option.Schema { return option.Schema{Kind: "string"} }

func (orderType) Read(text string) (any, error) {
	o := infill.Order(text)
	return o, o.Check()
}

func (t orderType) List(values []string) (any, error) { return t.Read(strings.Join(values, ",")) }

var (
	inQuotes  = regexp.MustCompile(`"[^"]*"`)
	listStart = regexp.MustCompile(`(?:^|\s)(\d+)\s*=`)
	// listInside finds a list's number among words: only spaces part lists.
	listInside = regexp.MustCompile(`[,;]\s*\d+\s*=`)
)

// readLists reads "noun 1=red,dark blue 2=sky", with noun under 0.
func readLists(text string) (lists map[int][]string, ok bool) {
	values := map[string][]string{}
	// Nothing in quotes is the number of a list.
	outside := inQuotes.ReplaceAllStringFunc(text, func(quoted string) string {
		return strings.Repeat("x", len(quoted))
	})
	starts := append(listStart.FindAllStringSubmatchIndex(outside, -1), []int{len(text)})
	words := strings.TrimSpace(text[:starts[0][0]])
	if words != "" {
		addList(values, every, words)
	}
	if len(starts) > 1 && strings.HasSuffix(words, ";") {
		return nil, false
	}
	for i, at := range starts[:len(starts)-1] {
		list := text[at[1]:starts[i+1][0]]
		inside := listInside.MatchString(outside[at[1]:starts[i+1][0]])
		parted := i+2 < len(starts) && strings.HasSuffix(list, ";") || inside
		addList(values, text[at[2]:at[3]], list)
		if parted {
			return nil, false
		}
	}
	return numbered(values)
}

// listsOf reads "1=red,blue", and without "=" words for all blanks.
func listsOf(values []string) (lists map[int][]string, ok bool) {
	all := map[string][]string{}
	for _, text := range values {
		number, words, found := strings.Cut(text, "=")
		if !found {
			all[every] = append(all[every], text)
			continue
		}
		addList(all, number, words)
	}
	return numbered(all)
}

// addList adds a list to others by its number. What is no list, or a second one of a
// number, leaves it without words, which numbered refuses.
func addList(values map[string][]string, number, words string) {
	list, err := option.Split(words)
	_, twice := values[number]
	if err != nil || twice {
		list = nil
	}
	values[number] = list
}

// every is the key of a list for every blank.
const every = "every"

// numbered returns lists by their numbers, that of every blank under 0. ok is
// false if a key is no number of a blank, or if a list has no words.
func numbered(values map[string][]string) (lists map[int][]string, ok bool) {
	lists = map[int][]string{}
	for key, words := range values {
		n, err := strconv.Atoi(strings.TrimSpace(key))
		known := err == nil && n > 0
		if key == every {
			n = 0
			known = true
		}
		list, good := trimmed(words)
		if !known || !good || lists[n] != nil {
			return nil, false
		}
		lists[n] = list
	}
	return lists, true
}

// trimmed returns values without space around them. ok is false for empty ones.
func trimmed(values []string) (list []string, ok bool) {
	for _, word := range values {
		list = append(list, strings.TrimSpace(word))
	}
	return list, list != nil && !slices.Contains(list, "")
}

var (
	fileInText = regexp.MustCompile(`(^|[=,])\s*@[^,\s]`)
	jsonInText = regexp.MustCompile(`(^|[=,])\s*[{\[]\s*"`)
)

// plainWords returns an error for a list as text, of a cell or of JSON, that
// means a file or is JSON itself. Taken as words, it would fill such text in.
func plainWords(text string) error {
	switch {
	case fileInText.MatchString(text):
		return errors.New("a list of words: only the command line reads files after an @; quotes make it a word")
	case jsonInText.MatchString(text):
		return errors.New("a list of words, as in red,dark blue: JSON takes its own lists, and a cell none")
	}
	return nil
}
