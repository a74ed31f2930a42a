package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A file is read as the end of its name says, or refused: nothing else is
// taken for sentences.
func TestMetricsFiles(t *testing.T) {
	const lines = "the kettle sang\nrain fell on the roof\n"
	const results = `{"fills": [{"text": "the kettle sang", "log_likelihood": -2}, ` +
		`{"text": "rain fell on the roof", "log_likelihood": -2}]}`
	var gz, zst bytes.Buffer
	z := gzip.NewWriter(&gz)
	z.Write([]byte(lines))
	z.Close()
	s, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte(results))
	s.Close()
	dir := t.TempDir()
	for _, c := range []struct{ name, content, says string }{
		{"a.txt", lines, ""},
		{"a.csv", "id,text\n1,the kettle sang\n2,\"rain fell on\nthe roof\"\n3,\n", ""},
		{"a.tsv", "id\ttext\n1\tthe kettle sang\n2\train fell on the roof\n", ""},
		{"a.txt.gz", gz.String(), ""},
		{"a.jsonl.zst", zst.String(), ""},
		{"a.json", "[\n" + results + "\n]\n", ""},
		{"b.json", results, ""},
		{"e.json", "\ufeff[\n" + results + "\n]\n", ""},
		{"f.json", `{"fills": [{"text": "a", "Text": "b c", "log_likelihood": -1, "LOG_LIKELIHOOD": 0}]}`,
			"1 sentence, 1 token"},
		{"g.json", `{"fills": [{"text": "a", "text": "b c", "log_likelihood": -1}]}`,
			`text (g.json): object 1 has two keys "fills.text"`},
		{"h.json", `{"fills": [{"text": 5, "log_likelihood": -1}]}`,
			"text (h.json): object 1, fill 1: text or log_likelihood is missing"},
		{"c.json", `{"metrics": []}`, "text (c.json): object 1 holds no fills"},
		{"d.json", "[" + results, "text (d.json): unexpected EOF"},
		{"b.csv", "id,words\n1,the kettle sang\n", `has no column "text": its columns are "id", "words"`},
		{"b.txt.gz", lines, "b.txt.gz: the file is no gzip, as its name says, or is cut off or damaged"},
		{"c.txt.gz", gz.String()[:gz.Len()-4], "text (c.txt.gz): " +
			"the file is no gzip, as its name says, or is cut off or damaged"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{path, path + " -r it=" + path} {
			_, stdout, stderr := call(t, nil, splitLine("metrics "+line+" -q --no-intervals")...)
			if got := stdout + stderr; c.says == "" && !strings.Contains(got, "2 sentences, 8 tokens") ||
				!strings.Contains(got, c.says) {
				t.Errorf("%s: %s, not %q", line, got, c.says)
			}
			if strings.Contains(c.name, ".json") {
				break // no corpus
			}
		}
	}
}
