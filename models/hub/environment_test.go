package hub

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
)

func TestOptionsFromEnvironment(t *testing.T) {
	home := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(home, "token"), []byte("hf_file\n"), 0o600))
	for _, c := range []struct {
		name string
		env  map[string]string
		want Options
	}{
		{"nothing", nil, Options{}},
		{"all", map[string]string{"HF_ENDPOINT": "https://mirror.example", "HF_TOKEN": " hf_env ",
			"HF_HUB_OFFLINE": "1"},
			Options{Endpoint: "https://mirror.example", Token: "hf_env", Offline: true}},
		{"offline off", map[string]string{"HF_HUB_OFFLINE": "0"}, Options{}},
		{"token in the home of the hub's clients", map[string]string{"HF_HOME": home},
			Options{Token: "hf_file"}},
		{"token file", map[string]string{"HF_TOKEN_PATH": filepath.Join(home, "token")},
			Options{Token: "hf_file"}},
		{"variable before file", map[string]string{"HF_HOME": home, "HF_TOKEN": "hf_env"},
			Options{Token: "hf_env"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_TOKEN_PATH"} {
				t.Setenv(name, c.env[name])
			}
			t.Setenv("HF_HOME", t.TempDir())
			if dir := c.env["HF_HOME"]; dir != "" {
				t.Setenv("HF_HOME", dir)
			}
			if diff := cmp.Diff(c.want, FromEnvironment()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
