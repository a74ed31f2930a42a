// Package parallel runs functions concurrently, and delivers their results in order.
package parallel

import (
	"cmp"
	"context"
	"io"
	"sync"
)

// behind is how many values may wait, finished or not, for each place in work,
// so that a slow value stops no others.
const behind = 4

// early is how many values Each has in work at first. Each result that is emitted admits
// one more, up to the width: so the first results come soon, however large the width is.
const early = 4

// task is a value in work. made and err are set before done is closed.
type task[R any] struct {
	made R
	err  error
	done chan struct{}
}

// Each takes values from next until next returns io.EOF. It calls do for up to
// width values at once, and passes the results to emit in the order of next.
// next is never called twice at once, nor is emit. Each returns the first
// error, in that order, of emit, do, next or ctx, after it has emitted all
// earlier results. A function that panics has the error [*Panic].
func Each[T, R any](ctx context.Context, width int, next func(context.Context) (T, error),
	do func(context.Context, T) (R, error), emit func(R) error) error {
	return each(ctx, early, width, next, do, emit)
}

// each does what Each does, with first values in work at first.
func each[T, R any](ctx context.Context, first, width int, next func(context.Context) (T, error),
	do func(context.Context, T) (R, error), emit func(R) error) error {
	first, width = max(1, first), max(1, width)
	inner, cancel := context.WithCancel(ctx)
	ordered := make(chan *task[R], behind*width)
	places := make(chan struct{}, width)
	// kept are places that are given one by one, each after a result: the first
	// results come soon if few values share the machine.
	kept := max(0, width-first)
	for range kept {
		places <- struct{}{}
	}
	var group sync.WaitGroup
	group.Go(func() {
		defer close(ordered)
		for {
			value, err := call(inner, next)
			if err == io.EOF {
				return
			}
			t := &task[R]{err: err, done: make(chan struct{})}
			select {
			case ordered <- t:
			case <-inner.Done():
				return
			}
			if err != nil {
				close(t.done)
				return
			}
			places <- struct{}{} // do itself ends when its context ends
			group.Go(func() {
				t.made, t.err = call(inner, func(ctx context.Context) (R, error) { return do(ctx, value) })
				close(t.done)
				<-places
			})
		}
	})
	var err error
	for t := range ordered {
		<-t.done
		err = t.err
		if err != nil {
			break
		}
		err = Safely(func() error { return emit(t.made) })
		if err != nil {
			break
		}
		if kept > 0 {
			kept--
			<-places
		}
	}
	cancel()
	group.Wait()
	return cmp.Or(ctx.Err(), err)
}

// call returns what f returns. If f panics, the error is a [*Panic].
func call[R any](ctx context.Context, f func(context.Context) (R, error)) (made R, err error) {
	err = Safely(func() error {
		made, err = f(ctx)
		return err
	})
	return made, err
}

// All calls do with 0 to n−1, width at once, and returns the first error by
// number, a [*Panic] if do panics.
func All(ctx context.Context, width, n int, do func(ctx context.Context, i int) error) error {
	i := -1
	return each(ctx, width, width, func(context.Context) (int, error) {
		i++
		if i == n {
			return 0, io.EOF
		}
		return i, nil
	}, func(ctx context.Context, i int) (struct{}, error) { return struct{}{}, do(ctx, i) },
		func(struct{}) error { return nil })
}
