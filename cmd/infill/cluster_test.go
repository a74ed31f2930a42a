package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"sigs.k8s.io/yaml"
)

// jobSchema is that of a Kubernetes job; testdata/cluster/kubernetes-job.go tells where it is from.
func jobSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster/kubernetes-job.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// validate reads a manifest as the API's server does, which refuses fields it does not know.
func validate(schema *jsonschema.Resolved, manifest string) (job map[string]any, err error) {
	text, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &job); err != nil {
		return nil, err
	}
	return job, schema.Validate(job)
}

// TestKubernetes: the manifests that the documentation shows are jobs of the API, and such that an
// index that fails is tried again by itself, in a new pod.
func TestKubernetes(t *testing.T) {
	schema := jobSchema(t)
	for _, name := range []string{"kubernetes.yaml"} {
		text, err := os.ReadFile("../../docs/cluster/" + name)
		if err != nil {
			t.Fatal(err)
		}
		manifest := string(text)
		job, err := validate(schema, manifest)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec := job["spec"].(map[string]any)
		pod := spec["template"].(map[string]any)["spec"].(map[string]any)
		if pod["restartPolicy"] != "Never" || spec["backoffLimitPerIndex"] == nil ||
			spec["completionMode"] != "Indexed" || spec["completions"].(float64) > 10000 {
			t.Errorf("%s: a pod is not made again for its index alone", name)
		}
		// What the check would not notice is worth nothing.
		for old, wrong := range map[string]string{
			"backoffLimitPerIndex": "backoffLimitPerIndx", "restartPolicy: Never": "restartPolicy: Sometimes",
			"completionMode: Indexed": "completionMode: Index",
			"mountPath":               "mountpath", "parallelism: ": "parallelism: many #", "batch/v1": "batch/v1beta1",
		} {
			if _, err := validate(schema, strings.Replace(manifest, old, wrong, 1)); err == nil ||
				!strings.Contains(manifest, old) {
				t.Errorf("%s: %s in the place of %s is not noticed", name, wrong, old)
			}
		}
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
