package lm

import (
	"testing"

	"infill/internal/check"
)

// Int8 runs on x86, and was not tried elsewhere.
func TestCheckInt8(t *testing.T) {
	check.OK(t, checkInt8("amd64"))
	check.Says(t, checkInt8("arm64"), "not tried", "arm64")
}
