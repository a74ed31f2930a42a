package lm_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/lm"
	"infill/models"
)

// TestPeer is infill's side of testdata/peers/peers.py, which starts it with
// INFILL_PEER="FOLDER DEVICE CHAINS", and of .ci/gpu: for each line "energy" or
// "gradient" it computes fresh fills and answers with the seconds. A line may
// also say how many chains, and of how many slots each. With "FOLDER shape" it
// writes random weights of BERT-base's shape.
func TestPeer(t *testing.T) {
	words := strings.Fields(os.Getenv("INFILL_PEER"))
	if len(words) == 0 {
		t.Skip("only under testdata/peers/peers.py")
	}
	if words[1] == "shape" {
		check.OK(t, modelstest.Write(words[0], published[0].config, modelstest.Options{}))
		return
	}
	chains := 0
	if _, err := fmt.Sscan(words[2], &chains); err != nil {
		t.Fatal(err)
	}
	bundle := check.Must(models.Open(words[0]))(t)
	m, err := lm.Open(t.Context(), bundle,
		lm.Options{Device: words[1], MaskID: maskID})
	check.OK(t, err)
	defer m.Close()
	w := newWorkload(chains, benchTokens, benchSlots, 250)
	fmt.Printf("\npeer: ready infill, onnxruntime %s\n", m.Description().Runtime)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		what, slots := lines.Text(), benchSlots
		if n, _ := fmt.Sscan(lines.Text(), &what, &chains, &slots); n == 3 {
			w = newWorkload(chains, benchTokens, slots, 250)
		}
		start := time.Now()
		check.OK(t, w.run(t.Context(), m, what == "gradient"))
		fmt.Printf("peer: %.6f\n", time.Since(start).Seconds())
	}
}
