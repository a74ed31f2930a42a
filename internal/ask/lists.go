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
var wordsType = &option.Type{
	Read: func(text string) (any, error) {
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
		return readWords(words)
	},
	List: readWords,
	Join: func(one, later any) (both any, ok bool) {
		return slices.Concat(one.(infill.Words), later.(infill.Words)), true
	},
	Schema: option.Schema{Kind: "array", Want: errWords.Error()},
}

var errWords = infill.Words{""}.Check()

// readWords also refuses a word that looks like the list of a blank.
func readWords(values []string) (any, error) {
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

// listsType returns the type of lists by the number of a blank, as in "red,blue" for
// every blank or "1=red,dark blue 2=sky". plain returns what is wrong with a text before it
// is read, and Check of the lists none what is no list.
func listsType[L numberedLists](kind string, plain func(text string) error) *option.Type {
	none := L{0: nil}.Check()
	// A word with an equals sign is likely a list whose number is mistyped.
	take := func(lists map[int][]string, ok bool) (any, error) {
		equals := func(word string) bool { return strings.Contains(word, "=") }
		if !ok || slices.ContainsFunc(lists[0], equals) {
			return nil, none
		}
		return L(lists), L(lists).Check()
	}
	return &option.Type{
		Read: func(text string) (any, error) {
			err := plain(text)
			if err != nil {
				return nil, err
			}
			return take(readLists(text))
		},
		List:  func(values []string) (any, error) { return take(listsOf(values)) },
		Lists: func(values map[string][]string) (any, error) { return take(numbered(values)) },
		Split: func(text string) ([]string, error) {
			err := plain(text)
			if err != nil {
				return nil, err
			}
			words, err := option.Split(text)
			if err != nil {
				return nil, none
			}
			return words, nil
		},
		Join: func(one, later any) (both any, ok bool) { // unless both have a list of one blank
			lists := maps.Clone(one.(L))
			for number, words := range later.(L) {
				if lists[number] != nil {
					return nil, false
				}
				lists[number] = words
			}
			return lists, true
		},
		Schema: option.Schema{Kind: kind},
	}
}

// orderType reads infill.Order. A list is a permutation, one text for each number.
var orderType = &option.Type{
	Read:   readOrder,
	List:   func(values []string) (any, error) { return readOrder(strings.Join(values, ",")) },
	Schema: option.Schema{Kind: "string"},
}

func readOrder(text string) (any, error) {
	o := infill.Order(text)
	return o, o.Check()
}

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
