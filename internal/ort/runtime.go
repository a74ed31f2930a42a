// Package ort runs ONNX graphs with onnxruntime: one environment per process,
// devices, sessions, cancellation.
//
// Its file binding.go runs onnxruntime_go. Its subpackage library finds and
// fetches the shared library.
//
// Memory: a session works on the caller's slices, which are pinned while C code
// sees them. A call returns only when C code has finished with the slices, even
// if the context has ended. Close and the end of each run release everything
// that onnxruntime allocates.
package ort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"infill/internal/ort/library"
)

// Options say which library runs graphs, and on which device.
type Options struct {
	// LibraryPath is the path of the onnxruntime shared library: see Locate.
	LibraryPath string
	// Device is "auto" (the default: CUDA where it works, else the CPU), "cpu",
	// "cuda", or "cuda:N" for the N-th GPU.
	Device string
	// Threads is how many threads work on one node of a graph. If it is 0,
	// these are as many as Go uses, by the process's affinity and control
	// group. Every session has its own threads.
	Threads int

	warnings bool // for tests: onnxruntime writes to standard error; the first Open of a process decides
}

// Runtime is an onnxruntime library loaded into this process, with a device.
type Runtime struct {
	library  string
	version  string
	device   string
	note     string
	settings settings

	// open guards closed: sessions lock it for reading, Close for writing.
	open         sync.RWMutex
	closed       bool
	sessionsLock sync.Mutex
	sessions     map[*Session]struct{}
}

// environment is the only state of this process: onnxruntime allows one
// environment, and the binding one library, per process. The environment is
// never destroyed, because nobody knows which goroutine still holds a session.
var environment struct {
	sync.Mutex
	library string // absolute path; "" until an environment is made
	version string
}

// Open loads the onnxruntime library, once per process, and chooses the device.
// A second Open may choose another device and other options, but not another
// library. An error says what was found and what is wanted. The device "cuda"
// never falls back to the CPU.
func Open(ctx context.Context, o Options) (*Runtime, error) {
	device, index, err := parseDevice(o.Device)
	if err != nil {
		return nil, err
	}
	if o.Threads < 0 {
		return nil, fmt.Errorf("threads %d: give 0 (as many as the machine has) or more", o.Threads)
	}
	if o.Threads > MaxThreads() {
		return nil, fmt.Errorf("threads %d: more than four times the %d processors; give %d or fewer", o.Threads,
			runtime.NumCPU(), MaxThreads())
	}
	path, err := filepath.Abs(o.LibraryPath)
	if err != nil {
		return nil, err
	}
	version, err := load(path, o.warnings)
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		library:  path,
		version:  version,
		sessions: map[*Session]struct{}{},
		settings: settings{threads: cmp.Or(o.Threads, runtime.GOMAXPROCS(0)), warnings: o.warnings, cudaDevice: -1},
	}
	if device == "cpu" {
		r.device = "cpu"
		return r, nil
	}
	if err := r.useCUDA(ctx, index); err != nil {
		if device != "auto" || ctx.Err() != nil {
			return nil, cmp.Or(ctx.Err(), err)
		}
		r.device = "cpu"
		r.note = err.Error()
	}
	return r, nil
}

// Locate returns the path of the library for a device (see Options). If there
// is no library for the CPU, it downloads one, and reports that to progress
// unless that is nil. The CUDA build of onnxruntime is a file of its own, and a
// process can load only one library: if a library is already loaded, Locate
// returns that.
func Locate(ctx context.Context, device string, progress library.Progress) (string, error) {
	device, index, err := parseDevice(device)
	if err != nil {
		return "", err
	}
	environment.Lock()
	loaded := environment.library
	environment.Unlock()
	switch {
	case loaded != "":
		return loaded, nil
	case device == "cuda":
		found, err := library.Find(library.Options{CUDA: true})
		if errors.Is(err, library.ErrNotFound) {
			err = fmt.Errorf("cuda: %w; run `infill setup --cuda`, or use --device cpu", err)
		}
		return found.Path, err
	case device == "auto":
		// Look for the driver first: most machines have none, and then no CUDA
		// library can help.
		if count, err := cudaDevices(); err == nil && count > 0 {
			if found, err := library.Find(library.Options{CUDA: true}); err == nil &&
				prepareCUDA(found.Path, index) == nil {
				return found.Path, nil
			}
		}
	}
	found, err := library.Ensure(ctx, library.Options{Progress: progress})
	return found.Path, err
}

// load makes the environment, or checks that it has the requested library.
func load(path string, warnings bool) (version string, err error) {
	environment.Lock()
	defer environment.Unlock()
	if environment.library == path {
		return environment.version, nil
	}
	if environment.library != "" {
		return "", fmt.Errorf("%s: this process already runs onnxruntime %s from %s, and can load only one", path,
			environment.version, environment.library)
	}
	// From 1.29 on, published builds send usage data to their maker unless this
	// variable is set before they are loaded.
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return "", err
	}
	if err := checkLibrary(path); err != nil {
		return "", fmt.Errorf("onnxruntime library: %w", err)
	}
	if err := createEnvironment(path, warnings); err != nil {
		return "", fmt.Errorf("onnxruntime library: %s: %w", path, err)
	}
	environment.library = path
	environment.version = environmentVersion()
	return environment.version, nil
}

// checkLibrary returns an error for a file that the binding could not use. A
// usable library stays loaded.
func checkLibrary(path string) error {
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a file", path)
	}
	version, offers, err := probe(path)
	if err != nil {
		return fmt.Errorf("%s: %w; if it is in infill's cache, remove its folder, and `infill setup` fetches it again",
			path, err)
	}
	if !offers {
		return fmt.Errorf(
			"%s: found version %s, wanted %s or newer (C interface %d); run `infill setup`, or name another in %s",
			path, version, library.MinimumVersion, apiVersion, library.Variable)
	}
	return nil
}

// CheckDevice returns an error if no device has that name.
func CheckDevice(name string) error {
	_, _, err := parseDevice(name)
	return err
}

func parseDevice(name string) (device string, index int, err error) {
	device, number, numbered := strings.Cut(name, ":")
	switch {
	case name == "":
		return "auto", 0, nil
	case slices.Contains([]string{"auto", "cpu", "cuda"}, name):
		return device, 0, nil
	case numbered && device == "cuda":
		index, err = strconv.Atoi(number)
		if err == nil && index >= 0 && number == strconv.Itoa(index) {
			return device, index, nil
		}
	}
	return "", 0, fmt.Errorf("%q is not one of auto, cpu, cuda, or cuda:N with the number of a GPU", name)
}

// Version returns onnxruntime's version, such as "1.31.1".
func (r *Runtime) Version() string { return r.version }

// Device returns the device in use: "cpu" or "cuda:N".
func (r *Runtime) Device() string { return r.device }

// Note says in a line why "auto" chose the CPU, or "".
func (r *Runtime) Note() string { return r.note }

// Threads returns how many threads each session uses on the CPU.
func (r *Runtime) Threads() int { return r.settings.threads }

// MaxThreads returns the largest number of threads that [Options] accepts: with
// thousands, no run would ever end.
func MaxThreads() int { return 4 * runtime.NumCPU() }

// Close closes the open sessions. It waits for running calls, not for a session
// being made. The library stays loaded.
func (r *Runtime) Close() error {
	r.open.Lock()
	r.closed = true
	r.open.Unlock()

	r.sessionsLock.Lock()
	sessions := slices.Collect(maps.Keys(r.sessions))
	r.sessionsLock.Unlock()
	var err error
	for _, s := range sessions {
		err = errors.Join(err, s.Close())
	}
	return err
}
