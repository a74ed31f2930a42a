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

	"infill/internal/rawjson"
	"infill/internal/regular"
)

// manifestName is the file of a bundle that lists all other files.
const manifestName = "manifest.json"

const manifestSchema = 1

// Manifest describes a bundle: name, family, source, files and their hashes.
type Manifest struct {
	Schema      int    `json:"schema"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // one line
	Family      string `json:"family"`                // the model_type in config.json
	Licence     string `json:"licence,omitempty"`     // an SPDX identifier, if the licence has one
	Source      string `json:"source,omitempty"`
	Revision    string `json:"revision,omitempty"`
	Ref         string `json:"ref,omitempty"` // branch or tag by which the user asked for the revision
	// Files are in ascending order of Path, and do not include the manifest.
	Files []ManifestFile `json:"files"`
	// ConvertedFrom lists the files from which weights were converted, to
	// compare them with the model's source.
	ConvertedFrom []ManifestFile `json:"converted_from,omitempty"`
	// Segments is 1 if the model was trained with one segment, even if it has
	// more embeddings; 0: see Config.Segments.
	Segments int `json:"segments,omitempty"`
	// Float is the name of the model of which this one is a copy in int8, or the
	// model's folder if that was in no store.
	Float string `json:"float,omitempty"`
}

// ManifestFile is one file of a bundle.
type ManifestFile struct {
	Path   string `json:"path"` // relative to the bundle's folder, with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// newManifest returns m with the size and SHA-256 of the named files in dir.
func newManifest(dir string, m Manifest, names []string) (*Manifest, error) {
	m.Schema = manifestSchema
	m.Files = nil
	for _, name := range slices.Sorted(slices.Values(names)) {
		size, sum, err := regular.Digest(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, ManifestFile{name, size, sum})
	}
	return &m, m.check()
}

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
	text, err := rawjson.EncodeIndent(m, "", "  ")
	if err != nil {
		panic(err) // never happens: strings and numbers can always be encoded
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
		// Others may have written it: it names no files outside the bundle.
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

// inside reports whether path names a file inside the bundle's folder.
func inside(path string) bool {
	return fs.ValidPath(path) && path != "." && filepath.IsLocal(filepath.FromSlash(path)) &&
		!strings.ContainsAny(path, "\\\n\x00")
}

func (m *Manifest) paths() (names []string) {
	for _, f := range m.Files {
		names = append(names, f.Path)
	}
	return names
}

// Size returns the size of all files together, in bytes.
func (m *Manifest) Size() int64 {
	var size int64
	for _, f := range m.Files {
		size += f.Size
	}
	return size
}

// SHA256 returns a hash that identifies the model: over names, sizes and hashes
// of its files, without model cards and licences.
func (m *Manifest) SHA256() string {
	h := sha256.New()
	for _, f := range m.Files {
		if m.Family == importedFamily && !isDocument(f.Path) || f.Path == configName ||
			slices.Contains(tokenizerFiles(), f.Path) || f.Path == indexName ||
			strings.HasSuffix(f.Path, ".safetensors") {
			fmt.Fprintf(h, "%s\n%d\n%s\n", f.Path, f.Size, f.SHA256)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// isDocument reports whether a file is only for people to read.
func isDocument(name string) bool {
	return strings.HasSuffix(name, ".md") || strings.HasPrefix(name, "LICENSE")
}

// problems reads every listed file under dir, and yields an error for each
// damaged or missing file, with the expected and the found value. If ctx ends,
// problems yields ctx's error and stops.
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

// Verify reads every listed file under dir. The error is that of the first file
// that differs, with the expected and the found value.
func (m *Manifest) Verify(dir string) error {
	for problem := range m.problems(context.Background(), dir) {
		return problem
	}
	return nil
}

// intact does what Verify does, for a folder of a store. It does not read the
// files if all have their listed size and are older than the manifest, because
// then nobody has written to them.
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
	_ = os.Chtimes(list, now, now) // if this fails, the next call reads the files again
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
