package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"infill/internal/pytorch"
	"infill/internal/regular"
	"infill/internal/safetensors"
	"infill/tokenize"
)

const (
	configName  = "config.json"
	weightsName = "model.safetensors"
	vocabulary  = "vocab.txt"
)

// tokenizerFiles lists the files that determine the ids of a text, by the names
// that the hub's libraries use. A bundle has some of these files.
func tokenizerFiles() []string {
	return []string{vocabulary, "tokenizer.json", tokenizerConfigName, "special_tokens_map.json",
		"added_tokens.json", "vocab.json", "merges.txt"}
}

// Bundle is a verified model on disk.
type Bundle struct {
	Name string // a stored model's name without the revision, or else the last part of Dir
	Dir  string // absolute path of the bundle's folder
	// WeightsDir has the files of weights. Links, as in other programs' caches,
	// are resolved: onnxruntime reads nothing outside the folder.
	WeightsDir string
	// Description is one line about the model.
	Description string
	Config      Config
	// Graph is the path of an imported model's ONNX graph, or "" for all other models.
	Graph string
	// SHA256 identifies the model, in 64 hexadecimal digits: see Manifest.SHA256.
	SHA256 string
	// Manifest lists the files. If Dir has no manifest, Manifest is made from
	// the files in use.
	Manifest *Manifest

	stored  bool              // whether a store has the model under Name
	int8    bool              // whether matrices are in int8
	weights *safetensors.File // nil for an imported model
	renamed [][2]string       // see otherNames
	// builtIn: the built-in model's vocab.txt and tokenizer.json say the same.
	builtIn bool
}

// FS returns the bundle's folder as a file system, for the tokenizer.
func (b *Bundle) FS() fs.FS { return os.DirFS(b.Dir) }

// openDir opens the bundle in dir: config.json, the tokenizer's files, and
// model.safetensors, or the files of its index. If there is a manifest.json, openDir reads every listed
// file, which must have the listed size and SHA-256. Without a manifest, sizes
// and shapes in config and weights must agree. If own is true, a store wrote
// the manifest, and openDir trusts it.
func openDir(dir string, own bool) (*Bundle, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Name: filepath.Base(absolute), Dir: absolute, stored: own}
	b.Manifest, err = readManifest(absolute)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !own:
		err = nil
	case err != nil:
		return nil, err
	case own:
		err = b.Manifest.intact(absolute)
	default:
		err = b.Manifest.Verify(absolute)
	}
	if err != nil {
		return nil, err
	}
	if err := b.load(); err != nil {
		return nil, err
	}
	return b, nil
}

func readConfig(dir string) (Config, error) {
	path := filepath.Join(dir, configName)
	content, err := regular.ReadFile(path, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("%s is not a model: it has no %s", dir, configName)
	}
	if err != nil {
		return Config{}, err
	}
	c, err := ParseConfig(content)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// files names the files of the model in dir: its configuration, the tokenizer's
// files, and the files of the weights.
func (c Config) files(dir string) ([]string, error) {
	names := []string{configName}
	for _, name := range tokenizerFiles() {
		if exists(dir, name) {
			names = append(names, name)
		}
	}
	if c.Imported != nil {
		return append(append(names, graphName), c.Imported.GraphData...), nil
	}
	weights := weightsFile(func(name string) bool { return exists(dir, name) })
	names = append(names, weights)
	switch weights {
	case "":
		return nil, fmt.Errorf("%s is not a model: %w", dir, errWeights)
	case indexName:
		shards, err := safetensors.Shards(filepath.Join(dir, indexName))
		return append(names, shards...), err
	}
	return names, nil
}

// indexName is the file that names those of a large model's tensors.
const indexName = weightsName + ".index.json"

var errWeights = fmt.Errorf("it has neither %s nor %s (nor %s, with the files that it names)", weightsName,
	pytorch.FileName, indexName)

// weightsFile chooses the file of the weights: model.safetensors, else the index
// of several such files, else the file of torch.save, else "".
func weightsFile(has func(name string) bool) string {
	for _, name := range []string{weightsName, indexName, pytorch.FileName} {
		if has(name) {
			return name
		}
	}
	return ""
}

// exists reports whether dir has a file, folder or link of that name, even a
// link to nothing. It returns true if the disk does not say, so that whoever
// opens the file gets the error.
func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// load reads the configuration and the header of the weights, and checks that they agree.
func (b *Bundle) load() (err error) {
	b.Config, err = readConfig(b.Dir)
	if err != nil {
		return err
	}
	used, err := b.Config.files(b.Dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(used, func(name string) bool {
		return name == vocabulary || name == "tokenizer.json" || name == "vocab.json"
	}) {
		_, err := b.Tokenizer()
		return fmt.Errorf("%s: %w", b.Dir, err)
	}
	at := func(name string) string { return filepath.Join(b.Dir, name) }
	switch {
	case b.Config.Imported != nil:
		b.Graph = at(graphName)
		b.WeightsDir = b.Dir
	case slices.Contains(used, pytorch.FileName):
		return fmt.Errorf("%s: the weights are in %s, which is converted when a model is imported: infill models "+
			"import %[1]s", b.Dir, pytorch.FileName)
	case slices.Contains(used, indexName):
		b.weights, err = safetensors.OpenShards(at(indexName))
	default:
		b.weights, err = safetensors.Open(at(weightsName))
	}
	if err != nil {
		return err
	}
	if b.Manifest == nil {
		b.Manifest, err = newManifest(b.Dir, Manifest{Name: filepath.Base(b.Dir), Family: b.Config.ModelType}, used)
		if err != nil {
			return err
		}
	}
	listed := b.Manifest.paths()
	for _, name := range used {
		if !slices.Contains(listed, name) {
			return fmt.Errorf("%s: the file is not listed in %s", filepath.Join(b.Dir, name), manifestName)
		}
	}
	if b.weights != nil {
		err := cmp.Or(b.checkWeights(), b.locate())
		if err != nil {
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

// locate finds the folder of the weights.
func (b *Bundle) locate() error {
	for _, name := range b.weights.Names() {
		t, _ := b.weights.Tensor(name)
		folder := filepath.Dir(t.Path)
		if b.WeightsDir != "" && folder != b.WeightsDir {
			return fmt.Errorf("%s: the files with the weights are links into several folders: infill models import "+
				"%[1]s copies them into one", b.Dir)
		}
		b.WeightsDir = folder
	}
	return nil
}

// Tokenizer reads the bundle's tokenizer. If the tokenizer belongs to another
// model, Tokenizer returns an error.
func (b *Bundle) Tokenizer() (*tokenize.Tokenizer, error) {
	load := tokenize.Load
	if b.builtIn {
		load = tokenize.LoadVocabulary
	}
	t, err := load(b.FS())
	if err != nil {
		return nil, err
	}
	found := t.VocabularySize()
	want := b.Config.VocabularySize
	if found > want {
		return nil, fmt.Errorf("the tokenizer has %d tokens, the model embeds %d: tokenizer and weights are of "+
			"different models", found, want)
	}
	return t, nil
}
