package corpus

import (
	"flag"
	"os"
	"testing"
)

// The property tests draw the same cases in every run; -rapid.seed=0 draws others.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
