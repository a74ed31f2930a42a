// Package library finds the onnxruntime shared library, or fetches it.
//
// Find looks, in this order, at INFILL_ONNXRUNTIME, beside the executable, in
// the cache folder, at the Python package onnxruntime of the environment that the
// executable is installed in, and in the Go module of the binding, which has
// libraries for some platforms. If INFILL_ONNXRUNTIME names a library
// that is not usable, Find returns an error and tries nothing else.
//
// Fetch tries, in this order, Python's pip (release 1.31.1), the publisher's
// own release (1.24.4) and Node's npm (1.24.3). It checks what arrives against
// a pinned SHA-256. The cache holds one folder for each release, platform and
// variant:
//
//	<cache>/onnxruntime/1.31.1/linux-amd64/libonnxruntime.so
//	<cache>/onnxruntime/1.31.1/linux-amd64-cuda/...
//
// where <cache> is INFILL_CACHE, or infill's folder in the user's cache folder.
// A folder appears whole or not at all, and under a lock: of several processes,
// one fetches and the others wait. Of several releases, Find takes the one that
// Fetch tries first.
package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"infill/models"
)

// Variable is the environment variable that names a library.
const Variable = "INFILL_ONNXRUNTIME"

// ErrNotFound is wrapped by Find's error if no place has a usable library.
var ErrNotFound = errors.New("no usable onnxruntime library found")

// Options say which library to look for, by default one for the CPU.
type Options struct {
	// CUDA asks for a library with the CUDA provider's files beside it.
	CUDA bool
	// Progress observes a fetch, unless it is nil.
	Progress Progress

	// A test may set another platform and other carriers.
	goos, goarch string
	list         []carrier
}

// Library describes a place to look for a library: whether the place has a
// usable library, and if not, why.
type Library struct {
	Place   string // INFILL_ONNXRUNTIME, "beside the executable", "cache", "Python package", "Go module"
	Path    string // absolute path of the file, or, if there is none, of the file or folder that was tried
	Version string // "1.31.1", from the name of the file or of the cache's folder; "" if unknown
	Found   bool
	Usable  bool
	Named   bool   // INFILL_ONNXRUNTIME names it, so that no other place counts
	Reason  string // one line that says why it is not usable; "" if it is
}

// MinimumVersion is the oldest usable onnxruntime, with version 24 of the C
// interface, which newer ones offer, too.
const MinimumVersion = "1.24.1"

// Serves reports whether a library of this version offers the C interface that
// the binding needs. Only major and minor count: they number the interface.
// Windows libraries record a build date in place of the patch.
func Serves(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && major == 1 && minor >= 24
}

// Ensure finds a library, or downloads one. If INFILL_ONNXRUNTIME names a
// library, Ensure downloads nothing.
func Ensure(ctx context.Context, o Options) (Library, error) {
	found, err := Find(o)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	return Fetch(ctx, o)
}

// Find returns the first usable library. If no place has a usable library, the
// error wraps ErrNotFound and lists the libraries that are not usable.
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

// survey examines every place, in the order of Find.
func survey(o Options) ([]Library, error) {
	shelf, err := shelf()
	if err != nil {
		return nil, err
	}
	var list []Library
	if path := os.Getenv(Variable); path != "" {
		list = append(list, o.examine(Library{Place: Variable, Path: path, Named: true}))
	}
	python := Library{Place: "Python package"}
	if bin := programFolder(); bin != "" {
		list = append(list, o.in(Library{Place: "beside the executable"}, bin))
		var folders []string
		for _, packages := range PythonPackages(ProgramEnvironment()) {
			folder := filepath.Join(packages, "onnxruntime", "capi")
			_, missing := os.Stat(folder)
			if missing != nil {
				continue
			}
			folders = append(folders, folder)
		}
		python = o.in(python, folders...)
	}
	carriers := o.carriers()
	for i := range carriers {
		list = append(list, o.cached(&carriers[i], shelf))
	}
	if python.Path != "" {
		list = append(list, python)
	}
	if !slices.ContainsFunc(list, func(l Library) bool { return l.Usable }) { // as its digest takes time
		list = append(list, o.inModule())
	}
	return list, nil
}

// in completes l with the library of the first folder that has one, or why not.
func (o Options) in(l Library, folders ...string) Library {
	pattern := cmp.Or(map[string]string{"windows": "onnxruntime.dll", "darwin": "libonnxruntime*.dylib"}[o.os()],
		"libonnxruntime.so*")
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err == nil && len(found) > 0 { // err means that the folder's name has a bracket
			l.Path = found[0]
			return o.examine(l)
		}
	}
	if len(folders) > 0 {
		l.Path = folders[0]
		l.Reason = "no onnxruntime library there"
	}
	return l
}

// programFolder returns the running program's folder, or "".
func programFolder() string {
	executable, err := os.Executable()
	if err != nil {
		return ""
	}
	resolved, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return filepath.Dir(executable)
	}
	return filepath.Dir(resolved)
}

// ProgramEnvironment returns the folder of the Python environment into whose
// bin (Scripts on Windows) a wheel would have put the running program, or "".
func ProgramEnvironment() string {
	bin := programFolder()
	if bin == "" {
		return ""
	}
	return filepath.Dir(bin)
}

// PythonPackages returns the folders of a Python environment's packages.
func PythonPackages(environment string) (folders []string) {
	for _, packages := range []string{
		"lib*/python3*/site-packages", "local/lib/python3*/dist-packages", "lib/python3/dist-packages", // also Debian's
		"Lib/site-packages", "site-packages", // Windows, Windows --user
	} {
		found, err := filepath.Glob(filepath.Join(environment, packages))
		if err != nil { // the folder's name has a bracket
			continue
		}
		folders = append(folders, found...)
	}
	// pip install --target puts packages beside bin, and notes there which it
	// has installed. Any other folder may be anybody's.
	noted, err := filepath.Glob(filepath.Join(environment, "infill-*.dist-info"))
	if err == nil && len(noted) > 0 {
		folders = append(folders, environment)
	}
	return folders
}

// cached returns the library that Fetch has put into a carrier's folder. Fetch has
// checked it: a file damaged later fails to load.
func (o Options) cached(c *carrier, shelf string) Library {
	l := Library{Place: "cache", Path: filepath.Join(o.folder(c, shelf), c.members[0].Name), Version: c.version}
	_, err := os.Stat(l.Path)
	if err != nil {
		l.Version = ""
		l.Reason = "nothing fetched yet"
		return l
	}
	return o.examine(l)
}

var versionInName = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+`)

// examine decides whether a file is usable, without loading it. The code that
// loads it later asks for the version.
func (o Options) examine(l Library) Library {
	status, err := os.Stat(l.Path)
	if absolute, failed := filepath.Abs(l.Path); failed == nil {
		l.Path = absolute
	}
	if resolved, failed := filepath.EvalSymlinks(l.Path); failed == nil && l.Version == "" {
		l.Version = versionInName.FindString(filepath.Base(resolved))
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

func (o Options) platform() platform { return platform{o.os(), o.arch(), o.CUDA} }

// carriers returns what brings the library, in the order in which to try.
func (o Options) carriers() []carrier {
	if o.list != nil {
		return o.list
	}
	return pins()[o.platform().folder()].carriers()
}

// shelf returns the folder of the cache that has all releases.
func shelf() (string, error) {
	root, err := models.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(root, "onnxruntime"))
}

// folder returns the cache's folder for a release and o's platform.
func (o Options) folder(c *carrier, shelf string) string {
	return filepath.Join(shelf, c.version, o.platform().folder())
}

func (o Options) progress() Progress {
	return cmp.Or[Progress](o.Progress, silent{})
}

func (o Options) say(format string, arguments ...any) {
	o.progress().Say(fmt.Sprintf(format, arguments...))
}
