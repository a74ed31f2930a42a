package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// job has the fields of a Kubernetes job (batch/v1) that the manifest uses, as k8s.io/api v0.37.2 spells them.
type job struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		CompletionMode       string `json:"completionMode"`
		Completions          int    `json:"completions"`
		Parallelism          int    `json:"parallelism"`
		BackoffLimitPerIndex *int   `json:"backoffLimitPerIndex"`
		MaxFailedIndexes     int    `json:"maxFailedIndexes"`
		Template             struct {
			Spec struct {
				RestartPolicy   string         `json:"restartPolicy"`
				SecurityContext map[string]any `json:"securityContext"`
				Containers      []struct {
					Name         string                       `json:"name"`
					Image        string                       `json:"image"`
					Command      []string                     `json:"command"`
					Args         []string                     `json:"args"`
					Resources    map[string]map[string]string `json:"resources"`
					VolumeMounts []struct {
						Name      string `json:"name"`
						MountPath string `json:"mountPath"`
					} `json:"volumeMounts"`
				} `json:"containers"`
				Volumes []struct {
					Name                  string `json:"name"`
					PersistentVolumeClaim struct {
						ClaimName string `json:"claimName"`
					} `json:"persistentVolumeClaim"`
				} `json:"volumes"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// TestKubernetes: the manifest that the documentation shows has no other fields, and an index that fails is tried again
// by itself, in a new pod.
func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile("../../docs/cluster/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var j job
	if err := yaml.UnmarshalStrict(text, &j); err != nil {
		t.Fatal(err)
	}
	if spec := j.Spec; j.APIVersion != "batch/v1" || j.Kind != "Job" || spec.Template.Spec.RestartPolicy != "Never" ||
		spec.BackoffLimitPerIndex == nil || spec.CompletionMode != "Indexed" || spec.Completions > 10000 {
		t.Errorf("a pod is not made again for its index alone: %+v", j)
	}
}

// TestDockerfile checks what can be checked where no container engine is: the files it copies are there, the program
// that is built is that of the README, the last image has no compiler, and does not run as root.
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
