package ort

import (
	"errors"
	"testing"
	"unsafe"
)

// What a library does to its thread's signals is undone.
func TestKeepSignalStack(t *testing.T) {
	errStopped := errors.New("stopped")
	theirs := make([]byte, 64<<10)
	var before, within, after signalStack
	var held, heldAfter uint64
	err := keepSignalStack(func() error { // outer: the thread stays the same for what is compared
		err := errors.Join(swapSignalStack(nil, &before), maskSignals(nil, &held))
		got := keepSignalStack(func() error {
			return errors.Join(
				swapSignalStack(&signalStack{at: uintptr(unsafe.Pointer(&theirs[0])), size: uintptr(len(theirs))}, nil),
				swapSignalStack(nil, &within),
				maskSignals(&held, nil), errStopped)
		})
		if !errors.Is(got, errStopped) {
			t.Errorf("error %v", got)
		}
		return errors.Join(err, swapSignalStack(nil, &after), maskSignals(nil, &heldAfter))
	})
	if err != nil {
		t.Fatal(err)
	}
	if within.at != uintptr(unsafe.Pointer(&theirs[0])) || before.at == 0 {
		t.Fatalf("the test does not replace the stack: before %+v, within %+v", before, within)
	}
	if after != before || heldAfter != held {
		t.Errorf("stack %+v, signals held %x; before %+v, %x", after, heldAfter, before, held)
	}
}
