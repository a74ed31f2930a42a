//go:build !unix

package terminal

func outputClosed() bool { return false }
