package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"infill/models"
)

// TestLimits: a limit of the process that is too low for the model is named in
// one line, whatever the number.
func TestLimits(t *testing.T) {
	for limit, want := range map[string]string{
		"-v 1999999": "infill: too little memory: this process may have 1999999 kB of addresses (ulimit -v), and needs 2000000 kB",
		"-v 1950000": "infill: too little memory: this process may have 1950000 kB of addresses (ulimit -v), and needs 2000000 kB",
		"-s 64":      "infill: too small a stack: a thread may have 64 kB (ulimit -s), and needs 128 kB: raise the limit",
		"-s 127":     "infill: too small a stack: a thread may have 127 kB (ulimit -s), and needs 128 kB: raise the limit",
	} {
		cmd := exec.Command("sh", "-c", "ulimit "+limit+` && exec infill --device cpu "a [MASK] day"`)
		cmd.Env = append(os.Environ(), models.CacheVariable+"="+userCache(t))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(string(out), want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("ulimit %s: %v, %.400s", limit, err, out)
		}
	}
}
