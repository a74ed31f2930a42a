package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"infill/models"
)

// TestLimits: a limit of the process that is too low for the model is named in
// one line, whatever the number.
func TestLimits(t *testing.T) {
	const memory = "infill: too little memory: this process may have %s kB of addresses (ulimit -v), and needs 2000000"
	const stack = "infill: too small a stack: a thread may have %s kB (ulimit -s), and needs 128 kB: raise the limit"
	for limit, want := range map[string]string{"-v 1999999": memory, "-v 1950000": memory, "-s 64": stack,
		"-s 127": stack} {
		_, number, _ := strings.Cut(limit, " ")
		want = fmt.Sprintf(want, number)
		cmd := exec.Command("sh", "-c", "ulimit "+limit+` && exec infill --device cpu "a [MASK] day"`)
		cmd.Env = append(os.Environ(), models.CacheVariable+"="+userCache(t))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(string(out), want) ||
			strings.Count(string(out), "\n") != 1 {
			t.Errorf("ulimit %s: %v, %.400s", limit, err, out)
		}
	}
}
