package parallel

import "context"

// Interruptible runs do, which may look at no context for long, or block for ever, as on
// a named pipe without a writer. If ctx ends, Interruptible returns ctx's error, and do
// continues in the background: it must change nothing that its caller reads. If do
// panics, the error is a [*Panic].
func Interruptible[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = Safely(func() (err error) {
			r.value, err = do()
			return err
		})
		done <- r
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
