package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Stops are the signals that cancel a command. Who starts one with nohup has it ignore the hangup.
func Stops() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// Interruptible runs do, which may wait for ever and takes no context: a named pipe without a writer holds up whoever
// opens or reads it. Once ctx ends it is left behind.
func Interruptible[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// ReadFile is os.ReadFile that a signal ends.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	return Interruptible(ctx, func() ([]byte, error) { return os.ReadFile(name) })
}
