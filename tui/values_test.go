package tui

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/phrase"
	"infill/samplers"
)

// fillOf fills as the command does.
func fillOf(t *testing.T, f *fakeFiller, template string, options []string) *infill.Result {
	t.Helper()
	result, err := f.Fill(t.Context(), requestBy(t, template, options), func(infill.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestSearch: the fills, their probabilities and the proof are the command's,
// with its digits.
func TestSearch(t *testing.T) {
	for _, template := range []string{"She opened the [MASK] and looked at it .", two,
		"She opened the ___ and looked <mask> .", "She opened the [MASK:1-2] and looked [MASK] .",
		"She [MASK] [MASK] [MASK] ."} {
		c, filler := testConfig(t, template)
		d := newDriver(t, c, 110, 30)
		d.settle()
		want := fillOf(t, filler, template, nil)
		if diff := cmp.Diff(want, d.model.run.shown.result); diff != "" {
			t.Errorf("%s (-want +got):\n%s", template, diff)
		}
		for i, f := range want.Fills {
			row := strings.Split(d.frame(), "\n")[7+i]
			number := fmt.Sprintf("%.2f  %11s", f.LogLikelihood, phrase.Percent(*f.Probability))
			if !strings.Contains(row, f.Text) || !strings.HasSuffix(strings.TrimRight(row, " "), number) {
				t.Errorf("row %d is %q, want %q and %s", i+1, row, f.Text, number)
			}
		}
		rows := fmt.Sprintf("the 5 likeliest, proven: nothing that the blanks may take is more probable; %s ",
			phrase.Counted(want.Stats.ModelRows, "model row"))
		d.shows("──"+phrase.Percent(*want.Fills[0].Probability)+"  log-likelihood", "✓ search, 1.2 s", rows)
		if strings.Contains(d.frame(), "seed") {
			t.Errorf("a search has a seed:\n%s", d.frame())
		}
		d.keys("r")
		d.shows("a search has no seed")
	}
}

// TestPercent holds the digits of the command.
func TestPercent(t *testing.T) {
	for p, want := range map[float64]string{0.0778: "7.8 %", 0.00042: "0.042 %", 1: "100.0 %", 0: "0.0 %",
		0.001: "0.1 %", 3.2e-11: "< 0.001 %", 0.000012: "0.0012 %", math.NaN(): "–"} {
		if got := phrase.Percent(p); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
}

// TestBudget: what is not proven is called so, with the bound of the command.
func TestBudget(t *testing.T) {
	c, filler := testConfig(t, "She [MASK] [MASK] [MASK] .")
	c.Options = given("budget=4")
	d := newDriver(t, c, 110, 24)
	d.settle()
	want := fillOf(t, filler, c.Template, c.Options)
	if *want.Proven {
		t.Fatal("it is proven: the test tests nothing")
	}
	d.shows("not proven: nothing left out has more than " + phrase.AtMost(*want.LeftOutAtMost))
}

// TestDivided: the screen says what divides the probabilities, as the command does.
func TestDivided(t *testing.T) {
	c, _ := testConfig(t, "She [MASK:1-2] .")
	d := newDriver(t, c, 110, 24)
	d.settle()
	d.shows("each probability is divided by 2, the number of lengths that the blanks may have")
}

// TestShares: where every blank has a list, the share of each fill stands
// beside its probability, and that of each word is the sum over fills.
func TestShares(t *testing.T) {
	c, filler := testConfig(t, two)
	d := newDriver(t, c, 110, 30)
	d.set("slot", "1=door,window 2=up,down")
	want := fillOf(t, filler, two, given("slot=1=door,window 2=up,down"))
	door := 0.0
	for _, f := range want.Fills {
		d.shows(phrase.Percent(*f.Probability) + "  " + right(phrase.Percent(*f.Share), 8))
		if f.Values[0] == "door" {
			door += *f.Share
		}
	}
	d.shows("all that the blanks may take", "share")
	d.keys("2")
	d.shows(fmt.Sprintf("%10s%10s", phrase.Percent(door), phrase.Percent(aloneOf(want, 0, "door"))))
	// A ban comes beside the list, and the panel keeps both.
	d.keys("1")
	d.set("ban", "door")
	if frame := d.frame(); strings.Contains(frame, "door") || !strings.Contains(frame, "window") {
		t.Errorf("door is banned:\n%s", frame)
	}
	d.option("slot")
	d.shows("1=door,window 2=up,down")
}

func aloneOf(r *infill.Result, blank int, word string) float64 {
	at := slices.IndexFunc(r.Alone[blank], func(v infill.Value) bool { return v.Text == word })
	if at < 0 {
		return math.NaN()
	}
	return r.Alone[blank][at].Probability
}

// TestAlone: page 2 lists what each blank holds by itself, and pins it.
func TestAlone(t *testing.T) {
	c, filler := testConfig(t, two)
	d := newDriver(t, c, 110, 30)
	d.settle()
	d.keys("2")
	want := fillOf(t, filler, two, c.Options)
	for blank, values := range want.Alone {
		d.shows(fmt.Sprintf("blank %d", blank+1))
		for i, v := range values {
			row := strings.Split(strings.Split(d.frame(), "\n")[8+i], "│")[blank]
			if !strings.Contains(row, v.Text) || !strings.HasSuffix(strings.TrimSpace(row),
				phrase.Percent(v.Probability)) {
				t.Errorf("row %d of blank %d is %q, want %s %s", i+1, blank+1, row, v.Text,
					phrase.Percent(v.Probability))
			}
		}
	}
	d.keys("right", "down", "p")
	d.settle()
	d.shows("pinned to " + want.Alone[1][1].Text)
	d.keys("1")
	d.shows("looked " + want.Alone[1][1].Text + " .")
	// Blanks of several pieces have no word by themselves.
	d = newDriver(t, Config{Template: "She opened the [MASK:2] .", Options: c.Options, Open: c.Open, Now: c.Now,
		Model: "toy"}, 80, 24)
	d.settle()
	d.keys("2")
	d.shows("a blank of several tokens has no word by itself")
}

// TestPinning: a pin is a list of one word. The rest is filled around it, with
// the numbers that the command gives.
func TestPinning(t *testing.T) {
	for name, test := range map[string]struct {
		template string
		sampler  string
		blank    int
	}{
		"first":   {two, "", 0},
		"second":  {two, "", 1},
		"opening": {"[MASK] was a [MASK] .", "", 0},
		"lengths": {"She opened the [MASK:1-2] and looked [MASK] .", "", 0},
		"named":   {"a [MASK=x] , the [MASK=x] and a [MASK] .", "", 1},
		"chains":  {two, "dmala", 0},
		"draws":   {two, "draws", 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, filler := testConfig(t, test.template)
			c.Options = given("seed=3")
			switch test.sampler {
			case "":
			case "draws":
				c.Options = given("seed=3", "samples=40")
			default:
				c.Options = chainOptions(test.sampler)
			}
			d := newDriver(t, c, 110, 30)
			d.settle()
			for range test.blank {
				d.keys("right")
			}
			d.keys("down")
			word := d.model.fills.current().Values[test.blank]
			d.keys("p")
			d.settle()
			o := append(slices.Clone(c.Options), given(fmt.Sprintf("slot=%d=%s", test.blank+1, word))...)
			if test.sampler == "dmala" {
				o = append(o, given(fmt.Sprintf("top=%d", mostDrawn))...)
			}
			want := fillOf(t, filler, test.template, o)
			if diff := cmp.Diff(want, d.model.run.shown.result); diff != "" {
				t.Fatalf("pinned to %s (-want +got):\n%s", word, diff)
			}
			for _, f := range d.model.fills.listed {
				if f.Values[test.blank] != word {
					t.Fatalf("%q with blank %d pinned to %s", f.Text, test.blank+1, word)
				}
			}
			if test.template == two {
				if line := strings.Split(d.frame(), "\n")[2]; !strings.Contains(line, word) {
					t.Errorf("the template does not show the pinned word: %q", line)
				}
			}
			d.shows("p unpin")
			d.keys("p")
			d.settle()
			d.shows("p pin")
			d.keys("p", "P")
			d.settle()
			if len(d.model.pins) > 0 || len(d.model.run.shown.fills()) < 2 {
				t.Error("the blanks were not freed")
			}
		})
	}
}

// TestPinnedAll pins every blank: one fill is left, which has the
// probability that it had.
func TestPinnedAll(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 110, 30)
	d.settle()
	before := *d.model.fills.current()
	d.keys("p")
	d.settle()
	d.keys("right", "p")
	d.settle()
	if list := d.model.fills.listed; len(list) != 1 || list[0].Text != before.Text ||
		math.Abs(*list[0].Probability / *before.Probability - 1) > 1e-6 {
		t.Errorf("%+v, want %s with %v", list, before.Text, *before.Probability)
	}
	d.shows("100.0 %")
}

// TestDraws shows independent draws, and those of the next seed.
func TestDraws(t *testing.T) {
	c, filler := testConfig(t, two)
	c.Options = given("samples=40", "seed=3", "top=50")
	d := newDriver(t, c, 110, 30)
	d.settle()
	want := fillOf(t, filler, two, c.Options)
	d.shows("seed 3", "✓ draws",
		fmt.Sprintf("40 independent draws from the model, %d different fills", want.Stats.DistinctFills),
		fmt.Sprintf("%11s  %5d ", phrase.Percent(*want.Fills[0].Probability), want.Fills[0].Count))
	d.keys("s")
	if !slices.IsSortedFunc(d.model.fills.listed, func(a, b infill.Fill) int { return b.Count - a.Count }) {
		t.Error("not sorted by how often they were drawn")
	}
	d.shows("by draws")
	d.keys("r")
	d.settle()
	d.shows("seed 4")
}

// TestChains compares what the screen gathers step by step with what the
// pipeline says of the same run, for every sampler: fills, shares of words,
// diagnostics, and the log-likelihoods that a sampler does not need on its way.
func TestChains(t *testing.T) {
	for _, sampler := range ask.Samplers() {
		if testing.Short() && sampler != "gibbs" && sampler != "dmala" {
			continue
		}
		t.Run(sampler, func(t *testing.T) {
			c, filler := testConfig(t, two)
			c.Options = chainOptions(sampler)
			asked := requestBy(t, two, append(c.Options, fmt.Sprintf("top=%d", mostDrawn)))
			var steps []infill.Progress
			want, err := filler.Fill(t.Context(), asked, func(p infill.Progress) { steps = append(steps, p) })
			var option *infill.OptionError
			if errors.Is(err, samplers.ErrUnsupported) || errors.As(err, &option) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			d := newDriver(t, c, 130, 30)
			d.settle()
			s := d.model.run.shown
			if diff := cmp.Diff(want, s.result); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			f := want.Fills[0]
			d.shows(fmt.Sprintf("%.2f  %14s", f.LogLikelihood, ask.SharePercent(&f, true)),
				ask.Found(want), fmt.Sprintf("; %d distinct", want.Stats.DistinctFills))
			// The shares of words are counted again from the steps themselves.
			d.send(sizeOf(110, 40))
			d.keys("2")
			counts, draws := map[string]int{}, 0
			words := map[int]string{}
			for _, f := range want.Fills {
				words[f.TokenIDs[0]] = f.Values[0]
			}
			for _, p := range steps {
				for at := 0; at < len(p.TokenIDs) && p.Step > 20; at += 2 {
					counts[words[p.TokenIDs[at]]]++
					draws++
				}
			}
			for _, word := range slices.Sorted(maps.Keys(counts))[:3] {
				of := float64(counts[word]) / float64(draws)
				d.shows(fmt.Sprintf("%10s%10s", phrase.Percent(of), phrase.Percent(aloneOf(want, 0, word))))
			}
			d.keys("3")
			stats := want.Stats.Chains
			d.shows(fmt.Sprintf("R-hat %.3f · ESS %.0f of %d", *stats.SplitRHat, *stats.EffectiveDraws, draws))
			if stats.AcceptanceRate != nil {
				d.shows(fmt.Sprintf("acceptance %.2f ± %.2f", *stats.AcceptanceRate, *stats.AcceptanceStandardError))
			}
			for chain, history := range s.logLikelihoods {
				if u := history[len(history)-1]; u != u || len(history) != 41 {
					t.Fatalf("chain %d has %d log-likelihoods, the last %v", chain+1, len(history), u)
				}
			}
			last := steps[len(steps)-1]
			if u := last.LogLikelihoods[0]; !math.IsNaN(u) {
				d.shows(fmt.Sprintf("%.2f", u))
			}
		})
	}
}

// TestMoves tells what a chain changed last, as the steps have it.
func TestMoves(t *testing.T) {
	c, filler := testConfig(t, two)
	c.Options = chainOptions("gibbs")
	c.Options = append(c.Options, given("samples=3")...)
	filler.holdAt = 25
	d := newDriver(t, c, 110, 30)
	d.keys("3")
	d.until("step 25", func() bool { return d.model.run.shown != nil && d.model.run.shown.step == 25 })
	s := d.model.run.shown
	d.shows("U of this sampler is worked out when it is done", "   ?  ")
	for chain, m := range s.moves {
		if m.step == 0 || len(m.blanks) != 1 {
			t.Fatalf("chain %d: %+v", chain+1, m)
		}
		want := fmt.Sprintf("%s → %s", m.from[0], m.to[0])
		switch ago := 25 - m.step; ago {
		case 0:
			want += "\n"
		case 1:
			want += "  1 step ago"
		default:
			want += fmt.Sprintf("  %d steps ago", ago)
		}
		if row := strings.Split(d.frame(), "\n")[10+chain]; !strings.Contains(strings.TrimRight(row, " ")+"\n", want) {
			t.Errorf("chain %d: %q, want %q", chain+1, row, want)
		}
	}
}

// TestSnapshotsStayAsTheyAre keeps every snapshot of a run and checks
// afterwards that nothing in it changed.
func TestSnapshotsStayAsTheyAre(t *testing.T) {
	_, filler := testConfig(t, two)
	asked := requestBy(t, two, chainOptions("gibbs"))
	r := &recorder{filler: filler, asked: asked}
	var kept []*snapshot
	var copies []string
	print := func(s *snapshot) string {
		return fmt.Sprint(s.step, s.logLikelihoods, s.accepted, s.moves, s.result.Fills)
	}
	result, err := filler.Fill(t.Context(), asked, func(p infill.Progress) {
		r.add(p)
		s := r.snap()
		kept, copies = append(kept, s), append(copies, print(s))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.finish(result)
	for i, s := range kept {
		if got := print(s); got != copies[i] {
			t.Fatalf("snapshot %d became %.300s", i, got)
		}
	}
}

// TestListing filters, and keeps the selection at its fill.
func TestListing(t *testing.T) {
	c, _ := testConfig(t, two)
	c.Options = chainOptions("dmala")
	d := newDriver(t, c, 100, 30)
	d.settle()
	m := d.model
	all := len(m.fills.listed)
	d.keys("down", "down")
	kept := m.fills.current().Text
	d.keys("s")
	if m.fills.current().Text != kept {
		t.Errorf("the selection went from %q to %q", kept, m.fills.current().Text)
	}
	d.keys("s", "/")
	d.typeText("2:book wind")
	d.shows("filter 2:book wind", fmt.Sprintf("%d found", len(m.fills.listed)))
	d.keys("enter")
	for _, f := range m.fills.listed {
		if f.Values[1] != "book" || !strings.Contains(strings.Join(f.Values, " "), "wind") {
			t.Errorf("%q passes the filter", f.Text)
		}
	}
	if n := len(m.fills.listed); n == 0 || n == all {
		t.Errorf("%d of %d fills pass the filter", n, all)
	}
	d.shows("/2:book wind")
	d.keys("esc")
	if len(m.fills.listed) != all {
		t.Error("esc does not drop the filter")
	}
	d.keys("/")
	d.typeText("nothing")
	d.shows("no fill matches; esc drops the filter")
	d.keys("enter", "enter")
	d.shows("no fill matches; esc drops the filter")
}

// TestContext: fills and what blanks hold by themselves are those behind the
// context, with the built-in model.
func TestContext(t *testing.T) {
	f, err := infill.Open(infill.OpenOptions{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := testConfig(t, "The [MASK] sat on the [MASK].")
	c.Open = openerOf(f)
	c.Options = given("context=We have a cat.")
	c.Now = time.Now
	d := newDriver(t, c, 100, 24)
	d.settle()
	want, err := f.Fill(t.Context(), infill.Request{Template: c.Template, Context: "We have a cat."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.shows(want.Fills[0].Text, phrase.Percent(*want.Fills[0].Probability))
	d.keys("2")
	d.shows(want.Alone[0][0].Text, phrase.Percent(want.Alone[0][0].Probability),
		phrase.Percent(want.Alone[1][4].Probability))
}
