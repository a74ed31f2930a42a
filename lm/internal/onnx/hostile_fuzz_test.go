package onnx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"infill/lm/internal/onnx"
)

// Whatever bytes a graph has, it is read and inlined, or refused in one line, within 64 MiB and a multiple of its size.
func FuzzInline(f *testing.F) {
	for name := range exports {
		content, err := os.ReadFile(filepath.Join(fixtures, name))
		if err != nil {
			f.Fatal(err)
		}
		if len(content) < 1<<18 {
			f.Add(content)
		}
	}
	f.Add([]byte("\x08\x08\x3a\xff\xff\xff\xff\x07"))
	// a node whose operator has a line end, and an attribute that is cut
	f.Add([]byte("\x3a\x08\x0a\x06\x22\x02D\n\x2a\x09"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := onnx.Decode(bytes.NewReader(content), int64(len(content)), "m.onnx")
		if err == nil {
			g := onnx.New("fuzz")
			inputs := map[string]*value{}
			for _, v := range m.Inputs {
				inputs[v.Name] = g.Input(v.Name, onnx.Int64, onnx.Symbol("rows"), onnx.Symbol("tokens"))
			}
			_, err = g.Inline(m, inputs)
		}
		runtime.ReadMemStats(&after)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+64*uint64(len(content)) {
			t.Errorf("%d bytes allocated for a graph of %d", used, len(content))
		}
	})
}
