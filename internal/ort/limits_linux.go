package ort

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// These are the least limits with which the built-in model ran on two cores.
// Below, the process ends without a word of them.
const (
	leastAddresses = 2_000_000 << 10 // bytes
	leastStack     = 128 << 10       // bytes of a thread
)

// CheckLimits returns an error if onnxruntime lacks what its start needs.
func CheckLimits() error {
	var addresses, stack unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_AS, &addresses)
	if err == nil && addresses.Cur < leastAddresses {
		return fmt.Errorf("too little memory: this process may have %d kB of addresses (ulimit -v), and needs %d kB "+
			"or more, by the model: raise the limit, or bound what is really used, as Slurm's --mem does",
			addresses.Cur>>10, leastAddresses>>10)
	}
	err = unix.Getrlimit(unix.RLIMIT_STACK, &stack)
	if err == nil && stack.Cur < leastStack {
		return fmt.Errorf("too small a stack: a thread may have %d kB (ulimit -s), and needs %d kB: raise the limit",
			stack.Cur>>10, leastStack>>10)
	}
	return nil
}
