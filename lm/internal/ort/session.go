package ort

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrClosed is returned by calls on a closed session or runtime.
var ErrClosed = errors.New("the onnxruntime session is closed")

// Optimization is how far onnxruntime rewrites a graph before running it.
type Optimization int

// The levels. OptimizeAll is the default: it folds constants (Cast nodes over stored weights among them), fuses and re-lays nodes.
const (
	OptimizeAll Optimization = iota
	OptimizeExtended
	OptimizeBasic
	OptimizeNothing
)

// SessionOptions say how a graph is run. The zero value is right for a graph without external data.
type SessionOptions struct {
	// ExternalDir is the folder in which the graph's external initializers lie.
	ExternalDir string
	// Inputs and Outputs name the values that Run takes, in Run's order; nil means all of the graph's, in its order.
	Inputs, Outputs []string
	// NoPrepacking leaves constant matrices as they are stored, instead of keeping a copy in the order that products read. Weights
	// of a file then stay mapped, and are shared by sessions.
	NoPrepacking bool
	// Optimization is OptimizeAll by default.
	Optimization Optimization
	// OptimizedModel is a file to which onnxruntime writes the graph it really runs; empty: nowhere. For the developer's eyes.
	OptimizedModel string
	// Profile is the prefix of a JSON file with the time of every node, written when the session is closed; empty: none.
	Profile string
}

// Session is a graph ready to run. It serves many goroutines at once.
type Session struct {
	runtime *Runtime
	handle  *handle
	inputs  []Value
	outputs []Value

	// Runs hold it for reading, Close for writing: a session goes only when no run uses it.
	open   sync.RWMutex
	closed bool

	// idle keeps the calls of past runs, at most as many as ever ran at once.
	idleLock sync.Mutex
	idle     []*call
}

// NewSession makes a session from the bytes of an ONNX model. External initializers are read from o.ExternalDir.
// Making one costs far more than a run: it optimises the graph and packs the weights.
func (r *Runtime) NewSession(model []byte, o SessionOptions) (*Session, error) {
	s, err := r.newSession(model, o, r.settings)
	if err != nil {
		return nil, fmt.Errorf("cannot make an onnxruntime session: %w", err)
	}
	return s, nil
}

func (r *Runtime) newSession(model []byte, o SessionOptions, settings settings) (*Session, error) {
	declared, err := readSignature(model)
	if err != nil {
		return nil, err
	}
	s := &Session{runtime: r}
	if s.inputs, err = pick("input", declared.inputs, o.Inputs); err != nil {
		return nil, err
	}
	if s.outputs, err = pick("output", declared.outputs, o.Outputs); err != nil {
		return nil, err
	}
	settings.externalDataFolder = o.ExternalDir
	settings.noPrepacking = o.NoPrepacking
	settings.optimization = o.Optimization
	settings.optimized = o.OptimizedModel
	settings.profile = o.Profile

	r.open.RLock()
	defer r.open.RUnlock()
	if r.closed {
		return nil, ErrClosed
	}
	if s.handle, err = createSession(model, names(s.inputs), names(s.outputs), settings); err != nil {
		return nil, err
	}
	r.sessionsLock.Lock()
	defer r.sessionsLock.Unlock()
	r.sessions[s] = struct{}{}
	return s, nil
}

func names(values []Value) []string {
	names := make([]string, len(values))
	for i := range values {
		names[i] = values[i].Name
	}
	return names
}

// Inputs are the values that Run takes, in its order; callers must not change them.
func (s *Session) Inputs() []Value { return s.inputs }

// Outputs are the values that Run gives, in its order; callers must not change them.
func (s *Session) Outputs() []Value { return s.outputs }

// Run runs the graph. It reads inputs from and writes outputs into the tensors' own slices, in the order of Inputs and Outputs;
// outputs made by Allocated are replaced in the slice outputs.
// When ctx ends, the run is stopped at the next node of the graph, and Run returns ctx's error (errors.Is(err, context.Canceled)) once
// onnxruntime has let go of the memory, never before. The outputs' contents are undefined after any error.
func (s *Session) Run(ctx context.Context, inputs, outputs []Tensor) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("onnxruntime run not started: %w", err)
	}
	if err := check("input", s.inputs, inputs); err != nil {
		return err
	}
	if err := check("output", s.outputs, outputs); err != nil {
		return err
	}
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return ErrClosed
	}
	c, err := s.takeCall()
	if err != nil {
		return fmt.Errorf("onnxruntime run: %w", err)
	}
	reusable, err := s.runCall(ctx, c, inputs, outputs)
	if reusable {
		s.putCall(c)
	} else {
		err = errors.Join(err, c.destroy())
	}
	return err
}

// runCall reports whether c may serve another run: the terminate flag of a stopped one stays set.
func (s *Session) runCall(ctx context.Context, c *call, inputs, outputs []Tensor) (reusable bool, err error) {
	defer c.release()
	if err := c.bind(s.inputs, s.outputs, inputs, outputs); err != nil {
		return true, fmt.Errorf("onnxruntime run: %w", err)
	}
	terminated := false
	if ctx.Done() == nil {
		err = s.handle.run(c)
	} else {
		stop := context.AfterFunc(ctx, c.terminate)
		err = s.handle.run(c)
		if !stop() {
			<-c.terminated // the options must outlive whoever sets their flag
			terminated = true
		}
	}
	switch {
	case err != nil && terminated:
		return false, fmt.Errorf("onnxruntime run stopped: %w", ctx.Err())
	case err != nil:
		return true, fmt.Errorf("onnxruntime run: %w", err)
	}
	if err := c.collect(s.outputs, outputs); err != nil {
		return !terminated, fmt.Errorf("onnxruntime run: %w", err)
	}
	return !terminated, nil
}

func check(kind string, declared []Value, tensors []Tensor) error {
	if len(tensors) != len(declared) {
		return fmt.Errorf("onnxruntime run: %d %ss given, the session takes %d", len(tensors), kind, len(declared))
	}
	for i, tensor := range tensors {
		if err := tensor.check(declared[i]); err != nil {
			return fmt.Errorf("onnxruntime run: %s %q: %w", kind, declared[i].Name, err)
		}
		if kind == "input" && tensor.allocated {
			return fmt.Errorf("onnxruntime run: input %q: the tensor has no data", declared[i].Name)
		}
	}
	return nil
}

func (s *Session) takeCall() (*call, error) {
	s.idleLock.Lock()
	defer s.idleLock.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		c := s.idle[last]
		s.idle = s.idle[:last]
		return c, nil
	}
	return newCall(len(s.inputs), len(s.outputs))
}

func (s *Session) putCall(c *call) {
	s.idleLock.Lock()
	defer s.idleLock.Unlock()
	s.idle = append(s.idle, c)
}

// Close waits for running calls and releases the session. Closing twice is no error.
func (s *Session) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.runtime.forget(s)
	err := s.handle.destroy()
	for _, c := range s.idle {
		err = errors.Join(err, c.destroy())
	}
	s.idle = nil
	return err
}
