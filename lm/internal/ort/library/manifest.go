package library

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"infill/internal/regular"
)

const manifestName = "manifest.json"

// manifest tells of a cached folder what was put there, so that a damaged file is noticed before it is loaded.
type manifest struct {
	Version  string         `json:"version"`
	Platform string         `json:"platform"`
	Source   string         `json:"source"`
	Archive  string         `json:"archive"`
	SHA256   string         `json:"archive_sha256,omitempty"`
	Files    []manifestFile `json:"files"` // the library first
}

type manifestFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// verify compares a cached folder with its manifest: all sizes, and the digest of the library, unless nobody has
// written to it since that was last compared, or of every file when thorough.
func verify(folder string, thorough bool) (manifest, error) {
	start := time.Now()
	var m manifest
	data, err := os.ReadFile(filepath.Join(folder, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s: no %s, so its files cannot be verified", folder, manifestName)
	} else if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%s: damaged: %w", filepath.Join(folder, manifestName), err)
	}
	if len(m.Files) == 0 {
		return m, fmt.Errorf("%s: damaged: it lists no files", filepath.Join(folder, manifestName))
	}
	for i, file := range m.Files {
		path := filepath.Join(folder, filepath.Base(file.Name))
		status, err := os.Stat(path)
		if err != nil {
			return m, err
		}
		if status.Size() != file.Size {
			return m, fmt.Errorf("%s: damaged: %d bytes, expected %d", path, status.Size(), file.Size)
		}
		if !thorough && (i > 0 || regular.Unchanged(folder, m.Files[0].Name)) {
			continue
		}
		digest, err := regular.SHA256(path)
		if err != nil {
			return m, err
		}
		if digest != file.SHA256 {
			return m, fmt.Errorf("%s: damaged: expected SHA-256 %s, found %s", path, file.SHA256, digest)
		}
		if i == 0 {
			regular.Remember(folder, start, file.Name)
		}
	}
	return m, nil
}
