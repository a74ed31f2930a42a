package library

import "fmt"

// Version is the first of the onnxruntime releases that Fetch downloads. Its
// library for CUDA is made for CUDA 13.
const Version = "1.31.1"

// releaseVersion is the release in the publisher's archives, and npmVersion
// that in npm's package.
const (
	releaseVersion = "1.24.4"
	npmVersion     = "1.24.3"
)

// npmSHA256 is the digest of npm's package, which has the libraries of all
// platforms.
const npmSHA256 = "aa1bb5fa261ea68de05dd53efbba210cd7adf2d2850f4c3a201054c74cc78040"

// A carrier brings a library in an archive.
type carrier struct {
	source  source
	version string // onnxruntime's release
	size    int64  // of the archive in bytes; 0 if it is not known
	sha256  string // of the archive; "" if it is not known, and members have their own
	members []member
}

// A member is a file in an archive.
type member struct {
	path   string // in the archive
	name   string // in the cache
	sha256 string // "" if the archive's digest is enough
}

type platform struct {
	os, arch string // as Go names them
	cuda     bool
}

// String returns a name for messages, such as "linux/amd64 with CUDA".
func (p platform) String() string {
	if p.cuda {
		return fmt.Sprintf("%s/%s with CUDA", p.os, p.arch)
	}
	return p.os + "/" + p.arch
}

// folder returns the name of the cache's folder, such as "linux-amd64-cuda".
func (p platform) folder() string {
	if p.cuda {
		return p.os + "-" + p.arch + "-cuda"
	}
	return p.os + "-" + p.arch
}

// carriers returns what brings the library for a platform, in the order in
// which to try. The digests of pip's and of npm's files are from downloads in
// November 2026. Those of the publisher's archives are the ones that five
// repositories name, which pin them independently.
func carriers(p platform) []carrier {
	const so = "libonnxruntime.so"
	windows := []member{
		{path: "onnxruntime/capi/onnxruntime.dll", name: "onnxruntime.dll"},
	}
	pipSO := []member{{path: "onnxruntime/capi/libonnxruntime.so." + Version, name: so}}
	npm := func(folder string, members ...member) carrier {
		for i := range members {
			members[i].path = "package/bin/napi-v6/" + folder + "/" + members[i].path
		}
		return carrier{npm{"onnxruntime-node"}, npmVersion, 85987774, npmSHA256, members}
	}
	release := func(name, sha256 string, size int64, library member) carrier {
		library.path = name + "/lib/" + library.path
		return carrier{release{name + ".tgz"}, releaseVersion, size, sha256, []member{library}}
	}
	return map[platform][]carrier{
		{os: "linux", arch: "amd64"}: {
			{pip{"onnxruntime", "manylinux_2_28_x86_64"}, Version, 23760988,
				"1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536", pipSO},
			release("onnxruntime-linux-x64-"+releaseVersion,
				"3a211fbea252c1e66290658f1b735b772056149f28321e71c308942cdb54b747", 8155822,
				member{"libonnxruntime.so." + releaseVersion, so,
					"d132535d051344ff5c64c9c200004150559049a81ed330eb4422c1962fb6b7e4"}),
			npm("linux/x64", member{"libonnxruntime.so.1", so,
				"92ba8e44d31b80a34f5e805076a044122c3be1fffe0d88ed790de7267b0b2682"}),
		},
		{os: "linux", arch: "arm64"}: {
			{pip{"onnxruntime", "manylinux_2_28_aarch64"}, Version, 21420803,
				"0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc", pipSO},
			release("onnxruntime-linux-aarch64-"+releaseVersion, "", 0,
				member{"libonnxruntime.so." + releaseVersion, so,
					"52b2a0e75e79468404284fec38ad5ee1a7a996232274f5e1b84f3e793fb07554"}),
			npm("linux/arm64", member{"libonnxruntime.so.1", so,
				"33032cb5b91c12edbf028d7c69fa40a31848d66c0095448758af237d5e0b07db"}),
		},
		{os: "darwin", arch: "arm64"}: {
			{pip{"onnxruntime", "macosx_14_0_arm64"}, Version, 20882125,
				"96dd2564b10ea7153ad9c207e7cd8e5917cb3ba521e0e0a62ac03486fdc8d56c",
				[]member{{path: "onnxruntime/capi/libonnxruntime." + Version + ".dylib",
					name: "libonnxruntime.dylib"}}},
			release("onnxruntime-osx-arm64-"+releaseVersion, "", 0,
				member{"libonnxruntime." + releaseVersion + ".dylib", "libonnxruntime.dylib",
					"872533f130f1839a5bc01788ddb4f75c83a189763441ba1178788ed965449289"}),
			npm("darwin/arm64", member{"libonnxruntime." + npmVersion + ".dylib", "libonnxruntime.dylib",
				"76831409ce6eded92b4cb343cf422c458a60c1ea1d5f3cfa69692ab7fcc67f0f"}),
		},
		{os: "windows", arch: "amd64"}: {
			{pip{"onnxruntime", "win_amd64"}, Version, 14888466,
				"ae8a9a351efda685cc59a66226cdefaa37a126c1d66872ca23a2de9425326130", windows},
			npm("win32/x64", member{path: "onnxruntime.dll", name: "onnxruntime.dll"},
				member{path: "DirectML.dll", name: "DirectML.dll"}),
		},
		{os: "windows", arch: "arm64"}: {
			{pip{"onnxruntime", "win_arm64"}, Version, 14740724,
				"fe8b9ac1ae8e894e12c47ee82e4f6dfc1835768133687257866469fda80d0bf1", windows},
			npm("win32/arm64", member{path: "onnxruntime.dll", name: "onnxruntime.dll"},
				member{path: "DirectML.dll", name: "DirectML.dll"}),
		},
		{os: "linux", arch: "amd64", cuda: true}: {
			{pip{"onnxruntime-gpu", "manylinux_2_28_x86_64"}, Version, 255569273,
				"05d548956197b9d01f59b625de740e0d6be3593f874e241a12dc0362650ecdf7", []member{
					{path: "onnxruntime/capi/libonnxruntime.so." + Version, name: so},
					{path: "onnxruntime/capi/libonnxruntime_providers_cuda.so",
						name: "libonnxruntime_providers_cuda.so"},
					{path: "onnxruntime/capi/libonnxruntime_providers_shared.so",
						name: "libonnxruntime_providers_shared.so"},
				}},
		},
	}[p]
}
