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

// inModule returns the library in the binding's module, where Go keeps its
// source. The place has none if the program was built with -trimpath, from a
// vendor folder or on another machine. Others may have written the file, so
// only the pinned one is usable.
func (o Options) inModule() Library {
	l := Library{Place: "Go module", Version: moduleVersion}
	code := reflect.ValueOf(onnxruntime.SetSharedLibraryPath).Pointer()
	source, _ := runtime.FuncForPC(code).FileLine(code)
	l.Path = filepath.Dir(source)
	file := pins()[platform{os: o.os(), arch: o.arch()}.folder()].Module
	if file == nil || !filepath.IsAbs(source) {
		l.Reason = "the module of the binding has no library for this program"
		return l
	}
	l.Path = filepath.Join(l.Path, filepath.FromSlash(file.Path))
	l = o.examine(l)
	if !l.Usable {
		return l
	}
	digest, err := regular.SHA256(l.Path)
	switch {
	case err != nil:
		l.Reason = err.Error()
	case digest != file.SHA256:
		l.Reason = fmt.Sprintf("expected SHA-256 %s, found %s", file.SHA256, digest)
	}
	l.Usable = l.Reason == ""
	return l
}
