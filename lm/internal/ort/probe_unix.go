//go:build !windows

package ort

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// The part of onnxruntime's C interface that never changes: "OrtApiBase" of onnxruntime_c_api.h.
typedef struct {
	const void *(*get_api)(uint32_t version);
	const char *(*get_version)(void);
} api_base;

static const api_base *call_base(void *symbol) {
	return ((const api_base *(*)(void))symbol)();
}
static const char *call_version(const api_base *base) {
	return base->get_version();
}

// A library that is too old says so on standard error when it is asked for a newer interface: only call_usable asks.
static int call_usable(const api_base *base, uint32_t version) {
	return base->get_api(version) != 0;
}

static int call_cu_init(void *symbol) {
	return ((int (*)(unsigned int))symbol)(0);
}
static int call_cu_device_get_count(void *symbol, int *count) {
	return ((int (*)(int *))symbol)(count);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"infill/lm/internal/ort/library"
)

// probe loads the library, asks its version and whether it offers our interface, and keeps it loaded if so: the binding
// then only counts another reference. The binding itself cannot be asked, because it unloads an old library before
// telling its version.
func probe(path string) (version string, usable bool, err error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_LAZY|C.RTLD_LOCAL)
	if handle == nil {
		return "", false, errors.New(strings.Join(strings.Fields(C.GoString(C.dlerror())), " "))
	}
	symbol := C.CString("OrtGetApiBase")
	defer C.free(unsafe.Pointer(symbol))
	function := C.dlsym(handle, symbol)
	if function == nil {
		C.dlclose(handle)
		return "", false, errors.New("not an onnxruntime library: it has no function OrtGetApiBase")
	}
	base := C.call_base(function)
	if base == nil {
		C.dlclose(handle)
		return "", false, errors.New("not an onnxruntime library: OrtGetApiBase returns nothing")
	}
	version = C.GoString(C.call_version(base))
	if usable = library.Serves(version) && C.call_usable(base, apiVersion) != 0; !usable {
		C.dlclose(handle)
	}
	return version, usable, nil
}

// cudaDevices asks the NVIDIA driver how many devices it shows this process.
func cudaDevices() (int, error) {
	name, initialise, deviceCount := C.CString("libcuda.so.1"), C.CString("cuInit"), C.CString("cuDeviceGetCount")
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(initialise))
	defer C.free(unsafe.Pointer(deviceCount))
	handle := C.dlopen(name, C.RTLD_LAZY|C.RTLD_LOCAL)
	if handle == nil {
		return 0, errors.New("no NVIDIA driver: the loader does not find libcuda.so.1")
	}
	// Left loaded: the driver does not promise that it can be unloaded after cuInit.
	first, second := C.dlsym(handle, initialise), C.dlsym(handle, deviceCount)
	if first == nil || second == nil {
		return 0, errors.New("libcuda.so.1 is not an NVIDIA driver: it has no cuInit")
	}
	if code := C.call_cu_init(first); code != 0 {
		return 0, fmt.Errorf("the NVIDIA driver does not start: cuInit returns %d (100: no device, 803: driver and "+
			"system libraries differ)", int(code))
	}
	var count C.int
	if code := C.call_cu_device_get_count(second, &count); code != 0 {
		return 0, fmt.Errorf("the NVIDIA driver does not count its devices: cuDeviceGetCount returns %d", int(code))
	}
	return int(count), nil
}
