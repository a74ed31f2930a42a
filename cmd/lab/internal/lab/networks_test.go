package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// TestNetworks: each sampler learns; the same seed finds the same, stopped or not.
func TestNetworks(t *testing.T) {
	settings := []string{"data", "diabetes", "samplers", "dmala:step-size=0.2,dula:step-size=0.2,terms=50", "hidden",
		"10", "chains", "3", "steps", "50", "repeats", "1"}
	r := studied(t, study(t, "networks", settings...), StudyOptions{Seed: 2})
	for _, c := range r.Cells {
		curve := c.Curves["train-ll"]
		if last := curve[len(curve)-1]; len(curve) != 25 || last.X != 50 || !(last.Y > curve[0].Y) ||
			last.Y != c.Numbers["train-ll"] || !(last.Y < 0) {
			t.Errorf("%v: from %v to %v", c.Labels, curve[0], last)
		}
		if rmse := c.Numbers["test-rmse"]; !(rmse > 0.1 && rmse < 0.4) {
			t.Errorf("%v: test RMSE %v", c.Labels, rmse)
		}
	}
	again := studied(t, study(t, "networks", settings...), StudyOptions{Seed: 2})
	r.WithoutTimes()
	again.WithoutTimes()
	if text(t, r.Cells) != text(t, again.Cells) {
		t.Error("two runs of a seed differ")
	}
	if out := r.Text(80); !strings.Contains(out, "dmala:step-size=0.2") || strings.Contains(out, "seconds") {
		t.Errorf("without times:\n%s", out)
	}
}

func TestRegressions(t *testing.T) {
	for name, want := range map[string][2]int{"diabetes": {442, 10}, "election": {944, 9}, "breast-cancer": {569, 30}} {
		table, err := readRegression(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(table.y) != want[0] || table.inputs != want[1] || len(table.x) != want[0]*want[1] {
			t.Errorf("%s: %d examples of %d inputs", name, len(table.y), table.inputs)
		}
		s := table.split(bare(1).stream("split"))
		if len(s.trainY)+len(s.testY) != want[0] || len(s.testY) != want[0]/5 {
			t.Errorf("%s: split into %d and %d", name, len(s.trainY), len(s.testY))
		}
		var column []float64
		for i := 1; i < len(s.trainX); i += table.inputs {
			column = append(column, s.trainX[i])
		}
		mean, deviation := stat.PopMeanStdDev(column, nil)
		near(t, name+": mean of a column", mean, 0, 1e-9)
		near(t, name+": its deviation", deviation, 1, 1e-9)
	}
	dir := t.TempDir()
	for content, want := range map[string]string{
		"a,b\n1,2\n3,x\n4,5\n6,7\n8,9\n": `line 3, column b: "x" is not a finite number`,
		"a,b\n1,2\n3,4,5\n":              "wrong number of fields",
		"a\n1\n2\n3\n4\n5\n":             "1 columns",
		"a,b\n1,2\n":                     "2 lines",
		"a,b\n1,2\n2,2\n3,2\n4,2\n5,2\n": "nothing to predict",
		"":                               "0 lines",
	} {
		path := filepath.Join(dir, "table.csv")
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		var option *OptionError
		if _, err := readRegression(path); !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := readRegression(filepath.Join(dir, "none.csv")); err == nil ||
		!strings.Contains(err.Error(), "name a file, or one of diabetes") {
		t.Errorf("no file: %v", err)
	}
}
