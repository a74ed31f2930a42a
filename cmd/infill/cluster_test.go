package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

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
