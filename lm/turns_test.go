package lm

import (
	"slices"
	"testing"
)

// Beside forty callers who have had much and ask for more, one who asks for a row at a time has
// the next call each time, or the one after it, and the others' calls are short. The forty lose
// no turn, and each of them has half of another's rows at least.
func TestTurns(t *testing.T) {
	for _, tokens := range []int{16, 24} { // beside the forty, and in a group of its own
		e := &engine{m: &MaskedLM{padded: true, chunk: chunkLimits{tokens: 2730, queries: 256}}, running: 1}
		e.m.bundle = builtIn(t)
		ask := func(c *caller, tokens, rows int) *request {
			b := &batch{}
			b.reset(tokens, 1, 0, true)
			b.ids, b.queries = make([]int64, rows*tokens), make([]int64, rows)
			r := &request{caller: c, batch: b, left: rows, done: make(chan struct{})}
			e.submit(r)
			return r
		}
		heavy := make([]*caller, 40)
		got := map[*caller]int{} // rows
		for i := range heavy {
			heavy[i] = &caller{}
			heavy[i].tokens.Store(long)
			ask(heavy[i], 16, 64)
		}
		call := func() (size int, callers []*caller) {
			parts, length := e.take()
			for _, p := range parts {
				n := p.to - p.from
				size += n * length
				got[p.caller] += n
				callers = append(callers, p.caller)
				if p.to == p.batch.rows() && slices.Contains(heavy, p.caller) {
					ask(p.caller, 16, 64)
				}
			}
			return size, callers
		}
		if size, _ := call(); size != 2730/16*16 {
			t.Fatalf("a call for the forty alone has %d tokens", size)
		}
		light := &caller{}
		for round := range 40 {
			ask(light, tokens, 1)
			for calls := 1; ; calls++ {
				size, callers := call()
				if size > max(2*tokens, 2730/shortest) {
					t.Errorf("round %d: a call of %d tokens", round, size)
				}
				if slices.Contains(callers, light) {
					break
				}
				if calls > 1 {
					t.Fatalf("round %d: %d calls went before", round, calls)
				}
			}
		}
		before := got[light]
		for range 200 {
			call()
		}
		least, most := got[heavy[0]], 0
		for _, c := range heavy {
			least, most = min(least, got[c]), max(most, got[c])
		}
		if before != 40 || most > 2*least {
			t.Errorf("rows: %d of the one, %d to %d of each of the forty", before, least, most)
		}
	}
}
