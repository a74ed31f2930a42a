//go:build !windows

package library

import (
	"os"
	"os/exec"
	"syscall"
)

// alone gives the client a process group of its own, so that it ends with its children, and when we say so.
func alone(client *exec.Cmd) {
	client.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	client.Cancel = func() error {
		return syscall.Kill(-client.Process.Pid, syscall.SIGKILL)
	}
}

// syncFolder makes a rename inside a folder last.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
