//go:build unix

package modelstest

import (
	"os/signal"
	"syscall"
)

func limitFileSize(bytes uint64) error {
	// Without this, the signal would end the process before the write fails.
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = bytes
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}
