package models_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/regular"
	"infill/internal/safetensors"
	"infill/models"
)

// tiny writes the tiny bundle, with or without a manifest.
func tiny(t testing.TB, manifest bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	check.OK(t, modelstest.Write(dir, modelstest.Tiny, modelstest.Options{DType: "F16"}))
	if manifest {
		seal(t, dir)
	}
	return dir
}

// seal writes a manifest of what is there.
func seal(t testing.TB, dir string) *models.Manifest {
	t.Helper()
	m, err := models.NewManifest(dir,
		models.Manifest{Name: "org/tiny", Family: "bert", Description: "for a test"})
	check.OK(t, err)
	write(t, dir, "manifest.json", m.Encode())
	return m
}

func write(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	check.OK(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
}

// sum is the SHA-256 of a file.
func sum(t testing.TB, path string) string {
	t.Helper()
	sum := check.Must(regular.SHA256(path))(t)
	return sum
}

func read(t testing.TB, dir, name string) []byte {
	t.Helper()
	content := check.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	return content
}

// A clone without Git LFS has pointers in place of files.
func TestOpenPointers(t *testing.T) {
	for _, name := range []string{"config.json", "model.safetensors"} {
		dir := tiny(t, false)
		write(t, dir, name, []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"))
		_, err := models.Open(dir)
		check.Says(t, err, filepath.Join(dir, name)+": a pointer of Git LFS")
	}
}

func TestOpenDir(t *testing.T) {
	dir := tiny(t, false)
	without := check.Must(models.Open(dir))(t)
	manifest := seal(t, dir)
	with := check.Must(models.Open(dir))(t)
	if without.SHA256 != with.SHA256 || with.SHA256 != manifest.SHA256() ||
		!regexp.MustCompile("^[0-9a-f]{64}$").MatchString(with.SHA256) {
		t.Errorf("identities %s without a manifest, %s with it, %s of the manifest: want the same 64 digits",
			without.SHA256, with.SHA256, manifest.SHA256())
	}
	if want := "bert, 2 layers, hidden size 16, 64 tokens"; without.Description != want {
		t.Errorf("description %q, want %q", without.Description, want)
	}
	if with.Description != "for a test" {
		t.Errorf("description %q, want the manifest's", with.Description)
	}
	if with.Dir != dir || !filepath.IsAbs(with.Dir) {
		t.Errorf("Dir = %s, want %s", with.Dir, dir)
	}
	words, err := fs.ReadFile(with.FS(), "vocab.txt")
	if err != nil || !bytes.Equal(words, read(t, dir, "vocab.txt")) {
		t.Errorf("FS gives %d bytes of vocab.txt, %v", len(words), err)
	}
	for _, want := range with.Config.Tensors() {
		tensor, ok := with.Tensor(want.Name)
		if !ok || tensor.Path != filepath.Join(dir, "model.safetensors") {
			t.Errorf("Tensor(%s) = %+v, %t", want.Name, tensor, ok)
		}
	}
	t.Run("relative", func(t *testing.T) {
		t.Chdir(filepath.Dir(dir))
		b := check.Must(models.Open("./tiny"))(t)
		if !filepath.IsAbs(b.Dir) || !filepath.IsAbs(b.Weights().Path) {
			t.Errorf("Dir %s and weights %s are not absolute", b.Dir, b.Weights().Path)
		}
	})
	t.Run("tokenizer.json alone", func(t *testing.T) {
		dir := tiny(t, false)
		write(t, dir, "tokenizer.json", []byte("{}"))
		check.OK(t, os.Remove(filepath.Join(dir, "vocab.txt")))
		if _, err := models.Open(dir); err != nil {
			t.Error(err)
		}
	})
}

// rewrite changes the tensors of a tiny bundle: change returns false to leave
// one out. It adds others.
func rewrite(t testing.TB, dir string, change func(*safetensors.Data) bool, others ...safetensors.Data) {
	t.Helper()
	file := check.Must(safetensors.Open(filepath.Join(dir, "model.safetensors")))(t)
	var tensors []safetensors.Data
	for _, name := range file.Names() {
		tensor, _ := file.Tensor(name)
		content := check.Must(tensor.Bytes())(t)
		d := safetensors.Data{Name: name, DType: safetensors.DType(tensor.DType), Shape: tensor.Shape,
			Content: modelstest.Bytes(content)}
		if change(&d) {
			tensors = append(tensors, d)
		}
	}
	var b bytes.Buffer
	check.OK(t, safetensors.Write(&b, nil, append(tensors, others...)))
	write(t, dir, "model.safetensors", b.Bytes())
}

// Of an output matrix that is stored beside the word embeddings, transformers 5
// takes what it says.
func TestOpenDirUnties(t *testing.T) {
	const words, decoder = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
	for name, change := range map[string]func(content []byte){
		"equal": func([]byte) {}, "other": func(content []byte) { content[len(content)-1] ^= 1 },
	} {
		dir := tiny(t, false)
		file := check.Must(safetensors.Open(filepath.Join(dir, "model.safetensors")))(t)
		tensor, _ := file.Tensor(words)
		content := check.Must(tensor.Bytes())(t)
		change(content)
		own := []safetensors.Data{{Name: decoder, DType: safetensors.DType(tensor.DType), Shape: tensor.Shape,
			Content: modelstest.Bytes(content)}}
		rewrite(t, dir, func(*safetensors.Data) bool { return true }, own...)
		b := check.Must(models.Open(dir))(t)
		want, got := map[string]string{"equal": words, "other": decoder}[name], b.Config.Layout().Decoder.Weight
		if got != want {
			t.Errorf("%s matrices: the head reads %s, want %s", name, got, want)
		}
	}
}

func TestOpenDirRefuses(t *testing.T) {
	remove := func(name string) func(testing.TB, string) {
		return func(t testing.TB, dir string) {
			check.OK(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	replace := func(name, content string) func(testing.TB, string) {
		return func(t testing.TB, dir string) { write(t, dir, name, []byte(content)) }
	}
	cut := func(name string) func(testing.TB, string) {
		return func(t testing.TB, dir string) {
			content := read(t, dir, name)
			write(t, dir, name, content[:len(content)-1])
		}
	}
	without := func(name string) func(testing.TB, string) {
		return func(t testing.TB, dir string) {
			rewrite(t, dir, func(d *safetensors.Data) bool { return d.Name != name })
		}
	}
	configure := func(key string, value any) func(testing.TB, string) {
		return func(t testing.TB, dir string) { write(t, dir, "config.json", altered(t, key, value)) }
	}
	for _, c := range []struct {
		name  string
		spoil func(testing.TB, string)
		want  string
	}{
		{"no config", remove("config.json"), "is not a model: it has no config.json"},
		{"no tokenizer", remove("vocab.txt"), "for others, save it with transformers"},
		{"no weights", remove("model.safetensors"),
			"is not a model: it has neither model.safetensors nor pytorch_model.bin"},
		{"pickled weights", func(t testing.TB, dir string) {
			remove("model.safetensors")(t, dir)
			write(t, dir, "pytorch_model.bin", nil)
		}, "the weights are in pytorch_model.bin, which is converted when a model is imported: infill models import "},
		{"config is a folder", func(t testing.TB, dir string) {
			remove("config.json")(t, dir)
			check.OK(t, os.Mkdir(filepath.Join(dir, "config.json"), 0o755))
		}, "config.json: not a regular file"},
		{"config is no JSON", replace("config.json", "{"), "config.json: not valid JSON"},
		{"config of another family", configure("model_type", "t5"), `config.json: model_type "t5" is not supported`},
		{"manifest is no JSON", replace("manifest.json", "{"), "manifest.json: not valid JSON"},
		{"weights cut", cut("model.safetensors"), "model.safetensors: damaged header: tensor"},
		{"weights empty", replace("model.safetensors", ""), "model.safetensors: not a safetensors file"},
		{"vocabulary longer than the embeddings", func(t testing.TB, dir string) {
			write(t, dir, "vocab.txt", append(read(t, dir, "vocab.txt"), "one more"...))
		}, "the tokenizer has 65 tokens, the model embeds 64"},
		{"vocabulary empty", replace("vocab.txt", ""), "vocab.txt: "},
		{"vocabulary and embeddings disagree", configure("vocab_size", 65),
			"tensor bert.embeddings.word_embeddings.weight has shape [64 16], config.json asks for [65 16]"},
		{"other hidden size", configure("hidden_size", 32), "has shape [64 16], config.json asks for [64 32]"},
		{"more layers than weights", configure("num_hidden_layers", 3),
			"tensor bert.encoder.layer.2.attention.self.query.weight is missing"},
		{"fewer layers than weights", configure("num_hidden_layers", 1),
			"config.json has num_hidden_layers 1, and the weights have another layer (bert.encoder.layer.1."},
		{"more positions than weights", configure("max_position_embeddings", 512),
			"position_embeddings.weight has shape [24 16], config.json asks for [512 16]"},
		{"tensor missing", without("bert.encoder.layer.1.output.dense.bias"),
			"tensor bert.encoder.layer.1.output.dense.bias is missing"},
		{"no head", func(t testing.TB, dir string) {
			rewrite(t, dir, func(d *safetensors.Data) bool { return !strings.HasPrefix(d.Name, "cls.") })
		}, "no masked-language-model head: tensor cls.predictions.transform.dense.weight is missing (architectures " +
			"in config.json: BertForMaskedLM)"},
		{"decoder not tied and missing", configure("tie_word_embeddings", false),
			"tensor cls.predictions.decoder.weight is missing"},
		{"weights are integers", func(t testing.TB, dir string) {
			rewrite(t, dir, func(d *safetensors.Data) bool { d.DType = safetensors.Int16; return true })
		}, "holds I16; floating-point weights are needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tiny(t, false)
			c.spoil(t, dir)
			b, err := models.Open(dir)
			if err == nil {
				_, err = b.Tokenizer()
			} else if !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v does not name the folder", err)
			}
			check.Says(t, err, c.want)
		})
	}
}

// Under a manifest, any change to any listed file is reported with the file and
// what was expected and found.
func TestOpenDirVerifies(t *testing.T) {
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"} {
		dir := tiny(t, true)
		path := filepath.Join(dir, name)
		good, listed := read(t, dir, name), sum(t, path)
		damaged := func(content []byte, want ...string) {
			t.Helper()
			write(t, dir, name, content)
			_, err := models.Open(dir)
			for _, part := range append(want, path) {
				check.Says(t, err, part)
			}
		}
		for _, at := range []int{0, len(good) / 2, len(good) - 1} {
			bad := bytes.Clone(good)
			bad[at] ^= 1
			damaged(bad, "expected SHA-256 "+listed, fmt.Sprintf("found %x", sha256.Sum256(bad)))
		}
		damaged(good[:len(good)-1], fmt.Sprintf("expected %d bytes, found %d", len(good), len(good)-1))
		check.OK(t, os.Remove(path))
		_, err := models.Open(dir)
		check.Says(t, err, "the file is missing", listed)
		write(t, dir, name, good)
		if _, err := models.Open(dir); err != nil {
			t.Errorf("%s put back: %v", name, err)
		}
	}
	dir := tiny(t, true)
	write(t, dir, "added_tokens.json", []byte("{}"))
	_, err := models.Open(dir)
	check.Says(t, err, "added_tokens.json: the file is not listed in manifest.json")
}

func TestOpenNames(t *testing.T) {
	t.Setenv("INFILL_CACHE", t.TempDir())
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "model.safetensors", nil)
	for _, c := range []struct{ name, want string }{
		{"no-such-model", "model no-such-model: not in the cache, nor is there a folder of this name; fetch it with: " +
			"infill models pull no-such-model (built in: small-uncased)"},
		{"bert-base-uncased@main", "fetch it with: infill models pull bert-base-uncased@main"},
		{"./no/such/folder", "(built in: small-uncased)"},
		{"google-bert/bert-base-uncased", "model google-bert/bert-base-uncased: not in the cache, nor is there a " +
			"folder of this name; fetch it with: infill models pull google-bert/bert-base-uncased"},
		{"model.safetensors", "is a file; give the folder"},
		{".", "is not a model: it has no config.json"},
		{"a\x00b", `model "a\x00b"`},
		{strings.Repeat("x", 5000), "model \"xxx"},
	} {
		_, err := models.Open(c.name)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 600 {
			t.Errorf("%.40q: error %v does not say %q in one line", c.name, err, c.want)
		}
	}
	t.Run("built-in before a folder of its name", func(t *testing.T) {
		check.OK(t, os.Mkdir("small-uncased", 0o755))
		if b, err := models.Open("small-uncased"); err != nil || b.Name != "small-uncased" || b.Config.Layers != 6 {
			t.Errorf("bundle %+v, error %v", b, err)
		}
		_, err := models.Open("./small-uncased")
		check.Says(t, err, "it has no config.json")
	})
}

// A folder that is no model, such as one of graphs, does not hide a model of the store.
func TestOpenStoredBeforeOtherFolder(t *testing.T) {
	source := tiny(t, false)
	t.Chdir(t.TempDir())
	store := newStore(t)
	if _, err := store.Import(t.Context(), source, "my/tiny"); err != nil {
		t.Fatal(err)
	}
	check.OK(t, os.MkdirAll("my/tiny", 0o755))
	if b, err := store.Open("my/tiny"); err != nil || !strings.HasPrefix(b.Dir, store.Dir) {
		t.Errorf("bundle %+v, error %v", b, err)
	}
	check.OK(t, os.CopyFS("my/tiny", os.DirFS(source)))
	if b, err := store.Open("my/tiny"); err != nil || !strings.HasSuffix(b.Dir, filepath.Join("my", "tiny")) {
		t.Errorf("bundle %+v, error %v", b, err)
	}
}

// shards makes a bundle whose weights are in two files, and an index.
func shards(t testing.TB) string {
	t.Helper()
	dir := tiny(t, false)
	check.OK(t, modelstest.Shard(dir))
	return dir
}

// Weights in several files are those of one file, in a folder and in the store.
func TestShards(t *testing.T) {
	dir := shards(t)
	whole := check.Must(models.Open(tiny(t, false)))(t)
	same := func(b *models.Bundle) {
		t.Helper()
		for _, want := range whole.Config.Tensors() {
			first, _ := whole.Tensor(want.Name)
			second, found := b.Tensor(want.Name)
			if !found || !bytes.Equal(check.Must(first.Bytes())(t), check.Must(second.Bytes())(t)) {
				t.Errorf("%s: tensor %s differs", b.Dir, want.Name)
			}
		}
	}
	b := check.Must(models.Open(dir))(t)
	same(b)
	stored := check.Must((&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "my/model"))(t)
	same(stored)
	if stored.SHA256 != b.SHA256 || len(stored.Manifest.Files) != 6 {
		t.Errorf("stored %s of %d files, want %s", stored.SHA256, len(stored.Manifest.Files), b.SHA256)
	}
	check.Must(modelstest.Int8(t.Context(), t.TempDir(), b, modelstest.Largest(b)))(t)
	write(t, dir, "model-00002-of-00002.safetensors", append(read(t, dir, "model-00002-of-00002.safetensors"), 0))
	_, err := models.Open(dir)
	check.Says(t, err, "model-00002-of-00002.safetensors: damaged")
}

// An index may come from anyone.
func TestHostileShards(t *testing.T) {
	const words = "bert.embeddings.word_embeddings.weight"
	for _, c := range []struct{ old, replacement, want string }{
		{`"` + words + `":"model-0000[12]`, `"` + words + `":"../model-00001`,
			"is not a file .safetensors beside the index"},
		{`"` + words + `":"model-0000[12]`, `"` + words + `":"/etc/model-00001`,
			"is not a file .safetensors beside the index"},
		{`"` + words + `":"model-0000[12]-of-00002.safetensors"`, `"` + words + `":"config.json"`,
			"is not a file .safetensors beside the index"},
		{`"` + words + `":"model-0000[12]`, `"` + words + `":"model-00003`,
			"there is no file model-00003-of-00002.safetensors, which it names"},
		{`"weight_map":{`, `"weight_map":{"other":"model-00001-of-00002.safetensors",`,
			`tensor "other" is not in model-00001-of-00002.safetensors, where it should be`},
		{`"weight_map":{`, `"weight_map":{"` + words + `":"model-00001-of-00002.safetensors",`,
			`two keys "weight_map.` + words},
		{`"weight_map":{.*`, `"weight_map":{}}`, "weight_map is missing or empty"},
		{`"weight_map":{.*`, `"weight_map":["x"]}`, "not an index of tensors"},
		{`{.*`, ``, "the index is not JSON"},
	} {
		dir := shards(t)
		index := read(t, dir, "model.safetensors.index.json")
		index = regexp.MustCompile(c.old).ReplaceAll(index, []byte(c.replacement))
		write(t, dir, "model.safetensors.index.json", index)
		_, err := models.Open(dir)
		check.Says(t, err, filepath.Join(dir, "model.safetensors.index.json"), c.want)
	}
	dir := shards(t)
	write(t, dir, "model-00002-of-00002.safetensors", read(t, dir, "model-00001-of-00002.safetensors"))
	_, err := models.Open(dir)
	check.Says(t, err, " is in model-00001-of-00002.safetensors and in model-00002-of-00002.safetensors")
}

// Of links into several folders, onnxruntime could read one folder only.
func TestShardsBehindLinks(t *testing.T) {
	dir := shards(t)
	first := filepath.Join(dir, "model-00001-of-00002.safetensors")
	blobs := t.TempDir()
	check.OK(t, os.Rename(first, filepath.Join(blobs, "a")))
	check.OK(t, os.Symlink(filepath.Join(blobs, "a"), first))
	_, err := models.Open(dir)
	check.Says(t, err, "the files with the weights are links into several folders: infill models import "+dir)
	check.Must((&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "my/model"))(t)
	second := filepath.Join(dir, "model-00002-of-00002.safetensors")
	check.OK(t, os.Rename(second, filepath.Join(blobs, "b")))
	check.OK(t, os.Symlink(filepath.Join(blobs, "b"), second))
	if b := check.Must(models.Open(dir))(t); b.WeightsDir != blobs {
		t.Errorf("the weights are in %s, want %s", b.WeightsDir, blobs)
	}
}

// Of tied weights, save_model of safetensors writes the name that is first by
// the alphabet. Either name serves.
func TestTiedNames(t *testing.T) {
	for _, family := range []string{"bert", "roberta", "xlm-roberta", "data2vec-text", "deberta-v2-legacy", "ernie",
		"modernbert", "electra", "distilbert", "albert"} {
		from := filepath.Join("..", "internal", "bert", "testdata", family)
		whole := check.Must(models.Open(from))(t)
		untied := whole.Config
		untied.TieWordEmbeddings = false
		names := map[string]string{} // by the names that save_model leaves out
		for _, pair := range [][2]string{
			{whole.Config.Layout().Words.Name, untied.Layout().Decoder.Weight},
			{untied.Layout().Decoder.Bias, strings.Replace(untied.Layout().Decoder.Bias, ".decoder.bias", ".bias", 1)},
		} {
			names[max(pair[0], pair[1])] = min(pair[0], pair[1])
		}
		dir := filepath.Join(t.TempDir(), family)
		check.OK(t, os.CopyFS(dir, os.DirFS(from)))
		rewrite(t, dir, func(d *safetensors.Data) bool {
			if kept, ok := names[d.Name]; ok {
				d.Name = kept
			}
			return true
		})
		b := check.Must(models.Open(dir))(t)
		if !b.Config.TieWordEmbeddings {
			t.Errorf("%s: not tied", family)
		}
		for _, want := range whole.Config.Tensors() {
			first, _ := whole.Tensor(want.Name)
			second, found := b.Tensor(want.Name)
			if !found || !bytes.Equal(check.Must(first.Bytes())(t), check.Must(second.Bytes())(t)) {
				t.Errorf("%s: tensor %s differs", family, want.Name)
			}
		}
		check.Must(modelstest.Int8(t.Context(), t.TempDir(), b, modelstest.Largest(b)))(t)
	}
}
