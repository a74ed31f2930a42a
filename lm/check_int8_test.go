package lm

import (
	"testing"

	"infill/internal/check"
)

// Without VNNI, x86 cuts sums of bytes off; elsewhere, int8 was not tried.
func TestCheckInt8(t *testing.T) {
	check.OK(t, checkInt8("amd64", true))
	check.Says(t, checkInt8("amd64", false), "no VNNI (AVX-512 or AVX)", "wrong numbers")
	check.Says(t, checkInt8("arm64", true), "not tried", "arm64")
}
