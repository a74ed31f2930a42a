package infill

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"infill/internal/lmtest"
)

// builtIn opens the built-in model once for all tests: that takes longer than most of
// them.
var builtIn = sync.OnceValues(func() (*Filler, error) { return Open(OpenOptions{}) })

func openBuiltIn(t *testing.T) *Filler {
	t.Helper()
	f, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// lawOf is P of two slots by the fake's conditionals, in each direction.
func lawOf(t *testing.T, model *lmtest.Model, ids, slots []int, tokens [2]int) (left, right float64) {
	t.Helper()
	ask := func(first, then int) float64 {
		masked := slices.Clone(ids)
		masked[slots[0]], masked[slots[1]] = 4, 4
		p := expected(t, model, masked, slots...)
		filled := slices.Clone(masked)
		filled[slots[first]] = tokens[first]
		q := expected(t, model, filled, slots[then])
		return math.Exp(float64(p[first][tokens[first]]) + float64(q[0][tokens[then]]))
	}
	return ask(0, 1), ask(1, 0)
}

// TestProofByBruteForce goes through all words of two blanks of a fake
// vocabulary: the fills found are the likeliest, whatever the order and the
// constraints, and no constraint changes a probability.
func TestProofByBruteForce(t *testing.T) {
	word := func(f *Filler, id int) bool {
		return f.tokenizer.Word(id) && !f.tokenizer.Continues(id)
	}
	for name, c := range map[string]struct {
		change  func(*asked)
		allowed func(f *Filler, a, b int) bool
	}{
		"l2r": {func(*asked) {}, func(f *Filler, a, b int) bool { return word(f, a) && word(f, b) }},
		"r2l": {func(o *asked) { o.Order = RightToLeft },
			func(f *Filler, a, b int) bool { return word(f, a) && word(f, b) }},
		"2,1": {func(o *asked) { o.Order = "2,1" },
			func(f *Filler, a, b int) bool { return word(f, a) && word(f, b) }},
		"any": {func(o *asked) { o.Fill = FillAny }, func(f *Filler, a, b int) bool { return true }},
		"ban": {func(o *asked) { o.Ban = []string{"cat"} }, func(f *Filler, a, b int) bool {
			return word(f, a) && word(f, b) && f.tokenizer.Token(a) != "cat" && f.tokenizer.Token(b) != "cat"
		}},
		"distinct": {func(o *asked) { o.Distinct = true },
			func(f *Filler, a, b int) bool { return word(f, a) && word(f, b) && a != b }},
		"list": {func(o *asked) { o.Slots = Lists{2: {"mat", "rug", "dog"}} }, func(f *Filler, a, b int) bool {
			return word(f, a) && slices.Contains([]string{"mat", "rug", "dog"}, f.tokenizer.Token(b))
		}},
	} {
		f, model := newFake(t)
		model.Bond = 1.5
		o := asked{}
		o.Top = 7
		c.change(&o)
		r := fill(t, f, twoSlots, o)
		template, err := f.tokenizer.Template(twoSlots)
		if err != nil {
			t.Fatal(err)
		}
		var all []float64
		for _, a := range f.vocabulary.fillable {
			for _, b := range f.vocabulary.fillable {
				if !c.allowed(f, a, b) {
					continue
				}
				left, right := lawOf(t, model, template.IDs, template.Slots, [2]int{a, b})
				all = append(all, map[Order]float64{"": left, RightToLeft: right,
					"2,1": right}[o.Order])
			}
		}
		slices.Sort(all)
		slices.Reverse(all)
		if !*r.Proven || r.Method != MethodSearch || len(r.Fills) != min(7, len(all)) || r.Seed != nil {
			t.Fatalf("%s: proven %v, %d fills", name, *r.Proven, len(r.Fills))
		}
		for i, fill := range r.Fills {
			if math.Abs(*fill.Probability/all[i]-1) > 1e-6 || math.Abs(fill.LogLikelihood-math.Log(all[i])) > 1e-6 {
				t.Errorf("%s: fill %d has %v, log-likelihood %v, want %v", name, i+1, *fill.Probability,
					fill.LogLikelihood, all[i])
			}
		}
		if *r.LeftOutAtMost < all[7]*(1-1e-6) {
			t.Errorf("%s: left out at most %v, the eighth has %v", name, *r.LeftOutAtMost, all[7])
		}
	}
}

// TestCertificateOfFills: whatever the budget and the number of fills, no fill
// left out has more than the bound. It also checks the listed texts: fills that
// read alike stand once.
func TestCertificateOfFills(t *testing.T) {
	f, model := newFake(t)
	model.Bond = 2
	whole := asked{}
	whole.Top, whole.Fill = 1000, FillAny
	const template = "the [MASK] sat [MASK] on the [MASK:1-2]"
	all := fill(t, f, template, whole).Fills
	for rows := 1; rows < 60; rows++ {
		for _, top := range []int{1, 2, 5, 20} {
			o := asked{}
			o.Fill, o.Top, o.Budget.Rows = FillAny, top, rows
			r := fill(t, f, template, o)
			listed := map[string]bool{}
			for _, fill := range r.Fills {
				listed[fill.Text] = true
			}
			for _, fill := range all {
				if !listed[fill.Text] && *fill.Probability > *r.LeftOutAtMost*(1+1e-9) {
					t.Fatalf("%d rows, %d fills: %q has %v, left out was at most %v", rows, top, fill.Text,
						*fill.Probability, *r.LeftOutAtMost)
				}
			}
		}
	}
}

// TestShare: where every blank has a list, each fill has a share of all of
// them, and the model's own probability.
func TestShare(t *testing.T) {
	f := openBuiltIn(t)
	const template = "She closed the [MASK] and went to [MASK]."
	o := asked{}
	o.Slots = Lists{1: {"door", "window"}, 2: {"bed", "sleep", "New York"}}
	r := fill(t, f, template, o)
	free := asked{}
	free.Top = 5
	all := fill(t, f, template, free)
	sum := 0.0
	o.Top = 10
	for _, fill := range fill(t, f, template, o).Fills {
		sum += *fill.Share
	}
	if math.Abs(sum-1) > 1e-9 || r.Seed != nil || len(r.Fills) != 5 {
		t.Errorf("shares add up to %v, seed %v", sum, r.Seed)
	}
	// The list has words of one and of two pieces, each number as likely.
	for _, fill := range r.Fills {
		if fill.Text == all.Fills[0].Text && math.Abs(*fill.Probability/(*all.Fills[0].Probability/2)-1) > 1e-6 {
			t.Errorf("%s: %v of a list of two lengths, %v without", fill.Text, *fill.Probability,
				*all.Fills[0].Probability)
		}
	}
	delete(o.Slots, 1)
	o.Slots[2] = []string{"bed", "sleep"}
	part := fill(t, f, template, o)
	for _, fill := range part.Fills {
		if fill.Share != nil {
			t.Errorf("%s has the share %v, and only one blank a list", fill.Text, *fill.Share)
		}
		if fill.Text == all.Fills[0].Text && math.Abs(*fill.Probability / *all.Fills[0].Probability - 1) > 1e-6 {
			t.Errorf("%s: %v with a list, %v without", fill.Text, *fill.Probability, *all.Fills[0].Probability)
		}
	}
	free.Top = 10
	pattern := fill(t, f, strings.Replace(template, "to [MASK]", "to [MASK~bed|sleep]", 1), free)
	if pattern.Stats.ModelRows != part.Stats.ModelRows ||
		pattern.Fills[1].LogLikelihood != part.Fills[1].LogLikelihood {
		t.Errorf("%d rows with a pattern, %d with a list", pattern.Stats.ModelRows, part.Stats.ModelRows)
	}
}

// TestLargeList: a list is a filter, and its size costs no rows.
func TestLargeList(t *testing.T) {
	f := openBuiltIn(t)
	const template = "They [MASK] the [MASK]."
	free := asked{}
	want := fill(t, f, template, free)
	var words []string
	for _, id := range f.vocabulary.fillable {
		if f.tokenizer.Word(id) && !f.tokenizer.Continues(id) {
			words = append(words, f.tokenizer.Token(id))
		}
	}
	o := free
	o.Slots = Lists{1: words}
	got := fill(t, f, template, o)
	if got.Stats.ModelRows != want.Stats.ModelRows || got.Fills[0].Text != want.Fills[0].Text {
		t.Errorf("%d words: %d rows, %q; without the list %d rows, %q", len(words), got.Stats.ModelRows,
			got.Fills[0].Text,
			want.Stats.ModelRows, want.Fills[0].Text)
	}
	o.Slots[1] = append(slices.Clone(words), "\U0001F600")
	if r := fill(t, f, template, o); !strings.Contains(strings.Join(r.Warnings, "\n"), fmt.Sprintf(
		"1 of the %d words of blank 1 are left out, which the model cannot write", len(words)+1)) {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// TestAlone: Alone holds the model's probabilities of a blank by itself, by the
// blank's choices.
func TestAlone(t *testing.T) {
	f := openBuiltIn(t)
	for template, want := range map[string]int{"She opened the [MASK].": 5, "She opened the [MASK~door|gate].": 2,
		"They lived in [MASK:2].": 0} {
		r := fill(t, f, template, asked{})
		if len(r.Alone[0]) != want {
			t.Errorf("%s: %v", template, r.Alone)
		}
		for i, v := range r.Alone[0] {
			if v.Text != r.Fills[i].Values[0] || math.Abs(v.Probability / *r.Fills[i].Probability - 1) > 1e-6 {
				t.Errorf("%s: %+v by itself, and as the only blank %v", template, v, r.Fills[i])
			}
		}
	}
}

// TestOneMask: one mask is one token, and each length of a blank counts
// as equally likely.
func TestOneMask(t *testing.T) {
	f := openBuiltIn(t)
	one := fill(t, f, "they lived in [MASK] .", asked{})
	if one.Stats.ModelRows != 1 || !slices.Equal(one.Fills[0].Tokens, []int{1}) || len(one.Fills[0].TokenIDs) != 1 {
		t.Errorf("%d rows, %+v", one.Stats.ModelRows, one.Fills[0])
	}
	two, three := fill(t, f, "they lived in [MASK:2] .", asked{}),
		fill(t, f, "they lived in [MASK:1-3] .", asked{})
	for _, fill := range three.Fills {
		for _, alone := range [][]Fill{one.Fills, two.Fills} {
			at := slices.IndexFunc(alone, func(f Fill) bool { return f.Text == fill.Text })
			if at >= 0 && math.Abs(3**fill.Probability / *alone[at].Probability - 1) > 1e-5 {
				t.Errorf("%s: %v of three lengths, %v of one", fill.Text, *fill.Probability, *alone[at].Probability)
			}
		}
	}
}

// TestPatterns: every found fill matches, of the vocabulary's words or of a list.
func TestPatterns(t *testing.T) {
	f, _ := newFake(t)
	o := asked{}
	o.Top = 100
	for template, want := range map[string][]string{
		"the [MASK~.at] .":                    {"cat", "mat", "sat"},
		"the [MASK:1~UN.*] .":                 {"un"},
		"un[MASK~.{4,5}] .":                   {"known", "seen"},
		"the [MASK=x~u.*] ran the [MASK=x] .": {"un"},
		"the [MASK~\\w\\w\\w] .":              {"the", "cat", "dog", "sat", "ran", "mat", "rug"},
	} {
		values := map[string]bool{}
		for _, s := range fill(t, f, template, o).Fills {
			values[s.Values[0]] = true
			if s.Values[len(s.Values)-1] != s.Values[0] {
				t.Errorf("%s: %v", template, s.Values)
			}
		}
		for _, value := range want {
			if !values[value] {
				t.Errorf("%s: no %q", template, value)
			}
		}
		if len(values) != len(want) {
			t.Errorf("%s: got %v, want %v", template, values, want)
		}
	}
	for template, want := range map[string]string{
		"the [MASK~zz+] .":             "no word of the vocabulary fits zz+",
		"the [MASK~(] .":               "a pattern that is no regular expression (missing closing ))",
		"the [MASK~] .":                "a pattern that is not a regular expression",
		"the [MASK~cat .":              "the closing ] is missing",
		"the [MASK~[]a] .":             "the closing ] is missing",
		"a [MASK=a~u.*] [MASK=a~un.*]": "one name",
	} {
		if err := planned(t, f, template, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", template, err, want)
		}
	}
	o.Slots = Lists{1: {"unseen", "unknown", "cat", "the cat"}}
	for template, want := range map[string]int{"the [MASK~un.*] .": 2, "the [MASK~.*cat] .": 2, "the [MASK] .": 4} {
		if r := fill(t, f, template, o); len(r.Fills) != want || !*r.Proven {
			t.Errorf("%s: %d fills", template, len(r.Fills))
		}
	}
}

// TestNames: blanks of one name hold the same, words of a list among it.
func TestNames(t *testing.T) {
	f, _ := newFake(t)
	o := asked{}
	o.Top = 1000
	for _, template := range []string{"the [MASK=a] ran the [MASK=a] [MASK] .", "[MASK:2=a] ran the [MASK=a:2] .",
		"[MASK:1-2=a] ran the [MASK:1-2=a] ."} {
		if template = strings.Replace(template, "=a:2", ":2=a", 1); template == "" {
			continue
		}
		for _, s := range fill(t, f, template, o).Fills {
			if !strings.EqualFold(s.Values[0], s.Values[1]) {
				t.Errorf("%s: %v", template, s.Values)
			}
		}
	}
	o.Slots = Lists{1: {"unseen", "mat rug", "cat"}}
	if r := fill(t, f, "the [MASK=a] ran the [MASK=a] .", o); len(r.Fills) != 3 || r.Fills[0].Share == nil {
		t.Errorf("%d fills of a list for two blanks", len(r.Fills))
	}
	o = asked{}
	o.Fill, o.Distinct = FillAny, true
	for _, s := range fill(t, f, "the [MASK=a] [MASK=a] [MASK] .", o).Fills {
		if s.Values[0] != s.Values[1] || s.Values[0] == s.Values[2] {
			t.Errorf("%v", s.Values)
		}
	}
}

// TestEscapes: a backslash makes text of a blank, in short texts and long ones.
func TestEscapes(t *testing.T) {
	f, _ := newFake(t)
	o := asked{}
	o.Top = 1
	filler := strings.Repeat(`the cat ran . `, 5)
	for _, template := range []string{`a \[MASK] on the [MASK]`, `the [MASK] \[MASK:2] a`,
		filler + `a \[MASK] on the [MASK]`} {
		s := fill(t, f, template, o).Fills[0]
		at := regexp.MustCompile(`(^|[^\\])\[MASK\]`).FindStringIndex(template)
		start := at[1] - len("[MASK]")
		want := strings.ReplaceAll(template[:start]+s.Values[0]+template[at[1]:], `\[MASK`, `[MASK`)
		if s.Text != want {
			t.Errorf("got %q, want %q", s.Text, want)
		}
		for i, span := range s.Spans {
			if s.Text[span[0]:span[1]] != s.Values[i] {
				t.Errorf("span %d of %q holds %q", i, s.Text, s.Text[span[0]:span[1]])
			}
		}
	}
}

// TestBlanks: what people write for a blank gives the fills of [MASK].
func TestBlanks(t *testing.T) {
	f, _ := newFake(t)
	want := fill(t, f, twoSlots, asked{})
	for _, template := range []string{"the ___ sat on the _____", "the <mask> sat on the [MASK]",
		"the {} sat on the ___"} {
		o := asked{}
		o.Blank = "{}"
		r := fill(t, f, template, o)
		if r.Fills[0].Text != want.Fills[0].Text || r.Fills[0].LogLikelihood != want.Fills[0].LogLikelihood ||
			r.Template != template {
			t.Errorf("%s: %+v", template, r.Fills[0])
		}
	}
}

// TestLongText: of a text that is longer than the model sees, it sees the part
// around the blanks, and says so; blanks that are further apart are refused,
// and the error says which fit together.
func TestLongText(t *testing.T) {
	f, _ := newFake(t) // 16 tokens
	far := strings.Repeat("the dog ran on the rug . ", 4)
	for template, seen := range map[string]int{far + "the [MASK] sat": 16, "the [MASK] sat . " + far: 16,
		far + "the [MASK] sat on [MASK] . " + far: 16, "the [MASK] sat on [MASK] .": 0} {
		r := fill(t, f, template, asked{})
		if r.Stats.Seen != seen || !*r.Proven || seen > 0 != strings.Contains(strings.Join(r.Warnings, "\n"),
			"tokens the model sees the 16 around the blanks") || len(r.Fills[0].Text) < len(template)-10 {
			t.Errorf("%s: %d tokens, %q", template, r.Stats.Seen, r.Warnings)
		}
	}
	err := planned(t, f, "the [MASK] sat on [MASK] . "+far+"the [MASK] sat", asked{})
	if err == nil || !strings.Contains(err.Error(), "these fit together: 1 to 2, then 3; give each group its part") {
		t.Error(err)
	}
}

// TestDrawsTell: draws say how many are made.
func TestDrawsTell(t *testing.T) {
	f, _ := newFake(t)
	o := asked{Samples: 40}
	o.Budget.Rows = 1 << 20
	var told []string
	_, err := f.Fill(t.Context(), o.request(twoSlots), func(p Progress) {
		told = append(told, fmt.Sprintf("%s, %d of %d", p.Method, p.Step, p.Steps))
	})
	if err != nil || told[0] != "draws, 0 of 40" || told[len(told)-1] != "draws, 40 of 40" {
		t.Errorf("%q, %v", told, err)
	}
}

// TestDraws: independent draws follow the law, given what the blanks may take,
// and have the model's own probabilities.
func TestDraws(t *testing.T) {
	for name, change := range map[string]func(*asked){"words": func(*asked) {},
		"list":     func(o *asked) { o.Slots = Lists{2: {"mat", "cat", "dog", "rug"}} },
		"distinct": func(o *asked) { o.Distinct = true }} {
		f, model := newFake(t)
		model.Bond = 1.5
		o := asked{}
		change(&o)
		o.Top, o.Budget.Rows = 1000, 1<<20
		all := fill(t, f, twoSlots, o)
		held := 0.0
		for _, fill := range all.Fills {
			held += *fill.Probability
		}
		o.Samples, o.Seed = 4000, 3
		drawn := fill(t, f, twoSlots, o)
		if drawn.Method != MethodDraws || drawn.Stats.Draws != 4000 || *drawn.Seed != 3 || drawn.Proven != nil {
			t.Fatalf("method %s, %d draws", drawn.Method, drawn.Stats.Draws)
		}
		counts := map[string]int{}
		for _, fill := range drawn.Fills {
			counts[fill.Text] = fill.Count
		}
		squares, cells := 0.0, 0
		for _, fill := range all.Fills {
			if at := slices.IndexFunc(drawn.Fills, func(f Fill) bool { return f.Text == fill.Text }); at >= 0 &&
				math.Abs(drawn.Fills[at].LogLikelihood-fill.LogLikelihood) > 1e-6 {
				t.Errorf("%s: %s has %v, and among draws %v", name, fill.Text, fill.LogLikelihood,
					drawn.Fills[at].LogLikelihood)
			}
			if want := 4000 * *fill.Probability / held; want > 5 {
				squares += (float64(counts[fill.Text]) - want) * (float64(counts[fill.Text]) - want) / want
				cells++
			}
		}
		// Six standard deviations of χ².
		if cells < 10 || squares > float64(cells)+6*math.Sqrt(2*float64(cells)) {
			t.Errorf("%s: χ² %v of %d fills", name, squares, cells)
		}
		if other := fill(t, f, twoSlots, o); withoutTime(t, other) != withoutTime(t, drawn) {
			t.Errorf("%s: the same seed gives other draws", name)
		}
		o.Rank, o.Samples, o.Top = RankFinal, 12, 5
		if r := fill(t, f, twoSlots, o); len(r.Fills) != 5 || r.Fills[0].Count != 1 {
			t.Errorf("%d draws, one counted %d times", len(r.Fills), r.Fills[0].Count)
		}
	}
}

// TestFewDraws: if the budget ends first, the answer says how many came; at a
// low temperature the likeliest come.
func TestFewDraws(t *testing.T) {
	f, model := newFake(t)
	model.Bond = 1.5
	o := asked{}
	o.Samples, o.Seed, o.Budget.Rows = 500, 3, 120
	o.Slots, o.Distinct = Lists{2: {"mat", "rug", "dog", "cat"}}, true
	r := fill(t, f, twoSlots, o)
	if n := r.Stats.Draws; n == 0 || n >= 500 || !strings.Contains(strings.Join(r.Warnings, "\n"),
		fmt.Sprintf("120 model rows sufficed for %d of 500 draws", n)) {
		t.Errorf("%d draws, warnings %q", n, r.Warnings)
	}
	rare := asked{}
	rare.Samples, rare.Seed, rare.Budget.Rows, rare.Slots = 1, 3, 2, Lists{2: {"un"}}
	_, err := f.Fill(t.Context(), rare.request(twoSlots), nil)
	if err == nil || !strings.Contains(err.Error(), "2 model rows sufficed for no draw") {
		t.Error(err)
	}
	// At a low temperature the likeliest allowed word comes.
	model.Bond = 0
	cold := asked{}
	cold.Samples, cold.Temperature, cold.Top = 50, 0.01, 3
	got := fill(t, f, "the [MASK] sat", cold)
	if len(got.Fills) != 1 || got.Stats.Draws != 50 || len(got.Warnings) > 0 {
		t.Errorf("at temperature 0.01: %d different fills of %d draws, warnings %q", len(got.Fills), got.Stats.Draws,
			got.Warnings)
	}
	// Warm draws of one slot follow the power of its conditional.
	warm := asked{}
	warm.Samples, warm.Temperature, warm.Top = 20000, 2, 1000
	counts, total := map[int]float64{}, 0.0
	for _, fill := range fill(t, f, "the [MASK] sat", warm).Fills {
		counts[fill.TokenIDs[0]] = float64(fill.Count)
		total += math.Exp(model.Weight(fill.TokenIDs[0]) / 2)
	}
	squares := 0.0
	for id, n := range counts {
		want := 20000 * math.Exp(model.Weight(id)/2) / total
		squares += (n - want) * (n - want) / want
	}
	if cells := float64(len(counts)); cells < 8 || squares > cells+6*math.Sqrt(2*cells) {
		t.Errorf("at temperature 2: χ² %v of %d words", squares, len(counts))
	}
}

// TestWarmDraws: at a temperature, each conditional is raised to the power 1/T
// over the whole vocabulary, and a list is a filter behind it.
func TestWarmDraws(t *testing.T) {
	f, model := newFake(t)
	model.Bond = 1.5
	words := []string{"mat", "rug", "dog", "cat", "un"}
	o := asked{}
	o.Samples, o.Seed, o.Temperature, o.Top, o.Budget.Rows = 20000, 4, 2, 1000, 1<<20
	o.Slots = Lists{1: words, 2: words}
	template, err := f.tokenizer.Template(twoSlots)
	if err != nil {
		t.Fatal(err)
	}
	masked := slices.Clone(template.IDs)
	masked[template.Slots[0]], masked[template.Slots[1]] = 4, 4
	power := func(logp []float32) []float64 { // over all tokens
		p, total := make([]float64, len(logp)), 0.0
		for id, l := range logp {
			p[id] = math.Exp(float64(l) / o.Temperature)
			total += p[id]
		}
		for id := range p {
			p[id] /= total
		}
		return p
	}
	root := expected(t, model, masked, template.Slots...)
	law, held := map[[2]int]float64{}, 0.0
	first := power(root[0])
	ids := map[string]int{}
	for id := range f.vocabulary.classes() {
		ids[f.tokenizer.Token(id)] = id
	}
	for _, a := range words {
		filled := slices.Clone(masked)
		filled[template.Slots[0]] = ids[a]
		row := expected(t, model, filled, template.Slots[1])
		second := power(row[0])
		for _, b := range words {
			p := first[ids[a]] * second[ids[b]]
			law[[2]int{ids[a], ids[b]}] = p
			held += p
		}
	}
	squares := 0.0
	for _, fill := range fill(t, f, twoSlots, o).Fills {
		want := 20000 * law[[2]int{fill.TokenIDs[0], fill.TokenIDs[1]}] / held
		squares += (float64(fill.Count) - want) * (float64(fill.Count) - want) / want
	}
	if cells := float64(len(law)); squares > cells+6*math.Sqrt(2*cells) {
		t.Errorf("χ² %v of %v fills", squares, cells)
	}
}

// TestConstrainedSearch compares searches under constraints with all fills that
// an independent judge lets pass, at any budget and in any order. No search
// passes its budget by more than the rows of one fill, and none lacks a fill.
func TestConstrainedSearch(t *testing.T) {
	f, model := newFake(t)
	model.Bond = 2
	piece := func(w string) bool { return strings.HasPrefix(w, "##") }
	word := func(w string) bool { return w != "." && !piece(w) }
	for name, c := range map[string]struct {
		template string
		slots    int
		change   func(*asked)
		allowed  func(w []string) bool
	}{
		"distinct": {"[MASK] the [MASK] [MASK] sat", 3, func(o *asked) { o.Distinct = true },
			func(w []string) bool {
				return word(w[0]) && word(w[1]) && word(w[2]) && w[0] != w[1] && w[0] != w[2] && w[1] != w[2]
			}},
		"distinct lists": {"[MASK] the [MASK] [MASK] sat", 3,
			func(o *asked) {
				o.Distinct = true
				o.Slots = Lists{1: {"cat", "dog", "mat"}, 2: {"cat", "dog"}, 3: {"dog", "cat"}}
			}, func(w []string) bool {
				return w[0] == "mat" && (w[1] == "cat" && w[2] == "dog" || w[1] == "dog" && w[2] == "cat")
			}},
		"distinct of two pieces": {"[MASK:2] the [MASK:2] sat", 4,
			func(o *asked) {
				o.Distinct = true
				o.Slots = Lists{1: {"unseen", "unknown"}, 2: {"unseen", "unknown", "the cat"}}
			}, func(w []string) bool {
				first, second := w[0]+w[1], w[2]+w[3]
				return slices.Contains([]string{"un##seen", "un##known"}, first) && first != second &&
					slices.Contains([]string{"un##seen", "un##known", "thecat"}, second)
			}},
		"names": {"[MASK=a] the [MASK=a] [MASK] sat", 3, func(o *asked) { o.Distinct = true },
			func(w []string) bool { return word(w[0]) && w[1] == w[0] && word(w[2]) && w[2] != w[0] }},
		"noun of two pieces": {"the [MASK:2] [MASK] ran", 3, func(o *asked) { o.Speech = Parts{1: {"noun"}} },
			func(w []string) bool { return word(w[2]) && w[0] == "un" && w[1] == "##known" }},
		"adjective of two pieces": {"the [MASK:2] [MASK] ran", 3,
			func(o *asked) { o.Speech = Parts{1: {"adjective"}} },
			func(w []string) bool {
				return word(w[2]) && w[0] == "un" && (w[1] == "##known" || w[1] == "##seen")
			}},
		"ban across pieces": {"the [MASK:2] [MASK] ran", 3,
			func(o *asked) { o.Ban = []string{"unseen", "cat dog", "sat"} },
			func(w []string) bool {
				return word(w[0]) && w[1] != "." && word(w[2]) && !slices.Contains(w, "sat") &&
					!slices.Contains([]string{"un##seen", "catdog"}, w[0]+w[1])
			}},
		"adjective and ban": {"the [MASK:2] [MASK] ran", 3,
			func(o *asked) { o.Speech, o.Ban = Parts{1: {"adjective"}}, []string{"unknown"} },
			func(w []string) bool { return word(w[2]) && w[0] == "un" && w[1] == "##seen" }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, order := range []Order{"l2r", "r2l"} {
				o := asked{}
				o.Order, o.Top = order, 4
				c.change(&o)
				all := chainLaw(t, f, model, c.template, order, c.allowed)
				for rows := 1; rows < 40; rows += 1 + rows/4 {
					o.Budget.Rows = rows
					r := fill(t, f, c.template, o)
					if most := max(rows, c.slots); int(r.Stats.ModelRows) > most {
						t.Errorf("%s, %d rows: %d were taken", order, rows, r.Stats.ModelRows)
					}
					compareFills(t, r, all)
				}
			}
		})
	}
}

// chainLaw lists log P of every fill that a judge lets pass, by its tokens.
func chainLaw(t *testing.T, f *Filler, model *lmtest.Model, text string, order Order,
	allowed func(w []string) bool) map[string]float64 {
	t.Helper()
	template, err := f.tokenizer.Template(text)
	if err != nil {
		t.Fatal(err)
	}
	n := len(template.Slots)
	law := map[string]float64{}
	tokens, words := make([]int, n), make([]string, n)
	var visit func(slot int)
	visit = func(slot int) {
		if slot < n {
			for _, id := range f.vocabulary.fillable {
				tokens[slot], words[slot] = id, f.tokenizer.Token(id)
				visit(slot + 1)
			}
			return
		}
		if !allowed(words) {
			return
		}
		ids := slices.Clone(template.IDs)
		for _, slot := range template.Slots {
			ids[slot] = 4
		}
		sum := 0.0
		for step := range n {
			slot := step
			if order == "r2l" {
				slot = n - 1 - step
			}
			row := expected(t, model, ids, template.Slots[slot])
			sum += float64(row[0][tokens[slot]])
			ids[template.Slots[slot]] = tokens[slot]
		}
		law[fmt.Sprint(tokens)] = sum
	}
	visit(0)
	return law
}

// compareFills compares a search's fills and its bound with all allowed fills.
func compareFills(t *testing.T, r *Result, all map[string]float64) {
	t.Helper()
	listed := map[string]bool{}
	least := math.Inf(1)
	for _, fill := range r.Fills {
		key := fmt.Sprint(fill.TokenIDs)
		want, ok := all[key]
		if !ok || math.Abs(want-fill.LogLikelihood) > 1e-6 {
			t.Errorf("%v has %v, want %v (allowed: %t)", fill.Values, fill.LogLikelihood, want, ok)
		}
		listed[key] = true
		least = min(least, want)
	}
	if len(r.Fills) == 0 && len(all) > 0 {
		t.Error("no fill")
	}
	for key, logp := range all {
		if listed[key] {
			continue
		}
		if math.Exp(logp) > *r.LeftOutAtMost*(1+1e-6) {
			t.Errorf("%s has %v, left out was at most %v", key, math.Exp(logp), *r.LeftOutAtMost)
		}
		if *r.Proven && logp > least+1e-6 {
			t.Errorf("%s has %v, more than the least of the proven fills, %v", key, logp, least)
		}
	}
}

// A search that seconds bound tells which part of them is used, and not of rows.
func TestProgressOfSeconds(t *testing.T) {
	f, _ := newFake(t)
	told := 0
	request := Request{Template: twoSlots, Method: Search{Budget: Budget{Seconds: 1e6}}}
	_, err := f.Fill(t.Context(), request, func(p Progress) {
		told++
		if p.Step != 0 || p.Steps != 100 {
			t.Errorf("step %d of %d, of a million seconds", p.Step, p.Steps)
		}
	})
	if err != nil || told == 0 {
		t.Errorf("told %d times, %v", told, err)
	}
}
