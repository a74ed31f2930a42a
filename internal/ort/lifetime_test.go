package ort

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"infill/internal/check"
	"infill/internal/onnx"
)

// One session, many goroutines, each with its own shapes and values.
func TestOneSessionManyGoroutines(t *testing.T) {
	s := newSession(t, openCPU(t, Options{}), double(), SessionOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for round := range 50 {
				n := 1 + (g*7+round)%40
				in, out := make([]float32, n), make([]float32, n)
				for i := range in {
					in[i] = float32(g*1000 + round*50 + i)
				}
				if err := s.Run(ctx, []Tensor{vector(in...)}, []Tensor{vector(out...)}); err != nil {
					t.Error(err)
					return
				}
				for i, y := range out {
					if y != 2*in[i] {
						t.Errorf("goroutine %d, round %d: 2·%v = %v", g, round, in[i], y)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

func TestCloseWaitsForRunningCalls(t *testing.T) {
	s := newCounter(t, openCPU(t, Options{}))
	// Calls that started before Close come to their end, those after it are
	// refused, and none crashes.
	var all sync.WaitGroup
	started := make(chan struct{}, 8)
	for range 8 {
		all.Go(func() {
			started <- struct{}{}
			y, err := count(context.Background(), s, 20000, 0)
			if !(err == nil && y == 20000) && !errors.Is(err, errClosed) {
				t.Errorf("counted %v, %v", y, err)
			}
		})
	}
	for range 8 {
		<-started
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if _, err := count(context.Background(), s, 1, 0); !errors.Is(err, errClosed) {
		t.Errorf("run on a closed session: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// Close while a call runs that only its context can end: Close must not return
// before the call does.
func TestCloseDuringACallThatIsStopped(t *testing.T) {
	s := newCounter(t, openCPU(t, Options{}))
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		close(began)
		_, err := count(ctx, s, math.MaxInt64, 0)
		returned <- err
	}()
	<-began
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		// Close came before the call took hold; then the call is refused.
		if err != nil {
			t.Error(err)
		}
		if err := <-returned; !errors.Is(err, errClosed) {
			t.Errorf("run after close: %v", err)
		}
		cancel()
		return
	default:
	}
	cancel()
	if err := <-returned; !errors.Is(err, context.Canceled) && !errors.Is(err, errClosed) {
		t.Errorf("run: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestRuntimeCloseClosesSessions(t *testing.T) {
	r := check.Must(Open(context.Background(), Options{LibraryPath: testLibrary(t), Device: "cpu"}))(t)
	s := newSession(t, r, double(), SessionOptions{})
	check.OK(t, r.Close())
	if err := s.Run(context.Background(), []Tensor{vector(1)}, []Tensor{vector(0)}); !errors.Is(err, errClosed) {
		t.Errorf("run after the runtime's close: %v", err)
	}
	if _, err := sessionOf(r, double(), SessionOptions{}); !errors.Is(err, errClosed) {
		t.Errorf("session after the runtime's close: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// resident is this process's resident memory in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc/self/statm")
	}
	pages := check.Must(strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64))(t)
	return pages * int64(os.Getpagesize())
}

// Each case would leave far more than the allowance behind if it released one
// thing too few per round.
func TestResidentMemoryStaysFlat(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc")
	}
	if raceDetector {
		t.Skip("the race detector keeps memory of its own")
	}
	r := openCPU(t, Options{})
	ctx := context.Background()
	wide := newSession(t, r, double(), SessionOptions{})
	large := make([]float32, 1<<17) // 512 KiB
	out := make([]float32, len(large))
	repeated := newSession(t, r, expand(), SessionOptions{})
	var weights []float32
	for i := range 1 << 20 {
		weights = append(weights, float32(i%17))
	}
	matrix := onnx.Floats([]int64{1024, 1024}, weights...)
	product := func(weights func(g *onnx.Graph) *onnx.Value) *onnx.Graph {
		g := onnx.New("test")
		g.Output("y", g.MatMul(g.Input("x", onnx.Float, onnx.FixedShape(1, 1024)...), weights(g)))
		return g
	}
	heavy := product(func(g *onnx.Graph) *onnx.Value { return g.Constant("w", matrix) })
	folder := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(folder, "weights"), matrix.Raw, 0o600))
	outside := product(func(g *onnx.Graph) *onnx.Value {
		return g.External("w", onnx.Float, matrix.Shape, onnx.Location{File: "weights", Length: int64(len(matrix.Raw))})
	})
	endless := newCounter(t, r)
	session := func(g *onnx.Graph, o SessionOptions) error {
		s, err := sessionOf(r, g, o)
		if err != nil {
			return err
		}
		x := []int64{1, 1024}
		err = s.Run(ctx, []Tensor{Float32(x, large[:1024])}, []Tensor{Float32(x, out[:1024])})
		return errors.Join(err, s.Close())
	}
	expectFailure := func(err error) error {
		if err == nil {
			return errors.New("no error")
		}
		return nil
	}
	for _, test := range []struct {
		name      string
		rounds    int
		allowance int64 // bytes
		round     func(i int) error
	}{
		{"runs", 4000, 4 << 20, func(int) error {
			return wide.Run(ctx, []Tensor{vector(large...)}, []Tensor{vector(out...)})
		}},
		{"runs of many shapes", 40000, 4 << 20, func(i int) error {
			n := 1 + i%4000
			return wide.Run(ctx, []Tensor{vector(large[:n]...)}, []Tensor{vector(out[:n]...)})
		}},
		{"failing runs", 20000, 4 << 20, func(int) error {
			return expectFailure(
				repeated.Run(ctx, []Tensor{vector(large...), Int64([]int64{1}, []int64{3})}, []Tensor{vector(out...)}))
		}},
		{"stopped runs", 6000, 1 << 20, func(int) error {
			ctx, cancel := context.WithCancel(ctx)
			go cancel()
			_, err := count(ctx, endless, math.MaxInt64, 0)
			return expectFailure(err)
		}},
		{"sessions", 60, 64 << 20, func(int) error { return session(heavy, SessionOptions{}) }},
		{"sessions with external data", 60, 64 << 20,
			func(int) error { return session(outside, SessionOptions{ExternalDir: folder}) }},
		{"sessions that fail", 200, 4 << 20, func(int) error {
			_, err := sessionOf(r, outside, SessionOptions{ExternalDir: folder + "/absent"})
			return expectFailure(err)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i := range test.rounds / 4 { // arenas and allocators fill once
				check.OK(t, test.round(i))
			}
			before := resident(t)
			for i := range test.rounds {
				check.OK(t, test.round(i))
			}
			if grown := resident(t) - before; grown > test.allowance {
				t.Errorf("%d rounds grew resident memory by %d KiB", test.rounds, grown>>10)
			} else {
				t.Logf("%d rounds: %+d KiB", test.rounds, grown>>10)
			}
		})
	}
}
