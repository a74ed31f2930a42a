package library

import (
	"cmp"
	"fmt"
)

// Version is the onnxruntime release that Fetch brings, and cudaVersion that with CUDA. 1.24.1 computes integer
// products wrongly on processors with AMX (the last of 32 rows); a GPU does not use them.
const (
	Version     = "1.31.1"
	cudaVersion = "1.24.1"
)

// pin is one published file that carries the library: where it comes from, what it must be, and which of its members
// are kept.
type pin struct {
	source  string // the name of a source
	version string // of the library; empty: Version
	name    string // the file at the source: an asset, a requirement, a package
	tag     string // pip's platform tag
	size    int64  // bytes; 0: not known before the download
	sha256  string // of the file; empty: the release tells
	members []member
}

// release is the version of the library that the file carries.
func (p pin) release() string { return cmp.Or(p.version, Version) }

// member is a file inside a published one.
type member struct {
	path   string // in the archive
	as     string // its name in the cache
	size   int64  // bytes; 0: any up to maximalMember
	sha256 string // empty: the archive's digest vouches for it
}

// wheels are the libraries for the CPU: the wheel's platform tag, its size and SHA-256, the library in it with its own,
// and the beginning and the ending of the release page's asset that has the library too.
//
// The SHA-256 digests are of what the pip client brought on 2026-11-22 (CUDA: 2026-11-21). Release assets have no pin:
// the digest in the release's own description decides, so they come after the wheels.
var wheels = map[string]struct {
	tag            string
	size           int64
	sha256         string
	library        member
	asset, archive string
}{
	"linux/amd64": {"manylinux_2_28_x86_64", 23760988,
		"1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536",
		member{"libonnxruntime.so." + Version, "libonnxruntime.so", 29352200,
			"fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3"}, "linux-x64", ".tgz"},
	"linux/arm64": {"manylinux_2_28_aarch64", 21420803,
		"0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc",
		member{"libonnxruntime.so." + Version, "libonnxruntime.so", 25265040,
			"8aa3b76b28c778a2b1dd660d34161adb1d508c9ccd04ff9dc80e26eca5df8467"}, "linux-aarch64", ".tgz"},
	"darwin/arm64": {"macosx_14_0_arm64", 20882125,
		"96dd2564b10ea7153ad9c207e7cd8e5917cb3ba521e0e0a62ac03486fdc8d56c",
		member{"libonnxruntime." + Version + ".dylib", "libonnxruntime.dylib", 33037336,
			"d586cbe89effc085a09d3341b3cfbd5c322517f9d397aeb20814af21433f2b36"}, "osx-arm64", ".tgz"},
	"windows/amd64": {"win_amd64", 14888466,
		"ae8a9a351efda685cc59a66226cdefaa37a126c1d66872ca23a2de9425326130",
		member{"onnxruntime.dll", "onnxruntime.dll", 19288376,
			"e45f61e50d8650885452be538a00bb14a715e46a1bc3691000ce947e89ed0306"}, "win-x64", ".zip"},
	"windows/arm64": {"win_arm64", 14740724,
		"fe8b9ac1ae8e894e12c47ee82e4f6dfc1835768133687257866469fda80d0bf1",
		member{"onnxruntime.dll", "onnxruntime.dll", 19171640,
			"dc9e2fe646a72829386a24ac9185a7a4e26d7dbe5dc433d41df063603c00bbc7"}, "win-arm64", ".zip"},
}

// within is the members in a folder of their archive.
func within(folder string, members ...member) []member {
	for i := range members {
		members[i].path = folder + members[i].path
	}
	return members
}

func pins(goos, goarch string, cuda bool) []pin {
	w, ok := wheels[goos+"/"+goarch]
	switch {
	case cuda && goos == "linux" && goarch == "amd64":
		return cudaPins()
	case cuda || !ok:
		return nil
	}
	folder := fmt.Sprintf("onnxruntime-%s-%s", w.asset, Version)
	return []pin{
		{source: "pip", name: "onnxruntime", tag: w.tag, size: w.size, sha256: w.sha256,
			members: within("onnxruntime/capi/", w.library)},
		{source: "release", name: folder + w.archive,
			members: within(folder+"/lib/", member{path: w.library.path, as: w.library.as})},
	}
}

func cudaPins() []pin {
	const (
		folder = "onnxruntime-linux-x64-gpu-" + cudaVersion
		cuda   = "libonnxruntime_providers_cuda.so"
		shared = "libonnxruntime_providers_shared.so"
	)
	return []pin{
		{source: "release", version: cudaVersion, name: folder + ".tgz", members: within(folder+"/lib/",
			member{path: "libonnxruntime.so." + cudaVersion, as: "libonnxruntime.so"},
			member{path: cuda, as: cuda}, member{path: shared, as: shared})},
		{source: "pip", version: cudaVersion, name: "onnxruntime-gpu", tag: "manylinux_2_28_x86_64",
			size: 252628733, sha256: "710bf83751e6761584ad071102af3cbffd4b42bb77b2e3caacfb54ffbaa0666b",
			members: within("onnxruntime/capi/",
				member{"libonnxruntime.so." + cudaVersion, "libonnxruntime.so", 22130592,
					"62bb33b8600d5e5751faba2dc5944fc01adf73aadf3a0e619095a0a0933886b4"},
				member{cuda, cuda, 367043336, "ccc3d1f1d0e5824b716add00585a7a787a61e0e4f8b2b5f49da41052c468b903"},
				member{shared, shared, 14632, "086ec1d5388f64153d9c63470d126693db9a182c8ce236d3a1119068471b8a0d"})},
	}
}

// FileName is the library's name in the cache, and one that Find looks for.
func FileName(goos string) string {
	switch goos {
	case "windows":
		return "onnxruntime.dll"
	case "darwin":
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}
