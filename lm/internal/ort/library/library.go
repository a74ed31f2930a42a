// Package library finds the onnxruntime shared library, and fetches it if there is none.
//
// Find looks, in this order, at INFILL_ONNXRUNTIME, beside the executable, in the Python environment of the executable,
// in the cache folder, and among the system's libraries. A file of a wrong version or platform is never taken: the
// error says what was passed over and why. A library named by INFILL_ONNXRUNTIME is the user's word; when it does not
// serve, that is an error, and nothing else is tried.
//
// Fetch brings release 1.31.1 (1.24.1 with CUDA) from the first source that works: the pip client (15 to 24
// MB), or onnxruntime's release page. Every file is checked against a pinned SHA-256 before it is unpacked, or, where
// the table has none, against the digest that the release publishes. No registry is named here:
// the clients know theirs, and their mirrors and proxies.
//
// The cache holds one folder for each release, platform and variant:
//
//	<cache>/onnxruntime/1.31.1/linux-amd64/{libonnxruntime.so,manifest.json}
//	<cache>/onnxruntime/1.24.1/linux-amd64-cuda/...
//
// where <cache> is INFILL_CACHE, or infill's folder in the user's cache folder. A folder appears whole or not at all,
// and under a lock, so that of several processes one fetches and the others wait for it.
package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime"
	"strings"

	"infill/models"
)

// Variable names the environment variable that names a library.
const Variable = "INFILL_ONNXRUNTIME"

// ErrNotFound is wrapped by Find's error when no place has a library that serves.
var ErrNotFound = errors.New("no usable onnxruntime library found")

// Options say what to look for and where. The zero value is right for a command without a terminal.
type Options struct {
	// CUDA asks for a library with the CUDA provider's files beside it.
	CUDA bool
	// CacheDir is the cache folder; empty: INFILL_CACHE, or infill's folder in the user's cache folder.
	CacheDir string
	// Progress takes what Fetch tells the user: moving on a terminal, else a line at the start and at the end. Nil:
	// nothing.
	Progress io.Writer

	// What the tests replace.
	goos, goarch string
	pins         []pin
	sources      map[string]source
	candidates   func(context.Context, Options) iter.Seq[candidate]
}

// Library is what a place has: a library that serves, or what was found instead of one.
type Library struct {
	Place   string // INFILL_ONNXRUNTIME, "beside the executable", "Python package", "cache", "system"
	Path    string // of the file; if there is none, of the folder, or of the file that is missing
	Found   bool
	Version string // "1.31.1", as the file records it; empty when a library named by the user records none
	Usable  bool
	Named   bool   // by INFILL_ONNXRUNTIME: nothing else is taken
	Reason  string // why it is not usable, one line; empty when it is
	Mend    string // what the user can do about it, one line; empty when there is nothing to do
}

// Ensure finds a library, or fetches one. It fetches nothing when INFILL_ONNXRUNTIME names a library, good or bad.
func Ensure(ctx context.Context, o Options) (Library, error) {
	found, err := Find(ctx, o)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	return Fetch(ctx, o)
}

func (o Options) withDefaults() (Options, error) {
	if o.goos == "" {
		o.goos, o.goarch = runtime.GOOS, runtime.GOARCH
	}
	if o.CacheDir == "" {
		root, err := models.CacheDir()
		if err != nil {
			return o, err
		}
		o.CacheDir = root
	}
	var err error
	if o.CacheDir, err = filepath.Abs(o.CacheDir); err != nil {
		return o, err
	}
	if o.pins == nil {
		o.pins = pins(o.goos, o.goarch, o.CUDA)
	}
	if o.sources == nil {
		o.sources = sources(o.variant().version)
	}
	if o.candidates == nil {
		o.candidates = candidates
	}
	return o, nil
}

// variant is a build of onnxruntime: the provider that it has beside the CPU, the file of that, and its version.
type variant struct{ name, provider, version string }

func (o Options) variant() variant {
	if o.CUDA {
		return variant{"CUDA", "onnxruntime_providers_cuda", cudaVersion}
	}
	return variant{version: Version}
}

// folder is the cache folder of the variant asked for.
func (o Options) folder() string {
	name := o.goos + "-" + o.goarch
	if v := o.variant(); v.name != "" {
		name += "-" + strings.ToLower(v.name)
	}
	return filepath.Join(o.CacheDir, "onnxruntime", o.variant().version, name)
}

func (o Options) platform() string {
	if v := o.variant(); v.name != "" {
		return fmt.Sprintf("%s/%s with %s", o.goos, o.goarch, v.name)
	}
	return o.goos + "/" + o.goarch
}

// provider is the file that holds the provider asked for, and its name; none for a library that runs on the CPU by
// itself.
func (o Options) provider() (file, name string) {
	v := o.variant()
	switch {
	case v.name == "":
		return "", ""
	case o.goos == "windows":
		return v.provider + ".dll", v.name
	}
	return "lib" + v.provider + ".so", v.name
}
