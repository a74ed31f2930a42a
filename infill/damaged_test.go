package infill_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"infill/infill"
)

// TestDamaged fills gaps in damaged texts, testdata/damaged.tsv, with the
// built-in model: how often the word that stood there comes first, and is among
// five, with its remaining letters as a pattern and without. The sentences were
// written for this test.
func TestDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred fills by the model, one at a time")
	}
	content, err := os.ReadFile("../testdata/damaged.tsv")
	if err != nil {
		t.Fatal(err)
	}
	filler, err := infill.Open(infill.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	pattern := regexp.MustCompile(`\[MASK(?::1)?~([^\]]*)\]`)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	// count fills each template; the word of a line is right whatever its capitals.
	count := func(change func(template string) string) (first, five int) {
		for _, line := range lines {
			template, word, _ := strings.Cut(line, "\t")
			result, err := filler.Fill(t.Context(), infill.Request{Template: change(template)}, nil)
			if err != nil {
				t.Fatalf("%s: %v", template, err)
			}
			for i, fill := range result.Fills {
				if strings.EqualFold(fill.Values[0], word) {
					five++
					if i == 0 {
						first++
					}
				}
			}
		}
		return first, five
	}
	for _, line := range lines {
		template, word, _ := strings.Cut(line, "\t")
		if m := pattern.FindStringSubmatch(template); m == nil ||
			!regexp.MustCompile("^(?:"+m[1]+")$").MatchString(word) {
			t.Errorf("%s: the pattern does not fit %q", template, word)
		}
	}
	with, withFive := count(func(template string) string { return template })
	without, withoutFive := count(func(template string) string { return pattern.ReplaceAllString(template, "[MASK]") })
	t.Logf("%d words: with the pattern %d first and %d among five, without %d and %d", len(lines), with, withFive,
		without, withoutFive)
	if len(lines) != 48 || with < 35 || withFive < 42 || with <= without || withFive <= withoutFive {
		t.Errorf("of %d words %d come first and %d among five with the pattern, %d and %d without", len(lines), with,
			withFive, without, withoutFive)
	}
}

// TestExpected is a table of what people try first, and what every fill of it has to be.
func TestExpected(t *testing.T) {
	if testing.Short() {
		t.Skip("fills by the model, one at a time")
	}
	filler, err := infill.Open(infill.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	long := strings.Repeat("The old house stood by the river , and nobody had lived there for years . ", 25)
	for _, test := range []struct {
		template string
		change   func(*infill.Request)
		want     string // of every fill's text
		warning  string // part of one
	}{
		{"import [MASK] as np", nil, `^import \pL[\pL\pN]* as np$`, ""},
		{"def [MASK](x)", nil, `^def [\pL\pN]+\(x\)$`, ""},
		{"the [MASK] sat by the [MASK]", nil, `^the [\pL\pN]+ sat by the [\pL\pN]+$`, ""},
		{"I have a dog and a [MASK]", nil, `^I have a dog and a [\pL\pN]+$`, ""},
		{"He closed the door and went home [MASK]", nil, `^He closed the door and went home [\pL\pN]+$`,
			"end the sentence, or take fill=tokens"},
		{"a high[MASK] bridge", nil, `^a high[\pL\pN]+ bridge$`, ""},
		{"they called it [MASK]ism", nil, `^they called it [\pL]{4,}ism$`, ""}, // not "a" and "ism"
		{"He lived in New [MASK].", func(o *infill.Request) { o.Top = 1 }, `^He lived in New York\.$`, ""},
		{"THE [MASK] SAT ON THE MAT", nil, `^THE [\p{Lu}\pN]+ SAT ON THE MAT$`, ""},
		{"They were [MASK] and [MASK] .", func(o *infill.Request) { o.Fit.Distinct = true },
			`^They were [\pL\pN]+ and [\pL\pN]+ \.$`, ""},
		{"They [MASK~st..d] by the old mill.", func(o *infill.Request) { o.Top = 2 },
			`^They (stood|stand) by the old mill\.$`, ""},
		{"Der Hund läuft schnell durch den dunklen [MASK] nach Hause.", nil, `^Der Hund `,
			"a language that it has hardly seen"},
		{"he had , after all , told me the [MASK] but abandoned me .", nil, `^he had `, ""},
		{long + "He closed the [MASK] . " + long, nil,
			"^" + regexp.QuoteMeta(long) + `He closed the [\pL\pN]+ \. ` + regexp.QuoteMeta(long) + "$",
			"tokens the model sees"},
	} {
		o := infill.Request{Template: test.template, Seed: 1}
		if test.change != nil {
			test.change(&o)
		}
		result, err := filler.Fill(t.Context(), o, nil)
		if err != nil {
			t.Errorf("%s: %v", test.template, err)
			continue
		}
		want := regexp.MustCompile(test.want)
		for _, fill := range result.Fills {
			if !want.MatchString(fill.Text) || bool(o.Fit.Distinct) && fill.Values[0] == fill.Values[1] {
				t.Errorf("%s gives %q", test.template, fill.Text)
			}
		}
		if !strings.Contains(strings.Join(result.Warnings, "\n"), test.warning) {
			t.Errorf("%s: warnings %q, none with %q", test.template, result.Warnings, test.warning)
		}
	}
}
