package chains

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/safetensors"
	"infill/internal/targets"
)

// TestOwnSignature: with an own target, a run is not signed with the settings of
// the targets whose place it takes.
func TestOwnSignature(t *testing.T) {
	ring := "a,b,u\n0,0,1\n0,1,0\n1,0,0\n1,1,2\n"
	path := labtest.Saved(t, "ring.csv", ring)
	for _, run := range []struct{ kind, option, want string }{
		{"table", "energies", "lab:table|chains:2|energies:" + path + "|initial:uniform|"},
		{"ising", "couplings", "lab:ising|chains:2|couplings:" + path + "|initial:uniform|"},
	} {
		if run.kind == "ising" {
			check.OK(t, os.WriteFile(path, []byte("site,other,coupling\n1,2,0.3\n"), 0o600))
		}
		s := study(t, run.kind, run.option, path, "chains", "2", "steps", "3", "warm-up", "0", "samplers", "gibbs")
		signature := labtest.Studied(t, s, lab.StudyOptions{Seed: 1}).Signature
		if !strings.HasPrefix(signature, run.want) || strings.Contains(signature, "target-seed") {
			t.Errorf("%s, want %s", signature, run.want)
		}
	}
}

// Models from files are those of the laboratory with the same numbers:
// energies, means and starts agree.
func TestOwnTargets(t *testing.T) {
	ising := "site,other,coupling\n1,2,0.3\n1,3,0.3\n2,4,0.3\n4,3,0.3\n"
	potts := "site,state,other,state,coupling\n"
	for site := 1; site <= 4; site++ {
		ising += fmt.Sprintf("%d,,-0.2\n", site)
		potts += fmt.Sprintf("%d,1,,,0.5\n%d,2,,,0\n%d,3,,,-1\n", site, site, site)
	}
	for _, edge := range [][2]int{{1, 2}, {1, 3}, {2, 4}, {4, 3}} {
		for state := 1; state <= 3; state++ {
			potts += fmt.Sprintf("%d,%d,%d,%d,0.7\n", edge[0], state, edge[1], state)
		}
	}
	for text, like := range map[string]string{
		"ising:couplings=" + labtest.Saved(t, "ising.csv", ising): "ising:size=2,coupling=0.3,field=-0.2",
		"potts:couplings=" + labtest.Saved(t, "potts.csv", potts): "potts:size=2,coupling=0.7,field=0.5/0/-1",
	} {
		got, want := opened(t, text), opened(t, like)
		a, b := labtest.Enumerated(t, got.Target), labtest.Enumerated(t, want.Target)
		for i, u := range b.Energy {
			labtest.Near(t, text, a.Energy[i], u, 1e-12)
		}
		for i, m := range want.truth.means {
			labtest.Near(t, text, got.truth.means[i], m, 1e-12)
		}
		labtest.Near(t, text, got.independent[3][1], want.independent[3][1], 1e-12)
	}
	path := labtest.Saved(t, "table.csv", "a,b,u\n1,0,0\n0,0,1.5\n0,1,-2\n1,1,3\n0,2,0\n1,2,1\n")
	table := opened(t, "table:energies="+path)
	for i, u := range []float64{1.5, -2, 0, 0, 3, 1} {
		labtest.Near(t, "table", labtest.Enumerated(t, table.Target).Energy[i], u, 0)
	}
	machine := check.Must(targets.NewRBM([]float64{1, -2, 0.5, 3, 0.25, -1}, []float64{0.5, -1},
		[]float64{1, 0, 2}))(t)
	path = labtest.Saved(t, "machine.safetensors", "")
	file := check.Must(os.Create(path))(t)
	part := func(name string, shape []int, numbers ...float32) safetensors.Data {
		return safetensors.Data{Name: name, DType: "F32", Shape: shape,
			Content: func() ([]byte, error) { return binary.Append(nil, binary.LittleEndian, numbers) }}
	}
	check.OK(t, safetensors.Write(file, nil, []safetensors.Data{part("weights", []int{2, 3}, 1, -2, 0.5, 3, 0.25,
		-1),
		part("hidden", []int{2}, 0.5, -1), part("visible", []int{3}, 1, 0, 2)}))
	check.OK(t, file.Close())
	for i, u := range labtest.Enumerated(t, machine).Energy {
		labtest.Near(t, "machine", labtest.Enumerated(t, opened(t, "rbm:weights="+path).Target).Energy[i], u, 1e-12)
	}

	for text, want := range map[string]string{
		"ising:couplings=" + labtest.Saved(t, "x", "a,b,c\n1,x,2\n"):           `line 2: "x" is not a whole number`,
		"ising:couplings=" + labtest.Saved(t, "x", "a,b,c\n1,2,NaN\n"):         `line 2: "NaN" is not a finite number`,
		"ising:couplings=" + labtest.Saved(t, "x", "a,b\n1,2\n"):               "three columns are wanted",
		"ising:couplings=" + labtest.Saved(t, "x", "a,b,c\n1,9999,2\n"):        "9999 sites, and there can be 2048",
		"potts:couplings=" + labtest.Saved(t, "x", "a,b,c,d,e\n1,1,1,2,3\n"):   "line 2: site, state, other",
		"table:energies=" + labtest.Saved(t, "x", "a,b,u\n0,0,1\n1,1,1\n"):     "2 different states in 2 lines",
		"table:energies=" + labtest.Saved(t, "x", "a,b,u\n0,0,1\n,1,1\n"):      `line 3: "" is not a whole number`,
		"table:energies=" + labtest.Saved(t, "x", "a,b,u\n"):                   "1 lines: a header and rows",
		"rbm:weights=" + labtest.Saved(t, "x", "no tensors, but many letters"): "safetensors",
	} {
		var option *lab.OptionError
		if _, err := NewDistribution(t.Context(), &lab.Inputs{}, text, 0); !errors.As(err, &option) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// A trace has every state with its energy.
func TestTrace(t *testing.T) {
	folder := t.TempDir()
	r := labtest.Studied(t, study(t, "ising", "size", "2", "samplers", "dmala", "chains", "3", "steps", "5", "warm-up",
		"2",
		"trace", "true"), lab.StudyOptions{Seed: 1, Folder: folder})
	text := check.Must(os.ReadFile(filepath.Join(folder, r.Cells[0].Files[0])))(t)
	rows := check.Must(csv.NewReader(bytes.NewReader(text)).ReadAll())(t)
	if len(rows) != 1+3*8 || strings.Join(rows[0], " ") != "chain step warm_up u slot_1 slot_2 slot_3 slot_4" ||
		strings.Join(rows[24][:3], " ") != "3 7 false" || rows[7][2] != "true" {
		t.Fatalf("%d rows: %v ... %v", len(rows), rows[0], rows[len(rows)-1])
	}
	e := labtest.Enumerated(t, check.Must(targets.NewIsing(2, 2, 0.1, 0.2))(t))
	for _, row := range rows[1:] {
		state := make([]int, 4)
		for j := range state {
			state[j] = check.Must(strconv.Atoi(row[4+j]))(t)
		}
		labtest.Near(t, "u", check.Must(strconv.ParseFloat(row[3], 64))(t), e.Energy[e.Index(state)], 1e-12)
	}
	if _, err := study(t, "ising", "trace", "true").Run(t.Context(), lab.StudyOptions{}); err == nil ||
		!strings.Contains(err.Error(), "output: give a folder") {
		t.Errorf("a trace without a folder: %v", err)
	}
}
