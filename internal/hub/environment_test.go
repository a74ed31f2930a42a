package hub

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"infill/internal/check"
)

func TestOptionsFromEnvironment(t *testing.T) {
	home := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(home, "token"), []byte("hf_file\n"), 0o600))
	check.OK(t, os.Mkdir(filepath.Join(home, "huggingface"), 0o755))
	check.OK(t, os.WriteFile(filepath.Join(home, "huggingface", "token"), []byte("hf_cached\n"), 0o600))
	file := filepath.Join(home, "token")
	token := func(token, from string) Options { return Options{Token: token, TokenFrom: from} }
	for _, c := range []struct {
		name string
		env  map[string]string
		want Options
	}{
		{"nothing", nil, Options{}},
		{"all", map[string]string{"HF_ENDPOINT": "https://mirror.example", "HF_TOKEN": " hf_env ",
			"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": "/hub"},
			Options{Endpoint: "https://mirror.example", Token: "hf_env", TokenFrom: "HF_TOKEN", Offline: true,
				Cache: "/hub"}},
		{"offline off", map[string]string{"HF_HUB_OFFLINE": "0"}, Options{}},
		{"offline by transformers", map[string]string{"TRANSFORMERS_OFFLINE": "YES"}, Options{Offline: true}},
		{"the hub's word first", map[string]string{"TRANSFORMERS_OFFLINE": "1", "HF_HUB_OFFLINE": "no"}, Options{}},
		{"token in the home of the hub's clients", map[string]string{"HF_HOME": home},
			Options{Token: "hf_file", TokenFrom: file, Cache: filepath.Join(home, "hub")}},
		{"token in the user's cache folder", map[string]string{"XDG_CACHE_HOME": home, "HF_HOME": "-"},
			Options{Token: "hf_cached", TokenFrom: filepath.Join(home, "huggingface", "token"),
				Cache: filepath.Join(home, "huggingface", "hub")}},
		{"token file", map[string]string{"HF_TOKEN_PATH": file}, token("hf_file", file)},
		{"variable before file", map[string]string{"HF_TOKEN_PATH": file, "HF_TOKEN": "hf_env"},
			token("hf_env", "HF_TOKEN")},
		{"older variable before file", map[string]string{"HF_TOKEN_PATH": file, "HUGGING_FACE_HUB_TOKEN": "hf_old"},
			token("hf_old", "HUGGING_FACE_HUB_TOKEN")},
		{"newer variable first", map[string]string{"HF_TOKEN": "hf_env", "HUGGING_FACE_HUB_TOKEN": "hf_old"},
			token("hf_env", "HF_TOKEN")},
		{"none unless asked for", map[string]string{"HF_TOKEN": "hf_env", "HF_TOKEN_PATH": file,
			"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, Options{}},
		{"older name of the cache", map[string]string{"HUGGINGFACE_HUB_CACHE": "/older"}, Options{Cache: "/older"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_TOKEN_PATH", "HF_HUB_CACHE",
				"TRANSFORMERS_OFFLINE", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME",
				"HF_HUB_DISABLE_IMPLICIT_TOKEN"} {
				t.Setenv(name, c.env[name])
			}
			empty := t.TempDir()
			t.Setenv("HF_HOME", strings.TrimPrefix(cmp.Or(c.env["HF_HOME"], empty), "-"))
			got := FromEnvironment()
			if got.Cache == filepath.Join(empty, "hub") {
				got.Cache = "" // the usual place
			}
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
