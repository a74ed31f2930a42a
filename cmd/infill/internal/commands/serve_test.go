package commands

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/serve"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/lmtest"
)

// What would let others ask, or leaves them without an answer, is refused.
func TestServeRefuses(t *testing.T) {
	useFormula(t)
	folder := t.TempDir()
	wrong := map[string]string{"nul": "let\x00me", "escape": "let\x1bme", "two": "let me", "none": "\n",
		"mark": "\ufefflet\ufeffme", "letters": "lätme"}
	lines := map[string]string{}
	for name, token := range wrong {
		file := filepath.Join(folder, name)
		err := os.WriteFile(file, []byte(token), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		lines["serve --token-file "+file] = "--token-file: " + file +
			" holds no token: write one line of letters and digits"
	}
	maps.Copy(lines, map[string]string{
		"serve --listen 0.0.0.0:0":                      "other machines could ask without a token",
		"serve --listen :0":                             "other machines could ask without a token",
		"serve --listen 8080":                           "is not HOST:PORT",
		"serve --tls-cert x":                            "go together",
		"serve --allow-origin *":                        "is not SCHEME://HOST",
		"serve --allow-origin https://example.org/":     "is not SCHEME://HOST",
		"serve --token-file /nowhere":                   "--token-file",
		"serve --max-requests 0":                        "--max-requests: the bound is too small",
		"serve --max-memory 1":                          "too small for any request: give 262144 or more",
		"serve --max-time 0s":                           "too small for any request: give 10ms",
		"serve --max-time 1ns":                          "too small for any request: give 10ms",
		"serve --max-time 1":                            `--max-time: "1" is not a length of time, such as 90s or 5m`,
		"serve --listen unix:x.sock":                    "write one such as 127.0.0.1:8080; sockets of Unix are not",
		"serve --listen unix:/tmp/x.sock":               "write one such as 127.0.0.1:8080; sockets of Unix are not",
		"serve --listen /tmp/x.sock":                    "write one such as 127.0.0.1:8080; sockets of Unix are not",
		"serve --listen 127.0.0.1:99999":                "is not HOST:PORT",
		"serve --listen ::1:8080":                       "is not HOST:PORT: write [::1]:8080",
		"serve --listen fe80::2:0":                      "is not HOST:PORT: write [fe80::2]:0",
		"serve --allow-origin https://exämple.org":      "write the host in ASCII, as location.origin has it",
		"serve --tls-cert /nowhere --tls-key /nowhere":  "--tls-cert",
		"serve --tls-cert /dev/zero --tls-key /nowhere": "--tls-cert",
		"serve --pipe --listen 127.0.0.1:0":             "--listen: --pipe listens nowhere",
		"serve --pipe --no-auth":                        "--no-auth: --pipe listens nowhere",
		"serve --pipe --max-requests 0":                 "--max-requests: the bound is too small",
		"serve --tls-key x":                             "go together",
		"serve --device tpu":                            "--device: ",
		"serve --name same --also same":                 "two models are called same: serve one of them",
		"mcp --device tpu":                              "--device: ",
		"serve x":                                       `unexpected argument "x"`,
		"mcp x":                                         `unexpected argument "x"`,
	})
	for line, want := range lines {
		command := serve.NewCmd
		if strings.HasPrefix(line, "mcp") {
			command = serve.NewCmdMCP
		}
		r := call(t, command, terminal.Streams{}, strings.Fields(line)...)
		if r.Code != cli.ExitUsage || r.Out != "" || !strings.Contains(r.Err, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// A token comes from a file or the environment, and then other machines may ask;
// together with --no-auth it is refused.
func TestServeToken(t *testing.T) {
	useFormula(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("\ufeffletmein\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, environment, want string }{
		{"serve --no-auth", "INFILL_TOKEN=letmein", "infill: a token is given, and --no-auth: take one of them\n"},
		{"serve --no-auth --token-file " + file, "", "infill: a token is given, and --no-auth: take one of them\n"},
		{"serve", "INFILL_TOKEN=let me in",
			"infill: INFILL_TOKEN holds no token: write one line of letters and digits\n"},
		{"serve --listen 0.0.0.0:0 --model nowhere", "INFILL_TOKEN=letmein",
			"infill: model nowhere: not in the cache\n"},
		{"serve --listen 0.0.0.0:0 --model nowhere --no-auth", "", "infill: model nowhere: not in the cache\n"},
		{"serve --listen LocalHost:0 --model nowhere", "INFILL_TOKEN= ", "infill: model nowhere: not in the cache\n"},
		{"serve --listen [::1]:0 --model nowhere", "", "infill: model nowhere: not in the cache\n"},
		{"serve --listen 127.1.2.3:0 --model nowhere", "", "infill: model nowhere: not in the cache\n"},
		{"serve --listen example.org:0 --model nowhere", "",
			"infill: --listen example.org:0: other machines could ask without a token\n" +
				"hint: set INFILL_TOKEN or --token-file, or say --no-auth\n"},
		{"serve --pipe --model nowhere", "", "infill: model nowhere: not in the cache\n"},
	} {
		r := call(t, serve.NewCmd, terminal.Streams{Environment: []string{c.environment}},
			strings.Fields(c.line)...)
		if r.Err != c.want || r.Out != "" {
			t.Errorf("%s, %s: %+v", c.line, c.environment, r)
		}
	}
}

// asked returns the answers of a pipe by their ids.
func asked(t *testing.T, lines string, args ...string) map[string]string {
	t.Helper()
	r := call(t, serve.NewCmd, terminal.Streams{In: strings.NewReader(lines)},
		append([]string{"serve", "--pipe"}, args...)...)
	if r.Code != 0 || r.Err != "" {
		t.Fatalf("%+v", r)
	}
	answers := map[string]string{}
	for line := range strings.Lines(r.Out) {
		var answer struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatal(err)
		}
		answers[string(answer.ID)] = strings.TrimSpace(line)
	}
	return answers
}

// A pipe serves all models by their names, and has only the limits that its user gave.
func TestServePipe(t *testing.T) {
	useFormula(t)
	many := `{"template":"the [MASK] sat","top":2000}` // a server lists 1,000 at most
	answers := asked(t, `{"id":1,"path":"/v1/fill","body":{"template":"the [MASK] sat","top":1}}`+"\n"+
		`{"id":2,"path":"/v1/fill","body":{"template":"the [MASK] sat","top":1,"model":"second"}}`+"\n"+
		`{"id":3,"path":"/v1/fill","body":{"template":"the [MASK] sat","model":"third"}}`+"\n"+
		`{"id":4,"path":"/v1/fill","body":`+many+"}\n", "--name", "first", "--also", "second")
	for id, want := range map[string]string{"1": `"status":200,.*"model":{"name":"formula"`,
		"2": `"status":200,.*"model":{"name":"second"`, "3": `"status":404,.*third`, "4": `"status":200,`} {
		if !regexp.MustCompile(want).MatchString(answers[id]) {
			t.Errorf("answer %s, want %s", answers[id], want)
		}
	}
	answers = asked(t, `{"id":4,"path":"/v1/fill","body":`+many+"}\n", "--max-top", "1000")
	if !strings.Contains(answers["4"], `"status":4`) {
		t.Errorf("beyond a limit that was given: %s", answers["4"])
	}
}

// listening starts the command at a free port, and returns its address and a function
// that ends it and returns what came of it.
func listening(t *testing.T, s terminal.Streams, args ...string) (address string, end func() error) {
	t.Helper()
	told, write := io.Pipe()
	s.Err, s.Out, s.In = write, io.Discard, strings.NewReader("")
	cmd := serve.NewCmd(&s)
	cmd.SetArgs(append([]string{"--listen", "127.0.0.1:0"}, args...))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx); write.Close() }()
	line := make([]byte, 200)
	n, err := told.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, told) //nolint:errcheck // it ends with the command
	address = regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	if !strings.HasPrefix(string(line[:n]), "infill: formula answers at http://127.0.0.1:") {
		t.Fatalf("said %q", line[:n])
	}
	return address, func() error { cancel(); return <-ended }
}

// On the loopback, pages of other sites are kept out without a token, and asked for one
// with it; the end of the context ends the command well.
func TestServeListens(t *testing.T) {
	useFormula(t)
	for _, c := range []struct {
		environment, host, token string
		want                     int
	}{
		{"", "", "", 200}, {"", "localhost", "", 200}, {"", "evil.example", "", 403},
		{"INFILL_TOKEN=letmein", "evil.example", "letmein", 200}, {"INFILL_TOKEN=letmein", "", "", 401},
		{"INFILL_TOKEN=letmein", "", "letmeout", 401},
	} {
		address, end := listening(t, terminal.Streams{Environment: []string{c.environment}})
		r, err := http.NewRequest(http.MethodGet, address+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%+v: %s", c, answer.Status)
		}
		if err := end(); err != nil {
			t.Errorf("%+v: it ended with %v", c, err)
		}
	}
}

// The error of a port that is taken says another way.
func TestServePortIsTaken(t *testing.T) {
	useFormula(t)
	address, end := listening(t, terminal.Streams{})
	r := call(t, serve.NewCmd, terminal.Streams{}, "serve", "--listen", strings.TrimPrefix(address, "http://"))
	if r.Code != cli.ExitFailed || !strings.HasPrefix(r.Err, "infill: listen: ") ||
		!strings.HasSuffix(r.Err, "\nhint: another port: infill serve --listen 127.0.0.1:0\n") {
		t.Errorf("%+v", r)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// Each line of an agent has its answer with its own id; what is no message gets an error
// and ends nothing, and a line that is an answer gets none.
func TestServeMCP(t *testing.T) {
	useFormula(t)
	const begin = `{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for line, want := range map[string]string{
		`hello`:                    `{"id":null,"jsonrpc":"2.0","error":{"code":-32700`,
		`{}`:                       `{"id":null,"jsonrpc":"2.0","error":{"code":-32600`,
		`{"id":2,"method":"ping"}`: `{"id":null,"jsonrpc":"2.0","error":{"code":-32600`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:              `{"id":null,"jsonrpc":"2.0","error":{"code":-32600`,
		`{"jsonrpc":"2.0","id":4.0,"method":"ping"}`:              `{"id":4.0,"jsonrpc":"2.0","result":{}}`,
		`{"jsonrpc":"2.0","id":"a","method":"ping"}`:              `{"id":"a","jsonrpc":"2.0","result":{}}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`: `{"id":9007199254740993,"jsonrpc":"2.0","result":{}}`,
		`{"jsonrpc":"2.0","id":7,"method":"nothing"}`:             `{"id":7,"jsonrpc":"2.0","error":{"code":-32601`,
		`{"jsonrpc":"2.0","id":8,"result":{}}`:                    "",
		`{"jsonrpc":"2.0","id":9,"error":{}}`:                     "",
		"":                                                        "",
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"fill","arguments":{"template":"the [MASK]"}}}`: "" +
			`{"id":5,"jsonrpc":"2.0","result":{"content":`,
	} {
		r := call(t, serve.NewCmdMCP, terminal.Streams{In: strings.NewReader(begin + line)}, "mcp")
		if r.Code != 0 || r.Err != "" {
			t.Fatalf("%s: %+v", line, r)
		}
		var others []string
		for answer := range strings.Lines(r.Out) {
			if !strings.HasPrefix(answer, `{"id":"begin"`) {
				others = append(others, answer)
			}
		}
		if want == "" && len(others) > 0 || want != "" && (len(others) != 1 || !strings.HasPrefix(others[0], want)) {
			t.Errorf("%s: answered %q, want %s", line, others, want)
		}
	}
}

// A call that is taken back ends, and has no answer; the conversation goes on.
func TestServeMCPCancels(t *testing.T) {
	tokenizer, err := lmtest.Tokenizer(strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat"))
	if err != nil {
		t.Fatal(err)
	}
	before := cli.OpenModel
	defer func() { cli.OpenModel = before }()
	working := make(chan bool, 1)
	in, lines := io.Pipe()
	cli.OpenModel = func(infill.OpenOptions) (*infill.Filler, error) {
		model := lmtest.New(9, 16)
		begun := false // whether the agent speaks: the command runs each model once before
		model.Before = func(ctx context.Context) error {
			if model.Calls.Load() == 1 {
				return nil
			}
			if !begun {
				begun = true
				working <- true
			}
			<-ctx.Done()
			return ctx.Err()
		}
		return infill.New(model, tokenizer), nil
	}
	go func() {
		defer lines.Close()
		io.WriteString(lines, `{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":`+ //nolint:errcheck
			`"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n"+
			`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"fill","arguments":{"template":"the [MASK]"}}}`+"\n")
		<-working
		io.WriteString(lines, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`+"\n"+ //nolint:errcheck
			`{"jsonrpc":"2.0","id":6,"method":"ping"}`+"\n")
	}()
	r := call(t, serve.NewCmdMCP, terminal.Streams{In: in}, "mcp")
	if r.Code != 0 || strings.Contains(r.Out, `"id":5`) || !strings.Contains(r.Out, `{"id":6,"jsonrpc":"2.0","result":{}}`) {
		t.Errorf("%+v", r)
	}
}
