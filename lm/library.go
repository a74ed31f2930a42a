package lm

import (
	"context"
	"io"
	"slices"
	"time"

	"infill/lm/internal/ort"
	"infill/lm/internal/ort/library"
	"infill/models"
)

// Library describes a place where an onnxruntime library may be: a usable library, or what was found instead.
type Library library.Library

// LocateLibrary returns the path of the library for a device (see Options). It fetches the CPU's library if
// there is none, and writes the progress to progress if that is not nil. A process can load only one library: if
// it has one, that stays.
func LocateLibrary(ctx context.Context, device string, progress io.Writer) (string, error) {
	return ort.Locate(ctx, device, progress)
}

// FindLibrary finds the library for the CPU, and fetches nothing.
func FindLibrary(ctx context.Context) (Library, error) {
	found, err := library.Find(ctx, library.Options{})
	return Library(found), err
}

// EnsureLibrary finds a library for the device "cpu", "cuda" or "openvino", or fetches one. If
// INFILL_ONNXRUNTIME names a library, it never fetches.
func EnsureLibrary(ctx context.Context, device string, progress io.Writer) (Library, error) {
	found, err := library.Ensure(ctx,
		library.Options{CUDA: device == "cuda", OpenVINO: device == openVINO, Progress: progress})
	return Library(found), err
}

// SurveyLibraries looks at every place, also after the first usable library, and verifies the cached files
// completely. If no library is usable, serves is the zero Library, and mend says in one line how to get one.
func SurveyLibraries(ctx context.Context) (places []Library, serves Library, mend string, err error) {
	looked, found, mend, err := library.Survey(ctx, library.Options{})
	for _, l := range looked {
		places = append(places, Library(l))
	}
	return places, Library(found), mend, err
}

// CUDADevice returns the GPU that the library can use, "cuda:N"; the error says why there is none.
func (l Library) CUDADevice(ctx context.Context) (string, error) {
	r, err := ort.Open(ctx, ort.Options{LibraryPath: l.Path, Device: "cuda"})
	if err != nil {
		return "", err
	}
	return r.Device(), r.Close()
}

// OpenVINOVersion is the version of OpenVINO that EnsureLibrary fetches for the device "openvino".
const OpenVINOVersion = library.OpenVINOVersion

// OpenVINO returns the library with OpenVINO in the cache folder; Found is false if there is none. The device
// "auto" takes it if faster, a measured ratio of rates, is well above 1; 0 means not measured.
func OpenVINO(ctx context.Context) (found Library, faster float64, taken bool) {
	l, err := library.Find(ctx, library.Options{OpenVINO: true})
	if err != nil {
		return Library{Reason: err.Error()}, 0, false
	}
	if m, ok := library.MeasuredOf(l.Path); ok {
		faster = m.OpenVINO / m.CPU
	}
	return Library(l), faster, library.OpenVINOFaster(l.Path)
}

// MeasureOpenVINO compares the speed of energies on OpenVINO and on onnxruntime's own kernels, in single
// precision, for some seconds in turn. It returns rows a second of each, and stores the result for the device
// "auto".
func (l Library) MeasureOpenVINO(ctx context.Context, bundle *models.Bundle,
	mask int) (openvino, cpu float64, err error) {
	const slots, tokens, chains, rounds = 4, 24, 25, 5
	ids, states := make([]int, tokens), make([]int, slots*chains)
	for i := range ids {
		ids[i] = (mask + 1 + i*7) % bundle.Config.VocabularySize
	}
	support, at := make([][]int, slots), make([]int, slots)
	for j := range slots {
		at[j] = 2 + 5*j
		for k := range 250 {
			support[j] = append(support[j], (mask+1+k*11)%bundle.Config.VocabularySize)
		}
	}
	var rates [2]float64
	var seconds [2][]float64
	var ready [2]*MaskedLM
	for i, device := range []string{openVINO, "cpu"} {
		if ready[i], err = Open(ctx, bundle, Options{Device: device, MaskID: mask, Library: l.Path}); err != nil {
			return 0, 0, err
		}
		defer ready[i].Close()
	}
	for round := range rounds + 1 {
		for i, m := range ready {
			for k := range states { // nothing is remembered from the last round
				states[k] = (k*31 + round*97) % 250
			}
			target, err := m.NewTarget(ids, at, TargetOptions{Support: support, Gradient: Local})
			if err != nil {
				return 0, 0, err
			}
			start := time.Now()
			if err := target.Energy(ctx, states, make([]float64, chains)); err != nil {
				return 0, 0, err
			}
			if round > 0 { // the first compiles
				seconds[i] = append(seconds[i], time.Since(start).Seconds())
			}
		}
	}
	for i := range rates {
		slices.Sort(seconds[i])
		rates[i] = slots * chains / seconds[i][rounds/2]
	}
	return rates[0], rates[1], library.Measured{OpenVINO: rates[0], CPU: rates[1]}.Write(l.Path)
}

// FindGPU asks the NVIDIA driver for a GPU; the error says why there is none.
func FindGPU() error { return ort.FindGPU() }
