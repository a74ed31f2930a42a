package infill

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"infill/internal/lmtest"
	"infill/lm"
	"infill/samplers"
)

// counting tells how many rows a model is asked for at once at most.
type counting struct {
	*lmtest.Model
	row  []float32
	most int
}

func (m *counting) For(*lm.Caller) lm.Asker { return m }

func (m *counting) LogProbabilities(_ context.Context, rows []lm.Row) ([][][]float32, error) {
	m.most = max(m.most, len(rows))
	return slices.Repeat([][][]float32{{m.row}}, len(rows)), nil
}

// However many conditionals are asked for, few are made at once: each is a
// number for every token.
func TestFewRowsAtOnce(t *testing.T) {
	model := &counting{row: make([]float32, askedBytes/4/50)}
	l := &law{asker: &asker{model: model, vocabulary: len(model.row)}, root: [][]float32{model.row, model.row},
		question: question{text: []int{2, 4, 4, 3}, from: 1, to: 2, slots: []int{1, 2}, mask: 4}}
	heard := 0
	err := l.PartialConditionals(t.Context(),
		slices.Repeat([]samplers.Partial{{State: []int{6, samplers.Open}, Slot: 1}}, 120),
		func(int, []float32) { heard++ })
	if err != nil || heard != 120 || l.asker.rows != 120 || model.most != 50 {
		t.Errorf("%d of 120 heard, %d rows, %d at once, error %v", heard, l.asker.rows, model.most, err)
	}
}

// A fill whose result nobody waits for writes none, and calls the model no more.
func TestUnwanted(t *testing.T) {
	for name, change := range map[string]func(*asked){
		"search": func(o *asked) {},
		"draws":  func(o *asked) { o.Samples = 1000 },
		"chains": func(o *asked) { c := newAskedChains("gibbs"); c.Steps = 1 << 20; o.Chains = &c },
	} {
		f, model := newFake(t)
		outer, cancel := context.WithCancel(t.Context())
		ctx, done := Unwanted(outer)
		defer done()
		calls, after := 0, 0
		model.Before = func(context.Context) error {
			if ctx.Err() != nil {
				after++
			}
			if calls++; calls == 12 {
				cancel()
				<-ctx.Done()
			}
			return ctx.Err()
		}
		o := asked{}
		o.Fill, o.Seed = FillAny, 1
		change(&o)
		r, err := f.Fill(ctx, o.request("the [MASK] sat [MASK] on [MASK] the [MASK]"), nil)
		if r != nil || !errors.Is(err, context.Canceled) || after > 0 {
			t.Errorf("%s: a result: %v, error %v, %d calls afterwards", name, r != nil, err, after)
		}
	}
}

// TestMemory: a fill holds no more memory than its plan says, whatever the method.
func TestMemory(t *testing.T) {
	live := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for name, change := range map[string]func(*asked){
		"search": func(o *asked) { o.Budget.Rows = 3000 },
		"draws":  func(o *asked) { o.Samples = 2000 },
		"chains": func(o *asked) { c := newAskedChains("dmala"); c.Steps = 300; o.Chains, o.Samples = &c, 50 },
		"Gibbs":  func(o *asked) { c := newAskedChains("gibbs"); c.Steps = 100; o.Chains, o.Samples = &c, 50 },
	} {
		f, model := newFake(t)
		model.Bond = 0.1 // a flat law, so that the search stores many beginnings
		o := asked{Fill: FillAny, Seed: 1, Top: 5}
		change(&o)
		plan, err := f.Plan(t.Context(), o.request("the [MASK] sat [MASK] on [MASK] the [MASK] [MASK]"))
		if err != nil {
			t.Fatal(err)
		}
		_, told := plan.Cost()
		bytes := told.Bytes
		before := live()
		most, calls := 0.0, 0
		model.Before = func(context.Context) error {
			calls++
			if calls < 20 || calls%40 == 0 {
				most = max(most, live()-before)
			}
			return nil
		}
		r, err := plan.Fill(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, live()-before)
		runtime.KeepAlive(r)
		t.Logf("%s: %.0f of %.0f bytes, %d calls", name, most, bytes, calls)
		if most <= 0 || most > bytes {
			t.Errorf("%s: %.0f bytes held after %d calls, at most %.0f were told", name, most, calls, bytes)
		}
	}
}
