package infill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"infill/internal/lmtest"
	"infill/lm"
	"infill/tokenize"
)

// gapWords are the words of the model of gaps, after its special tokens.
func gapWords() []string {
	return append(fakeWords()[:6], strings.Fields(`the was open gate door wall hall garden kitchen cat ox lamp
		trees tree big idiot ##mill un ##seen ##known run runs walked saw dog anna
		table , . in house home room word farm`)...)
}

// gapModel is a fake model whose probabilities are tables: in has log P in a
// text by the word before the mask, and by "" after all others; alone has log P
// where nothing else is. A word that no table has is impossible in a text, and
// as common as most.
type gapModel struct {
	*lmtest.Model
	in    map[string]map[string]float32
	alone map[string]float32
	rows  atomic.Int64 // that were asked for
}

func newGapModel() *gapModel { return &gapModel{Model: lmtest.New(len(gapWords()), 40)} }

func (m *gapModel) For(*lm.Caller) lm.Asker { return m }

func (m *gapModel) LogProbabilities(ctx context.Context, rows []lm.Row) ([][][]float32, error) {
	m.rows.Add(int64(len(rows)))
	found := make([][][]float32, len(rows))
	for i, row := range rows {
		position := row.Positions[0]
		table, other := m.in[gapWords()[row.IDs[position-1]]], float32(-800)
		if table == nil {
			table = m.in[""]
		}
		if len(row.IDs) == 3 {
			table, other = m.alone, -9
		}
		var logp []float32
		for _, word := range gapWords() {
			value, given := table[word]
			if !given {
				value = other
			}
			logp = append(logp, value)
		}
		if row.Targets != nil {
			logp = logp[row.Targets[0] : row.Targets[0]+1]
		}
		found[i] = [][]float32{logp}
	}
	return found, m.Begin(ctx)
}

func (m *gapModel) gaps(t *testing.T, r GapsRequest) *Exercise {
	t.Helper()
	tokenizer, err := lmtest.Tokenizer(gapWords())
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(m, tokenizer).Gaps(t.Context(), r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return e
}

// keysOf lists what stands at the spans of the gaps, which are the keys.
func keysOf(t *testing.T, e *Exercise) []string {
	t.Helper()
	keys := []string{}
	for _, gap := range e.Gaps {
		if string([]rune(e.Text)[gap.Span[0]:gap.Span[1]]) != gap.Key {
			t.Errorf("%q: the gap of %q is at %v", e.Text, gap.Key, gap.Span)
		}
		keys = append(keys, gap.Key)
	}
	return keys
}

// TestGapArticle: behind a or an, wrong answers are words that may stand there.
func TestGapArticle(t *testing.T) {
	for text, want := range map[string]string{
		"a ": "door", "An": "apple", "he has an\n": "apple", "ran ": "apple door", "": "apple door", "ä a": "door",
	} {
		fits := slices.DeleteFunc([]string{"apple", "door"}, func(word string) bool { return !follower(text)(word) })
		if got := strings.Join(fits, " "); got != want {
			t.Errorf("behind %q: %s, want %s", text, got, want)
		}
	}
}

// TestGapWrongAnswers: each word is near one limit of what a wrong answer is, on
// one side or the other.
func TestGapWrongAnswers(t *testing.T) {
	m := newGapModel()
	// The key has -1: a wrong answer has less than -1 - log 300 = -6.704.
	m.in = map[string]map[string]float32{"": {"gate": -1, "door": -6.71, "wall": -8, "garden": -9, "cat": -10,
		"tree": -6.69, "hall": -8, "lamp": -8, "kitchen": -8, "ox": -8, "trees": -8, "big": -8,
		"idiot": -8, "##mill": -8, "un": -8, ",": -7}}
	// log 10 = 2.303
	m.alone = map[string]float32{"door": -6.7, "wall": -11.3, "hall": -6.69, "lamp": -11.31}
	for _, word := range []string{"table", "house", "home", "room", "word", "farm", "dog", "run", "anna"} {
		m.in[""][word] = -2 // too likely
	}
	for _, test := range []struct {
		options int
		below   float64
		want    []string
		warning string
	}{
		{5, 0, []string{"cat", "door", "garden", "gate", "wall"}, ""},
		{6, 0, []string{"cat", "door", "garden", "gate", "wall"}, "4 of 5 wrong answers are there"},
		{4, math.Exp(-8), []string{"cat", "garden", "gate"}, "2 of 3 wrong answers are there"},
		{0, 0, nil, ""},
	} {
		r := GapsRequest{Text: "the [gate] was open .", Options: test.options, Below: test.below}
		e := m.gaps(t, r)
		got := slices.Sorted(slices.Values(e.Gaps[0].Options))
		if !slices.Equal(got, test.want) || (len(e.Warnings) > 0) != (test.warning != "") ||
			!strings.Contains(strings.Join(e.Warnings, ""), test.warning) {
			t.Errorf("%d options below %v: %q, warnings %q", test.options, test.below, got, e.Warnings)
		}
		if e.Gaps[0].Probability != math.Exp(-1) {
			t.Errorf("the key has %v", e.Gaps[0].Probability)
		}
	}
}

// TestGapApart: a wrong answer costs the sentence so many bits, those of the gap and those
// of the words around it.
func TestGapApart(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{"garden": {"was": -9}, "cat": {"was": -5}, "": {"gate": -1, "wall": -8,
		"cat": -8, "garden": -8, "the": -2, "was": -2, "open": -2, ".": -2}}
	for _, word := range strings.Fields("door hall lamp tree table house home room word farm dog run anna") {
		m.in[""][word] = -2 // too likely
	}
	for _, test := range []struct {
		apart float64
		want  string
	}{
		// log2 e is 1.4427: the wall costs 7 nats, the cat 10 and the garden 14.
		{0, "cat,garden,gate,wall"}, {10, "cat,garden,gate,wall"}, {10.2, "cat,garden,gate"}, {14.4, "cat,garden,gate"},
		{14.5, "garden,gate"}, {20.1, "garden,gate"}, {20.3, ""},
	} {
		// No other sentence counts.
		r := GapsRequest{Text: "Wall wall wall. The [gate] was open. Wall", Options: 4, Apart: test.apart}
		m.rows.Store(0)
		e := m.gaps(t, r)
		got := strings.Join(slices.Sorted(slices.Values(e.Gaps[0].Options)), ",")
		if got != test.want || (len(e.Warnings) > 0) != (test.apart > 10) {
			t.Errorf("apart by %v bits: %s, want %s; warnings %q", test.apart, got, test.want, e.Warnings)
		}
		if strings.Contains(e.Signature, "|apart:") != (test.apart > 0) {
			t.Errorf("the signature is %s", e.Signature)
		}
		tokenizer, _ := lmtest.Tokenizer(gapWords())
		cost, err := New(m, tokenizer).GapsCost(r)
		if err != nil || int64(cost.Rows) < m.rows.Load() || m.rows.Load() < 2 {
			t.Errorf("%d rows were asked for, and the cost says %d, %v", m.rows.Load(), cost.Rows, err)
		}
	}
}

// TestGapWritten: answers in brackets all stay, with any seed, and wrong answers of the
// model fill up the number. Right ones are no rivals.
func TestGapWritten(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{"": {"gate": -1, "door": -1.2, "wall": -8, "garden": -9, "cat": -10}}
	for _, word := range strings.Fields("hall lamp tree table house home room word farm dog run anna") {
		m.in[""][word] = -2 // too likely
	}
	for typed, want := range map[string]struct {
		options        int
		right, answers string // sorted
		rivals         string
		warnings       int
	}{
		`[gate|ox|Big tree]`:    {0, "", "Big tree,gate,ox", "door", 0},
		`[ gate | =door | ox ]`: {0, "door", "door,gate,ox", "", 0},
		`[gate|=door]`:          {0, "door", "", "", 0},
		`[gate|a \| b|\=c|\]]`:  {0, "", "=c,],a | b,gate", "door", 0},
		`[gate|ox|a|b|c]`:       {3, "", "a,b,c,gate,ox", "door", 0},
		`[gate|wall|=door]`:     {5, "door", "cat,door,garden,gate,wall", "", 0},
		`[gate|Wall]`:           {4, "", "Wall,cat,garden,gate", "door", 0}, // wall would be Wall again
		`[gate|ox]`:             {6, "", "cat,garden,gate,ox,wall", "door", 1},
		`[gate|=Door]|`:         {2, "Door", "", "", 1},
	} {
		for seed := range 5 {
			r := GapsRequest{Text: "the " + typed + " was open .", Options: want.options, Seed: uint64(seed)}
			e := m.gaps(t, r)
			keysOf(t, e)
			gap := e.Gaps[0]
			got := strings.Join(slices.Sorted(slices.Values(gap.Options)), ",")
			if got != want.answers || strings.Join(gap.Right, ",") != want.right ||
				strings.ToLower(strings.Join(gap.Rivals, ",")) != want.rivals || len(e.Warnings) != want.warnings {
				t.Errorf("%s, %d options: %+v, warnings %q", typed, want.options, gap, e.Warnings)
			}
			err := e.Check()
			if err != nil {
				t.Errorf("%s: %v", typed, err)
			}
		}
	}
	e := m.gaps(t, GapsRequest{Text: `the [ gate |ox] \| was [open] .`})
	if e.Text != `the gate \| was open .` {
		t.Errorf("the text is %q", e.Text)
	}
}

// TestGapLetters: a wrong answer has at most two letters more or fewer.
func TestGapLetters(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{"": {"kitchen": -1, "door": -8, "table": -8, "garden": -8}}
	e := m.gaps(t, GapsRequest{Text: "the [kitchen] was open .", Options: 4})
	got := slices.Sorted(slices.Values(e.Gaps[0].Options))
	// "house" has as little as all words that the table does not have.
	if want := []string{"garden", "house", "kitchen", "table"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGapChoice: wrong answers are drawn from the eight likeliest in the gap for each
// that is wanted. All seeds together draw each.
func TestGapChoice(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{"": {"gate": -1}}
	nouns := []string{"door", "wall", "hall", "garden", "cat", "lamp", "tree", "table", "house", "home", "room"}
	for i, word := range nouns {
		m.in[""][word] = -8 - float32(i)
	}
	drawn := map[string]bool{}
	for seed := range 200 {
		r := GapsRequest{Text: "the [gate] was open .", Options: 2, Seed: uint64(seed)}
		options := m.gaps(t, r).Gaps[0].Options
		if again := m.gaps(t, r).Gaps[0].Options; !slices.Equal(options, again) {
			t.Errorf("seed %d: %q, then %q", seed, options, again)
		}
		for _, word := range options {
			drawn[word] = true
		}
	}
	want := append(slices.Clone(nouns[:8]), "gate")
	for _, word := range append(nouns, "gate") {
		if drawn[word] != slices.Contains(want, word) {
			t.Errorf("%q drawn: %v", word, drawn[word])
		}
	}
}

// TestGapPart: the key has the part of speech that the model expects there, of
// those that it can have, by words of one part and of the key's form.
func TestGapPart(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{
		"the": {"run": -1, "gate": -3, "saw": -4, "walked": -1.1}, // "walked" is a verb of another form
		"dog": {"run": -1, "gate": -4, "saw": -3, "trees": -1.1},
		",":   {"run": -1},
	}
	text := "the run was in dog run ."
	for part, at := range map[string]int{"noun": strings.Index(text, "run"), "verb": strings.LastIndex(text, "run")} {
		e := m.gaps(t, GapsRequest{Text: text, Part: part, Words: []string{"run"}})
		if got := keysOf(t, e); !slices.Equal(got, []string{"run"}) || e.Gaps[0].Span[0] != at {
			t.Errorf("%s: %q at %v, want %d", part, got, e.Gaps[0].Span, at)
		}
	}
	// Where nothing tells, it is what the word is most often.
	e := m.gaps(t, GapsRequest{Text: ", run .", Part: "noun"})
	if got := keysOf(t, e); !slices.Equal(got, []string{"run"}) {
		t.Errorf("a run of which nothing is known: %q", got)
	}
}

// TestGapKeys: brackets, a number, a part of speech and a list choose the gaps.
func TestGapKeys(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{"": {"gate": -3}}
	for _, test := range []struct {
		r        GapsRequest
		keys     []string
		warnings []string
	}{
		{GapsRequest{Text: "the [ gate ] was [open] ."}, []string{"gate", "open"}, nil},
		{GapsRequest{Text: "the gate , the wall .", Every: 2}, []string{"gate", "wall"}, nil},
		{GapsRequest{Text: "the gate , the wall .", Every: 1}, []string{"the", "gate", "the", "wall"}, nil},
		{GapsRequest{Text: "the gate , the wall .", Every: 3}, []string{"the"}, nil},
		{GapsRequest{Text: "the gate was in the wall .", Part: "noun"}, []string{"gate", "wall"}, nil},
		{GapsRequest{Text: "the gate was in the wall , the hall .", Part: "noun", Every: 2}, []string{"wall"}, nil},
		{GapsRequest{Text: "The dog saw Anna. Trees, trees.", Part: "noun"}, []string{"dog", "Trees", "trees"}, nil},
		{GapsRequest{Text: "The gate, the wall.", Words: []string{"GATE", "the", "lamp"}},
			[]string{"The", "gate", "the"},
			[]string{`the text has no word "lamp" that may be a gap`}},
		{GapsRequest{Text: "the [gate] .", Every: 2}, []string{"gate"},
			[]string{"brackets are text here, as every, pos or words choose the gaps"}},
		{GapsRequest{Text: "the 猫 , the gate .", Words: []string{"猫", "gate"}}, []string{"gate"},
			[]string{`no gap for "猫"`}},
	} {
		e := m.gaps(t, test.r)
		if got := keysOf(t, e); !slices.Equal(got, test.keys) {
			t.Errorf("%+v: %q", test.r, got)
		}
		if len(e.Warnings) != len(test.warnings) {
			t.Errorf("%+v: warnings %q", test.r, e.Warnings)
		}
		for i, want := range test.warnings {
			if !strings.HasPrefix(e.Warnings[i], want) {
				t.Errorf("%+v: %q, want %q", test.r, e.Warnings[i], want)
			}
		}
	}
}

// TestGapRivals: a rival has more than half of the key's probability. Three are
// named, and Clear leaves their gap out, and says so.
func TestGapRivals(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{
		"the": {"gate": -2, "door": -2.69, "wall": -2.7},
		"in":  {"gate": -2, "door": -1.6, "wall": -1.7, "hall": -1.8, "lamp": -1.9},
		",":   {"gate": -2, "door": -1.6, "wall": -1.7, "hall": -2.5},
		".":   {"gate": -2, "door": -2.8},
	}
	text := "the [gate] in [gate] , [gate] . [gate]"
	want := [][]string{{"door"}, {"door", "wall", "hall"}, {"door", "wall", "hall"}, {}}
	e := m.gaps(t, GapsRequest{Text: text})
	for i, gap := range e.Gaps {
		rivals := []string{}
		for _, rival := range gap.Rivals {
			rivals = append(rivals, strings.ToLower(rival))
		}
		if !slices.Equal(rivals, want[i]) {
			t.Errorf("gap %d: %q, want %q", i+1, rivals, want[i])
		}
	}
	e = m.gaps(t, GapsRequest{Text: text, Clear: true})
	if len(e.Gaps) != 1 || e.Gaps[0].Span[0] != strings.LastIndex(e.Text, "gate") {
		t.Errorf("clear ones: %+v", e.Gaps)
	}
	if !slices.Contains(e.Warnings, "no gaps, by clear or bits: gate, gate, gate") {
		t.Errorf("the gaps left out are not told: %q", e.Warnings)
	}
}

// TestGapOfPieces: a key of several pieces has the sum of their log-probabilities,
// each given those before it.
func TestGapOfPieces(t *testing.T) {
	m := newGapModel()
	m.in = map[string]map[string]float32{"##known": {"un": -2}, "un": {"##seen": -1.5}}
	e := m.gaps(t, GapsRequest{Text: "unknown [unseen] unknown ."})
	want := math.Exp(-3.5)
	if got := e.Gaps[0].Probability; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestGapRequests: what cannot be asked for names its option, and the limits
// themselves can be asked for.
func TestGapRequests(t *testing.T) {
	const text = "the [gate] was open ."
	for _, test := range []struct {
		option string // "" if it can
		r      GapsRequest
	}{
		{"every", GapsRequest{Text: text, Every: -1}},
		{"pos", GapsRequest{Text: text, Part: "article"}},
		{"options", GapsRequest{Text: text, Options: -1}},
		{"options", GapsRequest{Text: text, Options: 1}},
		{"", GapsRequest{Text: text, Options: 2}},
		{"", GapsRequest{Text: text, Options: 10}},
		{"options", GapsRequest{Text: text, Options: 11}},
		{"below", GapsRequest{Text: text, Below: -0.1}},
		{"below", GapsRequest{Text: text, Below: math.NaN()}},
		{"", GapsRequest{Text: text, Below: 1}},
		{"below", GapsRequest{Text: text, Below: 1.1}},
		{"words", GapsRequest{Text: text, Words: []string{}}},
		{"text", GapsRequest{Text: "the gate"}},
		{"text", GapsRequest{Text: "the [gate"}},
		{"text", GapsRequest{Text: "the [] gate"}},
		{"text", GapsRequest{Text: "the [ ] gate"}},
		{"text", GapsRequest{Text: "the [[gate] ]"}},
		{"text", GapsRequest{Text: "the [|gate]"}},
		{"text", GapsRequest{Text: "the [gate|]"}},
		{"text", GapsRequest{Text: "the [gate||door]"}},
		{"text", GapsRequest{Text: "the [gate|=]"}},
		{"text", GapsRequest{Text: "the [gate|door| door]"}},
		{"text", GapsRequest{Text: "the [gate|gate]"}},
		{"text", GapsRequest{Text: "the [gate|=door|door]"}},
		{"text", GapsRequest{Text: "the [gate|=door|=door]"}},
		{"text", GapsRequest{Text: "the [gate|do\tor]"}},
		{"text", GapsRequest{Text: "the [gate" + strings.Repeat("|a", 26) + "]"}},
	} {
		tokenizer, err := lmtest.Tokenizer(gapWords())
		if err != nil {
			t.Fatal(err)
		}
		m := newGapModel()
		e, err := New(m, tokenizer).Gaps(t.Context(), test.r)
		var option *OptionError
		if test.option == "" && (err != nil || len(e.Gaps) != 1) ||
			test.option != "" && (!errors.As(err, &option) || option.Option != test.option || m.Calls.Load() > 0) {
			t.Errorf("%+v: %+v, error %v", test.r, e, err)
		}
	}
	for _, r := range []GapsRequest{
		{Text: "the [猫] ."},
		{Text: "[gate]"}, // the model reads no other word
		{Text: "the gate .", Part: "verb"},
		{Text: "the gate .", Every: 4},
	} {
		tokenizer, _ := lmtest.Tokenizer(gapWords())
		e, err := New(newGapModel(), tokenizer).Gaps(t.Context(), r)
		if err == nil || !strings.Contains(err.Error(), "no gap is left") {
			t.Errorf("%+v: %+v, error %v", r, e, err)
		}
	}
	tokenizer, _ := lmtest.Tokenizer(gapWords())
	e, err := New(newGapModel(), tokenizer).Gaps(t.Context(), GapsRequest{Text: "the gate , [MASK] .", Every: 2})
	var input *tokenize.InputError
	if !errors.As(err, &input) || e != nil {
		t.Errorf("a blank in the text: %+v, error %v", e, err)
	}
}

// TestGapInWord: a key within a word is an error if the model has no pieces that
// go on with a word.
func TestGapInWord(t *testing.T) {
	words := slices.DeleteFunc(gapWords(), func(word string) bool { return strings.HasPrefix(word, "##") })
	tokenizer, err := lmtest.Tokenizer(words)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(lmtest.New(len(words), 40), tokenizer).Gaps(t.Context(), GapsRequest{Text: "the[gate] was open ."})
	if e != nil || err == nil || !strings.HasPrefix(err.Error(), `the gap of "gate": `) {
		t.Errorf("%+v, error %v", e, err)
	}
}

// TestGapSignature: the signature names what the answers depend on.
func TestGapSignature(t *testing.T) {
	m := newGapModel()
	plain := m.gaps(t, GapsRequest{Text: "the [gate] ."}).Signature
	of := func(options int, below float64, seed uint64) string {
		return m.gaps(t, GapsRequest{Text: "the [gate] .", Options: options, Below: below, Seed: seed}).Signature
	}
	if !strings.HasPrefix(plain, "method:gaps|model:") {
		t.Error(plain)
	}
	// The seed orders answers in brackets, too.
	written := m.gaps(t, GapsRequest{Text: "the [gate|ox] .", Seed: 7}).Signature
	if !strings.HasPrefix(written, "method:gaps|seed:7|model:") {
		t.Error(written)
	}
	signed := of(2, 0, 7)
	want := fmt.Sprintf("method:gaps|options:2|below:%v|seed:7|model:", 1)
	if !strings.HasPrefix(signed, want) {
		t.Errorf("%s, want %s", signed, want)
	}
	if reflect.DeepEqual(signed, of(2, 0.5, 7)) || signed == of(3, 0, 7) || signed == of(2, 0, 8) {
		t.Error("another request, the same signature")
	}
}
