//go:build !windows

package ort

import (
	"errors"
	"strings"

	"github.com/ebitengine/purego"
)

const driver = "libcuda.so.1"

func openLibrary(path string) (uintptr, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return 0, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	return handle, nil
}

func symbolOf(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

func closeLibrary(handle uintptr) error { return purego.Dlclose(handle) }
