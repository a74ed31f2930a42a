package lm

import (
	"context"
	"io"

	"infill/lm/internal/ort"
	"infill/lm/internal/ort/library"
)

// Library describes a place where an onnxruntime library may be: a usable library, or what was found instead.
type Library = library.Library

// LocateLibrary returns the path of the library for a device (see Options). It fetches the CPU's library if
// there is none, and writes the progress to progress if that is not nil. A process can load only one library: if
// it has one, that stays.
func LocateLibrary(ctx context.Context, device string, progress io.Writer) (string, error) {
	return ort.Locate(ctx, device, progress)
}

// FindLibrary finds the library for the CPU, and fetches nothing.
func FindLibrary() (Library, error) { return library.Find(library.Options{}) }

// EnsureLibrary finds a library for the device "cpu" or "cuda", or fetches one. If
// INFILL_ONNXRUNTIME names a library, it never fetches.
func EnsureLibrary(ctx context.Context, device string, progress io.Writer) (Library, error) {
	return library.Ensure(ctx, library.Options{CUDA: device == "cuda", Progress: progress})
}

// FindGPU asks the NVIDIA driver for a GPU; the error says why there is none.
func FindGPU() error { return ort.FindGPU() }
