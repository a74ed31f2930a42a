package lm

import (
	"context"
	"io"

	"infill/lm/internal/ort"
	"infill/lm/internal/ort/library"
)

// Library is what a place has for running models: an onnxruntime library that serves, or what was found instead of one.
type Library struct {
	Place   string // INFILL_ONNXRUNTIME, "beside the executable", "cache", "system"
	Path    string // of the file; where there is none, of the folder, or of the file that is missing
	Found   bool
	Version string // "1.31.1", as the file records it; empty when a library named by the user records none
	Usable  bool
	Named   bool   // by INFILL_ONNXRUNTIME: nothing else is taken
	Reason  string // why it is not usable, one line; empty when it is
	Mend    string // what the user can do about it, one line; empty when there is nothing to do
}

// LocateLibrary is the path of the library for a device (see [Options]). The CPU's is fetched where there is none; progress takes what
// that tells the user, nil: nothing. A process can load only one library: what it runs already stays.
func LocateLibrary(ctx context.Context, device string, progress io.Writer) (string, error) {
	return ort.Locate(ctx, device, progress)
}

// EnsureLibrary finds a library, for CUDA or the CPU, or fetches one. It fetches nothing where INFILL_ONNXRUNTIME names one, good or bad.
func EnsureLibrary(ctx context.Context, cuda bool, progress io.Writer) (Library, error) {
	found, err := library.Ensure(ctx, library.Options{CUDA: cuda, Progress: progress})
	return Library(found), err
}

// SurveyLibraries looks at every place, also behind the first that serves, and verifies the cached files whole. Where no library serves,
// that is the zero Library, and mend says in one line how to get one.
func SurveyLibraries(ctx context.Context) (places []Library, serves Library, mend string, err error) {
	looked, found, mend, err := library.Survey(ctx, library.Options{})
	for _, l := range looked {
		places = append(places, Library(l))
	}
	return places, Library(found), mend, err
}

// CUDADevice is the GPU that the library runs on, "cuda:N"; the error says why it runs on none.
func (l Library) CUDADevice(ctx context.Context) (string, error) {
	r, err := ort.Open(ctx, ort.Options{LibraryPath: l.Path, Device: "cuda"})
	if err != nil {
		return "", err
	}
	return r.Device(), r.Close()
}
