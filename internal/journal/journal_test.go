package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const linesFile = "lines.jsonl"

// open opens a journal and reads the numbers in it.
func open(t *testing.T, dir string) (j *Journal, numbers []int, cut int64, err error) {
	t.Helper()
	if j, err = Open(dir, linesFile, "somebody"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	cut, err = j.Resume(func(line []byte) error {
		var n int
		if err := json.Unmarshal(line, &n); err != nil {
			return errors.New("no number")
		}
		numbers = append(numbers, n)
		return nil
	})
	return j, numbers, cut, err
}

// TestResume: whatever a process leaves behind the last whole line is cut off; what stands before is refused where it
// is wrong.
func TestResume(t *testing.T) {
	for _, c := range []struct {
		content string
		numbers string
		cut     int64
		wrong   string
	}{
		{"", "[]", 0, ""},
		{"1\n2\n", "[1 2]", 0, ""},
		{"1\n2", "[1]", 1, ""},
		{"1\n{\"a", "[1]", 3, ""},
		{"1\n\x00\x00\n", "[1]", 3, ""}, // as after a power cut
		{"1\nx\n2\n", "[1]", 0,
			"no number: the file was changed by something else; start again, or choose another output"},
		{"1\n\"a\"\n", "[1]", 0, "no number"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, linesFile)
		if err := os.WriteFile(path, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		j, numbers, cut, err := open(t, dir)
		if fmt.Sprint(numbers) != c.numbers || cut != c.cut || (err != nil) != (c.wrong != "") ||
			err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q: %v, %d bytes cut, %v", c.content, numbers, cut, err)
		}
		if err != nil {
			if content, _ := os.ReadFile(path); string(content) != c.content {
				t.Errorf("%q was changed", c.content)
			}
			continue
		}
		if err := errors.Join(j.Append(7), j.Finish(j.End()), j.Close()); err != nil {
			t.Fatal(err)
		}
		// The sum is that of a reader, and the next process sees all.
		var end End
		if ok, err := ReadJSON(filepath.Join(dir, Tail), &end); !ok || err != nil || !Ended(dir) {
			t.Error(ok, err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(file)
		for range r.Lines {
		}
		file.Close()
		if err := Check(dir, linesFile); err != nil {
			t.Error(err)
		}
		if r.End() != end || end.Lines != int64(len(numbers)+1) {
			t.Errorf("%q: %v, %v", c.content, r.End(), end)
		}
		if err := WriteJSON(filepath.Join(dir, Tail), End{Lines: end.Lines, SHA256: "0"}); err != nil {
			t.Fatal(err)
		}
		if err := Check(dir, linesFile); err == nil ||
			!strings.Contains(err.Error(), "is damaged (its SHA-256 is not what end.json says)") {
			t.Error(err)
		}
		if _, again, _, err := open(t, dir); err != nil || fmt.Sprint(again) != fmt.Sprint(append(numbers, 7)) {
			t.Errorf("%q: %v, %v", c.content, again, err)
		}
	}
}

// TestLock: one process at a time; what is not the journal's stays when it is removed.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	j, _, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, linesFile, "another process is at work"); err == nil ||
		err.Error() != "another process is at work: wait for it, or choose another output" {
		t.Error(err)
	}
	if err := errors.Join(WriteJSON(filepath.Join(dir, Head), "<x>"),
		os.WriteFile(filepath.Join(dir, ".run.json17"), nil, 0o666), j.Close()); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, Head)); string(text) != "\"<x>\"\n" {
		t.Errorf("%q", text)
	}
	other := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(other, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir, linesFile); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
	if err := errors.Join(os.Remove(other), Remove(dir, linesFile), Remove(dir, linesFile)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is left")
	}
}

// TestFollow: a line is given once, when it has its end.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), linesFile)
	end, got := int64(0), ""
	for _, step := range []struct{ content, want string }{{"1\n2", "1\n"}, {"1\n23\n", "1\n23\n"},
		{"1\n23\n4\n", "1\n23\n4\n"}} {
		if err := os.WriteFile(path, []byte(step.content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Follow(path, end,
			func(line []byte) { got, end = got+string(line), end+int64(len(line)) }); err != nil || got != step.want {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := Follow(filepath.Dir(path), 0, nil); err == nil || !strings.Contains(err.Error(), "it is no file") {
		t.Error(err)
	}
}

// TestDifferences: what two runs disagree in is named, short.
func TestDifferences(t *testing.T) {
	flat, err := Flat(
		map[string]any{"a": []int{1, 2}, "b": map[string]any{"c": "x"}, "seed": uint64(1<<60 + 1), "none": nil})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(flat); got != `map[a[0]:1 a[1]:2 b.c:"x" none:<nil> seed:1152921504606846977]` {
		t.Error(got)
	}
	list := Differences(map[string]string{"a": "1", "b": "2", "c": "3", "d": strings.Repeat("x", 99)},
		map[string]string{"b": "3", "c": "3", "e": "5"})
	err = Changed("run", list)
	want := "run holds a run of another configuration (a: 1 there, nothing now; b: 2 there, 3 now; d: " +
		strings.Repeat("x", 60) + " there, nothing now; and 1 more): give the old one, or another output"
	var changed *ChangedError
	if !errors.As(err, &changed) || err.Error() != want {
		t.Error(err)
	}
	if err := Changed("run", Differences(nil, nil)); err != nil {
		t.Error(err)
	}
}

// TestFinished: parts that are missing, not finished, or of two runs.
func TestFinished(t *testing.T) {
	output := filepath.Join(t.TempDir(), "out")
	check := func(want string) {
		t.Helper()
		if _, err := Finished(output, " again"); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	make := func(index, count int, ended bool) {
		t.Helper()
		dir := PartOf(output, Shard{index, count})
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if ended {
			if err := WriteJSON(filepath.Join(dir, Tail), End{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("holds no parts: run them first, with this output and --shard 1/N to N/N")
	make(2, 3, true)
	make(3, 3, false)
	check("2 of 3 parts are not finished: run 1/3, 3/3 again")
	make(3, 3, true)
	make(1, 3, true)
	if dirs, err := Finished(output, ""); err != nil || len(dirs) != 3 || filepath.Base(dirs[1]) != "00002-of-00003" {
		t.Error(dirs, err)
	}
	make(1, 20, true)
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
		for record := range int64(20) {
			in := 0
			for index := 1; index <= count; index++ {
				var s Shard
				if err := s.UnmarshalText(fmt.Appendf(nil, "%d/%d", index, count)); err != nil ||
					s.String() != fmt.Sprintf("%d/%d", index, count) {
					t.Fatal(s, err)
				}
				if s.Has(record) {
					in++
				}
			}
			if in != 1 {
				t.Errorf("record %d is in %d of %d parts", record, in, count)
			}
		}
	}
	if whole := (Shard{}); !whole.Has(3) || whole.String() != "" {
		t.Error(whole)
	}
}
