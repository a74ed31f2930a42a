package energies

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/samplers"
)

func TestFolded(t *testing.T) {
	p := snake(3, 4, 2, 1, samplers.Streams(1, "x", 1)[0])
	// 0 1 2 3
	// 7 6 5 4
	// 8 9 10 11: neighbours along the chain, 3-4 and 7-8, do not count.
	want := [][2]int{{0, 7}, {1, 6}, {2, 5}, {6, 9}, {5, 10}, {4, 11}}
	n := 0
	for i := range p.Sites {
		for j := range i {
			if p.Contacts[i*p.Sites+j] {
				n++
				if !slices.Contains(want, [2]int{j, i}) {
					t.Errorf("%d and %d touch", j, i)
				}
			}
		}
	}
	if n != len(want) {
		t.Errorf("%d contacts", n)
	}
	norms := p.Norms()
	labtest.Near(t, "recall of the true norms", recall(norms, p), 1, 0)
	norms[0*p.Sites+7], norms[7*p.Sites+0] = 0, 0
	norms[11*p.Sites], norms[11] = 99, 99
	labtest.Near(t, "one missed", recall(norms, p), 5.0/6, 1e-12)
}

// TestLearnContacts: a made-up protein's contacts are found.
func TestLearnContacts(t *testing.T) {
	r := labtest.Studied(t, study(t, "learn contacts", "size", "3x3", "states", "2", "samplers", "gwg", "steps", "10",
		"updates", "150", "learning-rate", "0.02", "data", "400", "data-sweeps", "20", "repeats", "1"),
		lab.StudyOptions{Seed: 1})
	c := r.Cells[0]
	if c.Numbers["recall"] < 0.75 || c.Numbers["log-rmse"] > -0.5 || len(c.Curves["recall"]) != 50 {
		t.Errorf("found %v", c.Numbers)
	}
	// From files: the alignment of a family whose first and last letters agree.
	fasta := labtest.Saved(t, "file", strings.Repeat(">one\nAC\nA\n>two\nWCW\n>three\nAcA\n>four\nW-W\n", 10))
	pairs := labtest.Saved(t, "file", "1 3\n")
	s := study(t, "learn contacts", "alignment", fasta, "contacts", pairs, "samplers", "gibbs", "steps", "5", "updates",
		"500", "repeats", "1")
	if c := labtest.Studied(t, s, lab.StudyOptions{Seed: 1}).Cells[0]; c.Numbers["recall"] != 1 {
		t.Errorf("from files: %v", c.Numbers)
	}
	for name, files := range map[string][2]string{
		"sequence 2 has 2 letters": {labtest.Saved(t, "file", ">a\nAAA\n>b\nAA\n>c\nAAA\n"), pairs},
		"sequences of 0 letters":   {labtest.Saved(t, "file", ""), pairs},
		"is no pair of sites":      {fasta, labtest.Saved(t, "file", "1 4\n")},
		"no contact":               {fasta, labtest.Saved(t, "file", "\n")},
		"no such file":             {fasta, filepath.Join(t.TempDir(), "none")},
		"goes with --contacts":     {fasta, ""},
	} {
		var option *lab.OptionError
		_, err := study(t, "learn contacts", "alignment", files[0], "contacts", files[1]).Run(t.Context(),
			lab.StudyOptions{})
		if !errors.As(err, &option) || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}
