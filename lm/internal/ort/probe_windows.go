package ort

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"infill/lm/internal/ort/library"
)

// probe loads the library, asks its version and whether it offers our interface, and keeps it loaded if so: the binding
// then only counts another reference. The binding itself cannot be asked, because it unloads an old library before
// telling its version.
func probe(path string) (version string, usable bool, err error) {
	handle, err := windows.LoadLibrary(path)
	if err != nil {
		return "", false, fmt.Errorf("cannot be loaded: %w", err)
	}
	function, err := windows.GetProcAddress(handle, "OrtGetApiBase")
	if err != nil {
		_ = windows.FreeLibrary(handle) // the first error is the one to tell
		return "", false, errors.New("not an onnxruntime library: it has no function OrtGetApiBase")
	}
	result, _, _ := syscall.SyscallN(function)
	if result == 0 {
		_ = windows.FreeLibrary(handle)
		return "", false, errors.New("not an onnxruntime library: OrtGetApiBase returns nothing")
	}
	// OrtApiBase of onnxruntime_c_api.h, which never changes: GetApi(version) and GetVersionString().
	base := *(**[2]uintptr)(unsafe.Pointer(&result))
	text, _, _ := syscall.SyscallN(base[1])
	version = windows.BytePtrToString(*(**byte)(unsafe.Pointer(&text)))
	if library.Serves(version) {
		// A library that is too old says so on standard error when it is asked for a newer interface, so only others
		// are asked.
		api, _, _ := syscall.SyscallN(base[0], apiVersion)
		usable = api != 0
	}
	if !usable {
		_ = windows.FreeLibrary(handle)
	}
	return version, usable, nil
}

// cudaDevices asks the NVIDIA driver how many devices it shows this process.
func cudaDevices() (int, error) {
	driver, err := windows.LoadDLL("nvcuda.dll")
	if err != nil {
		return 0, errors.New("no NVIDIA driver: the loader does not find nvcuda.dll")
	}
	// Left loaded: the driver does not promise that it can be unloaded after cuInit.
	initialise, err := driver.FindProc("cuInit")
	if err != nil {
		return 0, errors.New("nvcuda.dll is not an NVIDIA driver: it has no cuInit")
	}
	deviceCount, err := driver.FindProc("cuDeviceGetCount")
	if err != nil {
		return 0, errors.New("nvcuda.dll is not an NVIDIA driver: it has no cuDeviceGetCount")
	}
	if code, _, _ := initialise.Call(0); code != 0 {
		return 0, fmt.Errorf("the NVIDIA driver does not start: cuInit returns %d (100: no device)", code)
	}
	var count int32
	if code, _, _ := deviceCount.Call(uintptr(unsafe.Pointer(&count))); code != 0 {
		return 0, fmt.Errorf("the NVIDIA driver does not count its devices: cuDeviceGetCount returns %d", code)
	}
	return int(count), nil
}
