package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestModelFaults: whichever call of a model fails, the screen says why, and no
// fill stays. The next run goes well.
func TestModelFaults(t *testing.T) {
	for _, method := range []string{"seed=1", "seed=1 samples=4", "seed=1 sampler=gibbs steps=3 samples=2"} {
		for n := int64(1); ; n++ {
			c, _ := testConfig(t, "she opened the [MASK] and [MASK] .")
			c.Given = given(strings.Fields(method)...)
			model := newFake()
			filler := newFakeFiller(t, model)
			c.Open = openerOf(filler)
			c.Now = filler.clock.now
			model.Before = func(ctx context.Context) error {
				if model.Calls.Load() == n {
					return errors.New("the model is out of memory")
				}
				return ctx.Err()
			}
			d := newDriver(t, c, 100, 30)
			d.settle()
			said := strings.Contains(d.frame(), "the model is out of memory")
			if model.Calls.Load() < n {
				if said || n == 1 {
					t.Errorf("%q, without a fault:\n%s", method, d.frame())
				}
				break
			}
			if !said {
				t.Fatalf("%q, call %d fails:\n%s", method, n, d.frame())
			}
			d.model.editor = newEditor("she opened the [MASK] .")
			d.run(d.model.edited())
			d.settle()
			if strings.Contains(d.frame(), "the model is out of memory") {
				t.Errorf("%q, after the fault in call %d:\n%s", method, n, d.frame())
			}
		}
	}
}
