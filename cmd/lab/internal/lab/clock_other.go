//go:build !unix

package lab

import "time"

// secondsAre says which time the clock measures.
const secondsAre = "wall-clock time"

func clock() time.Time { return time.Now() }
