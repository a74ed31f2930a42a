package lm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/internal/regular"
	"infill/lm/internal/graphs"
	"infill/lm/internal/onnx"
	"infill/models"
)

// Precision names the arithmetic that a model runs in.
type Precision string

// The precisions.
const (
	// FP32 is single-precision arithmetic on the weights as they are stored.
	FP32 Precision = "fp32"
	// FP16 is single-precision arithmetic on weights rounded to half precision.
	FP16 Precision = "fp16"
	// INT8 is integer arithmetic in the matrix products of the forward pass, with a scale for each output channel and
	// for each row of activations. The backward pass stays in single precision, at the activations of the
	// integer pass. That is enough for a proposal, which needs the same gradient each time.
	INT8 Precision = "int8"
	// BF16 is matrix products of factors rounded to bfloat16 (8 bits of mantissa), which OpenVINO computes on
	// processors with AMX or AVX512-BF16.
	BF16 Precision = "bf16"
)

// Values lists the precisions.
func (Precision) Values() []Precision { return []Precision{FP32, FP16, INT8, BF16} }

// Device returns the device for a precision, given the wanted one: BF16 runs only on OpenVINO.
func (p Precision) Device(asked string) string {
	if p == BF16 && (asked == "" || asked == "auto") {
		return openVINO
	}
	return asked
}

// openVINO names a device.
const openVINO = "openvino"

// preparedFormat changes when what is prepared changes.
const preparedFormat = 2

// prepared is a graph that is not the bundle's own, on disk: made when it is first needed, kept in the cache folder,
// and verified when it is opened, the weights where somebody has written to them since they were last. Their sum is one
// that tells damage and takes a tenth of the time of a SHA-256: whoever can write them can write it.
type prepared struct {
	Graph   uint32 `json:"graph_crc32c"`
	Weights uint32 `json:"weights_crc32c"`

	dir, name string
}

func (p *prepared) graphPath() string   { return filepath.Join(p.dir, p.name+".onnx") }
func (p *prepared) weightsPath() string { return filepath.Join(p.dir, p.name+".bin") }
func (p *prepared) sumsPath() string    { return filepath.Join(p.dir, p.name+".json") }

// preparedOf is where a graph of the model with that SHA256 lies. kind tells arithmetics, formats and machines apart.
func preparedOf(sha256, kind, name string) (*prepared, error) {
	root, err := models.CacheDir()
	if err != nil {
		return nil, err
	}
	return &prepared{dir: filepath.Join(root, "precision", fmt.Sprintf("%.16s-%s", sha256, kind)), name: name}, nil
}

// RemovePrepared deletes the files that were prepared in the cache folder for the model with that SHA256. The next
// use of the model makes them again.
func RemovePrepared(sha256 string) error {
	p, err := preparedOf(sha256, "", "")
	if err != nil {
		return err
	}
	return removePrepared(filepath.Dir(p.dir),
		func(name string, _ time.Time) bool { return strings.HasPrefix(name, filepath.Base(p.dir)) })
}

func removePrepared(root string, doomed func(name string, used time.Time) bool) error {
	folders, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, folder := range folders {
		if info, failed := folder.Info(); failed == nil && doomed(folder.Name(), info.ModTime()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(root, folder.Name())))
		}
	}
	return err
}

// prepare gives the encoded graph of a model in a precision other than FP32,
// and the folder that its weights are in. name tells its graphs apart.
func prepare(b *models.Bundle, precision Precision, name string,
	build func(*models.Bundle) (*onnx.Graph, error)) (graph []byte, dir string, err error) {
	p, err := preparedOf(b.SHA256, fmt.Sprintf("%s-%d", precision, preparedFormat), name)
	if err != nil {
		return nil, "", err
	}
	if graph, err := p.read(); err == nil {
		return graph, p.dir, nil
	}
	fail := func(err error) ([]byte, string, error) {
		return nil, "", fmt.Errorf("prepare model %s in %s: %w; make room in %s, or set %s to a folder that can be "+
			"written", b.Name, precision, err, filepath.Dir(filepath.Dir(p.dir)), models.CacheVariable)
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fail(err)
	}
	lock := flock.New(filepath.Join(p.dir, ".lock"))
	if err := lock.Lock(); err != nil {
		return fail(err)
	}
	defer lock.Close()
	if graph, err := p.read(); err == nil {
		return graph, p.dir, nil // another process was faster
	}
	g, err := build(b)
	if err != nil {
		return nil, "", err
	}
	if graph, err = p.write(b, precision, g); err != nil {
		return fail(err)
	}
	return graph, p.dir, nil
}

// read gives the graph, if it and its weights are what was written.
func (p *prepared) read() ([]byte, error) {
	sums, err := os.ReadFile(p.sumsPath())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(sums, p); err != nil {
		return nil, err
	}
	graph, err := os.ReadFile(p.graphPath())
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(graph, castagnoli()) != p.Graph {
		return nil, errors.New("the graph is damaged")
	}
	weights, start := filepath.Base(p.weightsPath()), time.Now()
	_ = os.Chtimes(p.dir, start, start) // when it was used: see place
	if regular.Unchanged(p.dir, weights) {
		return graph, nil
	}
	sum, err := sumOf(p.weightsPath())
	if err == nil && sum != p.Weights {
		err = errors.New("the weights are damaged")
	}
	if err == nil {
		regular.Remember(p.dir, start, weights)
	}
	return graph, err
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// sumOf is the CRC-32C of a file.
func sumOf(path string) (uint32, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	h := crc32.New(castagnoli())
	_, err = io.CopyBuffer(h, struct{ io.Reader }{file}, make([]byte, 1<<18))
	return h.Sum32(), err
}

// write makes the files; the sums come last, and tell that all is there.
func (p *prepared) write(b *models.Bundle, precision Precision, g *onnx.Graph) (graph []byte, err error) {
	partial, err := os.CreateTemp(p.dir, "."+p.name+".partial-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(partial.Name()))
		}
	}()
	defer partial.Close()
	h := crc32.New(castagnoli())
	buffer := bufio.NewWriterSize(io.MultiWriter(partial, h), 1<<20)
	change := onnx.NewPrecision(b.Dir, filepath.Base(p.weightsPath()), buffer)
	switch precision {
	case FP16:
		err = change.Halve(g)
	case INT8:
		var outputs []*onnx.Value
		for _, v := range g.Outputs {
			if slices.Contains([]string{graphs.OutputTarget, graphs.OutputCandidates, graphs.OutputVocabulary},
				v.Name) {
				outputs = append(outputs, v)
			}
		}
		err = change.Quantize(g, outputs)
	}
	if err == nil {
		err = change.Pack(g)
	}
	if err == nil {
		graph, err = g.Encode()
	}
	if err == nil {
		err = errors.Join(buffer.Flush(), partial.Sync(), partial.Chmod(0o644), partial.Close())
	}
	if err != nil {
		return nil, err
	}
	return graph, p.place(partial.Name(), graph, h.Sum32())
}

// place puts written weights and their graph where they belong, and removes what was prepared and not used for a month.
func (p *prepared) place(weights string, graph []byte, sum uint32) error {
	p.Graph, p.Weights = crc32.Checksum(graph, castagnoli()), sum
	sums, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.Rename(weights, p.weightsPath()); err != nil {
		return err
	}
	if err := errors.Join(maybe.WriteFile(p.graphPath(), graph, 0o644),
		maybe.WriteFile(p.sumsPath(), append(sums, '\n'), 0o644)); err != nil {
		return err
	}
	// Other versions, libraries and models leave theirs behind. One that a process still has open is only unlinked.
	const month = 30 * 24 * time.Hour
	_ = removePrepared(filepath.Dir(p.dir), func(_ string, used time.Time) bool { return time.Since(used) > month })
	return nil
}
