package library

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maximalMember bounds what is unpacked when a member's size is not pinned: twice the largest that any release has.
const maximalMember = 1 << 30

// unpack writes the members, and nothing else, of a .tgz, .tar.gz, .zip or .whl file into folder, under names of ours:
// no name from the archive reaches the file system. Sizes and digests are checked where pinned.
func unpack(path string, members []member, folder string) ([]manifestFile, error) {
	wanted := map[string]member{}
	for _, m := range members {
		wanted[m.path] = m
	}
	files := map[string]manifestFile{}
	keep := func(name string, mode fs.FileMode, content io.Reader) error {
		m, ok := wanted[strings.TrimPrefix(name, "./")]
		if !ok || !mode.IsRegular() {
			return nil
		}
		if _, twice := files[m.path]; twice {
			return fmt.Errorf("holds %s twice", m.path)
		}
		file, err := keepMember(m, content, folder)
		files[m.path] = file
		return err
	}
	var err error
	if strings.HasSuffix(path, ".zip") || strings.HasSuffix(path, ".whl") {
		err = eachZip(path, keep)
	} else {
		err = eachTar(path, keep)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	kept := make([]manifestFile, 0, len(members))
	for _, m := range members {
		file, ok := files[m.path]
		if !ok {
			return nil, fmt.Errorf("%s: holds no file %s", filepath.Base(path), m.path)
		}
		kept = append(kept, file)
	}
	return kept, nil
}

func eachZip(path string, visit func(string, fs.FileMode, io.Reader) error) error {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if err := func() error {
			content, err := entry.Open()
			if err != nil {
				return err
			}
			defer content.Close()
			return visit(entry.Name, entry.Mode(), content)
		}(); err != nil {
			return err
		}
	}
	return nil
}

func eachTar(path string, visit func(string, fs.FileMode, io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	defer unzipped.Close()
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := visit(header.Name, header.FileInfo().Mode(), archive); err != nil {
			return err
		}
	}
}

// keepMember writes one member to disk, synced, and checks it.
func keepMember(m member, content io.Reader, folder string) (manifestFile, error) {
	limit := m.size
	if limit == 0 {
		limit = maximalMember
	}
	path := filepath.Join(folder, m.as)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return manifestFile{}, err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(content, limit+1))
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return manifestFile{}, err
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	switch {
	case size > limit:
		return manifestFile{}, fmt.Errorf("%s: larger than %d bytes", m.path, limit)
	case m.size != 0 && size != m.size:
		return manifestFile{}, fmt.Errorf("%s: %d bytes, expected %d", m.path, size, m.size)
	case m.sha256 != "" && digest != m.sha256:
		return manifestFile{}, fmt.Errorf("%s: expected SHA-256 %s, found %s", m.path, m.sha256, digest)
	}
	return manifestFile{Name: m.as, Size: size, SHA256: digest}, nil
}
