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
func open(path string) (j *Journal, numbers []int, err error) {
	j, err = Open(path, "another process is at work", func(line []byte) error {
		var n int
		if err := json.Unmarshal(line, &n); err != nil {
			return errors.New("no number")
		}
		numbers = append(numbers, n)
		return nil
	})
	return j, numbers, err
}

// TestOpen: whatever a process leaves behind the last whole line is cut off;
// what stands before is refused where it is wrong.
func TestOpen(t *testing.T) {
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
		{"1\n\x00\x00", "[1]", 2, ""}, // as after a power cut
		{"1\nx\n2\n", "[1]", 0,
			"no number: the file was changed by something else; start again, or choose another output"},
		{"1\n\"a\"\n", "[1]", 0, "no number"},
	} {
		path := filepath.Join(t.TempDir(), linesFile)
		if err := os.WriteFile(path, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		j, numbers, err := open(path)
		if fmt.Sprint(numbers) != c.numbers || (err != nil) != (c.wrong != "") || err == nil && j.Cut != c.cut ||
			err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q: %v, %+v, %v", c.content, numbers, j, err)
		}
		if err != nil {
			if content, _ := os.ReadFile(path); string(content) != c.content {
				t.Errorf("%q was changed", c.content)
			}
			continue
		}
		if err := errors.Join(j.Append(7), j.Close()); err != nil {
			t.Fatal(err)
		}
		j, again, err := open(path)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(append(numbers, 7)) {
			t.Fatalf("%q: %v, %v", c.content, again, err)
		}
		j.Close()
	}
}

// TestLock: one process at a time.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", linesFile)
	j, _, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(path); err == nil ||
		err.Error() != "another process is at work: wait for it, or choose another output" {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, _, err = open(path); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
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
	err := Follow(filepath.Dir(path), 0, nil)
	if err == nil || !strings.Contains(err.Error(), "not a regular file: a folder") {
		t.Error(err)
	}
}

// TestCheckUnchanged: what two runs disagree in is named by its path, short,
// and to the last digit.
func TestCheckUnchanged(t *testing.T) {
	there := map[string]any{"a": []int{1, 2}, "b": map[string]any{"c": "x"}, "seed": uint64(1<<60 + 1), "none": nil,
		"d": strings.Repeat("x", 99)}
	now := map[string]any{"a": []int{1}, "b": map[string]any{"c": "y"}, "seed": uint64(1 << 60), "none": nil, "e": 5}
	err := CheckUnchanged("run", there, now)
	var changed *ChangedError
	if !errors.As(err, &changed) || len(changed.Differences) != 5 ||
		changed.Differences[4] != "seed: 1152921504606846977 there, 1152921504606846976 now" {
		t.Fatal(err)
	}
	want := "run holds a run of another configuration (a[1]: 2 there, not given now; b.c: x there, y now; d: " +
		strings.Repeat("x", 60) + " there, not given now; and 2 more): give the old one, or another output"
	if err.Error() != want {
		t.Error(err)
	}
	if err := CheckUnchanged("run", there, there); err != nil {
		t.Error(err)
	}
}
