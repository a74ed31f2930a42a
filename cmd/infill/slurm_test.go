package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSlurm runs docs/cluster/slurm.sbatch on a real Slurm, on this machine alone: eight
// tasks on two nodes, of which one is drained while they run; a task is killed with SIGKILL,
// and the array submitted once more. The merged output is that of one process.
func TestSlurm(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here: apt-get install slurm-wlm munge", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("only root starts a slurmd")
	}
	c := newCluster(t)
	dir := t.TempDir()
	script, err := filepath.Abs("../../docs/cluster/slurm.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	input := filepath.Join(dir, "in.csv")
	if err := os.WriteFile(input, sentences(120), 0o666); err != nil {
		t.Fatal(err)
	}
	settings := []string{"--variants", "2", "--blanks", "2", "--not-original", "--seed", "7"}
	out, alone := filepath.Join(dir, "out.csv"), filepath.Join(dir, "alone.csv")
	c.run(t, "infill",
		append([]string{"augment", input, "-o", alone, "-q", "--device", "cpu", "--threads", "1"}, settings...)...)
	submit := func() {
		c.run(t, "sbatch",
			append([]string{"--chdir", dir, "--cpus-per-task=1", "--export",
				"ALL,COMMAND=augment,INPUT=" + input + ",OUTPUT=" + out, script}, settings...)...)
	}
	wait := func() {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); strings.TrimSpace(c.run(t, "squeue", "-h")) != ""; time.Sleep(
			100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the cluster does not end:\n%s", c.run(t, "squeue"))
			}
		}
	}
	submit()
	killed := killTask(t, out)
	c.run(t, "scontrol", "update", "nodename=n2", "state=drain", "reason=test")
	wait()
	// The merge says which part is missing; what is done is not done again.
	merge := exec.Command(c.infill, "run", "merge", out)
	merge.Env = c.environment
	said, err := merge.CombinedOutput()
	if want := fmt.Sprintf("parts are not finished: run %d/8 again with --resume", killed); err == nil ||
		!strings.Contains(string(said), want) {
		t.Errorf("merge says %q, %v; want %q", said, err, want)
	}
	submit()
	wait()
	c.run(t, "infill", "run", "merge", out)
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(alone)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(got, []byte("\n")); !bytes.Equal(got, want) || lines < 200 {
		t.Errorf("%d lines on the cluster are not the %d of one process", lines, bytes.Count(want, []byte("\n")))
	}
	if state := c.run(t, "scontrol", "show", "node", "n2"); !strings.Contains(state, "DRAIN") {
		t.Errorf("the node was not drained: %s", state)
	}
}

// sentences are a table of texts with labels.
func sentences(count int) []byte {
	var b bytes.Buffer
	b.WriteString("id,label,text\n")
	who := strings.Split("the old baker,my sister,a tall stranger,the captain,our neighbour", ",")
	what := strings.Split("opened the window,carried a heavy basket,looked at the sea,told a long story,waited for "+
		"the train,lost the key", ",")
	when := strings.Split("before the rain,in the evening,after the war,on a cold day,without a word,at the end of "+
		"the street,for an hour", ",")
	for i := range count {
		fmt.Fprintf(&b, "%d,%d,\"%s %s %s, and nobody knew why.\"\n", i, i%2, who[i%len(who)], what[i%len(what)],
			when[i%len(when)])
	}
	return b.Bytes()
}

// killTask kills the first task whose part has a line, and returns its number.
func killTask(t *testing.T, out string) int {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		journals, err := filepath.Glob(filepath.Join(out+".parts", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range journals {
			working := func() bool {
				text, err := os.ReadFile(path)
				lines := bytes.Count(text, []byte("\n"))
				return err == nil && lines > 2 && lines < 1+120/8
			}
			if !working() {
				continue
			}
			number, err := strconv.Atoi(filepath.Base(path)[:5])
			if err != nil {
				t.Fatal(err)
			}
			if pid := taskOf(out, number); pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				time.Sleep(200 * time.Millisecond)
				if working() {
					t.Logf("killed part %d, process %d", number, pid)
					return number
				}
			}
		}
	}
	t.Fatal("no task could be killed at work")
	return 0
}

// taskOf finds the process of a part.
func taskOf(out string, number int) int {
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range processes {
		line, _ := os.ReadFile(path)
		if bytes.HasPrefix(line, []byte("infill\x00")) && bytes.Contains(line, []byte(out+"\x00")) &&
			bytes.Contains(line, fmt.Appendf(nil, "\x00%d/8\x00", number)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// cluster is a Slurm of two nodes on the loopback.
type cluster struct {
	infill      string
	environment []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	// A socket's path is short, so this is no t.TempDir.
	dir, err := os.MkdirTemp("", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"state", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, bytes.Repeat([]byte("infill"), 32), 0o400); err != nil {
		t.Fatal(err)
	}
	var ports [4]int
	var listeners [4]net.Listener
	for i := range ports {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		ports[i] = listeners[i].Addr().(*net.TCPAddr).Port
	}
	for _, l := range listeners {
		l.Close()
	}
	conf := fmt.Sprintf(`ClusterName=infill
SlurmctldHost=localhost
SlurmctldPort=%d
SlurmdPort=%d
AuthType=auth/munge
AuthInfo=socket=DIR/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool-%%n
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd-%%n.pid
SlurmctldLogFile=DIR/slurmctld.log
SlurmdLogFile=DIR/slurmd-%%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MinJobAge=10
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`, ports[0], ports[1], ports[2], ports[3])
	path := filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(conf, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// By that name the test binary is the command.
	c := &cluster{infill: filepath.Join(dir, "bin", "infill")}
	if err := os.Symlink(self, c.infill); err != nil {
		t.Fatal(err)
	}
	c.environment = append(os.Environ(), "SLURM_CONF="+path, "INFILL_CACHE="+userCache(t),
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	start := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = c.environment
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(syscall.SIGTERM)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				cmd.Process.Kill()
				<-ended
			}
		})
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	start("munged", "-F", "--force", "--key-file", key, "--socket", file("munge.sock"), "--pid-file", file("munge.pid"),
		"--log-file", file("munge.log"), "--seed-file", file("seed"))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(file("munge.sock")); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal("munged does not start")
		}
	}
	start("slurmctld", "-D", "-c", "-f", path)
	start("slurmd", "-D", "-N", "n1", "-f", path)
	start("slurmd", "-D", "-N", "n2", "-f", path)
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		cmd := exec.Command("sinfo", "-h", "-o", "%D %T")
		cmd.Env = c.environment
		if out, err := cmd.Output(); err == nil && strings.TrimSpace(string(out)) == "2 idle" {
			return c
		} else if time.Now().After(end) {
			logs, _ := os.ReadFile(file("slurmctld.log"))
			t.Fatalf("the cluster does not start: %s, %v\n%s", out, err, logs)
		}
	}
}

// run runs a command on the cluster and returns what it prints.
func (c *cluster) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if name == "infill" {
		name = c.infill
	}
	cmd := exec.Command(name, args...)
	cmd.Env = c.environment
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
