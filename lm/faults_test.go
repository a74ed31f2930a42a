package lm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"infill/internal/check"
	"infill/samplers"
)

var errFault = errors.New("the device is lost")

// faultyContext makes one call of a model fail, and only that one: while it
// runs, the context has ended. So an error that is dropped leaves a result.
type faultyContext struct {
	context.Context
	lock          sync.Mutex
	asked         int // how often Done was called
	calls, failAt int
	ended         chan struct{}
}

func newFaultyContext(failAt int) *faultyContext {
	c := &faultyContext{Context: context.Background(), failAt: failAt, ended: make(chan struct{})}
	close(c.ended)
	return c
}

// Done counts calls: the engine derives a context for each of them, which asks
// when it begins and when it ends.
func (c *faultyContext) Done() <-chan struct{} {
	c.lock.Lock()
	c.asked++
	c.calls = (c.asked + 1) / 2
	c.lock.Unlock()
	if c.Err() != nil {
		return c.ended
	}
	return nil
}

func (c *faultyContext) Err() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.calls == c.failAt {
		return errFault
	}
	return nil
}

// TestFaults: whichever call of a model fails, its error arrives. The next
// evaluation finds nothing of it, and has the values of a new target.
func TestFaults(t *testing.T) {
	m := engineModel(t, small(t), Options{Device: "cpu"})
	ids := []int{101, 1996, 103, 2938, 103, 103, 1012, 102}
	slots := []int{2, 4, 5}
	narrow := [][]int{{2158, 2879, 4937}, {2006, 2011}, {1996, 2010, 6928, 1037}}
	wide := slices.Repeat([][]int{nil}, len(slots)) // above wholeAbove, so that rows come whole
	for j := range wide {
		for id := range wholeAbove + 1 + j {
			wide[j] = append(wide[j], 1000+id)
		}
	}
	states := []int{0, 1, 2, 2, 0, 1, 0, 1, 2, 1, 1, 3}
	open := []bool{true, true, true, false, true, false, true, true, false, false, false, true}
	type evaluation = func(ctx context.Context, t Target) ([]float64, error)
	uses := map[string]evaluation{
		"Energy": func(ctx context.Context, t Target) ([]float64, error) {
			energy := make([]float64, 4)
			return energy, t.Energy(ctx, states, energy)
		},
		"EnergyGradient": func(ctx context.Context, t Target) ([]float64, error) {
			energy := make([]float64, 4)
			gradient := make([]float64, len(states)*slices.Max(t.Categories()))
			err := t.(samplers.GradientTarget).EnergyGradient(ctx, states, energy, gradient)
			return append(energy, gradient...), err
		},
		"LogConditionals": func(ctx context.Context, t Target) ([]float64, error) {
			logp := make([]float64, 4*slices.Max(t.Categories()))
			return logp, t.(samplers.ConditionalTarget).LogConditionals(ctx, states, []int{0, 2, 1, 0}, logp)
		},
		"LogMaskedConditionals": func(ctx context.Context, t Target) ([]float64, error) {
			logp := make([]float64, len(states)*slices.Max(t.Categories()))
			return logp, t.(samplers.MaskedConditionalTarget).LogMaskedConditionals(ctx, states, open, logp)
		},
	}
	for name, do := range uses {
		for _, o := range []TargetOptions{{Support: narrow}, {Support: narrow, Gradient: Local},
			{Support: narrow, Energy: Filled}, {Support: wide}, {Support: wide, Energy: Filled}} {
			made := func() Target { return check.Must(m.NewTarget(ids, slots, o))(t) }
			want := check.Must(do(t.Context(), made()))(t)
			name := fmt.Sprintf("%s, energy %q, gradient %q, %d categories", name, o.Energy, o.Gradient,
				len(o.Support[0]))
			for n := 1; ; n++ {
				target := made()
				ctx := newFaultyContext(n)
				_, err := do(ctx, target)
				if ctx.calls < n {
					if err != nil || n == 1 {
						t.Errorf("%s, %d calls without a fault: %v", name, ctx.calls, err)
					}
					break
				}
				if !errors.Is(err, errFault) {
					t.Errorf("%s: call %d fails: %v", name, n, err)
				}
				got, err := do(t.Context(), target)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, after a fault in call %d: error %v, or other values", name, n, err)
				}
			}
		}
	}
	for name, do := range map[string]func(context.Context) error{
		"LogProbabilities": func(ctx context.Context) error {
			_, err := m.LogProbabilities(ctx, []Row{{IDs: ids, Positions: slots}})
			return err
		},
		"targets": func(ctx context.Context) error {
			_, err := m.LogProbabilities(ctx, []Row{{ids, []int{1}, []int{5}}, {ids, []int{3}, []int{5}}})
			return err
		},
	} {
		err := do(newFaultyContext(1))
		if !errors.Is(err, errFault) {
			t.Errorf("%s: %v", name, err)
		}
		check.OK(t, do(newFaultyContext(2)))
	}
}

// fakeJob is a job of which each row counts how often it ran.
type fakeJob struct {
	group, price int
	ran          []int
	fails        bool
}

func (j *fakeJob) rows() int                 { return len(j.ran) }
func (j *fakeJob) cost() int                 { return j.price }
func (j *fakeJob) room() int                 { return 7 }
func (j *fakeJob) size() int                 { return 1 }
func (j *fakeJob) wide() bool                { return j.group == 1 }
func (j *fakeJob) fitting(room, row int) int { return min(room, j.rows()-row) }
func (j *fakeJob) shares(other job) bool     { return other.(*fakeJob).group == j.group }

func (j *fakeJob) run(_ context.Context, _ *sharedCall, parts []part) error {
	failed := false
	for _, p := range parts {
		own := p.job.(*fakeJob)
		for row := p.from; row < p.to; row++ {
			own.ran[row]++
		}
		failed = failed || own.fails
	}
	if failed {
		return fmt.Errorf("run: %w", errFault)
	}
	return nil
}

// TestEngineFaults: a call that fails is an error of those who have rows in it
// and of nobody else. All other jobs have run each of their rows once, however
// many come at the same time, and calls and rows are counted.
func TestEngineFaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 30 {
		e := &engine{workers: 1 + rng.IntN(4)}
		jobs := make([]*fakeJob, 60)
		errs := make([]error, len(jobs))
		for i := range jobs {
			jobs[i] = &fakeJob{group: rng.IntN(3), price: 1 + rng.IntN(300), ran: make([]int, rng.IntN(20))}
			jobs[i].fails = jobs[i].group == 0 && rng.IntN(8) == 0
		}
		var wait sync.WaitGroup
		for i, j := range jobs {
			wait.Go(func() { errs[i] = e.await(t.Context(), &Caller{}, j) })
		}
		wait.Wait()
		ran := 0
		for i, j := range jobs {
			for _, times := range j.ran {
				ran += times
			}
			whole := !slices.ContainsFunc(j.ran, func(times int) bool { return times != 1 })
			twice := slices.ContainsFunc(j.ran, func(times int) bool { return times > 1 })
			switch {
			case j.fails && j.rows() > 0 && !errors.Is(errs[i], errFault), errs[i] != nil && j.group != 0, twice,
				errs[i] == nil && !whole, errs[i] != nil && !errors.Is(errs[i], errFault):
				t.Errorf("a job of group %d that fails: %v: rows %v, error %v", j.group, j.fails, j.ran, errs[i])
			}
		}
		if int(e.rows.Load()) != ran || int(e.calls.Load())*7 < ran || len(e.light)+len(e.heavy) > 0 {
			t.Errorf("%d rows in %d calls are counted, %d ran, and %d requests are left", e.rows.Load(),
				e.calls.Load(), ran, len(e.light)+len(e.heavy))
		}
	}
}
