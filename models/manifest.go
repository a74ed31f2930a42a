package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"infill/internal/object"
	"infill/internal/regular"
)

// manifestName is the file of a bundle that lists all others.
const manifestName = "manifest.json"

const manifestSchema = 1

// Manifest describes a bundle: its name and family, its source, and its files with their hashes.
type Manifest struct {
	Schema      int    `json:"schema"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // one line
	Family      string `json:"family"`                // model_type of config.json
	Licence     string `json:"licence,omitempty"`     // SPDX identifier if there is one
	Source      string `json:"source,omitempty"`
	Revision    string `json:"revision,omitempty"`
	Ref         string `json:"ref,omitempty"` // the branch or tag under which the revision was fetched
	// Files are in ascending order of Path and do not include the manifest itself.
	Files []ManifestFile `json:"files"`
	// ConvertedFrom lists the original files of converted weights, to compare with the model's source.
	ConvertedFrom []ManifestFile `json:"converted_from,omitempty"`
	// Segments is 1 if the model was trained with one segment, even if it has more embeddings; 0: see Config.Segments.
	Segments int `json:"segments,omitempty"`
}

// ManifestFile is one file of a bundle.
type ManifestFile struct {
	Path   string `json:"path"` // relative, with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// newManifest fills m.Files with the size and SHA-256 of the named files of a folder, and returns the result.
func newManifest(dir string, m Manifest, names []string) (*Manifest, error) {
	m.Schema, m.Files = manifestSchema, nil
	for _, name := range slices.Sorted(slices.Values(names)) {
		size, sum, err := regular.Digest(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, ManifestFile{name, size, sum})
	}
	return &m, m.check()
}

// readManifest reads the manifest.json of a folder.
func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestName)
	content, err := regular.ReadFile(path, maxConfigBytes)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func parseManifest(content []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, fmt.Errorf("not valid JSON for a manifest: %w", err)
	}
	return &m, m.check()
}

// Encode returns the content of manifest.json.
func (m *Manifest) Encode() []byte {
	text, err := object.EncodeIndent(m, "", "  ")
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return append(text, '\n')
}

func (m *Manifest) check() error {
	if m.Schema != manifestSchema {
		return fmt.Errorf("schema %d is not known (known: %d)", m.Schema, manifestSchema)
	}
	if m.Segments < 0 || m.Segments > 2 {
		return fmt.Errorf("segments: %d is not 1 or 2", m.Segments)
	}
	seen := map[string]bool{}
	for _, f := range slices.Concat(m.Files, m.ConvertedFrom) {
		sum, err := hex.DecodeString(f.SHA256)
		switch {
		// A manifest comes with the bundle, from anyone: it must not reach files outside it.
		case !inside(f.Path) || f.Path == manifestName:
			return fmt.Errorf("file %.100q: not a path inside the bundle", f.Path)
		case seen[f.Path]:
			return fmt.Errorf("file %.100q is listed twice", f.Path)
		case err != nil || len(sum) != sha256.Size || f.SHA256 != strings.ToLower(f.SHA256):
			return fmt.Errorf("file %.100q: %.80q is not a SHA-256 in lower-case hex", f.Path, f.SHA256)
		case f.Size < 0:
			return fmt.Errorf("file %.100q: size %d", f.Path, f.Size)
		}
		seen[f.Path] = true
	}
	return nil
}

// inside reports whether a path leads to a file of the bundle.
func inside(path string) bool {
	return fs.ValidPath(path) && path != "." && filepath.IsLocal(filepath.FromSlash(path)) &&
		!strings.ContainsAny(path, "\\\n\x00")
}

// paths names the files.
func (m *Manifest) paths() (names []string) {
	for _, f := range m.Files {
		names = append(names, f.Path)
	}
	return names
}

// Size returns the sum over all files, in bytes.
func (m *Manifest) Size() int64 {
	var size int64
	for _, f := range m.Files {
		size += f.Size
	}
	return size
}

// SHA256 identifies the model by a hash over names, sizes and hashes of its files. Model cards and licences do not
// count.
func (m *Manifest) SHA256() string {
	h := sha256.New()
	for _, f := range m.Files {
		if m.Family == importedFamily && !isDocument(f.Path) || f.Path == configName ||
			slices.Contains(tokenizerFiles(), f.Path) || f.Path == weightsName {
			fmt.Fprintf(h, "%s\n%d\n%s\n", f.Path, f.Size, f.SHA256)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// isDocument reports whether a file is only for people.
func isDocument(name string) bool {
	return strings.HasSuffix(name, ".md") || strings.HasPrefix(name, "LICENSE")
}

// problems reads every listed file under dir, and yields an error for each damaged or missing one, with the expected
// and the found value. If ctx ends before, its error is the last.
func (m *Manifest) problems(ctx context.Context, dir string) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, f := range m.Files {
			if ctx.Err() != nil {
				yield(ctx.Err())
				return
			}
			if err := f.verify(dir); err != nil && !yield(err) {
				return
			}
		}
	}
}

// Verify reads every listed file under dir. The error names the first that differs, with the expected and the found
// value.
func (m *Manifest) Verify(dir string) error {
	for problem := range m.problems(context.Background(), dir) {
		return problem
	}
	return nil
}

// intact is Verify for a folder of a store. Files that are older than the manifest and have their size are not read:
// nobody has written to them.
func (m *Manifest) intact(dir string) error {
	list := filepath.Join(dir, manifestName)
	if !slices.ContainsFunc(m.Files, func(f ManifestFile) bool {
		return !regular.Unchanged(list, filepath.Join(dir, filepath.FromSlash(f.Path)), f.Size)
	}) {
		return nil
	}
	if err := m.Verify(dir); err != nil {
		return err
	}
	now := time.Now()
	_ = os.Chtimes(list, now, now) // if that is not allowed, the files are read the next time as well
	return nil
}

func (f ManifestFile) verify(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	size, sum, err := regular.Digest(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the file is missing (expected %d bytes, SHA-256 %s)", path, f.Size, f.SHA256)
	case err != nil:
		return err
	case size != f.Size:
		return fmt.Errorf("%s: damaged: expected %d bytes, found %d", path, f.Size, size)
	case sum != f.SHA256:
		return fmt.Errorf("%s: damaged: expected SHA-256 %s, found %s", path, f.SHA256, sum)
	}
	return nil
}
