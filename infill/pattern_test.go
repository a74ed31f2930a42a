package infill

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPatternAutomaton compares the automaton with Go's own matcher over every piece and
// every pair of pieces.
func TestPatternAutomaton(t *testing.T) {
	f, _ := newFake(t)
	for _, expression := range []string{".at", "un.*", "(c|d|r)[aou][tng]", "s.{0,2}", "unseen|cat", "[^a-m]+",
		"un(see|know)n", "(?:at)?m?at", `\w\w\w`, "UN.*", "x*", "u?n?seen"} {
		t.Run(expression, func(t *testing.T) {
			template, err := f.tokenizer.Template("the [MASK~" + expression + "] .")
			if err != nil {
				t.Fatal(err)
			}
			r, err := f.rules(template, Constraints{}, fillWords)
			if err != nil {
				t.Fatal(err)
			}
			matches := regexp.MustCompile(`(?i)\A(?:` + expression + `)\z`)
			for _, pieces := range []int{1, 2} {
				got, err := r.patterns[0].words(template.Blanks[0], pieces, 1000, nil)
				if err != nil {
					t.Fatal(err)
				}
				var want [][]int
				for _, first := range r.openings(template.Blanks[0]) {
					if pieces == 1 {
						if matches.MatchString(f.pieceText(first)) {
							want = append(want, []int{first})
						}
						continue
					}
					for _, second := range f.going() {
						ids := []int{first, second}
						if matches.MatchString(f.pieceText(first)+f.pieceText(second)) &&
							f.cutSo(template.Blanks[0], ids) {
							want = append(want, ids)
						}
					}
				}
				slices.SortFunc(got, slices.Compare)
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%d pieces: got %v, want %v", pieces, got, want)
				}
			}
		})
	}
}

// TestPatternOrder: the words come in the order of their log-probabilities.
func TestPatternOrder(t *testing.T) {
	f, _ := newFake(t)
	template, err := f.tokenizer.Template("the [MASK:2~.*] .")
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.rules(template, Constraints{}, fillWords)
	if err != nil {
		t.Fatal(err)
	}
	logp := [][]float32{make([]float32, len(fakeWords())), make([]float32, len(fakeWords()))}
	for token := range fakeWords() {
		logp[0][token], logp[1][token] = float32(weight(token)), float32(-weight(2*token))
	}
	all, err := r.patterns[0].words(template.Blanks[0], 2, 1000, logp)
	if err != nil || len(all) < 10 {
		t.Fatal(len(all), err)
	}
	last := math.Inf(1)
	for _, ids := range all {
		sum := float64(logp[0][ids[0]]) + float64(logp[1][ids[1]])
		if sum > last+1e-6 {
			t.Errorf("%v with %v after %v", ids, sum, last)
		}
		last = sum
	}
	few, err := r.patterns[0].words(template.Blanks[0], 2, 3, logp)
	if err != nil || fmt.Sprint(few) != fmt.Sprint(all[:3]) {
		t.Errorf("the best three are %v, want %v (%v)", few, all[:3], err)
	}
}

// TestPatterns: what is found matches, in one piece and in several, and is all that does.
func TestPatterns(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Top = 100
	for template, want := range map[string][]string{
		"the [MASK~.at] .":                    {"cat", "mat", "sat"},
		"the [MASK:2~un.+] .":                 {"unknown", "unseen"},
		"the [MASK:1-2~un.*] .":               {"un", "unknown", "unseen"},
		"the [MASK:1~un.*] .":                 {"un"},
		"un[MASK~.{4,5}] .":                   {"known", "seen"},
		"the [MASK=x~u.*] ran the [MASK=x] .": {"un"},
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
		if len(values) != len(want) && !strings.Contains(template, "=x") {
			t.Errorf("%s: got %v, want %v", template, values, want)
		}
	}
	for template, want := range map[string]string{
		"the [MASK~zz+] .":             "no word that the model can write fits",
		"the [MASK~(] .":               "a pattern that is not a regular expression",
		"the [MASK~] .":                "a pattern that is not a regular expression",
		"the [MASK~cat .":              "the closing ] is missing",
		"the [MASK~[]a] .":             "the closing ] is missing",
		"a [MASK=a~u.*] [MASK=a~un.*]": "one name",
	} {
		if err := check(f, template, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", template, err, want)
		}
	}
	o.Words = map[int][]string{1: {"cat"}}
	if err := check(f, "the [MASK~.at] .", o); err == nil ||
		!strings.Contains(err.Error(), "give it a list or a pattern") {
		t.Errorf("a list beside a pattern: %v", err)
	}
}

// TestDistinct: blanks hold different words, those of one name the same.
func TestDistinct(t *testing.T) {
	f, model := newFake(t)
	o := DefaultOptions()
	o.Fill, o.Distinct = FillAny, true
	o.Sampler, o.Chains, o.Steps, o.Seed = "dmala", 150, 400, 5
	checkLaw(t, f, model, "the [MASK] [MASK] .", 2, o, func(w []string) bool { return w[0] != w[1] })
	o.Chains, o.Steps = 10, 50
	for _, s := range fill(t, f, "the [MASK=a] [MASK=a] [MASK] .", o).Fills {
		if s.Values[0] != s.Values[1] || s.Values[0] == s.Values[2] {
			t.Errorf("%v", s.Values)
		}
	}
}

// TestEscapes: a backslash makes text of a blank, in short texts and long ones.
func TestEscapes(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Chains, o.Steps, o.Top = 2, 4, 1
	filler := strings.Repeat(`the cat ran . `, 5)
	for _, template := range []string{`a \[MASK] on the [MASK]`, `the [MASK] \[MASK:2] a`,
		`the [MASK] ran . ` + filler + `a \[MASK] on the [MASK]`} {
		s := fill(t, f, template, o).Fills[0]
		want, rest := "", template
		for _, value := range s.Values {
			at := regexp.MustCompile(`(^|[^\\])\[MASK\]`).FindStringIndex(rest)
			start := at[1] - len("[MASK]")
			want += rest[:start] + value
			rest = rest[at[1]:]
		}
		want = strings.ReplaceAll(want+rest, `\[MASK`, `[MASK`)
		if s.Text != want {
			t.Errorf("got %q, want %q", s.Text, want)
		}
		for i, span := range s.Spans {
			if s.Text[span[0]:span[1]] != s.Values[i] {
				t.Errorf("span %d of %q holds %q", i, s.Text, s.Text[span[0]:span[1]])
			}
		}
	}
	if _, err := f.tokenizer.Template(`the \[MASK] cat`); err == nil {
		t.Error("text alone passes for a blank")
	}
	if encoding, err := f.tokenizer.Plain(`the \[MASK] cat`); err != nil ||
		slices.Contains(encoding.IDs, f.tokenizer.MaskID()) {
		t.Errorf("scored text: %v, %v", encoding, err)
	}
}
