//go:build !windows

package ort

import "github.com/ebitengine/purego"

const driver = "libcuda.so.1"

func openLibrary(path string) (uintptr, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	return handle, oneLine(err)
}

func symbolOf(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

func closeLibrary(handle uintptr) error { return purego.Dlclose(handle) }
