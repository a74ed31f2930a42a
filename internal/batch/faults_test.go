package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/lmtest"
	"infill/internal/modelstest"
)

var errFault = errors.New("the model is out of memory")

// newFake makes a filler of the fake model. Call failAt of the model fails,
// and only that one, so that an error that is dropped leaves a result. calls
// counts them.
func newFake(t testing.TB, failAt int) (f *infill.Filler, calls *atomic.Int64) {
	t.Helper()
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on under mat rug old")
	tokenizer, err := lmtest.Tokenizer(words)
	if err != nil {
		t.Fatal(err)
	}
	model := lmtest.New(len(words), 32)
	calls = new(atomic.Int64)
	model.Before = func(ctx context.Context) error {
		if calls.Add(1) == int64(failAt) {
			return errFault
		}
		return ctx.Err()
	}
	return infill.New(model, tokenizer), calls
}

func give(assignments ...string) (given []ask.Given) {
	for _, a := range assignments {
		name, text, _ := strings.Cut(a, "=")
		given = append(given, ask.MustGive(name, text))
	}
	return given
}

// TestModelFaults: whichever call of a model fails, the run ends with its error
// and the line, and without an output. The run goes on to the same bytes.
func TestModelFaults(t *testing.T) {
	const templates = `{"template":"the [MASK] sat","id":1}` + "\n" + `{"template":"no blank"}` + "\n" +
		`{"template":"the [MASK] [MASK] on the mat","top":2}` + "\n" +
		`{"template":"the old [MASK]","sampler":"gibbs","steps":4,"samples":2}` + "\n"
	const texts = `{"text":"the old cat sat on the mat","label":"x"}` + "\n" + `{"text":"1 2"}` + "\n" +
		`{"text":"the dog ran"}` + "\n"
	for name, c := range map[string]struct {
		input string
		work  func(f *infill.Filler) work
	}{
		"fill": {templates, func(f *infill.Filler) work { return &Fill{Filler: f, Key: "template"} }},
		"augment": {texts, func(f *infill.Filler) work {
			return &Augment{Filler: f, Key: "text", Variants: 3, Rate: 0.4, Distinct: true, NotOriginal: true,
				Context: "none", Given: give("seed=1")}
		}},
	} {
		dir := t.TempDir()
		in := File{Path: put(t, dir, name+".jsonl", c.input)}
		job := func(out string, failAt int) (Job, *atomic.Int64) {
			f, calls := newFake(t, failAt)
			return Job{Input: in, Output: File{Path: filepath.Join(dir, out)}, Work: c.work(f), Resume: true}, calls
		}
		whole, calls := job("whole.jsonl", 0)
		must(t, whole)
		want := get(t, whole.Output.Path)
		all := int(calls.Load())
		for n := 1; n <= all; n++ {
			broken, _ := job("out.jsonl", n)
			_, err := Run(t.Context(), broken)
			if !errors.Is(err, errFault) || !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("%s, call %d of %d fails: %v", name, n, all, err)
			}
			_, err = os.Stat(broken.Output.Path)
			if err == nil {
				t.Fatalf("%s, call %d of %d fails: there is an output", name, n, all)
			}
			again, _ := job("out.jsonl", 0)
			must(t, again)
			if get(t, again.Output.Path) != want {
				t.Errorf("%s, call %d of %d fails: the run goes on to another output", name, n, all)
			}
			os.Remove(again.Output.Path)
		}
		if all < 5 {
			t.Errorf("%s: %d calls", name, all)
		}
	}
}

// TestLoadFails: a run whose model does not load has no output, and no part.
func TestLoadFails(t *testing.T) {
	f, err := infill.Open(infill.OpenOptions{
		FindLibrary: func(context.Context) (string, error) { return "", errFault }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	in := File{Path: put(t, dir, "in.txt", "the [MASK] sat\n")}
	for _, w := range []work{&Fill{Filler: f, Key: "template"},
		&Augment{Filler: f, Key: "text", Variants: 1, Rate: 1, Context: "none"}} {
		_, err := Run(t.Context(), Job{Input: in, Output: File{Path: filepath.Join(dir, "out.txt")}, Work: w})
		if !errors.Is(err, errFault) {
			t.Errorf("%T: %v", w, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "out*"))
	if left != nil {
		t.Errorf("%v is left", left)
	}
}

// TestNotOriginal: no blank takes a masked word, in any capitals, and what the
// user bans stays banned. Without the flag, blanks take masked words, too.
func TestNotOriginal(t *testing.T) {
	for _, not := range []bool{true, false} {
		f, _ := newFake(t, 0)
		dir := t.TempDir()
		in := File{Path: put(t, dir, "in.txt", "The old Cat sat on the mat\n")}
		out := File{Path: filepath.Join(dir, "out.jsonl")}
		must(t, Job{Input: in, Output: out, Work: &Augment{Filler: f, Key: "text", Variants: 60, Blanks: 3,
			NotOriginal: not, Context: "none", Given: give("seed=1", "ban=dog")}})
		again := 0
		for line := range strings.Lines(get(t, out.Path)) {
			var v variant
			err := json.Unmarshal([]byte(line), &v)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Fills) != 3 || len(v.Masked) != 3 {
				t.Fatalf("not three words: %s", line)
			}
			for _, fill := range v.Fills {
				own := func(masked string) bool { return strings.EqualFold(fill, masked) }
				if slices.ContainsFunc(v.Masked, own) {
					again++
				}
				if fill == "dog" {
					t.Errorf("a banned word: %s", line)
				}
			}
		}
		if (again == 0) != not {
			t.Errorf("not original: %v, and %d masked words come again", not, again)
		}
	}
}

// meddling is shout with something that happens between the first reading of
// the input and the work.
type meddling struct {
	shout
	before func() error
}

func (w *meddling) settings(ctx context.Context) (map[string]string, error) {
	err := w.before()
	if err != nil {
		return nil, err
	}
	return w.shout.settings(ctx)
}

// TestDiskFaults: what cannot be read, made, renamed or removed is an error of
// the run, whenever it happens. Without the obstacle, the run goes on to the
// same bytes, and leaves nothing behind.
func TestDiskFaults(t *testing.T) {
	content := inputs(t)["in.jsonl"]
	gz := packed(t, "x.gz", strings.Repeat(content, 2000))
	// A folder with a file in it: nobody can remove, replace or open it as a file.
	obstacle := func(path string) error {
		return errors.Join(os.MkdirAll(path, 0o777), os.WriteFile(filepath.Join(path, "x"), nil, 0o666))
	}
	inParts := func(name string) func(in, out string) string {
		return func(_, out string) string { return filepath.Join(folderOf(out), name) }
	}
	output := func(_, out string) string { return out }
	type when int
	const (
		first  when = iota // before the run
		middle             // after the input was read for the first time
		last               // after all records
	)
	for name, c := range map[string]struct {
		name, content string // of the input
		at            when
		obstacle      func(in, out string) string // path of one; nil: spoil is called
		spoil         func(in string) error
		want          string
		done          bool // whether the output is there all the same
	}{
		"a part": {at: first, obstacle: inParts("00001-of-00001.jsonl"),
			want: "00001-of-00001.jsonl: not a regular file: a folder"},
		"the lock of a part": {at: first, obstacle: inParts(".00001-of-00001.jsonl.lock"),
			want: ".00001-of-00001.jsonl.lock: not a regular file: a folder"},
		"the lock of the output": {at: first, obstacle: inParts(".output.part.lock"),
			want: ".output.part.lock: not a regular file: a folder"},
		"the output to be":  {at: last, obstacle: inParts("output.part"), want: "output.part: directory not empty"},
		"the rejects to be": {at: last, obstacle: inParts("rejects.part"), want: "rejects.part: directory not empty"},
		"the output":        {at: last, obstacle: output, want: "file exists"},
		"the rejects": {at: last, obstacle: func(_, out string) string { return rejectsOf(out) },
			want: "out.csv.rejects.jsonl: directory not empty"},
		"the receipt": {at: last, obstacle: func(_, out string) string { return receiptOf(out) },
			want: "out.csv.run.json"},
		"a part that stays": {at: last, obstacle: inParts(".rejects.part.lock"),
			want: ".rejects.part.lock: directory not empty", done: true},
		"no folder": {at: first, spoil: func(in string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(in), "out.csv.parts"), nil, 0o666)
		}, want: "out.csv.parts: not a directory"},
		"a removed input": {at: middle, spoil: os.Remove, want: "no such file"},
		"a shorter input": {at: middle, spoil: func(in string) error { return os.Truncate(in, 20) },
			want: "in.jsonl has changed since the run began: what is done of it is dropped, run it again"},
		"other bytes, as many": {at: middle, spoil: func(in string) error {
			return os.WriteFile(in, []byte(strings.ToUpper(content)), 0o666)
		}, want: "in.jsonl has changed since the run began: what is done of it is dropped, run it again"},
		"an input cut off": {name: "in.jsonl.gz", content: gz, at: middle,
			spoil: func(in string) error { return os.Truncate(in, int64(len(gz)-20)) },
			want:  "the file is no gzip, as its name says, or is cut off or damaged"},
		"settings": {at: middle, spoil: func(string) error { return errFault }, want: errFault.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.name == "" {
				c.name, c.content = "in.jsonl", content
			}
			dir := t.TempDir()
			in := put(t, dir, c.name, c.content)
			plain := Job{Input: File{Path: in}, Output: File{Path: filepath.Join(dir, "plain.csv")}, Work: &shout{},
				InFlight: 4}
			must(t, plain)
			want := get(t, plain.Output.Path) + get(t, rejectsOf(plain.Output.Path))
			out := filepath.Join(dir, "out.csv")
			spoil := func(at when) error {
				switch {
				case c.at != at:
					return nil
				case c.obstacle != nil:
					return obstacle(c.obstacle(in, out))
				}
				return c.spoil(in)
			}
			job := Job{Input: File{Path: in}, Output: File{Path: out}, InFlight: 4, Resume: true}
			job.Work = &meddling{before: func() error { return spoil(middle) }}
			job.Observe = func(p Progress) {
				if p.Done == p.Total && spoil(last) != nil {
					t.Error("no obstacle")
				}
			}
			if spoil(first) != nil {
				t.Fatal("no obstacle")
			}
			_, err := Run(t.Context(), job)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
			info, err := os.Stat(out)
			if there := err == nil && info.Mode().IsRegular(); there != c.done {
				t.Errorf("there is an output: %v", there)
			}
			if c.done { // the run is done, and still cannot remove its parts
				refused(t, job, c.want)
			}
			if c.obstacle != nil {
				os.RemoveAll(c.obstacle(in, out))
			}
			if name == "no folder" {
				os.Remove(folderOf(out))
			}
			put(t, dir, c.name, c.content)
			job.Work, job.Observe = &shout{}, nil
			if strings.Contains(c.want, "has changed") {
				job.Resume = false
				job.Overwrite = true
			}
			s := must(t, job)
			if s.Done != c.done || get(t, out)+get(t, rejectsOf(out)) != want {
				t.Errorf("the run goes on to another output: %+v", s)
			}
			left, _ := filepath.Glob(out + ".parts*")
			if left != nil {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// TestLittleRoom: wherever the disk is full, in a part or in the output, the run
// ends with advice, and goes on to the same bytes when there is room.
func TestLittleRoom(t *testing.T) {
	// Each record has a column of its own, so that the output is longer than
	// the part.
	var content strings.Builder
	for i := range 150 {
		fmt.Fprintf(&content, `{"text":"a","column of its own %d":1}`+"\n", i)
	}
	job := func(dir, out string) Job {
		return Job{Input: File{Path: filepath.Join(dir, "in.jsonl")}, Output: File{Path: filepath.Join(dir, out)},
			Work: &shout{}, InFlight: 4, Resume: true}
	}
	for _, limit := range []uint64{0, 300, 20000, 30000, 48000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "in.jsonl", content.String())
			err := modelstest.InLittleRoom(t, limit, dir, func(dir string) error {
				_, err := Run(context.Background(), job(dir, "out.csv"))
				return err
			})
			if !strings.Contains(err.Error(), "make room, and go on with --resume") {
				t.Errorf("error %v", err)
			}
			_, err = os.Stat(job(dir, "out.csv").Output.Path)
			if err == nil {
				t.Error("there is an output")
			}
			s := must(t, job(dir, "out.csv"))
			must(t, job(dir, "whole.csv"))
			if get(t, filepath.Join(dir, "out.csv")) != get(t, filepath.Join(dir, "whole.csv")) {
				t.Errorf("the run goes on to another output: %+v", s)
			}
			t.Logf("%d of %d records were kept, the output has %d bytes", s.Kept, s.Records,
				len(get(t, filepath.Join(dir, "out.csv"))))
		})
	}
}

// TestReaderFaults: wherever a text breaks off with an error, the error comes
// after the records that are whole, and what is left of another one is dropped.
func TestReaderFaults(t *testing.T) {
	for form, text := range map[Form]string{
		formJSONL: `{"text":"a"}` + "\n\n" + `{"text":"b"}` + "\n" + `{"text":"c"}`,
		formText:  "a\n\nb\nc and so on",
		formCSV:   "text,n\na,1\n\"b\nc\",2\nd,3",
		formTSV:   "text\tn\na\t1\n\"b\nc\"\t2\nd\t3",
	} {
		read := func(from io.Reader) (records []string, err error) {
			s := NewReader(from, form, "text")
			if form.table() {
				err = s.readHeader()
			}
			for err == nil {
				var r Record
				r, err = s.Next()
				if err == nil {
					records = append(records, fmt.Sprint(r.Line, string(r.Object.Append(nil)), r.Err))
				}
			}
			return records, err
		}
		whole, err := read(strings.NewReader(text))
		if err != io.EOF || len(whole) < 3 {
			t.Errorf("%s: %q, error %v", form, whole, err)
		}
		for n := range len(text) {
			records, err := read(io.MultiReader(strings.NewReader(text[:n]), iotest.ErrReader(errFault)))
			if !errors.Is(err, errFault) || len(records) >= len(whole) || !slices.Equal(records, whole[:len(records)]) {
				t.Errorf("%s, %q: %q, error %v", form, text[:n], records, err)
			}
		}
	}
}

// TestWarnings: a run says which of its texts no record holds, unless an earlier
// process has seen some of the records.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	in := File{Path: put(t, dir, "in.txt", "the cat sat on the mat\nthe old dog ran\n")}
	job := func(out string, failAt int) Job {
		f, _ := newFake(t, failAt)
		return Job{Input: in, Output: File{Path: filepath.Join(dir, out)}, Resume: true,
			Work: &Augment{Filler: f, Key: "text", Variants: 1, Blanks: 1, Context: "none", Given: give("seed=1"),
				Protect: []string{"dog", "rug"}}}
	}
	want := []string{`no text holds "rug", which is protected`}
	s := must(t, job("whole.txt", 0))
	if !slices.Equal(s.Warnings, want) {
		t.Errorf("warnings %q, want %q", s.Warnings, want)
	}
	_, err := Run(t.Context(), job("out.txt", 2))
	if !errors.Is(err, errFault) {
		t.Fatal(err)
	}
	s = must(t, job("out.txt", 0))
	if s.Kept != 1 || s.Warnings != nil {
		t.Errorf("%d records were kept, warnings %q", s.Kept, s.Warnings)
	}
}

// TestLinks: an output goes where its links lead, one behind the other, and the
// links stay.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	in := File{Path: put(t, dir, "in.txt", "a\n")}
	folder := filepath.Join(dir, "data")
	err := errors.Join(os.Mkdir(folder, 0o777), os.Symlink("data/second.txt", filepath.Join(dir, "first.txt")),
		os.Symlink("third.txt", filepath.Join(folder, "second.txt")),
		os.Symlink(filepath.Join(dir, "real.txt"), filepath.Join(folder, "third.txt")))
	if err != nil {
		t.Fatal(err)
	}
	must(t, Job{Input: in, Output: File{Path: filepath.Join(dir, "first.txt")}, Work: &shout{}})
	for name, link := range map[string]bool{"first.txt": true, "data/second.txt": true, "data/third.txt": true,
		"real.txt": false} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || (info.Mode().Type() == os.ModeSymlink) != link {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
	}
	if got := get(t, filepath.Join(dir, "real.txt")); got != "A\n" {
		t.Errorf("the output is %q", got)
	}
}
