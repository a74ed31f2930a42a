package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"infill/infill/batch"
)

// Stops returns the signals that cancel a command. Under nohup, SIGHUP is not among them.
func Stops() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// Interruptible runs do, which has no context and may block for ever, as on a
// named pipe without a writer. If ctx ends, Interruptible returns ctx's error,
// and do continues in the background.
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

// ReadFile reads the file that a flag names, at most 64 MB. If ctx ends, it
// returns ctx's error.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	return readAll(ctx, name, func(name string) (io.ReadCloser, error) { return os.Open(name) })
}

// ReadText reads a file as ReadFile does, and decompresses it.
func ReadText(ctx context.Context, name string) ([]byte, error) {
	return readAll(ctx, name, batch.Open)
}

func readAll(ctx context.Context, name string, open func(string) (io.ReadCloser, error)) ([]byte, error) {
	const most = 64 << 20
	return Interruptible(ctx, func() ([]byte, error) {
		file, err := open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		content, err := io.ReadAll(io.LimitReader(file, most+1))
		if err == nil && len(content) > most {
			err = fmt.Errorf("more than %d bytes", most)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return content, nil
	})
}

// CheckJobs returns an error if jobs, the number of texts in work at once, is
// not from 1 to 4096.
func CheckJobs(jobs int) error {
	const most = 4096
	if jobs < 1 || jobs > most {
		return Usagef("--jobs: %d is not a whole number from 1 to %d", jobs, most)
	}
	return nil
}
