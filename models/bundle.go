package models

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"infill/internal/regular"
	"infill/internal/safetensors"
	"infill/models/internal/pytorch"
	"infill/tokenize"
)

const (
	configName  = "config.json"
	weightsName = "model.safetensors"
	indexName   = "model" + safetensors.IndexSuffix
	vocabulary  = "vocab.txt"
	// maxTokenizerBytes is far above the tokenizer files of 250,000-token vocabularies.
	maxTokenizerBytes = 256 << 20
)

// tokenizerFiles lists the files that decide which ids a text becomes, by the names that the hub's libraries give them.
// A bundle has some of them.
func tokenizerFiles() []string {
	return []string{vocabulary, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
		"added_tokens.json", "vocab.json", "merges.txt"}
}

// Bundle is a verified model on disk.
type Bundle struct {
	Name string // as the user wrote it; of a stored model without the revision
	Dir  string // absolute path of the folder
	// Description is one line about the model.
	Description string
	Config      Config
	// Graph is the path of an imported model's ONNX graph, which has its weights. Empty for all others.
	Graph string
	// SHA256 identifies what the model computes, 64 hexadecimal digits: see Manifest.SHA256.
	SHA256 string
	// Manifest lists the files. For a bundle without a manifest it is made from the files in use.
	Manifest *Manifest

	files   fs.FS
	weights *safetensors.File // nil for an imported model
	// source: the folder is about to be imported, and may have weights that torch.save wrote. They have no header yet.
	source bool
}

// FS holds the bundle's files, for the tokenizer.
func (b *Bundle) FS() fs.FS { return b.files }

// CopyTo copies the model's files into a folder, with a manifest. The copy has the same SHA256.
func (b *Bundle) CopyTo(dir string) error {
	m := *b.Manifest
	m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f ManifestFile) bool { return isDocument(f.Path) })
	for _, f := range m.Files {
		name := filepath.FromSlash(f.Path)
		if err := copyFile(filepath.Join(b.Dir, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, manifestName), m.Encode(), 0o644)
}

// openDir opens the bundle in a folder: config.json, the tokenizer's files, and model.safetensors or the files of a
// sharded model. Where it has a manifest.json, every file that this lists is read and must have the size and SHA-256
// listed. Without one, the sizes and shapes in config, vocabulary and weights must agree.
//
// own reports that a store wrote the manifest, which is believed, source that the folder is about to be imported:
// weights in pytorch_model.bin are not read where they lie, see Store.Import.
func openDir(dir string, own, source bool) (*Bundle, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Name: dir, Dir: absolute, files: os.DirFS(absolute), source: source}
	if b.Manifest, err = readManifest(absolute); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if b.Manifest != nil {
		if !own { // it may come from anyone
			b.Manifest.FiniteWeights = false
		}
		if !own || !b.Manifest.unchanged(absolute) {
			if err := b.Manifest.Verify(absolute); err != nil {
				return nil, err
			}
		}
	}
	if err := b.load(); err != nil {
		return nil, err
	}
	return b, nil
}

// load reads and cross-checks configuration, vocabulary and the header of the weights.
func (b *Bundle) load() error {
	at := func(name string) string { return filepath.Join(b.Dir, name) }
	config, err := regular.ReadFS(b.files, configName, maxConfigBytes)
	if err != nil {
		return b.absent(configName, err)
	}
	if b.Config, err = ParseConfig(config); err != nil {
		return fmt.Errorf("%s: %w", at(configName), err)
	}
	used := []string{configName}
	for _, name := range tokenizerFiles() {
		if _, err := regular.Stat(b.files, name); err == nil {
			used = append(used, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", at(name), err)
		}
	}
	words, err := regular.ReadFS(b.files, vocabulary, maxTokenizerBytes)
	switch {
	case err == nil:
		lines := bytes.Count(words, []byte{'\n'})
		if len(words) > 0 && words[len(words)-1] != '\n' {
			lines++
		}
		// Embeddings are often padded past the vocabulary; the reverse would read outside them.
		if lines == 0 || lines > b.Config.VocabularySize {
			return fmt.Errorf("%s: %d tokens, config.json gives the model %d", at(vocabulary), lines,
				b.Config.VocabularySize)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", at(vocabulary), err)
	default:
		if !slices.Contains(used, "tokenizer.json") && !slices.Contains(used, "vocab.json") {
			_, err := b.Tokenizer()
			return fmt.Errorf("%s: %w", b.Dir, err)
		}
	}
	var weights []string
	if b.Config.Imported != nil {
		weights, err = b.openGraph()
	} else {
		weights, err = b.openWeights()
	}
	if err != nil {
		return err
	}
	used = append(used, weights...)
	if b.weights != nil {
		if err := b.untie(); err != nil {
			return err
		}
		if err := b.Config.checkTensors(b.weights); err != nil {
			return err
		}
	}
	if b.Manifest == nil {
		if b.Manifest, err = newManifest(b.files, Manifest{Name: filepath.Base(b.Dir), Family: b.Config.ModelType},
			used...); err != nil {
			return fmt.Errorf("%s: %w", b.Dir, err)
		}
	} else {
		for _, name := range used {
			if _, ok := b.Manifest.File(name); !ok {
				return fmt.Errorf("%s: the file is not listed in %s", at(name), manifestName)
			}
		}
	}
	if b.weights != nil {
		if err := b.checkFinite(); err != nil {
			return err
		}
	}
	if b.Manifest.Segments > 0 {
		b.Config.Segments = min(b.Config.Segments, b.Manifest.Segments)
	}
	b.SHA256 = b.Manifest.SHA256()
	c := b.Config
	described := fmt.Sprintf("%s, %d layers, hidden size %d, %d tokens", c.ModelType, c.Layers, c.HiddenSize,
		c.VocabularySize)
	if c.Imported != nil {
		described = fmt.Sprintf("imported ONNX graph, %d tokens", c.VocabularySize)
	}
	b.Description = cmp.Or(b.Manifest.Description, described)
	return nil
}

// openWeights opens model.safetensors or, if there is none, the files of a sharded model, and names what it read.
func (b *Bundle) openWeights() (used []string, err error) {
	path, index := filepath.Join(b.Dir, weightsName), filepath.Join(b.Dir, indexName)
	b.weights, err = safetensors.Open(path)
	if err == nil {
		return []string{weightsName}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, missing := os.Lstat(index); missing != nil {
		switch _, missing := os.Lstat(filepath.Join(b.Dir, pytorch.FileName)); {
		case missing != nil:
			return nil, b.absent(weightsName, err)
		case b.source:
			return []string{pytorch.FileName}, nil
		}
		return nil, fmt.Errorf("%s: the weights are in %s, which is converted when a model is imported: infill models "+
			"import %[1]s", b.Dir, pytorch.FileName)
	}
	if b.weights, err = safetensors.OpenShards(index); err != nil {
		return nil, err
	}
	used = []string{indexName}
	for _, path := range b.weights.Paths() {
		used = append(used, filepath.Base(path))
	}
	return used, nil
}

func (b *Bundle) absent(what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not a model: it has no %s", b.Dir, what)
	}
	return fmt.Errorf("%s: %w", filepath.Join(b.Dir, what), err)
}

// Tokenizer reads the bundle's tokenizer. It is an error if that is another model's.
func (b *Bundle) Tokenizer() (*tokenize.Tokenizer, error) {
	t, err := tokenize.Load(b.files)
	if err != nil {
		return nil, err
	}
	if found, want := t.VocabularySize(), b.Config.VocabularySize; found > want {
		return nil, fmt.Errorf("the tokenizer has %d tokens, the model embeds %d: tokenizer and weights are of "+
			"different models", found, want)
	}
	return t, nil
}
