package samplers

import (
	"runtime"
	"sync"
	"sync/atomic"

	"infill/internal/parallel"
)

// parallelWork is the number of category weights in a step from which starting
// several goroutines costs less than it saves.
const parallelWork = 1 << 15

// crew runs a function for each chain of a batch, on several goroutines if the
// work is large. The result does not depend on which goroutine takes a chain,
// because a chain uses only its own stream and rows. The closure member is made
// only once, so that running allocates nothing.
type crew struct {
	body    func(chain int)
	chains  int
	next    atomic.Int64
	running sync.WaitGroup
	member  func()
	failure atomic.Pointer[error] // of the first member that panicked
}

// each calls body for the chains 0 to chains-1. work is the number of weights
// that one chain computes. If body panics on any goroutine, each panics with a
// *parallel.Panic on its caller's.
func (w *crew) each(chains, work int, body func(chain int)) {
	members := min(runtime.GOMAXPROCS(0), chains)
	if members < 2 || chains*work < parallelWork {
		for chain := range chains {
			body(chain)
		}
		return
	}
	if w.member == nil {
		take := w.take
		w.member = func() {
			defer w.running.Done()
			err := parallel.Safely(take)
			if err != nil {
				w.failure.CompareAndSwap(nil, &err)
			}
		}
	}
	w.body = body
	w.chains = chains
	w.next.Store(0)
	w.running.Add(members)
	for range members - 1 {
		go w.member()
	}
	w.member()
	w.running.Wait()
	failure := w.failure.Swap(nil)
	if failure != nil {
		panic(*failure)
	}
}

// take calls body for chains that no other goroutine has taken.
func (w *crew) take() error {
	for {
		chain := int(w.next.Add(1)) - 1
		if chain >= w.chains {
			return nil
		}
		w.body(chain)
	}
}
