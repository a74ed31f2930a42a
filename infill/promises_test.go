package infill

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"infill/internal/check"
)

func init() { check.SameDraws() }

// TestWhatYouAllow: bans, patterns, parts of speech and distinct change no
// probability, no list of a blank by itself and no entropy of what they leave, also
// where lists and blanks have several lengths.
func TestWhatYouAllow(t *testing.T) {
	f, _ := newFake(t)
	words := []string{"cat", "dog", "unseen", "unknown", "mat", "the cat", "sat on", "un seen", "rug", "unknownseen"}
	rapid.Check(t, func(t *rapid.T) {
		list := func(name string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(words), 2, 6, rapid.ID).Draw(t, name)
		}
		free := Request{Template: "the [MASK%s] sat on the [MASK%s] .", Top: 100,
			Fit: Fit{Slots: Lists{1: list("first"), 2: list("second")}}}
		typed := rapid.SampledFrom([]string{"", "", ":1-3", ":2-4"}).Draw(t, "typed")
		if typed != "" {
			free.Fit.Slots = Lists{1: list("first")}
			free.Fit.Fill = FillTokens
		}
		held := free
		pattern := rapid.SampledFrom([]string{"", "", "~.*n", "~[^c]*"}).Draw(t, "pattern")
		held.Fit.Ban = Words(rapid.SliceOfDistinct(rapid.SampledFrom(words), rapid.ID).Draw(t, "ban"))
		held.Fit.Distinct = rapid.Bool().Draw(t, "distinct")
		free.Template = fmt.Sprintf(free.Template, "", typed)
		held.Template = fmt.Sprintf(held.Template, pattern, typed)
		want, err := f.Fill(t.Context(), free, nil)
		if err != nil {
			t.Skip(err) // no word of the list has so many pieces
		}
		got, err := f.Fill(t.Context(), held, nil)
		if err != nil {
			t.Skip(err) // nothing is left
		}
		if got.Stats.Lengths != want.Stats.Lengths {
			t.Errorf("%d lengths, want %d", got.Stats.Lengths, want.Stats.Lengths)
		}
		for i, h := range got.Entropy {
			if (h == nil) != (want.Entropy[i] == nil) || h != nil && *h != *want.Entropy[i] {
				t.Errorf("the entropy of blank %d is another", i+1)
			}
		}
		for i, values := range got.Alone {
			for _, v := range values {
				same := func(o Value) bool { return o.TokenID == v.TokenID && o.Probability == v.Probability }
				if len(want.Alone[i]) < leastAlone && !slices.ContainsFunc(want.Alone[i], same) {
					t.Errorf("blank %d by itself: %+v is not in %+v", i+1, v, want.Alone[i])
				}
			}
		}
		known := map[string]float64{}
		for _, fill := range want.Fills {
			known[fmt.Sprint(fill.TokenIDs, fill.Tokens)] = fill.LogLikelihood
		}
		complete := *want.Proven && len(want.Fills) < 100
		for _, fill := range got.Fills {
			key := fmt.Sprint(fill.TokenIDs, fill.Tokens)
			p, ok := known[key]
			if ok && math.Abs(p-fill.LogLikelihood) > 1e-9 || !ok && complete {
				t.Errorf("%+v has %v, without constraints %v (%v)", fill.Values, fill.LogLikelihood, p, ok)
			}
		}
	})
}

// TestListsOfLengths: the words of a list have their lengths whatever bans and
// patterns leave of them. The values are those of issue reports against 0.3.
func TestListsOfLengths(t *testing.T) {
	f := openBuiltIn(t)
	paris := func(template string, ban ...string) Fill {
		r, err := f.Fill(t.Context(), Request{Template: template, Fit: Fit{Slots: Lists{1: {"paris", "new york"}},
			Ban: ban}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(r.Fills, func(f Fill) bool { return strings.EqualFold(f.Values[0], "paris") })
		return r.Fills[at]
	}
	want := paris("He lives in [MASK] now .").LogLikelihood
	for _, got := range []Fill{paris("He lives in [MASK] now .", "york"), paris("He lives in [MASK~p.*] now .")} {
		if got.LogLikelihood != want {
			t.Errorf("paris has %v, with a constraint %v", want, got.LogLikelihood)
		}
	}
	alone := func(ban ...string) (Value, float64) {
		r, err := f.Fill(t.Context(), Request{Template: "The [MASK] lives in [MASK] now .", Top: 1,
			Fit: Fit{Slots: Lists{2: {"paris", "new york"}}, Ban: ban}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Alone[0][0], *r.Entropy[0]
	}
	value, entropy := alone()
	banned, other := alone("paris")
	if value != banned || entropy != other {
		t.Errorf("blank 1 by itself: %+v and %v bits, with a ban in blank 2 %+v and %v", value, entropy, banned, other)
	}
}

// TestShortestRow: a shortest length without a fill costs a row more, which a plan's
// cost knows.
func TestShortestRow(t *testing.T) {
	f, _ := newFake(t)
	for _, c := range []struct {
		ban  Words
		rows int
	}{{nil, 2}, {Words{"cat"}, 2}, {Words{"cat", "dog"}, 2}, {Words{"unseen"}, 1}} {
		r := Request{Template: "the [MASK] ran", Fit: Fit{Slots: Lists{1: {"cat", "dog", "unseen"}}, Ban: c.ban}}
		p, err := f.Plan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Fill(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.roots() != c.rows || result.Stats.Lengths != 2 || len(result.Alone[0])+len(c.ban) < 2 {
			t.Errorf("%q: %d rows before the method, %+v", c.ban, p.roots(), result)
		}
		if _, most := p.Cost(); int(result.Stats.ModelRows) > most.Rows {
			t.Errorf("%q: %d rows, %d were told", c.ban, result.Stats.ModelRows, most.Rows)
		}
	}
}

// TestDrawsOfABudget: whatever ends draws early, rows, seconds or an interrupt, those
// that are made follow P. Over many seeds the first word of blank 1 is counted, beside
// 40,000 draws that nothing ends.
func TestDrawsOfABudget(t *testing.T) {
	type run struct {
		budget Budget
		last   int // the call in which the run is interrupted; 0 for none
		wanted int
		seeds  int
	}
	count := func(name string, c run) (n, hits float64) {
		f, model := newFake(t)
		model.Bond = 2
		fewer := 0
		for seed := range c.seeds {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			model.Before = func(ctx context.Context) error {
				calls++
				if calls == c.last {
					cancel()
				}
				return ctx.Err()
			}
			r, err := f.Fill(ctx, Request{Template: "the [MASK] [MASK:1-2] on [MASK] .", Seed: uint64(seed),
				Top: 1 << 16, Fit: Fit{Fill: FillAny},
				Method: Draws{Samples: c.wanted, Rank: RankFinal, Budget: c.budget}}, nil)
			cancel()
			if r == nil {
				fewer++
				continue
			}
			if r.Stats.Draws < c.wanted {
				fewer++
			}
			if err == nil && (r.Stats.DrawsWanted == c.wanted) != (r.Stats.Draws < c.wanted) {
				t.Fatalf("%s: %d draws of %d", name, r.Stats.Draws, r.Stats.DrawsWanted)
			}
			if c.budget.Rows > 0 && r.Stats.ModelRows > int64(c.budget.Rows) {
				t.Fatalf("%s: %d rows", name, r.Stats.ModelRows)
			}
			for _, fill := range r.Fills {
				n++
				if fill.Values[0] == "seen" {
					hits++
				}
			}
		}
		if c.budget.Seconds == 0 && (n < 300 || fewer < c.seeds/2 && c.wanted < 1000) {
			t.Errorf("%s: %v draws, fewer than wanted in %d of %d runs", name, n, fewer, c.seeds)
		}
		return n, hits
	}
	all, likely := count("all", run{Budget{Rows: 1 << 30}, 0, 40000, 1})
	for name, c := range map[string]run{
		"10 rows": {Budget{Rows: 10}, 0, 200, 400}, "80 rows": {Budget{Rows: 80}, 0, 200, 400},
		"150 rows": {Budget{Rows: 150}, 0, 1000, 100}, "seconds": {Budget{Seconds: 5e-3}, 0, 5000, 100},
		"interrupted": {Budget{Rows: 60}, 11, 200, 400}, "interrupted late": {Budget{Rows: 300}, 13, 200, 400},
	} {
		n, hits := count(name, c)
		p := (likely + hits) / (all + n)
		z := (hits/n - likely/all) / math.Sqrt(p*(1-p)*(1/n+1/all))
		t.Logf("%s: %v of %v draws, %.1f standard errors", name, hits, n, z)
		if n > 0 && !(math.Abs(z) < 5.3) { // 1e-7 on both sides; a slow machine has no time for a draw
			t.Errorf("%s: %v of %v draws, of all %.4f: %.1f standard errors", name, hits, n, likely/all, z)
		}
	}
}

// TestDistinctTexts: what differs is what a reader sees, whatever the tokens and
// lengths.
func TestDistinctTexts(t *testing.T) {
	f := openBuiltIn(t)
	for _, c := range []struct {
		template string
		lists    Lists
		want     int // fills
	}{
		{"They un[MASK] the [MASK] .", Lists{1: {"trust", "do"}, 2: {"trust", "do"}}, 2},
		{"[MASK] chase [MASK] .", Lists{1: {"Dogs"}, 2: {"dogs", "cats"}}, 1},
		{"the [MASK] saw the [MASK:1-3] .", Lists{1: {"mother-in-law", "cat"}, 2: {"mother", "cat", "dog"}}, 5},
	} {
		fit := Fit{Distinct: true, Slots: c.lists}
		r, err := f.Fill(t.Context(), Request{Template: c.template, Top: 50, Fit: fit}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Fills) != c.want || !*r.Proven {
			t.Errorf("%s: %d fills, want %d", c.template, len(r.Fills), c.want)
		}
		for _, fill := range r.Fills {
			if strings.EqualFold(fill.Values[0], fill.Values[1]) {
				t.Errorf("%s: %q", c.template, fill.Text)
			}
		}
	}
	_, err := f.Plan(t.Context(), Request{Template: "[MASK] chase [MASK] .",
		Fit: Fit{Distinct: true, Slots: Lists{1: {"Dogs"}, 2: {"dogs"}}}})
	if err == nil || !strings.Contains(err.Error(), "too few words to hold different ones") {
		t.Errorf("dogs chase dogs: %v", err)
	}
}

// TestListedSigns: a listed sign beside a letter is the sign's own token, and a listed
// word goes on with the word.
func TestListedSigns(t *testing.T) {
	f := openBuiltIn(t)
	free, err := f.Fill(t.Context(), Request{Template: "It is very warm[MASK]", Fit: Fit{Fill: FillAny}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if free.Fills[0].Values[0] != "." || *free.Fills[0].Probability < 0.9 {
		t.Fatalf("%+v", free.Fills[0])
	}
	for _, fill := range []FillKind{FillAny, FillTokens, FillWords} {
		r, err := f.Fill(t.Context(), Request{Template: "It is very warm[MASK]",
			Fit: Fit{Fill: fill, Slots: Lists{1: {".", "er", "'s"}}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		top := r.Fills[0]
		// Two lengths, that of "." and that of "'s".
		nats := math.Log(2 * *top.Probability)
		if top.Text != "It is very warm." || !check.SameNats(nats, free.Fills[0].LogLikelihood, 1) {
			t.Errorf("%s: %q with %v, want %v", fill, top.Text, 2**top.Probability, *free.Fills[0].Probability)
		}
	}
	e, err := f.Gaps(t.Context(), GapsRequest{Text: "It is very warm[.]"})
	if err != nil {
		t.Fatal(err)
	}
	score, err := f.Score(t.Context(), ScoreRequest{Text: "It is very warm."})
	if err != nil {
		t.Fatal(err)
	}
	want := free.Fills[0].LogLikelihood
	gap := math.Log(e.Gaps[0].Probability)
	if !check.SameNats(gap, want, 1) || !check.SameNats(score.Words[4].LogLikelihood, want, 1) {
		t.Errorf("the gap has %v, the score %v, the fill %v", e.Gaps[0].Probability, score.Words[4], want)
	}
}
