package ort

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"infill/lm/internal/ort/library"
)

// probe loads the library, asks its version and whether it offers our interface, and keeps it loaded if so: the binding
// then only counts another reference. The binding itself unloads an old library before it tells its version, and so
// cannot be asked.
func probe(path string) (version string, usable bool, err error) {
	handle, err := openLibrary(path)
	if err != nil {
		return "", false, err
	}
	defer func() {
		if !usable {
			_ = closeLibrary(handle) // the first error is the one to return
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
	// OrtApiBase of onnxruntime_c_api.h, which never changes: GetApi(version) and GetVersionString().
	functions := *(**[2]uintptr)(unsafe.Pointer(&base))
	var versionString func() string
	purego.RegisterFunc(&versionString, functions[1])
	if version = versionString(); library.Serves(version) {
		// A library that is too old says so on standard error when it is asked for a newer interface, so only others
		// are asked.
		api, _, _ := purego.SyscallN(functions[0], apiVersion)
		usable = api != 0
	}
	return version, usable, nil
}

// cudaDevices asks the NVIDIA driver how many devices it shows this process.
func cudaDevices() (int, error) {
	handle, err := openLibrary(driver)
	if err != nil {
		return 0, fmt.Errorf("no NVIDIA driver: the loader does not find %s", driver)
	}
	// Left loaded: the driver does not promise that it can be unloaded after cuInit.
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
