package lm

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"infill/internal/check"
	"infill/samplers"
)

// heldJob is a job of a row whose call runs until it is let go, or until its
// context ends.
type heldJob struct {
	begun, release chan struct{}
	shared         int // requests in its call
	price          int // of its row; 0 for 1, and at a price no other job shares its call
}

func newHeldJob() *heldJob { return &heldJob{begun: make(chan struct{}), release: make(chan struct{})} }

func (j *heldJob) rows() int                 { return 1 }
func (j *heldJob) cost() int                 { return max(1, j.price) }
func (j *heldJob) room() int                 { return 7 }
func (j *heldJob) size() int                 { return 1 }
func (j *heldJob) wide() bool                { return true }
func (j *heldJob) fitting(room, row int) int { return min(room, 1-row) }
func (j *heldJob) shares(other job) bool     { return j.price == 0 || other == j }

func (j *heldJob) run(ctx context.Context, _ *sharedCall, parts []part) error {
	close(j.begun)
	j.shared = len(parts)
	select {
	case <-j.release:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// TestSharedCallEnds: a call that several callers share ends when all of them
// have left, and no sooner.
func TestSharedCallEnds(t *testing.T) {
	for _, leaving := range [][]int{nil, {0}, {1}, {0, 1}, {0, 1, 2}, {2, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			e := &engine{workers: 1}
			before := newHeldJob() // keeps the only worker while the others come
			go e.await(t.Context(), &Caller{}, before)
			<-before.begun
			var jobs []*heldJob
			var cancels []func()
			ended := make([]chan error, 3)
			for i := range ended {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cancels = append(cancels, cancel)
				job := newHeldJob()
				jobs = append(jobs, job)
				ended[i] = make(chan error, 1)
				go func() { ended[i] <- e.await(ctx, &Caller{}, job) }()
				synctest.Wait() // in this order
			}
			close(before.release)
			<-jobs[0].begun
			left := map[int]bool{}
			for _, i := range leaving {
				cancels[i]()
				left[i] = true
				synctest.Wait()
			}
			all := len(leaving) == len(jobs)
			if !all { // else the call ends by itself
				close(jobs[0].release)
			}
			for i := range ended {
				err := <-ended[i]
				if left[i] != errors.Is(err, context.Canceled) || !left[i] && err != nil {
					t.Errorf("%v leave: %d ends with %v", leaving, i, err)
				}
			}
			if jobs[0].shared != len(jobs) {
				t.Errorf("%d share the call, want %d", jobs[0].shared, len(jobs))
			}
		})
	}
}

// TestWorkers: as many calls run at once as there are workers, and no more.
func TestWorkers(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		synctest.Test(t, func(t *testing.T) {
			e := &engine{workers: workers}
			begun := 0
			var jobs []*heldJob
			var wait sync.WaitGroup
			for range workers + 2 {
				j := newHeldJob()
				j.price = 600
				jobs = append(jobs, j)
				wait.Go(func() { check.OK(t, e.await(t.Context(), &Caller{}, j)) })
				synctest.Wait() // in this order
			}
			for _, j := range jobs {
				select {
				case <-j.begun:
					begun++
				default:
				}
			}
			if begun != workers {
				t.Errorf("%d calls run at once, and there are %d workers", begun, workers)
			}
			for _, j := range jobs {
				close(j.release)
			}
			wait.Wait()
		})
	}
}

// TestDealt: an engine without other work deals the rows of a request among its workers,
// each of which has as many calls, but not those of which one call has all cores, nor a
// few cheap ones.
func TestDealt(t *testing.T) {
	for _, c := range []struct{ group, price, rows, calls int }{{0, 100, 6, 3}, {0, 100, 7, 3}, {1, 100, 6, 1},
		{0, 1, 6, 1}, {0, 100, 1, 1}, {0, 100, 60, 9}, {0, 100, 50, 9}} {
		e := &engine{workers: 3}
		j := &fakeJob{group: c.group, price: c.price, ran: make([]int, c.rows)}
		check.OK(t, e.await(t.Context(), &Caller{}, j))
		if int(e.calls.Load()) != c.calls {
			t.Errorf("%+v: %d calls", c, e.calls.Load())
		}
	}
}

// TestRateOfCalls: the rate is what ran by the time in which any call did. Calls
// side by side count their time once, and pauses do not count.
func TestRateOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{workers: 2}
		for range 2 {
			var wait sync.WaitGroup
			var jobs []*heldJob
			for range 2 { // each begins a second after the one before
				j := newHeldJob()
				j.price = 600
				jobs = append(jobs, j)
				wait.Go(func() { check.OK(t, e.await(t.Context(), &Caller{}, j)) })
				time.Sleep(time.Second)
			}
			for _, j := range jobs {
				close(j.release)
			}
			wait.Wait()
			synctest.Wait() // for the workers' end
			time.Sleep(time.Minute)
			if got := e.rate(); got != 2*600/2 {
				t.Errorf("%v tokens a second, want 2 × 600 in 2 s", got)
			}
		}
	})
}

// TestFailedGradient: a call for gradients that fails is an error of the target.
func TestFailedGradient(t *testing.T) {
	m := engineModel(t, small(t), Options{Device: "cpu"})
	in := m.gradient.inputs
	in[0], in[1] = in[1], in[0] // ids and positions have different shapes
	rng := rand.New(rand.NewPCG(1, 2))
	ids := []int{101, 1996, 103, 2938, 103, 1012, 102}
	target := check.Must(m.NewTarget(ids, []int{2, 4}, TargetOptions{Support: [][]int{{2158, 2879}, {2006, 2011}}}))(t)
	energy := make([]float64, 2)
	gradient := make([]float64, 8)
	states := []int{rng.IntN(2), 0, 1, rng.IntN(2)}
	err := target.(samplers.GradientTarget).EnergyGradient(t.Context(), states, energy, gradient)
	if err == nil {
		t.Errorf("no error, and the gradient %v", gradient)
	}
}
