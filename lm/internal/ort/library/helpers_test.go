package library

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// childVariable makes the test binary act as a program of its own.
const childVariable = "INFILL_LIBRARY_TEST_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(childVariable); task != "" {
		child(task)
		return
	}
	os.Exit(m.Run())
}

// child does what a test asks of another process, and prints the outcome.
func child(task string) {
	ctx := context.Background()
	var request struct {
		Do, CacheDir, Source, SHA256 string
	}
	if err := json.Unmarshal([]byte(task), &request); err != nil {
		fmt.Println("error:", err)
		return
	}
	o := Options{CacheDir: request.CacheDir}
	var found Library
	var err error
	switch request.Do {
	case "find":
		found, err = Find(ctx, o)
	case "fetch":
		o.pins = []pin{{source: request.Source, name: "onnxruntime", tag: "any", sha256: request.SHA256,
			members: []member{{path: "onnxruntime/capi/library", as: FileName(runtime.GOOS)}}}}
		found, err = Fetch(ctx, o)
	}
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(found.Place, found.Version, found.Path)
}

// compiled makes a shared library that says it is a version of onnxruntime, for this machine; "" for one that does not
// say.
func compiled(t testing.TB, version string) []byte {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the fake libraries are ELF files with a symbol version")
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	folder := t.TempDir()
	code, script, path := filepath.Join(folder, "fake.c"), filepath.Join(folder, "fake.map"),
		filepath.Join(folder, "fake.so")
	write(t, code, []byte("int OrtGetApiBase(void) { return 0; }"))
	arguments := []string{"-shared", "-fPIC", "-nostdlib", "-o", path, code}
	if version != "" {
		write(t, script, []byte("VERS_"+version+" { global: OrtGetApiBase; local: *; };"))
		arguments = append(arguments, "-Wl,--version-script="+script)
	}
	if output, err := exec.Command(compiler, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	library, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return library
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

type entry struct {
	name string
	data []byte
	mode fs.FileMode // 0: a file
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		header.SetMode(0o644 | e.mode)
		w, err := archive.CreateHeader(header)
		if err == nil {
			_, err = w.Write(e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarred(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.data)), Typeflag: tar.TypeReg}
		if e.mode&fs.ModeSymlink != 0 {
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, string(e.data), 0
		}
		err := archive.WriteHeader(header)
		if err == nil && header.Size > 0 {
			_, err = archive.Write(e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// at are candidates in a fixed order.
func at(list ...candidate) func(context.Context, Options) iter.Seq[candidate] {
	return func(context.Context, Options) iter.Seq[candidate] { return slices.Values(list) }
}

// sourceFunc is a source made of a function.
type sourceFunc func(ctx context.Context, pin pin, folder string, show *progress) (brought, error)

func (f sourceFunc) bring(ctx context.Context, pin pin, folder string, show *progress) (brought, error) {
	return f(ctx, pin, folder, show)
}

func wantOneLine(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	if strings.ContainsAny(err.Error(), "\n\r\t") {
		t.Errorf("more than one line: %q", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// wantNothingLeft checks that a fetch left neither folders nor temporary files, only its lock.
func wantNothingLeft(t *testing.T, cacheDir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(cacheDir, "onnxruntime", Version))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != ".lock" {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
}

// script puts an executable shell script on a PATH of its own, with the system's tools behind it.
func script(t *testing.T, name, body string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake clients are shell scripts")
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, name), []byte("#!/bin/sh\n"+body+"\n"))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+toolsOnly(t))
}

// toolsOnly is a PATH with a shell's tools and no package client.
func toolsOnly(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, tool := range []string{"sh", "cp", "cat", "sleep", "mkdir", "echo", "env", "kill"} {
		if path, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(path, filepath.Join(folder, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}
