package batch

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/lines"
	"infill/internal/option"
	"infill/internal/rawjson"
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
	Given []ask.Given
	Key   string // the column with the text

	Variants int     `option:"variants" default:"4" minimum:"1" help:"variants of each text"`
	Rate     float64 `option:"rate" default:"0.15" exclusiveMinimum:"0" maximum:"1" help:"share of the words to mask, at least one"`
	// Blanks, if not 0, is used instead of Rate.
	Blanks        int  `option:"blanks" minimum:"0" help:"words to mask, instead of a share; 0 goes by --rate"`
	KeepStopWords bool `option:"keep-stop-words" help:"never mask the, of, not and the like (English)"`
	// Protect lists texts and patterns that are never masked, see [tokenize.Find].
	Protect []string `option:"protect" word:"TEXT,..." help:"words and other texts that are never masked; ~ begins a pattern, as in ~[A-Z]+-[0-9]+"`
	// Context is what the model reads before: "none", or "original", the text.
	Context      string `option:"context" default:"none" enum:"none,original" help:"what the model reads before the text; original is the text itself, whose masked words do not come back"`
	NotOriginal  bool   `option:"not-original" help:"no blank takes a word that was masked"`
	Distinct     bool   `option:"distinct" help:"all variants of a text differ from it and from each other"`
	WithOriginal bool   `option:"with-original" help:"the text itself as variant 0"`

	found   sync.Map          // the texts of Protect that occur in some record
	renamed map[string]string // the name in the output of each column of the input
	names   []string          // all of these
}

var _ work = (*Augment)(nil)

// attempts bounds the draws for one variant, if some repeat a text.
const attempts = 8

func (a *Augment) column() string                     { return a.Key }
func (a *Augment) options([]string) ([]string, error) { return nil, nil }

// layout puts a variant's columns behind the input's, its text in place.
func (a *Augment) layout(input []string, _ Form) Layout {
	a.renamed = rawjson.Beside(input, a.Key, func(name string) bool { return slices.Contains(variantKeys, name) })
	if !slices.Contains(input, a.Key) { // no record has the text
		a.renamed[a.Key] = a.Key
		input = append([]string{a.Key}, input...)
	}
	own := []string{a.renamed[a.Key]}
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

func (a *Augment) request() (infill.Request, error) {
	r, err := ask.NewRequest("", append(slices.Clone(a.Given), ask.MustGive("samples", "1")))
	r.Top = 1
	return r, err
}

var augmentOptions = option.Of(option.Owner{Zero: Augment{}})

// Settle writes the defaults of fields that are zero.
func (a *Augment) Settle() { augmentOptions.Settle(a) }

// Check returns an *infill.OptionError for the first wrong setting.
func (a *Augment) Check() error {
	err := ask.OptionError(augmentOptions.Check(a))
	if err != nil {
		return err
	}
	for _, p := range a.Protect {
		_, err := tokenize.Find("", p)
		if err != nil {
			return &infill.OptionError{Option: "protect", Reason: err.Error()}
		}
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

var variantKeys = rawjson.Keys[variant]()

// do returns a row for each variant, with the columns of variant last.
func (a *Augment) do(ctx context.Context, r Record, form Form) (made Rows, err error) {
	variants, err := a.vary(ctx, r)
	if err != nil {
		return made, err
	}
	made.Missing = a.Variants - len(variants)
	if a.WithOriginal {
		made.Missing++
	}
	copied := r.Object.Rename(a.renamed)
	at := slices.IndexFunc(r.Object, func(f rawjson.Field) bool { return f.Key == a.Key })
	for _, v := range variants {
		if form == formText {
			made.Lines = append(made.Lines, json.RawMessage(rawjson.Quote(lines.One(v.text))))
			continue
		}
		encoded, err := rawjson.Encode(v)
		if err != nil {
			return made, err
		}
		added := encoded.Object()
		if form.table() {
			cells := []string{v.text}
			for _, field := range added {
				cells = append(cells, rawjson.Plain(field.Value))
			}
			made.addCells(cells)
			continue
		}
		copied[at].Value = rawjson.Quote(v.text)
		made.Lines = append(made.Lines, slices.Concat(copied, added).Append(nil))
	}
	if form.table() {
		made.Copied = cellsUnder(a.names, copied)
	}
	return made, nil
}

func (a *Augment) vary(ctx context.Context, r Record) (made []variant, err error) {
	text, err := textOf(r.Object, a.Key)
	if err != nil {
		return nil, err
	}
	all, words, err := a.words(text)
	if errors.Is(err, tokenize.ErrUnwantedBlank) {
		return nil, errHoldsBlank
	}
	if err != nil {
		return nil, rejectedRecord(err)
	}
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
	seen := map[string]bool{tokenize.Folded(text): a.Distinct}
	filler := a.Filler.For(r.caller())
	for number := 1; number <= a.Variants; number++ {
		var key [32]byte
		for i, n := range []uint64{uint64(request.Seed), uint64(r.Number), uint64(number)} {
			binary.LittleEndian.PutUint64(key[8*i:], n)
		}
		random := rand.New(rand.NewChaCha8(key))
		for range attempts {
			v, err := a.draw(ctx, filler, random, request, text, words, count)
			if err != nil {
				return nil, rejectedRecord(err)
			}
			folded := tokenize.Folded(v.text)
			if !seen[folded] {
				v.Number = number
				seen[folded] = a.Distinct
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

var errHoldsBlank = reject("the text holds a blank itself: fill it with infill run first")

// draw masks count of the words, which are byte ranges, and fills them.
func (a *Augment) draw(ctx context.Context, filler *infill.Filler, random *rand.Rand, r infill.Request, text string,
	words [][2]int, count int) (*variant, error) {
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
		r.Fit.Ban = slices.Clone(r.Fit.Ban)
		for _, word := range masked { // a cased model can write it in other ways
			small := strings.ToLower(word)
			r.Fit.Ban = append(r.Fit.Ban, word, small, tokenize.Like(small, "A"), strings.ToUpper(word))
		}
	}
	plan, err := filler.Plan(ctx, r)
	if errors.Is(err, tokenize.ErrOnlyBlanks) {
		return nil, reject("too few words to mask %d of them: the model needs others to read; mask fewer, or "+
			"lengthen the text", len(masked))
	}
	if err != nil {
		return nil, err
	}
	if plan.Slots() != len(masked) {
		return nil, errHoldsBlank
	}
	result, err := plan.Fill(ctx, nil)
	if err != nil {
		return nil, err
	}
	f := &result.Fills[0]
	return &variant{Original: text, Masked: masked, Fills: f.Values, LogLikelihood: &f.LogLikelihood, text: f.Text}, nil
}

// words counts words that are not protected, and returns those to mask.
func (a *Augment) words(text string) (all int, mayMask [][2]int, err error) {
	parts, err := a.Filler.Maskable(text, a.protected(text)...)
	for _, part := range parts {
		all++
		if !a.KeepStopWords || !tokenize.StopWord(text[part.Start:part.End]) {
			mayMask = append(mayMask, [2]int{part.Start, part.End})
		}
	}
	return all, mayMask, err
}

// protected returns the byte ranges in text of all texts of Protect.
func (a *Augment) protected(text string) (spans [][2]int) {
	for _, p := range a.Protect {
		found, _ := tokenize.Find(text, p) // Check has returned the error
		if found != nil {
			a.found.Store(p, true)
		}
		spans = append(spans, found...)
	}
	return spans
}
