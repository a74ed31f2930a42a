package tui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// TestLongFaults: an error is shown whole on 80 columns, wherever it comes from, and the
// frame stays as large as the terminal.
func TestLongFaults(t *testing.T) {
	long := ""
	for n := range 45 {
		long += fmt.Sprintf("reason%d of ", n)
	}
	long += "/a/folder/whose/name/is/long"
	refuse := func(context.Context, string) (Filler, error) { return nil, errors.New(long) }
	for name, test := range map[string]func(c *Config) (keys []string){
		"no model": func(c *Config) []string {
			c.Open = refuse
			return nil
		},
		"another model": func(c *Config) []string {
			first := c.Open
			c.Models = []string{"toy", "other"}
			c.Open = func(ctx context.Context, name string) (Filler, error) {
				if name == "other" {
					return refuse(ctx, name)
				}
				return first(ctx, name)
			}
			return []string{"model", "right", "enter"}
		},
		"a run": func(c *Config) []string {
			model := newFake()
			model.Before = func(context.Context) error { return errors.New(long) }
			c.Open = openerOf(newFakeFiller(t, model))
			return nil
		},
	} {
		for _, rows := range []int{24, 20} {
			c, _ := testConfig(t, two)
			keys := test(&c)
			d := newDriver(t, c, 80, rows)
			d.settle()
			if keys != nil {
				d.option(keys[0])
				d.keys(keys[1:]...)
				d.settle()
			}
			exactly(t, d.model.screen(), 80, rows)
			if shown := strings.Join(strings.Fields(d.frame()), " "); !strings.Contains(shown, long) {
				t.Errorf("%s on %d rows:\n%s", name, rows, d.frame())
			}
		}
	}
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 80, 24)
	d.settle()
	d.set("top", strings.Repeat("7", 300))
	folder := filepath.Join(t.TempDir(), strings.Repeat("a", 200))
	for want, d := range map[string]*driver{
		strings.Repeat("7", 300) + `"isnotawholenumberfrom1to65536`: d, folder: openRun(t, folder, 80, 24)} {
		shown := strings.NewReplacer("\n", "", " ", "").Replace(d.frame())
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, d.frame())
		}
	}
}

// TestModelFaults: whichever call of a model fails, the screen says why, and no
// fill stays. The next run goes well.
func TestModelFaults(t *testing.T) { synctest.Test(t, modelFaults) }

func modelFaults(t *testing.T) {
	for _, method := range []string{"seed=1", "seed=1 samples=4", "seed=1 sampler=gibbs steps=3 samples=2"} {
		for n := int64(1); ; n++ {
			c, _ := testConfig(t, "she opened the [MASK] and [MASK] .")
			c.Options = given(strings.Fields(method)...)
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
