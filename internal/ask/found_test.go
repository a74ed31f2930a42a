package ask

import (
	"testing"

	"infill/infill"
)

// TestProgressText: a line says what a run does.
func TestProgressText(t *testing.T) {
	for _, test := range []struct {
		p    infill.Progress
		want string
	}{
		{infill.Progress{Method: infill.MethodSearch, Step: 3, Steps: 100}, "searching, 3 % of the budget"},
		{infill.Progress{Method: infill.MethodDraws, Step: 3, Steps: 50}, "drawing, 3 of 50"},
		{infill.Progress{Method: infill.MethodChains, Step: 3, Steps: 50, WarmUp: true, TokenIDs: []int{}},
			"warm-up, step 3 of 50"},
		{infill.Progress{Method: infill.MethodChains, Step: 30, Steps: 50, TokenIDs: []int{}},
			"sampling, step 30 of 50"},
	} {
		if Doing(test.p) != test.want || test.p.Result() != nil {
			t.Errorf("%q, want %q; result %v", Doing(test.p), test.want, test.p.Result())
		}
	}
}
