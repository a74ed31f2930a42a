package ort

// Only this file, and library/module.go for what lies beside its source, import
// onnxruntime_go: a change of binding needs a change of these files alone.

import (
	"cmp"
	"errors"
	"runtime"
	"strconv"
	"strings"

	onnxruntime "github.com/yalue/onnxruntime_go"
)

// apiVersion is the ORT_API_VERSION of the C header that onnxruntime_go v1.27.0
// is compiled with. A library offers its own API version and all earlier
// versions, so the library's minor version must be at least apiVersion.
const apiVersion = 24

// createEnvironment loads the library and makes onnxruntime's environment. If
// warnings is true, a test has the environment write to standard error.
// Otherwise it writes nothing, as every failure is returned as an error. The
// caller holds the environment's lock and has probed the library.
func createEnvironment(libraryPath string, warnings bool) error {
	onnxruntime.SetSharedLibraryPath(libraryPath)
	level := onnxruntime.WithLogLevelFatal()
	if warnings {
		level = onnxruntime.WithLogLevelWarning()
	}
	if err := onnxruntime.InitializeEnvironment(level); err != nil {
		return oneLine(err)
	}
	// Windows builds before 1.29 need this; newer ones read load's variable, too.
	if err := onnxruntime.DisableTelemetry(); err != nil {
		return errors.Join(oneLine(err), onnxruntime.DestroyEnvironment())
	}
	return nil
}

func environmentVersion() string { return onnxruntime.GetVersion() }

// settings of a session: of the Runtime, and of NewSession's caller.
type settings struct {
	SessionOptions
	threads             int
	warnings            bool
	cudaDevice          int // -1 for the CPU
	requireOnlyProvider bool
}

type handle = onnxruntime.DynamicAdvancedSession

func createSession(model []byte, s settings) (*handle, error) {
	options, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return nil, oneLine(err)
	}
	defer options.Destroy()

	level := onnxruntime.LoggingLevel(onnxruntime.LoggingLevelFatal)
	if s.warnings {
		level = onnxruntime.LoggingLevelWarning
	}
	err = errors.Join(
		options.SetLogSeverityLevel(level),
		options.SetGraphOptimizationLevel(onnxruntime.GraphOptimizationLevelEnableAll),
		options.SetExecutionMode(onnxruntime.ExecutionModeSequential),
		options.SetIntraOpNumThreads(cmp.Or(s.Threads, s.threads)),
		options.SetInterOpNumThreads(1),
		options.SetCpuMemArena(true),
		// onnxruntime makes a plan for every set of input shapes, and a process
		// with many shapes would pile up plans.
		options.SetMemPattern(false),
		// Threads that spin between nodes gain little alone, and lose half the
		// speed beside another busy process. After a run, they would take the
		// cores from the sampler and from other sessions' threads.
		options.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		options.AddSessionConfigEntry("session.force_spinning_stop", "1"),
	)
	if s.WideSums {
		err = errors.Join(err, options.AddSessionConfigEntry("session.x64quantprecision", "1"))
	}
	if s.NoPrepacking {
		err = errors.Join(err, options.AddSessionConfigEntry("session.disable_prepacking", "1"))
	}
	if s.ExternalDir != "" {
		err = errors.Join(err,
			options.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", s.ExternalDir))
	}
	if s.cudaDevice >= 0 {
		err = errors.Join(err, appendCUDA(options, s.cudaDevice))
	}
	if s.requireOnlyProvider {
		err = errors.Join(err, options.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"))
	}
	if err != nil {
		return nil, oneLine(err)
	}
	session, err := onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, s.Inputs, s.Outputs, options)
	return session, oneLine(err)
}

func appendCUDA(options *onnxruntime.SessionOptions, device int) error {
	cuda, err := onnxruntime.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	// TensorFloat-32 rounds the factors of matrix products to 10 bits. Without
	// it, energies keep float32 precision.
	if err := cuda.Update(map[string]string{"device_id": strconv.Itoa(device), "use_tf32": "0"}); err != nil {
		return err
	}
	return options.AppendExecutionProviderCUDA(cuda)
}

// call holds the memory that one Run needs, apart from the tensors. A call is
// reused, but serves one Run at a time.
type call struct {
	options         *onnxruntime.RunOptions
	pinner          runtime.Pinner
	inputs, outputs []onnxruntime.Value
	// terminate sets the flag that calls poll, then sends on terminated.
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
		// This sets a field of live options, which cannot fail.
		_ = c.options.Terminate()
		c.terminated <- struct{}{}
	}
	return c, nil
}

func (c *call) destroy() error { return c.options.Destroy() }

// bind makes onnxruntime values over the memory of the tensors. The memory
// stays pinned until release.
func (c *call) bind(inputs, outputs []Tensor) error {
	for _, side := range []struct {
		tensors []Tensor
		values  []onnxruntime.Value
	}{{inputs, c.inputs}, {outputs, c.outputs}} {
		for i, t := range side.tensors {
			var err error
			if t.whole {
				side.values[i], err = wrap(t.shape, t.int64s, &c.pinner)
			} else {
				side.values[i], err = wrap(t.shape, t.float32s, &c.pinner)
			}
			if err != nil {
				return oneLine(err)
			}
		}
	}
	return nil
}

func wrap[T onnxruntime.TensorData](shape []int64, data []T, pinner *runtime.Pinner) (onnxruntime.Value, error) {
	if len(data) > 0 {
		pinner.Pin(&data[0])
	}
	tensor, err := onnxruntime.NewTensor(onnxruntime.Shape(shape), data)
	if err != nil {
		return nil, err // a nil *Tensor in the interface would not equal nil
	}
	return tensor, nil
}

// release frees the values that bind and the run have made. After release, no C
// code sees the memory of the tensors.
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

func (c *call) run(h *handle) error { return oneLine(h.RunWithOptions(c.inputs, c.outputs, c.options)) }

// oneLine makes an error of onnxruntime fit for users: it drops the binding's
// preamble, stack traces and line breaks.
func oneLine(err error) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	if at := strings.Index(message, "\nStacktrace:"); at >= 0 {
		message = message[:at]
	}
	for _, preamble := range []string{"Error creating C session: ", "Error running network: ",
		"Error creating tensor from ort: ", "Platform-specific initialization failed: "} {
		message = strings.TrimPrefix(message, preamble)
	}
	return errors.New(strings.Join(strings.Fields(message), " "))
}
