package serve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// block is the code of docs/how-to/serve-a-team.md in a language, with the
// server's address.
func block(t *testing.T, language, url string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: other programs take seconds to start")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "serve-a-team.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(text), "```"+language+"\n")
	code, _, ended := strings.Cut(code, "```")
	if !found || !ended {
		t.Fatalf("no block of %s", language)
	}
	return strings.ReplaceAll(code, "http://127.0.0.1:8080", url)
}

func runs(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestClientCurl(t *testing.T) {
	if help, err := exec.Command("curl", "--help", "all").Output(); err != nil ||
		!strings.Contains(string(help), "--json") {
		t.Skip("no curl of 7.82 or later here")
	}
	if out := runs(t, "sh", "-c", block(t, "sh", start(t, nil))); !strings.Contains(out, `"She closed the `) {
		t.Errorf("curl printed %s", out)
	}
}

func TestClientGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(block(t, "go", start(t, nil))), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := runs(t, "go", "run", path); !strings.Contains(out, `"sequence":"he had told me"`) {
		t.Errorf("it printed %s", out)
	}
}

// The real client of Hugging Face reads the answers.
func TestClientPython(t *testing.T) {
	code := block(t, "python", "URL")
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no python3 here")
	}
	if exec.Command(python, "-c", "import huggingface_hub").Run() != nil {
		t.Skip("no huggingface_hub here; .ci/clients installs it")
	}
	url := start(t, nil)
	if out := runs(t, python, "-c", strings.ReplaceAll(code, "URL", url)); strings.Count(out, "he had ") != 3 ||
		!strings.Contains(out, "told") {
		t.Errorf("it printed %s", out)
	}
	rest := `
from huggingface_hub import InferenceClient
client = InferenceClient(base_url="` + url + `")
print([f.token_str for f in client.fill_mask("he had [MASK] me", targets=["told", "never"], top_k=1)])
try:
    client.fill_mask("no blank")
except Exception as error:
    print(getattr(getattr(error, "response", None), "status_code", error))
`
	if out := runs(t, python, "-c", rest); out != "['told']\n422\n" {
		t.Errorf("it printed %s", out)
	}
}
