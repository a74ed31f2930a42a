package parallel

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

// A Panic is the error of a function that panicked. It ends the request for
// which the function worked, and nothing else.
type Panic struct {
	Value any    // what the function panicked with
	Place string // the line that panicked, such as "samplers/kernel.go:122"
	Stack []byte // the stack of that goroutine
}

// Error returns one line for a log. It does not have the stack.
func (p *Panic) Error() string {
	value := strings.Join(strings.Fields(fmt.Sprint(p.Value)), " ")
	return fmt.Sprintf("a fault of the program at %s: %s", p.Place, value)
}

// Safely calls do and returns its error. If do panics, the error is a [*Panic].
func Safely(do func() error) (err error) {
	defer func() {
		value := recover()
		if value != nil {
			err = caught(value)
		}
	}()
	return do()
}

// caught makes the error of a panic. It is called by the deferred function that
// recovered. A Panic of another goroutine stays as it is.
func caught(value any) *Panic {
	earlier, ok := value.(error)
	p := new(Panic)
	if ok && errors.As(earlier, &p) {
		return p
	}
	return &Panic{Value: value, Place: place(), Stack: debug.Stack()}
}

// place returns the file, with its folder, and the line of the function that
// panicked: the first one above the frames of the runtime.
func place() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicked := false
	for {
		frame, more := frames.Next()
		inside := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !inside {
			folder, file := path.Split(frame.File)
			return fmt.Sprintf("%s/%s:%d", path.Base(folder), file, frame.Line)
		}
		panicked = panicked || inside
		if !more {
			return "an unknown place"
		}
	}
}
