package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/internal/modelstest"
)

// TestJudge: a model that did not sample rates the fills, anybody's numbers join
// the table by the ids of samples.csv, and what does not belong to the run is
// told in a line.
func TestJudge(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	text := ""
	for day := range 12 {
		text += fmt.Sprintf("on day %d he opened the door and went out into the rain .\n", day)
	}
	config := strings.Replace(modelstest.Tiny, `"max_position_embeddings": 24`, `"max_position_embeddings": 128`, 1)
	if err := modelstest.Write(at("judge"), config, modelstest.Options{}); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("days.txt", text)
	eval := []string{"eval", "-q", "--device", "cpu", "--corpus", "days=" + at("days.txt"), "--sentences", "5",
		"--samplers", "gibbs,dmala", "-n", "3", "-k", "2", "--steps", "2", "--seed", "1", "-o", at("run")}
	code, out, messages := call(t, nil, append(eval, "--judge", at("judge"))...)
	if code != 0 || messages != "" || !strings.Contains(out, "log P, judge ↑") ||
		!strings.Contains(out, "in its own tokens, nats; 30 of 30 samples have a number") {
		t.Fatalf("exit code %d, %s\n%s", code, messages, out)
	}
	samples, err := os.ReadFile(at("run/samples.csv"))
	if err != nil {
		t.Fatal(err)
	}
	code, _, messages = call(t, nil, eval...) // again, without the judge: its numbers stay
	kept, err := os.ReadFile(at("run/samples.csv"))
	if code != 0 || err != nil || string(kept) != string(samples) {
		t.Errorf("exit code %d, %v, %s: the judge's numbers are gone:\n%.200s", code, err, messages, kept)
	}
	list := strings.Split(strings.TrimSpace(string(samples)), "\n")
	if len(list) != 1+30 || !strings.HasPrefix(list[0], "id,model,method,sentence,chain,text,u,log_p_word/judge@") ||
		!strings.HasPrefix(list[1], "gibbs/0/0,small-uncased,gibbs,0,0,") {
		t.Fatalf("%d lines: %s, %s", len(list), list[0], list[1])
	}
	numbers := "id,acceptable\n"
	for _, line := range list[1:] {
		id, _, _ := strings.Cut(line, ",")
		numbers += id + ",0.5\n"
	}
	write("numbers.csv", numbers)
	code, out, messages = call(t, nil, "eval", "show", at("run"), "--join", at("numbers.csv"), "--format", "json")
	var table struct {
		Methods []struct {
			Numbers map[string]struct{ Value, Low, High *float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &table); err != nil || code != 0 || len(table.Methods) != 2 {
		t.Fatalf("exit code %d, %v, %s\n%s", code, err, messages, out)
	}
	for _, m := range table.Methods {
		n := m.Numbers["acceptable"]
		if n.Value == nil || n.Low == nil || n.High == nil || *n.Value != 0.5 || *n.Low != 0.5 || *n.High != 0.5 {
			t.Errorf("joined: %+v", n)
		}
		judged := 0
		for name, n := range m.Numbers {
			if strings.HasPrefix(name, "log_p_word/judge@") && n.Value != nil && *n.Low <= *n.Value {
				judged++
			}
		}
		if judged != 1 {
			t.Errorf("%d columns of the judge in %v", judged, m.Numbers)
		}
	}
	write("others.csv", "id,x\nnobody/0/0,1\n")
	for want, args := range map[string][]string{
		"infill: --judge small-uncased: it makes the samples": append(eval, "--judge", "small-uncased"),
		"infill: model nix: not in the cache":                 append(eval, "--judge", "nix"),
		"infill: --join: " + at("others.csv") + ": row 1: \"nobody/0/0\" is no sample of the run": {"eval", "show",
			at("run"), "--join", at("others.csv")},
		"infill: --join: stat " + at("none.csv"): {"eval", "show", at("run"), "--join", at("none.csv")},
	} {
		code, out, messages := call(t, nil, args...)
		if code == 0 || out != "" || !strings.HasPrefix(messages, want) {
			t.Errorf("%v: exit code %d, %s%s", args, code, messages, out)
		}
	}
}
