package models

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write mini-uncased/manifest.json anew")

func TestBuiltInManifest(t *testing.T) {
	files := os.DirFS(DefaultName)
	want, err := NewManifest(files, Manifest{
		Name:        DefaultName,
		Description: "English, uncased, 4 layers, hidden size 256; trained for infill",
		Family:      "bert",
		Licence:     "MIT",
		Source:      "trained for infill; see README.md",
		Revision:    "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(filepath.Join(DefaultName, ManifestName), want.Encode(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := fs.ReadFile(files, ManifestName)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want.Encode()), string(stored)); diff != "" {
		t.Errorf("%s does not describe the files beside it; run go generate ./models (-want +stored):\n%s", ManifestName, diff)
	}
}

func TestOpenBuiltIn(t *testing.T) {
	t.Setenv("INFILL_CACHE", t.TempDir())
	for range 2 {
		b, err := Open("")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", b.Config)
		t.Log(b.Name, b.Dir, b.SHA256, b.Description, len(b.Weights.Names()))
	}
}

func BenchmarkOpenBuiltIn(b *testing.B) {
	b.Setenv("INFILL_CACHE", b.TempDir())
	if _, err := Open(""); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlaceBuiltIn(b *testing.B) {
	root := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := os.RemoveAll(root); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := NewStore(root).Open(""); err != nil {
			b.Fatal(err)
		}
	}
}
