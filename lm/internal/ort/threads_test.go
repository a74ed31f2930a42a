package ort

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

func TestQuota(t *testing.T) {
	none := math.Inf(1)
	for name, test := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"no cgroups": {nil, none},
		"version 2": {map[string]string{"proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5},
		"no limit": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "max 100000\n"},
			none},
		"parent's": {map[string]string{"proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 0.5},
		"container": {map[string]string{"proc/self/cgroup": "0::/docker/x\n",
			"sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3},
		"version 1": {map[string]string{"proc/self/cgroup": "4:memory:/m\n3:cpu,cpuacct:/a\n",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us":  "200000\n",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"}, 2},
		"1, no limit": {map[string]string{"proc/self/cgroup": "3:cpu:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, none},
		"not a cpu set": {map[string]string{"proc/self/cgroup": "3:cpuset:/\nx\n",
			"sys/fs/cgroup/cpuset/cpu.max": "1 1\n"}, none},
	} {
		files := fstest.MapFS{}
		for path, text := range test.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := quota(files); got != test.want {
			t.Errorf("%s: %v processors, want %v", name, got, test.want)
		}
	}
}

const threadsVariable = "INFILL_TEST_THREADS"

// childThreads is how many threads a process takes that a command starts and limits.
func childThreads(t *testing.T, command ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(command[0], append(command[1:], self, "-test.run", "^TestThreadsOfChild$", "-test.v")...)
	child.Env = append(os.Environ(), threadsVariable+"=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, after, _ := strings.Cut(string(out), "threads: ")
	number, _, _ := strings.Cut(after, ";")
	return number
}

// TestThreadsOfChild runs in processes that other tests start.
func TestThreadsOfChild(t *testing.T) {
	if os.Getenv(threadsVariable) == "" {
		t.Skip("only in a process that another test starts")
	}
	fmt.Printf("threads: %d;\n", openCPU(t, Options{}).Threads())
}

func TestThreadsByAffinity(t *testing.T) {
	taskset, err := exec.LookPath("taskset")
	if err != nil || runtime.NumCPU() < 2 {
		t.Skip("taskset and two processors are needed")
	}
	if got := childThreads(t, taskset, "--cpu-list", "0"); got != "1" {
		t.Errorf("%q threads on one processor of %d", got, runtime.NumCPU())
	}
}

func TestThreadsByQuota(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("two processors are needed")
	}
	for _, version := range []struct{ folder, members, limit, value string }{
		{"/sys/fs/cgroup/cpu", "cgroup.procs", "cpu.cfs_quota_us", "100000"},
		{"/sys/fs/cgroup", "cgroup.procs", "cpu.max", "100000 100000"},
	} {
		if _, err := os.Stat(filepath.Join(version.folder, version.members)); err != nil {
			continue
		}
		folder := filepath.Join(version.folder, fmt.Sprintf("infill-test-%d", os.Getpid()))
		if err := os.Mkdir(folder, 0o755); err != nil {
			continue // this user makes no groups
		}
		defer os.Remove(folder)
		if err := os.WriteFile(filepath.Join(folder, version.limit), []byte(version.value), 0o644); err != nil {
			continue
		}
		script := fmt.Sprintf(`echo $$ > %q && exec "$@"`, filepath.Join(folder, version.members))
		if got := childThreads(t, "sh", "-c", script, "sh"); got != "1" {
			t.Errorf("%q threads in a group that may use one processor of %d", got, runtime.NumCPU())
		}
		return
	}
	t.Skip("no control group can be made here")
}

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		quota         float64
		threads, want int
	}{{math.Inf(1), 2, 2}, {1, 2, 1}, {1.5, 4, 2}, {0.2, 4, 1}, {8, 4, 4}} {
		if got := within(test.quota, test.threads); got != test.want {
			t.Errorf("%d threads of %d within a quota of %v processors, want %d", got, test.threads, test.quota,
				test.want)
		}
	}
}
