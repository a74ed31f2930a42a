package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/models"
)

// What is no message gets an error and ends nothing. An id comes back as it was
// sent, a call that is taken back gets no answer, and what was asked before the
// end of input gets one.
func TestMCPLines(t *testing.T) {
	const (
		begin = "\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
		noJSON, noRequest = `{"id":null,"jsonrpc":"2.0","error":{"code":-32700`, `{"id":null,"jsonrpc":"2.0","error":{"code":-32600`
		fill              = `"method":"tools/call","params":{"name":"fill","arguments":{"template":"the [MASK] [MASK] end","sampler":"dmala","samples":50,"steps":90,"seed":1}}}`
	)
	ping := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
	pong := func(id string) string { return `{"id":` + id + `,"jsonrpc":"2.0","result":{}` }
	in, want := begin, []string{`{"id":1,"jsonrpc":"2.0","result":{"capabilities":{"tools":{}}`}
	for _, c := range []struct{ lines, answers string }{
		{"hello", noJSON},
		{"{bad", noJSON},
		{ping("2") + " x", noJSON},
		{ping("\"\xff\""), noJSON},
		{"", ""},
		{"5", noRequest},
		{"{}", noRequest},
		{"[" + ping("2") + "]", noRequest},
		{`{"id":2,"method":"ping"}`, noRequest},
		{`{"jsonrpc":"2.0","id":2,"method":5}`, noRequest},
		{ping("1.5"), noRequest},
		{ping("null"), noRequest},
		{ping("true"), noRequest},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`, ""},
		{ping("1764131592123456789"), pong("1764131592123456789")},
		{ping("9007199254740993") + "\n" + ping("9007199254740992"),
			pong("9007199254740993") + "\n" + pong("9007199254740992")},
		{ping(strings.Repeat(" ", 17<<20) + "2"), noJSON + "\n" + noJSON},
		{ping("-3") + "\r", pong("-3")},
		{ping("4.0"), pong("4.0")},
		{`{"jsonrpc":"2.0","id":10,"id":11,"method":"ping"}`, `{"id":10,"jsonrpc":"2.0","error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"fill","arguments":{"template":"a [MASK]","top":1,"top":2}}}`,
			`{"id":12,"jsonrpc":"2.0","error":{"code":-32600,"message":"the object has two keys \"params.arguments.top\""`},
		{`{"jsonrpc":"2.0","id":13,"Method":"ping"}`, noRequest},
		{`{"jsonrpc":"2.0","id":14,"method":""}`, noRequest},
		{`{"jsonrpc":"2.0","id":15,"method":"tools/call","params":{"name":"score","arguments":{"texts":"a word"}}}`,
			`{"id":15,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"{\"scores\":[{\"text\":\"a word\"`},
		{"\ufeff" + ping("16"), pong("16")},
		{ping("123456789012345678901234567890"), pong("123456789012345678901234567890")},
		{ping(`"a"`), pong(`"a"`)},
		{ping(`"\u0061 \ud83d"`), pong(`"\u0061 \ud83d"`)},
		{`{"jsonrpc":"2.0","id":7,"method":"nothing"}`, `{"id":7,"jsonrpc":"2.0","error":{"code":-32601`},
		{`{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 100_000) + `"}}`,
			`{"id":71,"jsonrpc":"2.0","error":{"code":-32602,"message":"unknown tool \"` + strings.Repeat("x", 80)},
		{`{"jsonrpc":"2.0","id":17,"method":"resources/list"}`, `{"id":17,"jsonrpc":"2.0","error":{"code":-32601`},
		{`{"jsonrpc":"2.0","id":18,"method":"resources/templates/list"}`,
			`{"id":18,"jsonrpc":"2.0","error":{"code":-32601`},
		{`{"jsonrpc":"2.0","id":19,"method":"prompts/list"}`, `{"id":19,"jsonrpc":"2.0","error":{"code":-32601`},
		{`{"jsonrpc":"2.0","id":20,"method":"logging/setLevel","params":{"level":"info"}}`,
			`{"id":20,"jsonrpc":"2.0","error":{"code":-32601`},
		{`{"jsonrpc":"2.0","id":21,"method":"completion/complete","params":{}}`,
			`{"id":21,"jsonrpc":"2.0","error":{"code":-32601`},
		{`{"jsonrpc":"2.0","id":1764131592123456780,` + fill + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1764131592123456780}}`, ""},
		{`{"jsonrpc":"2.0","id":8,` + fill, `{"id":8,"jsonrpc":"2.0","result":{"content":`},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"score","arguments":{"texts":["a \ud83d"]}}}`,
			`{"id":9,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"the request has half of a surrogate pair`},
	} {
		in += c.lines + "\n"
		if c.answers != "" {
			want = append(want, strings.Split(c.answers, "\n")...)
		}
	}
	for i, method := range []string{"prompts/list", "tools/list"} { // before the agent has begun
		in = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, 22+i, method) + "\n" + in
		want = append(want, fmt.Sprintf(`{"id":%d,"jsonrpc":"2.0","error":{"code":-32600`, 22+i))
	}
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), "infill", "mcp", "--device", "cpu")
	cmd.Env = append(os.Environ(), models.CacheVariable+"="+userCache(t))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.TrimSuffix(in, "\n")), &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Errorf("%v, %s", err, errs.String())
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range got {
		if strings.Contains(line, `"error"`) && len(line) > 2000 {
			t.Errorf("an error of %d bytes: %.200s", len(line), line)
		}
	}
	for i, line := range got { // to the length of what is wanted
		for _, w := range want {
			if strings.HasPrefix(line, w) {
				got[i] = w
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
