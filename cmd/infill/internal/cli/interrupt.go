package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"infill/internal/batch"
	"infill/internal/parallel"
)

// Stops returns the signals that cancel a command. Under nohup, SIGHUP is not among them.
func Stops() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// ReadText reads the text of a file, which it decompresses if its name says so, at most
// 64 MB. If ctx ends, it returns ctx's error.
func ReadText(ctx context.Context, name string) ([]byte, error) {
	const most = 64 << 20
	return parallel.Interruptible(ctx, func() ([]byte, error) {
		file, err := batch.Open(name)
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

// CheckJobs returns an error if jobs, the texts at once, is not 1 to 4096.
func CheckJobs(jobs int) error {
	const most = 4096
	if jobs < 1 || jobs > most {
		return Usagef("--jobs: %d is not a whole number from 1 to %d", jobs, most)
	}
	return nil
}
