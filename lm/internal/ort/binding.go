package ort

// This file alone speaks to onnxruntime_go; a change of binding is a change of this file.

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	onnxruntime "github.com/yalue/onnxruntime_go"
)

// apiVersion is the ORT_API_VERSION of the C header that onnxruntime_go v1.27.0 is compiled with.
// A library offers its own API version and all before it, so the library's minor version must be at least this.
const apiVersion = 24

// LogSeverity is the least severe of onnxruntime's own messages that it writes to standard error.
type LogSeverity int

// The severities. LogFatal is the default: whatever fails comes back as an error anyway, and warnings about a graph are ours to read,
// not the user's.
const (
	LogFatal LogSeverity = iota
	LogError
	LogWarning
	LogInfo
	LogVerbose
)

func (s LogSeverity) level() (onnxruntime.LoggingLevel, error) {
	switch s {
	case LogFatal:
		return onnxruntime.LoggingLevelFatal, nil
	case LogError:
		return onnxruntime.LoggingLevelError, nil
	case LogWarning:
		return onnxruntime.LoggingLevelWarning, nil
	case LogInfo:
		return onnxruntime.LoggingLevelInfo, nil
	case LogVerbose:
		return onnxruntime.LoggingLevelVerbose, nil
	}
	return 0, fmt.Errorf("unknown log severity %d", int(s))
}

// createEnvironment loads the library and makes onnxruntime's environment. The caller holds the environment's lock and has probed the library.
func createEnvironment(libraryPath string, severity LogSeverity) error {
	level, err := severity.level()
	if err != nil {
		return err
	}
	onnxruntime.SetSharedLibraryPath(libraryPath)
	option := func() onnxruntime.EnvironmentOption {
		switch level {
		case onnxruntime.LoggingLevelFatal:
			return onnxruntime.WithLogLevelFatal()
		case onnxruntime.LoggingLevelError:
			return onnxruntime.WithLogLevelError()
		case onnxruntime.LoggingLevelWarning:
			return onnxruntime.WithLogLevelWarning()
		case onnxruntime.LoggingLevelInfo:
			return onnxruntime.WithLogLevelInfo()
		}
		return onnxruntime.WithLogLevelVerbose()
	}()
	if err := onnxruntime.InitializeEnvironment(option); err != nil {
		return oneLine(err)
	}
	// Only Windows builds send any, but no build of ours should.
	if err := onnxruntime.DisableTelemetry(); err != nil {
		return errors.Join(oneLine(err), onnxruntime.DestroyEnvironment())
	}
	return nil
}

func environmentVersion() string {
	return onnxruntime.GetVersion()
}

// settings is what a session is made with, resolved from Options and SessionOptions.
type settings struct {
	threads             int
	cudaDevice          int // -1: the CPU
	tensorFloat32       bool
	arena               bool
	memoryPattern       bool
	severity            LogSeverity
	profile             string
	optimized           string
	optimization        Optimization
	configuration       map[string]string
	externalDataFolder  string
	noPrepacking        bool
	requireOnlyProvider bool
}

// handle is a session of the binding.
type handle struct {
	session *onnxruntime.DynamicAdvancedSession
}

func createSession(model []byte, inputs, outputs []string, s settings) (*handle, error) {
	options, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return nil, oneLine(err)
	}
	defer options.Destroy()

	level, err := s.severity.level()
	if err != nil {
		return nil, err
	}
	optimization := onnxruntime.GraphOptimizationLevel(onnxruntime.GraphOptimizationLevelEnableAll)
	switch s.optimization {
	case OptimizeBasic:
		optimization = onnxruntime.GraphOptimizationLevelEnableBasic
	case OptimizeExtended:
		optimization = onnxruntime.GraphOptimizationLevelEnableExtended
	case OptimizeNothing:
		optimization = onnxruntime.GraphOptimizationLevelDisableAll
	}
	err = errors.Join(
		options.SetLogSeverityLevel(level),
		options.SetGraphOptimizationLevel(optimization),
		options.SetExecutionMode(onnxruntime.ExecutionModeSequential),
		options.SetIntraOpNumThreads(s.threads),
		options.SetInterOpNumThreads(1),
		options.SetCpuMemArena(s.arena),
		options.SetMemPattern(s.memoryPattern),
	)
	if s.noPrepacking {
		err = errors.Join(err, options.AddSessionConfigEntry("session.disable_prepacking", "1"))
	}
	for key, value := range s.configuration {
		err = errors.Join(err, options.AddSessionConfigEntry(key, value))
	}
	if s.externalDataFolder != "" {
		err = errors.Join(err, options.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", s.externalDataFolder))
	}
	if s.profile != "" {
		err = errors.Join(err, options.EnableProfiling(s.profile))
	}
	if s.optimized != "" {
		err = errors.Join(err, options.SetOptimizedModelFilePath(s.optimized))
	}
	if s.cudaDevice >= 0 {
		err = errors.Join(err, appendCUDA(options, s))
	}
	if s.requireOnlyProvider {
		err = errors.Join(err, options.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"))
	}
	if err != nil {
		return nil, oneLine(err)
	}
	session, err := onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, options)
	if err != nil {
		return nil, oneLine(err)
	}
	return &handle{session: session}, nil
}

func appendCUDA(options *onnxruntime.SessionOptions, s settings) error {
	cuda, err := onnxruntime.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	tensorFloat32 := "0"
	if s.tensorFloat32 {
		tensorFloat32 = "1"
	}
	err = cuda.Update(map[string]string{"device_id": strconv.Itoa(s.cudaDevice), "use_tf32": tensorFloat32})
	if err != nil {
		return err
	}
	return options.AppendExecutionProviderCUDA(cuda)
}

func (h *handle) destroy() error {
	return h.session.Destroy()
}

// call is what one Run needs beside its tensors. Calls are reused: one serves one Run at a time.
type call struct {
	options         *onnxruntime.RunOptions
	pinner          runtime.Pinner
	inputs, outputs []onnxruntime.Value
	// terminate sets the flag that a running call polls between nodes, then reports on terminated.
	terminate  func()
	terminated chan struct{}
}

func newCall(inputs, outputs int) (*call, error) {
	options, err := onnxruntime.NewRunOptions()
	if err != nil {
		return nil, oneLine(err)
	}
	c := &call{
		options:    options,
		inputs:     make([]onnxruntime.Value, inputs),
		outputs:    make([]onnxruntime.Value, outputs),
		terminated: make(chan struct{}, 1),
	}
	c.terminate = func() {
		// The flag is a field of live options; setting it cannot fail.
		_ = c.options.Terminate()
		c.terminated <- struct{}{}
	}
	return c, nil
}

func (c *call) destroy() error {
	return c.options.Destroy()
}

// bind makes onnxruntime's values over the tensors' memory, which stays pinned until release.
func (c *call) bind(declaredInputs, declaredOutputs []Value, inputs, outputs []Tensor) error {
	for i := range inputs {
		value, err := wrap(&inputs[i], &c.pinner)
		if err != nil {
			return fmt.Errorf("input %q: %w", declaredInputs[i].Name, oneLine(err))
		}
		c.inputs[i] = value
	}
	for i := range outputs {
		if outputs[i].allocated {
			if declared := declaredOutputs[i].Shape; declared == nil || len(declared) > 0 {
				continue // nil: onnxruntime allocates
			}
			// The binding cannot return a scalar that onnxruntime allocated, but a scalar's shape is known before the run.
			outputs[i] = emptyScalar(outputs[i].element)
		}
		value, err := wrap(&outputs[i], &c.pinner)
		if err != nil {
			return fmt.Errorf("output %q: %w", declaredOutputs[i].Name, oneLine(err))
		}
		c.outputs[i] = value
	}
	return nil
}

// collect brings what onnxruntime allocated, and scalars, into the caller's tensors.
func (c *call) collect(declared []Value, outputs []Tensor) error {
	for i := range outputs {
		if err := unwrap(c.outputs[i], &outputs[i]); err != nil {
			return fmt.Errorf("output %q: %w", declared[i].Name, err)
		}
	}
	return nil
}

// release gives back what bind and the run made; no C code sees the tensors' memory after it.
func (c *call) release() {
	for _, values := range [][]onnxruntime.Value{c.inputs, c.outputs} {
		for i, value := range values {
			if value != nil {
				_ = value.Destroy() // the binding's tensors always return nil
			}
			values[i] = nil
		}
	}
	c.pinner.Unpin()
}

func (h *handle) run(c *call) error {
	if err := h.session.RunWithOptions(c.inputs, c.outputs, c.options); err != nil {
		return oneLine(err)
	}
	return nil
}

func wrap(t *Tensor, pinner *runtime.Pinner) (onnxruntime.Value, error) {
	switch t.element {
	case ElementFloat32:
		return wrapSlice(t.shape, t.float32s, pinner)
	case ElementFloat64:
		return wrapSlice(t.shape, t.float64s, pinner)
	case ElementInt32:
		return wrapSlice(t.shape, t.int32s, pinner)
	case ElementInt64:
		return wrapSlice(t.shape, t.int64s, pinner)
	case ElementBool:
		return wrapSlice(t.shape, t.bools, pinner)
	}
	return nil, errors.New("the tensor has no element type")
}

func wrapSlice[T onnxruntime.TensorData](shape []int64, data []T, pinner *runtime.Pinner) (onnxruntime.Value, error) {
	if len(shape) == 0 {
		scalar, err := onnxruntime.NewScalar(data[0]) // a copy: the binding makes no scalar over foreign memory
		if err != nil {
			return nil, err
		}
		return scalar, nil
	}
	if len(data) > 0 {
		pinner.Pin(&data[0])
	}
	tensor, err := onnxruntime.NewTensor(onnxruntime.Shape(shape), data)
	if err != nil {
		return nil, err
	}
	return tensor, nil
}

func emptyScalar(element ElementType) Tensor {
	switch element {
	case ElementFloat32:
		return Float32([]int64{}, make([]float32, 1))
	case ElementFloat64:
		return Float64([]int64{}, make([]float64, 1))
	case ElementInt32:
		return Int32([]int64{}, make([]int32, 1))
	case ElementInt64:
		return Int64([]int64{}, make([]int64, 1))
	}
	return Bool([]int64{}, make([]bool, 1))
}

func unwrap(value onnxruntime.Value, t *Tensor) error {
	var ok bool
	switch t.element {
	case ElementFloat32:
		t.float32s, ok = unwrapSlice(value, t.allocated, t.float32s)
	case ElementFloat64:
		t.float64s, ok = unwrapSlice(value, t.allocated, t.float64s)
	case ElementInt32:
		t.int32s, ok = unwrapSlice(value, t.allocated, t.int32s)
	case ElementInt64:
		t.int64s, ok = unwrapSlice(value, t.allocated, t.int64s)
	case ElementBool:
		t.bools, ok = unwrapSlice(value, t.allocated, t.bools)
	}
	if !ok {
		return fmt.Errorf("the graph returned another type than %v", t.element)
	}
	if t.allocated {
		t.shape = value.GetShape()
		t.allocated = false
	}
	return nil
}

func unwrapSlice[T onnxruntime.TensorData](value onnxruntime.Value, allocated bool, data []T) ([]T, bool) {
	switch value := value.(type) {
	case *onnxruntime.Scalar[T]:
		data[0] = value.GetData()
		return data, true
	case *onnxruntime.Tensor[T]:
		if allocated {
			// The binding copied the output into a slice of its own and forgets it on Destroy.
			return value.GetData(), true
		}
		return data, true
	}
	return data, false
}

// oneLine makes an error of onnxruntime fit for a user: without the binding's preamble, stack traces and line breaks.
func oneLine(err error) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	if at := strings.Index(message, "\nStacktrace:"); at >= 0 {
		message = message[:at]
	}
	for _, preamble := range []string{"Error creating C session: ", "Error running network: ", "Error creating tensor from ort: ", "Platform-specific initialization failed: "} {
		message = strings.TrimPrefix(message, preamble)
	}
	return errors.New(strings.Join(strings.Fields(message), " "))
}
