//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/models"
)

// certificate writes one for the loopback with its key, and gives a pool that trusts it.
func certificate(t *testing.T) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	written := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})
	if err := os.WriteFile(certificate, written, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(written)
	return certificate, key, pool
}

// serving starts the command in an environment, and gives its process and address.
func serving(t *testing.T, environment []string, arguments ...string) (cmd *exec.Cmd, url string, rest <-chan string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), "infill",
		append([]string{"serve", "--listen", "127.0.0.1:0", "--device", "cpu"}, arguments...)...)
	cmd.Env = append(append(os.Environ(), models.CacheVariable+"="+userCache(t)), environment...)
	told, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(told)
	line, err := lines.ReadString('\n')
	url = regexp.MustCompile(`https?://\S+`).FindString(line)
	if err != nil || url == "" {
		t.Fatalf("%q %v", line, err)
	}
	all := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(lines)
		all <- string(text)
	}()
	return cmd, url, all
}

// The command serves with TLS and a token; SIGTERM lets the request at work end, takes
// no more, and the exit code is 0.
func TestServeDrains(t *testing.T) {
	cert, key, pool := certificate(t)
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("letmein\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, url, rest := serving(t, nil, "--tls-cert", cert, "--tls-key", key, "--token-file", secret, "--max-rows",
		"1000000")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	ask := func(path, token, body, accept string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Host = "infill.example.org" // as a proxy on this machine may keep it
		return client.Do(r)
	}
	for token, want := range map[string]int{"letmein": 200, "letmeout": 401} {
		if r, err := ask("/", token, `{"inputs": "he had [MASK] me"}`, ""); err != nil || r.StatusCode != want {
			t.Fatalf("%v %v, want %d", r, err, want)
		}
	}
	// Events tell that it is at work.
	r, err := ask("/v1/fill", "letmein",
		`{"template": "he [MASK] not [MASK] me .", "sampler": "dmala", "samples": 16, "steps": 60, "seed": 1}`,
		"text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	events := bufio.NewReader(r.Body)
	if line, err := events.ReadString('\n'); err != nil || line != "event: progress\n" {
		t.Fatalf("%q %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "https://"))
		if err != nil {
			break // it takes no more
		}
		c.Close()
		if time.Now().After(end) {
			t.Fatal("it still takes connections")
		}
	}
	if text, err := io.ReadAll(events); err != nil || !bytes.Contains(text, []byte("event: result\n")) {
		t.Errorf("%v, %.300s", err, text)
	}
	said := <-rest
	if err := cmd.Wait(); err != nil || said != "" {
		t.Errorf("%v, %s", err, said)
	}
}

// An agent starts the command and speaks with it: what is not protocol on standard
// output would end the conversation.
func TestMCPProcess(t *testing.T) {
	cmd := exec.Command("infill", "mcp", "--device", "cpu", "--verbose")
	cmd.Env = append(os.Environ(), models.CacheVariable+"="+userCache(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx,
		&mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := client.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 2 {
		t.Fatalf("%v %v", tools, err)
	}
	for tool, arguments := range map[string]any{
		"fill": map[string]any{"template": "he had [MASK] me", "seed": 7,
			"slots": map[string]any{"1": []string{"told", "left"}}},
		"score": map[string]any{"texts": []string{"he had told me"}},
	} {
		r, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(r.StructuredContent); r.IsError || !bytes.Contains(text, []byte("he had told me")) {
			t.Errorf("%s: %s %v", tool, text, r.Content)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// posted posts JSON and gives status and answer.
func posted(t *testing.T, url, body string) (status int, text string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}
