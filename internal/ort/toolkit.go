package ort

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"infill/internal/ort/library"
)

// wheels names pip's package for each library of CUDA and cuDNN that an
// onnxruntime for CUDA may open. Before CUDA 13, and always for cuDNN, the
// package's name ends in -cu and CUDA's version.
var wheels = map[string]string{
	"libcublas":   "nvidia-cublas",
	"libcublasLt": "nvidia-cublas",
	"libcudart":   "nvidia-cuda-runtime",
	"libcudnn":    "nvidia-cudnn",
	"libcufft":    "nvidia-cufft",
	"libcurand":   "nvidia-curand",
	"libnvrtc":    "nvidia-cuda-nvrtc",
}

// toolkit is what a CUDA provider needs of CUDA and cuDNN.
type toolkit struct {
	version string   // CUDA's major version, such as "13"
	names   []string // file names of libraries, such as "libcublas.so.13"
}

// toolkitOf reads which libraries a CUDA provider needs.
func toolkitOf(provider string) (toolkit, error) {
	file, err := elf.Open(provider)
	if err != nil {
		return toolkit{}, fmt.Errorf("%s: %w", provider, err)
	}
	defer file.Close()
	imported, err := file.ImportedLibraries()
	if err != nil {
		return toolkit{}, fmt.Errorf("%s: %w", provider, err)
	}
	var t toolkit
	opensDNN := true
	for _, name := range imported {
		stem, version, _ := strings.Cut(name, ".so.")
		if wheels[stem] == "" {
			continue
		}
		t.names = append(t.names, name)
		if stem == "libcudart" {
			t.version = version
		}
		if stem == "libcudnn" {
			opensDNN = false
		}
	}
	if t.version == "" {
		return toolkit{}, fmt.Errorf("%s: it does not say which version of CUDA it needs", provider)
	}
	if opensDNN { // from 1.31 on, the provider opens cuDNN 9 when a node needs it
		t.names = append(t.names, "libcudnn.so.9")
	}
	return t, nil
}

// wheel returns the name of pip's package that has the library of that name.
func (t toolkit) wheel(name string) string {
	stem, _, _ := strings.Cut(name, ".so.")
	if stem == "libcudnn" || t.version == "12" || t.version == "11" {
		return wheels[stem] + "-cu" + t.version
	}
	return wheels[stem]
}

// preload opens the libraries of t. They stay loaded: a provider that needs one
// by its name then gets the one that is loaded, although the provider has no
// path to it. Python's onnxruntime.preload_dlls does the same. A library that
// the loader does not find by its name is opened from the first of folders that
// has it. The error names each library that is missing, and the wheel that has
// it.
func (t toolkit) preload(folders []string) error {
	var missing []string
	for _, name := range t.names {
		_, unknown := openLibrary(name)
		if unknown == nil {
			continue
		}
		path := firstWith(folders, name)
		if path == "" {
			missing = append(missing, fmt.Sprintf("%s (in pip's %s)", name, t.wheel(name)))
			continue
		}
		_, err := openLibrary(path)
		if err != nil {
			missing = append(missing, err.Error())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the library in use needs CUDA %s and cuDNN 9, and these do not load: %s; install the "+
			"wheels in infill's Python environment, or in the one that VIRTUAL_ENV names, or name CUDA's folder in "+
			"LD_LIBRARY_PATH", t.version, strings.Join(missing, ", "))
	}
	return nil
}

// firstWith returns the file of that name in the first folder with it, or "".
func firstWith(folders []string, name string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		_, missing := os.Stat(path)
		if missing == nil {
			return path
		}
	}
	return ""
}

// wheelFolders returns the folders in which pip's wheels of CUDA and cuDNN keep
// their libraries: those in the Python environment that the program is
// installed in, then those in the environment that VIRTUAL_ENV names.
func wheelFolders() (folders []string) {
	for _, environment := range []string{library.ProgramEnvironment(), os.Getenv("VIRTUAL_ENV")} {
		if environment == "" {
			continue
		}
		for _, packages := range library.PythonPackages(environment) {
			found, err := filepath.Glob(filepath.Join(packages, "nvidia", "*", "lib"))
			if err != nil { // the folder's name has a bracket
				continue
			}
			folders = append(folders, found...)
		}
	}
	return folders
}
