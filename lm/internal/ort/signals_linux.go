package ort

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// keepSignalStack runs f, which may enter a library that gives its thread a stack for signals and later frees it, as
// OpenVINO's CPU plugin does (SigAltStackSetup, 2025.4). Go stops goroutines by signals: one that arrives on a freed
// stack ends the process or overwrites other memory. The thread has its own stack back before a signal can arrive.
func keepSignalStack(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Faults of the thread itself cannot wait.
	const faults = 1<<(syscall.SIGSEGV-1) | 1<<(syscall.SIGBUS-1) | 1<<(syscall.SIGFPE-1) | 1<<(syscall.SIGILL-1) |
		1<<(syscall.SIGTRAP-1)
	blocked, before := ^uint64(faults), uint64(0)
	var stack signalStack
	if err := maskSignals(&blocked, &before); err != nil {
		return err
	}
	if err := swapSignalStack(nil, &stack); err != nil {
		return errors.Join(err, maskSignals(&before, nil))
	}
	err := f()
	return errors.Join(err, swapSignalStack(&stack, nil), maskSignals(&before, nil))
}

// signalStack is the kernel's stack_t.
type signalStack struct {
	at    uintptr
	flags int32
	size  uintptr
}

func swapSignalStack(next, last *signalStack) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SIGALTSTACK, uintptr(unsafe.Pointer(next)),
		uintptr(unsafe.Pointer(last)), 0); errno != 0 {
		return fmt.Errorf("sigaltstack: %w", errno)
	}
	return nil
}

// maskSignals sets which signals the thread holds back.
func maskSignals(next, last *uint64) error {
	const set = 2 // SIG_SETMASK
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, set, uintptr(unsafe.Pointer(next)),
		uintptr(unsafe.Pointer(last)), unsafe.Sizeof(*next), 0, 0); errno != 0 {
		return fmt.Errorf("sigprocmask: %w", errno)
	}
	return nil
}
