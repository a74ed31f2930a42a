package infill

import (
	"testing"
)

// TestProvenFills: the fills that a search calls proven when its budget ends are the
// likeliest of all, as a search without an end finds them.
func TestProvenFills(t *testing.T) {
	f, _ := newFake(t)
	part := 0
	for _, template := range []string{"the [MASK] [MASK]", "the [MASK] [MASK] [MASK]", "[MASK] [MASK] cat [MASK]"} {
		all, err := f.Fill(t.Context(), asked{Budget: Budget{Rows: 1 << 20}}.request(template), nil)
		if err != nil {
			t.Fatal(err)
		}
		for rows := 3; rows < 60; rows++ {
			r, err := f.Fill(t.Context(), asked{Budget: Budget{Rows: rows}}.request(template), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := r.ProvenFills()
			for i := range n {
				if r.Fills[i].Text != all.Fills[i].Text {
					t.Errorf("%s, %d rows: fill %d of %d proven is %q, want %q", template, rows, i+1, n,
						r.Fills[i].Text, all.Fills[i].Text)
				}
			}
			if n > 0 && n < len(r.Fills) && !*r.Proven {
				part++
			}
		}
	}
	if part == 0 {
		t.Error("no search has proven a part of its fills")
	}
}

// TestWarningsAreAList: a result without warnings has an empty list of them in JSON.
func TestWarningsAreAList(t *testing.T) {
	f, _ := newFake(t)
	r, err := f.Fill(t.Context(), asked{}.request("the [MASK] sat"), nil)
	if err != nil || r.Warnings == nil {
		t.Errorf("%v, error %v", r, err)
	}
}
