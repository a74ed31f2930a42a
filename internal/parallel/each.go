// Package parallel does many things at once and tells of them in order.
package parallel

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"
)

// behind is how many values may wait for each one in work, so that a slow one does not stop the others.
const behind = 4

// task is a value on its way; made and err are set when done is closed.
type task[T, R any] struct {
	value T
	made  R
	err   error
	done  chan struct{}
}

// Each takes values from next until io.EOF, does width of them at once, and gives what do made of them to emit, in
// the order of next. next and emit are called by one goroutine each. It ends at the first error in that order, when
// all before has been emitted: that of emit, of do, of next, or of ctx.
func Each[T, R any](ctx context.Context, width int, next func(context.Context) (T, error),
	do func(context.Context, T) (R, error), emit func(R) error) error {
	width = max(1, width)
	group, inner := errgroup.WithContext(ctx)
	ordered, todo := make(chan *task[T, R], behind*width), make(chan *task[T, R])
	send := func(to chan<- *task[T, R], t *task[T, R]) error {
		select {
		case to <- t:
			return nil
		case <-inner.Done():
			return inner.Err()
		}
	}
	group.Go(func() error {
		defer close(ordered)
		defer close(todo)
		for {
			t := &task[T, R]{done: make(chan struct{})}
			if t.value, t.err = next(inner); t.err == io.EOF {
				return nil
			} else if t.err != nil {
				close(t.done)
				return send(ordered, t)
			}
			if err := send(ordered, t); err != nil {
				return err
			}
			if err := send(todo, t); err != nil {
				return err
			}
		}
	})
	for range width {
		group.Go(func() error {
			for t := range todo {
				t.made, t.err = do(inner, t.value)
				close(t.done)
			}
			return nil
		})
	}
	group.Go(func() error {
		for t := range ordered {
			select {
			case <-t.done:
			case <-inner.Done():
				return inner.Err()
			}
			if t.err != nil {
				return t.err
			}
			if err := emit(t.made); err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// All does the numbers below n, width of them at once. It ends at the first error in their order.
func All(ctx context.Context, width, n int, do func(ctx context.Context, i int) error) error {
	i := -1
	return Each(ctx, width, func(context.Context) (int, error) {
		if i++; i == n {
			return 0, io.EOF
		}
		return i, nil
	}, func(ctx context.Context, i int) (struct{}, error) { return struct{}{}, do(ctx, i) },
		func(struct{}) error { return nil })
}
