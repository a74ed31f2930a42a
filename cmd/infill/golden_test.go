package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/models"
)

// chainCase has log P of fills in double precision, see testdata/golden/README.md.
type chainCase struct {
	Template string
	Fills    [][]string // [fills × slots] tokens
	Slots    []int
	IDs      [][]int              // [fills × tokens], with the fills in place
	Chain    map[string][]float64 // by the order, [fills]
}

// lists returns the flags that give each blank a list of the words that it
// holds in the fills. Blanks of one name share the list of the first.
func (c chainCase) lists(t *testing.T) (flags []string) {
	t.Helper()
	var named []string
	slot := 0
	for i, part := range strings.Split(c.Template, "[MASK")[1:] {
		blank, _, _ := strings.Cut(part, "]")
		lengthText, name, _ := strings.Cut(blank, "=")
		length := 1
		if lengthText != "" {
			var err error
			length, err = strconv.Atoi(strings.TrimPrefix(lengthText, ":"))
			if err != nil {
				t.Fatal(err)
			}
		}
		var words []string
		for _, fill := range c.Fills {
			words = append(words, strings.Join(fill[slot:slot+length], " "))
		}
		slot += length
		if name != "" && slices.Contains(named, name) {
			continue
		}
		named = append(named, name)
		flags = append(flags, "--slot", strconv.Itoa(i+1)+"="+strings.Join(words, ","))
	}
	if slot != len(c.Slots) {
		t.Fatalf("%s: the blanks have %d slots, the ids %d", c.Template, slot, len(c.Slots))
	}
	return flags
}

// tokens returns the token ids of a fill, [slots].
func (c chainCase) tokens(fill int) (ids []int) {
	for _, position := range c.Slots {
		ids = append(ids, c.IDs[fill][position])
	}
	return ids
}

// TestChainRule: P of the command's fills, in every order, is that of an
// independent implementation in double precision.
func TestChainRule(t *testing.T) {
	t.Setenv(models.CacheVariable, userCache(t))
	golden := filepath.Join("..", "..", "testdata", "golden")
	for name, model := range map[string]string{
		"small-uncased": models.BuiltInName,
		"mini-uncased":  filepath.Join("..", "..", "testdata", "mini-uncased"),
	} {
		text, err := os.ReadFile(filepath.Join(golden, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var cases []chainCase
		err = json.Unmarshal(text, &cases)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			if len(c.Chain) < 2 {
				t.Fatalf("%s, %s: log P in %d orders", name, c.Template, len(c.Chain))
			}
			for order, want := range c.Chain {
				checkChain(t, model, c, order, want)
			}
		}
	}
}

// checkChain compares the fills of a case, in one order, with log P in double precision.
func checkChain(t *testing.T, model string, c chainCase, order string, want []float64) {
	t.Helper()
	args := append(c.lists(t), "--model", model, "--device", "cpu", "--order", order, "-k", "1000", "--format", "jsonl",
		"-q", c.Template)
	code, out, told := call(t, strings.NewReader(""), args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, %s", args, code, told)
	}
	var result struct {
		Fills []struct {
			TokenIDs      []int   `json:"token_ids"`
			Probability   float64 `json:"probability"`
			LogLikelihood float64 `json:"log_likelihood"`
		}
	}
	err := json.Unmarshal([]byte(out), &result)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	for i, logp := range want {
		found := false
		for _, fill := range result.Fills {
			if !slices.Equal(fill.TokenIDs, c.tokens(i)) {
				continue
			}
			found = true
			what := fmt.Sprintf("%s, %s, %v", model, order, c.Fills[i])
			check.Nats(t, what, fill.LogLikelihood, logp, len(c.Slots))
			check.Nats(t, "log of the probability: "+what, math.Log(fill.Probability), logp, len(c.Slots))
		}
		if !found {
			t.Errorf("%s, %s, %v: not among %d fills of %s", model, order, c.Fills[i], len(result.Fills), c.Template)
		}
	}
}
