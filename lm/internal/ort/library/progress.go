package library

import (
	"fmt"
	"io"
	"time"

	"infill/models/hub"
)

// Progress observes a fetch. All calls come from one goroutine.
type Progress interface {
	hub.Progress
	// Say tells a line about the fetch as a whole.
	Say(line string)
}

var _, _ Progress = silent{}, Lines{}

// silent is a Progress that does nothing.
type silent struct{}

func (silent) Begin(string, int64, int64)   {}
func (silent) Advance(int64)                {}
func (silent) Waiting(error, time.Duration) {}
func (silent) Say(string)                   {}

// Lines is a Progress that writes lines to a writer.
type Lines struct{ Out io.Writer }

// Begin implements hub.Progress.
func (Lines) Begin(string, int64, int64) {}

// Advance implements hub.Progress.
func (Lines) Advance(int64) {}

// Waiting implements hub.Progress.
func (l Lines) Waiting(reason error, wait time.Duration) {
	l.Say(fmt.Sprintf("%s; next try in %s", reason, wait.Round(100*time.Millisecond)))
}

// Say implements Progress.
func (l Lines) Say(line string) { fmt.Fprintln(l.Out, line) }
