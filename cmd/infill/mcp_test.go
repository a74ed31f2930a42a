package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"infill/models"
)

// A line that holds no message gets an error, and the conversation goes on.
func TestMCPBadLines(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "infill", "mcp", "--device", "cpu")
	cmd.Env = append(os.Environ(), models.CacheVariable+"="+userCache(t))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	type answer struct {
		ID     any
		Result map[string]any
		Error  *struct {
			Code    int
			Message string
		}
	}
	// ask sends a line and reads the one that answers.
	ask := func(line string) (a answer) {
		t.Helper()
		if _, err := fmt.Fprintln(in, line); err != nil {
			t.Fatal(err)
		}
		text, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%.80q ended the conversation: %v", line, err)
		}
		if err := json.Unmarshal(text, &a); err != nil || !strings.Contains(string(text), `"id":`) {
			t.Fatalf("%.80q is answered by %s: %v", line, text, err)
		}
		return a
	}
	ping := func(id int, more string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"%s}`, id, more)
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

	if a := ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`); a.Result == nil {
		t.Fatalf("not begun: %+v", a)
	}
	fmt.Fprint(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n\n  \n") // blank lines are no messages
	for i, c := range []struct {
		line string
		id   any
		code int
		want string
	}{
		{"hello", nil, -32700, "not JSON"},
		{`{"jsonrpc":"2.0"`, nil, -32700, "not JSON"},
		{ping(2, "") + " x", nil, -32700, "not JSON"},
		{"\xff\xfe", nil, -32700, "not JSON"},
		{deep(100_000), nil, -32700, "depth"},
		{"{}", nil, -32600, "no message"},
		{"null", nil, -32600, "no message"},
		{"5", nil, -32600, "no message"},
		{"[]", nil, -32600, "not a batch"},
		{"[" + ping(3, "") + "]", nil, -32600, "not a batch"},
		{`{"jsonrpc":"1.0","id":"a","method":"ping"}`, "a", -32600, "JSON-RPC 2.0"},
		{`{"id":4,"method":"ping"}`, 4.0, -32600, "JSON-RPC 2.0"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, -32600, "no message"},
		{`{"jsonrpc":"2.0","id":5,"method":5}`, 5.0, -32600, "no message"},
		{ping(6, `,"params":`+deep(2000)), 6.0, -32600, "no message"},
		{ping(8, `,"params":{"a":"\ud800"}`), 8.0, -32600, `half of a character, \ud800`},
		{ping(7, `,"params":{"a":"`+strings.Repeat("x", 1<<20)+`"}`), nil, -32600, "longer than 1048576 bytes"},
	} {
		if a := ask(c.line); a.Error == nil || a.Error.Code != c.code || a.ID != c.id ||
			!strings.Contains(a.Error.Message, c.want) || strings.Contains(a.Error.Message, "jsonrpc2.") {
			t.Errorf("%.80q: %+v %+v, want %d for %v: %s", c.line, a, a.Error, c.code, c.id, c.want)
		}
		if a := ask(ping(100+i, "")); a.Result == nil || a.ID != float64(100+i) {
			t.Errorf("after %.80q: %+v", c.line, a)
		}
	}
	// What is wrong is said in words of the protocol.
	for i, c := range []string{`"tools/call","params":"x"`, `"tools/call","params":{"name":5}`,
		`"tools/call","params":{"name":"fill","arguments":5}`, `"tools/list","params":7`,
		`"initialize","params":{"clientInfo":5}`} {
		if a := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s}`, 200+i, c)); a.Error == nil ||
			a.Error.Code != -32602 || !strings.HasPrefix(a.Error.Message, `"params" has not the form`) {
			t.Errorf("%s: %+v %+v", c, a, a.Error)
		}
	}
	// What was asked before the end of input is answered.
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"score","arguments":{"texts":["a dog"]}}}`)
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if text, err := lines.ReadString('\n'); err != nil || !strings.Contains(text, "pseudo_perplexity") {
		t.Errorf("the last call is answered by %q: %v", text, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
