package ort

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"infill/lm/internal/onnx"
)

// useCUDA switches the runtime to a GPU, or says exactly what is missing. It ends with a run on the GPU, because a
// provider that registers may still not work (a driver too old for the toolkit, a GPU too old for the kernels, no free
// memory).
func (r *Runtime) useCUDA(ctx context.Context, index int) error {
	if err := diagnoseCUDA(r.library, index); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	on := r.settings
	on.cudaDevice = index
	trial := on
	trial.requireOnlyProvider = true
	if err := r.try(ctx, trial); err != nil {
		return fmt.Errorf("cuda: device %d does not compute: %w", index, err)
	}
	r.settings = on
	r.device = fmt.Sprintf("cuda:%d", index)
	return nil
}

// diagnoseCUDA looks for all that onnxruntime's CUDA provider needs, and names everything that is missing at once: the
// driver, the provider, CUDA, cuDNN. Learning of them one by one would cost a user a download each.
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
	missing, err := missingForProvider(libraryPath)
	switch {
	case err != nil:
		problems = append(problems, err.Error())
	case len(missing) > 0:
		problems = append(problems, fmt.Sprintf("the CUDA provider needs libraries that the loader does not find: "+
			"%s; install them, or name their folder in LD_LIBRARY_PATH (PATH on Windows)", strings.Join(missing, ", ")))
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// missingForProvider lists what the provider beside a library asks the loader for and would not get.
func missingForProvider(libraryPath string) ([]string, error) {
	provider, shared := "libonnxruntime_providers_cuda.so", "libonnxruntime_providers_shared.so"
	if runtime.GOOS == "windows" {
		provider, shared = "onnxruntime_providers_cuda.dll", "onnxruntime_providers_shared.dll"
	}
	folder := filepath.Dir(libraryPath)
	for _, name := range []string{provider, shared} {
		if _, err := os.Stat(filepath.Join(folder, name)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s has no CUDA provider: %s is not beside it; run `infill setup --cuda`",
				libraryPath, name)
		} else if err != nil {
			return nil, err
		}
	}
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	file, err := elf.Open(filepath.Join(folder, provider))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", provider, err)
	}
	defer file.Close()
	needs, err := file.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", provider, err)
	}
	var missing []string
	for _, name := range needs {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			continue
		}
		if err := loadable(name); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", name, partOf(name)))
		}
	}
	return missing, nil
}

// partOf names the product that a missing library belongs to.
func partOf(name string) string {
	name = strings.ToLower(name)
	switch {
	case strings.Contains(name, "cudnn"):
		return "cuDNN"
	case strings.HasPrefix(name, "libcuda.so"), strings.HasPrefix(name, "nvcuda"):
		return "the NVIDIA driver"
	case strings.Contains(name, "cublas"), strings.Contains(name, "cudart"), strings.Contains(name, "cufft"),
		strings.Contains(name, "curand"), strings.Contains(name, "nvrtc"), strings.Contains(name, "nvjitlink"):
		return "the CUDA toolkit"
	case strings.Contains(name, "nvinfer"), strings.Contains(name, "nvonnxparser"):
		return "TensorRT"
	}
	return "the system"
}

// try adds 1 and 1, and 2 and 2, in a session of the given settings.
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

// trialModel is the ONNX graph y = x + x over two float32.
func trialModel() []byte {
	g := onnx.New("trial")
	x := g.Input("x", onnx.Float, onnx.Fixed(2))
	g.Output("y", g.Add(x, x))
	model, err := g.Encode()
	if err != nil {
		panic(err) // a bug in the program
	}
	return model
}

// FindGPU asks the NVIDIA driver for a GPU; the error says why there is none.
func FindGPU() error {
	count, err := cudaDevices()
	if err == nil && count == 0 {
		err = errors.New("the NVIDIA driver shows no GPU")
	}
	return err
}
