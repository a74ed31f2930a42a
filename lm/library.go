package lm

import (
	"context"
	"io"

	"infill/lm/internal/ort"
	"infill/lm/internal/ort/library"
)

// LibraryVariable is the environment variable that names an onnxruntime library.
const LibraryVariable = library.Variable

// Library is an onnxruntime library that serves.
type Library struct {
	Path    string // absolute
	Version string // "1.24.1"; empty when a library named by the user records none
	Place   string // where it was found, as LibraryPlace.Name
}

// LocateLibrary is the path of the library for a device (see [Options]). The CPU's is fetched where there is none; progress takes what
// that tells the user, nil: nothing. A process can load only one library: what it runs already stays.
func LocateLibrary(ctx context.Context, device string, progress io.Writer) (string, error) {
	return ort.Locate(ctx, device, progress)
}

// EnsureLibrary finds a library, for CUDA or the CPU, or fetches one. It fetches nothing where [LibraryVariable] names one, good or bad.
func EnsureLibrary(ctx context.Context, cuda bool, progress io.Writer) (Library, error) {
	found, err := library.Ensure(ctx, library.Options{CUDA: cuda, Progress: progress})
	return Library{found.Path, found.Version, found.Place}, err
}

// LibraryPlace is a place that was looked at for a library.
type LibraryPlace struct {
	Name    string // INFILL_ONNXRUNTIME, "beside the executable", "cache", "system"
	Path    string // the file; where there is none, the folder, or the file that is missing
	Found   bool
	Version string // as the file records it
	Usable  bool
	Reason  string // why it is not usable, one line; empty when it is
	Mend    string // what the user can do about it, one line; empty when there is nothing to do
}

// SurveyLibraries looks at every place, also behind the first that serves, and verifies the cached files whole. Where no library serves,
// its Path is empty and mend says in one line how to get one.
func SurveyLibraries(ctx context.Context) (places []LibraryPlace, serves Library, mend string, err error) {
	report, err := library.Survey(ctx, library.Options{})
	for _, p := range report.Places {
		places = append(places, LibraryPlace(p))
	}
	return places, Library{report.Library.Path, report.Library.Version, report.Library.Place}, report.Mend, err
}

// CUDADevice is the GPU that the library at path runs on, "cuda:N"; the error says why it runs on none.
func CUDADevice(ctx context.Context, path string) (string, error) {
	r, err := ort.Open(ctx, ort.Options{LibraryPath: path, Device: "cuda"})
	if err != nil {
		return "", err
	}
	return r.Device(), r.Close()
}
