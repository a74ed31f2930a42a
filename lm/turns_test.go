package lm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"infill/samplers"
)

// Beside forty callers who have had much and ask for more, one who asks for a
// row at a time has the next call each time, or the one after it, and the
// others' calls are short. The forty lose no turn, and each of them has half of
// another's rows at least. So it is where they ask for gradients, of five rows
// a chain.
func TestTurns(t *testing.T) {
	for _, of := range []struct {
		tokens int // of the one's rows
		terms  int // of the forty's gradients; 0: they ask for rows
	}{{16, 0}, {24, 0}, {16, 5}} { // beside the forty, and in groups of its own
		tokens, width := of.tokens, 16
		whole, least := 2730/width*width, shortCost // tokens of a call for the forty alone, and of a short one
		if of.terms > 0 {
			row := int(backwardCost * float64(width))
			whole, least = 2730/width/of.terms*of.terms*row, max(least, 2*of.terms*row)
		}
		e := &engine{running: 1}
		m := &MaskedLM{packed: true, chunk: chunkLimits{tokens: 2730, queries: 256}, bundle: builtIn(t)}
		ask := func(c *Caller, tokens, rows, terms int) {
			g := &gradientBatch{terms: terms}
			b := &g.batch
			b.reset(tokens, 1, 0, true)
			b.ids, b.queries = make([]int64, rows*tokens), make([]int64, rows)
			var j job = &rowsJob{m: m, batch: b}
			if terms > 0 {
				j = &gradientJob{m: m, batch: g}
			}
			e.submit(newRequest(t.Context(), c, j))
		}
		much := func(c *Caller) { ask(c, width, 64*max(1, of.terms), of.terms) }
		heavy := make([]*Caller, 40)
		got := map[*Caller]int{} // rows
		for i := range heavy {
			heavy[i] = &Caller{}
			heavy[i].spent.Store(MostLight)
			much(heavy[i])
		}
		call := func() (size int, callers []*Caller) {
			parts := e.take()
			for _, p := range parts {
				n := p.to - p.from
				size += n * p.job.cost()
				got[p.caller] += n
				callers = append(callers, p.caller)
				if p.to == p.job.rows() && slices.Contains(heavy, p.caller) {
					much(p.caller)
				}
			}
			return size, callers
		}
		if size, _ := call(); size != whole {
			t.Fatalf("a call for the forty alone has %d tokens", size)
		}
		light := &Caller{}
		for round := range 40 {
			ask(light, tokens, 1, 0)
			for calls := 1; ; calls++ {
				size, callers := call()
				if size > max(2*tokens, least) {
					t.Errorf("round %d: a call of %d tokens", round, size)
				}
				if slices.Contains(callers, light) {
					break
				}
				if calls > 1 {
					t.Fatalf("round %d: %d calls went before", round, calls)
				}
			}
		}
		before := got[light]
		for range 200 + 400*of.terms {
			call()
		}
		least, most := got[heavy[0]], 0
		for _, c := range heavy {
			least, most = min(least, got[c]), max(most, got[c])
		}
		if before != 40 || most > 2*least {
			t.Errorf("rows: %d of the one, %d to %d of each of the forty", before, least, most)
		}
	}
}

// A caller who will ask for much has no turn of those who ask for little,
// however little it asks for at first.
func TestMuchFromTheFirst(t *testing.T) {
	for _, heavy := range []bool{true, false} {
		e := &engine{running: 1}
		b := &batch{}
		b.reset(8, 1, 0, true)
		b.ids, b.queries = make([]int64, 8), make([]int64, 1)
		m := &MaskedLM{chunk: chunkLimits{tokens: 64, queries: 8}}
		e.submit(newRequest(t.Context(), &Caller{Heavy: heavy}, &rowsJob{m: m, batch: b}))
		if (len(e.heavy) == 1) != heavy {
			t.Errorf("heavy %t, %d requests in the queue of heavy callers", heavy, len(e.heavy))
		}
	}
}

// Rows that wait have no room for their results yet: those of many texts are gigabytes.
func TestRoomOfWaitingRows(t *testing.T) {
	m := engineModel(t, builtIn(t), Options{Device: "cpu"})
	m.engine.lock.Lock()
	m.engine.running = m.engine.workers // none is free
	m.engine.lock.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := m.LogProbabilities(ctx, []Row{{IDs: []int{101, 103, 102}, Positions: []int{1}}})
		ended <- err
	}()
	var waiting []*request
	for len(waiting) == 0 {
		time.Sleep(time.Millisecond)
		m.engine.lock.Lock()
		waiting = slices.Clone(m.engine.light)
		m.engine.lock.Unlock()
	}
	if made := waiting[0].job.(*rowsJob).batch.vocabulary; made != nil {
		t.Errorf("room for %d numbers before a call", len(made))
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.engine.lock.Lock()
	m.engine.running = 0
	m.engine.lock.Unlock()
}

// A model that has not run measures its speed once, whoever wants to know.
func TestMeasure(t *testing.T) {
	m := engineModel(t, builtIn(t), Options{Device: "cpu"})
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			err := m.Measure(t.Context())
			if err != nil || m.Rate() == 0 {
				t.Errorf("%g tokens a second, error %v", m.Rate(), err)
			}
		})
	}
	group.Wait()
	_, rows := m.Calls()
	if rows*16 < MostLight || rows*16 > 2*MostLight {
		t.Errorf("%d rows of 16 tokens ran", rows)
	}
}

// The texts of a file end in their order, however long the first takes: calls take
// rows of later texts only with those of earlier ones, or while these have none.
func TestInTurn(t *testing.T) {
	e := &engine{running: 1}
	m := &MaskedLM{chunk: chunkLimits{tokens: 64, queries: 8}}
	rows := func(turn int64, tokens int) *request {
		b := &batch{}
		b.reset(tokens, 1, 0, true)
		b.ids, b.queries = make([]int64, 12*tokens), make([]int64, 12)
		return newRequest(t.Context(), &Caller{Heavy: true, Turn: turn}, &rowsJob{m: m, batch: b})
	}
	third, first, second := rows(3, 8), rows(1, 8), rows(2, 16)
	e.submit(third)
	e.submit(second)
	e.submit(first)
	var calls [][]int // the turn and the rows of each part
	for e.waits() {
		var call []int
		for _, p := range e.take() {
			call = append(call, int(p.caller.Turn), p.to-p.from)
		}
		calls = append(calls, call)
	}
	want := [][]int{{1, 8}, {1, 4, 3, 4}, {2, 4}, {2, 4}, {2, 4}, {3, 8}}
	if fmt.Sprint(calls) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", calls, want)
	}
}

// Gradients do not depend on what else the model is asked for, nor on the calls
// that their chains are shared out to.
func TestGradientNeighbours(t *testing.T) {
	m := engineModel(t, builtIn(t), Options{Device: "cpu"})
	const chains = 5
	rng := rand.New(rand.NewPCG(13, 14))
	evaluate := func(c *Caller, seed uint64) []float64 {
		rng := rand.New(rand.NewPCG(seed, 15))
		slots := []int{1, 3, 5}
		ids, support := make([]int, 6+seed*4), make([][]int, len(slots))
		for i := range ids {
			ids[i] = 1000 + rng.IntN(20000)
		}
		for j := range support {
			for range 40 {
				support[j] = append(support[j], 1000+rng.IntN(20000))
			}
		}
		target, err := m.For(c).NewTarget(ids, slots, TargetOptions{Support: support})
		if err != nil {
			t.Error(err)
			return nil
		}
		states := make([]int, chains*len(slots))
		for i := range states {
			states[i] = rng.IntN(40)
		}
		energy, gradient := make([]float64, chains), make([]float64, len(states)*40)
		if err := target.(samplers.GradientTarget).EnergyGradient(t.Context(), states, energy, gradient); err != nil {
			t.Error(err)
		}
		return append(energy, gradient...)
	}
	var alone [4][]float64
	for i := range alone {
		alone[i] = evaluate(&Caller{}, uint64(i))
	}
	for _, room := range []int{m.chunk.tokens, 200, 110} { // of two chains and more
		m.chunk.tokens = room
		var wait sync.WaitGroup
		for i := range alone {
			wait.Go(func() {
				if together := evaluate(&Caller{Heavy: i%2 == 0}, uint64(i)); !slices.Equal(together, alone[i]) {
					t.Errorf("calls of %d tokens: gradients of text %d depend on their neighbours", room, i)
				}
			})
		}
		for range 20 {
			b := anyBatch(rng, 1)
			wait.Go(func() {
				if err := m.as(&Caller{}).run(t.Context(), b); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
}

// rowsOf makes a job of rows of 8 tokens.
func rowsOf(rows int) *rowsJob {
	b := &batch{}
	b.reset(8, 1, 0, true)
	b.ids, b.queries = make([]int64, 8*rows), make([]int64, rows)
	return &rowsJob{m: &MaskedLM{chunk: chunkLimits{tokens: 64, queries: 8}}, batch: b}
}

// A caller is asked for admittance once, before its rows are many, and rows that
// are refused do not run.
func TestAdmitted(t *testing.T) {
	refused := errors.New("refused")
	for _, answer := range []error{nil, refused} {
		asked := 0
		c := &Caller{Limit: MostLight, Admit: func(context.Context) error { asked++; return answer }}
		e := &engine{running: 1} // nothing takes from the queues
		for _, step := range []struct {
			spent, rows, asked int
			err                error
		}{{0, 1, 0, nil}, {MostLight - 8, 1, 0, nil}, {MostLight - 8, 2, 1, answer}, {MostLight, 1, 1, answer}} {
			c.spent.Store(int64(step.spent))
			err := c.admitted(t.Context(), 8*step.rows)
			if asked != step.asked || !errors.Is(err, step.err) {
				t.Errorf("%d spent and %d rows: asked %d times, want %d; error %v, want %v", step.spent, step.rows,
					asked, step.asked, err, step.err)
			}
		}
		if answer != nil {
			err := e.await(t.Context(), c, rowsOf(2))
			if !errors.Is(err, refused) || len(e.light)+len(e.heavy) > 0 {
				t.Errorf("refused rows: error %v, %d requests wait", err, len(e.light)+len(e.heavy))
			}
		}
	}
}

// Two callers of one context keep their own limits.
func TestTwoCallers(t *testing.T) {
	m := engineModel(t, small(t), Options{Device: "cpu"})
	refused := errors.New("refused")
	row := Row{IDs: []int{101, 103, 1012, 102}, Positions: []int{1}}
	bounded := &Caller{Limit: 8, Admit: func(context.Context) error { return refused }}
	wide := &Caller{Limit: 100, Admit: func(context.Context) error { return errors.New("not asked yet") }}
	for _, step := range []struct {
		caller *Caller
		rows   int
		want   error
	}{{bounded, 2, nil}, {wide, 20, nil}, {bounded, 1, refused}, {wide, 5, nil}} {
		_, err := m.For(step.caller).LogProbabilities(t.Context(), slices.Repeat([]Row{row}, step.rows))
		if !errors.Is(err, step.want) {
			t.Errorf("%d rows: error %v, want %v", step.rows, err, step.want)
		}
	}
}

// Of callers of few rows, a call takes first those who have had least.
func TestLeastFirst(t *testing.T) {
	e := &engine{running: 1}
	var callers []*Caller
	for _, spent := range []int64{900, 8, 300} {
		c := &Caller{}
		c.spent.Store(spent)
		callers = append(callers, c)
		e.submit(newRequest(t.Context(), c, rowsOf(4)))
	}
	var got []int
	for range 2 {
		for _, p := range e.take() {
			got = append(got, slices.Index(callers, p.caller))
		}
	}
	if !slices.Equal(got, []int{1, 2, 0}) { // 8 rows fit in a call
		t.Errorf("callers in the order %v, want 1, 2, 0", got)
	}
}

// The rate is what ran by the time that calls took, and the last seconds count
// most.
func TestRate(t *testing.T) {
	e := &engine{busy: 2 * time.Second, cost: MostLight - 1}
	if got := e.rate(); got != 0 {
		t.Errorf("after few rows %g", got)
	}
	e = &engine{busy: 2 * time.Second, cost: 10_000}
	if got := e.rate(); got != 5000 {
		t.Errorf("%g, want 5000", got)
	}
	e = &engine{busy: 40 * time.Second, cost: 40_000}
	if got := e.rate(); got != 1000 || e.busy != 20*time.Second {
		t.Errorf("%g, want 1000; %v are remembered", got, e.busy)
	}
}
