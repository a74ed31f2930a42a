package models

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/object"
	"infill/internal/regular"
	"infill/internal/safetensors"
)

// manifestName is the file of a bundle that lists all others.
const manifestName = "manifest.json"

const manifestSchema = 1

// Manifest describes a bundle: what it is, its source, and its files with their hashes.
type Manifest struct {
	Schema      int    `json:"schema"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // one line
	Family      string `json:"family"`                // model_type of config.json
	Licence     string `json:"licence,omitempty"`     // SPDX identifier where there is one
	Source      string `json:"source,omitempty"`
	Revision    string `json:"revision,omitempty"`
	// Files are in ascending order of Path and do not include the manifest itself.
	Files []ManifestFile `json:"files"`
	// ConvertedFrom lists the original files of converted weights, to compare with the model's source.
	ConvertedFrom []ManifestFile `json:"converted_from,omitempty"`
	// FiniteWeights reports whether every weight was checked to be a finite number. Only a store's manifest is
	// trusted.
	FiniteWeights bool `json:"finite_weights,omitempty"`
	// Segments is 1 where the model was trained with one segment, whatever embeddings it has; 0: see Config.Segments.
	Segments int `json:"segments,omitempty"`
}

// ManifestFile is one file of a bundle.
type ManifestFile struct {
	Path   string `json:"path"` // relative, with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// newManifest fills m.Files with the size and SHA-256 of the named files of a bundle, and returns the result.
func newManifest(bundle fs.FS, m Manifest, names ...string) (*Manifest, error) {
	m.Schema, m.Files = manifestSchema, nil
	for _, name := range names {
		if _, err := regular.Stat(bundle, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		file, err := bundle.Open(name)
		if err != nil {
			return nil, err
		}
		size, sum, err := regular.Digest(file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.Files = append(m.Files, ManifestFile{name, size, sum})
	}
	slices.SortFunc(m.Files, func(a, b ManifestFile) int { return cmp.Compare(a.Path, b.Path) })
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

// parseManifest reads a manifest.json.
func parseManifest(data []byte) (*Manifest, error) {
	if len(data) > maxConfigBytes {
		return nil, fmt.Errorf("%d bytes, more than the %d that a manifest can sensibly have", len(data),
			maxConfigBytes)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("not valid JSON for a manifest: %w", err)
	}
	return &m, m.check()
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
		// A manifest comes with the bundle, from anyone: it must not reach files outside it.
		if !inside(f.Path) || f.Path == manifestName {
			return fmt.Errorf("file %.100q: not a path inside the bundle", f.Path)
		}
		if seen[f.Path] {
			return fmt.Errorf("file %.100q is listed twice", f.Path)
		}
		seen[f.Path] = true
		if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size ||
			f.SHA256 != strings.ToLower(f.SHA256) {
			return fmt.Errorf("file %.100q: %.80q is not a SHA-256 in lower-case hex", f.Path, f.SHA256)
		}
		if f.Size < 0 {
			return fmt.Errorf("file %.100q: size %d", f.Path, f.Size)
		}
	}
	return nil
}

// inside reports whether a path leads to a file of the bundle.
func inside(path string) bool {
	return fs.ValidPath(path) && path != "." && filepath.IsLocal(filepath.FromSlash(path)) &&
		!strings.ContainsAny(path, "\\\n\x00")
}

// File finds a file by its path.
func (m *Manifest) File(name string) (ManifestFile, bool) {
	i := slices.IndexFunc(m.Files, func(f ManifestFile) bool { return f.Path == name })
	if i < 0 {
		return ManifestFile{}, false
	}
	return m.Files[i], true
}

// Size returns the sum over all files, in bytes.
func (m *Manifest) Size() int64 {
	var size int64
	for _, f := range m.Files {
		size += f.Size
	}
	return size
}

// SHA256 identifies what the model computes. It is a hash over names, sizes and hashes of the model's files;
// model cards and licences do not count.
func (m *Manifest) SHA256() string {
	h := sha256.New()
	for _, f := range m.Files {
		if isModelFile(f.Path) || m.Family == importedFamily && !isDocument(f.Path) {
			fmt.Fprintf(h, "%s\n%d\n%s\n", f.Path, f.Size, f.SHA256)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// isDocument reports whether a file is for people alone.
func isDocument(name string) bool {
	return strings.HasSuffix(name, ".md") || strings.HasPrefix(name, "LICENSE")
}

// isModelFile reports whether the file can change what a bundle computes.
func isModelFile(name string) bool {
	return slices.Contains(tokenizerFiles(), name) || name == configName ||
		strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, safetensors.IndexSuffix)
}

// unchanged reports whether nobody has written to a listed file under dir since the manifest was written there.
func (m *Manifest) unchanged(dir string) bool {
	return !slices.ContainsFunc(m.Files, func(f ManifestFile) bool {
		return !regular.Unchanged(filepath.Join(dir, manifestName), filepath.Join(dir, filepath.FromSlash(f.Path)),
			f.Size)
	})
}

// Verify reads every listed file under dir. The error names the first that differs, with the expected and the
// found value.
func (m *Manifest) Verify(dir string) error {
	for _, f := range m.Files {
		if err := f.verify(filepath.Join(dir, filepath.FromSlash(f.Path))); err != nil {
			return err
		}
	}
	return nil
}

func (f ManifestFile) verify(name string) error {
	file, err := regular.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the file is missing (expected %d bytes, SHA-256 %s)", name, f.Size, f.SHA256)
	case err != nil:
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	// Sizes first: a cut file is found without reading the rest of it.
	size, sum := info.Size(), f.SHA256
	if size == f.Size {
		if size, sum, err = regular.Digest(file); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	switch {
	case size != f.Size:
		return fmt.Errorf("%s: damaged: expected %d bytes, found %d", name, f.Size, size)
	case sum != f.SHA256:
		return fmt.Errorf("%s: damaged: expected SHA-256 %s, found %s", name, f.SHA256, sum)
	}
	return nil
}

// copyFile copies a file and makes sure that it is on the disk.
func copyFile(from, to string) error {
	source, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
