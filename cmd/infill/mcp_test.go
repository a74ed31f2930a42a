package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"infill/models"
)

// What was asked before the end of input is answered, and a line that holds no message ends the program with an error.
func TestMCPLines(t *testing.T) {
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	score := func(text string) string {
		return `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"score","arguments":{"texts":["` + text + `"]}}}`
	}
	for _, c := range []struct{ line, out, err string }{
		{score("a dog"), "pseudo_perplexity", ""},
		{"hello", "", "read the agent's messages: invalid character 'h'"},
		{"{}", "", "read the agent's messages: invalid message version"},
		{"[]", "", "read the agent's messages: empty batch"},
		{`{"jsonrpc":"2.0","id":5,"method":5}`, "", "read the agent's messages: "},
	} {
		var out, errs strings.Builder
		cmd := exec.CommandContext(t.Context(), "infill", "mcp", "--device", "cpu")
		cmd.Env = append(os.Environ(), models.CacheVariable+"="+userCache(t))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(begin+c.line+"\n"), &out, &errs
		if err := cmd.Run(); (err != nil) != (c.err != "") {
			t.Errorf("%s: %v", c.line, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, c.out) || !strings.Contains(errs.String(), c.err) ||
			c.err != "" && strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: answered %s, error %s", c.line, last, errs.String())
		}
	}
}
