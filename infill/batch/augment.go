package batch

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"infill/infill"
	"infill/internal/lines"
	"infill/internal/object"
	"infill/internal/option"
	"infill/tokenize"
)

// Augment makes variants of each record's text: it masks words and fills them.
// All other columns stay, such as labels.
//
// The seed, the record's number and the variant's number determine every draw,
// so that parts agree with the whole.
type Augment struct {
	Filler *infill.Filler
	// Given are options that say how to draw a variant's fills: word by word in an
	// order, each from the model given the words drawn before.
	Given []infill.Given
	Key   string // the column with the text

	Variants int     `option:"variants" default:"4" minimum:"1" help:"variants of each text"`
	Rate     float64 `option:"rate" default:"0.15" exclusiveMinimum:"0" maximum:"1" help:"share of the words to mask, at least one"`
	// Blanks, if not 0, is used instead of Rate.
	Blanks        int  `option:"blanks" minimum:"0" help:"words to mask, instead of a share; 0 goes by --rate"`
	KeepStopWords bool `option:"keep-stop-words" help:"never mask the, of, not and the like (English)"`
	// Protect lists texts that are never masked, in any capitals, where they
	// stand alone and not within a word.
	Protect []string `option:"protect" word:"TEXT,..." help:"words and other texts that are never masked"`
	// Context chooses what the model reads before the masked text: nothing
	// ("none") or the text itself ("original").
	Context      string `option:"context" default:"none" enum:"none,original" help:"what the model reads before the text; original keeps the meaning, and masked words out of the blanks"`
	NotOriginal  bool   `option:"not-original" help:"no blank takes a word that was masked"`
	Distinct     bool   `option:"distinct" help:"all variants of a text differ from it and from each other"`
	WithOriginal bool   `option:"with-original" help:"the text itself as variant 0"`

	found   sync.Map          // the texts of Protect that occur in some record
	renamed map[string]string // the name in the output of each column of the input
	names   []string          // all of these
}

var _ work = (*Augment)(nil)

// attempts is the largest number of draws for one variant. If Distinct is set,
// a draw that repeats a text is dropped.
const attempts = 8

func (a *Augment) column() string                     { return a.Key }
func (a *Augment) options([]string) ([]string, error) { return nil, nil }

// layout puts the columns of a variant after those of the input. The variant's
// text takes the place of the text.
func (a *Augment) layout(input []string, _ Form) Layout {
	a.renamed, _ = renames(input, a.Key, func(name string) bool { return slices.Contains(variantKeys, name) })
	own := []string{a.renamed[a.Key]}
	if own[0] == "" { // no record has the text
		a.renamed[a.Key] = a.Key
		own[0] = a.Key
		input = append([]string{a.Key}, input...)
	}
	var names []string
	for _, name := range input {
		names = append(names, a.renamed[name])
	}
	a.names = names
	return Layout{Own: append(own, variantKeys...), Copied: names, After: slices.Concat(names, variantKeys)}
}

func (a *Augment) warnings() (list []string) {
	for _, p := range a.Protect {
		if _, ok := a.found.Load(p); !ok {
			list = append(list, fmt.Sprintf("no text holds %q, which is protected", p))
		}
	}
	return list
}

func (a *Augment) settings(ctx context.Context) (map[string]string, error) {
	a.Settle()
	r, err := a.request()
	if err != nil {
		return nil, err
	}
	s, err := settings(ctx, a.Filler, r)
	for _, fact := range augmentOptions.Facts(a) {
		s[fact.Name] = fact.Text
	}
	return s, err
}

// request returns the request of one draw, without its template.
func (a *Augment) request() (infill.Request, error) {
	r, err := infill.NewRequest("", append(slices.Clone(a.Given), infill.MustGive("samples", "1")))
	r.Top = 1
	return r, err
}

var augmentOptions = option.Of(option.Owner{Zero: Augment{}})

// Settle writes the defaults of fields that are zero.
func (a *Augment) Settle() { augmentOptions.Settle(a) }

// Check returns an *infill.OptionError for the first wrong setting.
func (a *Augment) Check() error {
	err := augmentOptions.Check(a)
	var wrong *option.Error
	switch {
	case errors.As(err, &wrong):
		return &infill.OptionError{Option: wrong.Key, Reason: wrong.Reason}
	case slices.ContainsFunc(a.Protect, func(p string) bool { return p == "" || !utf8.ValidString(p) }):
		return &infill.OptionError{Option: "protect", Reason: "one of the texts is empty, or no UTF-8"}
	}
	r, err := a.request()
	if err != nil {
		return err
	}
	return r.Check()
}

// variant holds a variant's text and the columns that the variant adds to its record.
type variant struct {
	Number        int      `json:"variant"`
	Original      string   `json:"original"`
	Masked        []string `json:"masked"`
	Fills         []string `json:"fills"`
	LogLikelihood *float64 `json:"log_likelihood"`
	text          string
}

var variantKeys = object.Keys[variant]()

// do returns a row for each variant: the record's columns with the text
// replaced, and then the columns of variant.
func (a *Augment) do(ctx context.Context, r Record, form Form) (made Rows, err error) {
	variants, err := a.vary(ctx, r)
	if err != nil {
		return made, err
	}
	made.Missing = a.Variants - len(variants)
	if a.WithOriginal {
		made.Missing++
	}
	var copied object.Object
	at := -1 // the place of the text among the columns
	for i, field := range r.Object {
		copied = append(copied, object.Field{Key: a.renamed[field.Key], Value: field.Value})
		if field.Key == a.Key {
			at = i
		}
	}
	for _, v := range variants {
		if form == formText {
			made.Lines = append(made.Lines, json.RawMessage(object.Quote(lines.One(v.text))))
			continue
		}
		added, err := object.Of(v)
		if err != nil {
			return made, err
		}
		if form.table() {
			cells := []string{v.text}
			for _, field := range added {
				cells = append(cells, object.Plain(field.Value))
			}
			made.addCells(cells)
			continue
		}
		copied[at].Value = object.Quote(v.text)
		made.Lines = append(made.Lines, slices.Concat(copied, added).Append(nil))
	}
	if form.table() {
		made.Copied = cellsUnder(a.names, copied)
	}
	return made, nil
}

// vary returns the variants of a record.
func (a *Augment) vary(ctx context.Context, r Record) (made []variant, err error) {
	text, err := textOf(r.Object, a.Key)
	if err != nil {
		return nil, err
	}
	all, words := a.words(text)
	if words == nil {
		return nil, reject("no word that may be masked")
	}
	count := a.Blanks
	if count == 0 {
		count = max(1, int(math.Round(a.Rate*float64(all))))
	}
	count = min(count, len(words))
	if a.WithOriginal {
		made = append(made, variant{Original: text, Masked: []string{}, Fills: []string{}, text: text})
	}
	request, _ := a.request() // settings has returned the error
	seen := map[string]bool{text: a.Distinct}
	for number := 1; number <= a.Variants; number++ {
		var key [32]byte
		for i, n := range []uint64{uint64(request.Seed), uint64(r.Number), uint64(number)} {
			binary.LittleEndian.PutUint64(key[8*i:], n)
		}
		random := rand.New(rand.NewChaCha8(key))
		for range attempts {
			v, err := a.draw(ctx, random, request, text, words, count)
			if err != nil {
				return nil, rejectedRecord(err)
			}
			if !seen[v.text] {
				v.Number = number
				seen[v.text] = a.Distinct
				made = append(made, *v)
				break
			}
		}
	}
	if len(made) == 0 || len(made) == 1 && made[0].Number == 0 {
		return nil, reject("no variant: none of %d draws kept to the rules; give them more room", attempts*a.Variants)
	}
	return made, nil
}

// draw makes a variant of text by a request. It masks count of the words, which
// are byte ranges, and fills them.
func (a *Augment) draw(ctx context.Context, random *rand.Rand, r infill.Request, text string, words [][2]int,
	count int) (*variant, error) {
	chosen := slices.Clone(words)
	random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	chosen = chosen[:count]
	slices.SortFunc(chosen, func(a, b [2]int) int { return a[0] - b[0] })
	var template strings.Builder
	var masked []string
	end := 0
	for _, w := range chosen {
		template.WriteString(tokenize.BeforeBlank(text[end:w[0]]) + "[MASK]")
		masked = append(masked, text[w[0]:w[1]])
		end = w[1]
	}
	template.WriteString(text[end:])
	r.Template = template.String()
	r.Originals = masked
	r.Seed = random.Uint64()
	if a.Context == "original" {
		r.Context = text
	}
	if a.NotOriginal || r.Context != "" {
		r.Fit.Ban = append(slices.Clone(r.Fit.Ban), masked...)
	}
	plan, err := a.Filler.Plan(r)
	if errors.Is(err, tokenize.ErrOnlyBlanks) {
		return nil, reject("too few words to mask %d of them: the model needs others to read; mask fewer, or "+
			"lengthen the text", len(masked))
	}
	if err != nil {
		return nil, err
	}
	if plan.Slots() != len(masked) {
		return nil, reject("the text holds a blank itself: fill it with infill run first")
	}
	result, err := plan.Fill(ctx, nil)
	if err != nil {
		return nil, err
	}
	f := &result.Fills[0]
	return &variant{Original: text, Masked: masked, Fills: f.Values, LogLikelihood: &f.LogLikelihood, text: f.Text}, nil
}

// words returns the number of the words of a text, and the byte ranges of those that
// may be masked.
func (a *Augment) words(text string) (all int, mayMask [][2]int) {
	safe := a.protected(text)
	for _, part := range tokenize.Maskable(text) {
		all++
		kept := a.KeepStopWords && tokenize.StopWord(text[part.Start:part.End])
		protected := slices.ContainsFunc(safe, func(s []int) bool { return part.Start < s[1] && s[0] < part.End })
		if !kept && !protected {
			mayMask = append(mayMask, [2]int{part.Start, part.End})
		}
	}
	return all, mayMask
}

// wordRunes are what a word has.
var wordRunes = []*unicode.RangeTable{unicode.L, unicode.M, unicode.N}

// inWord reports whether two runes side by side are in one word.
func inWord(a, b rune) bool { return unicode.In(a, wordRunes...) && unicode.In(b, wordRunes...) }

// protected returns the byte ranges in text of all texts of Protect.
func (a *Augment) protected(text string) (spans [][]int) {
	for _, p := range a.Protect {
		// A text that looks equal is found, whichever way its accents are written.
		ways := regexp.QuoteMeta(norm.NFC.String(p)) + "|" + regexp.QuoteMeta(norm.NFD.String(p))
		for _, s := range regexp.MustCompile("(?i)"+ways).FindAllStringIndex(text, -1) {
			before, _ := utf8.DecodeLastRuneInString(text[:s[0]])
			first, _ := utf8.DecodeRuneInString(p)
			last, _ := utf8.DecodeLastRuneInString(p)
			after, _ := utf8.DecodeRuneInString(text[s[1]:])
			if !inWord(before, first) && !inWord(last, after) {
				spans = append(spans, s)
				a.found.Store(p, true)
			}
		}
	}
	return spans
}
