package lm_test

import "time"

// stopwatch adds up the time of parts of a benchmark.
type stopwatch struct{ total time.Duration }

func (s *stopwatch) time(f func()) {
	start := time.Now()
	f()
	s.total += time.Since(start)
}

func (s *stopwatch) seconds() float64 { return s.total.Seconds() }
