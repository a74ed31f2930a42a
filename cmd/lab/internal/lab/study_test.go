package lab

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/stat"

	"infill/samplers"
)

func study(t *testing.T, name string, settings ...string) *Study {
	t.Helper()
	for _, s := range Studies() {
		if s.Name != name {
			continue
		}
		for i := 0; i < len(settings); i += 2 {
			if err := s.Flags.Set(settings[i], settings[i+1]); err != nil {
				t.Fatalf("%s: %v", settings[i], err)
			}
		}
		return s
	}
	t.Fatalf("no study %s", name)
	return nil
}

func studied(t *testing.T, s *Study, o StudyOptions) *StudyReport {
	t.Helper()
	r := must(s.Run(t.Context(), o))(t)
	return r
}

// bare is a bench without a folder.
func bare(seed uint64) *bench {
	return &bench{seed: seed, repeat: "1", observe: func(int, int) {}, start: clock(),
		result: &cellResult{}}
}

func smallIsingStudy(t *testing.T) *Study {
	return study(t, "learn ising", "size", "3", "samplers", "gwg,dula:step-size=0.2", "steps", "1,2", "updates", "12",
		"data", "30", "data-sweeps", "2",
		"batch", "10", "buffer", "12", "repeats", "1")
}

// TestResume: a study that is stopped in every cell finds the same results as
// one that runs through, without running kept cells again.
func TestResume(t *testing.T) {
	whole := studied(t, smallIsingStudy(t), StudyOptions{Seed: 3})
	dir := t.TempDir()
	stops, updates, stopped := 0, 0, map[string]bool{}
	for {
		ctx, cancel := context.WithCancel(t.Context())
		o := StudyOptions{Seed: 3, Folder: dir, Observe: func(cell string, done, of int) {
			if of == 12 { // what is before them is the data
				updates++
				if done == 7 && !stopped[cell] {
					stopped[cell] = true
					cancel()
				}
			}
		}}
		r, err := smallIsingStudy(t).Run(ctx, o)
		cancel()
		if err == nil {
			r.WithoutTimes()
			whole.WithoutTimes()
			for i, c := range r.Cells {
				c.Files = nil
				whole.Cells[i].Signature = c.Signature
			}
			if got, want := text(t, r.Cells), text(t, whole.Cells); got != want {
				t.Errorf("stopped and resumed:\n%s\nat once:\n%s", got, want)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "goes on from here") {
			t.Fatal(err)
		}
		if stops++; stops > 20 {
			t.Fatal("it never ends")
		}
	}
	if stops != 4 || updates != 4*(7+12) {
		t.Errorf("%d updates with %d stops", updates, stops)
	}

	files := must(studied(t, smallIsingStudy(t), StudyOptions{Seed: 3, Folder: dir}).Write(dir))(t)
	for _, want := range []string{"report.json", "results.csv", "log-rmse-2.svg", "log-rmse-by-steps.svg"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Errorf("%v: wrote %v", err, files)
		}
	}
	if _, err := smallIsingStudy(t).Run(t.Context(), StudyOptions{Seed: 4, Folder: dir}); err == nil ||
		!strings.Contains(err.Error(), "another experiment") {
		t.Errorf("another seed in the folder: %v", err)
	}
}

// TestPCDGradient: on nine sites the mean over many chains is the exact
// gradient of the log-likelihood, to 4.5 standard errors in each of 36
// couplings.
func TestPCDGradient(t *testing.T) {
	ctx := t.Context()
	r := samplers.Streams(2, "w", 1)[0]
	w := symmetricNormals(9, 0.2, r)
	model := newPairwise(w, make([]float64, 9))
	data := samplers.RandomPositions(model, samplers.Streams(1, "data", 50))
	e := enumerated(t, model)
	want := make([]float64, 81)
	none(t, model.addGradient(ctx, data, 1, want))
	for i := range 9 {
		for j := range 9 {
			if i != j {
				want[i*9+j] -= e.Mean(func(s []int) float64 { return float64((2*s[i] - 1) * (2*s[j] - 1)) })
			}
		}
	}
	for _, spec := range []string{"gibbs", "dmala:step-size=0.8", "gwg"} {
		const chains, updates = 400, 12
		list := must(parseSpecs(spec))(t)
		options := pcdFlags(pflag.NewFlagSet("", pflag.ContinueOnError), updates, chains, chains, 0, 0)
		training, err := options.newPCD(bare(1), model, list[0], 40,
			samplers.RandomPositions(model, samplers.Streams(4, "b", chains)))
		if err != nil {
			t.Fatal(err)
		}
		byUpdate := make([][]float64, 81)
		for n := range updates + 3 {
			if err := training.update(ctx, bare(1), data); err != nil { // the rate is 0: nothing is learnt
				t.Fatal(err)
			}
			for k, g := range training.gradient {
				if n >= 3 {
					byUpdate[k] = append(byUpdate[k], g)
				}
			}
		}
		for k, list := range byUpdate {
			// The chains forget within an update: their means are independent,
			// of variance (1 - m²)/chains.
			m := math.Sqrt(1.0 / chains / updates)
			if got := stat.Mean(list, nil); math.Abs(got-want[k]) > 4.5*m {
				t.Errorf("%s: coupling %d, %d: %v, exact %v ± %v", spec, k/9, k%9, got, want[k], m)
			}
		}
	}
}

func TestFolded(t *testing.T) {
	p := folded(3, 4, 2, 1, samplers.Streams(1, "x", 1)[0])
	// 0 1 2 3
	// 7 6 5 4
	// 8 9 10 11: neighbours along the chain, 3-4 and 7-8, do not count.
	want := [][2]int{{0, 7}, {1, 6}, {2, 5}, {6, 9}, {5, 10}, {4, 11}}
	n := 0
	for i := range p.sites {
		for j := range i {
			if p.contacts[i*p.sites+j] {
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
	norms := p.norms()
	near(t, "recall of the true norms", recall(norms, p), 1, 0)
	norms[0*p.sites+7], norms[7*p.sites+0] = 0, 0
	norms[11*p.sites], norms[11] = 99, 99
	near(t, "one missed", recall(norms, p), 5.0/6, 1e-12)
}

// TestLearnContacts: a made-up protein's contacts are found.
func TestLearnContacts(t *testing.T) {
	r := studied(t, study(t, "learn contacts", "size", "3x3", "states", "2", "samplers", "gwg", "steps", "10",
		"updates", "150", "learning-rate", "0.02", "data", "400", "data-sweeps", "20", "repeats", "1"),
		StudyOptions{Seed: 1})
	c := r.Cells[0]
	if c.Numbers["recall"] < 0.75 || c.Numbers["log-rmse"] > -0.5 || len(c.Curves["recall"]) != 50 {
		t.Errorf("found %v", c.Numbers)
	}
	// From files: the alignment of a family whose first and last letters agree.
	fasta := wrote(t, []byte(strings.Repeat(">one\nAC\nA\n>two\nWCW\n>three\nAcA\n>four\nW-W\n", 10)))
	pairs := wrote(t, []byte("1 3\n"))
	s := study(t, "learn contacts", "alignment", fasta, "contacts", pairs, "samplers", "gibbs", "steps", "5", "updates",
		"500", "repeats", "1")
	if c := studied(t, s, StudyOptions{Seed: 1}).Cells[0]; c.Numbers["recall"] != 1 {
		t.Errorf("from files: %v", c.Numbers)
	}
	for name, files := range map[string][2]string{
		"sequence 2 has 2 letters": {wrote(t, []byte(">a\nAAA\n>b\nAA\n>c\nAAA\n")), pairs},
		"sequences of 0 letters":   {wrote(t, []byte("")), pairs},
		"is no pair of sites":      {fasta, wrote(t, []byte("1 4\n"))},
		"no contact":               {fasta, wrote(t, []byte("\n"))},
		"no such file":             {fasta, filepath.Join(t.TempDir(), "none")},
		"goes with --contacts":     {fasta, ""},
	} {
		var option *OptionError
		_, err := study(t, "learn contacts", "alignment", files[0], "contacts", files[1]).Run(t.Context(),
			StudyOptions{})
		if !errors.As(err, &option) || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}
