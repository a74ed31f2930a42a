package library

import "fmt"

// Version is the onnxruntime release that Fetch brings.
const Version = "1.24.1"

// pin is one published file that carries the library: where it comes from, what it must be, and which of its members are kept.
type pin struct {
	source  string // the name of a source
	name    string // the file at the source: an asset, a requirement, a package, a module
	tag     string // pip's platform tag
	size    int64  // bytes; 0: not known before the download
	sha256  string // of the file; empty: the release tells
	members []member
}

// member is a file inside a published one.
type member struct {
	path   string // in the archive, or in the module's folder
	as     string // its name in the cache
	size   int64  // bytes; 0: any up to maximalMember
	sha256 string // empty: the archive's digest vouches for it
}

// Where the SHA-256 digests come from. pip and npm files: computed from what the clients brought on 2026-11-21; the digest of the npm
// archive's libonnxruntime.so.1 for linux/arm64 is that of the Go module's file as well. Release assets: as published by projects that
// pin them, each by several which do not share code (PingCAP's download script and Bazel rules for all three, container builds for
// the two Linux ones); the linux/arm64 asset's library is published with the digest that npm and the Go module have too. Windows and
// CUDA assets have no pin: the digest in the release's own description decides.
func pins(goos, goarch string, cuda bool) []pin {
	library := func(path string, size int64, sha256 string) []member {
		return []member{{path, FileName(goos), size, sha256}}
	}
	release := func(platform, extension, member, sha256 string) pin {
		folder := fmt.Sprintf("onnxruntime-%s-%s", platform, Version)
		return pin{source: "release", name: folder + extension, sha256: sha256, members: library(folder+"/lib/"+member, 0, "")}
	}
	pip := func(tag string, size int64, archive, member string, memberSize int64, sha256 string) pin {
		return pin{source: "pip", name: "onnxruntime", tag: tag, size: size, sha256: archive, members: library("onnxruntime/capi/"+member, memberSize, sha256)}
	}
	npm := func(folder, member string, memberSize int64, sha256 string) pin {
		return pin{source: "npm", name: "onnxruntime-node", size: 85811498, sha256: "57181cf6e6e711b155c5b942d591fd63ded0b5de5c4922d51fd994e7f6ac2772",
			members: library("package/bin/napi-v6/"+folder+"/"+member, memberSize, sha256)}
	}
	module := func(source, member string, memberSize int64, sha256 string) pin {
		return pin{source: source, name: "github.com/yalue/onnxruntime_go@v1.27.0", size: 22959847, members: library("test_data/"+member, memberSize, sha256)}
	}

	switch platform := goos + "/" + goarch; {
	case platform == "linux/amd64" && cuda:
		const folder = "onnxruntime-linux-x64-gpu-" + Version
		return []pin{
			{source: "release", name: folder + ".tgz", members: []member{
				{path: folder + "/lib/libonnxruntime.so." + Version, as: "libonnxruntime.so"},
				{path: folder + "/lib/libonnxruntime_providers_cuda.so", as: "libonnxruntime_providers_cuda.so"},
				{path: folder + "/lib/libonnxruntime_providers_shared.so", as: "libonnxruntime_providers_shared.so"},
			}},
			{source: "pip", name: "onnxruntime-gpu", tag: "manylinux_2_28_x86_64", size: 252628733, sha256: "710bf83751e6761584ad071102af3cbffd4b42bb77b2e3caacfb54ffbaa0666b", members: []member{
				{"onnxruntime/capi/libonnxruntime.so." + Version, "libonnxruntime.so", 22130592, "62bb33b8600d5e5751faba2dc5944fc01adf73aadf3a0e619095a0a0933886b4"},
				{"onnxruntime/capi/libonnxruntime_providers_cuda.so", "libonnxruntime_providers_cuda.so", 367043336, "ccc3d1f1d0e5824b716add00585a7a787a61e0e4f8b2b5f49da41052c468b903"},
				{"onnxruntime/capi/libonnxruntime_providers_shared.so", "libonnxruntime_providers_shared.so", 14632, "086ec1d5388f64153d9c63470d126693db9a182c8ce236d3a1119068471b8a0d"},
			}},
		}
	case cuda:
		return nil
	case platform == "linux/amd64":
		return []pin{
			release("linux-x64", ".tgz", "libonnxruntime.so."+Version, "9142552248b735920f9390027e4512a2cacf8946a1ffcbe9071a5c210531026f"),
			pip("manylinux_2_28_x86_64", 17098191, "34b6119526eda12613f0d0498e2ae59563c247c370c9cef74c2fc93133dde157",
				"libonnxruntime.so."+Version, 22052768, "94ac52f650e195b784587e1cb7d25b4bf074048b50fa9a7127795b2ed34db22e"),
			npm("linux/x64", "libonnxruntime.so.1", 35057880, "53ef1ac028dd1b05554b8da28d9159eb3876f99868193d2aaa6e67f0243c23d4"),
		}
	case platform == "linux/arm64":
		const sha256 = "7954e8bdedb497f830c6a679e818d98399b7f4d81ade1126c3e0be74d28111ab"
		return []pin{
			module("go module cache", "onnxruntime_arm64.so", 18559840, sha256),
			release("linux-aarch64", ".tgz", "libonnxruntime.so."+Version, "0f56edd68f7602df790b68b874a46b115add037e88385c6c842bb763b39b9f89"),
			pip("manylinux_2_28_aarch64", 15016224, "780add442ce2d4175fafb6f3102cdc94243acffa3ab16eacc03dd627cc7b1b54",
				"libonnxruntime.so."+Version, 18559840, "31d6df98d3a2942ce10472109f988037f330dad6cb1c19e214fd2b1327315ee0"),
			module("go", "onnxruntime_arm64.so", 18559840, sha256),
			npm("linux/arm64", "libonnxruntime.so.1", 18559840, sha256),
		}
	case platform == "darwin/arm64":
		const sha256 = "9626bbdd201fbed7e3addcbd9fc7e97ec4954c03afcf40a9883af50498bffb06"
		return []pin{
			module("go module cache", "onnxruntime_arm64.dylib", 35361880, sha256),
			release("osx-arm64", ".tgz", "libonnxruntime."+Version+".dylib", "c2969315cd9ce0f5fa04f6b53ff72cb92f87f7dcf38e88cacfa40c8f983fbba9"),
			pip("macosx_14_0_arm64", 17211043, "7307aab9e2e879c0171f37e0eb2808a5b4aec7ba899bb17c5f0cedfc301a8ac2",
				"libonnxruntime."+Version+".dylib", 27651672, "644ea9751a5e7e56dff293d2a7c3d78f18f8b404e85bade791c0d40a3b950553"),
			module("go", "onnxruntime_arm64.dylib", 35361880, sha256),
			npm("darwin/arm64", "libonnxruntime."+Version+".dylib", 35880440, "7ad6507ad64d3b02aebfae6380c024ff188939cd8a7a493ec18028e034c8275c"),
		}
	case platform == "windows/amd64":
		const sha256 = "8a1aad8d59d02a5337d4e3f5bbd1158c3f7bf84fe3b3f0052f957dd3e75a91cb"
		return []pin{
			module("go module cache", "onnxruntime.dll", 14131232, sha256),
			pip("win_amd64", 12493108, "df0af2f1cfcfff9094971c7eb1d1dfae7ccf81af197493c4dc4643e4342c0946",
				"onnxruntime.dll", 16048160, "782a0d8f65d4e3b0b08cfe5217dbbdd6100a65dc6757868a385704b731ef774f"),
			module("go", "onnxruntime.dll", 14131232, sha256),
			release("win-x64", ".zip", "onnxruntime.dll", ""),
			npm("win32/x64", "onnxruntime.dll", 23781408, "be46630a10f6ed3897fd9d1ec83f6e2577e34851fb1024d685884ed40faed3a7"),
		}
	case platform == "windows/arm64":
		return []pin{
			release("win-arm64", ".zip", "onnxruntime.dll", ""),
			npm("win32/arm64", "onnxruntime.dll", 24352328, "5588ade6e81e7cb46ec45546ac36a61449b7135d177ca22ca808eee6910e5e3a"),
		}
	}
	return nil
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
