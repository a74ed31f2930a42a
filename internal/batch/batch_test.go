package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"infill/internal/check"
	"infill/internal/journal"
	"infill/internal/lines"
	"infill/internal/modelstest"
	"infill/internal/rawjson"
)

// shout is a work that needs no model: two lines in capitals for each text,
// one in plain text.
type shout struct {
	set   map[string]string
	pause time.Duration // at most, of each record
	names []string      // of the input's columns in the output

	renamed map[string]string // these by the columns
}

var _ work = (*shout)(nil)

func (w *shout) settings(context.Context) (map[string]string, error) {
	set := map[string]string{"device": "none"}
	maps.Copy(set, w.set)
	return set, nil
}

func (w *shout) column() string                     { return "text" }
func (w *shout) options([]string) ([]string, error) { return nil, nil }
func (w *shout) warnings() []string                 { return nil }

func (w *shout) layout(input []string, _ Form) Layout {
	var names []string
	w.renamed = rawjson.Beside(input, "text", shouted)
	for _, name := range input {
		names = append(names, w.renamed[name])
	}
	own := []string{"n", "rank", "loud", "tall"}
	w.names = names
	return Layout{Own: own, Copied: names, After: slices.Concat(names, own)}
}

func shouted(name string) bool { return name == "loud" || name == "rank" }

func (w *shout) do(ctx context.Context, r Record, form Form) (made Rows, err error) {
	text, err := textOf(r.Object, "text")
	if err != nil {
		return made, err
	}
	if strings.Contains(text, "wrong") {
		return made, reject("the text is wrong")
	}
	if w.pause > 0 {
		select {
		case <-time.After(rand.N(w.pause)):
		case <-ctx.Done():
			return made, ctx.Err()
		}
	}
	if form == formText {
		made.Lines = []json.RawMessage{json.RawMessage(rawjson.Quote(lines.One(strings.ToUpper(text))))}
		return made, nil
	}
	copied := r.Object.Rename(w.renamed)
	if form.table() {
		made.Copied = cellsUnder(w.names, copied)
	}
	for i, end := range []string{"", "!"} {
		own := rawjson.Object{{Key: "n", Value: rawjson.Value(strconv.FormatInt(r.Number, 10))},
			{Key: "rank", Value: rawjson.Value(strconv.Itoa(i + 1))},
			{Key: "loud", Value: rawjson.Quote(strings.ToUpper(text) + end)},
			{Key: "tall", Value: rawjson.Quote(strconv.FormatBool(strings.Contains(text, "tall")))}}
		if form.table() {
			var cells []string
			for _, field := range own {
				cells = append(cells, rawjson.Plain(field.Value))
			}
			made.addCells(cells)
			continue
		}
		made.Lines = append(made.Lines, slices.Concat(copied, own).Append(nil))
	}
	return made, nil
}

func put(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func get(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func packed(t testing.TB, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	switch filepath.Ext(name) {
	case ".gz":
		w := gzip.NewWriter(&b)
		w.Write([]byte(content))
		w.Close()
	case ".zst":
		w, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(content))
		w.Close()
	default:
		return content
	}
	return b.String()
}

// inputs are files in all forms, with what may be wrong in each.
func inputs(t testing.TB) map[string]string {
	jsonl := "\ufeff" + `{"id":1,"text":"the kettle sang"}` + "\n\n" + `{"id":2,"text":"wrong"}` + "\r\n{\n" +
		`{"id":"x","text":"a tall <b> & \"c\" é"}` + "\n" +
		"{\"text\":\"caf\xe9\"}\n" + `{"id":{"page": [1, 2]},"text":"rain\nagain"}` + "\n" + `["text"]` + "\n" +
		`{"text":7}` + "\n" + `{"text":"last"}`
	table := "\ufeffid,text\r\n1,the kettle sang\r\n2,\"two\nlines, and \"\"quotes\"\"\"\r\n3\r\n4,\"5\"\" tall\"\r\n" +
		"5,caf\xe9\r\n7,wrong\r\n8,\"last\""
	lines := "the kettle sang\n\nwrong\ncaf\xe9\n" + strings.Repeat("x", maxRecord+1) + "\nlast"
	tabs := "id\ttext\n1\t\"the kettle sang\n2\n3\tlast\n"
	many := ""
	for i := range 300 {
		many += fmt.Sprintf(`{"id":%d,"text":"%s"}`+"\n", i, strings.Repeat("w ", i%40))
	}
	return map[string]string{"in.jsonl": jsonl, "in.csv": table, "in.txt": lines, "in.tsv": tabs,
		"in.jsonl.gz": jsonl, "in.csv.zst": table, "many.jsonl": many}
}

// TestSameBytes: the output hangs neither on the number of parts nor on how
// many records are in work at once.
func TestSameBytes(t *testing.T) {
	for name, content := range inputs(t) {
		for _, form := range []string{"jsonl", "csv.gz", "tsv", "txt.zst"} {
			t.Run(name+" to "+form, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				in := File{Path: put(t, dir, name, packed(t, name, content))}
				var want [2]string
				for _, parts := range []int{0, 1, 3, 11} {
					out := filepath.Join(dir, fmt.Sprint("out", parts, ".", form))
					job := Job{Input: in, Output: File{Path: out},
						Work: &shout{set: map[string]string{"a": "1"}, pause: time.Microsecond}, InFlight: 1 + 3*parts}
					if parts == 0 {
						must(t, job)
					}
					for i := range parts {
						job.Shard = Shard{Index: parts - i, Count: parts}
						must(t, job)
					}
					if parts > 0 {
						if s, err := Merge(t.Context(), out, true); err != nil || s.Signature == "" {
							t.Fatal(s, err)
						}
					}
					rejects, _ := os.ReadFile(rejectsOf(out))
					got := [2]string{get(t, out), string(rejects)}
					if parts == 0 {
						want = got
					} else if got != want {
						t.Errorf("%d parts: %s", parts, cmp.Diff(want, got))
					}
					if left, _ := filepath.Glob(out + ".parts*"); len(left) > 0 {
						t.Errorf("%v is left", left)
					}
				}
			})
		}
	}
}

// must does a job.
func must(t *testing.T, j Job) *Summary {
	t.Helper()
	s, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused does a job that ends with an error of one line.
func refused(t *testing.T, j Job, want string) {
	t.Helper()
	if _, err := Run(t.Context(), j); err == nil || !strings.Contains(err.Error(), want) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %q", err, want)
	}
}

// run does the whole of a file and returns output, rejects and summary.
func run(t *testing.T, name, content, out string) (string, string, *Summary) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, out)
	s := must(t, Job{Input: File{Path: put(t, dir, name, content)}, Output: File{Path: path}, Work: &shout{},
		InFlight: 3})
	rejects, _ := os.ReadFile(rejectsOf(path))
	return get(t, path), string(rejects), s
}

// A gzip or zstd file may hold several streams, one behind the other.
func TestSeveralStreams(t *testing.T) {
	for _, name := range []string{"in.txt.gz", "in.txt.zst"} {
		if got, _, _ := run(t, name, packed(t, name, "a\nb")+packed(t, name, "c\nd\n"), "o.txt"); got != "A\nBC\nD\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestForms(t *testing.T) {
	in := inputs(t)
	for name, c := range map[string]struct{ in, out, want, rejects string }{
		"jsonl": {"in.jsonl", "o.txt", "THE KETTLE SANG\n\n\n\nA TALL <B> & \"C\" É\n\nRAIN AGAIN\n\n\nLAST\n",
			`{"line":3,"error":"the text is wrong"}
{"line":4,"error":"the line is not JSON: unexpected end of JSON input at byte 1"}
{"line":6,"error":"the line is not valid UTF-8"}
{"line":8,"error":"the line is not a JSON object"}
{"line":9,"error":"\"text\" is not a string: write {\"text\": \"...\"}, or name the column"}
`},
		"csv": {"in.csv", "o.csv", `id,text,n,rank,loud,tall
1,the kettle sang,1,1,THE KETTLE SANG,false
1,the kettle sang,1,2,THE KETTLE SANG!,false
2,"two
lines, and ""quotes""",2,1,"TWO
LINES, AND ""QUOTES""",false
2,"two
lines, and ""quotes""",2,2,"TWO
LINES, AND ""QUOTES""!",false
4,"5"" tall",4,1,"5"" TALL",true
4,"5"" tall",4,2,"5"" TALL!",true
8,last,7,1,LAST,false
8,last,7,2,LAST!,false
`, `{"line":5,"error":"1 cells, the header has 2"}
{"line":7,"error":"the line is not valid UTF-8: save the file as UTF-8"}
{"line":8,"error":"the text is wrong"}
`},
		"tsv": {"in.tsv", "o.tsv", "id\ttext\tn\trank\tloud\ttall\n" +
			"1\t\"\"\"the kettle sang\"\t1\t1\t\"\"\"THE KETTLE SANG\"\tfalse\n" +
			"1\t\"\"\"the kettle sang\"\t1\t2\t\"\"\"THE KETTLE SANG!\"\tfalse\n3\tlast\t3\t1\tLAST\tfalse\n" +
			"3\tlast\t3\t2\tLAST!\tfalse\n",
			`{"line":3,"error":"1 cells, the header has 2"}` + "\n"},
		"text": {"in.txt", "o.txt", "THE KETTLE SANG\n\n\n\n\nLAST\n", `{"line":3,"error":"the text is wrong"}
{"line":4,"error":"the line is not valid UTF-8: save the file as UTF-8"}
{"line":5,"error":"longer than 1048576 bytes: split it"}
`},
	} {
		t.Run(name, func(t *testing.T) {
			got, rejects, s := run(t, c.in, in[c.in], c.out)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.rejects, rejects); diff != "" {
				t.Error(diff)
			}
			if s.Rejected != int64(strings.Count(c.rejects, "\n")) {
				t.Errorf("%d rejected", s.Rejected)
			}
		})
	}
}

// TestKeepsColumns: no column of the input is lost in a table, one named like
// what a fill has and an object among them, also of thousands.
func TestKeepsColumns(t *testing.T) {
	got, _, _ := run(t, "in.jsonl", `{"loud":"mine","input_loud":8,"text":"a","meta":{"page": 1}}`+"\n", "o.csv")
	const want = `input_input_loud,input_loud,text,meta,n,rank,loud,tall
mine,8,a,"{""page"":1}",1,1,A,false
mine,8,a,"{""page"":1}",1,2,A!,false
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wide := "text"
	for i := range 4000 {
		wide += fmt.Sprint(",c", i)
	}
	wide += "\n" + strings.Repeat("a"+strings.Repeat(",q", 4000)+"\n", 10)
	if got, _, s := run(t, "in.csv", wide, "o.tsv"); s.Rejected > 0 || strings.Count(got, "\tq") != 20*4000 {
		t.Error(s)
	}
}

const killed = "INFILL_TEST_KILLED"

// TestMain also stands for the process that TestKilled kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killed); dir != "" {
		job := killedJob(dir)
		if shard := os.Getenv(killed + "_SHARD"); shard != "" {
			if err := job.Shard.UnmarshalText([]byte(shard)); err != nil {
				panic(err)
			}
		}
		if _, err := Run(context.Background(), job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func killedJob(dir string) Job {
	return Job{Input: File{Path: filepath.Join(dir, "many.jsonl")}, Output: File{Path: filepath.Join(dir, "out.csv")},
		Work: &shout{pause: 5 * time.Millisecond}, InFlight: 4,
		Resume: true}
}

// TestKilled: processes that end by SIGKILL at any moment, over and over, come to the
// same bytes as one that is left alone, in one part and in three.
func TestKilled(t *testing.T) {
	for _, parts := range []int{0, 3} {
		t.Run(fmt.Sprint(parts, " parts"), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, uint64(parts)))
			alone, dir := t.TempDir(), t.TempDir()
			many := inputs(t)["many.jsonl"]
			put(t, alone, "many.jsonl", many)
			put(t, dir, "many.jsonl", many)
			if _, err := Run(t.Context(), killedJob(alone)); err != nil {
				t.Fatal(err)
			}
			kills, torn := 0, 0
			for part := range max(1, parts) {
				shard := Shard{Index: part + min(1, parts), Count: parts}.String()
				for attempt := 0; ; attempt++ {
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), killed+"="+dir, killed+"_SHARD="+shard)
					var stderr bytes.Buffer
					cmd.Stderr = &stderr
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					done := make(chan error, 1)
					go func() { done <- cmd.Wait() }()
					patience := time.Duration(10+random.IntN(60)) * time.Millisecond
					if attempt >= 15 {
						patience = time.Minute
					}
					var err error
					select {
					case err = <-done:
					case <-time.After(patience):
						cmd.Process.Kill()
						kills++
						<-done
						// Half a line, as a machine that fails leaves it.
						if journals, _ := filepath.Glob(filepath.Join(dir, "out.csv.parts", "*.jsonl")); len(
							journals) > 0 && random.IntN(2) == 0 {
							content := get(t, journals[0])
							put(t, filepath.Dir(journals[0]), filepath.Base(journals[0]), content+`{"line":7,"rows":[{"te`)
							torn++
						}
						continue
					}
					if err != nil {
						t.Fatal(err, stderr.String())
					}
					break
				}
			}
			if parts > 0 {
				if _, err := Merge(t.Context(), killedJob(dir).Output.Path, true); err != nil {
					t.Fatal(err)
				}
			}
			if get(t, filepath.Join(dir, "out.csv")) != get(t, filepath.Join(alone, "out.csv")) {
				t.Error("the output differs")
			}
			if t.Logf("%d kills, %d torn lines", kills, torn); kills == 0 {
				t.Error("no process was killed")
			}
		})
	}
}

// TestRefuses: what is wrong is said in one line, and nothing half-written is taken for
// a result.
func TestRefuses(t *testing.T) {
	gz := packed(t, "x.gz", strings.Repeat(`{"text":"the kettle sang"}`+"\n", 100))
	for name, c := range map[string]struct {
		name, content, out string
		change             func(*Job)
		want               string
	}{
		"no file": {"", "", "o.jsonl", func(j *Job) { j.Input.Path += "none.jsonl" }, "no such file"},
		"a folder": {"", "", "o.jsonl",
			func(j *Job) { j.Input = File{Path: filepath.Dir(j.Output.Path), Form: formText} },
			"not a regular file: a folder"},
		"no form": {"in.dat", "x", "o.jsonl", nil,
			"its name does not tell the form of the input: end it in"},
		"no form of output": {"in.txt", "x", "o", nil, "its name does not tell the form of the output"},
		"no form behind a link": {"in.txt", "x", "o.csv",
			func(j *Job) { check.OK(t, os.Symlink("real", j.Output.Path)) },
			"real: its name does not tell the form of the output"},
		"cut gzip": {"in.jsonl.gz", gz[:len(gz)-6], "o.jsonl", nil,
			"the file is no gzip, as its name says, or is cut off or damaged"},
		"no gzip": {"in.jsonl.gz", "text", "o.jsonl", nil, "get it again"},
		"damaged zstd": {"in.jsonl.zst", "text and more text", "o.jsonl", nil,
			"the file is no zstd, as its name says"},
		"bytes behind gzip": {"in.jsonl.gz", gz + "more", "o.jsonl", nil,
			"the file is no gzip, as its name says, or is cut off or damaged"},
		"a header behind gzip": {"in.jsonl.gz", gz + strings.Repeat("more", 9), "o.jsonl", nil,
			"the file is no gzip, as its name says, or is cut off or damaged"},
		"cut second gzip": {"in.jsonl.gz", gz + gz[:len(gz)-6], "o.jsonl", nil,
			"the file is no gzip, as its name says, or is cut off or damaged"},
		"bytes behind zstd": {"in.jsonl.zst", packed(t, "x.zst", `{"text":"a"}`) + "more", "o.jsonl", nil,
			"the file is no zstd, as its name says, or is cut off or damaged"},
		"empty lines": {"in.csv", "\n\n\n", "o.jsonl", nil, "in.csv: line 1 is empty: it must name the columns"},
		"UTF-16": {"in.csv", "t\x00e\x00,\x00\n\x00", "o.jsonl", nil,
			"in.csv: the text has NUL characters, as UTF-16 looks: save it as UTF-8"},
		"empty lines, tabs": {"in.tsv", "\r\n\r\n", "o.jsonl", nil,
			"in.tsv: line 1 is empty: it must name the columns"},
		"carriage returns": {"in.csv", "id,text\r1,a\r2,b\r", "o.jsonl", nil,
			"in.csv: line 1: a carriage return (CR) ends no line: save the file with line feeds (LF)"},
		"carriage returns, tabs": {"in.tsv", "id\ttext\r1\ta\r2\tb\r", "o.jsonl", nil,
			"in.tsv: line 1: a carriage return (CR) ends no line: save the file with line feeds (LF)"},
		"a carriage return below": {"in.csv", "id,text\n1,a\n2,b\r3,c\n", "o.jsonl", nil,
			"in.csv: line 3: a carriage return (CR) ends no line"},
		"no column": {"in.csv", "a,b\n1,2\n", "o.jsonl", nil,
			`has no column "text": its columns are "a", "b"`},
		"empty table": {"in.csv", "", "o.jsonl", nil, "in.csv: line 1 is empty: it must name the columns"},
		"a quote in a cell": {"in.csv", "id,text\n1,a\n2,5\" tall\n3,b\n", "o.jsonl", nil,
			"in.csv: line 3 is not CSV: bare \" in non-quoted-field at byte 4: mend it, or save the file as"},
		"a quote without an end": {"in.csv", "id,text\n1,a\n2,\"b\n3,c\n4,d\n", "o.jsonl", nil,
			`in.csv: line 3 is not CSV: extraneous or missing " in quoted-field`},
		"a quote without an end, long": {"in.csv", "id,text\n1,\"b\n" + strings.Repeat("2,c\n", maxLine/2),
			"o.jsonl", nil,
			"in.csv: the record after line 1 is longer than 33554432 bytes: close its quotes, or split it"},
		"no line end": {"in.jsonl", "{}\n" + strings.Repeat(" ", maxLine+1), "o.jsonl", nil,
			"in.jsonl: the record after line 1 is longer than 33554432 bytes"},
		"a quote, and no line end": {"in.tsv", "text\tn\n\"a\t1\nb\t2\n" + strings.Repeat(" ", maxLine+1), "o.jsonl",
			nil, "in.tsv: the record after line 3 is longer than 33554432 bytes"},
		"columns alike": {"in.csv", "text,b,b\n", "o.jsonl", nil, `two columns are called "b": rename one`},
		"Parquet": {"in.parquet", "x", "o.csv", nil,
			"in.jsonl\", orient='records', lines=True)"},
		"an output of Parquet": {"in.txt", "x", "o.parquet", nil, "o.jsonl\", lines=True).to_parquet("},
		"packed twice":         {"in.txt", "x", "o.csv.zst.gz", nil, "its name does not tell the form of the output"},
		"output there": {"in.txt", "a\n", "o.txt", func(j *Job) { put(t, filepath.Dir(j.Output.Path), "o.txt", "b\n") },
			"o.txt is there already: --resume takes it as done, --overwrite makes it again"},
		"input as output": {"in.txt", "a\n", "in.txt", nil,
			"in.txt would be replaced, and is the input: choose another output"},
		"input as output, replaced": {"in.txt", "a\n", "in.txt", func(j *Job) { j.Overwrite = true }, "is the input"},
		"input as rejects": {"o.txt.rejects.jsonl", "a\n", "o.txt", func(j *Job) { j.Overwrite = true },
			"is the input"},
		"input by another name": {"in.txt", "a\n", "o.txt", func(j *Job) {
			if err := os.Link(j.Input.Path, j.Output.Path); err != nil {
				t.Fatal(err)
			}
			j.Overwrite = true
		}, "is the input"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := Job{Output: File{Path: filepath.Join(dir, c.out)}, Work: &shout{}}
			if c.name != "" {
				j.Input.Path = put(t, dir, c.name, c.content)
			}
			if c.change != nil {
				c.change(&j)
			}
			refused(t, j, c.want)
			if _, err := os.Stat(j.Output.Path); err == nil && !strings.Contains(c.want, "is there already") &&
				!strings.Contains(c.want, "is the input") {
				t.Error("there is an output")
			}
			if c.name != "" && get(t, j.Input.Path) != c.content {
				t.Error("the input was changed")
			}
		})
	}
}

// interrupted leaves a run of two parts with the first finished and the second begun.
func interrupted(t *testing.T) (dir string, job Job) {
	t.Helper()
	dir = t.TempDir()
	put(t, dir, "many.jsonl", inputs(t)["many.jsonl"])
	job = killedJob(dir)
	job.Shard = Shard{Index: 1, Count: 2}
	must(t, job)
	job.Shard = Shard{Index: 2, Count: 2}
	stop(t, job)
	return dir, job
}

// stop begins a job and cancels it.
func stop(t *testing.T, job Job) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	job.Observe = func(p Progress) {
		if p.Done > 20 {
			cancel()
		}
	}
	if _, err := Run(ctx, job); err != context.Canceled {
		t.Fatal(err)
	}
}

// TestRefusesOthers: what others left or do is not taken for one's own.
func TestRefusesOthers(t *testing.T) {
	set := func(name, value string) func(*testing.T, string, *Job) {
		return func(_ *testing.T, _ string, j *Job) { j.Work.(*shout).set = map[string]string{name: value} }
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string, j *Job)
		want   string
	}{
		"no --resume": {func(t *testing.T, _ string, j *Job) { j.Resume = false },
			"is a run that was not finished: --resume goes on with it"},
		"other settings": {set("seed", "2"), "(seed: not given there, 2 now): give the old one, or another output"},
		"other settings of a new part": {func(t *testing.T, dir string, j *Job) {
			os.Remove(pathOf(j.Output.Path, j.Shard))
			set("seed", "2")(t, dir, j)
		}, "(seed: not given there, 2 now): give the old one, or another output"},
		"other device": {set("device", "gpu"), "(device: none there, gpu now)"},
		"other number": {func(t *testing.T, _ string, j *Job) { j.Shard = Shard{Index: 2, Count: 3} },
			"holds a run in 2 parts, and not in 3: remove it, or choose another output"},
		"the whole": {func(t *testing.T, _ string, j *Job) { j.Shard, j.Overwrite = Shard{}, true },
			"holds a run in 2 parts, and not in 1"},
		"longer input": {func(t *testing.T, dir string, j *Job) {
			put(t, dir, "many.jsonl", get(t, j.Input.Path)+"{}\n")
		}, "(input: "},
		"other input": {func(t *testing.T, dir string, j *Job) {
			put(t, dir, "many.jsonl", strings.Replace(get(t, j.Input.Path), `"w w w`, `"w x w`, -1))
		}, "(input: "},
		"changed journal": {func(t *testing.T, dir string, j *Job) {
			path := pathOf(j.Output.Path, j.Shard)
			put(t, "", path, strings.Replace(get(t, path), "\n", "\nx\n", 1))
		}, "line 2 is no line of a run: the file was changed by something else"},
		"at work": {func(t *testing.T, dir string, j *Job) {
			lock, err := journal.Lock(pathOf(j.Output.Path, j.Shard), "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { lock.Unlock() })
		}, "another process is at work at part 2/2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, job := interrupted(t)
			c.change(t, dir, &job)
			refused(t, job, c.want)
		})
	}
}

// TestMerge: parts that are missing, not finished, damaged, or of another
// run are not joined.
func TestMerge(t *testing.T) {
	dir, job := interrupted(t)
	merge := func(want string) {
		t.Helper()
		if _, err := Merge(t.Context(), job.Output.Path, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	merge("1 of 2 parts are not finished: run 2/2 again with --resume")
	must(t, job)
	path := pathOf(job.Output.Path, job.Shard)
	whole := get(t, path)
	at := strings.Index(whole, "\n") + 1
	const device = `"device":"none"`
	lines := strings.SplitAfter(whole, "\n")
	lines[1], lines[2] = lines[2], lines[1]
	const damaged, unfinished = "00002-of-00002.jsonl is damaged ", "1 of 2 parts are not finished: run 2/2 again"
	for changed, want := range map[string]string{
		strings.Replace(whole, "\n", "\n{\n", 1):         damaged + "(line 2 is no line of a run): remove it",
		whole + whole[at:]:                               damaged + "(line 152 is no line of a run)",
		strings.Replace(whole, device, `"device":""`, 1): "(device: none there, not given now)",
		strings.Join(lines, ""):                          damaged + "(line 3 is no line of a run)",
		whole[:len(whole)-9]:                             unfinished,
		whole[:9]:                                        unfinished,
	} {
		put(t, "", path, changed)
		merge(want)
	}
	put(t, "", path, whole)
	other := put(t, filepath.Dir(path), "00001-of-00020.jsonl", "")
	merge("holds parts of 2 and of 20: remove those that are of another run")
	os.Remove(other)
	lock, err := journal.Lock(filepath.Join(filepath.Dir(path), outputPart), "")
	if err != nil {
		t.Fatal(err)
	}
	merge("another process joins the parts in")
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "out.csv", "what another program wrote")
	merge("out.csv is there already, and " + filepath.Dir(path) + " is of another run: remove one of them")
	put(t, filepath.Dir(path), "00001-of-00020.jsonl", "")
	merge("holds parts of 2 and of 20: remove those that are of another run")
	os.Remove(other)
	os.Remove(job.Output.Path)
	// Doing a finished part again is free.
	if s := must(t, job); s.Kept != 150 {
		t.Error(s)
	}
	put(t, filepath.Dir(path), "mine", "is left alone")
	if s, err := Merge(t.Context(), job.Output.Path, false); err != nil || s.Records != 300 || s.Done {
		t.Error(s, err)
	}
	joined := get(t, job.Output.Path)
	// The parts stay, so that an output that somebody removes is made again.
	os.Remove(job.Output.Path)
	if s, err := Merge(t.Context(), job.Output.Path, false); err != nil || s.Done ||
		get(t, job.Output.Path) != joined {
		t.Error(s, err)
	}
	first := pathOf(job.Output.Path, Shard{1, 2})
	begun := get(t, first)
	put(t, "", first, "")
	merge(first + " is empty")
	put(t, "", first, begun)
	if s, err := Merge(t.Context(), job.Output.Path, true); err != nil || !s.Done {
		t.Error(s, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Error(left)
	}
	os.RemoveAll(filepath.Dir(path))
	if s, err := Merge(t.Context(), job.Output.Path, false); err != nil || !s.Done {
		t.Error(s, err)
	}
	job.Output.Path = filepath.Join(dir, "none.csv")
	merge("holds no parts: run them first, with this output and --shard 1/N to N/N")
}

// TestDone: an output that is there is finished, and made again only with Overwrite.
func TestDone(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "many.jsonl", inputs(t)["many.jsonl"])
	job := killedJob(dir)
	must(t, job)
	want := get(t, job.Output.Path)
	if s := must(t, job); !s.Done {
		t.Error(s)
	}
	// With other options, or without a word about them, it is not that run's output.
	job.Work = &shout{set: map[string]string{"device": "other"}}
	refused(t, job, "(device: none there, other now)")
	job.Work = killedJob(dir).Work
	told := get(t, receiptOf(job.Output.Path))
	os.Remove(receiptOf(job.Output.Path))
	refused(t, job, "nobody knows its options: --overwrite makes it again")
	put(t, dir, "out.csv.run.json", `{"mine": 1}`)
	refused(t, job, "out.csv.run.json would be replaced, and no run has written it")
	put(t, dir, "out.csv.run.json", told)
	job.Resume = false
	refused(t, job, "is there already: --resume takes it as done")
	job.Overwrite = true
	stop(t, job)
	if _, err := os.Stat(job.Output.Path); err == nil {
		t.Error("the output is not finished, and there")
	}
	job.Resume, job.Overwrite = true, false
	if s := must(t, job); s.Kept == 0 || s.Records != 300 || get(t, job.Output.Path) != want {
		t.Error(s)
	}
	// A process that was killed before it removed the parts.
	job.Output.Path = filepath.Join(dir, "other.csv")
	job.Shard = Shard{Index: 1, Count: 1}
	must(t, job)
	job.Shard = Shard{}
	if s := must(t, job); s.Kept != 300 || get(t, job.Output.Path) != want {
		t.Error(s)
	}
	// An output is written where its path leads by its words, also by way of a
	// folder that is not there.
	job.Output.Path = dir + "/./none/../words.csv"
	if must(t, job); get(t, filepath.Join(dir, "words.csv")) != want {
		t.Error("another output")
	}
}

// TestFormat4: parts whose spans count bytes are neither continued nor joined.
func TestFormat4(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "many.jsonl", inputs(t)["many.jsonl"])
	job := killedJob(dir)
	job.Shard = Shard{Index: 1, Count: 2}
	must(t, job)
	path := pathOf(job.Output.Path, job.Shard)
	put(t, filepath.Dir(path), filepath.Base(path), strings.Replace(get(t, path), `"format":7`, `"format":6`, 1))
	job.Resume = true
	_, resumed := Run(t.Context(), job)
	job.Shard.Index = 2
	_, beside := Run(t.Context(), job)
	_, joined := Merge(t.Context(), job.Output.Path, false)
	for _, err := range []error{resumed, beside, joined} {
		check.Says(t, err, filepath.Base(path), "results of format 4, whose spans count bytes", "--overwrite")
	}
}

// TestFullDisk: a full disk ends the run with advice, and it goes on when there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "many.jsonl", inputs(t)["many.jsonl"])
	job := killedJob(dir)
	err := modelstest.InLittleRoom(t, 8192, dir, func(dir string) error {
		_, err := Run(t.Context(), killedJob(dir))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "make room, and go on with --resume") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(job.Output.Path); err == nil {
		t.Error("there is an output")
	}
	if s, err := Run(t.Context(), job); err != nil || s.Kept == 0 || s.Records != 300 {
		t.Error(s, err)
	}
}

// TestWords: what may be masked. A protected name is so in the genitive, and in a
// word with a hyphen.
func TestWords(t *testing.T) {
	f, _ := newFake(t, 0)
	a := Augment{Filler: f, KeepStopWords: true, Protect: []string{"Holm", "boat"}}
	text := "'hey , it 's Mr. Holm's BOAT-house ; they don't 3rd the naïve €5"
	var mayMask []string
	all, words, err := a.words(text)
	for _, w := range words {
		mayMask = append(mayMask, text[w[0]:w[1]])
	}
	if diff := cmp.Diff([]string{"hey", "don't", "naïve"}, mayMask); diff != "" || all != 6 || err != nil {
		t.Error(all, diff, err)
	}
}

// TestShard: a record is of one part.
func TestShard(t *testing.T) {
	for _, text := range []string{"0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3", "", "+1/2", "1 /2", "1/10001"} {
		if err := new(Shard).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for count := 1; count < 9; count++ {
		for records := range int64(20) {
			next := int64(0)
			for index := 1; index <= count; index++ {
				var s Shard
				if err := s.UnmarshalText(fmt.Appendf(nil, "%d/%d", index, count)); err != nil {
					t.Fatal(err)
				}
				before, own := s.of(records)
				if before != next || own < 0 {
					t.Errorf("part %s of %d records begins at %d, want %d", s, records, before, next)
				}
				next += own
			}
			if next != records {
				t.Errorf("%d parts have %d of %d records", count, next, records)
			}
		}
	}
}

// TestLines: lines do not depend on how they arrive, and those that are too
// long are left out alone.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxRecord)
	for name, c := range map[string]struct {
		text string
		want []string // lines; "long" stands for the error
	}{
		"nothing":           {"", nil},
		"one":               {"a", []string{"a"}},
		"ended":             {"a\n", []string{"a"}},
		"empty ones":        {"\n\na\n\n", []string{"", "", "a", ""}},
		"carriage returns":  {"a\r\nb\r\r\n", []string{"a", "long"}},
		"longest":           {long + "\nb\n", []string{long, "b"}},
		"longest, CR LF":    {long + "\r\nb", []string{long, "b"}},
		"too long":          {long + "x\nb\n", []string{"long", "b"}},
		"too long and last": {"b\n" + long + long, []string{"b", "long"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.text), iotest.HalfReader(strings.NewReader(c.text))} {
				var got []string
				r := NewReader(in, formText, "text")
				for line, err := r.Next(); err != io.EOF; line, err = r.Next() {
					if err != nil {
						t.Fatal(err)
					}
					content, _ := line.Object.Text("text")
					if line.Err != nil {
						content = "long"
					}
					got = append(got, content)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestBytes: cells keep their bytes, line breaks included; a byte-order mark and zeros behind gzip are no content.
func TestBytes(t *testing.T) {
	read := func(name string, content []byte) (texts []string) {
		t.Helper()
		path := put(t, t.TempDir(), name, string(content))
		records, _, err := Records(File{Path: path}, "text")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range records {
			if r.Err != nil {
				t.Fatalf("%s: %v", name, r.Err)
			}
			text, err := r.Object.Text("text")
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		return texts
	}
	packed := func(text string, behind ...byte) []byte {
		var b bytes.Buffer
		for _, member := range []string{text[:3], text[3:]} {
			w := gzip.NewWriter(&b)
			_, err := w.Write([]byte(member))
			if err != nil || w.Close() != nil {
				t.Fatal(err)
			}
		}
		return append(b.Bytes(), behind...)
	}
	const cells = "id,text\r\n1,\"a\r\nb\rc\nd \"\"e\"\"\"\r\n2,f\r\n"
	for name, c := range map[string]struct {
		file string
		text []byte
		want []string
	}{
		"CSV":            {"in.csv", []byte(cells), []string{"a\r\nb\rc\nd \"e\"", "f"}},
		"CSV, mark":      {"in.csv", []byte(lines.ByteOrderMark + cells), []string{"a\r\nb\rc\nd \"e\"", "f"}},
		"TSV":            {"in.tsv", []byte("id\ttext\r\n1\t\"a\r\nb\"\r\n2\tf\r\n"), []string{"a\r\nb", "f"}},
		"JSON lines":     {"in.jsonl", []byte("{\"text\": \r\"a\\r\\nb\"}\r\n"), []string{"a\r\nb"}},
		"text, mark":     {"in.txt", []byte(lines.ByteOrderMark + "a\r\nb\n"), []string{"a", "b"}},
		"gzip":           {"in.txt.gz", packed("a\nb\nc\n"), []string{"a", "b", "c"}},
		"gzip and zeros": {"in.txt.gz", packed("a\nb\nc\n", 0, 0, 0, 0), []string{"a", "b", "c"}},
	} {
		got := read(c.file, c.text)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	path := put(t, t.TempDir(), "in.txt.gz", string(packed("a\nb\n", 0, 0, 7)))
	_, _, err := Records(File{Path: path}, "text")
	if err == nil || !strings.Contains(err.Error(), "cut off or damaged") {
		t.Errorf("other bytes behind gzip: %v", err)
	}
}
