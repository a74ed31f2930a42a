package batch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"infill/infill"
	"infill/internal/object"
	"infill/tokenize"
)

// Augment makes variants of each text: it masks words and fills them. All columns are
// kept, labels among them.
//
// Which words are masked, and what is drawn, follows from the seed, the number of the
// record and that of the variant, so that parts agree with the whole.
type Augment struct {
	Filler *infill.Filler
	// Options say how to draw a variant; start from AugmentOptions.
	Options infill.Options
	Key     string // the column with the text

	Variants int `flag:"variants" help:"variants of each text"`
	// Blanks, if not 0, stands for Rate.
	Rate   float64 `flag:"rate" help:"share of the words to mask, at least one"`
	Blanks int     `flag:"blanks" help:"words to mask, instead of a share"`
	// MinSpan and MaxSpan bound how many words in a row are masked together.
	MinSpan, MaxSpan int
	Parts            bool `flag:"parts" help:"mask the last piece of words of several pieces, instead of whole words"`
	KeepStopWords    bool `flag:"keep-stop-words" help:"never mask the, of, not and the like (English)"`
	// Protect compares letters of either case. Pattern matches words that are never masked; it may be nil.
	Protect []string `flag:"protect" value:"WORD,..." help:"WORD,... that are never masked"`
	Pattern *regexp.Regexp
	// Context is what the model reads before the masked text: nothing ("", ContextNone), or the text itself
	// (ContextOriginal), whose masked words are then kept out of the blanks.
	Context        string
	NotOriginal    bool    `flag:"not-original" help:"no blank takes a word that was masked"`
	MinProbability float64 `flag:"min-probability" help:"least probability of every fill, given the finished text"`
	Distinct       bool    `flag:"distinct" help:"no two variants of a text alike, none like the text"`
	WithOriginal   bool    `flag:"with-original" help:"the text itself as variant 0"`

	Computing map[string]string // as in Fill
}

var _ work = (*Augment)(nil)

// AugmentOptions returns how a variant is drawn: word by word, from left to right or from right to left, each from the
// model with those drawn before it in their places.
func AugmentOptions() infill.Options {
	o := infill.DefaultOptions()
	o.Samples, o.Top = 1, 1
	return o
}

// What the model reads before a masked text.
const (
	ContextNone     = "none"
	ContextOriginal = "original"
)

// attempts is how many draws a variant may take until it keeps the rules.
const attempts = 8

func (a *Augment) column() string                                   { return a.Key }
func (a *Augment) aligned() bool                                    { return false }
func (a *Augment) lines(row object.Object) ([]object.Object, error) { return []object.Object{row}, nil }
func (a *Augment) plain(row object.Object) string                   { return oneLine(text(row.Get(a.Key))) }

func (a *Augment) settings() map[string]string {
	s := settings(a.Filler, &a.Options)
	s["work"], s["column"] = "augment", a.Key
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("flag"); name != "" {
			s[name] = fmt.Sprint(v.Field(i).Interface())
		}
	}
	s["protect"], s["span"] = strings.Join(a.Protect, ","), fmt.Sprintf("%d-%d", a.MinSpan, a.MaxSpan)
	if a.Pattern != nil {
		s["protect-pattern"] = a.Pattern.String()
	}
	if a.Context == ContextOriginal {
		s["context"] = a.Context
	}
	maps.Copy(s, a.Computing)
	return s
}

func (a *Augment) environment(ctx context.Context) (map[string]string, error) {
	return environment(ctx, a.Filler)
}

// Check returns an *infill.OptionError for the first wrong setting.
func (a *Augment) Check() error {
	wrong := func(option, format string, args ...any) error {
		return &infill.OptionError{Option: option, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.Variants < 1:
		return wrong("variants", "%d is not a whole number of 1 or more", a.Variants)
	case !(a.Rate > 0 && a.Rate <= 1):
		return wrong("rate", "%v is not a number above 0 and at most 1", a.Rate)
	case a.Blanks < 0:
		return wrong("blanks", "%d is not a whole number of 1 or more", a.Blanks)
	case a.MinSpan < 1 || a.MaxSpan < a.MinSpan:
		return wrong("span", "%d-%d is not a range of numbers of 1 or more", a.MinSpan, a.MaxSpan)
	case !slices.Contains([]string{"", ContextNone, ContextOriginal}, a.Context):
		return wrong("context", "%q is not one of %s, %s", a.Context, ContextNone, ContextOriginal)
	case !(a.MinProbability >= 0 && a.MinProbability < 1):
		return wrong("min-probability", "%v is not a number from 0 to below 1", a.MinProbability)
	}
	return a.Options.Validate()
}

// Do returns a row for each variant, with its text instead of the record's. The columns variant, original,
// masked, fills and log_likelihood come last.
func (a *Augment) Do(ctx context.Context, r Record) ([]object.Object, error) {
	text, err := textOf(r, a.Key)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"variant", "original", "masked", "fills", "log_likelihood"} {
		if r.Object.Get(key) != nil {
			return nil, reject("the key %q is one of the result: rename it", key)
		}
	}
	words, err := a.words(text)
	if err != nil {
		return nil, err
	}
	eligible := 0
	for _, w := range words {
		if w.eligible {
			eligible++
		}
	}
	if eligible == 0 {
		return nil, reject("no word that may be masked")
	}
	var rows []object.Object
	row := func(number int, variant string, masked, fills []string, u *float64) error {
		o := slices.Clone(r.Object)
		o[slices.IndexFunc(o, func(f object.Field) bool { return f.Key == a.Key })].Value = object.Quote(variant)
		for _, field := range []struct {
			key   string
			value any
		}{{"variant", number}, {"original", text}, {"masked", masked}, {"fills", fills}, {"log_likelihood", u}} {
			value, err := object.Encode(field.value)
			if err != nil {
				return err
			}
			o = append(o, object.Field{Key: field.key, Value: value})
		}
		rows = append(rows, o)
		return nil
	}
	if a.WithOriginal {
		if err := row(0, text, []string{}, []string{}, nil); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{text: a.Distinct}
	made := 0
	for v := 1; v <= a.Variants; v++ {
		random := variantRandom(a.Options.Seed, r.Number, v)
		for range attempts {
			fill, masked, err := a.draw(ctx, random, text, words, eligible)
			if err != nil {
				return nil, rejected(err)
			}
			if fill == nil || seen[fill.Text] {
				continue
			}
			seen[fill.Text] = a.Distinct
			made++
			if err := row(v, fill.Text, masked, fill.Values, &fill.LogLikelihood); err != nil {
				return nil, err
			}
			break
		}
	}
	if made == 0 {
		return nil, reject("no variant: none of %d draws kept to the rules; give them more room", attempts*a.Variants)
	}
	return rows, nil
}

// variantRandom is the random stream of a variant.
func variantRandom(seed uint64, record int64, variant int) *rand.Rand {
	var b bytes.Buffer
	for _, n := range []uint64{seed, uint64(record), uint64(variant)} {
		b.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	return rand.New(rand.NewChaCha8(sha256.Sum256(b.Bytes())))
}

// draw makes a variant, nil if it breaks a rule.
func (a *Augment) draw(ctx context.Context, random *rand.Rand, text string, words []word,
	eligible int) (*infill.Fill, []string, error) {
	count := a.Blanks
	if count == 0 {
		count = max(1, int(math.Round(a.Rate*float64(len(words)))))
	}
	chosen := a.choose(random, words, min(count, eligible))
	var template strings.Builder
	var masked []string
	o, end := a.Options, 0
	for i, w := range words {
		if chosen[i] {
			template.WriteString(text[end:w.from] + "[MASK]")
			masked, end = append(masked, text[w.from:w.to]), w.to
		}
	}
	template.WriteString(text[end:])
	if a.Context == ContextOriginal {
		o.Context = text
	}
	if o.Seed = random.Uint64(); a.NotOriginal || o.Context != "" {
		o.Ban = append(slices.Clone(o.Ban), masked...)
	}
	plan, err := a.Filler.Plan(infill.Request{Template: template.String(), Options: o, Originals: masked})
	if errors.Is(err, tokenize.ErrOnlyBlanks) {
		return nil, nil, reject("too few words to mask %d of them: the model needs others to read; mask fewer, or "+
			"lengthen the text", len(masked))
	}
	if err != nil {
		return nil, nil, err
	}
	if plan.Slots() != len(masked) {
		return nil, nil, reject("the text holds a blank itself: fill it with infill run first")
	}
	result, err := plan.Fill(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	fill := &result.Fills[0]
	if a.MinProbability > 0 {
		read, err := a.Filler.Template(template.String())
		if err != nil {
			return nil, nil, err
		}
		logp, err := a.Filler.LogConditionals(ctx, read, fill.TokenIDs)
		if err != nil {
			return nil, nil, err
		}
		for slot, id := range fill.TokenIDs {
			if float64(logp[slot][id]) < math.Log(a.MinProbability) {
				return nil, nil, nil
			}
		}
	}
	return fill, masked, nil
}

// choose picks words, in spans, [words].
func (a *Augment) choose(random *rand.Rand, words []word, count int) []bool {
	chosen := make([]bool, len(words))
	order := random.Perm(len(words))
	for _, at := range order {
		length := a.MinSpan + random.IntN(a.MaxSpan-a.MinSpan+1)
		for i := at; i < min(at+length, len(words)) && count > 0 && words[i].eligible && !chosen[i]; i++ {
			chosen[i] = true
			count--
		}
	}
	return chosen
}

// word is a word of a text, or the part of it that may be masked, in bytes.
type word struct {
	from, to int
	eligible bool
}

// words cuts a text by Unicode's rules (UAX #29). What begins with no letter is no word, nor
// is the short form of one behind an apostrophe ('s).
func (a *Augment) words(text string) ([]word, error) {
	var pieces *tokenize.Encoding
	if a.Parts {
		var err error
		if pieces, err = a.Filler.Plain(text); err != nil {
			return nil, rejected(err)
		}
	}
	var words []word
	state, from := -1, 0
	for rest := text; rest != ""; {
		var segment string
		segment, rest, state = uniseg.FirstWordInString(rest, state)
		to := from + len(segment)
		first, _ := utf8.DecodeRuneInString(segment)
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		short := strings.ContainsRune("'’", before) &&
			slices.Contains([]string{"s", "t", "d", "m", "re", "ve", "ll", "em"}, strings.ToLower(segment))
		if unicode.IsLetter(first) && !short {
			w := word{from, to, a.mayMask(segment)}
			if a.Parts {
				w.from, w.to, w.eligible = lastPiece(pieces, w)
			}
			words = append(words, w)
		}
		from = to
	}
	return words, nil
}

// lastPiece narrows a word to its last piece; one of a single piece is not eligible.
func lastPiece(pieces *tokenize.Encoding, w word) (from, to int, eligible bool) {
	number := -1
	for i, offsets := range pieces.Offsets {
		switch {
		case offsets[0] == w.from && offsets[1] > offsets[0]:
			number = pieces.Words[i]
		case number >= 0 && pieces.Words[i] == number && offsets[1] == w.to:
			return offsets[0], w.to, w.eligible
		}
	}
	return w.from, w.to, false
}

func (a *Augment) mayMask(word string) bool {
	return !(a.KeepStopWords && tokenize.StopWord(word) || a.Pattern != nil && a.Pattern.MatchString(word) ||
		slices.ContainsFunc(a.Protect, func(p string) bool { return strings.EqualFold(p, word) }))
}
