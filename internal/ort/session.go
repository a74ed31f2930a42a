package ort

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// errClosed is the error of calls on a closed session or runtime.
var errClosed = errors.New("the onnxruntime session is closed")

// SessionOptions say how a session runs its graph.
type SessionOptions struct {
	// ExternalDir has the files of the graph's external initializers.
	ExternalDir string
	// Inputs and Outputs name the tensors of Run, in their order.
	Inputs, Outputs []string
	// NoPrepacking leaves constant matrices as they are stored, instead of
	// keeping a copy in the order in which products read them. Weights in a
	// file then stay mapped, and sessions share them.
	NoPrepacking bool
	// WideSums has products of bytes add where nothing is cut off, also on x86
	// processors without VNNI.
	WideSums bool
	// Threads is how many threads work on one node of the graph on the CPU; 0 for those of
	// the runtime.
	Threads int
}

// Session is a graph that is ready to run. Many goroutines can use it at once.
type Session struct {
	runtime *Runtime
	handle  *handle
	inputs  []string
	outputs []string

	// Runs lock open for reading, Close for writing: it waits for them.
	open   sync.RWMutex
	closed bool

	// idle keeps calls for reuse, at most as many as ever ran at once.
	idleLock sync.Mutex
	idle     []*call
}

// NewSession makes a session from the bytes of an ONNX model. It reads external
// initializers from o.ExternalDir. It takes far longer than a run, because
// onnxruntime optimises the graph and packs the weights.
func (r *Runtime) NewSession(model []byte, o SessionOptions) (*Session, error) {
	s, err := r.newSession(model, o, r.settings)
	if err != nil {
		return nil, fmt.Errorf("cannot make an onnxruntime session: %w", err)
	}
	return s, nil
}

func (r *Runtime) newSession(model []byte, o SessionOptions, settings settings) (*Session, error) {
	s := &Session{runtime: r, inputs: o.Inputs, outputs: o.Outputs}
	settings.SessionOptions = o
	isClosed := func() bool {
		r.open.RLock()
		defer r.open.RUnlock()
		return r.closed
	}
	if isClosed() {
		return nil, errClosed
	}
	var err error
	s.handle, err = createSession(model, settings)
	if err != nil {
		return nil, err
	}
	r.sessionsLock.Lock()
	r.sessions[s] = struct{}{}
	r.sessionsLock.Unlock()
	if isClosed() { // closed meanwhile: Close does not wait for sessions that are being made
		return nil, errors.Join(errClosed, s.Close())
	}
	return s, nil
}

// Run runs the graph. It reads inputs from the tensors' own slices and writes
// outputs into them, in the order of the session's options. If ctx ends, the
// run stops at the next node of the graph, and Run returns ctx's error
// (errors.Is(err, context.Canceled)), but never before onnxruntime has let go
// of the memory. The outputs' contents are undefined after any error.
func (s *Session) Run(ctx context.Context, inputs, outputs []Tensor) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("onnxruntime run not started: %w", err)
	}
	if err := checkTensors("input", s.inputs, inputs); err != nil {
		return err
	}
	if err := checkTensors("output", s.outputs, outputs); err != nil {
		return err
	}
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return errClosed
	}
	c, err := s.takeCall()
	if err != nil {
		return fmt.Errorf("onnxruntime run: %w", err)
	}
	reusable, err := s.runCall(ctx, c, inputs, outputs)
	if reusable {
		s.idleLock.Lock()
		s.idle = append(s.idle, c)
		s.idleLock.Unlock()
	} else {
		err = errors.Join(err, c.destroy())
	}
	return err
}

// runCall runs c. It returns false if the run was stopped: the terminate flag
// of c stays set, so c cannot be reused.
func (s *Session) runCall(ctx context.Context, c *call, inputs, outputs []Tensor) (reusable bool, err error) {
	defer c.release()
	if err := c.bind(inputs, outputs); err != nil {
		return true, fmt.Errorf("onnxruntime run: %w", err)
	}
	terminated := false
	if ctx.Done() == nil {
		err = c.run(s.handle)
	} else {
		stop := context.AfterFunc(ctx, c.terminate)
		err = c.run(s.handle)
		if !stop() {
			<-c.terminated // c.options must outlive the goroutine that sets their flag
			terminated = true
		}
	}
	switch {
	case err != nil && terminated:
		return false, fmt.Errorf("onnxruntime run stopped: %w", ctx.Err())
	case err != nil:
		return true, fmt.Errorf("onnxruntime run: %w", err)
	}
	return !terminated, nil
}

func checkTensors(kind string, names []string, tensors []Tensor) error {
	if len(tensors) != len(names) {
		return fmt.Errorf("onnxruntime run: %d %ss given, the session takes %d", len(tensors), kind, len(names))
	}
	for i, tensor := range tensors {
		if err := tensor.check(); err != nil {
			return fmt.Errorf("onnxruntime run: %s %q: %w", kind, names[i], err)
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

// Close waits for running calls and releases the session. A second Close does
// nothing and returns no error.
func (s *Session) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.runtime.sessionsLock.Lock()
	delete(s.runtime.sessions, s)
	s.runtime.sessionsLock.Unlock()
	err := s.handle.Destroy()
	for _, c := range s.idle {
		err = errors.Join(err, c.destroy())
	}
	s.idle = nil
	return err
}
