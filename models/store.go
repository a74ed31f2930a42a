package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/internal/regular"
	"infill/models/internal/pytorch"
)

// Store keeps bundles under one folder: DIR/NAME/REVISION/, where a hub name "org/name" becomes "org--name". Beside the
// revisions of a model lie its lock, the names that point at revisions (refs/) and unfinished downloads (.partial-*).
type Store struct {
	Dir string // need not exist yet
	// Case is written into models that come in, where their files do not say it.
	Case Case
}

const (
	lockName      = ".lock"
	refsName      = "refs"
	partialPrefix = ".partial-"
	// defaultRef is the revision that is meant when none is named, as on the hub.
	defaultRef = "main"
)

// DefaultStore returns the store in the user's cache folder (see CacheDir).
func DefaultStore() (*Store, error) {
	root, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return &Store{Dir: filepath.Join(root, "models")}, nil
}

// Entry is one bundle of a store.
type Entry struct {
	Name     string
	Revision string
	Refs     []string // names that point at this revision, such as "main"
	Dir      string   // empty for a built-in model that has not been placed yet
	BuiltIn  bool
	// Manifest is nil if it cannot be read: Problem says why.
	Manifest *Manifest
	Problem  error
}

// List gives the built-in models, then the others by name and revision. Files are not read: see Verify.
func (s *Store) List() ([]Entry, error) {
	entry, err := s.builtInEntry()
	if err != nil {
		return nil, err
	}
	entries := []Entry{entry}
	folders, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, folder := range folders {
		name := strings.Replace(folder.Name(), "--", "/", 1)
		if name == BuiltInName || !folder.IsDir() || CheckName(name) != nil {
			continue
		}
		found, err := s.revisions(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, found...)
	}
	return entries, nil
}

func (s *Store) builtInEntry() (Entry, error) {
	_, manifest, err := builtIn()
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{Name: BuiltInName, Revision: manifest.Revision, BuiltIn: true, Manifest: manifest}
	dir := s.builtInDir(manifest)
	if _, err := os.Stat(dir); err == nil {
		entry.Dir = dir
	}
	return entry, nil
}

// folder holds all revisions of a model.
func (s *Store) folder(name string) string {
	return filepath.Join(s.Dir, strings.Replace(name, "/", "--", 1))
}

// revisions lists what the store has of a model, by revision.
func (s *Store) revisions(name string) ([]Entry, error) {
	folder := s.folder(name)
	found, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	refs, err := s.refs(name)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, f := range found {
		if !f.IsDir() || f.Name() == refsName || checkRevision(f.Name()) != nil {
			continue
		}
		entry := Entry{Name: name, Revision: f.Name(), Dir: filepath.Join(folder, f.Name())}
		for ref, revision := range refs {
			if revision == entry.Revision {
				entry.Refs = append(entry.Refs, ref)
			}
		}
		slices.Sort(entry.Refs)
		entry.Manifest, entry.Problem = readManifest(entry.Dir)
		entries = append(entries, entry)
	}
	return entries, nil
}

// refs maps the names of revisions to revisions.
func (s *Store) refs(name string) (map[string]string, error) {
	dir := filepath.Join(s.folder(name), refsName)
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	refs := map[string]string{}
	for _, file := range files {
		ref, err := url.PathUnescape(file.Name())
		if err != nil {
			continue // not written by this program
		}
		content, err := regular.ReadFS(os.DirFS(dir), file.Name(), 1024)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, file.Name()), err)
		}
		refs[ref] = strings.TrimSpace(string(content))
	}
	return refs, nil
}

func readManifest(dir string) (*Manifest, error) {
	content, err := regular.ReadFS(os.DirFS(dir), manifestName, maxConfigBytes)
	var m *Manifest
	if err == nil {
		m, err = parseManifest(content)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	return m, nil
}

// Find returns the entry for "org/name" or "org/name@revision"; a revision may be shortened, or be a name such
// as "main". Without a revision it takes the one that "main" points at, or the only one. The error is
// ErrNotStored if there is none.
func (s *Store) Find(name string) (Entry, error) {
	if name == BuiltInName {
		return s.builtInEntry()
	}
	name, wanted, err := s.splitName(name)
	if err != nil {
		return Entry{}, err
	}
	entries, err := s.revisions(name)
	if err != nil {
		return Entry{}, err
	}
	if len(entries) == 0 {
		return Entry{}, fmt.Errorf("model %s: %w", name, ErrNotStored)
	}
	var listed []string
	for _, e := range entries {
		listed = append(listed, strings.Join(append([]string{e.Revision}, e.Refs...), " = "))
	}
	match := func(wanted string) []Entry {
		var found []Entry
		for _, e := range entries {
			if e.Revision == wanted || slices.Contains(e.Refs, wanted) {
				return []Entry{e}
			}
			if len(wanted) >= minAbbreviation && strings.HasPrefix(e.Revision, wanted) {
				found = append(found, e)
			}
		}
		return found
	}
	found := entries
	if wanted != "" {
		found = match(wanted)
	} else if main := match(defaultRef); len(main) == 1 {
		found = main
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Entry{}, fmt.Errorf("model %s: revision %.100q: %w (stored: %s)", name, wanted, ErrNotStored,
			strings.Join(listed, ", "))
	}
	return Entry{}, fmt.Errorf("model %s: several revisions are stored; name one of them as %s@REVISION: %s", name,
		name, strings.Join(listed, ", "))
}

// ErrNotStored reports that a model or a revision is not in the store.
var ErrNotStored = errors.New("not in the cache")

const minAbbreviation = 4

// Verify reads all files of a bundle and returns an error for each that is damaged or missing. The name is as
// for Find.
func (s *Store) Verify(ctx context.Context, name string) ([]error, error) {
	entry, err := s.Find(name)
	switch {
	case err != nil:
		return nil, err
	case entry.Problem != nil:
		return []error{entry.Problem}, nil
	case entry.Dir == "":
		return nil, nil // part of the program, and not placed yet
	}
	var problems []error
	for _, f := range entry.Manifest.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := f.verify(filepath.Join(entry.Dir, filepath.FromSlash(f.Path))); err != nil {
			problems = append(problems, err)
		}
	}
	return problems, nil
}

// Remove deletes a stored model: the revision named in "org/name@revision", or all revisions and unfinished downloads
// of "org/name". It gives the entries that were removed.
func (s *Store) Remove(ctx context.Context, name string) ([]Entry, error) {
	if name == BuiltInName {
		return nil, fmt.Errorf("model %s is part of the program and cannot be removed", name)
	}
	base, revision, err := s.splitName(name)
	if err != nil {
		return nil, err
	}
	folder := s.folder(base)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("model %s: %w", base, ErrNotStored)
	}
	lock, err := s.lock(ctx, base)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if revision != "" {
		entry, err := s.Find(name)
		if err != nil {
			return nil, err
		}
		// Renamed first, so that no half-removed bundle is found.
		doomed := filepath.Join(folder, partialPrefix+entry.Revision)
		if err := errors.Join(os.RemoveAll(doomed), os.Rename(entry.Dir, doomed), os.RemoveAll(doomed)); err != nil {
			return nil, err
		}
		for _, ref := range entry.Refs {
			if err := os.Remove(s.refPath(base, ref)); err != nil {
				return nil, err
			}
		}
		return []Entry{entry}, nil
	}
	entries, err := s.revisions(base)
	if err != nil {
		return nil, err
	}
	return entries, os.RemoveAll(folder)
}

// lock takes the lock of a model's folder. It waits for other processes until ctx ends.
func (s *Store) lock(ctx context.Context, name string) (*flock.Flock, error) {
	folder := s.folder(name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(folder, lockName))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("model %s is in use by another process: %w", name, err)
		}
		return nil, err
	}
	return lock, nil
}

func (s *Store) refPath(name, ref string) string {
	return filepath.Join(s.folder(name), refsName, url.PathEscape(ref))
}

// draft is a bundle on its way into a store. Its holder is the only one that changes the model's folder.
type draft struct {
	store          *Store
	lock           *flock.Flock
	name, revision string
	placed         bool // the revision is stored already and whole: there is nothing to fill
}

// begin starts to place a revision of a model, or goes on with a start that was cut short. A stored revision that is
// damaged becomes such a start: what is whole of it need not be fetched again. Without a revision, commit gives the
// draft one by what it holds. Close its lock at the end: what was filled and not committed stays, to go on with.
func (s *Store) begin(ctx context.Context, name, revision string) (*draft, error) {
	if name == BuiltInName {
		return nil, fmt.Errorf("model %s is part of the program and cannot be replaced", name)
	}
	if err := errors.Join(CheckName(name), checkRevision(cmp.Or(revision, "00000000"))); err != nil {
		return nil, err
	}
	lock, err := s.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &draft{store: s, lock: lock, name: name, revision: revision}
	if revision != "" {
		if p.placed = p.stored(); p.placed {
			return p, nil
		}
		if _, err = os.Stat(p.final()); err == nil {
			err = errors.Join(os.RemoveAll(p.dir()), os.Rename(p.final(), p.dir()),
				removeIfThere(filepath.Join(p.dir(), manifestName)))
		} else {
			err = os.MkdirAll(p.dir(), 0o755)
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return p, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (p *draft) final() string { return filepath.Join(p.store.folder(p.name), p.revision) }

// dir is the folder to fill. What an earlier attempt left is there.
func (p *draft) dir() string {
	return filepath.Join(p.store.folder(p.name), partialPrefix+p.revision)
}

// commit converts the weights in the filled folder if they need it, checks it as a model, writes its manifest over the
// named files, and makes it the stored bundle of the revision in one step. Where ref is given, that name then points at
// the revision.
func (p *draft) commit(ctx context.Context, m Manifest, ref string, files ...string) (*Bundle, error) {
	if !p.placed {
		if err := p.place(ctx, m, files); err != nil {
			return nil, err
		}
	}
	if path := p.store.refPath(p.name, ref); ref != "" {
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = maybe.WriteFile(path, []byte(p.revision+"\n"), 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	manifest, err := readManifest(p.final())
	if err != nil {
		return nil, err
	}
	b := &Bundle{Name: p.name, Dir: p.final(), Manifest: manifest, files: os.DirFS(p.final())}
	return b, b.load()
}

// place checks the filled folder, and renames it to that of the revision.
func (p *draft) place(ctx context.Context, m Manifest, files []string) (err error) {
	dir := p.dir()
	pickled := slices.Contains(files, pytorch.FileName)
	if pickled {
		if files, m.ConvertedFrom, err = p.convert(ctx, files); err != nil {
			return err
		}
	}
	config, err := p.store.Case.configure(os.DirFS(dir))
	if err != nil {
		return err
	}
	if config != nil {
		if err := maybe.WriteFile(filepath.Join(dir, tokenizerConfigName), config, 0o644); err != nil {
			return err
		}
		if !slices.Contains(files, tokenizerConfigName) {
			files = append(files, tokenizerConfigName)
		}
	}
	m.Name = p.name
	manifest, err := newManifest(os.DirFS(dir), m, files...)
	if err != nil {
		return err
	}
	// What is stored must open; the manifest was made a moment ago, so nothing is hashed again.
	trial := &Bundle{Name: p.name, Dir: dir, Manifest: manifest, files: os.DirFS(dir)}
	if err = trial.load(); err == nil {
		_, err = trial.Tokenizer()
	}
	if err != nil {
		if pickled { // nobody has seen what it became
			err = &renamedError{err, filepath.Join(dir, weightsName), filepath.Join(dir, pytorch.FileName)}
		}
		// Going on would end here again: the space is better free.
		return errors.Join(err, os.RemoveAll(dir))
	}
	manifest.Family = trial.Config.ModelType
	if p.revision == "" {
		p.revision = manifest.SHA256()[:12]
	}
	manifest.Revision = p.revision
	if p.stored() {
		p.placed = true
		return os.RemoveAll(dir)
	}
	if err := maybe.WriteFile(filepath.Join(dir, manifestName), manifest.Encode(), 0o644); err != nil {
		return err
	}
	p.placed = true
	return errors.Join(os.RemoveAll(p.final()), os.Rename(dir, p.final()))
}

// stored reports whether the revision is stored, and whole.
func (p *draft) stored() bool {
	manifest, err := readManifest(p.final())
	return err == nil && manifest.Verify(p.final()) == nil
}

// Import copies the model in a folder into the store under a name, as the revision that its SHA256 begins with. Weights
// in pytorch_model.bin become model.safetensors on the way.
func (s *Store) Import(ctx context.Context, dir, name string) (*Bundle, error) {
	source, err := openDir(dir, false, true)
	if err != nil {
		return nil, err
	}
	m, files := *source.Manifest, map[string]string{}
	for _, f := range m.Files {
		files[f.Path] = filepath.Join(source.Dir, filepath.FromSlash(f.Path))
	}
	m.Source = cmp.Or(m.Source, source.Dir)
	return s.take(ctx, source.Dir, name, m, files, nil)
}

// take copies files into the store, by their paths in the bundle, and writes config.json if it is given. Errors name
// dir where they are about what was copied.
func (s *Store) take(ctx context.Context, dir, name string, m Manifest, files map[string]string,
	config []byte) (b *Bundle, err error) {
	p, err := s.begin(ctx, name, "")
	if err != nil {
		return nil, err
	}
	defer p.lock.Close()
	// Of a copy that broke off nothing is worth keeping, and nothing is to be told.
	to := p.dir()
	defer os.RemoveAll(to)
	defer func() {
		if path := new(*fs.PathError); err != nil && !errors.As(err, path) {
			err = &renamedError{err, to + string(filepath.Separator), dir + string(filepath.Separator)}
		}
	}()
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return nil, err
	}
	names := sortedKeys(files)
	for _, path := range names {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := copyFile(files[path], filepath.Join(to, filepath.FromSlash(path))); err != nil {
			return nil, err
		}
	}
	if config != nil {
		names = append(names, configName)
		if err := os.WriteFile(filepath.Join(to, configName), config, 0o644); err != nil {
			return nil, err
		}
	}
	return p.commit(ctx, m, defaultRef, names...)
}

var (
	namePattern     = regexp.MustCompile(`^(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*$`)
	revisionPattern = regexp.MustCompile(`^[0-9a-f]{8,64}$`)
)

// CheckName returns an error if a name is not valid for the hub and the store: "org/name", or "name" alone.
func CheckName(name string) error {
	if len(name) > 200 || !namePattern.MatchString(name) || strings.Contains(name, "..") ||
		strings.Contains(strings.Replace(name, "/", "", 1), "--") {
		return fmt.Errorf("%.100q is not the name of a model: it must have the form org/name, of letters, digits, "+
			"'.', '_' and '-'", name)
	}
	return nil
}

// splitName takes "org/name@revision" apart; the revision is empty if none is given. A short name of Recommended is
// that model, unless the store has a model of this very name.
func (s *Store) splitName(name string) (base, revision string, err error) {
	base, revision, found := strings.Cut(name, "@")
	if err := CheckName(base); err != nil {
		return "", "", err
	}
	if found && (revision == "" || len(revision) > 200) {
		return "", "", fmt.Errorf("%.100q: the revision after @ is empty or too long", name)
	}
	if _, err := os.Stat(s.folder(base)); err != nil {
		for _, r := range Recommended() {
			if r.Name == base {
				base = r.Repository
			}
		}
	}
	return base, revision, nil
}

// checkRevision reports whether a revision can be the name of a folder: the hash of a commit or of a bundle.
func checkRevision(revision string) error {
	if !revisionPattern.MatchString(revision) {
		return fmt.Errorf("%.100q is not a revision: 8 to 64 lower-case hexadecimal digits", revision)
	}
	return nil
}
