package infill

import (
	"encoding"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"infill/lm"
	"infill/samplers"
)

// Option is a row of the table of options. It defines an option's flag, JSON key and column, its row in the panel of
// the terminal UI, and its name in the methods of an evaluation.
type Option struct {
	// Name is the option's name in flags, methods and errors, such as "step-size".
	Name string
	// Help is a phrase that explains the option.
	Help string
	// Kind stands for a value in usage texts, such as "N" or "{auto|ALPHA}". For a switch (true or false) Kind is "".
	Kind string
	// Unit names the things that a number counts; "" if the value counts nothing.
	Unit string
	// Values are suggestions or, if Closed, the only valid values.
	Values []string
	Closed bool
	// Join separates the values of an option that may be given several times.
	Join string
	// Chains reports whether the option is a field of [Chains].
	Chains bool

	word      string  // a word that users may write instead of a number, such as "auto"
	of        float64 // the number that word stands for
	low, high float64 // bounds of a number
	want      string  // names the valid values: the end of the sentence `"x" is not …`
}

// These are the largest valid counts. Their only purpose is that a typing mistake does not ask for too much memory.
const (
	maxChains = 1 << 16
	maxTop    = 10000 // fills that a search can be asked to prove
	maxSteps  = 1 << 24
	maxPieces = 16 // pieces of one blank
)

const auto = "auto"

// table lists the options of a fill, in the order of the command's help.
var table = []Option{
	{Name: "slot", Kind: "N=WORD,...", Join: " ",
		Help: "what blank N, counted from 1, may take; once for each blank, see infill help templates",
		want: "a blank's number and all words it may take, as in 1=red,dark blue"},
	{Name: "pos", Kind: "[N=]PART,...", Join: " ", Values: partsOfSpeech,
		Help: "part of speech of the English word in each blank, or in blank N: " + strings.Join(partsOfSpeech, ", "),
		want: "a list of " + strings.Join(partsOfSpeech, ", ") + ", perhaps of one blank, as in noun or 1=noun,verb"},
	{Name: "ban", Kind: "WORD,...", Join: ",", Help: "words that no blank may hold",
		want: "a list of words, as in red,blue"},
	{Name: "fill", Kind: "{words|tokens|any}", Closed: true, Values: texts([]FillKind{fillWords, fillTokens, FillAny}),
		Help: "what a blank may take: words; words and punctuation; or any token, word pieces included"},
	{Name: "case", Kind: "{auto|keep}", Closed: true, Values: []string{auto, string(caseKeep)},
		Help: "give fills capitals as the text asks for them, or keep the model's letters"},
	{Name: "distinct", Closed: true, Values: []string{"false", "true"},
		Help: "no two blanks hold the same; those of one name count as one"},
	{Name: "blank", Kind: "TEXT", Help: "a further spelling of a blank, beside [MASK], ___ and <mask>", want: "a text"},
	{Name: "context", Kind: "TEXT", want: "a text",
		Help: "a text that the model reads before each template: the sentence before, a definition, the original"},
	{Name: "top", Kind: "N", Unit: "fills", Help: "fills to print", low: 1, high: maxChains,
		want: fmt.Sprintf("a whole number from 1 to %d", maxChains)},
	{Name: "order", Kind: "{l2r|r2l|N,N,...}", Values: texts([]Order{orderLeftToRight, orderRightToLeft}),
		Help: "order of the chain rule: left to right, right to left, or the blanks as numbered"},
	{Name: "budget", Kind: "{ROWS|SECONDSs}", Values: strings.Fields("500 1000 2000 4000 10000 1s 5s 20s"),
		Help: "model rows, or seconds as in 2s, that a search or draws may cost"},
	{Name: "samples", Kind: "{auto|N}", Unit: "draws", Values: strings.Fields("auto 1 5 10 25 50 100"),
		Help: "independent draws from the model; with a sampler its chains, each of which ends in one sample",
		word: auto, low: 1, high: maxChains, want: fmt.Sprintf("auto, or a whole number from 1 to %d", maxChains)},
	{Name: "temperature", Kind: "T",
		Help:   "of draws: each conditional over the vocabulary to the power 1/T; of chains: exp(U/T)",
		Values: strings.Fields("0.5 0.7 0.8 1 1.2 1.5 2"), low: 1e-6, high: 1e6, // so that U/T stays finite
		want: "a number from 0.000001 to 1000000"},
	{Name: "rank", Kind: "{distinct|final}", Closed: true, Values: texts([]Rank{rankDistinct, RankFinal}),
		Help: "of draws and chains: list the distinct fills, or each draw and each chain's final state with repeats"},
	{Name: "seed", Kind: "N", Help: "start of all random numbers; drawn and printed when not given",
		high: math.MaxUint64, want: "a whole number of 0 or more, below 2^64"},
	{Name: "sampler", Kind: "NAME", Chains: true, Values: Samplers(),
		Help: "run chains of a sampler, see infill help samplers; one of " + strings.Join(Samplers(), ", ")},
	{Name: "energy", Kind: "{pll|filled}", Chains: true, Closed: true, Values: texts(lm.Energy.Values("")),
		Help: "U of the chains: the pseudo-log-likelihood, or with nothing masked, for comparison"},
	{Name: "steps", Kind: "N", Unit: "steps", Chains: true, Help: "steps of each chain, the warm-up included",
		Values: strings.Fields("0 10 20 50 100 200 500 1000"), high: maxSteps,
		want: fmt.Sprintf("a whole number from 0 to %d", maxSteps)},
	{Name: "warm-up", Kind: "{half|N}", Unit: "steps", Chains: true, Values: []string{"half"}, word: "half",
		of:   HalfSteps,
		Help: "first steps that are not drawn from; half is half of the steps", high: maxSteps,
		want: "a whole number of 0 or more, or half"},
	{Name: "step-size", Kind: "{auto|ALPHA}", Chains: true, Values: strings.Fields("auto 0.1 0.2 0.5 1 2 5 10 50"),
		Help: "changing a slot costs 1/ALPHA nats; auto adapts it in the warm-up", word: auto,
		low: math.SmallestNonzeroFloat64, high: math.MaxFloat64, want: "a number above 0, or auto"},
	{Name: "balance", Kind: "{auto|BETA|NAME}", Chains: true, Values: append([]string{auto},
		samplers.BalanceNames()...),
		Help: "what an energy difference weighs in a proposal: a power from 0.5 to 1, or one of " +
			strings.Join(samplers.BalanceNames(), ", "),
		want: "one of auto, " + strings.Join(samplers.BalanceNames(), ", ") + ", or a number from 0.5 to 1"},
	{Name: "gradient", Kind: "{auto|local|full}", Chains: true, Closed: true,
		Values: append([]string{auto}, texts(lm.Gradient.Values(""))...),
		Help:   "what proposals look at; auto is the sampler's own choice"},
	{Name: "candidates", Kind: "N", Unit: "tokens", Chains: true, Values: strings.Fields("10 50 100 250 500 1000 0"),
		Help: "keep a slot to the model's N most probable tokens; 0 is the whole vocabulary", high: math.MaxInt32,
		want: "a whole number of 0 (the whole vocabulary) or more"},
	{Name: "initial", Kind: "NAME", Chains: true,
		Values: texts([]StartKind{startModel, startRandom, StartShared, StartMask}),
		Help:   "where chains start, see infill help samplers: model, random, shared, mask or fill:WORD,..."},
}

// Table lists the options of a fill, in the order of the command's help.
func Table() []Option { return slices.Clone(table) }

// Find returns the row of an option, or the zero Option for an unknown name. Find accepts the spellings of JSON too: _
// for -, and "slots" for "slot".
func Find(name string) Option {
	if name = strings.ReplaceAll(name, "_", "-"); name == "slots" {
		name = "slot"
	}
	for _, row := range table {
		if row.Name == name {
			return row
		}
	}
	return Option{}
}

// fields returns pointers to the options' values, by name. If o.Chains is nil, those of chains point into a copy.
func (o *Options) fields() map[string]any {
	c := o.Chains
	if c == nil {
		copied := DefaultChains("")
		c = &copied
	}
	return map[string]any{
		"slot": &o.Slots, "pos": &o.Speech, "ban": &o.Ban, "fill": &o.Fill, "case": &o.Case, "distinct": &o.Distinct,
		"blank": &o.Blank, "context": &o.Context, "top": &o.Top, "order": &o.Order, "budget": &o.Budget,
		"samples": &o.Samples, "temperature": &o.Temperature, "rank": &o.Rank, "seed": &o.Seed,
		"sampler": &c.Sampler, "energy": &c.Energy, "steps": &c.Steps, "warm-up": &c.WarmUp, "step-size": &c.StepSize,
		"balance": &c.Balance, "gradient": &c.Gradient, "candidates": &c.Candidates, "initial": &c.Initial,
	}
}

// Get returns the option's value in o as text.
func (t Option) Get(o *Options) string { return t.text(o, o.fields()[t.Name]) }

// text returns the value that pointer, a field of o, points to.
func (t Option) text(o *Options, pointer any) string {
	if t.Name == "sampler" && o.Chains != nil && o.Chains.Sampler != "" {
		return o.Chains.own().String()
	}
	field := reflect.ValueOf(pointer).Elem()
	if m, ok := field.Interface().(encoding.TextMarshaler); ok {
		text, _ := m.MarshalText() // no MarshalText of an option fails
		return string(text)
	}
	switch text := fmt.Sprint(field.Interface()); {
	case text == "" && len(t.Values) > 0 && t.Values[0] == auto:
		return auto
	case t.word != "" && text == strconv.Itoa(int(t.of)):
		return t.word
	default:
		return text
	}
}

// Set reads text as the option's value. An error completes the sentence `"x" is not …`. Validate checks combinations.
func (t Option) Set(o *Options, text string) error {
	changed := t.copied(o)
	if t.Name == "sampler" {
		spec, err := samplers.ParseList(text)
		if err != nil || len(spec) != 1 {
			return errors.New("a sampler, as in dmala:step-size=0.4,balance=sqrt")
		}
		if err := changed.Take(spec[0]); err != nil {
			return err
		}
		*o = changed
		return nil
	}
	pointer := changed.fields()[t.Name]
	if u, ok := pointer.(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil && t.want == "" {
			return err
		} else if err != nil || t.check(&changed, pointer) != nil {
			return errors.New(t.wanted())
		}
		*o = changed
		return nil
	}
	var err error
	field, whole := reflect.ValueOf(pointer).Elem(), strings.TrimSuffix(text, ".0") // pandas writes 3.0 beside gaps
	switch kind := field.Kind(); {
	case t.word != "" && text == t.word:
		field.Set(reflect.ValueOf(t.of).Convert(field.Type()))
	case kind == reflect.Bool:
		var value bool
		value, err = strconv.ParseBool(text)
		field.SetBool(value)
	case kind == reflect.Int:
		var value int
		value, err = strconv.Atoi(whole)
		field.SetInt(int64(value))
	case kind == reflect.Uint64:
		var value uint64
		value, err = strconv.ParseUint(whole, 10, 64)
		field.SetUint(value)
	case kind == reflect.Float64:
		var value float64
		value, err = strconv.ParseFloat(text, 64)
		field.SetFloat(value)
	case len(t.Values) > 0 && t.Values[0] == auto && text == auto:
		field.SetString("")
	default:
		field.SetString(text)
	}
	if err != nil || t.check(&changed, pointer) != nil || text != t.word && !t.within(field) {
		return errors.New(t.wanted())
	}
	*o = changed
	return nil
}

// within returns false for a number outside the option's bounds and for NaN, and true for other kinds of values.
func (t Option) within(field reflect.Value) bool {
	if kind := field.Kind(); kind != reflect.Int && kind != reflect.Float64 {
		return true
	}
	x := field.Convert(reflect.TypeFor[float64]()).Float()
	return x >= t.low && x <= t.high
}

// copied returns a copy of o that the caller may change. If the option is a field of Chains, the copy has Chains.
func (t Option) copied(o *Options) Options {
	changed := *o
	switch {
	case t.Chains && o.Chains == nil:
		c := DefaultChains("")
		c.given = t.Name
		changed.Chains = &c
	case o.Chains != nil:
		c := *o.Chains
		changed.Chains = &c
	}
	return changed
}

// wanted names the valid values, as the end of the sentence `"x" is not …`.
func (t Option) wanted() string {
	if t.want == "" {
		return "one of " + strings.Join(t.Values, ", ")
	}
	return t.want
}

// check returns an error for a number outside its bounds, and for a value that is not among the valid ones.
func (t Option) check(o *Options, pointer any) error {
	field := reflect.ValueOf(pointer).Elem()
	ok := true
	switch field.Kind() {
	case reflect.Int, reflect.Float64:
		ok = t.within(field) || t.word != "" && field.Convert(reflect.TypeFor[float64]()).Float() == t.of
	case reflect.String:
		value := t.text(o, pointer)
		if t.Name == "balance" && value != auto {
			ok = new(samplers.Balance).Set(value) == nil
		}
		if t.Name == "order" {
			ok = new(Order).UnmarshalText([]byte(value)) == nil
		}
		ok = ok && (!t.Closed || slices.Contains(t.Values, value))
	case reflect.Struct:
		if b, is := field.Interface().(Budget); is {
			ok = b.bounds()
		}
	case reflect.Slice:
		ok = !slices.Contains(o.Ban, "")
	case reflect.Map:
		for n, list := range field.Interface().(Lists) {
			ok = ok && len(list) > 0 && !slices.Contains(list, "") && (n > 0 || t.Name == "pos" && n == 0)
			for _, word := range list {
				ok = ok && (t.Name != "pos" || slices.Contains(partsOfSpeech, word))
			}
		}
	}
	if !ok {
		return wrong(t.Name, "%q is not %s", t.text(o, pointer), t.wanted())
	}
	return nil
}

// decode reads a JSON value: a string as for the flag, a number, true or false, a list of these, or an object for
// options with keys. null and "" leave the option unchanged. An error's text completes the sentence `… is not …`.
func (t Option) decode(o *Options, value json.RawMessage) error {
	text, scalar := scalarText(value)
	if scalar && text == "" {
		return nil
	}
	if scalar {
		return t.Set(o, text)
	}
	changed := t.copied(o)
	pointer := changed.fields()[t.Name]
	if readLists(pointer, value) != nil || t.check(&changed, pointer) != nil {
		return errors.New(t.wanted())
	}
	*o = changed
	return nil
}

// readLists reads a JSON list, or an object of lists, into a *Words, *Order or *Lists. Other pointers are an error.
func readLists(pointer any, value json.RawMessage) error {
	taker, ok := pointer.(interface{ setList([]string) error })
	if !ok {
		return errList
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		texts, ok := scalarTexts(list)
		if !ok {
			return errList
		}
		return taker.setList(texts)
	}
	lists, ok := pointer.(*Lists)
	var object map[string]json.RawMessage
	if !ok || json.Unmarshal(value, &object) != nil {
		return errList
	}
	*lists = Lists{}
	for number, value := range object {
		var words []string
		if text, scalar := scalarText(value); scalar {
			words, _ = splitWords(text) // if the text is not a list of words, words is nil and add refuses it
		} else if json.Unmarshal(value, &list) == nil {
			words, _ = scalarTexts(list)
		}
		if err := lists.add(number, words); err != nil {
			return err
		}
	}
	return nil
}

// scalarText returns a JSON value in the syntax of a flag, "" for null. For lists and objects, ok is false.
func scalarText(value json.RawMessage) (text string, ok bool) {
	switch {
	case len(value) == 0 || string(value) == "null":
		return "", true
	case value[0] == '"':
		return text, json.Unmarshal(value, &text) == nil
	}
	return string(value), value[0] != '[' && value[0] != '{'
}

func scalarTexts(values []json.RawMessage) (texts []string, ok bool) {
	for _, value := range values {
		text, ok := scalarText(value)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// Words is a list of words. Its text form has commas between the words; a word with a comma stands in quotes.
type Words []string

// UnmarshalText reads words with commas between them. An empty text gives an empty list.
func (w *Words) UnmarshalText(text []byte) error {
	if strings.TrimSpace(string(text)) == "" {
		*w = nil
		return nil
	}
	words, err := splitWords(string(text))
	if err != nil {
		return err
	}
	return w.setList(words)
}

// MarshalText writes words as UnmarshalText reads them.
func (w Words) MarshalText() ([]byte, error) { return []byte(joinWords(w)), nil }

func (w *Words) setList(values []string) error {
	list, err := trimmed(values)
	*w = list
	return err
}

// Lists are words by the number of a blank, written "1=red,dark blue 2=sky". Words without a number are under 0.
type Lists map[int][]string

var listStart = regexp.MustCompile(`(?:^|\s)(\d+)\s*=`)

// UnmarshalText reads lists of words as in "1=red,dark blue 2=sky".
func (l *Lists) UnmarshalText(text []byte) error {
	*l = Lists{}
	all := string(text)
	starts := append(listStart.FindAllStringSubmatchIndex(all, -1), []int{len(all)})
	if words := strings.TrimSpace(all[:starts[0][0]]); words != "" {
		if err := l.addText("0", words); err != nil {
			return err
		}
	}
	for i, at := range starts[:len(starts)-1] {
		if err := l.addText(all[at[2]:at[3]], all[at[1]:starts[i+1][0]]); err != nil {
			return err
		}
	}
	return nil
}

// MarshalText writes lists as UnmarshalText reads them.
func (l Lists) MarshalText() ([]byte, error) {
	var lists []string
	for _, n := range slices.Sorted(maps.Keys(l)) {
		list := joinWords(l[n])
		if n > 0 {
			list = strconv.Itoa(n) + "=" + list
		}
		lists = append(lists, list)
	}
	return []byte(strings.Join(lists, " ")), nil
}

// setList reads values such as "1=red,blue", each the list of a blank. Values without "=" are words for all blanks.
func (l *Lists) setList(values []string) error {
	*l = Lists{}
	var all []string
	for _, text := range values {
		if number, list, found := strings.Cut(text, "="); !found {
			all = append(all, text)
		} else if err := l.addText(number, list); err != nil {
			return err
		}
	}
	if all == nil {
		return nil
	}
	return l.add("0", all)
}

func (l *Lists) addText(number, text string) error {
	words, err := splitWords(text)
	if err != nil {
		return err
	}
	return l.add(number, words)
}

var errList = errors.New("a list of words for each blank")

func (l *Lists) add(number string, values []string) error {
	n, err := strconv.Atoi(strings.TrimSpace(number))
	list, wrong := trimmed(values)
	if err != nil || wrong != nil || n < 0 || (*l)[n] != nil {
		return errList
	}
	(*l)[n] = list
	return nil
}

// trimmed returns the values without the space around them. It returns an error if the list or a word is empty.
func trimmed(values []string) (list []string, err error) {
	for _, word := range values {
		list = append(list, strings.TrimSpace(word))
	}
	if list == nil || slices.Contains(list, "") {
		return nil, errList
	}
	return list, nil
}

// splitWords cuts a text at its commas. A comma inside quotes does not cut.
func splitWords(text string) ([]string, error) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, ","), nil
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.LazyQuotes, reader.TrimLeadingSpace = true, true
	return reader.Read()
}

// joinWords writes words in the form that splitWords reads.
func joinWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; strings.ContainsAny(word, `",`) {
			quoted[i] = `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
		}
	}
	return strings.Join(quoted, ",")
}
