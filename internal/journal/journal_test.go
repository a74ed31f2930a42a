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
func open(t *testing.T, path string) (j *Journal, numbers []int, cut int64, err error) {
	t.Helper()
	if j, err = Open(path, "somebody"); err != nil {
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
		path := filepath.Join(t.TempDir(), linesFile)
		if err := os.WriteFile(path, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		j, numbers, cut, err := open(t, path)
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
		line, err := j.Append(7)
		if err := errors.Join(err, j.Close()); err != nil || string(line) != "7\n" {
			t.Fatal(err)
		}
		if _, again, _, err := open(t, path); err != nil || fmt.Sprint(again) != fmt.Sprint(append(numbers, 7)) {
			t.Errorf("%q: %v, %v", c.content, again, err)
		}
	}
}

// TestLock: one process at a time.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", linesFile)
	j, _, _, err := open(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, "another process is at work"); err == nil ||
		err.Error() != "another process is at work: wait for it, or choose another output" {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, ""); err != nil {
		t.Error(err)
	}
	head := filepath.Join(filepath.Dir(path), "run.json")
	if err := WriteJSON(head, "<x>"); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(head); string(text) != "\"<x>\"\n" {
		t.Errorf("%q", text)
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
			func(line []byte) error {
				got, end = got+string(line), end+int64(len(line))
				return nil
			}); err != nil || got != step.want {
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
