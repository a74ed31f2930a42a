package eval

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"infill/cmd/infill/internal/cli"
	"infill/internal/eval"
)

// A table is cut into blocks that fit the terminal, each with the names of the
// methods. Markdown has all in one row.
func TestBlocks(t *testing.T) {
	grid := [][]string{{"method"}, {"gibbs"}, {"d|mala"}}
	for i := range 9 {
		grid[0] = append(grid[0], fmt.Sprint("column ", i))
		grid[1] = append(grid[1], fmt.Sprintf("%d.00\n0.1–0.%d", i, i))
		grid[2] = append(grid[2], "–")
	}
	for width, want := range map[int]int{0: 1, 40: 3, 60: 2, 200: 1} {
		list := blocks(grid, width)
		if len(list) != want {
			t.Errorf("%d columns: %d blocks, want %d", width, len(list), want)
		}
		columns := 0
		for _, block := range list {
			columns += len(block[0]) - 1
			text := cli.RenderTable(width, block[0], block[1:], 0)
			for line := range strings.Lines(text) {
				if n := len([]rune(line)) - 1; width > 0 && n > width {
					t.Errorf("%d columns in a terminal of %d: %q", n, width, line)
				}
			}
			if strings.Count(text, "\n") != 4 || !strings.Contains(text, "\n  gibbs  ") {
				t.Errorf("the table is\n%s", text)
			}
		}
		if columns != 9 {
			t.Errorf("%d columns are shown", columns)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, step := range map[string]eval.Progress{
		"sentence 3 of 20, 750 of 5500 chains (123/s), 2h05m left, dmala:step-size=0.3 toy": {Model: "toy",
			Method: "dmala:step-size=0.3", Sentence: 2, Sentences: 20, Done: 30, Total: 220, Chains: 25,
			ChainsPerSecond: 123.4, Left: 7500 * time.Second},
		"all 40 chains of 4 sentences are done: scoring": {Sentences: 4, Done: 8, Total: 8, Chains: 5, Scoring: true},
		"sentence 1 of 4, 0 of 40 chains, gibbs tiny": {Model: "tiny", Method: "gibbs", Sentences: 4, Total: 8,
			Chains: 5},
	} {
		if got := describe(step, 2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
