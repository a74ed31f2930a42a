package batch

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"infill/infill"
	"infill/internal/journal"
	"infill/internal/modelstest"
	"infill/internal/object"
)

// shout is a work that needs no model: two lines in capitals for each text.
type shout struct {
	set       map[string]string
	computing map[string]string
	pause     time.Duration // at most, of each record
}

var _ work = (*shout)(nil)

func (w *shout) settings() map[string]string                            { return w.set }
func (w *shout) environment(context.Context) (map[string]string, error) { return w.computing, nil }
func (w *shout) column() string                                         { return "text" }
func (w *shout) aligned() bool                                          { return true }

func (w *shout) lines(row object.Object) (lines []object.Object, err error) {
	if err := json.Unmarshal(row.Get("samples"), &lines); err != nil {
		return nil, err
	}
	base := beside(row, func(name string) bool { return slices.Contains([]string{"rank", "loud", "share"}, name) })
	base = slices.DeleteFunc(base, func(f object.Field) bool { return f.Key == "samples" })
	for i, line := range lines {
		lines[i] = append(slices.Clip(base), line...)
	}
	return lines, nil
}

func (w *shout) plain(row object.Object) string {
	lines, err := w.lines(row)
	if err != nil {
		return err.Error()
	}
	return oneLine(text(lines[0].Get("loud")))
}

func (w *shout) Do(ctx context.Context, r Record) ([]object.Object, error) {
	text, err := textOf(r, "text")
	if err != nil {
		return nil, err
	}
	if strings.Contains(text, "wrong") {
		return nil, reject("the text is wrong")
	}
	if w.pause > 0 {
		select {
		case <-time.After(rand.N(w.pause)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	loud := strings.ToUpper(text)
	samples, err := object.Encode([]object.Object{
		{{Key: "rank", Value: json.RawMessage("1")}, {Key: "loud", Value: object.Quote(loud)},
			{Key: "share", Value: json.RawMessage("0.5")}},
		{{Key: "rank", Value: json.RawMessage("2")}, {Key: "loud", Value: object.Quote(loud + "!")},
			{Key: "share", Value: json.RawMessage("1")}},
	})
	number := json.RawMessage(strconv.FormatInt(r.Number, 10))
	return []object.Object{append(r.Object, object.Field{Key: "n", Value: number},
		object.Field{Key: "samples", Value: samples})}, err
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
		`{"id":"x","text":"a <b> & \"c\" é"}` + "\n" +
		"{\"text\":\"caf\xe9\"}\n" + `{"id":{"page": [1, 2]},"text":"rain\nagain"}` + "\n" + `["text"]` + "\n" +
		`{"text":7}` + "\n" + `{"text":"last"}`
	table := "id,text\r\n1,the kettle sang\r\n2,\"two\nlines, and \"\"quotes\"\"\"\r\n3\r\n4,5\" tall\r\n5,\"no " +
		"end\r\n6,after it\r\n7,wrong\r\n8,\"last\""
	lines := "the kettle sang\n\nwrong\ncaf\xe9\n" + strings.Repeat("x", maxRecord+1) + "\nlast"
	tabs := "id\ttext\n1\t\"the kettle sang\n2\n3\tlast\n"
	many := ""
	for i := range 300 {
		many += fmt.Sprintf(`{"id":%d,"text":"%s"}`+"\n", i, strings.Repeat("w ", i%40))
	}
	return map[string]string{"in.jsonl": jsonl, "in.csv": table, "in.txt": lines, "in.tsv": tabs,
		"in.jsonl.gz": jsonl, "in.csv.zst": table, "many.jsonl": many}
}

// TestSameBytes: the output hangs neither on the number of parts nor on how many
// records are in work at once.
func TestSameBytes(t *testing.T) {
	for name, content := range inputs(t) {
		for _, form := range []string{"jsonl", "csv.gz", "txt.zst"} {
			t.Run(name+" to "+form, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				in := File{Path: put(t, dir, name, packed(t, name, content))}
				var want [3]string
				for _, parts := range []int{0, 1, 3, 11} {
					out := filepath.Join(dir, fmt.Sprint("out", parts, ".", form))
					job := Job{Input: in, Output: File{Path: out},
						Work: &shout{set: map[string]string{"a": "1"}, pause: time.Microsecond}, InFlight: 1 + 3*parts}
					if parts == 0 {
						if _, err := Run(t.Context(), job); err != nil {
							t.Fatal(err)
						}
					}
					for i := range parts {
						job.Shard = Shard{Index: parts - i, Count: parts}
						if _, err := Run(t.Context(), job); err != nil {
							t.Fatal(err)
						}
					}
					if parts > 0 {
						if _, err := Merge(t.Context(), job.Output, false); err != nil {
							t.Fatal(err)
						}
					}
					rejects, _ := os.ReadFile(rejectsPath(out))
					got := [3]string{get(t, out), string(rejects),
						strings.ReplaceAll(get(t, manifestPath(out)), fmt.Sprint("out", parts), "out")}
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

// run does the whole of a file and returns output, rejects and summary.
func run(t *testing.T, name, content, out string) (string, string, *Summary) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, out)
	s, err := Run(t.Context(),
		Job{Input: File{Path: put(t, dir, name, content)}, Output: File{Path: path}, Work: &shout{}, InFlight: 3})
	if err != nil {
		t.Fatal(err)
	}
	rejects, _ := os.ReadFile(rejectsPath(path))
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
	in["cr.txt"] = "one\rtwo\rthree\na\r\nb\r\r\n"
	in["half.jsonl"] = `{"text":"a \ud800 b"}` + "\n" + `{"text":"\ud83d\ude00 \\ud800"}` + "\n" +
		`{"text":"\ud83d\ude00\uDE00"}`
	for name, c := range map[string]struct{ in, out, want, rejects string }{
		"jsonl": {"in.jsonl", "o.txt", "THE KETTLE SANG\n\n\n\nA <B> & \"C\" É\n\nRAIN AGAIN\n\n\nLAST\n",
			`{"line":3,"error":"the text is wrong","input":"{\"id\":2,\"text\":\"wrong\"}"}
{"line":4,"error":"the line is not JSON: unexpected end of JSON input at byte 1","input":"{"}
{"line":6,"error":"the line is not valid UTF-8","input":"{\"text\":\"caf` + "\ufffd" + `\"}"}
{"line":8,"error":"the line is not a JSON object","input":"[\"text\"]"}
{"line":9,"error":"\"text\" is not a string: write {\"text\": \"...\"}, or name the column","input":"{\"text\":7}"}
`},
		"csv": {"in.csv", "o.csv", `id,text,n,rank,loud,share
1,the kettle sang,1,1,THE KETTLE SANG,0.5
1,the kettle sang,1,2,THE KETTLE SANG!,1
2,"two
lines, and ""quotes""",2,1,"TWO
LINES, AND ""QUOTES""",0.5
2,"two
lines, and ""quotes""",2,2,"TWO
LINES, AND ""QUOTES""!",1
6,after it,6,1,AFTER IT,0.5
6,after it,6,2,AFTER IT!,1
8,last,8,1,LAST,0.5
8,last,8,2,LAST!,1
`, `{"line":5,"error":"1 cells, the header has 2","input":"3"}
{"line":6,"error":"the line is not CSV: bare \" in non-quoted-field at byte 4","input":"4,5\" tall"}
{"line":7,"error":"the line is not CSV: extraneous or missing \" in quoted-field at byte 10","input":"5,\"no end"}
{"line":9,"error":"the text is wrong","input":"7,wrong"}
`},
		"tsv": {"in.tsv", "o.txt", "\"THE KETTLE SANG\n\nLAST\n",
			`{"line":3,"error":"1 cells, the header has 2","input":"2"}` + "\n"},
		"text": {"in.txt", "o.txt", "THE KETTLE SANG\n\n\n\n\nLAST\n",
			`{"line":3,"error":"the text is wrong","input":"wrong"}
{"line":4,"error":"the line is not valid UTF-8","input":"caf` + "\ufffd" + `"}
{"line":5,"error":"longer than 1048576 bytes: split it","input":""}
`},
		"carriage returns": {"cr.txt", "o.txt", "\nA\nB\n",
			`{"line":1,"error":"a carriage return stands within the line: end lines with a line feed, with or without a carriage return before it","input":"one\rtwo\rthree"}` + "\n"},
		"half pairs": {"half.jsonl", "o.txt", "\n😀 \\UD800\n\n",
			`{"line":1,"error":"the line has half of a character, \\ud800: write both halves of the pair, or the character itself","input":"{\"text\":\"a \\ud800 b\"}"}
{"line":3,"error":"the line has half of a character, \\uDE00: write both halves of the pair, or the character itself","input":"{\"text\":\"\\ud83d\\ude00\\uDE00\"}"}
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

// TestKeepsColumns: no column of the input is lost in a table, one named like what a fill
// has and an object among them.
func TestKeepsColumns(t *testing.T) {
	got, _, _ := run(t, "in.jsonl", `{"loud":"mine","share":7,"input_share":8,"text":"a","meta":{"page": 1}}`+"\n",
		"o.csv")
	const want = `input_loud,input_input_share,input_share,text,meta,n,rank,loud,share
mine,7,8,a,"{""page"":1}",1,1,A,0.5
mine,7,8,a,"{""page"":1}",1,2,A!,1
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFillKeys: every key that a fill can have is known.
func TestFillKeys(t *testing.T) {
	number, rate := 1.0, [2]float64{}
	text, err := object.Encode(
		infill.Fill{Pieces: []int{1}, Probability: &number, Count: 1, Share: &number, ShareError: &number,
			ShareInterval: &rate,
			SplitRHat:     &number, EffectiveDraws: &number, FinalCount: 1})
	if err != nil {
		t.Fatal(err)
	}
	fill, err := object.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, f := range fill {
		keys = append(keys, f.Key)
	}
	if diff := cmp.Diff(keys, fillKeys); diff != "" {
		t.Error(diff)
	}
	for _, key := range ofDraws {
		if !slices.Contains(keys, key) {
			t.Errorf("a fill has no %q", key)
		}
	}
}

// TestFillLines: the columns of a table, and that one of the user has another name only where it clashes.
func TestFillLines(t *testing.T) {
	row, err := object.Parse(
		[]byte(`{"count":5,"text":"mine","id":1,"format":4,"template":"a [MASK] [MASK]","method":"search","fills":[` +
			`{"rank":1,"text":"a b c","values":["b","c"],"spans":[[2,3],[4,5]],"token_ids":[7,8],"probability":0.5,"log_likelihood":-1}],"stats":{},"warnings":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	for sampler, want := range map[string]string{
		"":      `{"rank":1,"text":"a b c","blank_1":"b","blank_2":"c","probability":0.5,"log_likelihood":-1,"token_ids":[7,8],"template":"a [MASK] [MASK]","method":"search","count":5,"input_text":"mine","id":1}`,
		"gibbs": `{"rank":1,"text":"a b c","blank_1":"b","blank_2":"c","probability":0.5,"log_likelihood":-1,"token_ids":[7,8],"template":"a [MASK] [MASK]","method":"search","input_count":5,"input_text":"mine","id":1}`,
	} {
		f := &Fill{Options: infill.DefaultOptions()}
		if sampler != "" {
			c := infill.DefaultChains(sampler)
			f.Options.Chains = &c
		}
		lines, err := f.lines(row)
		if err != nil || len(lines) != 1 {
			t.Fatal(lines, err)
		}
		if diff := cmp.Diff(want, string(lines[0].Append(nil))); diff != "" {
			t.Error(diff)
		}
	}
}

// TestColumns: the columns of blanks stand together, also those that come late, whatever part is read first.
func TestColumns(t *testing.T) {
	line := func(names ...string) (o object.Object) {
		for _, name := range names {
			o = append(o, object.Field{Key: name})
		}
		return o
	}
	lines := map[int64]object.Object{1: line("text", "blank_1", "id"), 2: line("text", "blank_1", "blank_2", "b", "a"),
		5: line("text", "blank_3", "a", "id")}
	for _, order := range [][]int64{{1, 2, 5}, {5, 2, 1}} {
		c := columns{}
		for _, record := range order {
			c.add(lines[record], record, 0)
		}
		if diff := cmp.Diff([]string{"text", "blank_1", "blank_2", "blank_3", "id", "b", "a"}, c.names()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestSplitting: what csv writes is cut where its records begin, and nothing is lost.
func TestSplitting(t *testing.T) {
	cell := rapid.StringOf(rapid.SampledFrom([]rune("ab,\"\n\r é\t")))
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.SliceOfN(cell, 2, 3), 1, 8).Draw(t, "records")
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if err := w.WriteAll(records); err != nil {
			t.Fatal(err)
		}
		s := NewReader(bytes.NewReader(b.Bytes()), formCSV, "")
		for i, want := range records {
			r, err := s.split()
			if err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
			got, err := cells(formCSV, r.Raw)
			if err != nil || !cmp.Equal(got, want) {
				t.Fatalf("record %d: %q, %v; want %q", i, got, err, want)
			}
		}
		if r, err := s.split(); err != io.EOF {
			t.Fatalf("a record more: %q, %v", r.Raw, err)
		}
	})
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
		Work: &shout{computing: map[string]string{"device": "none"}, pause: 2 * time.Millisecond}, InFlight: 4,
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
				if _, err := Merge(t.Context(), killedJob(dir).Output, false); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"out.csv", "out.csv.manifest.json"} {
				if get(t, filepath.Join(dir, name)) != get(t, filepath.Join(alone, name)) {
					t.Errorf("%s differs", name)
				}
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
			func(j *Job) { j.Input = File{filepath.Dir(j.Output.Path), formText, ""} }, "is no regular file"},
		"no form": {"in.dat", "x", "o.jsonl", nil,
			"its name does not tell the form of the input: end it in"},
		"no form of output": {"in.txt", "x", "o", nil, "its name does not tell the form of the output"},
		"cut gzip": {"in.jsonl.gz", gz[:len(gz)-6], "o.jsonl", nil,
			"the gzip stream is cut off, damaged, or has other bytes behind its end"},
		"no gzip": {"in.jsonl.gz", "text", "o.jsonl", nil, "get it again"},
		"damaged zstd": {"in.jsonl.zst", "text and more text", "o.jsonl", nil,
			"the file is no zstd, as its name says"},
		"bytes behind gzip": {"in.jsonl.gz", gz + "more", "o.jsonl", nil,
			"the gzip stream is cut off, damaged, or has other bytes behind its end"},
		"a header behind gzip": {"in.jsonl.gz", gz + strings.Repeat("more", 9), "o.jsonl", nil,
			"the gzip stream is cut off, damaged, or has other bytes behind its end"},
		"cut second gzip": {"in.jsonl.gz", gz + gz[:len(gz)-6], "o.jsonl", nil,
			"the gzip stream is cut off, damaged, or has other bytes behind its end"},
		"bytes behind zstd": {"in.jsonl.zst", packed(t, "x.zst", `{"text":"a"}`) + "more", "o.jsonl", nil,
			"the zstd stream is cut off, damaged, or has other bytes behind its end"},
		"empty lines": {"in.csv", "\n\n\n", "o.jsonl", nil, "in.csv: line 1 is empty: it must name the columns"},
		"empty lines, tabs": {"in.tsv", "\r\n\r\n", "o.jsonl", nil,
			"in.tsv: line 1 is empty: it must name the columns"},
		"carriage returns": {"in.csv", "id,text\r1,a\r2,b\r", "o.jsonl", nil,
			"in.csv: line 1: a carriage return stands within the line: end lines with a line feed"},
		"no column": {"in.csv", "a,b\n1,2\n", "o.jsonl", nil,
			`has no column "text": its columns are "a", "b"`},
		"empty table":   {"in.csv", "", "o.jsonl", nil, "is empty: its first line must name its columns"},
		"columns alike": {"in.csv", "text,b,b\n", "o.jsonl", nil, `two columns are called "b": rename one`},
		"strict": {"in.txt", "a\nwrong\nb\n", "o.jsonl", func(j *Job) { j.Strict = true },
			"line 2: the text is wrong"},
		"packed twice": {"in.txt", "x", "o.csv.zst.gz", nil, "its name does not tell the form of the output"},
		"output there": {"in.txt", "a\n", "o.txt", func(j *Job) { put(t, filepath.Dir(j.Output.Path), "o.txt", "b\n") },
			"is there already, of something else: choose another name, or --overwrite"},
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
			_, err := Run(t.Context(), j)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
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
	if _, err := Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	job.Shard = Shard{Index: 2, Count: 2}
	job.Observe = func(p Progress) {
		if p.Done > 20 {
			cancel()
		}
	}
	if _, err := Run(ctx, job); err != context.Canceled {
		t.Fatal(err)
	}
	job.Observe = nil
	return dir, job
}

// TestRefusesOthers: what others left or do is not taken for one's own.
func TestRefusesOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string, j *Job)
		want   string
	}{
		"no --resume": {func(t *testing.T, _ string, j *Job) { j.Resume = false },
			"is a run that was not finished: --resume goes on with it"},
		"other settings": {func(t *testing.T, _ string,
			j *Job) {
			j.Work.(*shout).set = map[string]string{"seed": "2"}
		}, "(seed: nothing there, 2 now): give the old one, or another output"},
		"other number": {func(t *testing.T, _ string, j *Job) { j.Shard = Shard{Index: 2, Count: 3} },
			"number of parts: 2 there, 3 now"},
		"other device": {func(t *testing.T, _ string,
			j *Job) {
			j.Work.(*shout).computing = map[string]string{"device": "gpu"}
		}, "(device: none there, gpu now)"},
		"longer input": {func(t *testing.T, dir string, j *Job) {
			put(t, dir, "many.jsonl", get(t, j.Input.Path)+"{}\n")
		}, "(input: "},
		"other input": {func(t *testing.T, dir string, j *Job) {
			put(t, dir, "many.jsonl", strings.Replace(get(t, j.Input.Path), `"w w w`, `"w x w`, -1))
		}, "(input: "},
		"changed journal": {func(t *testing.T, dir string, j *Job) {
			path := pathOf(j.Output.Path, j.Shard)
			put(t, "", path, strings.Replace(get(t, path), "\n", "\nx\n", 1))
		}, "is no line of a run: the file was changed by something else"},
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
			if _, err := Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	t.Run("merge", func(t *testing.T) {
		_, job := interrupted(t)
		merge := func(want string) {
			t.Helper()
			if _, err := Merge(t.Context(), job.Output, false); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		merge("1 of 2 parts are not finished: run 2/2 again with --resume")
		if _, err := Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		path := pathOf(job.Output.Path, job.Shard)
		whole := get(t, path)
		at := strings.Index(whole, "\n") + 1
		for wrong, changed := range map[string]string{
			"it has 149 records, and its end says 150": whole[:at] + whole[at+strings.Index(whole[at:], "\n")+1:],
			"line 2 is no line of a run":               strings.Replace(whole, "\n", "\n{\n", 1),
			"lines after its end":                      whole + whole[at:],
		} {
			put(t, "", path, changed)
			merge("00002-of-00002.jsonl is damaged (" + wrong + "): remove it, and run the part again")
		}
		put(t, "", path, whole[:len(whole)-9])
		merge("1 of 2 parts are not finished: run 2/2 again with --resume")
		put(t, "", path, whole)
		// Doing a finished part again is free.
		if s, err := Run(t.Context(), job); err != nil || !s.Already {
			t.Error(s, err)
		}
		if s, err := Merge(t.Context(), job.Output, false); err != nil || s.Records != 300 {
			t.Error(s, err)
		}
		for _, job.Resume = range []bool{true, false} {
			if s, err := Run(t.Context(), job); err != nil || !s.Already {
				t.Error(s, err)
			}
		}
		job.Shard = Shard{} // the whole run was not asked for before
		if _, err := Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), "--resume takes it as done") {
			t.Error(err)
		}
	})
}

// TestPlaces: an output is written where its path leads by its words, also by way of a folder that is not there.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	job := Job{Input: File{Path: put(t, dir, "in.txt", "a\n")}, Output: File{Path: dir + "/./none/../o.txt"},
		Work: &shout{}}
	for _, job.Shard = range []Shard{{Index: 1, Count: 1}, {}} {
		if _, err := Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if job.Shard.Count > 0 {
			if _, err := Merge(t.Context(), job.Output, false); err != nil {
				t.Fatal(err)
			}
		}
		if got := get(t, filepath.Join(dir, "o.txt")); got != "A\n" {
			t.Error(got)
		}
		job.Output.Path, job.Overwrite = dir+"/none/../o.txt", true
	}
}

// TestDone: what is there is taken as done only where it is what the run would make.
func TestDone(t *testing.T) {
	done := func(t *testing.T) (dir string, job Job) {
		dir = t.TempDir()
		put(t, dir, "many.jsonl", inputs(t)["many.jsonl"])
		job = killedJob(dir)
		if _, err := Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		return dir, job
	}
	refused := func(t *testing.T, job Job, want string) {
		t.Helper()
		if _, err := Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	t.Run("as it was", func(t *testing.T) {
		_, job := done(t)
		if s, err := Run(t.Context(), job); err != nil || !s.Already {
			t.Error(s, err)
		}
	})
	t.Run("other input", func(t *testing.T) {
		dir, job := done(t)
		put(t, dir, "many.jsonl", strings.Replace(inputs(t)["many.jsonl"], `"w w w`, `"w x w`, 1))
		refused(t, job, "is there already, of something else")
	})
	t.Run("killed between manifest and output", func(t *testing.T) {
		dir, job := done(t)
		want := get(t, job.Output.Path)
		// The state of --overwrite over another output: parts and manifest are there, the
		// output is the old one.
		whole := job
		whole.Output.Path = filepath.Join(dir, "other.csv")
		whole.Shard = Shard{Index: 1, Count: 1}
		if _, err := Run(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(partsOf(whole.Output.Path), partsOf(job.Output.Path)); err != nil {
			t.Fatal(err)
		}
		put(t, dir, filepath.Base(job.Output.Path), "what was there before")
		if s, err := Run(t.Context(), job); err != nil || s.Records != 300 {
			t.Error(s, err)
		}
		if get(t, job.Output.Path) != want {
			t.Error("the old output is still there")
		}
		if _, err := os.Stat(partsOf(job.Output.Path)); err == nil {
			t.Error("the parts are still there")
		}
	})
	t.Run("stopped while it replaces an output", func(t *testing.T) {
		dir, job := done(t)
		put(t, dir, filepath.Base(job.Output.Path), "what was there before")
		ctx, cancel := context.WithCancel(t.Context())
		job.Resume, job.Overwrite = false, true
		job.Observe = func(p Progress) {
			if p.Done > 20 {
				cancel()
			}
		}
		if _, err := Run(ctx, job); err != context.Canceled {
			t.Fatal(err)
		}
		// The same call with --resume does not begin again.
		job.Resume, job.Observe = true, nil
		if s, err := Run(t.Context(), job); err != nil || s.Kept == 0 || s.Records != 300 {
			t.Error(s, err)
		}
	})
	t.Run("merged twice at once", func(t *testing.T) {
		dir, job := interrupted(t)
		if _, err := Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		lock, err := journal.Lock(partsOf(filepath.Join(dir, "out.csv")), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Merge(t.Context(), job.Output, false); err == nil ||
			!strings.Contains(err.Error(), "another process puts the parts in") {
			t.Error(err)
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
		if _, err := Merge(t.Context(), job.Output, false); err != nil {
			t.Error(err)
		}
	})
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

// TestWords: what may be masked.
func TestWords(t *testing.T) {
	a := Augment{KeepStopWords: true, Protect: []string{"Holm"}, Pattern: regexp.MustCompile("^[A-Z]+$")}
	text := "'hey , it 's Mr. Holm's BOAT-house ; they don't 3rd the naïve €5"
	words, err := a.words(text)
	if err != nil {
		t.Fatal(err)
	}
	var all, eligible []string
	for _, w := range words {
		all = append(all, text[w.from:w.to])
		if w.eligible {
			eligible = append(eligible, text[w.from:w.to])
		}
	}
	if diff := cmp.Diff([]string{"hey", "it", "Mr", "Holm's", "BOAT", "house", "they", "don't", "the", "naïve"},
		all); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"hey", "Mr", "Holm's", "house", "don't", "naïve"}, eligible); diff != "" {
		t.Error(diff)
	}
	// Spans stay within what may be masked, and never take more than is asked for.
	rapid.Check(t, func(t *rapid.T) {
		words := make([]word, rapid.IntRange(1, 12).Draw(t, "words"))
		eligible := 0
		for i := range words {
			if words[i].eligible = rapid.Bool().Draw(t, "eligible"); words[i].eligible {
				eligible++
			}
		}
		a := Augment{MinSpan: rapid.IntRange(1, 3).Draw(t, "low"), MaxSpan: 3}
		count := rapid.IntRange(0, eligible).Draw(t, "count")
		taken := 0
		for i, chosen := range a.choose(variantRandom(1, 2, 3), words, count) {
			if chosen {
				taken++
			}
			if chosen && !words[i].eligible {
				t.Fatalf("word %d is not eligible", i)
			}
		}
		if taken != count {
			t.Fatalf("%d words, not %d", taken, count)
		}
	})
}

// TestFinishedParts: parts that are missing, not finished, or of two runs.
func TestFinishedParts(t *testing.T) {
	output := filepath.Join(t.TempDir(), "out.txt")
	check := func(want string) {
		t.Helper()
		if _, _, err := finishedParts(output); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	job := Job{Input: File{Path: put(t, t.TempDir(), "in.txt", "a\nb\nc\n")}, Output: File{Path: output},
		Work: &shout{}}
	make := func(index, count int) {
		t.Helper()
		job.Shard = Shard{index, count}
		if _, err := Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	check("holds no parts: run them first, with this output and --shard 1/N to N/N")
	make(2, 3)
	check("2 of 3 parts are not finished: run 1/3, 3/3 again with --resume")
	make(3, 3)
	make(1, 3)
	if parts, _, err := finishedParts(output); err != nil || len(parts) != 3 || parts[1].head.Part.Index != 2 {
		t.Error(parts, err)
	}
	put(t, "", pathOf(output, Shard{1, 20}), "")
	check("holds parts of 3 and of 20: remove those that are of another run")
}

// TestShard: a record is of one part.
func TestShard(t *testing.T) {
	for _, text := range []string{"0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3", "1/10001"} {
		if err := new(Shard).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for count := 1; count < 9; count++ {
		seen := map[int64]int{}
		for index := 1; index <= count; index++ {
			var s Shard
			if err := s.UnmarshalText(fmt.Appendf(nil, "%d/%d", index, count)); err != nil ||
				s.String() != fmt.Sprintf("%d/%d", index, count) {
				t.Fatal(s, err)
			}
			for record := range int64(20) {
				seen[s.number(record)]++
			}
		}
		for number := range int64(20 * count) {
			if seen[number+1] != 1 {
				t.Errorf("record %d is in %d of %d parts", number+1, seen[number+1], count)
			}
		}
	}
	if whole := (Shard{}); whole.String() != "" {
		t.Error(whole)
	}
}

// TestLines: lines do not depend on how they arrive, and those that are too long are left out alone.
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
		"carriage returns":  {"a\r\nb\rc\r\n", []string{"a", "b\rc"}},
		"longest":           {long + "\nb\n", []string{long, "b"}},
		"longest, CR LF":    {long + "\r\nb", []string{long, "b"}},
		"too long":          {long + "x\nb\n", []string{"long", "b"}},
		"too long and last": {"b\n" + long + long, []string{"b", "long"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.text), iotest.HalfReader(strings.NewReader(c.text))} {
				var got []string
				r := NewReader(in, "", "")
				for line, err := r.Next(); err != io.EOF; line, err = r.Next() {
					if err != nil {
						t.Fatal(err)
					}
					if line.Err != nil {
						line.Raw = []byte("long")
					}
					got = append(got, string(line.Raw))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
