package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Find returns the first library that serves. Its error wraps ErrNotFound when no place has one, and lists what was
// passed over.
func Find(ctx context.Context, o Options) (Library, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Library{}, err
	}
	var passed []string
	for c := range o.candidates(ctx, o) {
		if err := ctx.Err(); err != nil {
			return Library{}, err
		}
		seen := o.examine(c, false)
		switch {
		case seen.Usable:
			return seen, nil
		case c.named:
			return Library{}, fmt.Errorf("%s=%s: %s; %s", c.name, c.path, seen.Reason, seen.Mend)
		case seen.Found:
			passed = append(passed, seen.Path+": "+seen.Reason)
		}
	}
	if len(passed) > 0 {
		return Library{},
			fmt.Errorf("%w for %s; passed over: %s", ErrNotFound, o.platform(), strings.Join(passed, "; "))
	}
	return Library{}, fmt.Errorf("%w for %s", ErrNotFound, o.platform())
}

// Survey looks at every place, also behind the first that serves, and verifies the cached files whole. serves is what
// Find returns, the zero Library when it fails; mend says then in one line how to get a library.
func Survey(ctx context.Context, o Options) (places []Library, serves Library, mend string, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, serves, "", err
	}
	stopped := false
	for c := range o.candidates(ctx, o) {
		if err := ctx.Err(); err != nil {
			return places, serves, "", err
		}
		seen := o.examine(c, true)
		places = append(places, seen)
		if seen.Usable && !serves.Usable && !stopped {
			serves = seen
		}
		if c.named && !seen.Usable {
			stopped = true
			mend = seen.Mend
		}
	}
	if !serves.Usable && mend == "" {
		mend = o.mend()
	}
	return places, serves, mend, nil
}

func (o Options) mend() string {
	if _, name := o.provider(); name != "" {
		return fmt.Sprintf("run `infill setup --%s`, or name a library with the %s provider in %s",
			strings.ToLower(name), name, Variable)
	}
	return "run `infill setup`, or name a library in " + Variable
}

// candidate is a file that exists, or a place without one.
type candidate struct {
	name string
	path string
	// named: the user named this file, and nothing else will do.
	named bool
	// cached: a folder that Fetch made, with a manifest.
	cached bool
}

// candidates yields the candidates in Find's order, and looks no further than it is asked: the system's loader costs a
// process.
func candidates(ctx context.Context, o Options) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		if path := os.Getenv(Variable); path != "" && !yield(candidate{name: Variable, path: path, named: true}) {
			return
		}
		if executable, err := os.Executable(); err == nil {
			if resolved, err := filepath.EvalSymlinks(executable); err == nil {
				executable = resolved
			}
			folder := filepath.Dir(executable)
			beside := librariesIn("beside the executable", o.goos, folder, filepath.Join(folder, "lib"),
				filepath.Join(filepath.Dir(folder), "lib"))
			if packages := pythonFolders(filepath.Dir(folder)); len(packages) > 0 {
				beside = append(beside, librariesIn("Python package", o.goos, packages...)...)
			}
			for _, p := range beside {
				if !yield(p) {
					return
				}
			}
		}
		if !yield(candidate{name: "cache", path: filepath.Join(o.folder(), FileName(o.goos)), cached: true}) {
			return
		}
		for _, p := range librariesIn("system", o.goos, systemFolders(ctx, o)...) {
			if !yield(p) {
				return
			}
		}
	}
}

// librariesIn are the onnxruntime libraries in folders, or the first folder when there is none in any.
func librariesIn(name, goos string, folders ...string) []candidate {
	var found []candidate
	var seen []os.FileInfo
	for _, folder := range folders {
		pattern := map[string]string{"windows": "onnxruntime.dll", "darwin": "libonnxruntime*.dylib"}[goos]
		if pattern == "" {
			pattern = "libonnxruntime.so*"
		}
		entries, err := fs.Glob(os.DirFS(folder), pattern)
		if err != nil {
			continue // the patterns are good; a folder that cannot be read has nothing for us
		}
		for _, entry := range entries {
			path := filepath.Join(folder, entry)
			info, err := os.Stat(path) // links lead several names to one file
			if err != nil || info.IsDir() ||
				slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
				continue
			}
			seen = append(seen, info)
			found = append(found, candidate{name: name, path: path})
		}
	}
	if len(found) == 0 && len(folders) > 0 {
		return []candidate{{name: name, path: folders[0]}}
	}
	return found
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

// systemFolders are the folders in which the loader, or a package manager, keeps libraries.
func systemFolders(ctx context.Context, o Options) []string {
	var folders []string
	switch o.goos {
	case "windows":
		folders = append(folders, filepath.SplitList(os.Getenv("PATH"))...)
	case "darwin":
		folders = append(folders, filepath.SplitList(os.Getenv("DYLD_LIBRARY_PATH"))...)
		folders = append(folders, "/opt/homebrew/lib", "/usr/local/lib", "/opt/local/lib")
	default:
		folders = append(folders, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...)
		folders = append(folders, configured(ctx)...)
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[o.goarch]
		folders = append(folders, "/usr/local/lib", "/usr/lib/"+machine+"-linux-gnu", "/usr/lib64", "/usr/lib",
			"/opt/onnxruntime/lib")
	}
	return slices.DeleteFunc(folders, func(folder string) bool { return !filepath.IsAbs(folder) })
}

// configured asks ldconfig for the folders of the onnxruntime libraries that the loader knows.
func configured(ctx context.Context) []string {
	path, err := exec.LookPath("ldconfig")
	if err != nil {
		path = "/sbin/ldconfig" // seldom on a user's PATH
	}
	output, err := exec.CommandContext(ctx, path, "-p").Output()
	if err != nil {
		return nil // a system without ldconfig; the fixed folders remain
	}
	var folders []string
	for line := range bytes.Lines(output) {
		name, file, found := strings.Cut(string(line), " => ")
		if found && strings.HasPrefix(strings.TrimSpace(name), "libonnxruntime.so") {
			folders = append(folders, filepath.Dir(strings.TrimSpace(file)))
		}
	}
	return folders
}

// examine decides whether a candidate serves, without loading it. Thorough compares every cached file's digest, else
// only the library's: the CUDA provider alone has 370 MB.
func (o Options) examine(p candidate, thorough bool) Library {
	seen := Library{Place: p.name, Path: p.path, Named: p.named}
	status, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && status.IsDir() && !p.named) {
		seen.Reason = "no onnxruntime library there"
		if p.cached {
			seen.Reason = "nothing fetched yet"
		}
		if p.named {
			seen.Reason = "there is no such file"
			seen.Mend = "correct the variable, or unset it"
		}
		return seen
	}
	seen.Found = true
	fail := func(reason string) Library {
		seen.Reason = strings.TrimPrefix(reason, seen.Path+": ") // the place has the path
		switch {
		case p.named:
			seen.Mend = "correct the variable, or unset it"
		case p.cached:
			seen.Mend = o.mend()
		}
		return seen
	}
	if err != nil {
		return fail(err.Error())
	}
	path, err := filepath.Abs(p.path)
	if err != nil {
		return fail(err.Error())
	}
	seen.Path = path
	if p.cached {
		if _, err := verify(filepath.Dir(path), thorough); err != nil {
			return fail(err.Error())
		}
	}
	info, err := Inspect(path)
	if err != nil {
		return fail(err.Error())
	}
	seen.Version = info.Version
	if info.OS != o.goos || info.Arch != o.goarch {
		return fail(fmt.Sprintf("made for %s/%s, wanted %s/%s", info.OS, info.Arch, o.goos, o.goarch))
	}
	switch {
	case info.Version == "" && !p.named:
		return fail("records no version")
	case info.Version != "" && !Serves(info.Version):
		return fail(fmt.Sprintf("found version %s, wanted %s or newer", info.Version, MinimumVersion))
	}
	if file, name := o.provider(); name != "" {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), file)); err != nil {
			return fail(fmt.Sprintf("no %s provider (%s) beside it", name, file))
		}
	}
	seen.Usable = true
	return seen
}
