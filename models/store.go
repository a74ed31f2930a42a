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

	"infill/internal/regular"
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
	// revisionDigits is how many digits of its SHA256 are the revision of a bundle that was not fetched.
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
	Refs     []string // names that point at this revision, such as "main"
	Dir      string   // empty for a built-in model that has not been placed yet
	BuiltIn  bool
	// Manifest is nil if it cannot be read: Problem says why.
	Manifest *Manifest
	Problem  error
}

// List gives the built-in models, then the others by name and revision. Files are not read: see Entry.Verify.
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
		found, err := s.revisions(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, found...)
	}
	return entries, nil
}

// readDir lists a folder, which need not be there.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return entries, err
}

// folder holds all revisions of a model.
func (s *Store) folder(name string) string {
	return filepath.Join(s.Dir, strings.Replace(name, "/", "--", 1))
}

// revisions lists the stored entries of a model, by revision.
func (s *Store) revisions(name string) ([]Entry, error) {
	if name == BuiltInName {
		manifest, dir, err := s.builtIn()
		if err != nil {
			return nil, err
		}
		if !exists(dir, ".") {
			dir = ""
		}
		return []Entry{{Name: name, Revision: manifest.Revision, BuiltIn: true, Manifest: manifest, Dir: dir}}, nil
	}
	folder := s.folder(name)
	found, err := readDir(folder)
	if err != nil {
		return nil, err
	}
	refs, err := s.refs(name)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, f := range found {
		if f.IsDir() && revisionPattern.MatchString(f.Name()) {
			entry := Entry{Name: name, Revision: f.Name(), Refs: refs[f.Name()], Dir: filepath.Join(folder, f.Name())}
			entry.Manifest, entry.Problem = readManifest(entry.Dir)
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// refs gives the names of every revision.
func (s *Store) refs(name string) (map[string][]string, error) {
	dir := filepath.Join(s.folder(name), refsName)
	files, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	refs := map[string][]string{}
	for _, file := range files {
		content, err := regular.ReadFile(filepath.Join(dir, file.Name()), 1024)
		if err != nil {
			return nil, err
		}
		if ref, err := url.PathUnescape(file.Name()); err == nil {
			revision := strings.TrimSpace(string(content))
			refs[revision] = append(refs[revision], ref)
		}
	}
	return refs, nil
}

// Find returns the entry for "org/name" or "org/name@revision"; a revision may be shortened, or be a name such
// as "main". Without a revision it takes the one that "main" points at, or the only one. The error is
// ErrNotStored if there is none.
func (s *Store) Find(name string) (Entry, error) {
	name, wanted, err := splitName(name)
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
	var found []Entry
	var listed []string
	for _, e := range entries {
		listed = append(listed, strings.Join(append([]string{e.Revision}, e.Refs...), " = "))
		switch {
		case e.Revision == wanted || slices.Contains(e.Refs, cmp.Or(wanted, defaultRef)):
			return e, nil
		case wanted == "" || len(wanted) >= minAbbreviation && strings.HasPrefix(e.Revision, wanted):
			found = append(found, e)
		}
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

// Verify reads all files of a bundle and returns an error for each that is damaged or missing.
func (e Entry) Verify(ctx context.Context) ([]error, error) {
	switch {
	case e.Problem != nil:
		return []error{e.Problem}, nil
	case e.Dir == "":
		return nil, nil // part of the program, and not placed yet
	}
	return slices.Collect(e.Manifest.problems(ctx, e.Dir)), ctx.Err()
}

// Remove deletes a stored model: the revision named in "org/name@revision", or all revisions and unfinished downloads
// of "org/name". It gives the entries that were removed.
func (s *Store) Remove(ctx context.Context, name string) ([]Entry, error) {
	if name == BuiltInName {
		return nil, fmt.Errorf("model %s is part of the program and cannot be removed", name)
	}
	base, revision, err := splitName(name)
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
	if revision == "" {
		entries, err := s.revisions(base)
		if err != nil {
			return nil, err
		}
		return entries, os.RemoveAll(folder)
	}
	entry, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	// Renamed first, so that no half-removed bundle is found.
	doomed := filepath.Join(folder, partialPrefix+entry.Revision)
	err = errors.Join(os.RemoveAll(doomed), os.Rename(entry.Dir, doomed), os.RemoveAll(doomed))
	for _, ref := range entry.Refs {
		err = errors.Join(err, os.Remove(s.refPath(base, ref)))
	}
	return []Entry{entry}, err
}

func (s *Store) refPath(name, ref string) string {
	return filepath.Join(s.folder(name), refsName, url.PathEscape(ref))
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

// splitName takes "org/name@revision" apart; the revision is empty if none is given.
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
