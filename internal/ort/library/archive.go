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
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/regular"
)

// unpack checks an archive, and writes only its members into folder.
func (c *carrier) unpack(archive, folder string) error {
	unpack := c.unpackTar
	if strings.HasSuffix(archive, ".whl") {
		unpack = c.unpackZip
	}
	err := c.verify(archive)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	err = unpack(archive, folder)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	return nil
}

// verify returns an error if the archive has another digest than the carrier's.
// Without a digest of the archive, each member must have its own.
func (c *carrier) verify(archive string) error {
	if c.sha256 == "" {
		return nil
	}
	digest, err := regular.SHA256(archive)
	if err != nil {
		return err
	}
	if digest != c.sha256 {
		return fmt.Errorf("expected SHA-256 %s, found %s", c.sha256, digest)
	}
	return nil
}

func (c *carrier) unpackZip(archive, folder string) error {
	files, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer files.Close()
	for _, m := range c.members {
		content, err := files.Open(m.Path)
		if err != nil {
			return err
		}
		err = errors.Join(m.place(folder, content), content.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *carrier) unpackTar(archive, folder string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	files := tar.NewReader(unzipped)
	missing := slices.Clone(c.members)
	for len(missing) > 0 {
		header, err := files.Next()
		if err == io.EOF {
			return fmt.Errorf("it has no file %s", missing[0].Path)
		}
		if err != nil {
			return err
		}
		at := slices.IndexFunc(missing, func(m member) bool { return m.Path == path.Clean(header.Name) })
		if at < 0 || header.Typeflag != tar.TypeReg {
			continue
		}
		err = missing[at].place(folder, files)
		if err != nil {
			return err
		}
		missing = slices.Delete(missing, at, at+1)
	}
	return nil
}

// place writes the member to folder, checks it, and syncs it to the disk.
func (m member) place(folder string, content io.Reader) error {
	file, err := os.OpenFile(filepath.Join(folder, m.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, hash), content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	if m.SHA256 != "" && digest != m.SHA256 {
		return fmt.Errorf("%s: expected SHA-256 %s, found %s", m.Path, m.SHA256, digest)
	}
	return nil
}
