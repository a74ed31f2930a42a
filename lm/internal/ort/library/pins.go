package library

// Version is the onnxruntime release that Fetch downloads. Its library for CUDA is made for CUDA 13.
const Version = "1.31.1"

// wheel is one published file that contains the library.
type wheel struct {
	name, tag string // the name of pip's package, and the tag of the platform
	size      int64  // bytes
	sha256    string
	members   []string // the files to keep from the wheel's folder onnxruntime/capi, the library first
}

// published returns the wheel that has the requested library, or nil if there is none. The digests are from pip's
// downloads on 2026-11-22 (CUDA: 2026-11-27).
func published(goos, goarch string, cuda bool) *wheel {
	const so = "libonnxruntime.so." + Version
	table := map[string]wheel{
		"linux/amd64": {"onnxruntime", "manylinux_2_28_x86_64", 23760988,
			"1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536", []string{so}},
		"linux/arm64": {"onnxruntime", "manylinux_2_28_aarch64", 21420803,
			"0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc", []string{so}},
		"darwin/arm64": {"onnxruntime", "macosx_14_0_arm64", 20882125,
			"96dd2564b10ea7153ad9c207e7cd8e5917cb3ba521e0e0a62ac03486fdc8d56c",
			[]string{"libonnxruntime." + Version + ".dylib"}},
		"windows/amd64": {"onnxruntime", "win_amd64", 14888466,
			"ae8a9a351efda685cc59a66226cdefaa37a126c1d66872ca23a2de9425326130", []string{"onnxruntime.dll"}},
		"windows/arm64": {"onnxruntime", "win_arm64", 14740724,
			"fe8b9ac1ae8e894e12c47ee82e4f6dfc1835768133687257866469fda80d0bf1", []string{"onnxruntime.dll"}},
		"linux/amd64 cuda": {"onnxruntime-gpu", "manylinux_2_28_x86_64", 255569273,
			"05d548956197b9d01f59b625de740e0d6be3593f874e241a12dc0362650ecdf7",
			[]string{so, "libonnxruntime_providers_cuda.so", "libonnxruntime_providers_shared.so"}},
	}
	key := goos + "/" + goarch
	if cuda {
		key += " cuda"
	}
	if w, ok := table[key]; ok {
		return &w
	}
	return nil
}
