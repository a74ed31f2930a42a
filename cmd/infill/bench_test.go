package main

import (
	"os/exec"
	"testing"
)

// BenchmarkProcess is a whole process, from start to exit, with everything in the
// cache: what a user waits for.
func BenchmarkProcess(b *testing.B) {
	for _, bench := range []struct {
		name string
		args []string
	}{
		{"version", []string{"version"}},
		{"one slot", []string{"--seed", "7", "he had [MASK] me"}},
		{"three slots", []string{"--seed", "7",
			"he took his [MASK] , opened the [MASK] , and [MASK] out into the rain ."}},
		{"score", []string{"score", "he took his hat , opened the door , and walked out into the rain ."}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command("infill", bench.args...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
