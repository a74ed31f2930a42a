// Package library finds the onnxruntime shared library, and fetches it if there is none.
//
// Find looks, in this order, at INFILL_ONNXRUNTIME, beside the executable, in the cache folder, and at the Python
// package onnxruntime of the environment that the executable is installed in. If INFILL_ONNXRUNTIME names a library
// that is not usable, Find returns an error and tries nothing else.
//
// Fetch brings the wheel of release 1.31.1 (1.24.1 with CUDA) by Python's pip, which knows its registry, mirrors and
// proxies, and checks it against a pinned SHA-256 before it is unpacked. The cache holds one folder for each release,
// platform and variant:
//
//	<cache>/onnxruntime/1.31.1/linux-amd64/libonnxruntime.so
//	<cache>/onnxruntime/1.24.1/linux-amd64-cuda/...
//
// where <cache> is INFILL_CACHE, or infill's folder in the user's cache folder. A folder appears whole or not at all,
// and under a lock, so that of several processes one fetches and the others wait for it.
package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"infill/models"
)

// Variable names the environment variable that names a library.
const Variable = "INFILL_ONNXRUNTIME"

// ErrNotFound is wrapped by Find's error when no place has a usable library.
var ErrNotFound = errors.New("no usable onnxruntime library found")

// Options say which library to look for. The zero value is a library for the CPU.
type Options struct {
	// CUDA asks for a library with the CUDA provider's files beside it.
	CUDA bool
	// Progress takes a line at the start of a fetch and at its end. Nil: nothing.
	Progress io.Writer

	goos, goarch string // set by tests, with wheel; else the running program's
	wheel        *wheel
}

// Library describes a place for a library: whether it has a usable one, and if not, why.
type Library struct {
	Place   string // INFILL_ONNXRUNTIME, "beside the executable", "cache", "Python package"
	Path    string // absolute, of the file; if there is none, where it would be
	Version string // "1.31.1", from the name of the file or of the cache's folder; else empty
	Found   bool
	Usable  bool
	Named   bool   // INFILL_ONNXRUNTIME names it: nothing else is taken
	Reason  string // why it is not usable, one line; empty when it is
}

// MinimumVersion is the oldest usable onnxruntime: the binding speaks version 24 of the C interface, and each release
// offers its own version of the interface and all before it.
const MinimumVersion = "1.24.1"

// Serves reports whether a library of this version offers the C interface that the binding speaks.
// Only major and minor count: they number the interface. Windows libraries record a build date in place of the patch.
func Serves(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && major == 1 && minor >= 24
}

// Ensure finds a library, or fetches one. It fetches nothing when INFILL_ONNXRUNTIME names a library, good or bad.
func Ensure(ctx context.Context, o Options) (Library, error) {
	found, err := Find(o)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	return Fetch(ctx, o)
}

// Find returns the first usable library. Its error wraps ErrNotFound when no place has one, and lists the libraries
// that are not usable.
func Find(o Options) (Library, error) {
	places, err := survey(o)
	if err != nil {
		return Library{}, err
	}
	var passed []string
	for _, l := range places {
		switch {
		case l.Usable:
			return l, nil
		case l.Named:
			return Library{}, fmt.Errorf("%s=%s: %s; correct the variable, or unset it", l.Place, l.Path, l.Reason)
		case l.Found:
			passed = append(passed, l.Path+": "+l.Reason)
		}
	}
	err = fmt.Errorf("%w for %s", ErrNotFound, o.platform())
	if len(passed) > 0 {
		err = fmt.Errorf("%w; passed over: %s", err, strings.Join(passed, "; "))
	}
	return Library{}, err
}

// survey looks at every place, in Find's order.
func survey(o Options) ([]Library, error) {
	folder, err := o.folder()
	if err != nil {
		return nil, err
	}
	var list []Library
	if path := os.Getenv(Variable); path != "" {
		list = append(list, o.examine(Library{Place: Variable, Path: path, Named: true}))
	}
	python := Library{Place: "Python package"}
	if executable, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		bin := filepath.Dir(executable)
		home := filepath.Dir(bin)
		list = append(list, o.in(Library{Place: "beside the executable"}, bin))
		python = o.in(python, pythonFolders(home)...)
	}
	list = append(list, o.cached(folder))
	if python.Path != "" {
		list = append(list, python)
	}
	return list, nil
}

// in returns the library in the first of the folders that has one.
func (o Options) in(l Library, folders ...string) Library {
	pattern := cmp.Or(map[string]string{"windows": "onnxruntime.dll", "darwin": "libonnxruntime*.dylib"}[o.os()],
		"libonnxruntime.so*")
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err == nil && len(found) > 0 { // an error: the folder's name has a bracket
			l.Path = found[0]
			return o.examine(l)
		}
	}
	if len(folders) > 0 {
		l.Path, l.Reason = folders[0], "no onnxruntime library there"
	}
	return l
}

// pythonFolders are where the Python package onnxruntime keeps its library, of the environment
// into whose bin (Scripts on Windows) a wheel put the program.
func pythonFolders(environment string) (folders []string) {
	for _, packages := range []string{
		"lib*/python3*/site-packages", "local/lib/python3*/dist-packages", "lib/python3/dist-packages", // and of Debian
		"Lib/site-packages", "site-packages", ".", // Windows, Windows --user, pip install --target
	} {
		found, err := filepath.Glob(filepath.Join(environment, packages, "onnxruntime", "capi"))
		if err == nil { // else the folder's name has a bracket
			folders = append(folders, found...)
		}
	}
	return folders
}

// cached returns the library that Fetch put into a folder. Fetch has compared its SHA-256; if it was damaged later,
// loading it fails.
func (o Options) cached(folder string) Library {
	l := Library{Place: "cache", Path: filepath.Join(folder, FileName(o.os())), Version: o.version()}
	if _, err := os.Stat(l.Path); err != nil {
		l.Version, l.Reason = "", "nothing fetched yet"
		return l
	}
	return o.examine(l)
}

var versionInName = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+`)

// examine decides whether a file is usable, without loading it. Code that loads it asks it for its version.
func (o Options) examine(l Library) Library {
	status, err := os.Stat(l.Path)
	if err == nil {
		l.Path, err = filepath.Abs(l.Path)
	}
	if l.Version == "" {
		if resolved, err := filepath.EvalSymlinks(l.Path); err == nil {
			l.Version = versionInName.FindString(filepath.Base(resolved))
		}
	}
	l.Found = !errors.Is(err, os.ErrNotExist)
	provider := "libonnxruntime_providers_cuda.so"
	if o.os() == "windows" {
		provider = "onnxruntime_providers_cuda.dll"
	}
	_, missing := os.Stat(filepath.Join(filepath.Dir(l.Path), provider))
	switch {
	case !l.Found:
		l.Reason = "there is no such file"
	case err != nil:
		l.Reason = err.Error()
	case !status.Mode().IsRegular():
		l.Reason = "not a file"
	case l.Version != "" && !Serves(l.Version):
		l.Reason = fmt.Sprintf("found version %s, wanted %s or newer", l.Version, MinimumVersion)
	case o.CUDA && missing != nil:
		l.Reason = fmt.Sprintf("no CUDA provider (%s) beside it", provider)
	default:
		l.Usable = true
	}
	return l
}

func (o Options) os() string { return cmp.Or(o.goos, runtime.GOOS) }

func (o Options) arch() string { return cmp.Or(o.goarch, runtime.GOARCH) }

// version returns the version of the release that Fetch downloads.
func (o Options) version() string {
	if o.CUDA {
		return cudaVersion
	}
	return Version
}

// folder returns the cache folder of the requested variant.
func (o Options) folder() (string, error) {
	root, err := models.CacheDir()
	name := o.os() + "-" + o.arch()
	if o.CUDA {
		name += "-cuda"
	}
	return filepath.Join(root, "onnxruntime", o.version(), name), err
}

func (o Options) platform() string {
	if o.CUDA {
		return fmt.Sprintf("%s/%s with CUDA", o.os(), o.arch())
	}
	return o.os() + "/" + o.arch()
}

// FileName is the library's name in the cache.
func FileName(goos string) string {
	return cmp.Or(map[string]string{"windows": "onnxruntime.dll", "darwin": "libonnxruntime.dylib"}[goos],
		"libonnxruntime.so")
}
