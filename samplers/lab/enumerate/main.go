// Command enumerate counts the states of the 5 × 5 Ising torus by the sum of
// the spins and by the sum of s_i s_k over the edges: all 2^25 states, in Gray
// code order, so that each differs from the one before in one spin. The result
// is exact and serves every coupling and field.
package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
)

const (
	side  = 5
	sites = side * side
	edges = 2 * sites
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: enumerate FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "enumerate:", err)
		os.Exit(1)
	}
}

// count returns the numbers of states, by (sum of spins + 25)/2 and (sum over
// edges + 50)/2.
func count() [sites + 1][edges + 1]uint64 {
	var near [sites][4]int
	for site := range sites {
		r, c := site/side, site%side
		near[site] = [4]int{
			(r+1)%side*side + c, (r+side-1)%side*side + c,
			r*side + (c+1)%side, r*side + (c+side-1)%side,
		}
	}
	var states [sites + 1][edges + 1]uint64
	var spin [sites]int
	for i := range spin {
		spin[i] = -1
	}
	up, equal := 0, edges // spins up, edges between equal spins
	states[up][equal]++
	for i := uint32(1); i < 1<<sites; i++ {
		j := bits.TrailingZeros32(i)
		around := 0
		for _, k := range near[j] {
			around += spin[k]
		}
		equal -= spin[j] * around
		spin[j] = -spin[j]
		up += spin[j]
		states[up][equal]++
	}
	return states
}

func write(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	w := bufio.NewWriter(file)
	fmt.Fprintln(w, "spins,edges,states")
	for up, row := range count() {
		for equal, n := range row {
			if n > 0 {
				fmt.Fprintf(w, "%d,%d,%d\n", 2*up-sites, 2*equal-edges, n)
			}
		}
	}
	return w.Flush()
}
