package lab

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/lm/network"
	"infill/samplers"
)

// TestAnnealedImportance: on random models of 10 units the mean of the estimate
// of Z is Z, to four standard errors of 40 runs, and most intervals hold it.
// More runs are in docs/measured/laboratory.md.
func TestAnnealedImportance(t *testing.T) {
	for _, sampler := range []string{"gwg", "gibbs", "dmala:step-size=0.8"} {
		spec, _ := parseSpecs(sampler)
		covered := 0
		var errs, ratios, widths, effective []float64
		for run := range 40 {
			r := samplers.Streams(5, fmt.Sprint("1 run ", run), 1)[0]
			field, base := targets.Normals(r, 10, 0.5), make([][]float64, 10)
			for i, h := range field {
				base[i] = []float64{logmath.Sigmoid(-2 * h), logmath.Sigmoid(2 * h)}
			}
			model := newPairwise(symmetricNormals(10, 0.1, r), field)
			e := enumerated(t, model)
			z, err := annealing{spec[0], 60, 50}.normaliser(t.Context(), model, base, bare(5),
				fmt.Sprint("run ", run, sampler))
			none(t, err)
			if z.low <= e.LogNormaliser && e.LogNormaliser <= z.high {
				covered++
			}
			errs, effective = append(errs, z.value-e.LogNormaliser), append(effective, z.effective/50)
			ratios = append(ratios, math.Exp(z.value-e.LogNormaliser))
			if width := z.high - z.low; logmath.Finite(width) {
				widths = append(widths, width)
			}
		}
		bias, width := stat.Mean(errs, nil), stat.Mean(widths, nil)
		if covered < 32 || !(math.Abs(bias) < 0.05) || !(width > 0.01 && width < 1) ||
			!(stat.Mean(effective, nil) > 0.3) {
			t.Errorf("%s: %d of 40 intervals hold, bias %v, width %v", sampler, covered, bias, width)
		}
		mean, deviation := stat.MeanStdDev(ratios, nil)
		if se := stat.StdErr(deviation, 40); math.Abs(mean-1) > 4*se || deviation == 0 {
			t.Errorf("%s: mean of the estimates of Z / Z: %v ± %v", sampler, mean, se)
		}
	}
}

// TestAnnealedTarget: at every β it is the mixture.
func TestAnnealedTarget(t *testing.T) {
	r := samplers.Streams(3, "m", 1)[0]
	model := newPairwise(symmetricNormals(4, 0.5, r), targets.Normals(r, 4, 1))
	base := [][]float64{{0.2, 0.8}, {0.5, 0.5}, {0.9, 0.1}, {0.3, 0.7}}
	path := newAnnealed(model, base)
	states := samplers.RandomPositions(model, samplers.Streams(1, "x", 3))
	u, g := make([]float64, 3), make([]float64, 24)
	none(t, model.EnergyGradient(t.Context(), states, u, g))
	for _, beta := range []float64{0, 0.3, 1} {
		path.beta = beta
		energy, gradient, plain := make([]float64, 3), make([]float64, 24), make([]float64, 3)
		none(t, errors.Join(path.EnergyGradient(t.Context(), states, energy, gradient),
			path.Energy(t.Context(), states, plain)))
		for c := range 3 {
			log := 0.0
			for j, law := range base {
				log += math.Log(law[states[c*4+j]])
				for v, p := range law {
					i := (c*4+j)*2 + v
					near(t, "gradient", gradient[i], (1-beta)*math.Log(p)+beta*g[i], 1e-12)
				}
			}
			near(t, "energy", energy[c], (1-beta)*log+beta*u[c], 1e-12)
			near(t, "energy without gradient", plain[c], energy[c], 1e-12)
		}
	}
}

// TestLearnImages: the training learns bars and stripes, its estimate is the
// exact likelihood within the interval, and a stopped one goes on to the same
// end.
func TestLearnImages(t *testing.T) {
	settings := strings.Fields("data bars-and-stripes side 3 samplers gibbs-x:block=1,dmala:step-size=0.4 steps 30 " +
		"updates 200 batch 14 buffer 50 learning-rate 0.002 features 12 blocks 1 downsampling 1 average 0.9 " +
		"ais-steps 400 ais-chains 60 repeats 1")
	dir := t.TempDir()
	r := studied(t, study(t, "learn images", settings...), StudyOptions{Seed: 1, Folder: dir})
	for _, c := range r.Cells {
		n := c.Numbers
		if !(n["exact-ll"] > n["independent"]+0.5) || n["exact-ll"] < n["low"]-0.1 || n["exact-ll"] > n["high"]+0.1 ||
			math.Abs(n["exact-ll"]-n["test-ll"]) > 0.3 {
			t.Errorf("%v: %v", c.Labels, n)
		}
		for _, name := range c.Files {
			text := must(os.ReadFile(filepath.Join(dir, name)))(t)
			if _, err := png.Decode(bytes.NewReader(text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(c.Files) != 2 {
			t.Errorf("pictures %v", c.Files)
		}
	}
}

// greyImages writes images of 2 × 2 pixels in IDX, which are even or fade from
// left to right.
func greyImages(t *testing.T) string {
	t.Helper()
	return smallImages(t, 0, 0, 0, 0, 128, 128, 128, 128, 255, 255, 255, 255, 0, 128, 0, 128, 128, 255, 128, 255)
}

// smallImages writes images of 2 × 2 pixels in IDX, each ten times.
func smallImages(t *testing.T, pixels ...byte) string {
	t.Helper()
	pixels = slices.Repeat(pixels, 10)
	return wrote(t, append([]byte{0, 0, 8, 3, 0, 0, 0, byte(len(pixels) / 4), 0, 0, 0, 2, 0, 0, 0, 2}, pixels...))
}

// TestLearnGreyImages: with three greys, the training learns, and its estimate
// is the exact likelihood within the interval.
func TestLearnGreyImages(t *testing.T) {
	path := greyImages(t)
	r := studied(t, study(t, "learn images", strings.Fields("levels 3 data "+path+" test "+path+
		" samplers gwg,dmala:step-size=0.4 steps 30 updates 300 batch 14 buffer 50 learning-rate 0.001 features 12 "+
		"blocks 1 downsampling 0 average 0.9 ais-steps 400 ais-chains 60 repeats 1")...), StudyOptions{Seed: 1})
	for _, c := range r.Cells {
		n := c.Numbers
		if !(n["exact-ll"] > n["independent"]+0.5) || n["exact-ll"] < n["low"]-0.1 || n["exact-ll"] > n["high"]+0.1 ||
			math.Abs(n["exact-ll"]-n["test-ll"]) > 0.3 {
			t.Errorf("%v: %v", c.Labels, n)
		}
		// Independent pixels, half of the images of three greys and half of
		// two, lose at least the entropy of an even law over three greys in
		// each pixel.
		if n["independent"] > -4*math.Log(2.5) || n["independent"] < -4*math.Log(3)-0.1 {
			t.Errorf("%v: independent pixels have %v", c.Labels, n["independent"])
		}
	}
}

// TestGreyGradient: a network without blocks is linear in the grey of a pixel,
// so the gradient over levels is the difference of energies.
func TestGreyGradient(t *testing.T) {
	const levels = 5
	energy := must(network.Open(t.Context(), network.Shape{Rows: 2, Columns: 2, Features: 3, Levels: levels}, 1))(t)
	defer energy.Close()
	r := rand.New(rand.NewPCG(1, 2))
	model := &deepEnergy{network: &greyNetwork{Energy: energy, levels: levels},
		weights: make([]float64, energy.Weights()), categories: slices.Repeat([]int{levels}, 4)}
	for range 4 {
		model.base = append(model.base, []float64{-1, -2, -0.5, -3, -1.5})
	}
	energy.Initialise(r, model.weights)
	energy.Set(model.weights)
	state := []int{0, 4, 2, 1}
	u, gradient := make([]float64, 1), make([]float64, 4*levels)
	none(t, model.EnergyGradient(t.Context(), state, u, gradient))
	for slot, now := range state {
		for v := range levels {
			other := slices.Clone(state)
			other[slot] = v
			there := make([]float64, 1)
			none(t, model.Energy(t.Context(), other, there))
			near(t, "difference", gradient[slot*levels+v]-gradient[slot*levels+now], there[0]-u[0], 1e-5)
		}
	}
}

// TestValidation: the numbers are those of the update that the validation
// images choose, as if the training had ended there.
func TestValidation(t *testing.T) {
	path := greyImages(t)
	others := smallImages(t, 0, 255, 255, 0) // which the training never sees, and so forgets
	for _, c := range []struct{ study, settings, number string }{
		{"arm vae", "structures linear estimators arm bits 3 particles 5 learning-rate 0.5 repeats 1 " +
			"data " + path, "nll"},
		{"learn images", "samplers gwg steps 2 batch 5 buffer 9 learning-rate 0.3 features 3 blocks 1 downsampling 0 " +
			"average 0 warm-up 0 ais-steps 20 ais-chains 9 repeats 1 data " + path, "test-ll"},
	} {
		whole := study(t, c.study, strings.Fields(c.settings+" updates 60 validation "+others)...)
		chosen := studied(t, whole, StudyOptions{Seed: 3}).Cells[0].Numbers
		at := int(chosen["best-update"])
		if at < 1 || at >= 60 {
			t.Errorf("%s: update %d of 60 is chosen: the test needs an earlier one", c.study, at)
		}
		short := study(t, c.study, strings.Fields(c.settings+" updates "+strconv.Itoa(at))...)
		ended := studied(t, short, StudyOptions{Seed: 3}).Cells[0].Numbers
		if _, known := ended["best-update"]; known || ended[c.number] != chosen[c.number] {
			t.Errorf("%s: %v at update %d, and %v where the training ends there", c.study, chosen[c.number], at,
				ended[c.number])
		}
		_, err := study(t, c.study, "validation", path, "data", "digits").Run(t.Context(), StudyOptions{})
		if err == nil || !strings.Contains(err.Error(), "validation: images of 2 × 2 pixels, and those of the "+
			"data have 8") {
			t.Errorf("%s: validation images of another size: %v", c.study, err)
		}
	}
}

func TestReadPictures(t *testing.T) {
	digits := must(readPictures(&inputs{}, "data", "digits", 0))(t)
	// The first line of the file: 005d91... of a zero.
	if len(digits.train) != 1797*64 || digits.train[2] != 5.0/16 || digits.train[3] != 13.0/16 {
		t.Errorf("%d digits, the first %v", len(digits.train)/64, digits.train[:8])
	}
	idx := []byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 255, 51, 0, 255, 255, 0, 102}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(idx)
	_ = w.Close()
	for _, path := range []string{wrote(t, idx), wrote(t, z.Bytes())} {
		p := must(readPictures(&inputs{}, "data", path, 0))(t)
		if len(p.train) != 8 || p.rows != 2 || p.train[1] != 1 || p.train[2] != 0.2 {
			t.Errorf("%s: %+v", path, p)
		}
	}
	amat := func(text string) string { return saved(t, "static.amat", text) }
	p := must(readPictures(&inputs{}, "data", amat("0 1 0.2 0\n1.0000e+00 1 0 0.4\n"), 0))(t)
	if len(p.train) != 8 || p.rows != 2 || p.columns != 2 || p.train[1] != 1 || p.train[2] != 0.2 || p.train[4] != 1 {
		t.Errorf("static: %+v", p)
	}
	for want, path := range map[string]string{
		"line 2 has 3 numbers":   amat("0 1 1 0\n1 1 0\n"),
		"line 1 has 3 numbers":   amat("0 1 1\n"),
		"is not a number from":   amat("0 1 1 0\n1 1 0 2\n"),
		"it has no images":       amat(""),
		"begins with 0, 0, 8, 3": wrote(t, []byte("no")),
		"8 bytes of pixels, and its header": wrote(t,
			append(bytes.Clone(idx[:7]), append([]byte{3}, idx[8:]...)...)),
		"there can be":                  wrote(t, []byte{0, 0, 8, 3, 255, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0}),
		"name a file, or one of digits": filepath.Join(t.TempDir(), "none"),
	} {
		if _, err := readPictures(&inputs{}, "data", path, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestNetworks: each sampler learns.
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
	r.WithoutTimes()
	if out := r.Text(); !strings.Contains(out, "dmala:step-size=0.2") || strings.Contains(out, "seconds") {
		t.Errorf("without times:\n%s", out)
	}
}

// wrote is the path of a file with a content.
func wrote(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	none(t, os.WriteFile(path, content, 0o666))
	return path
}

func TestRegressions(t *testing.T) {
	for name, want := range map[string][2]int{"diabetes": {442, 10}, "election": {944, 9}, "breast-cancer": {569, 30}} {
		table := must(readRegression(&inputs{}, name))(t)
		if len(table.y) != want[0] || table.inputs != want[1] || len(table.x) != want[0]*want[1] {
			t.Errorf("%s: %d examples of %d inputs", name, len(table.y), table.inputs)
		}
		s := table.split(bare(1).stream("split"), "standard")
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
		unit := table.split(bare(1).stream("split"), "unit")
		column = column[:0]
		for i := 1; i < len(unit.trainX); i += table.inputs {
			column = append(column, unit.trainX[i])
		}
		near(t, name+": least of a column", slices.Min(column), 0, 0)
		near(t, name+": most of a column", slices.Max(column), 1, 1e-12)
	}
	for content, want := range map[string]string{
		"a,b\n1,2\n3,x\n4,5\n6,7\n8,9\n": `line 3, column b: "x" is not a finite number`,
		"a,b\n1,2\n3,4,5\n":              "wrong number of fields",
		"a\n1\n2\n3\n4\n5\n":             "1 columns",
		"a,b\n1,2\n":                     "2 lines",
		"a,b\n1,2\n2,2\n3,2\n4,2\n5,2\n": "nothing to predict",
		"":                               "0 lines",
	} {
		var option *OptionError
		_, err := readRegression(&inputs{}, wrote(t, []byte(content)))
		if !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := readRegression(&inputs{}, filepath.Join(t.TempDir(), "none.csv")); err == nil ||
		!strings.Contains(err.Error(), "name a file, or one of diabetes") {
		t.Errorf("no file: %v", err)
	}
}
