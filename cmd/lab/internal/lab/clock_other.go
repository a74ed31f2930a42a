//go:build !unix

package lab

import "time"

// secondsAre names the time that the clock counts.
const secondsAre = "wall-clock time"

func clock() time.Time { return time.Now() }
