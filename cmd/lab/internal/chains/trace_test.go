package chains

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/picture"
)

// traceFile writes a trace and returns its name.
func traceFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.csv")
	check.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestTraceOfU: two chains of four counted states. U of the first is 1, 2, 3,
// 4: its deviations from the mean are -1.5, -0.5, 0.5, 1.5, so the
// autocorrelations are 1, 1.25/5, -1.5/5 and -2.25/5. U of the second is 1, 0,
// 1, 0, with 1, -3/4, 2/4 and -1/4.
func TestTraceOfU(t *testing.T) {
	const head = "chain,step,warm_up,u,token_1\n"
	path := traceFile(t, head+"1,0,true,-9,5\n2,0,true,-8,5\n1,1,true,-7,5\n2,1,true,-6,5\n1,2,false,1,5\n"+
		"2,2,false,1,5\n1,3,false,2,5\n2,3,false,0,5\n1,4,false,3,5\n2,4,false,1,5\n1,5,false,4,5\n2,5,false,0,5\n")
	report := labtest.Studied(t, study(t, "trace", "file", path), lab.StudyOptions{Seed: 1})
	want := [][]float64{{1, 0.25, -0.3, -0.45}, {1, -0.75, 0.5, -0.25}, {1, -0.25, 0.1, -0.35}}
	for i, cell := range report.Cells {
		points := cell.Curves["autocorrelation"]
		if len(points) != 4 {
			t.Fatalf("%v: %d lags", cell.Labels, len(points))
		}
		for lag, p := range points {
			if p.X != float64(lag) || math.Abs(p.Y-want[i][lag]) > 1e-12 {
				t.Errorf("%v: %v at lag %v, want %v", cell.Labels, p.Y, p.X, want[i][lag])
			}
		}
	}
	u := report.Cells[0].Curves["u"]
	if len(u) != 6 || u[0].Y != -9 || u[5].Y != 4 || report.Cells[0].Numbers["u"] != 2.5 ||
		report.Cells[2].Numbers["u"] != 1.5 || report.Cells[2].Numbers["states"] != 8 {
		t.Errorf("U is %v, and the numbers are %v and %v", u, report.Cells[0].Numbers, report.Cells[2].Numbers)
	}
	files := check.Must(report.Write(t.TempDir()))(t)
	names := strings.Join(files, " ")
	if !strings.Contains(names, "autocorrelation.svg") || !strings.Contains(names, "u.svg") {
		t.Errorf("no pictures in %s", names)
	}
	drawn := string(check.Must(picture.SVG(check.Must(report.Draw())(t)["u"]))(t))
	if !strings.Contains(drawn, ">chain 1<") || !strings.Contains(drawn, ">chain 2<") {
		t.Error("the picture names no chains")
	}
	few := labtest.Studied(t, study(t, "trace", "file", path, "drawn", "1", "lags", "2"), lab.StudyOptions{Seed: 1})
	if len(few.Cells[0].Curves["autocorrelation"]) != 3 || few.Cells[1].Curves != nil {
		t.Errorf("--drawn 1 --lags 2 has %v and %v", few.Cells[0].Curves, few.Cells[1].Curves)
	}
}

// A chain whose U never changes has no autocorrelation, and a file that is no
// trace is refused in a line.
func TestTraceFaults(t *testing.T) {
	const head = "chain,step,warm_up,u,token_1\n"
	still := traceFile(t, head+"1,0,true,0.1,5\n1,1,false,0.1,5\n1,2,false,0.1,5\n1,3,false,0.1,5\n1,4,false,0.1,5\n")
	report := labtest.Studied(t, study(t, "trace", "file", still), lab.StudyOptions{Seed: 1})
	w := strings.Join(report.Warnings(), " ")
	if !strings.Contains(w, "U never changes") || report.Cells[1].Curves != nil {
		t.Errorf("%q, %v", w, report.Cells[1].Curves)
	}
	for text, want := range map[string]string{
		"":                         "the first line is not chain,step,warm_up,u",
		"a,b,c,d,e\n":              "the first line is not chain,step,warm_up,u",
		head:                       "no chain",
		head + "1,0,true,NaN,5\n":  `line 2: u "NaN": a sampler that evaluates no U`,
		head + "2,0,true,1,5\n":    `line 2: chain "2": chains are numbered from 1`,
		head + "1,1,true,1,5\n":    `line 2: step "1" of chain 1, and 0 is next`,
		head + "1,0,perhaps,1,5\n": `line 2: warm_up "perhaps" is neither`,
		head + "1,0,true,1\n":      "record on line 2: wrong number of fields",
		head + "1,0,true,1,5\n":    "0 states after the warm-up",
		head + "1,0,true,1,5\n2,0,true,1,5\n1,1,false,1,5\n": "chain 2 has 1 states, and chain 1 has 2",
	} {
		_, err := study(t, "trace", "file", traceFile(t, text)).Run(t.Context(), lab.StudyOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
