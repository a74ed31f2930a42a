package models_test

import (
	"crypto/sha256"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/models"
)

// A new manifest keeps the texts of a folder's old one, lists its files again,
// and people can read it.
func TestManifest(t *testing.T) {
	dir := tiny(t, false)
	write(t, dir, "README.md", []byte("text"))
	m, err := models.NewManifest(dir, models.Manifest{Name: "some", Family: "bert", Licence: "MIT & <more>",
		Segments: 1})
	check.OK(t, err)
	write(t, dir, "manifest.json", m.Encode())
	b := check.Must(newStore(t).Import(t.Context(), dir, "org/tiny"))(t)
	want := &models.Manifest{Schema: 1, Name: "org/tiny", Family: "bert", Licence: "MIT & <more>", Source: dir,
		Revision: b.SHA256[:12], Segments: 1}
	size := int64(0)
	for _, name := range []string{"README.md", "config.json", "model.safetensors", "tokenizer_config.json",
		"vocab.txt"} {
		want.Files = append(want.Files, models.ManifestFile{Path: name, Size: int64(len(read(t, dir, name))),
			SHA256: sum(t, filepath.Join(dir, name))})
		size += int64(len(read(t, dir, name)))
	}
	if diff := cmp.Diff(want, b.Manifest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b.Manifest.Size() != size || b.Config.Segments != 1 {
		t.Errorf("size %d, want %d; %d segments", b.Manifest.Size(), size, b.Config.Segments)
	}
	if !strings.Contains(string(read(t, b.Dir, "manifest.json")), "MIT & <more>") {
		t.Error("the licence is not readable in the file")
	}
}

// The identity of a bundle follows what it computes, and nothing else.
func TestManifestSHA256(t *testing.T) {
	file := func(path string, size int64, sum string) models.ManifestFile {
		return models.ManifestFile{path, size, sum}
	}
	first := models.Manifest{Name: "some", Files: []models.ManifestFile{file("README.md", 1, "r"),
		file("config.json", 2, "c"), file("model.safetensors", 3, "w"), file("vocab.txt", 4, "v")}}
	want := fmt.Sprintf("%x", sha256.Sum256([]byte("config.json\n2\nc\nmodel.safetensors\n3\nw\nvocab.txt\n4\nv\n")))
	if first.SHA256() != want {
		t.Errorf("SHA256() = %s, want %s", first.SHA256(), want)
	}
	for _, c := range []struct {
		name string
		i    int
		to   models.ManifestFile
		same bool
	}{
		{"other model card", 0, file("README.md", 1, "s"), true},
		{"licence for the model card", 0, file("LICENSE", 1, "r"), true},
		{"other weights", 2, file("model.safetensors", 3, "x"), false},
		{"other vocabulary", 3, file("vocab.txt", 4, "x"), false},
		{"tokenizer for the model card", 0, file("tokenizer.json", 1, "r"), false},
		{"file renamed", 3, file("tokenizer.json", 4, "v"), false},
	} {
		other := models.Manifest{Name: "other", Files: append([]models.ManifestFile{}, first.Files...)}
		other.Files[c.i] = c.to
		if same := other.SHA256() == want; same != c.same {
			t.Errorf("%s: same identity: %t, want %t", c.name, same, c.same)
		}
	}
}

func TestManifestRefused(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	file := func(path, sum string, size int) string {
		return fmt.Sprintf(`{"schema":1,"name":"x","files":[{"path":%q,"size":%d,"sha256":%q}]}`, path, size, sum)
	}
	dir := tiny(t, false)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "not valid JSON"},
		{"array", "[]", "not valid JSON for a manifest"},
		{"no schema", `{"files":[]}`, "schema 0 is not known"},
		{"later schema", `{"schema":2}`, "schema 2 is not known (known: 1)"},
		{"parent folder", file("../x", zeros, 1), `"../x": not a path inside the bundle`},
		{"parent folder inside", file("a/../../x", zeros, 1), "not a path inside the bundle"},
		{"absolute", file("/etc/passwd", zeros, 1), "not a path inside the bundle"},
		{"back slash", file(`..\x`, zeros, 1), "not a path inside the bundle"},
		{"folder itself", file(".", zeros, 1), "not a path inside the bundle"},
		{"empty path", file("", zeros, 1), "not a path inside the bundle"},
		{"line feed", file("a\nb", zeros, 1), "not a path inside the bundle"},
		{"manifest itself", file("manifest.json", zeros, 1), "not a path inside the bundle"},
		{"short hash", file("a", "00", 1), `"00" is not a SHA-256`},
		{"upper-case hash", file("a", strings.Repeat("A", 64), 1), "is not a SHA-256 in lower-case hex"},
		{"no hash", file("a", "", 1), "is not a SHA-256"},
		{"negative size", file("a", zeros, -1), "size -1"},
		{"twice", fmt.Sprintf(`{"schema":1,"files":[{"path":"a","sha256":%q},{"path":"a","sha256":%[1]q}]}`, zeros),
			`file "a" is listed twice`},
		{"too large", strings.Repeat(" ", 1<<20) + "{}", "more than the 1048576"},
	} {
		write(t, dir, "manifest.json", []byte(c.text))
		_, err := models.Open(dir)
		check.Says(t, err, c.want, filepath.Join(dir, "manifest.json"))
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
