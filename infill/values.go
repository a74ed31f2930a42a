package infill

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"infill/internal/option"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// This file has the types of the options. Each reads and writes the text of a
// flag, which is also that of a column and of a string in JSON, and has a schema. A
// number, a switch and a text are Go's own types, with tags.
// The error of UnmarshalText completes the sentence `"x" is not …`.

const auto = "auto"

const maxTop = 10000 // fills that a search can be asked to prove

// whole reads a whole number within bounds. It takes 3.0 too, which pandas
// writes for 3 beside gaps.
func whole(text []byte, low, high int) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSuffix(string(text), ".0"))
	return n, err == nil && low <= n && n <= high
}

// number reads a finite number within bounds.
func number(text []byte, low, high float64) (float64, bool) {
	x, err := strconv.ParseFloat(string(text), 64)
	return x, err == nil && low <= x && x <= high
}

func digits(n int) ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil }

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
	CaseAuto Case = auto
	CaseKeep Case = "keep"
)

// Rank says which fills of draws and chains are listed. "distinct" or "" lists
// different fills, the likeliest first: of all draws, or of all states of chains
// after the warm-up. "final" lists every draw, or the final state of every chain,
// repeats included, as the papers do.
type Rank string

// These are the values of Rank.
const (
	RankDistinct Rank = "distinct"
	RankFinal    Rank = "final"
)

// NewSeed returns a random seed from the operating system. The seed has only 32
// bits, so that a user can retype it.
func NewSeed() uint64 {
	var b [4]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails, see package crypto/rand
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// Order is the order in which the chain rule takes the blanks; the pieces of a
// blank are always neighbours. The values are "l2r" or "" (left to right), "r2l",
// and permutations of the blanks such as "2,1,3".
type Order string

// These are the values of Order, beside permutations.
const (
	LeftToRight Order = "l2r"
	RightToLeft Order = "r2l"
)

// UnmarshalText reads "l2r", "r2l" or a permutation such as "2,1,3".
func (o *Order) UnmarshalText(text []byte) error {
	err := Order(text).Check()
	if err == nil {
		*o = Order(text)
	}
	return err
}

// Check returns an error unless the order is one.
func (o Order) Check() error {
	switch {
	case o == "both":
		return errors.New("an order: both went in 0.3, which has one order: leave it out")
	case o == LeftToRight || o == RightToLeft || o.numbers() != nil:
		return nil
	}
	return errors.New("one of l2r, r2l, or a permutation of the blanks, as in 2,1,3")
}

// MarshalText returns the order as a text that UnmarshalText reads.
func (o Order) MarshalText() ([]byte, error) { return []byte(o), nil }

// Schema implements option.Syntax.
func (Order) Schema() option.Schema {
	return option.Schema{Kind: "string", Values: []string{string(LeftToRight), string(RightToLeft)}}
}

// SetList reads a permutation, given as one text for each number.
func (o *Order) SetList(values []string) error {
	return o.UnmarshalText([]byte(strings.Join(values, ",")))
}

// numbers returns the blanks of a permutation, counted from 0; nil if the order
// is a named one or not valid.
func (o Order) numbers() []int {
	var list []int
	for text := range strings.SplitSeq(string(o), ",") {
		n, ok := whole([]byte(strings.TrimSpace(text)), 1, math.MaxInt32)
		if !ok {
			return nil
		}
		list = append(list, n-1)
	}
	for i, n := range slices.Sorted(slices.Values(list)) {
		if i != n {
			return nil
		}
	}
	return list
}

// DefaultRows are the rows of the zero Budget.
const DefaultRows = 4000

// A Budget bounds the cost of an answer by Rows, by Seconds, or by both. The zero
// Budget is DefaultRows.
type Budget struct {
	Rows    int     // most model rows; a draw made again counts as one more
	Seconds float64 // most seconds since the start of the fill
}

// MarshalText writes the budget as UnmarshalText reads it: "500" for rows, "2s"
// for seconds.
func (b Budget) MarshalText() ([]byte, error) {
	if b.Seconds > 0 {
		return fmt.Appendf(nil, "%gs", b.Seconds), nil
	}
	return digits(b.Rows)
}

// UnmarshalText reads "500" as rows and "2s" as seconds.
func (b *Budget) UnmarshalText(text []byte) error {
	var read Budget
	var ok bool
	seconds, timed := strings.CutSuffix(string(text), "s")
	if timed {
		read.Seconds, ok = number([]byte(seconds), math.SmallestNonzeroFloat64, math.MaxFloat64)
	} else {
		read.Rows, ok = whole(text, 1, math.MaxInt)
	}
	if !ok {
		return errBudget
	}
	*b = read
	return nil
}

var errBudget = errors.New("a number of model rows above 0, or seconds above 0, as in 2s")

// Check returns an error for bounds below 0 or without an end.
func (b Budget) Check() error {
	if b.Rows < 0 || !(b.Seconds >= 0 && b.Seconds <= math.MaxFloat64) {
		return errBudget
	}
	return nil
}

// Schema implements option.Syntax.
func (Budget) Schema() option.Schema {
	return option.Schema{Kind: "string", Values: strings.Fields("500 1000 2000 4000 10000 1s 5s 20s")}
}

// within returns the budget with at most a number of rows, if it gives none.
func (b Budget) within(rows int) Budget {
	if b == (Budget{}) {
		b.Rows = min(DefaultRows, rows)
	}
	if b.Seconds > 0 {
		b.Rows = rows
	}
	return b
}

// room returns the number of further rows that the budget allows after rows, 0 if
// the seconds since began are used up.
func (b Budget) room(rows int, began time.Time) int {
	if b.Seconds > 0 && time.Since(began).Seconds() >= b.Seconds {
		return 0
	}
	if b.Rows == 0 {
		return math.MaxInt
	}
	return max(0, b.Rows-rows)
}

// share returns the used part of the budget, from 0 to 1.
func (b Budget) share(rows int, began time.Time) float64 {
	if b.Seconds > 0 {
		return min(1, time.Since(began).Seconds()/b.Seconds)
	}
	return min(1, float64(rows)/float64(max(1, b.Rows)))
}

// text writes the budget for people, as "2s" or "500 model rows".
func (b Budget) text() string {
	if b.Seconds > 0 {
		return fmt.Sprintf("%gs", b.Seconds)
	}
	return Counted(b.Rows, "model row")
}

// A Sampler is a sampler with its settings.
type Sampler struct{ Spec samplers.Spec }

// NewSampler returns a sampler by its name, with its default settings.
func NewSampler(name string) Sampler { return Sampler{samplers.Spec{Name: name, OnText: true}} }

// UnmarshalText reads a sampler with its settings, as in
// dmala:step-size=0.4,balance=sqrt.
func (s *Sampler) UnmarshalText(text []byte) error {
	list, err := samplers.ParseList(string(text))
	if err != nil || len(list) != 1 {
		return errors.New("a sampler, as in dmala:step-size=0.4,balance=sqrt")
	}
	list[0].OnText = true
	read := Sampler{list[0]}
	err = read.Check()
	if err == nil {
		*s = read
	}
	return err
}

// Check returns an error for a name that no sampler of text has.
func (s Sampler) Check() error {
	if !slices.Contains(Samplers(), s.Spec.Name) {
		return errors.New("one of " + strings.Join(Samplers(), ", "))
	}
	return nil
}

// MarshalText returns the text that UnmarshalText reads.
func (s Sampler) MarshalText() ([]byte, error) { return []byte(s.Spec.String()), nil }

// Schema implements option.Syntax.
func (Sampler) Schema() option.Schema { return option.Schema{Kind: "string", Values: Samplers()} }

// Samplers lists the names of the samplers that can fill text by chains. The
// first is dmala.
func Samplers() []string {
	const first = "dmala"
	names := []string{first}
	for _, name := range samplers.Names() {
		if samplers.Describe(name).OnText != nil && name != first {
			names = append(names, name)
		}
	}
	return names
}

// Energy chooses the energy U of chains, in nats; "" is the
// pseudo-log-likelihood.
type Energy lm.Energy

// Balance is the weight of an energy difference in a proposal, in the syntax of
// samplers.Balance; "" is the sampler's default.
type Balance string

// UnmarshalText reads "auto", a name, or a power from 0.5 to 1.
func (b *Balance) UnmarshalText(text []byte) error {
	if string(text) == auto {
		*b = ""
		return nil
	}
	err := Balance(text).Check()
	if err == nil {
		*b = Balance(text)
	}
	return err
}

// Check returns an error for what is no balance.
func (b Balance) Check() error {
	if new(samplers.Balance).Set(string(b)) != nil {
		return fmt.Errorf("one of auto, %s, or a number from 0.5 to 1", strings.Join(samplers.BalanceNames(), ", "))
	}
	return nil
}

// MarshalText returns the text that UnmarshalText reads.
func (b Balance) MarshalText() ([]byte, error) { return []byte(cmp.Or(string(b), auto)), nil }

// Schema implements option.Syntax.
func (Balance) Schema() option.Schema {
	return option.Schema{Kind: "string", Values: append([]string{auto}, samplers.BalanceNames()...)}
}

// Gradient is the gradient that a sampler uses; "" is the sampler's default.
type Gradient lm.Gradient

// Start says in which states chains start; the zero Start is "model".
type Start struct {
	Kind StartKind
	Fill []string // the text of each blank, if Kind is "fill"
}

// StartKind says where the starts come from. "model" draws from the model's
// conditionals with every slot masked, "random" draws uniformly, and "fill" is a
// given fill. "shared" is one draw from the model that all chains share, as in
// the DISCS benchmark. "mask" draws the slots one by one in a random order from
// the model, with later slots masked. This start is the nearest to a text of
// masks, which has no energy.
type StartKind string

// These are the values of StartKind.
const (
	StartModel  StartKind = "model"
	StartRandom StartKind = "random"
	StartShared StartKind = "shared"
	StartMask   StartKind = "mask"
	StartGiven  StartKind = "fill"
)

// MarshalText writes the text that UnmarshalText reads: Kind, or as
// "fill:dark,blue".
func (s Start) MarshalText() ([]byte, error) {
	if s.Kind == StartGiven {
		return []byte(string(s.Kind) + ":" + option.Join(s.Fill)), nil
	}
	return []byte(s.Kind), nil
}

// UnmarshalText reads "model", "random", "shared", "mask", or a fill as
// "fill:dark,blue".
func (s *Start) UnmarshalText(text []byte) error {
	fill, given := strings.CutPrefix(string(text), string(StartGiven)+":")
	if given {
		words, err := option.Split(fill)
		if err != nil {
			return errors.New("a fill, as in fill:dark,blue")
		}
		*s = Start{StartGiven, words}
		return nil
	}
	read := Start{Kind: StartKind(text)}
	err := read.Check()
	if err == nil {
		*s = read
	}
	return err
}

// Check returns an error for an unknown kind, and for a fill without words.
func (s Start) Check() error {
	kinds := []StartKind{StartModel, StartRandom, StartShared, StartMask}
	if slices.Contains(kinds, s.Kind) || s.Kind == StartGiven && s.Fill != nil {
		return nil
	}
	return errors.New("fill:WORD,..., or one of model, random, shared, mask")
}

// Schema implements option.Syntax.
func (Start) Schema() option.Schema {
	return option.Schema{Kind: "string", Values: strings.Fields("model random shared mask")}
}

// Words is a list of words. Its text form has commas between the words; a word
// with a comma stands in quotes.
type Words []string

var errWords = errors.New("a list of words, as in red,blue")

// UnmarshalText reads words with commas between them. An empty text gives an
// empty list.
func (w *Words) UnmarshalText(text []byte) error {
	if strings.TrimSpace(string(text)) == "" {
		*w = nil
		return nil
	}
	err := plainWords(string(text))
	if err != nil {
		return err
	}
	words, err := option.Split(string(text))
	if err != nil {
		return errWords
	}
	return w.SetList(words)
}

// MarshalText writes words as UnmarshalText reads them.
func (w Words) MarshalText() ([]byte, error) { return []byte(option.Join(w)), nil }

// Schema implements option.Syntax.
func (Words) Schema() option.Schema { return option.Schema{Kind: "array", Want: errWords.Error()} }

// SetList sets the words.
func (w *Words) SetList(values []string) error {
	list, _ := trimmed(values)
	err := Words(list).Check()
	if err == nil {
		*w = append(Words{}, list...) // an empty list is one
	}
	return err
}

// Check returns an error for an empty word, and for one that looks like the list of
// a blank.
func (w Words) Check() error {
	if slices.ContainsFunc(w, func(word string) bool { return strings.TrimSpace(word) == "" }) {
		return errWords
	}
	if slices.ContainsFunc(w, listStart.MatchString) {
		return fmt.Errorf("%w, for every blank: no number stands before it", errWords)
	}
	return nil
}

// With returns the words together with those of a later use of a flag.
func (w Words) With(later any) (both any, ok bool) { return slices.Concat(w, later.(Words)), true }

// Lists are words by the number of a blank, or under 0 for every blank without a
// list of its own, written "1=red,dark blue 2=sky" or "red,blue".
type Lists map[int][]string

var errLists = errors.New("a list of all words that each blank, or that one may take, as in red,dark blue or " +
	"1=red,dark blue")

// UnmarshalText reads lists of words as in "red,blue" or "1=red,dark blue 2=sky".
func (l *Lists) UnmarshalText(text []byte) error {
	err := plainWords(string(text))
	if err != nil {
		return err
	}
	read, ok := readLists(string(text))
	return l.take(read, ok)
}

// take sets l to lists of which each has words. A word for every blank that has
// an equals sign is likely a blank's list whose number is mistyped.
func (l *Lists) take(lists map[int][]string, ok bool) error {
	if !ok {
		return errLists
	}
	err := Lists(lists).Check()
	if err == nil {
		*l = lists
	}
	return err
}

// Check returns an error for a list without words or with an empty one, and for a number
// below 0.
func (l Lists) Check() error {
	equals := func(word string) bool { return strings.Contains(word, "=") }
	if !filled(l) || slices.ContainsFunc(l[0], equals) {
		return errLists
	}
	return nil
}

// filled reports whether all lists have numbers of blanks, and words.
func filled(lists map[int][]string) bool {
	for number, words := range lists {
		_, ok := trimmed(words)
		if number < 0 || !ok {
			return false
		}
	}
	return true
}

// With returns the lists together with those of a later use of a flag. ok is false if
// both have a list of one blank.
func (l Lists) With(later any) (both any, ok bool) {
	lists, ok := together(l, later.(Lists))
	return Lists(lists), ok
}

// together returns the lists of two maps. ok is false if both have one key.
func together(one, other map[int][]string) (lists map[int][]string, ok bool) {
	lists = maps.Clone(one)
	for number, words := range other {
		if lists[number] != nil {
			return nil, false
		}
		lists[number] = words
	}
	return lists, true
}

// Split cuts the text of a list. A file, and JSON in a text, are errors.
func (*Lists) Split(text string) ([]string, error) {
	err := plainWords(text)
	if err != nil {
		return nil, err
	}
	words, err := option.Split(text)
	if err != nil {
		return nil, errLists
	}
	return words, nil
}

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

// MarshalText writes lists as UnmarshalText reads them.
func (l Lists) MarshalText() ([]byte, error) { return []byte(writeLists(l)), nil }

// Schema implements option.Syntax.
func (Lists) Schema() option.Schema { return option.Schema{Kind: "object"} }

// SetList reads words, or lists as in "1=red,blue".
func (l *Lists) SetList(values []string) error {
	read, ok := listsOf(values)
	return l.take(read, ok)
}

// SetLists sets the lists by their numbers.
func (l *Lists) SetLists(values map[string][]string) error {
	read, ok := numbered(values)
	return l.take(read, ok)
}

// Parts are parts of speech by the number of a blank, or under 0 for all blanks,
// written "noun" or "1=noun,verb".
type Parts map[int][]string

var partsOfSpeech = []string{"noun", "verb", "adjective", "adverb"}

var errParts = errors.New("a list of " + strings.Join(partsOfSpeech, ", ") +
	", perhaps of one blank, as in noun or 1=noun,verb")

// UnmarshalText reads "noun,verb" for all blanks, or "1=noun 2=verb".
func (p *Parts) UnmarshalText(text []byte) error {
	read, ok := readLists(string(text))
	return p.take(read, ok)
}

// take sets p to lists of which each has parts of speech.
func (p *Parts) take(lists map[int][]string, ok bool) error {
	if !ok {
		return errParts
	}
	err := Parts(lists).Check()
	if err == nil {
		*p = lists
	}
	return err
}

// Check returns an error for a list that is empty, or has what is no part of speech.
func (p Parts) Check() error {
	unknown := func(word string) bool { return !slices.Contains(partsOfSpeech, word) }
	if !filled(p) || slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(p))...), unknown) {
		return errParts
	}
	return nil
}

// With returns the lists together with those of a later use of a flag. ok is false if
// both have a list of one blank.
func (p Parts) With(later any) (both any, ok bool) {
	lists, ok := together(p, later.(Parts))
	return Parts(lists), ok
}

// Split cuts the text of a list.
func (*Parts) Split(text string) ([]string, error) {
	words, err := option.Split(text)
	if err != nil {
		return nil, errParts
	}
	return words, nil
}

// MarshalText writes parts of speech as UnmarshalText reads them.
func (p Parts) MarshalText() ([]byte, error) { return []byte(writeLists(p)), nil }

// Schema implements option.Syntax.
func (Parts) Schema() option.Schema { return option.Schema{Kind: "string", Values: partsOfSpeech} }

// SetList reads parts of speech, or lists as in "1=noun".
func (p *Parts) SetList(values []string) error {
	read, ok := listsOf(values)
	return p.take(read, ok)
}

// SetLists sets the lists by their numbers.
func (p *Parts) SetLists(values map[string][]string) error {
	read, ok := numbered(values)
	return p.take(read, ok)
}

var (
	inQuotes  = regexp.MustCompile(`"[^"]*"`)
	listStart = regexp.MustCompile(`(?:^|\s)(\d+)\s*=`)
	// listInside finds the number of a list where a word stands: spaces part
	// lists, and neither ; nor , does.
	listInside = regexp.MustCompile(`[,;]\s*\d+\s*=`)
)

// readLists reads lists as in "noun 1=red,dark blue 2=sky". Words without a
// number are under 0.
func readLists(text string) (lists map[int][]string, ok bool) {
	values := map[string][]string{}
	// Nothing in quotes is the number of a list.
	outside := inQuotes.ReplaceAllStringFunc(text, func(quoted string) string {
		return strings.Repeat("x", len(quoted))
	})
	starts := append(listStart.FindAllStringSubmatchIndex(outside, -1), []int{len(text)})
	add := func(number, words string) {
		list, err := option.Split(words)
		_, twice := values[number]
		if err != nil || twice {
			list = nil // numbered refuses a list without words
		}
		values[number] = list
	}
	words := strings.TrimSpace(text[:starts[0][0]])
	if words != "" {
		add(every, words)
	}
	if len(starts) > 1 && strings.HasSuffix(words, ";") {
		return nil, false
	}
	for i, at := range starts[:len(starts)-1] {
		list := text[at[1]:starts[i+1][0]]
		inside := listInside.MatchString(outside[at[1]:starts[i+1][0]])
		parted := i+2 < len(starts) && strings.HasSuffix(list, ";") || inside
		add(text[at[2]:at[3]], list)
		if parted {
			return nil, false
		}
	}
	return numbered(values)
}

// listsOf reads values such as "1=red,blue", each the list of a blank. Values
// without "=" are words for all blanks.
func listsOf(values []string) (lists map[int][]string, ok bool) {
	all := map[string][]string{}
	for _, text := range values {
		number, words, found := strings.Cut(text, "=")
		if !found {
			all[every] = append(all[every], text)
			continue
		}
		list, err := option.Split(words)
		_, twice := all[number]
		if err != nil || twice {
			list = nil
		}
		all[number] = list
	}
	return numbered(all)
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

// writeLists writes lists as readLists reads them.
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

// trimmed returns the values without the space around them. ok is false if the
// list or a word is empty.
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
