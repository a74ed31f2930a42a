package phrase

import (
	"math"
	"testing"
)

// TestPercent: probabilities as people read them, at each change of the form.
func TestPercent(t *testing.T) {
	for _, test := range []struct {
		p    float64
		want string
	}{{0, "0.0 %"}, {1, "100.0 %"}, {0.123, "12.3 %"}, {0.001, "0.1 %"}, {0.00099, "0.099 %"}, {0.0005, "0.050 %"},
		{0.00004, "0.0040 %"}, {1e-5, "0.0010 %"}, {0.9e-5, "< 0.001 %"}, {math.NaN(), "–"}} {
		if got := Percent(test.p); got != test.want {
			t.Errorf("%v: %s, want %s", test.p, got, test.want)
		}
	}
	for _, test := range []struct {
		share, err float64
		want       string
	}{{0.25, 0.03, "25.0 ± 3.0 %"}, {0.25, 0.003, "25.0 ± 0.3 %"}, {0.25, 0.0003, "25.00 ± 0.03 %"},
		{0.25, 3e-9, "25.0000 ± 0.0000 %"}} {
		if got := PercentError(test.share, test.err); got != test.want {
			t.Errorf("%v ± %v: %s, want %s", test.share, test.err, got, test.want)
		}
	}
	for _, test := range []struct {
		p    float64
		want string
	}{{1, "100 %"}, {0.121, "13 %"}, {0.0121, "1.3 %"}, {0.012, "1.2 %"}, {0.00121, "0.13 %"}} {
		if got := AtMost(test.p); got != test.want {
			t.Errorf("at most %v: %s, want %s", test.p, got, test.want)
		}
	}
}
