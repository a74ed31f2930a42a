package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
)

// archive makes the archive of the program, the library and the texts that go with them: .zip
// for Windows, .tar.gz elsewhere.
func (r *release) archive(program file) (file, error) {
	files, err := r.read(".", ".", "README.md", "LICENSE", "NOTICE", "CHANGELOG.md")
	if err != nil {
		return file{}, err
	}
	files = append([]file{program}, files...)
	if r.library != "" {
		content, err := os.ReadFile(r.library)
		if err != nil {
			return file{}, err
		}
		files = append(files, file{"lib/" + filepath.Base(r.library), content, false})
	}
	for i := range files {
		files[i].name = r.baseName() + "/" + files[i].name
	}
	if r.os == "windows" {
		content, err := zipped(files)
		return file{r.baseName() + ".zip", content, false}, err
	}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	t := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: int64(f.mode()), ModTime: published,
			Format: tar.FormatPAX}
		if err := t.WriteHeader(header); err != nil {
			return file{}, err
		}
		if _, err := t.Write(f.content); err != nil {
			return file{}, err
		}
	}
	if err := t.Close(); err != nil {
		return file{}, err
	}
	err = compressed.Close()
	return file{r.baseName() + ".tar.gz", out.Bytes(), false}, err
}
