package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
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

// materials lists the modules that the program is built of, as CycloneDX writes it.
// https://cyclonedx.org/docs/1.6/json/
func (r *release) materials(info *debug.BuildInfo) (file, error) {
	type component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		Purl    string `json:"purl,omitempty"`
	}
	type metadata struct {
		Component component `json:"component"`
	}
	list := struct {
		Format       string      `json:"bomFormat"`
		Specified    string      `json:"specVersion"`
		SerialNumber string      `json:"serialNumber"`
		Version      int         `json:"version"`
		Metadata     metadata    `json:"metadata"`
		Components   []component `json:"components"`
	}{Format: "CycloneDX", Specified: "1.6", Version: 1,
		Metadata: metadata{component{"application", "infill", r.version, ""}}}
	list.Components = []component{{"library", "go", info.GoVersion, "pkg:golang/stdlib@" + info.GoVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list.Components = append(list.Components,
			component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	// A number that only depends on what is listed.
	parts, err := json.Marshal(list)
	if err != nil {
		return file{}, err
	}
	sum := sha256.Sum256(parts)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	list.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	content, err := json.MarshalIndent(list, "", "  ")
	return file{r.baseName() + ".cdx.json", append(content, '\n'), false}, err
}
