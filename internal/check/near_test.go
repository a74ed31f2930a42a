package check

import "testing"

func TestSameNumbers(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"P -14.09, 7 tokens", "P -14.09, 7 tokens", true},
		{"P -14.09, 7 tokens", "P -14.10, 7 tokens", true},
		{"P -14.09, 7 tokens", "P -14.11, 7 tokens", false},
		{"P -14.09, 7 tokens", "P -14.09, 8 tokens", false},
		{"P -14.09", "P 14.09", false},
		{"0.073 %", "0.074 %", true},
		{"0.073 %", "0.075 %", false},
		{"-9.528587", "-9.528463", true},
		{"-9.528587", "-9.521463", false},
		{"1.5e-07", "1.6e-07", true},
		{"1.5e-07", "1.5e-06", false},
		{"1.31.1", "1.31.2", false},
		{"0.3.0", "0.4.0", false},
		{"a", "b", false},
	} {
		if got := SameNumbers(c.want, c.got); got != c.same {
			t.Errorf("%q and %q: %v", c.want, c.got, got)
		}
	}
}
