package ort

import (
	"fmt"

	"golang.org/x/sys/windows"
)

const driver = "nvcuda.dll"

func openLibrary(path string) (uintptr, error) {
	handle, err := windows.LoadLibrary(path)
	if err != nil {
		return 0, fmt.Errorf("cannot be loaded: %w", err)
	}
	return uintptr(handle), nil
}

func symbolOf(handle uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(handle), name)
}

func closeLibrary(handle uintptr) error { return windows.FreeLibrary(windows.Handle(handle)) }
