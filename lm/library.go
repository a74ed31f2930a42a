package lm

import (
	"context"

	"infill/lm/internal/ort"
	"infill/lm/internal/ort/library"
)

// Library describes a place where an onnxruntime library may be: a usable
// library, or the reason why there is none.
type Library = library.Library

// FetchProgress observes how a library is fetched.
type FetchProgress = library.Progress

// FetchLines is a FetchProgress that writes lines.
type FetchLines = library.Lines

// LocateLibrary returns the path of the library for a device (see
// Options.Device). If the CPU's library is missing, it downloads it, and
// reports that to progress, unless progress is nil. A process can load only one
// library: if one is loaded already, LocateLibrary returns its path.
func LocateLibrary(ctx context.Context, device string, progress FetchProgress) (string, error) {
	return ort.Locate(ctx, device, progress)
}

// FindLibrary finds the library for the CPU, and never downloads one.
func FindLibrary() (Library, error) { return library.Find(library.Options{}) }

// EnsureLibrary finds a library for the device "cpu" or "cuda", or downloads
// one. If INFILL_ONNXRUNTIME names a library, it never downloads.
func EnsureLibrary(ctx context.Context, device string, progress FetchProgress) (Library, error) {
	return library.Ensure(ctx, library.Options{CUDA: device == "cuda", Progress: progress})
}

// CheckLimits returns an error if a limit of the process is too low for any
// model. Where memory is short, Go's own threads may end the process before
// onnxruntime could report it, so call CheckLimits first.
func CheckLimits() error { return ort.CheckLimits() }

// FindGPU asks the NVIDIA driver for a GPU. If there is none, the error says
// why.
func FindGPU() error { return ort.FindGPU() }
