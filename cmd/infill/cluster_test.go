package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// TestKubernetes: of the job that the documentation shows, an index that
// fails is tried again by itself, in a new pod, and each index does the
// part of its number.
func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile("../../docs/cluster/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Kind string
		Spec struct {
			CompletionMode       string
			Completions          int
			BackoffLimitPerIndex *int
			Template             struct {
				Spec struct {
					RestartPolicy string
					Containers    []struct{ Command, Args []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &job); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec
	if pod := spec.Template.Spec; job.Kind != "Job" || spec.CompletionMode != "Indexed" ||
		spec.BackoffLimitPerIndex == nil || pod.RestartPolicy != "Never" || len(pod.Containers) != 1 ||
		!strings.Contains(strings.Join(pod.Containers[0].Args, ""),
			fmt.Sprintf(`--shard "$((JOB_COMPLETION_INDEX + 1))/%d"`, spec.Completions)) {
		t.Errorf("%+v", job)
	}
}

// TestDockerfile checks what can be checked where no container engine is: the
// files it copies are there, the program that is built is that of the README,
// the last image has no compiler, and does not run as root.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(text), -1)
	if len(stages) != 3 {
		t.Fatalf("%d stages", len(stages)-1)
	}
	build, last := stages[1], stages[2]
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	if !strings.HasPrefix(build, "golang:"+version+"-") {
		t.Errorf("go.mod asks for Go %s, the image is %q", version, strings.SplitN(build, "\n", 2)[0])
	}
	for _, want := range []string{"go build -trimpath -o /out/infill ./cmd/infill", "infill setup"} {
		if !strings.Contains(build, want) {
			t.Errorf("the first stage has no %q", want)
		}
	}
	if !regexp.MustCompile(`(?m)^USER [1-9]\d*:[1-9]\d*$`).MatchString(last) || strings.HasPrefix(last, "golang") {
		t.Error("the image runs as root, or holds the compiler")
	}
	for _, path := range regexp.MustCompile(`(?m)^COPY ([^-\n]+) \S+$`).FindStringSubmatch(build)[1:] {
		for _, name := range strings.Fields(path) {
			if _, err := os.Stat("../../" + name); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHealth runs the entry point of the image as the page has it, without a container
// engine, and its health check: it fails before the server is up, and holds then.
func TestHealth(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil || !strings.Contains(string(dockerfile), `ENTRYPOINT ["infill"]`) {
		t.Fatalf("the entry point is another one (%v)", err)
	}
	page, err := os.ReadFile("../../docs/how-to/serve-a-team.md")
	if err != nil {
		t.Fatal(err)
	}
	arguments := regexp.MustCompile(`example.org/infill (serve --listen :8080)\n`).FindSubmatch(page)
	check, err := os.ReadFile("../../docs/cluster/health")
	if err != nil || arguments == nil {
		t.Fatalf("the page starts no server (%v)", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	healthy := func() bool {
		command := exec.Command("sh", "-c", string(check))
		command.Env = append(os.Environ(), "PORT="+port)
		return command.Run() == nil
	}
	if healthy() {
		t.Error("it is healthy before it runs")
	}
	server := exec.Command("infill", strings.Fields(strings.Replace(string(arguments[1]), "8080", port, 1))...)
	server.Env = append(os.Environ(), "INFILL_TOKEN=secret")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()         //nolint:errcheck // it is killed
	defer server.Process.Kill() //nolint:errcheck // at the end of the test
	for end := time.Now().Add(30 * time.Second); !healthy(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not healthy after 30 s")
		}
	}
}
