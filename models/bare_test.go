package models_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/safetensors"
	"infill/models"
)

// rename writes the weights in dir again, under other names, or without those
// whose name becomes "".
func rename(t *testing.T, dir string, to func(name string) string) {
	t.Helper()
	path := filepath.Join(dir, "model.safetensors")
	weights := check.Must(safetensors.Open(path))(t)
	var data []safetensors.Data
	for _, name := range weights.Names() {
		if to(name) == "" {
			continue
		}
		tensor, _ := weights.Tensor(name)
		content := check.Must(tensor.Bytes())(t)
		data = append(data, safetensors.Data{Name: to(name), DType: safetensors.DType(tensor.DType),
			Shape: tensor.Shape, Content: modelstest.Bytes(content)})
	}
	var b bytes.Buffer
	check.OK(t, safetensors.Write(&b, nil, data))
	check.OK(t, os.WriteFile(path, b.Bytes(), 0o644))
}

// TestBareBody: the names of a body need not begin with the family's word, as
// long as there is a head. Each weight is the one of the usual name.
func TestBareBody(t *testing.T) {
	for folder, body := range map[string]string{"bert": "bert.", "electra": "electra.", "distilbert": "distilbert.",
		"roberta": "roberta.", "albert": "albert.", "modernbert": "model.", "deberta-v2": "deberta."} {
		usual := filepath.Join(t.TempDir(), folder)
		bare := filepath.Join(t.TempDir(), folder)
		for _, dir := range []string{usual, bare} {
			check.OK(t, modelstest.Write(dir, string(stored(t, folder, nil)), modelstest.Options{Seed: 1}))
		}
		rename(t, bare, func(name string) string { return strings.TrimPrefix(name, body) })
		want := check.Must(models.Open(usual))(t)
		got, err := models.Open(bare)
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		for _, tensor := range want.Config.Tensors() {
			one, _ := content(t, want, tensor.Name)
			other, _ := content(t, got, tensor.Name)
			if one != other {
				t.Errorf("%s: %s is another weight", folder, tensor.Name)
			}
		}
		// A body alone has nothing that fills a blank.
		rename(t, bare, func(name string) string {
			if strings.HasPrefix(name, "embeddings.") || strings.Contains(name, "layer") {
				return name
			}
			return ""
		})
		_, err = models.Open(bare)
		check.Says(t, err, "no masked-language-model head")
	}
}

// TestBareBodyConverts: the same for weights of torch.save, of which those of
// the words are stored under two names.
func TestBareBodyConverts(t *testing.T) {
	for _, name := range []string{"bundle", "bundle-first"} {
		dir := pickledBundle(t, name)
		path := filepath.Join(dir, "pytorch_model.bin")
		expected := check.Must(safetensors.Open(filepath.Join("..", "internal", "pytorch", "testdata", "bundle",
			"expected.safetensors")))(t)
		check.OK(t, os.WriteFile(path, bare(t, path), 0o644))
		store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
		b, err := store.Import(t.Context(), dir, "org/tiny")
		check.OK(t, err)
		reference := models.WithWeights(expected)
		for _, want := range b.Config.Tensors() {
			got, _ := content(t, b, want.Name)
			right, _ := content(t, reference, want.Name)
			if got != right {
				t.Errorf("%s: %s is not what the reference has", name, want.Name)
			}
		}
	}
}

// bare returns an archive of torch.save without "bert." before the names.
func bare(t *testing.T, path string) []byte {
	t.Helper()
	archive := check.Must(zip.OpenReader(path))(t)
	defer archive.Close()
	named := regexp.MustCompile(`(?s)X....bert\.[a-zA-Z0-9_.]+`)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	found := 0
	for _, f := range archive.File {
		from := check.Must(f.Open())(t)
		content := check.Must(io.ReadAll(from))(t)
		check.OK(t, from.Close())
		if filepath.Base(f.Name) == "data.pkl" {
			content = named.ReplaceAllFunc(content, func(text []byte) []byte {
				length := binary.LittleEndian.Uint32(text[1:5])
				found++
				short := binary.LittleEndian.AppendUint32([]byte("X"), length-uint32(len("bert.")))
				return append(short, text[5+len("bert."):]...)
			})
		}
		to := check.Must(w.CreateHeader(&zip.FileHeader{Name: f.Name}))(t)
		check.Must(to.Write(content))(t)
	}
	check.OK(t, w.Close())
	if found < 10 {
		t.Fatalf("%s has %d names that begin with bert.", path, found)
	}
	return b.Bytes()
}
