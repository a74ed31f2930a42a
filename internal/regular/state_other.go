//go:build !unix

package regular

import "time"

// stateOf knows of no time that a writer cannot set.
func stateOf(string) (state string, written time.Time, ok bool) { return "", time.Time{}, false }
