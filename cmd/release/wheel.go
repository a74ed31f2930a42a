package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"infill/infill"
)

//go:embed metadata.txt
var metadata string

// number is the version as Python writes it: 0.4.0.dev0 for 0.4.0-dev.
var number = strings.ReplaceAll(infill.Number, "-dev", ".dev0")

// wheel makes the wheel: the Python package, the program as a script, and
// metadata for installers.
// https://packaging.python.org/en/latest/specifications/binary-distribution-format/
func wheel(program file, tag string) (file, error) {
	readme, err := os.ReadFile(filepath.Join("python", "README.md"))
	if err != nil {
		return file{}, err
	}
	files, err := read("python", "infill/*.py", "infill/py.typed")
	if err != nil {
		return file{}, err
	}
	info := fmt.Sprintf("infill-%s.dist-info/", number)
	licences, err := read(".", "LICENSE", "NOTICE")
	if err != nil {
		return file{}, err
	}
	for _, licence := range licences {
		licence.name = info + "licenses/" + licence.name
		files = append(files, licence)
	}
	program.name = fmt.Sprintf("infill-%s.data/scripts/%s", number, program.name)
	files = append(files, program,
		file{info + "METADATA", fmt.Appendf(nil, metadata, number, readme), false},
		file{info + "WHEEL", fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: infill cmd/release\nRoot-Is-Purelib: "+
			"false\nTag: py3-none-%s\n", tag), false})
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	files = append(files, file{info + "RECORD", []byte(record.String()), false})
	content, err := zipped(files)
	return file{fmt.Sprintf("infill-%s-py3-none-%s.whl", number, tag), content, false}, err
}

// read reads the files of a folder that match, named relative to it.
func read(folder string, patterns ...string) (files []file, err error) {
	root := os.DirFS(folder)
	for _, pattern := range patterns {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			content, err := fs.ReadFile(root, name)
			if err != nil {
				return nil, err
			}
			files = append(files, file{name, content, false})
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no %s: run this in the repository's root", folder, strings.Join(patterns, ", "))
	}
	return files, nil
}

// published is every file's time: a wheel's bytes depend on no clock.
var published = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func zipped(files []file) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: published}
		header.SetMode(0o644)
		if f.program {
			header.SetMode(0o755)
		}
		w, err := z.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// wheelTag returns the tag of the platform for installers; on Linux, it has the
// newest glibc that the program needs.
func (r *release) wheelTag(program string) (string, error) {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[r.arch]
	switch r.os {
	case "windows":
		return "win_" + r.arch, nil
	case "darwin":
		return map[string]string{"amd64": "macosx_11_0_x86_64", "arm64": "macosx_11_0_arm64"}[r.arch], nil
	}
	f, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return "", err
	}
	newest := [2]int{2, 17}
	for _, s := range symbols {
		var v [2]int
		n, _ := fmt.Sscanf(s.Version, "GLIBC_%d.%d", &v[0], &v[1])
		if n == 2 && slices.Compare(v[:], newest[:]) > 0 {
			newest = v
		}
	}
	return fmt.Sprintf("manylinux_%d_%d_%s", newest[0], newest[1], cmp.Or(machine, r.arch)), nil
}
