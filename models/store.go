package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Store keeps bundles under one folder, one revision of each:
// DIR/NAME/REVISION/, where a hub name "org/name" becomes "org--name". NAME
// also has the model's lock and unfinished downloads (.partial-*).
type Store struct {
	Dir string // this folder need not exist yet
	// Reading is written into new models.
	Reading Reading
}

const (
	lockName      = ".lock"
	partialPrefix = ".partial-"
	// revisionDigits is how many digits of the SHA256 serve as the revision of
	// a model that has no commit.
	revisionDigits = 12
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
	Dir      string // "" for a built-in model whose files are not in the store yet
	BuiltIn  bool
	// Manifest is nil if it cannot be read; Problem then says why.
	Manifest *Manifest
	Problem  error
}

// FullName returns the name with the revision, which together identify the bundle.
func (e Entry) FullName() string {
	if e.BuiltIn || e.Revision == "" {
		return e.Name
	}
	return e.Name + "@" + e.Revision
}

// Remedy returns advice on how to repair a damaged model.
func (e Entry) Remedy() string {
	switch {
	case e.BuiltIn:
		return "it is written again when it is next used"
	case e.Manifest != nil && strings.Contains(e.Manifest.Source, "://"):
		return "infill models pull " + e.FullName() + " fetches what is damaged"
	}
	return "infill models remove " + e.FullName() + ", then import it again"
}

// List returns the built-in model, then all others by name. It does not read
// the models' files: see Entry.Verify.
func (s *Store) List() ([]Entry, error) {
	folders, err := readDir(s.Dir)
	if err != nil {
		return nil, err
	}
	names := []string{BuiltInName}
	for _, folder := range folders {
		name := strings.Replace(folder.Name(), "--", "/", 1)
		if name != BuiltInName && folder.IsDir() && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	var entries []Entry
	for _, name := range names {
		e, err := s.entry(name)
		if err != nil {
			e = Entry{Name: name, Problem: err}
		}
		if !errors.Is(err, ErrNotStored) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// readDir returns the entries of dir, and none if dir does not exist.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return entries, err
}

func (s *Store) folder(name string) string {
	return filepath.Join(s.Dir, strings.Replace(name, "/", "--", 1))
}

func (s *Store) entry(name string) (Entry, error) {
	if name == BuiltInName {
		manifest, dir, err := s.builtIn()
		if err != nil {
			return Entry{}, err
		}
		if !exists(dir, ".") {
			dir = ""
		}
		return Entry{Name: name, Revision: manifest.Revision, BuiltIn: true, Manifest: manifest, Dir: dir}, nil
	}
	revisions, err := s.revisions(name)
	switch {
	case err != nil:
		return Entry{}, err
	case len(revisions) == 0:
		return Entry{}, fmt.Errorf("model %s: %w", name, ErrNotStored)
	case len(revisions) > 1:
		return Entry{}, fmt.Errorf("model %s: several revisions are stored, of which one is kept now: infill models "+
			"remove %[1]s, and fetch or import it again", name)
	}
	e := Entry{Name: name, Revision: revisions[0], Dir: filepath.Join(s.folder(name), revisions[0])}
	e.Manifest, e.Problem = readManifest(e.Dir)
	return e, nil
}

func (s *Store) revisions(name string) (list []string, err error) {
	found, err := readDir(s.folder(name))
	for _, f := range found {
		if f.IsDir() && revisionPattern.MatchString(f.Name()) {
			list = append(list, f.Name())
		}
	}
	return list, err
}

// Find returns the entry for "org/name" or "org/name@revision". The revision
// may be shortened, or be the branch or tag that was fetched, such as "main".
// If the store has no such model, the error is ErrNotStored.
func (s *Store) Find(name string) (Entry, error) {
	name, wanted, err := splitName(name)
	if err != nil {
		return Entry{}, err
	}
	e, err := s.entry(name)
	if err != nil {
		return Entry{}, err
	}
	ref := ""
	if e.Manifest != nil {
		ref = e.Manifest.Ref
	}
	if wanted == "" || wanted == ref || len(wanted) >= minAbbreviation && strings.HasPrefix(e.Revision, wanted) {
		return e, nil
	}
	return Entry{}, fmt.Errorf("model %s: revision %.100q: %w (stored: %s)", name, wanted, ErrNotStored,
		strings.TrimSuffix(e.Revision+" = "+ref, " = "))
}

// ErrNotStored says that a model or a revision is not in the store.
var ErrNotStored = errors.New("not in the cache")

const minAbbreviation = 4

// Verify reads all files, and returns an error for each that is damaged.
func (e Entry) Verify(ctx context.Context) ([]error, error) {
	switch {
	case e.Problem != nil:
		return []error{e.Problem}, nil
	case e.Dir == "":
		return nil, nil // the built-in model has no files in the store yet
	}
	return slices.Collect(e.Manifest.problems(ctx, e.Dir)), ctx.Err()
}

// Remove deletes a model and its unfinished downloads, and returns its entry.
func (s *Store) Remove(ctx context.Context, name string) (Entry, error) {
	if name == BuiltInName {
		return Entry{}, fmt.Errorf("model %s is part of the program and cannot be removed", name)
	}
	base, _, err := splitName(name)
	if err != nil {
		return Entry{}, err
	}
	if _, err := os.Stat(s.folder(base)); errors.Is(err, fs.ErrNotExist) {
		return Entry{}, fmt.Errorf("model %s: %w", base, ErrNotStored)
	}
	entry, err := s.Find(name)
	if err != nil && name != base {
		return Entry{}, err
	}
	lock, err := s.lock(ctx, base)
	if err != nil {
		return Entry{}, err
	}
	defer s.release(lock, base)
	entry.Name = base // Find returns no name if there is only an unfinished download
	found, err := readDir(s.folder(base))
	for _, f := range found {
		if f.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.folder(base), f.Name())))
		}
	}
	return entry, err
}

var (
	namePattern     = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[\w.-]*[\w.])?/)?[A-Za-z0-9][\w.-]*$`)
	revisionPattern = regexp.MustCompile(`^[0-9a-f]{8,64}$`)
)

// CheckName returns an error if a name is not valid for the hub and the store:
// "org/name", or "name" alone.
func CheckName(name string) error {
	if len(name) > 200 || !namePattern.MatchString(name) || strings.Contains(name, "..") ||
		strings.Contains(strings.Replace(name, "/", "", 1), "--") {
		return fmt.Errorf("%.100q is not the name of a model: it must have the form org/name, of letters, digits, "+
			"'.', '_' and '-', without '..', '--' and '-/'", name)
	}
	return nil
}

// splitName splits "org/name@revision". If there is no @, revision is "".
func splitName(name string) (base, revision string, err error) {
	base, revision, found := strings.Cut(name, "@")
	if err := CheckName(base); err != nil {
		return "", "", err
	}
	if found && (revision == "" || len(revision) > 200) {
		return "", "", fmt.Errorf("%.100q: the revision after @ is empty or too long", name)
	}
	return base, revision, nil
}
