package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/stat"

	"infill/infill"
	"infill/samplers"
)

// TestSnapshotEqualsResult compares what the screen gathered step by step with
// what the pipeline says of the same run, for every sampler.
func TestSnapshotEqualsResult(t *testing.T) {
	for _, sampler := range infill.Samplers() {
		t.Run(sampler, func(t *testing.T) {
			c, filler := testConfig(t, two)
			o := c.Options
			o.Sampler, o.Top = sampler, 10000
			want, err := filler.Fill(t.Context(), two, o, func(infill.Progress) {})
			if errors.Is(err, samplers.ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			q := request{filler: filler, template: two, options: o}
			got, err := q.run(t.Context(), make(chan *snapshot, 1), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if got.Distinct != want.Stats.DistinctFills || got.Rounds*got.Chains != want.Stats.Draws {
				t.Errorf("%d fills of %d draws, want %d of %d", got.Distinct, got.Rounds*got.Chains,
					want.Stats.DistinctFills, want.Stats.Draws)
			}
			var samples []infill.Fill
			for _, f := range got.Fills {
				samples = append(samples, f.Fill)
			}
			// Ties may stand in another order.
			if diff := cmp.Diff(want.Fills, samples, cmpopts.EquateApprox(1e-9, 1e-9),
				cmpopts.IgnoreFields(infill.Fill{}, "Rank", "Probability", "ProbabilityError", "FrequencyInterval",
					"SplitRHat", "EffectiveDraws"),
				cmpopts.SortSlices(func(a, b infill.Fill) bool { return a.Text < b.Text })); diff != "" {
				t.Error(diff)
			}
			if !slices.IsSortedFunc(got.Fills,
				func(a, b fill) int { return -compare(a.LogLikelihood, b.LogLikelihood) }) {
				t.Error("the fills are not sorted by log-likelihood")
			}
			rate, e := got.acceptance()
			if w := want.Stats.AcceptanceRate; w == nil != math.IsNaN(rate) ||
				w != nil && (math.Abs(rate-*w) > 1e-6 || math.Abs(e-*want.Stats.AcceptanceStandardError) > 1e-6) {
				t.Errorf("acceptance %v ± %v, want %v ± %v", rate, e, want.Stats.AcceptanceRate,
					want.Stats.AcceptanceStandardError)
			}
			if math.IsNaN(got.ESS) || math.IsNaN(got.RHat) {
				t.Errorf("R-hat %v, ESS %v", got.RHat, got.ESS)
			}
		})
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestSlotFrequencies recounts the values of a slot from the steps themselves,
// with the standard error as gonum has it.
func TestSlotFrequencies(t *testing.T) {
	_, filler := testConfig(t, two)
	template, err := filler.Template(two)
	if err != nil {
		t.Fatal(err)
	}
	const chains, rounds = 4, 9
	o := chainOptions()
	o.Chains, o.Steps, o.WarmUp = chains, rounds+2, 2
	r := newRecorder(template, o, time.Now)
	counts := map[string][]float64{}
	if _, err := filler.Fill(t.Context(), two, o, func(p infill.Progress) {
		for chain := range chains {
			if word := template.Fill(p.TokenIDs[2*chain:]).Fills[0]; p.Step > 2 {
				if counts[word] == nil {
					counts[word] = make([]float64, chains)
				}
				counts[word][chain]++
			}
		}
		r.add(p)
	}); err != nil {
		t.Fatal(err)
	}
	s := r.snap()
	if s.Rounds != rounds || s.WarmUpSteps != 2 {
		t.Fatalf("%d rounds after %d steps of warm-up, want %d after 2", s.Rounds, s.WarmUpSteps, rounds)
	}
	if len(s.Values[0]) != len(counts) {
		t.Fatalf("%d values, want %d", len(s.Values[0]), len(counts))
	}
	for _, v := range s.Values[0] {
		shares := counts[v.Text]
		for chain := range shares {
			shares[chain] /= rounds
		}
		mean, deviation := stat.MeanStdDev(shares, nil)
		if math.Abs(v.Probability-mean) > 1e-12 || math.Abs(v.StandardError-stat.StdErr(deviation, chains)) > 1e-12 {
			t.Errorf("%s: %v ± %v, want %v ± %v", v.Text, v.Probability, v.StandardError, mean,
				stat.StdErr(deviation, chains))
		}
	}
}

// TestSnapshotsStayAsTheyAre keeps every snapshot of a run and checks afterwards
// that nothing in it changed.
func TestSnapshotsStayAsTheyAre(t *testing.T) {
	c, filler := testConfig(t, two)
	template, err := filler.Template(two)
	if err != nil {
		t.Fatal(err)
	}
	o := c.Options
	o.Sampler = "gibbs"
	r := newRecorder(template, o, filler.clock.now)
	var snapshots, copies []*snapshot
	if _, err := filler.Fill(t.Context(), two, o, func(p infill.Progress) {
		r.add(p)
		s := r.snap()
		kept := *s
		kept.LogLikelihoods = nil
		for _, history := range s.LogLikelihoods {
			kept.LogLikelihoods = append(kept.LogLikelihoods, slices.Clone(history))
		}
		kept.Fills = slices.Clone(s.Fills)
		snapshots, copies = append(snapshots, s), append(copies, &kept)
	}); err != nil {
		t.Fatal(err)
	}
	unknown := func() bool { return math.IsNaN(float64(r.LogLikelihoods[0][len(r.LogLikelihoods[0])-1])) }
	if !unknown() {
		t.Fatal("gibbs knew its log-likelihoods: the test tests nothing")
	}
	if r.finish(); unknown() {
		t.Error("the log-likelihoods of a run that is over are not known")
	}
	for i := range snapshots {
		if diff := cmp.Diff(copies[i].LogLikelihoods, snapshots[i].LogLikelihoods, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("step %d: %s", i, diff)
		}
		if diff := cmp.Diff(copies[i].Fills, snapshots[i].Fills, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("step %d: %s", i, diff)
		}
	}
}

// TestModelColumn checks the model's own probabilities beside the sampled ones.
func TestModelColumn(t *testing.T) {
	c, filler := testConfig(t, two)
	d := newDriver(t, c, 160, 40)
	d.settle()
	d.keys("2")
	d.settle()
	m := d.model
	template, err := filler.Template(two)
	if err != nil {
		t.Fatal(err)
	}
	want, err := filler.LogConditionals(t.Context(), template, m.fills.current().TokenIDs)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, row := range m.slots.rows(m.blank) {
		token := row.TokenIDs[0]
		seen[token] = true
		if math.Abs(row.model-math.Exp(float64(want[0][token]))) > 1e-6 {
			t.Errorf("%s: %v, want %v", row.Text, row.model, math.Exp(float64(want[0][token])))
		}
	}
	for token := range want[0] {
		if !seen[token] && want[0][token] > -1 {
			t.Errorf("token %d, which the model likes, is not listed", token)
		}
	}
	d.keys("s")
	if !slices.IsSortedFunc(m.slots.rows(m.blank), func(a, b ratedValue) int { return -compare(a.model, b.model) }) {
		t.Error("not sorted by the model")
	}
	// A value that no chain drew can be pinned too.
	for i, row := range m.slots.rows(m.blank) {
		if row.Probability == 0 {
			m.slots.row = i
			d.keys("p")
			d.settle()
			if got := m.pins[0].text; got != row.Text {
				t.Errorf("pinned %q, want %q", got, row.Text)
			}
			for _, f := range m.fills.listed {
				if f.Values[0] != row.Text {
					t.Fatalf("%q with slot 1 pinned to %q", f.Text, row.Text)
				}
			}
			return
		}
	}
	t.Log("every value was drawn: nothing to pin")
}

func TestListing(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 100, 30)
	d.settle()
	m := d.model
	d.keys("s")
	if !slices.IsSortedFunc(m.fills.listed, func(a, b fill) int { return b.Count - a.Count }) {
		t.Error("not sorted by frequency")
	}
	d.keys("s")
	if !slices.IsSortedFunc(m.fills.listed, func(a, b fill) int { return b.NewWords - a.NewWords }) ||
		m.fills.listed[0].NewWords != 2 {
		t.Error("not sorted by novelty")
	}
	d.keys("s", "/")
	d.typeText("2:book wind")
	d.keys("enter")
	for _, f := range m.fills.listed {
		if f.Values[1] != "book" || !strings.Contains(strings.Join(f.Values, " "), "wind") {
			t.Errorf("%q passes the filter", f.Text)
		}
	}
	if len(m.fills.listed) == 0 {
		t.Error("nothing passes the filter")
	}
	d.keys("esc")
	if len(m.fills.listed) != m.run.snapshot.Distinct {
		t.Error("esc does not drop the filter")
	}
	// The selection stays at its fill when the order changes, and favourites
	// outlive the run.
	d.keys("down", "down", "f")
	kept := m.fills.current().Text
	d.keys("s")
	if m.fills.current().Text != kept {
		t.Errorf("the selection went from %q to %q", kept, m.fills.current().Text)
	}
	d.keys("i", "x", "esc")
	d.settle()
	d.keys("F")
	if len(m.fills.listed) != 1 || m.fills.listed[0].Text != kept || !m.fills.listed[0].Kept {
		t.Errorf("the favourites are %+v", m.fills.listed)
	}
	d.keys("p")
	if !m.noticeFault {
		t.Error("a fill of another template was pinned")
	}
}

func TestPinning(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 100, 30)
	d.settle()
	d.keys("right", "p")
	word := d.model.pins[1].text
	d.settle()
	for _, f := range d.model.fills.listed {
		if f.Values[1] != word {
			t.Fatalf("%q with slot 2 pinned to %q", f.Text, word)
		}
	}
	if frame := ansi.Strip(d.model.screen()); !strings.Contains(strings.Split(frame, "\n")[2], "looked "+word+" .") {
		t.Errorf("the template does not show the pinned word:\n%s", frame)
	}
	d.keys("left", "p")
	if len(d.model.pins) != 1 || !d.model.noticeFault {
		t.Error("the last free slot was pinned")
	}
	d.keys("P")
	d.settle()
	if len(d.model.pins) != 0 || d.model.run.snapshot.Distinct < 50 {
		t.Error("the slots were not freed")
	}
}

// TestPinningNamed pins all blanks of one name together.
func TestPinningNamed(t *testing.T) {
	c, _ := testConfig(t, "a [MASK=x] , the [MASK=x] and a [MASK] .")
	d := newDriver(t, c, 100, 30)
	d.settle()
	d.keys("right", "p")
	d.settle()
	m := d.model
	if len(m.pins) != 2 || m.pins[0].text != m.pins[1].text {
		t.Fatalf("pinned %+v", m.pins)
	}
	for _, f := range m.fills.listed {
		if f.Values[0] != m.pins[0].text || f.Values[1] != m.pins[1].text {
			t.Fatalf("%q with the name pinned to %s", f.Text, m.pins[0].text)
		}
	}
	d.keys("left", "p")
	d.settle()
	if len(m.pins) != 0 {
		t.Errorf("%d blanks are left pinned", len(m.pins))
	}
}

// TestWarnings shows what the pipeline says of a run, on narrow terminals too.
func TestWarnings(t *testing.T) {
	c, _ := testConfig(t, "she unfathomed the [MASK] .")
	d := newDriver(t, c, 80, 24)
	d.settle()
	exactly(t, d.model.screen(), 80, 24)
	if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "words outside the model's vocabulary") ||
		strings.Contains(frame, "were asked for") {
		t.Errorf("the screen:\n%s", frame)
	}
}

func TestPanel(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 100, 30)
	d.settle()
	m := d.model
	// Wrong values stay in the panel, with a word of what is wrong.
	for name, wrong := range map[string]string{"step-size": "-1", "steps": "many", "samples": "0", "candidates": "-5",
		"temperature": "0", "seed": "-1"} {
		d.option(name)
		d.typeText(wrong)
		d.keys("enter")
		if m.panel == nil || m.panel.fault == "" || m.panel.fields[m.panel.at].Name != name {
			t.Errorf("%q was taken for %s", wrong, name)
		}
		exactly(t, m.screen(), 100, 30)
		d.keys("esc")
	}
	d.keys("o", "down", "down")
	d.typeText("2000000")
	d.keys("enter")
	if m.panel == nil || !strings.Contains(m.panel.fault, "chains × steps") {
		t.Error("a run that is too large to show was taken")
	}
	d.keys("esc")
	// A sampler without step size drops the one given.
	d.keys("o", "down", "right", "up")
	for *m.panel.value("sampler") != "gibbs" {
		d.keys("right")
	}
	d.keys("down", "down")
	d.typeText("12")
	d.keys("backspace")
	d.typeText("6")
	d.keys("enter")
	d.settle()
	o := m.run.snapshot.Options
	if o.Sampler != "gibbs" || o.StepSize != 0 || o.Steps != 16 {
		t.Errorf("the run is of %+v", o)
	}
}

// TestLengths: a template of several lengths, written as such or by a list of words
// of several pieces, lists what the pipeline finds, by score, and every view says
// what it can of it.
func TestLengths(t *testing.T) {
	for name, test := range map[string]struct {
		template, allowed string
	}{
		"lengths": {template: "She opened the [MASK:1-2] and looked [MASK] ."},
		"words":   {template: "She opened the [MASK] and looked [MASK] .", allowed: "1=door,window curtain"},
		"longer":  {template: "She opened the [MASK] and looked [MASK] .", allowed: "1=window curtain,curtain window"},
	} {
		t.Run(name, func(t *testing.T) {
			c, filler := testConfig(t, test.template)
			c.Options.Constraints = infill.Constraints{}
			d := newDriver(t, c, 130, 30)
			d.settle()
			m := d.model
			if test.allowed != "" {
				d.option("slot")
				d.typeText(test.allowed)
				d.keys("enter")
				d.settle()
			}
			s := &m.run
			if s.fault != "" || s.snapshot == nil || s.snapshot.Result == nil || !s.snapshot.Several {
				t.Fatalf("fault %q, a snapshot: %t", s.fault, s.snapshot != nil)
			}
			o := s.options
			o.Top = mostLengths
			want, err := filler.Filler.Fill(t.Context(), test.template, o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Fills) != len(m.fills.listed) || len(m.fills.listed) < 2 {
				t.Fatalf("%d fills are listed, the pipeline finds %d", len(m.fills.listed), len(want.Fills))
			}
			for i, sample := range want.Fills {
				if got := m.fills.listed[i]; got.Text != sample.Text || got.LogLikelihood != sample.LogLikelihood {
					t.Errorf("fill %d is %q, %v; want %q, %v", i+1, got.Text, got.LogLikelihood, sample.Text,
						sample.LogLikelihood)
				}
			}
			for _, keys := range [][]string{{"down"}, {"2", "right", "left", "s", "down"}, {"3", "down"},
				{"1", "s", "s", "f"}} {
				d.keys(keys...)
				d.settle()
				if frame := ansi.Strip(m.screen()); strings.Contains(frame, "NaN") {
					t.Errorf("after %q:\n%s", keys, frame)
				}
				exactly(t, m.screen(), 130, 30)
			}
			d.keys("1", "p")
			if !strings.Contains(m.notice, "cannot be pinned") || len(m.pins) > 0 {
				t.Errorf("pinned: %q, %v", m.notice, m.pins)
			}
			if picked := (&Picked{Text: m.fills.current().Text,
				Result: m.resultOf([]fill{*m.fills.current()})}); picked.Result == nil ||
				picked.Result.Fills[0].Text != picked.Text {
				t.Errorf("picked %+v", picked)
			}
		})
	}
}

// TestWordLists: blanks take what is allowed and nothing forbidden, and a list
// that cannot be read stays in the panel.
func TestWordLists(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 100, 30)
	d.settle()
	m := d.model
	words := map[string]bool{}
	for _, f := range m.run.snapshot.Fills {
		words[f.Values[0]] = true
	}
	some := slices.Sorted(maps.Keys(words))
	if len(some) < 4 {
		t.Fatalf("only %q", some)
	}
	d.option("slot")
	d.typeText("1=" + some[0] + "," + some[1])
	d.keys("enter")
	d.settle()
	for _, f := range m.run.snapshot.Fills {
		if f.Values[0] != some[0] && f.Values[0] != some[1] {
			t.Errorf("%q was not allowed", f.Text)
		}
	}
	// What is forbidden comes beside what is allowed.
	d.option("ban")
	d.typeText(some[1])
	d.keys("enter")
	d.settle()
	if m.run.fault != "" {
		t.Fatal(m.run.fault)
	}
	for _, f := range m.run.snapshot.Fills {
		if f.Values[0] != some[0] {
			t.Errorf("%q holds a forbidden word", f.Text)
		}
	}
	d.option("slot")
	if got := *m.panel.value("slot"); got != "1="+some[0]+","+some[1] {
		t.Errorf("the panel shows %q", got)
	}
	d.keys("esc")
	for _, wrong := range []string{"red,blue", "1=", "x 1=red", "1=red 1=blue", "99999999999999999999=red", "0=red"} {
		d.option("slot")
		for *m.panel.value("slot") != "" {
			d.keys("backspace")
		}
		d.typeText(wrong)
		d.keys("enter")
		if m.panel == nil || m.panel.fault == "" {
			t.Errorf("%q was taken", wrong)
		}
		exactly(t, m.screen(), 100, 30)
		d.keys("esc")
	}
	// An empty list allows everything again.
	for _, name := range []string{"slot", "ban"} {
		d.option(name)
		for *m.panel.value(name) != "" {
			d.keys("backspace")
		}
		d.keys("enter")
		d.settle()
	}
	if o := m.run.options; len(o.Words) > 0 || len(o.Ban) > 0 {
		t.Errorf("constraints are left: %+v", o.Constraints)
	}
}

// TestSmallPanel: where there is no room for all fields, the chosen one is shown.
func TestSmallPanel(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 60, 16)
	d.settle()
	d.keys("o")
	for range d.model.panel.fields {
		f := d.model.panel.fields[d.model.panel.at]
		if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "▸ "+f.label) {
			t.Errorf("%s is not shown:\n%s", f.label, frame)
		}
		exactly(t, d.model.screen(), 60, 16)
		d.keys("down")
	}
}

func TestAnotherModel(t *testing.T) {
	c, first := testConfig(t, two)
	second := newFakeFiller(t, &fakeModel{})
	c.Models = []string{"toy", "other"}
	open := c.Open
	c.Open = func(ctx context.Context, name string) (Filler, error) {
		switch name {
		case "toy":
			return open(ctx, name)
		case "other":
			return second, nil
		}
		return nil, &infill.OptionError{Option: "model", Reason: "there is no \x1b[31m" + name}
	}
	d := newDriver(t, c, 100, 30)
	d.settle()
	d.keys("o", "up", "right", "enter")
	d.settle()
	if first.closed.Load() != 1 || d.model.filler != Filler(second) || d.model.run.snapshot == nil {
		t.Error("the model did not change")
	}
	d.keys("o", "up")
	d.typeText("nowhere")
	d.keys("enter")
	d.settle()
	frame := d.model.screen()
	if !strings.Contains(ansi.Strip(frame), "there is no ␛[31mnowhere") || strings.Contains(frame, "\x1b[31m") ||
		second.closed.Load() != 0 {
		t.Errorf("a model that is not there:\n%s", ansi.Strip(frame))
	}
}

func TestNoModel(t *testing.T) {
	c, _ := testConfig(t, two)
	c.Open = func(context.Context, string) (Filler, error) {
		return nil, &infill.OptionError{Option: "model", Reason: "model.safetensors is damaged"}
	}
	d := newDriver(t, c, 80, 24)
	d.settle()
	if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "model.safetensors is damaged") ||
		!strings.Contains(frame, "no model") {
		t.Errorf("the screen does not say so:\n%s", frame)
	}
	d.keys("3", "r", "2", "p", "1", "enter", "w", "y", "q")
	d.settle()
	if !d.quit {
		t.Error("q does not quit")
	}
}

// TestBest checks the selection of the most probable tokens against sorting.
func TestBest(t *testing.T) {
	stream := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		logp := make([]float32, 1+stream.IntN(60))
		for i := range logp {
			logp[i] = float32(stream.IntN(12))
		}
		number := 1 + stream.IntN(20)
		var got, want []float32
		for _, token := range best(logp, number) {
			got = append(got, logp[token])
		}
		want = slices.Clone(logp)
		slices.Sort(want)
		slices.Reverse(want)
		if diff := cmp.Diff(want[:min(number, len(want))], got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestAnswerOfTheCommand: without a named sampler the screen shows what the pipeline finds, as the command prints it.
func TestAnswerOfTheCommand(t *testing.T) {
	for _, template := range []string{"She opened the [MASK] and looked at it .", two,
		"She opened the [MASK:1-2] and looked [MASK] ."} {
		c, filler := testConfig(t, template)
		c.Options = infill.DefaultOptions()
		d := newDriver(t, c, 100, 30)
		d.settle()
		s := d.model.run.snapshot
		want, err := filler.Fill(t.Context(), template, infill.DefaultOptions(), func(infill.Progress) {})
		if err != nil || s == nil || s.Result == nil || !s.Answer || s.Result.Method != want.Method ||
			s.Result.Seed != nil {
			t.Fatalf("%v %+v", err, s)
		}
		for i, fill := range want.Fills {
			if got := s.Fills[i]; got.Text != fill.Text || math.Abs(got.Frequency / *fill.Probability - 1) > 1e-6 {
				t.Errorf("%s: fill %d is %q %v, want %q %v", template, i+1, got.Text, got.Frequency, fill.Text,
					*fill.Probability)
			}
		}
		for _, view := range []string{"3", "2", "1"} {
			d.keys(view)
			if frame := ansi.Strip(d.model.screen()); strings.Contains(frame, "NaN") ||
				strings.Contains(frame, "seed") {
				t.Errorf("view %s:\n%s", view, frame)
			}
			// What a search knows of a word is a bound from below, as long as it has not followed all.
			for _, v := range slices.Concat(s.Values...)[:min(1, len(s.Values))] {
				bound := fmt.Sprintf("≥ %.1f ", 100*v.Probability)
				if open := *v.AtMost-v.Probability >= 0.0005; view == "2" &&
					open != strings.Contains(ansi.Strip(d.model.screen()), bound) {
					t.Errorf("%s: open %t, %q in\n%s", template, open, bound, ansi.Strip(d.model.screen()))
				}
			}
			exactly(t, d.model.screen(), 100, 30)
		}
		if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "probability") {
			t.Errorf("no probability:\n%s", frame)
		}
		d.option("sampler")
		for *d.model.panel.value("sampler") != "gibbs" {
			d.keys("right")
		}
		d.keys("enter")
		d.settle()
		if s := d.model.run.snapshot; s == nil || s.Answer || s.Chains == 0 || d.model.run.fault != "" {
			t.Errorf("chains when asked for: %+v, fault %q", s, d.model.run.fault)
		}
	}
}
