package infill

import (
	"context"
	"errors"
	"testing"

	"infill/internal/lmtest"
	"infill/lm"
	"infill/samplers"
)

var errFault = errors.New("the model is out of memory")

// faulty is a fake model of which one call fails, and only that one: all later
// calls go well, so that an error that is dropped leaves a result.
type faulty struct {
	*lmtest.Model
	calls, failAt int
	fail          func() error // at call failAt
}

func newFaulty(failAt int, fail func() error) *faulty {
	m := &faulty{Model: newModel(16, 1), failAt: failAt, fail: fail}
	m.Before = func(ctx context.Context) error { return errors.Join(m.call(), ctx.Err()) }
	return m
}

func (m *faulty) call() error {
	m.calls++
	if m.calls == m.failAt {
		return m.fail()
	}
	return nil
}

func (m *faulty) For(*lm.Caller) lm.Asker { return m }

// NewTarget is a call, too: it can fail as the others can.
func (m *faulty) NewTarget(ids, slots []int, o lm.TargetOptions) (lm.Target, error) {
	err := m.call()
	if err != nil {
		return nil, err
	}
	return m.Model.NewTarget(ids, slots, o)
}

// use is what can be asked of a filler.
type use func(ctx context.Context, f *Filler) (any, error)

// faultUses are all ways in which a filler calls a model, by name.
func faultUses() map[string]use {
	watched := func(template string, o asked, observe func(Progress)) use {
		o.Seed = 1
		return func(ctx context.Context, f *Filler) (any, error) {
			r, err := f.Fill(ctx, o.request(template), observe)
			if r == nil {
				return nil, err
			}
			return r, err
		}
	}
	fills := func(template string, o asked) use { return watched(template, o, nil) }
	scores := func(text string) use {
		return func(ctx context.Context, f *Filler) (any, error) {
			s, err := f.Score(ctx, ScoreRequest{Text: text})
			if s == nil {
				return nil, err
			}
			return s, err
		}
	}
	energies := func(ctx context.Context, f *Filler) (any, error) {
		r, err := f.Fill(ctx, Request{Template: twoSlots, Method: Chains{Sampler: samplers.Gibbs{}, Samples: 2,
			Steps: 4, WarmUp: 2, Energies: true}}, func(Progress) {})
		if r == nil {
			return nil, err
		}
		return r, err
	}
	long := "the cat sat on the mat the dog ran on the rug the cat"
	list := Lists{1: {"cat", "dog", "unknown", "unseen"}}
	uses := map[string]use{
		"search":              fills("the [MASK] [MASK] on the [MASK]", asked{}),
		"search to the left":  fills(twoSlots, asked{Order: RightToLeft}),
		"search of lengths":   fills("the [MASK:1-3] sat", asked{Fill: FillAny}),
		"search of a list":    fills(twoSlots, asked{Slots: list}),
		"search of one slot":  fills("the [MASK] sat", asked{}),
		"search with context": fills(twoSlots, asked{Context: "the cat ran"}),
		"search in a window":  fills(long+" [MASK] [MASK] sat", asked{}),
		"search of a name":    fills("the [MASK=x] sat on the [MASK=x] [MASK]", asked{Distinct: true}),
		"draws":               fills(twoSlots, asked{Samples: 6, Temperature: 2}),
		"draws of lengths":    fills("the [MASK:1-2] [MASK] sat", asked{Samples: 9, Fill: FillAny}),
		"draws of words":      fills(twoSlots, asked{Samples: 6, Slots: list, Rank: RankFinal}),
		"U for an observer":   energies,
		"a score":             scores("the cat sat"),
		"a score in windows":  scores(long + " " + long),
		"alone": func(ctx context.Context, f *Filler) (any, error) {
			p, err := f.Plan(ctx, Request{Template: twoSlots})
			if err != nil {
				return nil, err
			}
			values, err := p.Alone(ctx, 3, nil)
			if values == nil {
				return nil, err
			}
			return values, err
		},
	}
	for what, r := range map[string]GapsRequest{
		"a gap":            {Text: "the [cat] sat"},
		"gaps of answers":  {Text: "the [cat] sat on the [mat]", Options: 3},
		"gaps of verbs":    {Text: "the cat sat on the mat", Part: "verb"},
		"gaps of pieces":   {Text: "the cat sat [unseen] on the mat"},
		"gaps in a window": {Text: long + " " + long, Words: []string{"rug"}},
	} {
		uses[what] = func(ctx context.Context, f *Filler) (any, error) {
			e, err := f.Gaps(ctx, r)
			if e == nil {
				return nil, err
			}
			return e, err
		}
	}
	chains := func(sampler, what, template string, o asked, change func(*askedChains)) {
		c := newAskedChains(sampler)
		c.Steps = 4
		c.WarmUp = 2
		change(&c)
		o.Chains = &c
		o.Samples = 2
		uses[sampler+" "+what] = fills(template, o)
	}
	as := func(*askedChains) {}
	for _, sampler := range textSamplers() {
		chains(sampler, "with its defaults", twoSlots, asked{}, as)
		chains(sampler, "at a temperature", twoSlots, asked{Temperature: 2, Rank: RankFinal}, as)
		chains(sampler, "of energy filled", twoSlots, asked{}, func(c *askedChains) { c.Energy = lm.Filled })
		chains(sampler, "from masks", twoSlots, asked{}, func(c *askedChains) { c.Initial.Kind = StartMask })
		chains(sampler, "in its warm-up", twoSlots, asked{}, func(c *askedChains) { c.WarmUp = c.Steps })
	}
	for _, sampler := range []string{"dmala", "gwg", "hamming-ball"} {
		pieces := Lists{1: {"unknown", "unseen"}}
		chains(sampler, "of words of pieces", twoSlots, asked{Slots: pieces, Temperature: 2}, as)
		chains(sampler, "of a name", "the [MASK=x] sat on the [MASK=x] [MASK]", asked{}, as)
	}
	return uses
}

// TestFaults: whichever call of a model fails, its error arrives, and no result
// does. Calls are made to fail one by one until a use has no call left.
func TestFaults(t *testing.T) {
	for name, do := range faultUses() {
		for n := 1; ; n++ {
			m := newFaulty(n, func() error { return errFault })
			got, err := do(t.Context(), New(m, newTokenizer(t)))
			if m.calls < n {
				if err != nil || got == nil || n == 1 {
					t.Errorf("%s, without a fault in %d calls: %v, error %v", name, m.calls, got, err)
				}
				break
			}
			if !errors.Is(err, errFault) || got != nil {
				t.Errorf("%s, call %d fails: a result: %v, error %v", name, n, got != nil, err)
			}
		}
	}
}

// TestCalledOff: whenever a use is called off, it ends with the error of its
// context. A fill may have a result then, which says that it is unfinished;
// it has none if nobody reads it.
func TestCalledOff(t *testing.T) {
	for name, do := range faultUses() {
		for _, wanted := range []bool{true, false} {
			for n := 1; ; n++ {
				outer, cancel := context.WithCancel(t.Context())
				ctx, done := outer, func() {}
				if !wanted {
					ctx, done = Unwanted(outer)
				}
				m := newFaulty(n, func() error { cancel(); <-ctx.Done(); return nil })
				got, err := do(ctx, New(m, newTokenizer(t)))
				done()
				cancel()
				if m.calls < n {
					if err != nil {
						t.Errorf("%s, never called off: %v", name, err)
					}
					break
				}
				r, filled := got.(*Result)
				if err != context.Canceled || got != nil && !(wanted && filled && r.Unfinished && len(r.Fills) > 0) {
					t.Errorf("%s, called off in call %d, wanted %v: %v, error %v", name, n, wanted, got, err)
				}
			}
		}
	}
}

// TestLoadFails: a model that does not load is an error of each use, and the
// next use loads it again.
func TestLoadFails(t *testing.T) {
	for name, do := range faultUses() {
		loads := 0
		f := newFiller(newTokenizer(t), 16, func(context.Context) (LanguageModel, error) {
			loads++
			if loads == 1 {
				return nil, errFault
			}
			return newModel(16, 1), nil
		})
		got, err := do(t.Context(), f)
		if !errors.Is(err, errFault) || got != nil {
			t.Errorf("%s: %v, error %v", name, got, err)
		}
		got, err = do(t.Context(), f)
		if err != nil || got == nil || loads != 2 {
			t.Errorf("%s, loaded again: %v, error %v, %d loads", name, got, err, loads)
		}
	}
}
