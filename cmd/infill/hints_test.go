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
		{[]string{"scroe"}, "", "did you mean infill score?"},
		{[]string{file}, "", "infill < " + file},
		{[]string{`{"template": "a [MASK]"}`}, "", "--input jsonl"},
		{nil, `{"template": "a [MASK]"}` + "\n", "line 1: the text is a JSON object: take --input jsonl"},
		{[]string{"--slot", "1=@" + file + ".none", "a [MASK]"}, "", "no such file"},
		{[]string{"run", file, "-o", "out.txt", "--shard", ""}, "", `--shard: "" is not I/N`},
	} {
		code, stdout, stderr := call(t, strings.NewReader(test.stdin), test.args...)
		if code == 0 || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: code %d, %q, %q; want %q", test.args, code, stdout, stderr, test.want)
		}
	}
}
