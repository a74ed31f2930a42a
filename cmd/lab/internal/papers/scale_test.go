package papers

import (
	"strings"
	"testing"
)

// TestScale: ratios have the results' sizes from the signature, or their own.
func TestScale(t *testing.T) {
	of := parsed(t, "seconds,signature\n2,lab:x|batch:50|updates:5|seed:1\n3,lab:x|batch:50|updates:5|seed:1\n,\n")["x"]
	s := Run{Name: "x", Ratios: []Ratio{{Name: "updates", Paper: 1000}, {"pixels", 784, 64}}}
	got, err := s.factor(of)
	if err != nil || got != 200*12.25 {
		t.Errorf("factor %v, %v", got, err)
	}
	sum, err := of.seconds()
	if err != nil || sum != 5 {
		t.Errorf("seconds %v, %v", sum, err)
	}
	_, err = Run{Name: "x", Ratios: []Ratio{{Name: "chains", Paper: 1000}}}.factor(of)
	if err == nil || !strings.Contains(err.Error(), "x: the signature has no chains") {
		t.Errorf("a size that is not there: %v", err)
	}
	for x, want := range map[float64]string{12250: "12,000", 1.26e6: "1,300,000", 85.4: "85", 149.9: "150"} {
		if got := twoDigits(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}

// TestSecondsTable: each experiment of the papers' sizes is in the table, and
// the ratios of the networks are those of their signature.
func TestSecondsTable(t *testing.T) {
	all := stored(t)
	table, err := secondsTable(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Runs() {
		if s.Sizes == "" {
			continue
		}
		if !strings.Contains(table, "| `"+s.Name+"` |") || !strings.Contains(table, s.Sizes) {
			t.Errorf("%s is not in the table", s.Name)
		}
		if s.Name != "networks" {
			continue
		}
		if factor, err := s.factor(all["networks"]); err != nil || factor != 5*5 {
			t.Errorf("networks: %v, %v: 10 chains and 200 steps become 50 and 1,000", factor, err)
		}
	}
}
