package chains

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// TestAnnealedImportance: on random models of 10 units the mean of the estimate
// of Z is Z, to four standard errors of 40 runs, and most intervals hold it.
// More runs are in docs/measured/laboratory.md.
func TestAnnealedImportance(t *testing.T) {
	for _, sampler := range []string{"gwg", "gibbs", "dmala:step-size=0.8"} {
		spec, _ := lab.ParseSpecs(sampler)
		covered := 0
		var errs, ratios, widths, effective []float64
		for run := range 40 {
			r := samplers.Streams(5, fmt.Sprint("1 run ", run), 1)[0]
			field, base := targets.Normals(r, 10, 0.5), make([][]float64, 10)
			for i, h := range field {
				base[i] = []float64{logmath.Sigmoid(-2 * h), logmath.Sigmoid(2 * h)}
			}
			model := targets.NewDenseIsing(lab.SymmetricNormals(10, 0.1, r), field)
			e := labtest.Enumerated(t, model)
			z, err := Annealing{spec[0], 60, 50}.Normaliser(t.Context(), model, base, labtest.Bare(5),
				fmt.Sprint("run ", run, sampler))
			check.OK(t, err)
			if z.Low <= e.LogNormaliser && e.LogNormaliser <= z.High {
				covered++
			}
			errs, effective = append(errs, z.Value-e.LogNormaliser), append(effective, z.Effective/50)
			ratios = append(ratios, math.Exp(z.Value-e.LogNormaliser))
			if width := z.High - z.Low; logmath.Finite(width) {
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
	model := targets.NewDenseIsing(lab.SymmetricNormals(4, 0.5, r), targets.Normals(r, 4, 1))
	base := [][]float64{{0.2, 0.8}, {0.5, 0.5}, {0.9, 0.1}, {0.3, 0.7}}
	path := newAnnealed(model, base)
	states := samplers.RandomPositions(model, samplers.Streams(1, "x", 3))
	u, g := make([]float64, 3), make([]float64, 24)
	check.OK(t, model.EnergyGradient(t.Context(), states, u, g))
	for _, beta := range []float64{0, 0.3, 1} {
		path.beta = beta
		energy, gradient, plain := make([]float64, 3), make([]float64, 24), make([]float64, 3)
		check.OK(t, errors.Join(path.EnergyGradient(t.Context(), states, energy, gradient),
			path.Energy(t.Context(), states, plain)))
		for c := range 3 {
			log := 0.0
			for j, law := range base {
				log += math.Log(law[states[c*4+j]])
				for v, p := range law {
					i := (c*4+j)*2 + v
					labtest.Near(t, "gradient", gradient[i], (1-beta)*math.Log(p)+beta*g[i], 1e-12)
				}
			}
			labtest.Near(t, "energy", energy[c], (1-beta)*log+beta*u[c], 1e-12)
			labtest.Near(t, "energy without gradient", plain[c], energy[c], 1e-12)
		}
	}
}
