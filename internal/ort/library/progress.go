package library

import "infill/internal/hub"

// Progress observes a fetch. All calls come from one goroutine.
type Progress interface {
	hub.Progress
	// Say tells a line about the fetch as a whole.
	Say(line string)
}

var _ Progress = silent{}

type silent struct{ hub.Silent }

func (silent) Say(string) {}
