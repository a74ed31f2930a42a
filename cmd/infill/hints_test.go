package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHints: what was probably meant is said, and nothing is filled.
func TestHints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "texts.txt")
	if err := os.WriteFile(file, []byte("red\n\ndark blue\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args        []string
		stdin, want string
	}{
		{[]string{"--top-k", "3", "a [MASK]"}, "", "did you mean -k, --top?"},
		{[]string{"--sead", "3", "a [MASK]"}, "", "did you mean --seed?"},
		{[]string{"score", "--metod", "l2r", "a"}, "", "did you mean --method?"},
		{[]string{"--whole-words", "a [MASK]"}, "", "did you mean --fill?"},
		{[]string{"helpp"}, "", "did you mean infill help?"},
		{[]string{file}, "", "infill < " + file},
		{[]string{`{"template": "a [MASK]"}`}, "", "--input jsonl"},
		{nil, `{"template": "a [MASK]"}` + "\n", "line 1: the line is a JSON object: take --input jsonl"},
		{[]string{"--slot", "1=@" + file + ".none", "a [MASK]"}, "", "no such file"},
		{[]string{"run", file, "-o", "out.txt", "--shard", ""}, "", `--shard: "" is not I/N`},
	} {
		code, stdout, stderr := call(t, strings.NewReader(test.stdin), test.args...)
		if code == 0 || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: code %d, %q, %q; want %q", test.args, code, stdout, stderr, test.want)
		}
	}
}
