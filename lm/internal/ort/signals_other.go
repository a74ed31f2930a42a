//go:build !linux

package ort

// keepSignalStack runs f. OpenVINO, which it guards against, is used on Linux alone.
func keepSignalStack(f func() error) error { return f() }
