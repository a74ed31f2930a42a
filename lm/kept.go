package lm

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"infill/lm/internal/ort"
)

// kept is a graph as onnxruntime has optimised it, with weights widened to single precision and in the order that it
// wants, in the cache folder. Making that from the bundle takes longer than a whole answer.
type kept struct{ prepared }

// kept is where it is kept what the session's graph becomes; nil: it is not. Small models are made in no time; large
// ones have their weights in single precision, mostly, and are mapped. Gradients are asked for by long runs only.
func (l *lazySession) kept(m *MaskedLM, graph []byte) *kept {
	const small = 8 << 20 // bytes
	if m.runtime.Device() != "cpu" || m.precision != FP32 || m.bundle.Manifest.Size() < small || m.large() ||
		l != &m.conditionals {
		return nil
	}
	p, err := preparedOf(m.bundle.SHA256,
		fmt.Sprintf("%s-%08x-%s", FP32, crc32.Checksum(graph, castagnoli()), m.machine()), l.name)
	if err != nil {
		return nil
	}
	return &kept{*p}
}

// open makes a session of what is kept; nil: nothing sound is.
func (k *kept) open(l *lazySession, m *MaskedLM) *ort.Session {
	if k == nil {
		return nil
	}
	graph, err := k.read()
	if err != nil {
		return nil
	}
	s, err := m.runtime.NewSession(graph,
		ort.SessionOptions{ExternalDir: k.dir, Inputs: l.inputs, Outputs: l.outputs, NoPrepacking: m.mapped(),
			Optimised: true})
	if err != nil {
		return nil // made again, which tells what is wrong
	}
	return s
}

// save makes a session of the bundle's own graph, and keeps what it is optimised to. That is for the next start: where
// it fails, as in a folder that cannot be written, nothing is lost but its time.
func (k *kept) save(m *MaskedLM, graph []byte, o ort.SessionOptions) (*ort.Session, error) {
	if k == nil || os.MkdirAll(k.dir, 0o755) != nil {
		return m.runtime.NewSession(graph, o)
	}
	lock := flock.New(filepath.Join(k.dir, ".lock"))
	if locked, err := lock.TryLock(); err != nil || !locked {
		return m.runtime.NewSession(graph, o) // another process keeps it
	}
	defer lock.Close()
	partial := filepath.Join(k.dir, ".partial")
	if os.RemoveAll(partial) != nil || os.Mkdir(partial, 0o755) != nil {
		return m.runtime.NewSession(graph, o)
	}
	defer os.RemoveAll(partial) // whatever is left is removed by the next that keeps
	saving := o
	saving.SaveTo = filepath.Join(partial, filepath.Base(k.graphPath()))
	s, err := m.runtime.NewSession(graph, saving)
	if err != nil { // a full disk, or the model
		return m.runtime.NewSession(graph, o)
	}
	weights := filepath.Join(partial, filepath.Base(k.weightsPath()))
	sum, err := sumOf(weights)
	if err != nil {
		return s, nil // no weight is large enough to lie outside the graph
	}
	if optimised, err := os.ReadFile(saving.SaveTo); err == nil {
		_ = k.place(weights, optimised, sum) // what is half placed is not sound, and made again
	}
	return s, nil
}
