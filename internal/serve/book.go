package serve

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

// A book knows which requests of many rows run, and when those that were refused shall
// come again. Each gets a time of its own, when there is likely room for it.
type book struct {
	limit    time.Duration // the longest time that a request runs
	lock     sync.Mutex
	running  []*booking
	promised []booking // the earliest first
}

// booking is a request of many rows.
type booking struct {
	body [sha256.Size]byte // the hash of its body
	span time.Duration     // how long it likely takes the machine by itself
	at   time.Time         // when it has begun, or was told to come
}

// horizon is how many limits ahead a book makes promises. Who asks for more than can be
// done until then keeps others from no later time.
const horizon = 10

// claim takes out the promise that a request with this body was given, the
// earliest of several, or nil. After the limit a promise is void.
func (k *book) claim(b booking) *booking {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.promised = slices.DeleteFunc(k.promised, func(p booking) bool { return b.at.Sub(p.at) > k.limit })
	i := slices.IndexFunc(k.promised, func(p booking) bool { return p.body == b.body })
	if i < 0 {
		return nil
	}
	own := k.promised[i]
	k.promised = slices.Delete(k.promised, i, i+1)
	return &own
}

// begin notes that a request runs. The caller calls end when it does so no more.
func (k *book) begin(b booking) (end func()) {
	k.lock.Lock()
	defer k.lock.Unlock()
	b.at = time.Now()
	k.running = append(k.running, &b)
	return func() {
		k.lock.Lock()
		defer k.lock.Unlock()
		k.running = slices.DeleteFunc(k.running, func(r *booking) bool { return r == &b })
	}
}

// refuse returns after how long a refused request shall come again. own is the promise
// that it has claimed, which holds on if its time has not come. Else it is promised the
// time when all that run, and those promised before it, have likely ended.
func (k *book) refuse(b booking, own *booking) time.Duration {
	k.lock.Lock()
	defer k.lock.Unlock()
	now := time.Now()
	if own != nil && now.Before(own.at) {
		k.promised = append(k.promised, *own)
		slices.SortStableFunc(k.promised, func(a, b booking) int { return a.at.Compare(b.at) })
		return own.at.Sub(now)
	}
	left := k.left(now)
	b.at = now.Add(left)
	if len(k.promised) > 0 {
		last := k.promised[len(k.promised)-1]
		after := last.at.Add(last.span)
		if after.After(b.at) {
			b.at = after
		}
	}
	if b.at.Sub(now)/horizon > k.limit {
		return left
	}
	k.promised = append(k.promised, b)
	return b.at.Sub(now)
}

// left returns when all that runs has likely ended, at the latest at its limit.
func (k *book) left(now time.Time) (left time.Duration) {
	for _, r := range k.running {
		part := 1 - float64(now.Sub(r.at))/float64(k.limit)
		left += time.Duration(max(0, part) * float64(r.span))
	}
	return left
}
