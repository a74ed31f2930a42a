package library

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"
)

// Measured is how fast energies are on OpenVINO and on onnxruntime's own kernels, rows a second, as `infill setup
// --openvino` measures it.
type Measured struct {
	OpenVINO float64 `json:"openvino_rows_per_second"`
	CPU      float64 `json:"cpu_rows_per_second"`
}

// worth is how much faster OpenVINO must be for a device "auto": it takes longer to start.
const worth = 1.15

const measuredName = "measured.json"

// CachedOpenVINO is the path of the library with OpenVINO that Fetch brought.
func CachedOpenVINO() (string, error) {
	o, err := Options{OpenVINO: true}.withDefaults()
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.folder(), FileName(o.goos))
	_, err = os.Stat(path)
	return path, err
}

// OpenVINOFaster reports whether the library at path has OpenVINO that measured faster than onnxruntime's own kernels
// on this machine.
func OpenVINOFaster(path string) bool {
	m, ok := MeasuredOf(path)
	return ok && m.OpenVINO > worth*m.CPU
}

// MeasuredOf reads what [Measured.Write] wrote beside a library.
func MeasuredOf(path string) (m Measured, ok bool) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), measuredName))
	return m, err == nil && json.Unmarshal(text, &m) == nil
}

// Write keeps the measurement beside the library.
func (m Measured) Write(path string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return maybe.WriteFile(filepath.Join(filepath.Dir(path), measuredName), append(text, '\n'), 0o644)
}
