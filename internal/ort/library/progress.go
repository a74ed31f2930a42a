package library

import (
	"time"

	"infill/internal/hub"
)

// Progress observes a fetch. All calls come from one goroutine.
type Progress interface {
	hub.Progress
	// Say tells a line about the fetch as a whole.
	Say(line string)
}

var _ Progress = silent{}

// silent is a Progress that does nothing.
type silent struct{}

func (silent) Begin(string, int64, int64)   {}
func (silent) Advance(int64)                {}
func (silent) Waiting(error, time.Duration) {}
func (silent) Say(string)                   {}
