package library

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"infill/internal/regular"
)

// moduleVersion is the release of the libraries in the binding's own module.
const moduleVersion = "1.24.1"

// moduleFiles has, by platform, the libraries that the binding's module brings
// for its tests, with their digests.
func moduleFiles() map[platform]member {
	return map[platform]member{
		{os: "linux", arch: "arm64"}: {path: "test_data/onnxruntime_arm64.so",
			sha256: "7954e8bdedb497f830c6a679e818d98399b7f4d81ade1126c3e0be74d28111ab"},
		{os: "darwin", arch: "arm64"}: {path: "test_data/onnxruntime_arm64.dylib",
			sha256: "9626bbdd201fbed7e3addcbd9fc7e97ec4954c03afcf40a9883af50498bffb06"},
		{os: "windows", arch: "amd64"}: {path: "test_data/onnxruntime.dll",
			sha256: "8a1aad8d59d02a5337d4e3f5bbd1158c3f7bf84fe3b3f0052f957dd3e75a91cb"},
	}
}

// inModule returns the library in the binding's module, where Go keeps its
// source. The place has none if the program was built with -trimpath, from a
// vendor folder or on another machine. Others may have written the file, so
// only the pinned one is usable.
func (o Options) inModule() Library {
	l := Library{Place: "Go module", Version: moduleVersion}
	code := reflect.ValueOf(onnxruntime.SetSharedLibraryPath).Pointer()
	source, _ := runtime.FuncForPC(code).FileLine(code)
	file, known := moduleFiles()[platform{os: o.os(), arch: o.arch()}]
	l.Path = filepath.Join(filepath.Dir(source), filepath.FromSlash(file.path))
	if !known || !filepath.IsAbs(source) {
		l.Reason = "the module of the binding has no library for this program"
		return l
	}
	l = o.examine(l)
	if !l.Usable {
		return l
	}
	digest, err := regular.SHA256(l.Path)
	switch {
	case err != nil:
		l.Reason = err.Error()
	case digest != file.sha256:
		l.Reason = fmt.Sprintf("expected SHA-256 %s, found %s", file.sha256, digest)
	}
	l.Usable = l.Reason == ""
	return l
}
