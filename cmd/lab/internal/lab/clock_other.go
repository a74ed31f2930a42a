//go:build !unix

package lab

import "time"

// SecondsAre says which time the clock measures.
const SecondsAre = "wall-clock time"

func Clock() time.Time { return time.Now() }
