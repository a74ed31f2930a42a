package ort

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"infill/internal/ort/library"
)

// probe loads the library, and asks for its version and for version apiVersion
// of its C interface. If the library offers that, it stays loaded, and the
// binding only counts another reference. The binding itself cannot be asked: it
// unloads an old library before it tells the version.
func probe(path string) (version string, usable bool, err error) {
	handle, err := openLibrary(path)
	if err != nil {
		return "", false, err
	}
	defer func() {
		if !usable {
			_ = closeLibrary(handle) // an earlier error is the one to return
		}
	}()
	function, err := symbolOf(handle, "OrtGetApiBase")
	if err != nil {
		return "", false, errors.New("not an onnxruntime library: it has no function OrtGetApiBase")
	}
	base, _, _ := purego.SyscallN(function)
	if base == 0 {
		return "", false, errors.New("not an onnxruntime library: OrtGetApiBase returns nothing")
	}
	// The layout of OrtApiBase in onnxruntime_c_api.h never changes:
	// GetApi(version) and GetVersionString().
	functions := *(**[2]uintptr)(unsafe.Pointer(&base))
	var versionString func() string
	purego.RegisterFunc(&versionString, functions[1])
	version = versionString()
	if library.Serves(version) {
		// A library that is too old complains on standard error of a newer
		// interface, so only one of a sufficient version is asked.
		api, _, _ := purego.SyscallN(functions[0], apiVersion)
		usable = api != 0
	}
	return version, usable, nil
}

// cudaDevices asks the NVIDIA driver how many devices this process sees.
func cudaDevices() (int, error) {
	handle, err := openLibrary(driver)
	if err != nil {
		return 0, fmt.Errorf("no NVIDIA driver: the loader does not find %s", driver)
	}
	// It stays loaded: the driver does not promise that it can be unloaded.
	initialise, first := symbolOf(handle, "cuInit")
	deviceCount, second := symbolOf(handle, "cuDeviceGetCount")
	if cmp.Or(first, second) != nil {
		return 0, fmt.Errorf("%s is not an NVIDIA driver: it has no cuInit", driver)
	}
	if code, _, _ := purego.SyscallN(initialise, 0); int32(code) != 0 {
		return 0, fmt.Errorf("the NVIDIA driver does not start: cuInit returns %d (100: no device, 803: driver and "+
			"system libraries differ)", int32(code))
	}
	var count int32
	if code, _, _ := purego.SyscallN(deviceCount, uintptr(unsafe.Pointer(&count))); int32(code) != 0 {
		return 0, fmt.Errorf("the NVIDIA driver does not count its devices: cuDeviceGetCount returns %d", int32(code))
	}
	return int(count), nil
}
