package batch

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
	"infill/internal/rawjson"
	"infill/models"
)

// tableOf reads a table: for each line, the cells by their columns.
func tableOf(t *testing.T, text string) (header []string, lines []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("%q: %v", text, err)
	}
	for _, cells := range all[1:] {
		line := map[string]string{}
		for i, cell := range cells {
			line[all[0][i]] = cell
		}
		lines = append(lines, line)
	}
	return all[0], lines
}

// objectsOf reads JSON lines.
func objectsOf(t *testing.T, text string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		one := map[string]any{}
		err := json.Unmarshal([]byte(line), &one)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	return list
}

// job writes the input of a job that a fake model does in another form.
func job(t *testing.T, in, content, out string, work func(f *infill.Filler) work) Job {
	t.Helper()
	f, _ := newFake(t, 0)
	dir := t.TempDir()
	return Job{Input: File{Path: put(t, dir, in, content)}, Output: File{Path: filepath.Join(dir, out)}, Work: work(f)}
}

const templates = `{"template":"the [MASK] sat","top":2,"note":"x"}` + "\n" +
	`{"template":"the [MASK] [MASK] on the mat","top":1,"probability":7}` + "\n"

func fills(given ...string) func(f *infill.Filler) work {
	return func(f *infill.Filler) work { return &Fill{Filler: f, Key: "template", Given: give(given...)} }
}

// TestKeptSoon: whatever the number of jobs, the first texts are kept when the model has
// worked for two seconds, so that a run that is killed then has not worked in vain.
func TestKeptSoon(t *testing.T) {
	for _, jobs := range []int{1, 256, 1024} {
		synctest.Test(t, func(t *testing.T) {
			words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on under mat rug old")
			model := lmtest.New(len(words), 32)
			machine := make(chan struct{}, 1)
			model.Before = func(ctx context.Context) error { // a call of the model takes 20 ms
				machine <- struct{}{}
				time.Sleep(20 * time.Millisecond)
				<-machine
				return ctx.Err()
			}
			j := job(t, "in.txt", strings.Repeat("the [MASK] [MASK] on the [MASK]\n", 300), "out.jsonl",
				func(*infill.Filler) work {
					f := infill.New(model, check.Must(lmtest.Tokenizer(words))(t))
					return &Fill{Filler: f, Key: "template", Given: give("top=20")}
				})
			j.InFlight = jobs
			began := time.Now()
			ctx, kill := context.WithCancel(t.Context())
			j.Observe = func(p Progress) {
				if p.Done > 0 {
					kill()
				}
			}
			_, err := Run(ctx, j)
			alone := model.Calls.Load()
			kept := get(t, pathOf(j.Output.Path, Shard{1, 1}))
			if err == nil || time.Since(began) > 2*time.Second || strings.Count(kept, "\n") < 2 || alone < 4 {
				t.Errorf("%d jobs: the first text is kept after %v and %d calls, error %v", jobs, time.Since(began),
					alone, err)
			}
		})
	}
}

// TestFillForms: the same fills stand in tables, lines of JSON and plain text.
func TestFillForms(t *testing.T) {
	asJSON := job(t, "in.jsonl", templates, "out.jsonl", fills())
	must(t, asJSON)
	results := objectsOf(t, get(t, asJSON.Output.Path))
	if len(results) != 2 || results[0]["note"] != "x" || results[1]["probability"] != 7.0 {
		t.Fatalf("%v", results)
	}
	asTable := job(t, "in.jsonl", templates, "out.csv", fills())
	must(t, asTable)
	header, lines := tableOf(t, get(t, asTable.Output.Path))
	begin := []string{"rank", "text", "blank_1", "blank_2", "tokens_1", "tokens_2", "entropy_1", "entropy_2"}
	if !slices.Equal(header[:len(begin)], begin) || slices.Contains(header, "count") ||
		!slices.Contains(header, "proven") {
		t.Errorf("columns %q", header)
	}
	asText := job(t, "in.txt", "the [MASK] sat\nthe [MASK] [MASK] on the mat\n", "out.txt", fills("top=1"))
	must(t, asText)
	texts := strings.Split(get(t, asText.Output.Path), "\n")
	n := 0
	for i, result := range results {
		for j, fill := range result["fills"].([]any) {
			fill := fill.(map[string]any)
			line := lines[n]
			n++
			words := fill["values"].([]any)
			if line["text"] != fill["text"] || line["rank"] != []string{"1", "2"}[j] || line["blank_1"] != words[0] ||
				line["template"] != result["template"] || line["seed"] != "" || line["entropy_1"] == "" {
				t.Errorf("%v, want %v", line, fill)
			}
			second := ""
			if len(words) > 1 {
				second = words[1].(string)
			}
			if line["blank_2"] != second || (line["entropy_2"] == "") != (second == "") {
				t.Errorf("%v, want a second blank %q", line, second)
			}
			if j == 0 && texts[i] != fill["text"] {
				t.Errorf("%q, want %q", texts[i], fill["text"])
			}
		}
	}
	if n != len(lines) || len(texts) != 3 || lines[0]["note"] != "x" || lines[2]["input_probability"] != "7" {
		t.Errorf("%d fills, %d lines: %v", n, len(lines), lines)
	}
}

// TestColumnsOfMethods: a table has the columns of the methods of its records.
func TestColumnsOfMethods(t *testing.T) {
	for _, test := range []struct {
		given       []string
		content     string
		has, hasNot []string
		lines       int
	}{
		{nil, `{"template":"the [MASK] sat","top":1}`, []string{"probability", "proven"}, []string{"count", "seed"}, 1},
		{[]string{"samples=2", "seed=1", "rank=final"}, `{"template":"the [MASK] sat"}`,
			[]string{"probability", "count", "seed"}, []string{"proven", "split_r_hat"}, 2},
		{[]string{"sampler=gibbs", "samples=2", "steps=4", "seed=1", "rank=final"}, `{"template":"the [MASK] sat"}`,
			[]string{"count", "split_r_hat", "final_count", "seed"}, []string{"probability", "proven"}, 2},
		{nil, `{"template":"the [MASK] sat","top":1}` + "\n" +
			`{"template":"the [MASK] sat","top":1,"sampler":"gibbs","steps":4,"samples":2}`,
			[]string{"probability", "proven", "count", "split_r_hat"}, nil, 2},
		{[]string{"samples=2"}, "", []string{"probability", "count"}, []string{"proven", "blank_1"}, 0},
		{[]string{"sampler=gibbs"}, "", []string{"split_r_hat"}, []string{"proven", "probability"}, 0},
		{nil, "", []string{"proven"}, []string{"count"}, 0},
	} {
		j := job(t, "in.jsonl", test.content, "out.csv", fills(test.given...))
		must(t, j)
		header, lines := tableOf(t, get(t, j.Output.Path))
		for _, name := range test.has {
			if !slices.Contains(header, name) {
				t.Errorf("%q, %s: no column %s in %q", test.given, test.content, name, header)
			}
		}
		for _, name := range test.hasNot {
			if slices.Contains(header, name) {
				t.Errorf("%q, %s: a column %s in %q", test.given, test.content, name, header)
			}
		}
		if len(lines) != test.lines {
			t.Errorf("%q, %s: %d lines", test.given, test.content, len(lines))
		}
	}
}

// TestFillRejects: a record that is at fault is rejected, and the others are
// filled. The reason tells how to pass on a column that is at fault.
func TestFillRejects(t *testing.T) {
	const good = `{"template":"the [MASK] sat"}` + "\n"
	for record, want := range map[string]string{
		`{"text":"the [MASK] sat"}`:                                                `no \"template\"`,
		`{"template":7}`:                                                           `template`,
		`{"template":"the cat"}`:                                                   "no blank",
		`{"template":"the [MASK] sat","top":"x"}`:                                  `\"top\": \"x\" is not a whole number from 1`,
		`{"template":"the [MASK] sat","temperature":2}`:                            `\"temperature\": `,
		`{"template":"the [MASK] sat","slots":"2=cat"}`:                            `\"slots\": there is no blank 2`,
		`{"template":"the [MASK] sat","top":2,"slots":"2=cat","ban":"dog"}`:        `\"slots\": there is no blank 2`,
		`{"template":"the [MASK] sat","slot":"2=cat"}`:                             `\"slot\": there is no blank 2`,
		`{"template":"the [MASK] sat","initial":"fill:cat,dog","sampler":"gibbs"}`: `\"initial\": 2 fills given`,
		`{"template":"the [MASK=x] sat on the [MASK=x]","sampler":"gibbs"}`:        `\"sampler\": `,
	} {
		j := job(t, "in.jsonl", good+record+"\n"+good, "out.jsonl", fills())
		s := must(t, j)
		rejects := get(t, rejectsOf(j.Output.Path))
		if s.Rejected != 1 || s.Records != 3 || len(objectsOf(t, get(t, j.Output.Path))) != 2 ||
			!strings.HasPrefix(rejects, `{"line":2,"error":"`) || !strings.Contains(rejects, want) {
			t.Errorf("%s: %+v, rejects %s, want %s", record, s, rejects, want)
		}
		advice := strings.Contains(rejects, " passes the column on as it is")
		if advice != strings.HasPrefix(want, `\"`) || advice != (len(s.Options) == 1) {
			t.Errorf("%s: %+v, rejects %s", record, s, rejects)
		}
	}
}

// TestFillKeep: a column that is kept is no option, and one that is not there
// cannot be kept.
func TestFillKeep(t *testing.T) {
	keep := func(names ...string) func(f *infill.Filler) work {
		return func(f *infill.Filler) work { return &Fill{Filler: f, Key: "template", Keep: names} }
	}
	const content = `{"template":"the [MASK] sat","top":"x","rank":3}`
	j := job(t, "in.jsonl", content, "out.jsonl", keep("top"))
	j.Note = func(note string) { t.Errorf("no column is an option: %s", note) }
	s := must(t, j)
	row := objectsOf(t, get(t, j.Output.Path))
	if s.Rejected != 0 || row[0]["top"] != "x" || row[0]["rank"] != 3.0 {
		t.Errorf("%+v, %v", s, row)
	}
	refused(t, job(t, "in.jsonl", content, "out.jsonl", keep("top", "tops")),
		`keep: the input has no column "tops": its columns are "template", "top", "rank"`)
	// The column with the template is no option, whatever its name.
	j = job(t, "in.jsonl", `{"context":"the [MASK] sat"}`, "out.jsonl", func(f *infill.Filler) work {
		return &Fill{Filler: f, Key: "context"}
	})
	j.Note = func(note string) { t.Errorf("no column is an option: %s", note) }
	s = must(t, j)
	if s.Rejected != 0 {
		t.Errorf("%+v", s)
	}
	var notes []string
	j = job(t, "in.jsonl", `{"template":"the [MASK] sat","top":1,"seed":"","note":2}`, "out.jsonl", fills())
	j.Note = func(note string) { notes = append(notes, note) }
	must(t, j)
	want := []string{"columns read as options: top, seed; --keep top copies one instead"}
	if !slices.Equal(notes, want) {
		t.Errorf("%q, want %q", notes, want)
	}
}

// TestOptionsOfRuns: options that do not go together are an error of the run.
func TestOptionsOfRuns(t *testing.T) {
	const content = `{"template":"the [MASK] sat","text":"the cat sat"}`
	refused(t, job(t, "in.jsonl", content, "out.jsonl", fills("temperature=2")), "temperature: ")
	refused(t, job(t, "in.jsonl", content, "out.csv", fills("sampler=gibbs", "budget=2s")), "budget: ")
	for _, test := range []struct {
		change func(a *Augment)
		want   string // "" if it is right
	}{
		{func(a *Augment) {}, ""},
		{func(a *Augment) { a.Variants, a.Rate, a.Context = 0, 0, "" }, ""}, // zeros are defaults
		{func(a *Augment) { a.Variants = -1 }, `variants: "-1" is not a whole number of 1 or more`},
		{func(a *Augment) { a.Rate = -0.1 }, `rate: "-0.1" is not a number above 0 and at most 1`},
		{func(a *Augment) { a.Context = "all" }, `context: "all" is not one of none, original`},
		{func(a *Augment) { a.Rate = 1 }, ""},
		{func(a *Augment) { a.Rate = 1.01 }, `rate: "1.01" is not a number above 0 and at most 1`},
		{func(a *Augment) { a.Rate = math.NaN() }, `rate: "NaN" is not a number above 0 and at most 1`},
		{func(a *Augment) { a.Blanks = -1 }, `blanks: "-1" is not a whole number of 0 or more`},
		{func(a *Augment) { a.Protect = []string{"cat", ""} }, "protect: one of the texts is empty, or no UTF-8"},
		{func(a *Augment) { a.Protect = []string{"\xff"} }, "protect: one of the texts is empty, or no UTF-8"},
		{func(a *Augment) { a.Given = give("steps=3") }, "steps: "},
		{func(a *Augment) { a.Given = give("sampler=gibbs", "order=r2l") }, "order: "},
	} {
		a := &Augment{Variants: 1, Rate: 0.4, Context: "none", Key: "text"}
		test.change(a)
		err := a.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", a, err, test.want)
		}
		if a.Given == nil {
			continue
		}
		refused(t, job(t, "in.jsonl", content, "out.jsonl", func(f *infill.Filler) work { a.Filler = f; return a }),
			test.want)
	}
}

func variants(change func(a *Augment)) func(f *infill.Filler) work {
	return func(f *infill.Filler) work {
		a := &Augment{Filler: f, Key: "text", Variants: 2, Rate: 0.5, Context: "none", Given: give("seed=1")}
		change(a)
		return a
	}
}

// TestAugmentForms: the same variants stand in tables, lines of JSON and plain
// text, beside the columns of their record.
func TestAugmentForms(t *testing.T) {
	const records = `{"label":"x","text":"the old cat sat on the mat","variant":"mine"}` + "\n"
	with := variants(func(a *Augment) { a.WithOriginal = true })
	asJSON := job(t, "in.jsonl", records, "out.jsonl", with)
	s := must(t, asJSON)
	list := objectsOf(t, get(t, asJSON.Output.Path))
	asTable := job(t, "in.jsonl", records, "out.csv", with)
	must(t, asTable)
	header, lines := tableOf(t, get(t, asTable.Output.Path))
	want := []string{"label", "text", "input_variant", "variant", "original", "masked", "fills", "log_likelihood"}
	if !slices.Equal(header, want) || len(lines) != 3 || len(list) != 3 || s.Missing != 0 {
		t.Fatalf("%q, %v, %+v", header, lines, s)
	}
	asText := job(t, "in.txt", "the old cat sat on the mat\n", "out.txt", with)
	must(t, asText)
	texts := strings.Split(get(t, asText.Output.Path), "\n")
	for i, v := range list {
		line := lines[i]
		if v["text"] != line["text"] || v["text"] != texts[i] || line["variant"] != []string{"0", "1", "2"}[i] ||
			v["variant"] != float64(i) || line["label"] != "x" || v["label"] != "x" || v["input_variant"] != "mine" ||
			line["input_variant"] != "mine" || v["original"] != "the old cat sat on the mat" {
			t.Errorf("%v and %v and %q", v, line, texts[i])
		}
		masked := v["masked"].([]any)
		// Half of 7 words are 4, by the usual rule for a half.
		if words := 4; i > 0 && len(masked) != words || i == 0 && (len(masked) != 0 || v["text"] != v["original"]) {
			t.Errorf("variant %d: %q masked", i, masked)
		}
	}
}

// TestAugmentRejects: a record of which no variant can be made is rejected, and
// the reason says why. Variants that are missing are counted.
func TestAugmentRejects(t *testing.T) {
	for _, test := range []struct {
		record  string
		change  func(a *Augment)
		want    string
		missing int64
	}{
		{`{"label":"x"}`, func(a *Augment) {}, `no \"text\"`, 0},
		{`{"text":7}`, func(a *Augment) {}, `text`, 0},
		{`{"text":"1 2"}`, func(a *Augment) {}, "no word that may be masked", 0},
		{`{"text":"the cat"}`, func(a *Augment) { a.Blanks = 9 }, "too few words to mask 2 of them", 0},
		{`{"text":"the cat [SEP] sat"}`, func(a *Augment) {}, "[SEP]", 0},
		{`{"text":"the cat ___ sat"}`, func(a *Augment) { a.Given = give("blank=___") },
			"the text holds a blank itself: fill it with infill run first", 0},
		{`{"text":"the cat sat"}`, func(a *Augment) {
			a.Given = give("slot=cat", "seed=1")
			a.Protect = []string{"the", "sat"}
			a.Distinct = true
		}, "no variant: none of 16 draws kept to the rules", 0},
		{`{"text":"the cat sat"}`, func(a *Augment) {
			a.Given = give("slot=cat,dog", "seed=1")
			a.Protect = []string{"the", "sat"}
			a.Distinct = true
			a.Variants = 4
		}, "", 3},
		{`{"text":"the cat sat"}`, func(a *Augment) {
			a.Given = give("slot=cat,dog", "seed=1")
			a.Protect = []string{"the", "sat"}
			a.Variants = 4
		}, "", 0},
	} {
		j := job(t, "in.jsonl", test.record, "out.jsonl", variants(test.change))
		s := must(t, j)
		if test.want == "" {
			if s.Rejected != 0 || s.Missing != test.missing {
				t.Errorf("%s: %+v", test.record, s)
			}
			continue
		}
		if s.Rejected != 1 {
			t.Errorf("%s: %+v, %s", test.record, s, get(t, j.Output.Path))
			continue
		}
		if rejects := get(t, rejectsOf(j.Output.Path)); !strings.Contains(rejects, test.want) {
			t.Errorf("%s: rejects %s, want %s", test.record, rejects, test.want)
		}
	}
}

// TestAugmentEmpty: a table of no records has the columns of variants.
func TestAugmentEmpty(t *testing.T) {
	j := job(t, "in.jsonl", "", "out.csv", variants(func(*Augment) {}))
	must(t, j)
	want := "text,variant,original,masked,fills,log_likelihood\n"
	if got := get(t, j.Output.Path); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRecords: all records of a file have a text in every column, or say why not.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "in.csv", "a,b\n1,2\n3\n,\n")
	list, _, err := Records(File{Path: path}, "a", "b")
	if err != nil || len(list) != 3 || list[0].Err != nil || list[1].Err == nil || !list[2].Blank {
		t.Errorf("%+v, error %v", list, err)
	}
	for _, columns := range [][]string{{"c"}, {"a", "c"}} {
		list, _, err = Records(File{Path: path}, columns...)
		var column *infill.OptionError
		if list != nil || !errors.As(err, &column) || column.Option != "column" || !strings.Contains(err.Error(), `has no column "c"`) {
			t.Errorf("%q: %+v, error %v", columns, list, err)
		}
	}
	list, _, err = Records(File{Path: path + ".none.csv"}, "a")
	var column *infill.OptionError
	if list != nil || err == nil || errors.As(err, &column) {
		t.Errorf("no file: %+v, error %v", list, err)
	}
	list, _, err = Records(File{Path: put(t, dir, "broken.csv", "a\n1\n\"2\n")}, "a")
	if list != nil || err == nil || !strings.Contains(err.Error(), "line 3 is not CSV") {
		t.Errorf("a broken table: %+v, error %v", list, err)
	}
	list, _, err = Records(File{Path: put(t, dir, "in.jsonl", `{"a":"x"}`+"\n"+`{"b":"y"}`+"\n")}, "a")
	if err != nil || len(list) != 2 || list[0].Err != nil || list[1].Err == nil {
		t.Errorf("lines: %+v, error %v", list, err)
	}
}

// TestQuotedLines: a cell of TSV in quotes has up to 1000 lines, and makes a
// record of as many cells as the header. Else its quote is a character.
func TestQuotedLines(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("a\n", n-1) + "a" }
	for _, c := range []struct {
		name, content string
		records       int
		first         string // text of the first record; "" for one with an error
	}{
		{"1000 lines", "text\tn\n\"" + lines(1000) + "\"\t1\n", 1, lines(1000)},
		{"1001 lines", "text\tn\n\"" + lines(1001) + "\"\t1\n", 1001, ""},
		{"a cell too many", "text\tn\n\"a\nb\"\t1\t2\n", 2, ""},
		{"quotes within", "text\n\"a\nb \"\" c\nd\"\n", 1, "a\nb \" c\nd"},
		{"an empty cell behind", "text\tn\n\"a\"\"b\"\t\n", 1, "a\"b"},
		{"quotes for nothing", "text\tn\n\"a\"\t\n", 1, "\"a\""},
		{"a cell of quotes alone", "text\tn\n\"\"\"\"\t1\n", 1, "\""},
		{"text behind quotes", "text\tn\n\"a\"b\t1\n", 1, "\"a\"b"},
		{"no end", "text\n\"a\nb\n", 2, "\"a"},
	} {
		list, _, err := Records(File{Path: put(t, t.TempDir(), "in.tsv", c.content)}, "text")
		if err != nil || len(list) != c.records {
			t.Errorf("%s: %d records, error %v", c.name, len(list), err)
			continue
		}
		text, _ := list[0].Object.Text("text")
		if (list[0].Err != nil) != (c.first == "") || list[0].Err == nil && text != c.first {
			t.Errorf("%s: %.20q, error %v", c.name, text, list[0].Err)
		}
	}
}

// TestOpen: a file is read as its name says, and one that is not there, or is
// not what its name says, is an error.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.txt": "text", "a.txt.gz": packed(t, "a.gz", "text"), "a": "text"} {
		file, err := Open(put(t, dir, name, content))
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(file)
		if err != nil || string(read) != "text" {
			t.Errorf("%s: %q, error %v", name, read, err)
		}
		file.Close()
	}
	for name, want := range map[string]string{"none.txt": "no such file", "b.gz": "the file is no gzip",
		"c.csv": "this is gzip: let the file's name end in .gz, or unpack it"} {
		switch name {
		case "b.gz":
			put(t, dir, name, "text")
		case "c.csv":
			put(t, dir, name, packed(t, "c.csv.gz", "text\na\n"))
		}
		file, err := Open(filepath.Join(dir, name))
		if err == nil {
			_, err = io.ReadAll(file)
			file.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	if form, err := FormOf("x.tsv.gz"); form != formTSV || err != nil {
		t.Errorf("%q, error %v", form, err)
	}
}

// TestTable: a result as a table has its fills, and one that is no JSON is an
// error.
func TestTable(t *testing.T) {
	f, _ := newFake(t, 0)
	result, err := f.Fill(t.Context(), infill.Request{Template: "the [MASK] [MASK]", Top: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	work := &Fill{Key: "template"}
	sheet, err := NewSheet()
	if err != nil {
		t.Fatal(err)
	}
	made, err := work.Rows(result)
	copied := work.Copied(rawjson.Object{{Key: "rank", Value: rawjson.Value("7")}}, formCSV)
	err = errors.Join(err, sheet.Add(made, copied))
	var b strings.Builder
	err = errors.Join(err, sheet.Write(&b, work.Layout))
	lines, wrong := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || wrong != nil || len(lines) != 3 {
		t.Fatalf("%v, error %v", lines, err)
	}
	for i, line := range lines[1:] {
		fill := result.Fills[i]
		cells := map[string]string{}
		for j, name := range lines[0] {
			cells[name] = line[j]
		}
		for key, want := range map[string]string{"text": fill.Text, "blank_1": fill.Values[0],
			"blank_2": fill.Values[1], "template": "the [MASK] [MASK]", "input_rank": "7"} {
			if got := cells[key]; got != want {
				t.Errorf("%s of %d: %q, want %q", key, i, got, want)
			}
		}
		for _, key := range []string{"entropy_1", "entropy_2", "tokens_1", "tokens_2"} {
			if cells[key] == "" || strings.HasPrefix(key, "tokens") && cells[key] != "1" {
				t.Errorf("line %d: %s %q", i, key, cells[key])
			}
		}
	}
	result.Fills[0].LogLikelihood = math.NaN()
	made, err = work.Rows(result)
	if err == nil || made.Lines != nil {
		t.Errorf("NaN: %v", made)
	}
}

// TestMode: a new output has the mode of any new file.
func TestMode(t *testing.T) {
	dir := t.TempDir()
	in := put(t, dir, "in.txt", "a text\n")
	out := filepath.Join(dir, "out.txt")
	_, err := Run(t.Context(), Job{Input: File{Path: in}, Output: File{Path: out}, Work: &shout{}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(out)
	want, wrong := os.Stat(in)
	if err != nil || wrong != nil || got.Mode() != want.Mode() {
		t.Errorf("%v, want %v (%v, %v)", got.Mode(), want.Mode(), err, wrong)
	}
}

// TestDamagedRun: files of a run that somebody changed are an error of whatever
// reads them, and nothing is lost.
func TestDamagedRun(t *testing.T) {
	for name, c := range map[string]struct {
		path     func(out string) string
		old, new string // in the file; "" for all of it
		there    bool   // whether the output is
		want     string
	}{
		"a receipt":            {receiptOf, "", "{", true, "out.csv.run.json"},
		"no output, a receipt": {receiptOf, "", "{", false, "out.csv.run.json"},
		"a foreign receipt": {receiptOf, "", `{"signature":""}`, true,
			"out.csv.run.json would be replaced, and no run has written it: choose another output"},
		"a part of a run that is done": {func(out string) string { return pathOf(out, Shard{1, 1}) }, "", "{}\n", true,
			"line 1 is no line of a run of this version of infill"},
		"a head without a part": {func(out string) string { return pathOf(out, Shard{1, 1}) }, "",
			`{"format":5,"settings":{"form":"csv"}}` + "\n", true, "line 1 is no line of a run of this version of infill"},
		"another form": {func(out string) string { return pathOf(out, Shard{1, 1}) }, `"form":"csv"`, `"form":"pdf"`,
			false, "its name does not tell the form of the output"},
		"copied columns": {func(out string) string { return pathOf(out, Shard{1, 1}) }, `"copied":[`,
			`"copied":{},"x":[`, false, "is no line of a run"},
		"another text in a row": {func(out string) string { return pathOf(out, Shard{1, 1}) }, `"A"`, `"C"`,
			false, "line 2 is no line of a run"},
		"another column": {func(out string) string { return pathOf(out, Shard{1, 1}) }, `"2"]`, `"3"]`,
			false, "line 3 is no line of a run"},
		"a receipt that is a folder": {receiptOf, "", "", false, "out.csv.run.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := Job{Input: File{Path: put(t, dir, "in.csv", "text,n\na,1\nb,2\n")},
				Output: File{Path: filepath.Join(dir, "out.csv"), Form: formCSV}, Work: &shout{}, Shard: Shard{1, 1}}
			must(t, j)
			_, err := Merge(t.Context(), j.Output.Path, false)
			if err != nil {
				t.Fatal(err)
			}
			want := get(t, j.Output.Path)
			path := c.path(j.Output.Path)
			before := get(t, path)
			changed := strings.ReplaceAll(before, c.old, c.new)
			if c.old == "" {
				changed = c.new
			}
			if changed == before {
				t.Fatal("nothing is changed")
			}
			if changed == "" {
				err = errors.Join(os.Remove(path), os.Mkdir(path, 0o777), os.WriteFile(path+"/x", nil, 0o666))
				if err != nil {
					t.Fatal(err)
				}
			} else {
				put(t, "", path, changed)
			}
			if !c.there {
				os.Remove(j.Output.Path)
			}
			_, err = Merge(t.Context(), j.Output.Path, true)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if path == receiptOf(j.Output.Path) {
				j.Resume = true
				refused(t, j, c.want)
			}
			os.RemoveAll(path)
			put(t, "", path, before)
			s, err := Merge(t.Context(), j.Output.Path, true)
			if err != nil || s.Records != 2 && !s.Done || get(t, j.Output.Path) != want {
				t.Errorf("mended: %+v, error %v", s, err)
			}
		})
	}
}

// TestDeclaredColumns: the receipt of a table of fills declares its columns with their
// types, whichever records could be filled; the output has those that its rows need.
func TestDeclaredColumns(t *testing.T) {
	declared := func(texts string) []ColumnType {
		dir := t.TempDir()
		f, _ := newFake(t, 0)
		j := Job{Input: File{Path: put(t, dir, "in.csv", "template,share\n"+texts)},
			Output: File{Path: filepath.Join(dir, "out.csv")}, Work: &Fill{Filler: f, Key: "template"}, InFlight: 2}
		_, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		r, err := readReceipt(j.Output.Path)
		if err != nil {
			t.Fatal(err)
		}
		return r.Table
	}
	right := declared("the [MASK] sat,1\nthe cat [MASK] on [MASK],2\n")
	for _, texts := range []string{"the [MASK] sat,1\n[MASK:9-2] and [MASK],2\n",
		"[MASK~(] sat,1\n[MASK:9-2] and [MASK],2\n"} {
		got := declared(texts)
		if !slices.Equal(got, right) {
			t.Errorf("%s: %+v, want %+v", texts, got, right)
		}
	}
	for _, want := range []ColumnType{{"rank", "integer"}, {"text", "text"}, {"blank_2", "text"},
		{"tokens_2", "integer"},
		{"entropy_2", "number"}, {"probability", "number"}, {"template", "template"}, {"proven", "boolean"},
		{"warnings", "text"}, {"input_share", "copied"}} {
		if !slices.Contains(right, want) {
			t.Errorf("no column %+v in %+v", want, right)
		}
	}
}

// TestNothingIsCut: forty texts with addresses, tags, numbers and abbreviations, which
// stand in «», keep them in all variants, and have no gap in them.
func TestNothingIsCut(t *testing.T) {
	english := check.Must(check.Must(models.Open(""))(t).Tokenizer())(t)
	builtIn := infill.New(lmtest.New(english.VocabularySize(), 64), english) // no gap depends on the model
	marked := get(t, "testdata/kept.txt")
	content := strings.NewReplacer("«", "", "»", "").Replace(marked)
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on under mat rug old")
	wide := infill.New(lmtest.New(len(words), 400), check.Must(lmtest.Tokenizer(words))(t))
	j := job(t, "in.txt", content, "out.jsonl", func(*infill.Filler) work {
		return &Augment{Filler: wide, Key: "text", Variants: 12, Rate: 0.4, Context: "none", Given: give("seed=1")}
	})
	must(t, j)
	variants := objectsOf(t, get(t, j.Output.Path))
	texts := strings.Split(strings.TrimSpace(content), "\n")
	if len(texts) != 40 || len(variants) != 12*len(texts) {
		t.Fatalf("%d variants of %d texts", len(variants), len(texts))
	}
	for i, line := range strings.Split(strings.TrimSpace(marked), "\n") {
		var kept []string
		var places [][2]int
		before := ""
		for _, part := range strings.Split(line, "«")[1:] {
			item, _, _ := strings.Cut(part, "»")
			kept = append(kept, item)
			from := strings.Index(texts[i][len(before):], item)
			before += texts[i][len(before):][:from]
			start := len([]rune(before))
			places = append(places, [2]int{start, start + len([]rune(item))})
			before += item
		}
		for _, v := range variants[12*i : 12*i+12] {
			rest := v["text"].(string)
			for _, item := range kept {
				_, after, found := strings.Cut(rest, item)
				if !found {
					t.Errorf("%q is cut in %q", item, v["text"])
				}
				rest = after
			}
		}
		e, err := builtIn.Gaps(t.Context(), infill.GapsRequest{Text: texts[i], Every: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range e.Gaps {
			if slices.ContainsFunc(places, func(p [2]int) bool { return g.Span[0] < p[1] && p[0] < g.Span[1] }) {
				t.Errorf("the gap of %q at %v in %q", g.Key, g.Span, texts[i])
			}
		}
	}
}
