//go:build !linux

package ort

// CheckLimits returns nil: the limits of other systems were not tried.
func CheckLimits() error { return nil }
