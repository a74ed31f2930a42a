//go:build !unix

package serve_test

import (
	"testing"
	"time"
)

// processorTime is not told here.
func processorTime(*testing.T) time.Duration { return 0 }
