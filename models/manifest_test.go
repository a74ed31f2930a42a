package models_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"infill/models"
)

func TestManifest(t *testing.T) {
	files := fstest.MapFS{
		"vocab.txt":     {Data: []byte("a\nb\n")},
		"config.json":   {Data: []byte("{}")},
		"README.md":     {Data: []byte("text")},
		"manifest.json": {Data: []byte("an older one")},
		"sub/more.txt":  {Data: nil},
	}
	m, err := models.NewManifest(files,
		models.Manifest{Name: "some", Family: "bert", Licence: "MIT & <more>"})
	if err != nil {
		t.Fatal(err)
	}
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	want := &models.Manifest{Schema: 1, Name: "some", Family: "bert", Licence: "MIT & <more>",
		Files: []models.ManifestFile{
			{Path: "README.md", Size: 4, SHA256: sum("text")},
			{Path: "config.json", Size: 2, SHA256: sum("{}")},
			{Path: "sub/more.txt", Size: 0, SHA256: sum("")},
			{Path: "vocab.txt", Size: 4, SHA256: sum("a\nb\n")},
		}}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m.Size() != 10 {
		t.Errorf("Size() = %d, want 10", m.Size())
	}
	back, err := models.ParseManifest(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back); diff != "" {
		t.Errorf("encoded and parsed (-want +got):\n%s", diff)
	}
	if !bytes.Contains(m.Encode(), []byte("MIT & <more>")) {
		t.Error("the licence is not readable in the file")
	}
}

// The identity of a bundle follows what it computes, and nothing else.
func TestManifestSHA256(t *testing.T) {
	of := func(files fstest.MapFS, name string) string {
		m, err := models.NewManifest(files, models.Manifest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return m.SHA256()
	}
	base := func() fstest.MapFS {
		return fstest.MapFS{"config.json": {Data: []byte("{}")}, "vocab.txt": {Data: []byte("a\n")},
			"model.safetensors": {Data: []byte("w")}, "README.md": {Data: []byte("r")}}
	}
	want := sha256.New()
	for _, f := range [][2]string{{"config.json", "{}"}, {"model.safetensors", "w"}, {"vocab.txt", "a\n"}} {
		fmt.Fprintf(want, "%s\n%d\n%x\n", f[0], len(f[1]), sha256.Sum256([]byte(f[1])))
	}
	first := of(base(), "some")
	if first != hex.EncodeToString(want.Sum(nil)) {
		t.Errorf("SHA256() = %s, want %x", first, want.Sum(nil))
	}
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		same   bool
	}{
		{"other model card", func(f fstest.MapFS) { f["README.md"].Data = []byte("s") }, true},
		{"licence added", func(f fstest.MapFS) { f["LICENSE"] = &fstest.MapFile{} }, true},
		{"other weights", func(f fstest.MapFS) { f["model.safetensors"].Data = []byte("v") }, false},
		{"other vocabulary", func(f fstest.MapFS) { f["vocab.txt"].Data = []byte("b\n") }, false},
		{"tokenizer added", func(f fstest.MapFS) { f["tokenizer.json"] = &fstest.MapFile{} }, false},
		{"file renamed", func(f fstest.MapFS) { f["tokenizer.json"] = f["vocab.txt"]; delete(f, "vocab.txt") }, false},
	} {
		files := base()
		c.change(files)
		if same := of(files, "other name") == first; same != c.same {
			t.Errorf("%s: same identity: %t, want %t", c.name, same, c.same)
		}
	}
}

func TestParseManifestRefuses(t *testing.T) {
	sum := strings.Repeat("0", 64)
	file := func(path, sum string, size int) string {
		return fmt.Sprintf(`{"schema":1,"name":"x","files":[{"path":%q,"size":%d,"sha256":%q}]}`, path, size, sum)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "not valid JSON"},
		{"array", "[]", "not valid JSON for a manifest"},
		{"no schema", `{"files":[]}`, "schema 0 is not known"},
		{"later schema", `{"schema":2}`, "schema 2 is not known (known: 1)"},
		{"parent folder", file("../x", sum, 1), `"../x": not a path inside the bundle`},
		{"parent folder inside", file("a/../../x", sum, 1), "not a path inside the bundle"},
		{"absolute", file("/etc/passwd", sum, 1), "not a path inside the bundle"},
		{"back slash", file(`..\x`, sum, 1), "not a path inside the bundle"},
		{"folder itself", file(".", sum, 1), "not a path inside the bundle"},
		{"empty path", file("", sum, 1), "not a path inside the bundle"},
		{"line feed", file("a\nb", sum, 1), "not a path inside the bundle"},
		{"manifest itself", file("manifest.json", sum, 1), "not a path inside the bundle"},
		{"short hash", file("a", "00", 1), `"00" is not a SHA-256`},
		{"upper-case hash", file("a", strings.Repeat("A", 64), 1), "is not a SHA-256 in lower-case hex"},
		{"no hash", file("a", "", 1), "is not a SHA-256"},
		{"negative size", file("a", sum, -1), "size -1"},
		{"twice", fmt.Sprintf(`{"schema":1,"files":[{"path":"a","sha256":%q},{"path":"a","sha256":%q}]}`, sum, sum),
			`file "a" is listed twice`},
		{"too large", strings.Repeat(" ", 1<<20) + "{}", "more than the 1048576"},
	} {
		if _, err := models.ParseManifest([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
		}
	}
}

// FuzzParseManifest: no panic, and no accepted path leaves the bundle.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"schema":1,"files":[{"path":"a/b","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"schema":1,"files":[{"path":"../b","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := models.ParseManifest(data)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if joined := path.Join("/bundle", file.Path); !strings.HasPrefix(joined, "/bundle/") || file.Size < 0 {
				t.Errorf("accepted: %+v", file)
			}
		}
		if len(m.SHA256()) != 64 {
			t.Errorf("identity %q", m.SHA256())
		}
	})
}
