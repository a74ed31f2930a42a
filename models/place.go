package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/internal/pytorch"
	"infill/internal/rawjson"
	"infill/internal/regular"
	"infill/tokenize"
)

// lock takes the lock of a model's folder. While another process holds the
// lock, it waits, until ctx ends. The caller gives the lock to release.
func (s *Store) lock(ctx context.Context, name string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(s.folder(name), lockName))
	for {
		if err := os.MkdirAll(s.folder(name), 0o755); err != nil {
			return nil, err
		}
		locked, err := lock.TryLockContext(ctx, 100*time.Millisecond)
		if !locked && ctx.Err() != nil {
			return nil, fmt.Errorf("model %s is in use by another process: %w", name, cmp.Or(err, ctx.Err()))
		}
		if err == nil {
			held, notHeld := lock.Stat()
			there, gone := os.Stat(lock.Path())
			if notHeld == nil && gone == nil && os.SameFile(held, there) {
				return lock, nil
			}
			err = lock.Close()
		}
		// Another process may have removed the folder in the meantime.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// release gives a lock back. If the model's folder has nothing else, it removes
// the folder. Where the system removes no file that is open, the folder stays.
func (s *Store) release(lock *flock.Flock, name string) {
	found, err := readDir(s.folder(name))
	if err == nil && len(found) == 1 {
		_ = os.Remove(lock.Path())
		_ = os.Remove(s.folder(name)) // only if nobody has begun again
	}
	_ = lock.Close()
}

// place ensures that the store has the complete revision of a model, and no
// other, and opens it. ref is the requested branch or tag, or "".
//
// If the revision is missing or damaged, place calls fill, which writes the
// files to dir and returns their manifest. No other process changes dir then.
// dir may have files of an earlier attempt or a damaged revision; after an
// error, they stay. If revision is "", dir is empty at first, and the revision
// is the beginning of the bundle's SHA256.
func (s *Store) place(ctx context.Context, name, revision, ref string,
	fill func(dir string) (*Manifest, error)) (*Bundle, error) {
	lock, err := s.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.release(lock, name)
	dir := filepath.Join(s.folder(name), partialPrefix+revision)
	if revision == "" {
		defer os.RemoveAll(dir) // before release
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	final := filepath.Join(s.folder(name), revision)
	manifest := whole(final)
	if revision == "" || manifest == nil {
		if revision != "" && exists(final, ".") {
			if err := s.setAside(name, revision); err != nil {
				return nil, err
			}
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		manifest, err = fill(dir)
		if err != nil {
			return nil, err
		}
		if revision == "" {
			revision = manifest.SHA256()[:revisionDigits]
			manifest.Revision = revision
			final = filepath.Join(s.folder(name), revision)
		}
		manifest.Ref = ref
		if err := s.publish(name, dir, final, manifest); err != nil {
			return nil, err
		}
	}
	if name != BuiltInName {
		if manifest.Ref != ref {
			manifest.Ref = ref
			err = maybe.WriteFile(filepath.Join(final, manifestName), manifest.Encode(), 0o644)
		}
		if err := errors.Join(err, s.keepOnly(name, revision)); err != nil {
			return nil, err
		}
	}
	b, err := openDir(final, true)
	if err != nil {
		return nil, err
	}
	b.Name = name
	return b, nil
}

// publish writes the manifest to dir, and moves dir to final. It first sets the
// stored revisions of the model aside, because whoever opens the model at this
// time must not find two. Each version of the program keeps its own built-in
// model.
func (s *Store) publish(name, dir, final string, m *Manifest) error {
	if err := maybe.WriteFile(filepath.Join(dir, manifestName), m.Encode(), 0o644); err != nil {
		return err
	}
	if name != BuiltInName {
		stored, err := s.revisions(name)
		for _, revision := range stored {
			err = errors.Join(err, s.setAside(name, revision))
		}
		if err != nil {
			return err
		}
	}
	return os.Rename(dir, final)
}

// setAside makes an unfinished download of a stored revision.
func (s *Store) setAside(name, revision string) error {
	dir := filepath.Join(s.folder(name), partialPrefix+revision)
	return errors.Join(os.RemoveAll(dir), os.Rename(filepath.Join(s.folder(name), revision), dir))
}

// keepOnly removes all other revisions of a model, and unfinished downloads.
func (s *Store) keepOnly(name, revision string) error {
	found, err := readDir(s.folder(name))
	for _, f := range found {
		other := f.Name() != revision && revisionPattern.MatchString(f.Name())
		if other || strings.HasPrefix(f.Name(), partialPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.folder(name), f.Name())))
		}
	}
	return err
}

// whole returns the manifest in dir, or nil if a listed file is damaged.
func whole(dir string) *Manifest {
	manifest, err := readManifest(dir)
	if err != nil || manifest.Verify(dir) != nil {
		return nil
	}
	return manifest
}

// prepare reads the configuration in dir, which is being filled, writes the
// store's Reading into it, and reads the tokenizer.
func (s *Store) prepare(dir string) (Config, error) {
	config, err := readConfig(dir)
	if err != nil {
		return Config{}, err
	}
	if err := s.Reading.configure(dir); err != nil {
		return Config{}, err
	}
	if _, err := (&Bundle{Dir: dir, Config: config}).Tokenizer(); err != nil {
		return Config{}, err
	}
	return config, nil
}

// seal converts the weights in dir if need be, checks the model, and completes
// its manifest. If no further attempt could mend the files, it removes dir.
// Errors name files as if they were in the folder from.
func (s *Store) seal(ctx context.Context, name, dir, from string, m Manifest, files []string) (*Manifest, error) {
	pickled := slices.Contains(files, pytorch.FileName)
	m.Name = name
	sealed, err := s.complete(ctx, dir, m, files)
	system := new(fs.PathError)
	if err == nil || ctx.Err() != nil || errors.As(err, &system) {
		return sealed, err
	}
	err = &renamedError{err, dir + string(filepath.Separator), from}
	if pickled { // users know only the file before the conversion
		err = &renamedError{err, from + weightsName, from + pytorch.FileName}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// complete does the work of seal, and removes nothing.
func (s *Store) complete(ctx context.Context, dir string, m Manifest, files []string) (*Manifest, error) {
	config, err := s.prepare(dir)
	if err != nil {
		return nil, err
	}
	pickle := slices.Index(files, pytorch.FileName)
	if pickle >= 0 {
		m.ConvertedFrom, err = convert(ctx, dir, config)
		if err != nil {
			return nil, err
		}
		files[pickle] = weightsName
	}
	// An earlier attempt may have written it.
	if exists(dir, tokenizerConfigName) && !slices.Contains(files, tokenizerConfigName) {
		files = append(files, tokenizerConfigName)
	}
	m.Family = config.ModelType
	b := &Bundle{Name: m.Name, Dir: dir}
	b.Manifest, err = newManifest(dir, m, files)
	if err != nil {
		return nil, err
	}
	if err := b.load(); err != nil {
		return nil, err
	}
	return b.Manifest, nil
}

// convert replaces pytorch_model.bin in dir by model.safetensors, which appears
// whole or not at all. from describes the removed file.
func convert(ctx context.Context, dir string, config Config) (from []ManifestFile, err error) {
	original, err := newManifest(dir, Manifest{}, []string{pytorch.FileName})
	if err != nil {
		return nil, err
	}
	pickle := filepath.Join(dir, pytorch.FileName)
	weights := filepath.Join(dir, weightsName)
	to, err := os.Create(weights + ".converting")
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, t := range config.Tensors() {
		for _, name := range otherNames(t.Name, config.bare()) {
			wanted[name] = true
		}
	}
	err = pytorch.ConvertFile(ctx, pickle, to, func(name string) bool { return wanted[name] })
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(to.Name()))
	}
	return original.Files, errors.Join(os.Rename(to.Name(), weights), os.Remove(pickle))
}

// Import copies the model in dir into the store under the given name. Its
// revision is the beginning of its SHA256. Import converts weights in
// pytorch_model.bin to model.safetensors.
func (s *Store) Import(ctx context.Context, dir, name string) (*Bundle, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	config, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	names, err := config.files(dir)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if exists(dir, manifestName) {
		m, err = readManifest(dir)
		if err != nil {
			return nil, err
		}
		if err := m.Verify(dir); err != nil {
			return nil, err
		}
		names = m.paths()
	}
	files := map[string]string{}
	for _, path := range names {
		files[path] = filepath.Join(dir, filepath.FromSlash(path))
	}
	m.Source = cmp.Or(m.Source, dir)
	return s.copyIn(ctx, dir, name, *m, files, nil, nil)
}

// ImportGraph copies an ONNX graph that others exported into the store under
// the given name. It also copies the files beside the graph that hold weights,
// and the tokenizer's files in the folder tokenizer. c becomes the config.json. The
// store takes the model only if try, which is called before, returns nil.
func (s *Store) ImportGraph(ctx context.Context, graph, tokenizer, name string, c Imported,
	try func(*Bundle) error) (*Bundle, error) {
	graph, err := filepath.Abs(graph)
	if err != nil {
		return nil, err
	}
	tokenizer, err = filepath.Abs(tokenizer)
	if err != nil {
		return nil, err
	}
	files := map[string]string{graphName: graph}
	for _, name := range c.GraphData {
		files[name] = filepath.Join(filepath.Dir(graph), filepath.FromSlash(name))
	}
	for _, name := range append(tokenizerFiles(), "README.md", "LICENSE") {
		if exists(tokenizer, name) {
			files[name] = filepath.Join(tokenizer, name)
		}
	}
	c.ModelType = importedFamily
	config, err := rawjson.EncodeIndent(c, "", "  ")
	if err != nil {
		return nil, err
	}
	return s.copyIn(ctx, tokenizer, name, Manifest{Source: graph}, files, config, try)
}

// copyIn copies files into the store: files maps paths in the bundle to their
// sources. If config is not nil, copyIn writes it as config.json. Errors about
// copied files name their place in the folder from. try, if not nil, is called with the copy.
func (s *Store) copyIn(ctx context.Context, from, name string, m Manifest, files map[string]string,
	config []byte, try func(*Bundle) error) (*Bundle, error) {
	if name == BuiltInName {
		return nil, fmt.Errorf("model %s is part of the program and cannot be replaced", name)
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return s.place(ctx, name, "", "", func(dir string) (*Manifest, error) {
		names := slices.Sorted(maps.Keys(files))
		for _, path := range names {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err := regular.Copy(files[path], filepath.Join(dir, filepath.FromSlash(path))); err != nil {
				return nil, err
			}
		}
		if config != nil {
			names = append(names, configName)
			if err := writeFile(filepath.Join(dir, configName), append(config, '\n')); err != nil {
				return nil, err
			}
		}
		sealed, err := s.seal(ctx, name, dir, from+string(filepath.Separator), m, names)
		if err != nil || try == nil {
			return sealed, err
		}
		b := &Bundle{Name: name, Dir: dir, Manifest: sealed}
		err = b.load()
		if err == nil {
			err = try(b)
		}
		if err != nil { // users do not know the copy
			err = &renamedError{err, filepath.Join(dir, graphName) + ": ", ""}
		}
		return sealed, err
	})
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// Reading says how the tokenizer of a new model is read, where its files do not
// say it or contradict each other. "" means that the files decide.
type Reading string

// These are the readings. Cased and Uncased say whether the model keeps
// capitals, and AsFile takes tokenizer.json as it is.
const (
	Cased   Reading = "cased"
	Uncased Reading = "uncased"
	AsFile  Reading = "tokenizer-json"
)

const tokenizerConfigName = "tokenizer_config.json"

// configure writes the reading into tokenizer_config.json in a model's folder.
func (r Reading) configure(dir string) error {
	hasFile := exists(dir, "tokenizer.json")
	switch {
	case r == "":
		return nil
	case r == AsFile && !hasFile:
		return errors.New("there is no tokenizer.json: leave --tokenizer-json out")
	case !hasFile && !exists(dir, vocabulary): // vocab.txt alone leaves capitals open
		return fmt.Errorf("the tokenizer's files say whether the model keeps capitals: leave --%s out", r)
	}
	path := filepath.Join(dir, tokenizerConfigName)
	var settings map[string]any
	content, err := regular.ReadFile(path, maxConfigBytes)
	if err == nil {
		err = json.Unmarshal(content, &settings)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", tokenizerConfigName, err)
	}
	if settings == nil { // no file, or null
		settings = map[string]any{}
	}
	const key = "do_lower_case"
	said := settings[key]
	switch {
	case r == AsFile:
		settings = asFile(settings)
	case hasFile:
		// tokenizer.json has to agree, and overrules what the settings say.
		err := r.agrees(dir)
		if err != nil {
			return err
		}
		settings[key] = r == Uncased
	case said != nil && said != (r == Uncased):
		return fmt.Errorf("%s has %s %v, which --%s contradicts", tokenizerConfigName, key, said, r)
	default:
		settings[key] = r == Uncased
	}
	encoded, err := rawjson.EncodeIndent(settings, "", "  ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(encoded, '\n'), 0o644)
}

func (r Reading) agrees(dir string) error {
	alone, err := tokenize.LoadFile(os.DirFS(dir))
	if err != nil {
		return err
	}
	if alone.Cased() != (r == Cased) {
		return fmt.Errorf("tokenizer.json says that the model is not %s: leave --%[1]s out", r)
	}
	return nil
}

// asFile returns the names of special tokens in settings, and a class with
// which transformers takes tokenizer.json as it is. The list, though empty,
// keeps it from reading tokens from other files.
func asFile(settings map[string]any) map[string]any {
	names := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": map[string]any{}}
	for key, value := range settings {
		token, ok := value.(map[string]any)
		if ok {
			value = token["content"]
		}
		if strings.HasSuffix(key, "_token") {
			names[key] = value
		}
	}
	return names
}

// check returns an error if b, perhaps an older copy, has another reading.
func (r Reading) check(b *Bundle) error {
	if r == "" {
		return nil
	}
	t, err := b.Tokenizer()
	if err != nil || r != AsFile && t.Cased() == (r == Cased) || r == AsFile && t.Warning() == "" {
		return err
	}
	return fmt.Errorf("the tokenizer of the stored model contradicts --%s: leave --%[1]s out, or infill models remove "+
		"%s, and pull it again", r, b.Name)
}

// renamedError is an error in whose text every from is replaced by to.
type renamedError struct {
	err      error
	from, to string
}

func (e *renamedError) Error() string { return strings.ReplaceAll(e.err.Error(), e.from, e.to) }
func (e *renamedError) Unwrap() error { return e.err }
