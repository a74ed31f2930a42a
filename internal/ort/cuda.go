package ort

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"infill/internal/onnx"
)

// useCUDA switches the runtime to a GPU, or returns an error that says exactly
// what is missing. At the end it runs a small graph on the GPU, because a
// provider that registers may still not work. The driver may be too old for the
// toolkit, the GPU too old for the kernels, or its memory full.
func (r *Runtime) useCUDA(ctx context.Context, index int) error {
	err := prepareCUDA(r.library, index)
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	on := r.settings
	on.cudaDevice = index
	trial := on
	trial.requireOnlyProvider = true
	err = r.try(ctx, trial)
	if err != nil {
		return fmt.Errorf("cuda: device %d does not compute: %w", index, err)
	}
	r.settings = on
	r.device = fmt.Sprintf("cuda:%d", index)
	return nil
}

// prepareCUDA looks for the driver and for the CUDA provider, and loads the
// libraries of CUDA and cuDNN that the provider needs. Its error names
// everything that is missing at once, to spare the user a download for each
// missing part.
func prepareCUDA(libraryPath string, index int) error {
	if runtime.GOARCH != "amd64" || (runtime.GOOS != "linux" && runtime.GOOS != "windows") {
		return fmt.Errorf("onnxruntime has no CUDA provider for %s/%s; use --device cpu", runtime.GOOS, runtime.GOARCH)
	}
	var lines []string
	for _, err := range []error{findDevice(index), prepareProvider(libraryPath)} {
		if err != nil {
			lines = append(lines, err.Error())
		}
	}
	if len(lines) > 0 {
		return errors.New(strings.Join(lines, "; "))
	}
	return nil
}

// prepareProvider looks for the CUDA provider, and loads what it needs.
func prepareProvider(libraryPath string) error {
	provider, err := findProvider(libraryPath)
	if err != nil || runtime.GOOS != "linux" {
		return err
	}
	needed, err := toolkitOf(provider)
	if err != nil {
		return err
	}
	return needed.preload(wheelFolders())
}

// findDevice returns an error if the driver does not show a GPU of that number.
func findDevice(index int) error {
	count, err := cudaDevices()
	if err != nil {
		return err
	}
	if index >= count {
		return fmt.Errorf("no device %d: the driver shows %d", index, count)
	}
	return nil
}

// findProvider returns the CUDA provider's path, beside the library.
func findProvider(libraryPath string) (string, error) {
	pattern := "libonnxruntime_providers_%s.so"
	if runtime.GOOS == "windows" {
		pattern = "onnxruntime_providers_%s.dll"
	}
	for _, part := range []string{"cuda", "shared"} {
		name := fmt.Sprintf(pattern, part)
		_, err := os.Stat(filepath.Join(filepath.Dir(libraryPath), name))
		if err != nil {
			return "", fmt.Errorf("%s has no CUDA provider: %s is not beside it; run `infill setup --cuda`",
				libraryPath, name)
		}
	}
	return filepath.Join(filepath.Dir(libraryPath), fmt.Sprintf(pattern, "cuda")), nil
}

// try adds 1 and 1, and 2 and 2, in a session with the given settings.
func (r *Runtime) try(ctx context.Context, with settings) error {
	s, err := r.newSession(trialModel(), SessionOptions{Inputs: []string{"x"}, Outputs: []string{"y"}}, with)
	if err != nil {
		return err
	}
	in := []float32{1, 2}
	out := make([]float32, 2)
	err = s.Run(ctx, []Tensor{Float32([]int64{2}, in)}, []Tensor{Float32([]int64{2}, out)})
	if err == nil && (out[0] != 2 || out[1] != 4) {
		err = fmt.Errorf("1+1, 2+2 gave %v", out)
	}
	return errors.Join(err, s.Close())
}

// trialModel returns the ONNX graph y = x + x over two float32.
func trialModel() []byte {
	g := onnx.New("trial")
	x := g.Input("x", onnx.Float, onnx.Fixed(2))
	g.Output("y", g.Add(x, x))
	model, err := g.Encode()
	if err != nil {
		panic(err) // only a bug in trialModel leads here
	}
	return model
}

// FindGPU asks the NVIDIA driver for a GPU; an error says why there is none.
func FindGPU() error {
	count, err := cudaDevices()
	if err == nil && count == 0 {
		err = errors.New("the NVIDIA driver shows no GPU")
	}
	return err
}
