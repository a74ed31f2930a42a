package commands

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/gaps"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/check"
)

const bracketed = "The [dog] sat on the [mat]."

// What cannot become an exercise is refused in a line.
func TestGapsRefuses(t *testing.T) {
	useFormula(t)
	writeFiles(t, map[string]string{"table.csv": "text\n", "empty.txt": "", "tabs.txt": "a\tb\n",
		"mac.txt": "The dog sat.\rThe cat ran."})
	const which = "infill: which words become gaps? Put them in brackets, as in the [gate] was open, or choose them " +
		"by " +
		"every, pos or words"
	runCases(t, gaps.NewCmd, []callCase{
		{Line: "gaps a b", Code: 2, Err: "infill: 2 arguments given, one text is read: put quotes around it\n"},
		{Line: "gaps", Texts: []string{"The dog sat."}, Code: 2, Err: which},
		{Line: "gaps", Texts: []string{"The [dog sat."}, Code: 2, Err: "infill: a bracket holds no word, or is not " +
			"closed"},
		{Line: "gaps --every 2", Texts: []string{"The dog [MASK]."}, Code: 2, Err: "blank in a whole text"},
		{Line: "gaps --options 1", Texts: []string{bracketed}, Code: 2,
			Err: "infill: --options: \"1\" is not a whole number from 2 to 10\n"},
		{Line: "gaps --below 0", Texts: []string{bracketed}, Code: 2, Err: "infill: --below: "},
		{Line: "gaps --bits 9-2", Texts: []string{bracketed}, Code: 2, Err: "infill: --bits: "},
		{Line: "gaps --format pdf", Texts: []string{bracketed}, Code: 2,
			Err: "infill: --format: \"pdf\" is not one of " +
				"text, markdown, html, csv, gift, moodle, anki, json\n"},
		{Line: "gaps --words nowhere.txt --every 1", Texts: []string{"The dog"}, Code: 2,
			Err: "infill: --words: open nowhere.txt: "},
		{Line: "gaps --words empty.txt", Texts: []string{"The dog"}, Code: 2,
			Err: "infill: --words: the list is empty\n"},
		{Line: "gaps --words tabs.txt", Texts: []string{"The dog"}, Code: 2, Err: "line 1 has a tab in \"a\\tb\""},
		{Line: "gaps table.csv", Code: 2, Err: "infill: table.csv: a plain text is read: save it as .txt\n"},
		{Line: "gaps nowhere.txt", Code: 2, Err: "infill: there is no file nowhere.txt\n"},
		{Line: "gaps mac.txt --every 1", Code: 2, Err: "infill: a carriage return (CR) ends no line"},
		{Line: "gaps --model nowhere", Texts: []string{bracketed}, Code: 1,
			Err: "infill: model nowhere: not in the cache\n"},
		{Line: "gaps --threads -1", Texts: []string{bracketed}, Code: 2, Err: "infill: --threads: -1 is not "},
	})
	r := call(t, gaps.NewCmd, terminal.Streams{InTerminal: true}, "gaps")
	if r.Code != 2 || r.Err != "infill: no text: give one, or pipe it to standard input\n"+
		"hint: infill gaps \"the [gate] was open\", or infill gaps --help\n" {
		t.Errorf("of a terminal: %+v", r)
	}
}

// A sheet has the same gaps in each form, and the key only if it is wanted.
func TestGapsForms(t *testing.T) {
	useFormula(t)
	writeFiles(t, map[string]string{"text.txt": "\ufeffThe dog sat.\r\nThe old cat slept on the mat.\r\n\r\n",
		"words.txt": "cat\n\nMat\n"})
	text := []string{bracketed}
	const line = "________"
	runCases(t, gaps.NewCmd, []callCase{
		{Line: "gaps", Texts: text, Out: "The (1) " + line + " sat on the (2) " + line + ".\n"},
		{Line: "gaps --key", Texts: text, Out: "\n\nKey\n  1  dog, …bits…\n  2  mat, …bits"},
		{Line: "gaps", In: bracketed + "\r\n\n", Out: "The (1) " + line + " sat on the (2) " + line + ".\n"},
		{Line: "gaps -", In: bracketed, Out: "The (1) "},
		{Line: "gaps text.txt --words words.txt",
			Out: "The dog sat.\nThe old (1) " + line + " slept on the (2) " + line + ".\n"},
		{Line: "gaps text.txt --words words.txt --format markdown --key",
			Out: "The old **(1)** \\_\\_\\_\\_\\_\\_\\_\\_ slept …\n\n## Key\n\n1. cat, …\n2. mat, "},
		{Line: "gaps --format csv", Texts: text,
			Out: "gap,key,probability,bits,rivals,start,end\n1,dog,…,4,7\n2,mat,…,19,22\n"},
		{Line: "gaps --format gift", Texts: text, Out: "::Gaps 1::[plain]The {=dog…} sat on the " + line + ".\n\n" +
			"::Gaps 2::[plain]The " + line + " sat on the {=mat…}.\n\n"},
		{Line: "gaps --format gift", In: "A {x} ~ [dog].\nThe [cat] ran.",
			Out: "::Gaps 1::[plain]A \\{x\\} \\~ {=dog…}.\n\n" +
				"::Gaps 2::[plain]The {=cat…} ran.\n\n"},
		{Line: "gaps --format gift", Texts: []string{"The [dog->cat] sat."}, // an arrow would make pairs
			Out: "::Gaps 1::[plain]The {=dog-*>cat…} sat.\n\n"},
		{Line: "gaps --format moodle --title a&b", Texts: text,
			Out: "<name><text>a&amp;b</text></name>\n…&lt;p&gt;The " +
				"{1:SHORTANSWER:=dog…} sat on the {1:SHORTANSWER:=mat…}.&lt;/p&gt;</text>"},
		{Line: "gaps text.txt --words words.txt --format html --title Lesson --lang de",
			Out: "<html lang=\"de\">\n…<h1>Lesson</h1>…<p>The dog sat.</p>…<p>The old <span class=\"gap\">(1) "},
		{Line: "gaps --format json", Texts: text, Out: "{\n  \"format\": 1,\n" +
			"  \"text\": \"The dog sat on the mat.\",\n  \"gaps\": [\n…" +
			"\"key\": \"dog\"…\"signature\": \"method:gaps|"},
		{Line: "gaps --format json", In: bracketed + "\r\n\n", Out: "\"text\": \"The dog sat on the mat.\""},
		{Line: "gaps -v", Texts: text, Out: "The (1)", Err: "infill: model formula, …\ninfill: signature method:gaps|"},
		{Line: "gaps --every 2", Texts: text, Out: "The [(1) ________] sat (2) ________ the [",
			Err: "infill: warning: brackets are text here"},
		{Line: "gaps --every 2 -q", Texts: text, Out: "The [(1) "},
	})
}

// Options have letters, the key is among them, and the seed decides their order.
func TestGapsOptions(t *testing.T) {
	useFormula(t)
	found := false
	for _, key := range []string{"boat", "house", "river", "garden", "sea", "cat", "dog", "mat"} {
		r := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", "--options", "2", "--format", "json", "-q",
			"The ["+key+"] was old.")
		var e struct{ Gaps []struct{ Options []string } }
		if r.Code != 0 {
			t.Fatalf("%+v", r)
		}
		check.OK(t, json.Unmarshal([]byte(r.Out), &e))
		if e.Gaps[0].Options == nil {
			continue // no word is wrong enough
		}
		found = true
		if own := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", "--options", "2", "--format", "json", "-q",
			"--seed", "1", "The ["+key+"] was old."); own.Out != r.Out {
			t.Errorf("the seed 1 gives %s, and no seed %s", own.Out, r.Out)
		}
		wrong := strings.ReplaceAll(strings.Join(e.Gaps[0].Options, ""), key, "")
		a, b := e.Gaps[0].Options[0], e.Gaps[0].Options[1]
		runCases(t, gaps.NewCmd, []callCase{
			{Line: "gaps -q --options 2", Texts: []string{"The [" + key + "] was old."},
				Out: "was old.\n\n  1  a) " + a + "   b) " + b + "\n"},
			{Line: "gaps -q --options 2 --format gift", Texts: []string{"The [" + key + "] was old."},
				Out: "{=" + key + " ~" + wrong + "} was old."},
			{Line: "gaps -q --options 2 --format csv", Texts: []string{"The [" + key + "] was old."},
				Out: ",option_1,option_2\n…," + a + "," + b + "\n"},
			{Line: "gaps -q --options 2 --format moodle", Texts: []string{"The [" + key + "] was old."},
				Out: "{1:MULTICHOICE_S:…=" + key + "…} was old."},
			{Line: "gaps -q --options 2 --format html", Texts: []string{"The [" + key + "] was old."}, Out: a + "…" +
				b},
		})
	}
	if !found {
		t.Error("no key has a wrong answer")
	}
	r := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", "--options", "10", "The [dog] was old.")
	if r.Code != 0 || !strings.Contains(r.Err, "infill: warning: gap 1 (dog): ") {
		t.Errorf("with more options than words: %+v", r)
	}
}

// A sheet in a file has all of an exercise: each form comes from it without a model, and with
// what somebody has changed in it.
func TestGapsFrom(t *testing.T) {
	useFormula(t)
	writeFiles(t, map[string]string{"text.txt": "The [dog|=cat|boat] sat.\nIt was on the [mat].\n"})
	runCases(t, gaps.NewCmd, []callCase{
		{Line: "gaps text.txt -o sheet.json"},
		{Line: "gaps text.txt -o sheet.html --title One"},
		{Line: "gaps text.txt --format gift -o sheet.txt"},
	})
	holds := func(name string, parts ...string) {
		t.Helper()
		content, err := os.ReadFile(name)
		check.OK(t, err)
		for _, part := range parts {
			if !strings.Contains(string(content), part) {
				t.Errorf("%s holds no %q: %s", name, part, content)
			}
		}
	}
	holds("sheet.json", "\"format\": 1,", "\"right\": [\n        \"cat\"\n      ]")
	holds("sheet.html", "<h1>One</h1>", ") boat</span>")
	holds("sheet.txt", "{=", " ~boat} sat.")
	for _, format := range []string{"text", "markdown", "html", "csv", "gift", "moodle", "anki", "json"} {
		made := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", "text.txt", "--key", "--format", format)
		read := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", "--from", "sheet.json", "--key", "--format",
			format)
		if made.Code != 0 || read.Code != 0 || made.Out != read.Out {
			t.Errorf("%s: %+v, from the sheet %+v", format, made, read)
		}
	}
	const edited = `{"format": 1, "text": "The dog sat é.", "gaps": [{"span": [4, 7], "key": "dog", "right": ["cat", "ox"],
		"options": ["sea", "ox", "dog", "cat"]}, {"span": [12, 13], "key": "é", "rivals": ["e"]}]}`
	writeFiles(t, map[string]string{"edited.json": edited})
	openModel := cli.OpenModel
	t.Cleanup(func() { cli.OpenModel = openModel })
	cli.OpenModel = func(infill.OpenOptions) (*infill.Filler, error) { return nil, errors.New("a model was opened") }
	runCases(t, gaps.NewCmd, []callCase{
		{Line: "gaps --from edited.json --key", Out: "  1  a) sea   b) ox   c) dog   d) cat\n  2  ________\n\nKey\n" +
			"  1  c) dog / d) cat / b) ox\n  2  é, open (also likely: e)\n"},
		{Line: "gaps --from - --format gift", In: edited, Out: "{=ox =dog =cat ~sea} sat ________.…{=é}."},
		{Line: "gaps --from edited.json --format moodle",
			Out: "{1:MULTICHOICE_S:sea~=ox~=dog~=cat} sat {1:SHORTANSWER:=é}."},
		{Line: "gaps --from edited.json --format csv", Out: ",option_4,right_1,right_2\n" +
			"1,dog,,,,4,7,sea,ox,dog,cat,cat,ox\n2,é,,,e,12,13,,,,,,\n"},
		{Line: "gaps --from edited.json --format html --key", Out: "<li>c) dog / d) cat / b) ox</li>"},
	})
	for change, want := range map[string]string{
		`"format": 1|"format": 2`:                 `it has not "format": 1, as a sheet has`,
		`"format": 1, |`:                          `it has not "format": 1, as a sheet has`,
		`"format": 1|"format": "1"`:               "its format cannot be a JSON string",
		`"gaps"|"Gaps"`:                           `it has "Gaps", and only format, text, gaps, `,
		`"right"|"wrong"`:                         `gap 1 (dog): it has "wrong", and only span, key, right, `,
		`"right"|"key"`:                           `it has two keys "gaps.key"`,
		`"key": "dog", |`:                         "gap 1 has no key",
		`"key": "é"|"key": 7`:                     "gap 2: its key cannot be a JSON number",
		`[4, 7]|[4, 7, 9]`:                        "gap 1 (dog): its span is not two numbers",
		`[4, 7]|[4, 8]`:                           `gap 1 (dog): its span, 4 to 8, holds "dog ": the key is what the text has there, and it has "dog" at 4 to 7`,
		`[4, 7]|[7, 4]`:                           "gap 1 (dog): its span, 7 to 4, is not within the text",
		`[12, 13]|[12, 15]`:                       "gap 2 (é): its span, 12 to 15, is not within the text behind the gaps before it, 7 to 14",
		`[12, 13], "key": "é"|[5, 6], "key": "o"`: "gap 2 (o): its span, 5 to 6, is not within",
		`[4, 7]|[-4, 7]`:                          "gap 1 (dog): its span, -4 to 7, is not within",
		`"sea"|"cat"`:                             `gap 1 (dog): the answer "cat" is given twice, also as right: take`,
		`"sea"|"dog"`:                             `gap 1 (dog): the answer "dog" is given twice: take one out`,
		`"sea"|" "`:                               "gap 1 (dog): an answer is empty",
		`"sea"|" sea"`:                            `gap 1 (dog): the answer " sea" begins or ends with a space`,
		`"sea"|"s\nea"`:                           `gap 1 (dog): the answer "s\nea" has a line break`,
		`"sea", |`:                                "gap 1 (dog): none of its options is wrong: add one",
		`, "cat"]}|]}`:                            `gap 1 (dog): the right answer "cat" is not among its options`,
		`["sea", "ox", "dog", "cat"]|{}`:          `gap 1 (dog): its options is no list: write ["..."]`,
		`"rivals"|"bits": -1, "rivals"`:           "gap 2 (é): its probability is not from 0 to 1, or its bits are below 0",
		`{"span": [4, 7]|3, {"span": [4, 7]`:      "gap 1: 3 is not an object of JSON",
		`sat é.|sat é.\u0000`:                     "control character in the text at byte offset 15: U+0000",
		`sat é.|sat é.\ud800`:                     "half of a surrogate pair",
		`]}|`:                                     "it is not JSON",
		edited + "|[]":                            "[] is not an object of JSON",
		edited + `|{"format": 1, "text": "The dog", "gaps": []}`:                       "it has no gap",
		edited + `|{"format": 1, "text": "The dog", "gaps": [], "model": {"nam": ""}}`: `it has "nam", and only `,
	} {
		from, to, _ := strings.Cut(change, "|")
		to = strings.ReplaceAll(to, "\n", `\n`)
		if !strings.Contains(edited, from) {
			t.Fatalf("nothing to change: %s", from)
		}
		r := call(t, gaps.NewCmd, terminal.Streams{In: strings.NewReader(strings.Replace(edited, from, to, 1))},
			"gaps", "--from", "-")
		if r.Code != 2 || r.Out != "" || !strings.HasPrefix(r.Err, "infill: --from: standard input: ") ||
			!strings.Contains(r.Err, want) || strings.Count(r.Err, "\n") != 1 {
			t.Errorf("%s: %+v, want %q", change, r, want)
		}
	}
	runCases(t, gaps.NewCmd, []callCase{
		{Line: "gaps --from none.json", Code: 2, Err: "infill: --from: open none.json: "},
		{Line: "gaps --from edited.json text.txt", Code: 2,
			Err: "infill: --from: the sheet has its text: give no other\n"},
		{Line: "gaps --from edited.json --options 4", Code: 2,
			Err: "infill: --options: a sheet of --from is written as it"},
		{Line: "gaps --from edited.json --model x", Code: 2,
			Err: "infill: --model: a sheet of --from is written as it"},
	})
}

// A file is written whole, and replaces another only if that is wanted.
func TestGapsOut(t *testing.T) {
	useFormula(t)
	writeFiles(t, map[string]string{"there.json": "{}", "text.txt": bracketed, "bad.txt": "The dog sat."})
	runCases(t, gaps.NewCmd, []callCase{
		{Line: "gaps text.txt -o there.json", Code: 2,
			Err: "infill: --out: there.json is there already: --overwrite makes it again\n"},
		{Line: "gaps text.txt -o text.txt --overwrite", Code: 2,
			Err: "infill: --out: text.txt would be replaced, and is the input: choose another output\n"},
		{Line: "gaps text.txt -o . --format csv", Code: 2, Err: "infill: --out: . is a folder, a device or a pipe"},
		{Line: "gaps text.txt -o - --format csv", Code: 2,
			Err: "infill: --out: without it, the sheet goes to standard"},
		{Line: "gaps text.txt -o folder/sheet.json", Code: 2,
			Err: "infill: --out: there is no folder folder: make it first\n"},
		{Line: "gaps there.json", Code: 2, Err: "infill: there.json: a plain text is read; --from reads a sheet\n"},
		{Line: "gaps text.txt -o sheet.doc", Code: 2,
			Err: "infill: --out: sheet.doc: its ending is not one of .csv, "},
		{Line: "gaps text.txt --overwrite", Code: 2, Err: "infill: --overwrite: say by --out which file\n"},
		{Line: "gaps bad.txt -o new.json", Code: 2, Err: "infill: which words become gaps?"},
		{Line: "gaps bad.txt -o there.json --overwrite", Code: 2, Err: "infill: which words become gaps?"},
	})
	_, err := os.Stat("new.json")
	content, _ := os.ReadFile("there.json")
	if err == nil || string(content) != "{}" {
		t.Errorf("after errors: new.json has the error %v, there.json holds %s", err, content)
	}
	runCases(t, gaps.NewCmd, []callCase{{Line: "gaps text.txt -o there.json --overwrite"},
		{Line: "gaps --from there.json", Out: "The (1) ________ sat"}})
}

// Versions have the same gaps and answers, and the letter of a right answer differs in as
// many as there are options.
func TestGapsVersions(t *testing.T) {
	useFormula(t)
	writeFiles(t, nil)
	const text = "The [dog|cat|sea] sat by the [mat|boat]. It was [old|big|small|red|wet|on]. It [ran]."
	runCases(t, gaps.NewCmd, []callCase{
		{Line: "gaps -q --title X -o sheet.json", Texts: []string{text}},
		{Line: "gaps -q --versions 2 --format html --key --title X", Texts: []string{text},
			Out: "<title>X</title>…<h1>X A</h1>…<h1>X B</h1>…<h2>Key A</h2>…<h2>Key B</h2>…"},
		{Line: "gaps -q --versions 2 --format markdown --key", Texts: []string{text}, Out: "# Gaps A\n\nThe **(1)** …" +
			"\n\n# Gaps B\n\nThe **(1)** …\n\n## Key A\n\n1. …\n\n## Key B\n\n1. "},
		{Line: "gaps -q --versions 6", Texts: []string{text}, Out: "Gaps F\n\nThe"},
		{Line: "gaps --versions 7", Texts: []string{text}, Code: 2,
			Err: "infill: --versions: 7 orders need a gap with 7 options, and here a gap has 6 at most: give fewer"},
		{Line: "gaps --versions 2", Texts: []string{"The [dog] sat."}, Code: 2, Err: "and here a gap has 0 at most"},
		{Line: "gaps --versions 1", Texts: []string{text}, Code: 2,
			Err: "infill: --versions: \"1\" is not a whole number from 2 to 10\n"},
		{Line: "gaps --versions 2 --format gift", Texts: []string{text}, Code: 2,
			Err: "infill: --versions: not in gift, as Moodle shuffles the answers of its questions itself: print"},
		{Line: "gaps --versions 2 --format moodle", Texts: []string{text}, Code: 2,
			Err: "infill: --versions: not in moodle"},
		{Line: "gaps --versions 2 --format anki", Texts: []string{text}, Code: 2,
			Err: "infill: --versions: not in anki"},
		{Line: "gaps --versions 2 --format csv", Texts: []string{text}, Code: 2,
			Err: "infill: --versions: not in csv"},
		{Line: "gaps --versions 2 --format json", Texts: []string{text}, Code: 2,
			Err: "infill: --versions: not in json"},
	})
	one := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", text, "--key")
	six := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", text, "--key", "--versions", "6")
	again := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", "--from", "sheet.json", "--key", "--versions",
		"6")
	sheets, behind, _ := strings.Cut(six.Out, "\nKey A\n")
	pages := regexp.MustCompile(`(?m)^Gaps [A-F]\n\n`).Split(sheets, -1)[1:]
	keys := regexp.MustCompile(`(?m)^Key [B-F]\n`).Split(behind, -1)
	first := strings.TrimSpace(pages[0]) + "\n\nKey\n" + strings.TrimRight(keys[0], "\n")
	if len(pages) != 6 || len(keys) != 6 || first != strings.TrimSpace(one.Out) || six.Out != again.Out {
		t.Fatalf("one page: %s\nsix: %s\nof the sheet: %s", one.Out, six.Out, again.Out)
	}
	for gap, options := range []int{3, 2, 6, 0} {
		letters := map[string]bool{}
		words := map[string]bool{}
		for v, list := range pages {
			number := fmt.Sprintf(`(?m)^  %d  (.*)$`, gap+1)
			line := regexp.MustCompile(number).FindStringSubmatch(list)[1]
			of := strings.Fields(regexp.MustCompile(`[a-f]\)`).ReplaceAllString(line, ""))
			slices.Sort(of)
			words[strings.Join(of, " ")] = true
			right := strings.Split(regexp.MustCompile(number).FindStringSubmatch(keys[v])[1], ",")[0]
			if options > 0 && !strings.Contains(line, right) {
				t.Errorf("version %d: the key of %q is %q", v+1, line, right)
			}
			if v < options {
				letters[right[:1]] = true
			}
		}
		if len(words) != 1 || len(letters) != options {
			t.Errorf("gap %d has the options %v, and its right answer the letters %v", gap+1, words, letters)
		}
	}
}

// TestAnki: the package anki 26.9.3 of PyPI imports this text as seven notes of Basic, with
// these fields and tags (get_csv_metadata and import_csv of its Collection, by hand).
func TestGapsAnki(t *testing.T) {
	useFormula(t)
	const text = "\"The [old] dog\" & <b> sat at 3 p.m. by [the] mat. \"Was [he|=she|it] on?\" it [was]. The # sat.\n" +
		"# [dog|a \"x\" y] [ran] on [>]."
	const blank, tag = "________", "Lesson_3"
	const asked = "<b>&#91;...]</b>"
	r := call(t, gaps.NewCmd, terminal.Streams{}, "gaps", text, "--format", "anki", "--title", "Lesson  3")
	content, ok := strings.CutPrefix(r.Out, "#separator:tab\n#html:true\n#tags column:3\n")
	if !ok {
		t.Fatalf("%+v", r)
	}
	reader := csv.NewReader(strings.NewReader(content))
	reader.Comma = '\t'
	reader.Comment = '#'
	got, err := reader.ReadAll()
	check.OK(t, err)
	for _, row := range got { // whose order is the seed's
		sentence, options, _ := strings.Cut(row[0], "<br>")
		list := strings.Split(regexp.MustCompile(`[a-c]\) `).ReplaceAllString(options, ""), "<br>")
		slices.Sort(list)
		row[0] = strings.TrimSuffix(sentence+"|"+strings.Join(list, "|"), "|")
	}
	want := [][]string{
		{"\"The " + asked + " dog\" &amp; &lt;b&gt; sat at 3 p.m. by " + blank + " mat.", "old", tag},
		{"\"The " + blank + " dog\" &amp; &lt;b&gt; sat at 3 p.m. by " + asked + " mat.", "the", tag},
		{"\"Was " + asked + " on?\" it " + blank + ".|he|it|she", "he / she", tag},
		{"\"Was " + blank + " on?\" it " + asked + ".", "was", tag},
		{"&#35; " + asked + " " + blank + " on " + blank + ".|a \"x\" y|dog", "dog", tag},
		{"&#35; " + blank + " " + asked + " on " + blank + ".", "ran", tag},
		{"&#35; " + blank + " " + blank + " on " + asked + ".", "&gt;", tag},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
