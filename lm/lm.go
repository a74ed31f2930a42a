// Package lm runs masked language models: log-probabilities of tokens at chosen
// positions, and the joint energy of several masked slots with its gradient,
// batched over chains. Samplers sample from a [Target].
package lm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"infill/internal/bert"
	"infill/internal/graphs"
	"infill/internal/imported"
	"infill/internal/onnx"
	"infill/internal/ort"
	"infill/internal/ort/library"
	"infill/internal/parallel"
	"infill/models"
)

// Options say where and how a model runs. The zero value finds or downloads the
// onnxruntime library, and uses a GPU if one works. Only MaskID must be set.
type Options struct {
	Device  string // "auto" (also if empty), "cpu", "cuda" or "cuda:N"
	Threads int    // cores to use on the CPU, at most [MaxThreads]; if 0, all
	MaskID  int    // id of the token [MASK], from the bundle's tokenizer; required
	// SeparatorID is the token id of [SEP], which ends the first text of a
	// pair. If 0, all tokens are of one segment.
	SeparatorID int
	// Library is the path of the onnxruntime shared library. If it is empty,
	// Open finds the library for the device, or downloads the CPU's.
	Library string
	// Progress observes a download, unless it is nil.
	Progress FetchProgress
}

// MaskedLM is a masked language model, ready for many goroutines at once.
type MaskedLM struct {
	bundle       *models.Bundle
	runtime      *ort.Runtime
	conditionals lazySession
	wide         lazySession // as conditionals, with all cores for one call
	gradient     lazySession
	chunk        chunkLimits
	mask         int
	engine       *engine
	packed       bool          // whether rows of several lengths share calls
	measuring    chan struct{} // holds who measures
}

// Open prepares a model. It makes no session: the first use makes one session
// for log-probabilities or for gradients, and each holds the weights in memory.
func Open(ctx context.Context, bundle *models.Bundle, o Options) (*MaskedLM, error) {
	if o.MaskID <= 0 || o.MaskID >= bundle.Config.VocabularySize {
		return nil, fmt.Errorf("[MASK] has id %d, outside the model's vocabulary of %d", o.MaskID,
			bundle.Config.VocabularySize)
	}
	err := CheckDevice(bundle, o.Device)
	if err != nil {
		return nil, err
	}
	if bundle.Int8() {
		o.Device = "cpu"
	}
	path := o.Library
	if path == "" {
		path, err = ort.Locate(ctx, o.Device, o.Progress)
		if err != nil {
			return nil, err
		}
	}
	runtime, err := ort.Open(ctx, ort.Options{LibraryPath: path, Device: o.Device, Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	m := &MaskedLM{bundle: bundle, runtime: runtime, mask: o.MaskID, measuring: make(chan struct{}, 1)}
	m.chunk = limits(bundle.Config, runtime.Device())
	m.packed = bundle.Graph == "" && bert.Model{Bundle: bundle}.Packed()
	m.conditionals.build = func(b *models.Bundle) (*onnx.Graph, error) {
		if m.packed {
			return graphOf(b, o.SeparatorID, graphs.PackedConditionals)
		}
		return graphOf(b, o.SeparatorID, graphs.Conditionals)
	}
	m.gradient.build = func(b *models.Bundle) (*onnx.Graph, error) {
		why := b.NoGradient()
		if why != "" {
			return nil, fmt.Errorf("model %s has no gradient: %s; use the gradient local, or a sampler without one",
				b.Name, why)
		}
		return graphOf(b, o.SeparatorID, graphs.Gradient)
	}
	m.conditionals.inputs = []string{graphs.InputIDs, graphs.InputQueries, graphs.InputTargets, graphs.InputCandidates,
		graphs.InputChosen}
	m.conditionals.outputs = []string{graphs.OutputTarget, graphs.OutputCandidates, graphs.OutputVocabulary}
	m.gradient.inputs = append(append([]string{}, m.conditionals.inputs...),
		graphs.InputSlots, graphs.InputWeights, graphs.InputSlotCandidates, graphs.InputChosenSlots)
	if m.packed {
		m.conditionals.inputs = append(m.conditionals.inputs, graphs.InputPositions, graphs.InputSpread,
			graphs.InputKept, graphs.InputLengths)
	}
	m.gradient.outputs = append(append([]string{}, m.conditionals.outputs...), graphs.OutputSlotCandidates,
		graphs.OutputSlotsVocabulary)
	m.engine = &engine{workers: cardWorkers}
	if m.onCores() {
		m.engine.workers = runtime.Threads()
		m.conditionals.threads = 1
		m.gradient.threads = 1
	}
	m.wide.build = m.conditionals.build
	m.wide.inputs = m.conditionals.inputs
	m.wide.outputs = m.conditionals.outputs
	if m.onCores() && m.mapped() {
		m.wide.threads = runtime.Threads()
	}
	return m, nil
}

// cardWorkers is the number of calls on a card at once: while one computes, the rows of the
// next are gathered, and the results of the one before are handed out.
const cardWorkers = 2

// onCores reports whether the model runs on a CPU, where a call has one core.
func (m *MaskedLM) onCores() bool { return m.runtime.Device() == "cpu" }

// limits returns the limits for a model on a device, with figures from
// BenchmarkChunk. For large vocabularies, memory bounds the queries: all
// distributions of a call take 32 MiB on a CPU, and a few such arrays exist at
// once.
func limits(c models.Config, device string) chunkLimits {
	if strings.HasPrefix(device, "cuda") {
		return chunkLimits{tokens: 64 << 10, queries: max(1, min(2<<10, (64<<20)/c.VocabularySize))}
	}
	return chunkLimits{tokens: max(384, (3<<19)/c.IntermediateSize),
		queries: max(1, min(256, (8<<20)/c.VocabularySize))}
}

// ValidDevice returns an error if Options.Device cannot be that.
func ValidDevice(name string) error { return ort.CheckDevice(name) }

// MaxThreads returns the most threads of a model call: four times the processors.
func MaxThreads() int { return ort.MaxThreads() }

// Close waits for running calls and releases the sessions.
func (m *MaskedLM) Close() error {
	return errors.Join(m.conditionals.close(), m.wide.close(), m.gradient.close(), m.runtime.Close())
}

// Description says which model runs, where, and how.
type Description struct {
	Name    string // name of the bundle
	SHA256  string // of the bundle (Manifest.SHA256), 64 hexadecimal digits
	Runtime string // onnxruntime's version
	Device  string // the device in use, "cpu" or "cuda:N"
	Note    string // why "auto" chose the CPU; "" if it did not, or if Options.Device is not "auto"
	Threads int    // number of threads of one model call on the CPU
	// Segments is the number of segments that the model distinguishes.
	Segments int
	// NoGradient says why the model cannot be differentiated; "" if it can be.
	NoGradient string
}

// Description says which model runs, and on which device.
func (m *MaskedLM) Description() Description {
	return Description{Name: m.bundle.Name, SHA256: m.bundle.SHA256, Runtime: m.runtime.Version(),
		Device: m.runtime.Device(),
		Note:   m.runtime.Note(), Threads: m.runtime.Threads(), Segments: m.bundle.Config.Segments,
		NoGradient: m.bundle.NoGradient()}
}

// Positions returns the length of the longest text that the model takes, in
// tokens, [CLS] and [SEP] included.
func (m *MaskedLM) Positions() int { return m.bundle.Config.MaxPositions }

// Vocabulary returns the number of tokens that the model scores.
func (m *MaskedLM) Vocabulary() int { return m.bundle.Config.VocabularySize }

// MaskID returns the id of the token [MASK].
func (m *MaskedLM) MaskID() int { return m.mask }

// check returns an error for ids that are too many or outside the vocabulary.
func (m *MaskedLM) check(ids []int) error {
	if len(ids) > m.Positions() {
		return fmt.Errorf("the text has %d tokens, the model takes at most %d ([CLS] and [SEP] included)", len(ids),
			m.Positions())
	}
	for i, id := range ids {
		if id < 0 || id >= m.Vocabulary() {
			return fmt.Errorf("token %d at position %d is outside the vocabulary of %d", id, i, m.Vocabulary())
		}
	}
	return nil
}

// oneOf returns value, or an error if the type's Values do not list it.
func oneOf[T interface {
	~string
	Values() []T
}](what string, value T) (T, error) {
	if !slices.Contains(value.Values(), value) {
		return "", fmt.Errorf("%s %q is not one of %s", what, value,
			strings.Trim(strings.ReplaceAll(fmt.Sprint(value.Values()), " ", ", "), "[]"))
	}
	return value, nil
}

// lazySession is a session that is made at its first use.
type lazySession struct {
	build           func(*models.Bundle) (*onnx.Graph, error)
	inputs, outputs []string
	threads         int // of a call; 0 for those of the runtime

	lock    sync.Mutex
	session *ort.Session
	making  *making // nil if nobody makes the session
	closed  bool
}

// making is a session that is being made, which may take long and cannot be stopped. err
// is set when done is closed.
type making struct {
	done chan struct{}
	err  error
}

var errClosed = errors.New("the model is closed")

// get returns the session, and makes it if there is none. If ctx ends while the
// session is being made, making it continues: a later get uses the session, or,
// after close, it is closed at once.
func (l *lazySession) get(ctx context.Context, m *MaskedLM) (*ort.Session, error) {
	l.lock.Lock()
	if l.closed {
		l.lock.Unlock()
		return nil, errClosed
	}
	if l.session != nil {
		defer l.lock.Unlock()
		return l.session, nil
	}
	now := l.making
	if now == nil {
		now = &making{done: make(chan struct{})}
		l.making = now
		go func() {
			var session *ort.Session
			err := parallel.Safely(func() (err error) { // a panic is an error for those that wait
				session, err = l.make(m)
				return err
			})
			l.lock.Lock()
			defer l.lock.Unlock()
			l.session = session
			l.making = nil
			if l.closed && session != nil {
				l.session, err = nil, session.Close()
			}
			now.err = err
			close(now.done)
		}()
	}
	l.lock.Unlock()
	select {
	case <-now.done:
		if now.err != nil {
			return nil, now.err
		}
		return l.get(ctx, m)
	case <-ctx.Done():
		return nil, fmt.Errorf("onnxruntime session not waited for: %w", ctx.Err())
	}
}

func (l *lazySession) make(m *MaskedLM) (*ort.Session, error) {
	encoded, err := l.encode(m)
	if err != nil {
		if m.bundle.Graph != "" && !strings.Contains(err.Error(), m.bundle.Graph) {
			err = fmt.Errorf("%s: %w", m.bundle.Graph, err)
		}
		return nil, err
	}
	session, err := m.runtime.NewSession(encoded, ort.SessionOptions{
		ExternalDir: m.bundle.WeightsDir, Inputs: l.inputs, Outputs: l.outputs, NoPrepacking: m.mapped(),
		WideSums: m.bundle.Int8() && !hasVNNI(),
		Threads:  l.threads,
	})
	if err != nil {
		return nil, m.named(err)
	}
	return session, nil
}

func (l *lazySession) encode(m *MaskedLM) ([]byte, error) {
	graph, err := l.build(m.bundle)
	if err != nil {
		return nil, err
	}
	return graph.Encode()
}

func (m *MaskedLM) file() string { return cmp.Or(m.bundle.Graph, m.bundle.Dir) }

// named adds the model's file, and advice, to an error of onnxruntime.
func (m *MaskedLM) named(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		strings.Contains(err.Error(), m.file()):
		return err
	case strings.Contains(err.Error(), "std::bad_alloc"):
		return fmt.Errorf("%s: %w: there is too little memory for the model and the texts at work: give the process "+
			"more, or fewer texts at once", m.file(), err)
	case m.bundle.Graph != "":
		return fmt.Errorf("%s: %w: the graph does not fit what it is given, or onnxruntime %s does not run it; "+
			"export the model again, with dynamic axes", m.file(), err, m.runtime.Version())
	}
	return fmt.Errorf(
		"%s: %w: the model may be damaged, or onnxruntime %s too old; fetch it again, or see infill version", m.file(),
		err, m.runtime.Version())
}

// mapped reports whether weights stay mapped from their file. Copies in the
// order in which products read make rows up to a tenth faster. But for a large
// model a copy takes a second to make, and each session has its own.
func (m *MaskedLM) mapped() bool {
	const large = 128 << 20 // bytes
	return !m.bundle.Int8() && m.bundle.Manifest.Size() >= large
}

func (l *lazySession) close() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.closed = true
	if l.session == nil {
		return nil
	}
	err := l.session.Close()
	l.session = nil
	return err
}

// graphOf builds, by write, a graph of the model in b: of log-probabilities, say, or of
// gradients. separator is the token that ends the first text of a pair.
func graphOf(b *models.Bundle, separator int,
	write func(name string, m graphs.Model) (*onnx.Graph, error)) (*onnx.Graph, error) {
	if b.Graph == "" {
		return write(b.Name, bert.Model{Bundle: b, Separator: separator})
	}
	m, err := imported.Open(b, separator)
	if err != nil {
		return nil, err
	}
	return write(b.Name, m)
}

// Import copies an exported graph, its files of weights and its tokenizer into
// the store, under the name given. It also imports a graph that cannot be
// differentiated: then Config.Imported.NoGradient names the operator. tokenizer
// is the folder with the tokenizer's files, and perhaps the model's
// config.json. positions is the length of the longest text in tokens; if 0,
// Import reads it from config.json or tokenizer_config.json.
func Import(ctx context.Context, store *models.Store, file, name, tokenizer string,
	positions int) (*models.Bundle, error) {
	settings, err := imported.Settings(file, tokenizer, positions)
	if err != nil {
		return nil, err
	}
	return store.ImportGraph(ctx, file, tokenizer, name, *settings, func(b *models.Bundle) error {
		err := try(ctx, b)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s does not run: %w", file, err)
		}
		return err
	})
}

// try asks a model for a row. Only onnxruntime knows whether it takes a graph, and has
// memory for it.
func try(ctx context.Context, b *models.Bundle) error {
	m, err := Open(ctx, b, Options{Device: "cpu", MaskID: 1})
	if err != nil {
		return err
	}
	ids := make([]int, min(b.Config.MaxPositions, 16))
	_, err = m.LogProbabilities(ctx, []Row{{IDs: ids, Positions: []int{0}}})
	return errors.Join(err, m.Close())
}

// Library describes a place where an onnxruntime library may be: a usable
// library, or the reason why there is none.
type Library = library.Library

// FetchProgress observes how a library is fetched.
type FetchProgress = library.Progress

// LocateLibrary returns the path of the library for a device (see
// Options.Device). If the CPU's library is missing, it downloads it, and
// reports that to progress, unless progress is nil. A process can load only one
// library: if one is loaded already, LocateLibrary returns its path.
func LocateLibrary(ctx context.Context, device string, progress FetchProgress) (string, error) {
	return ort.Locate(ctx, device, progress)
}

// FindLibrary finds the library for the CPU, and never downloads one.
func FindLibrary() (Library, error) { return library.Find(library.Options{}) }

// EnsureLibrary finds a library for the device "cpu" or "cuda", or downloads
// one. If INFILL_ONNXRUNTIME names a library, it never downloads.
func EnsureLibrary(ctx context.Context, device string, progress FetchProgress) (Library, error) {
	return library.Ensure(ctx, library.Options{CUDA: device == "cuda", Progress: progress})
}

// CheckLimits returns an error if a limit of the process is too low for any
// model. Where memory is short, Go's own threads may end the process before
// onnxruntime could report it, so call CheckLimits first.
func CheckLimits() error { return ort.CheckLimits() }

// FindGPU asks the NVIDIA driver for a GPU; an error says why there is none.
func FindGPU() error { return ort.FindGPU() }
