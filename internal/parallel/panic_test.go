package parallel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestPanic: a panic of any function is an error of one line that says where,
// after all earlier results.
func TestPanic(t *testing.T) {
	for _, from := range []string{"next", "do", "emit"} {
		number := 0
		emitted := 0
		broken := func(at string, i int) {
			if at == from && i == 11 {
				panic("two\nlines in " + at)
			}
		}
		err := Each(t.Context(), 4, func(context.Context) (int, error) {
			number++
			broken("next", number)
			return number, nil
		}, func(_ context.Context, i int) (int, error) {
			broken("do", i)
			return i, nil
		}, func(i int) error {
			broken("emit", i)
			emitted = i
			return nil
		})
		var p *Panic
		if !errors.As(err, &p) || emitted != 10 {
			t.Errorf("%s: %v after %d", from, err, emitted)
			continue
		}
		if want := "a fault of the program at parallel/panic_test.go:"; !strings.HasPrefix(err.Error(), want) ||
			!strings.HasSuffix(err.Error(), ": two lines in "+from) || !strings.Contains(string(p.Stack), "TestPanic") {
			t.Errorf("%s: %q with the stack\n%s", from, err, p.Stack)
		}
	}
}

// TestPanicKinds: the place is the line of the program, and a panic that passes
// through several hands stays the first one.
func TestPanicKinds(t *testing.T) {
	var list []int
	three := 3
	var none *Panic
	wrong := errors.New("wrong")
	for name, test := range map[string]struct {
		do   func() error
		says string
	}{
		"index":   {func() error { return fmt.Errorf("%d", list[three]) }, "index out of range [3] with length 0"},
		"pointer": {func() error { return errors.New(none.Place) }, "nil pointer dereference"},
		"error":   {func() error { panic(wrong) }, ": wrong"},
		"twice":   {func() error { panic(Safely(func() error { panic(wrong) })) }, ": wrong"},
		"wrapped": {func() error { panic(fmt.Errorf("text 2: %w", Safely(func() error { panic(wrong) }))) }, ": wrong"},
		"all": {func() error {
			return All(t.Context(), 2, 5, func(_ context.Context, i int) error {
				if i == 3 {
					panic(wrong)
				}
				return nil
			})
		}, ": wrong"},
	} {
		err := Safely(test.do)
		var p *Panic
		if !errors.As(err, &p) || !strings.Contains(err.Error(), test.says) ||
			!strings.HasPrefix(p.Place, "parallel/panic_test.go:") || strings.Count(err.Error(), "fault") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, want := range []error{nil, wrong, io.EOF} {
		if err := Safely(func() error { return want }); err != want {
			t.Errorf("%v became %v", want, err)
		}
	}
}
