package library

import (
	"os/exec"
	"strconv"
)

// alone lets the client end with its children.
func alone(client *exec.Cmd) {
	client.Cancel = func() error {
		return exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(client.Process.Pid)).Run()
	}
}

// syncFolder does nothing: Windows syncs no folders.
func syncFolder(string) error { return nil }
