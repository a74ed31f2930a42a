package ort

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"infill/lm/internal/onnx"
)

// useCUDA switches the runtime to a GPU, or returns an error that says exactly what is missing. At the end it runs a
// small graph on the GPU, because a provider that registers may still not work. The driver may be too old for the
// toolkit, the GPU too old for the kernels, or its memory full.
func (r *Runtime) useCUDA(ctx context.Context, index int) error {
	if err := diagnoseCUDA(r.library, index); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	on := r.settings
	on.cudaDevice = index
	trial := on
	trial.requireOnlyProvider = true
	if err := r.try(ctx, trial); err != nil {
		return fmt.Errorf("cuda: device %d does not compute: %w; CUDA 12 and cuDNN 9 must be where the loader finds "+
			"them (LD_LIBRARY_PATH, PATH on Windows)", index, err)
	}
	r.settings = on
	r.device = fmt.Sprintf("cuda:%d", index)
	return nil
}

// diagnoseCUDA looks for the driver and the CUDA provider. Its error names everything that is missing at once, to spare
// the user a download for each missing part.
func diagnoseCUDA(libraryPath string, index int) error {
	if runtime.GOARCH != "amd64" || (runtime.GOOS != "linux" && runtime.GOOS != "windows") {
		return fmt.Errorf("onnxruntime has no CUDA provider for %s/%s; use --device cpu", runtime.GOOS, runtime.GOARCH)
	}
	var problems []string
	if count, err := cudaDevices(); err != nil {
		problems = append(problems, err.Error())
	} else if index >= count {
		problems = append(problems, fmt.Sprintf("no device %d: the driver shows %d", index, count))
	}
	pattern := "libonnxruntime_providers_%s.so"
	if runtime.GOOS == "windows" {
		pattern = "onnxruntime_providers_%s.dll"
	}
	for _, part := range []string{"cuda", "shared"} {
		name := fmt.Sprintf(pattern, part)
		if _, err := os.Stat(filepath.Join(filepath.Dir(libraryPath), name)); err != nil {
			problems = append(problems, fmt.Sprintf("%s has no CUDA provider: %s is not beside it; run "+
				"`infill setup --cuda`", libraryPath, name))
			break
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// try adds 1 and 1, and 2 and 2, in a session with the given settings.
func (r *Runtime) try(ctx context.Context, with settings) error {
	s, err := r.newSession(trialModel(), SessionOptions{Inputs: []string{"x"}, Outputs: []string{"y"}}, with)
	if err != nil {
		return err
	}
	in, out := []float32{1, 2}, make([]float32, 2)
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

// FindGPU asks the NVIDIA driver for a GPU. If there is none, the error says why.
func FindGPU() error {
	count, err := cudaDevices()
	if err == nil && count == 0 {
		err = errors.New("the NVIDIA driver shows no GPU")
	}
	return err
}
