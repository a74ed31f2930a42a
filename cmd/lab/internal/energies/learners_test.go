package energies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// TestMoments: the gradients of parameters against differences of energies, for
// those that the energy reads.
func TestMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	coupled := chains.NewProtein(3, 2)
	copy(coupled.Weights, append(targets.Normals(r, 6, 1), labtest.Apart(r, 6, 2)...))
	const sites, h = 5, 1e-4
	for _, model := range []learner{newPairwise(lab.SymmetricNormals(sites, 0.5, r), make([]float64, sites)), coupled} {
		states := samplers.RandomPositions(model, samplers.Streams(1, "x", 3))
		mean := func() float64 { return check.Must(chains.MeanEnergy(t.Context(), model, states))(t) }
		w := model.Parameters()
		gradient, read := make([]float64, len(w)), 0
		check.OK(t, model.AddGradient(t.Context(), states, 2, gradient))
		for k := range w {
			before := mean()
			w[k] += h
			want := 2 * (mean() - before) / h
			w[k] -= h
			_, pairs := model.(*pairwise)
			if diagonal := pairs && k%(sites+1) == 0; want == 0 || diagonal {
				continue
			}
			labtest.Near(t, fmt.Sprintf("%T: parameter %d", model, k), gradient[k], want, 1e-6)
			read++
		}
		if read < 12 {
			t.Errorf("%T: %d parameters", model, read)
		}
	}
}

// TestTerms: the mean over all single terms is the whole gradient.
func TestTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	table := check.Must(targets.NewTable([]int{3, 2, 4}, r, targets.TableOptions{Terms: 3, GradientError: 0.3}))(t)
	ising := check.Must(targets.NewIsing(3, 3, 0.15, 0.2))(t)
	network := newBinaryNetwork(targets.Normals(r, 12, 1), []float64{0.1, 0.9, 0.4, 0.6}, 3, 100)
	for _, target := range []samplers.StochasticGradientTarget{table, ising, network} {
		states := samplers.RandomPositions(target, samplers.Streams(1, "x", 2))
		size := len(states) * slices.Max(target.Categories())
		energy, of := make([]float64, 2), make([]float64, 2)
		gradient, mean, one := make([]float64, size), make([]float64, size), make([]float64, size)
		check.OK(t, target.EnergyGradient(t.Context(), states, energy, gradient))
		for term := range target.Terms() {
			if err := target.EnergyGradientOf(t.Context(), []int{term}, states, of, one); err != nil {
				t.Fatal(err)
			}
			for i, d := range one {
				mean[i] += d / float64(target.Terms())
			}
			if !slices.Equal(energy, of) {
				t.Errorf("%T: energy %v of some terms, %v", target, of, energy)
			}
		}
		for i := range mean {
			labtest.Near(t, fmt.Sprintf("%T: gradient %d", target, i), mean[i], gradient[i], 1e-9)
		}
	}
	state := samplers.RandomPositions(network, samplers.Streams(1, "x", 1))
	f, _ := network.predict(state, lab.Matrix(2, 3, targets.Normals(r, 6, 1)))
	if len(f) != 2 || !(f[0] > 0 && f[0] < 1) {
		t.Errorf("predictions %v", f)
	}
}

// TestBinaryNetworkGradient: the gradient at weights of -1 and +1 against
// finite differences.
func TestBinaryNetworkGradient(t *testing.T) {
	const p, h, examples = 3, 4, 5
	r := rand.New(rand.NewPCG(3, 3))
	inputs, y := lab.Matrix(examples, p, targets.Normals(r, examples*p, 1)), targets.Normals(r, examples, 1)
	weights := make([]float64, (p+2)*h+1)
	energy := func(w []float64) float64 {
		f := lab.Perceptron{Sizes: []int{p, h, 1}, Weights: w}.Forward(inputs)[2].Data
		for i, x := range f {
			f[i] = logmath.Sigmoid(x)
		}
		return -100 * math.Pow(lab.RootMeanSquare(f, y), 2)
	}
	network := newBinaryNetwork(inputs.Data, y, h, 100)
	state := make([]int, len(weights))
	for j := range state {
		state[j] = r.IntN(2)
		weights[j] = targets.Spin(state[j])
	}
	want := fd.Gradient(nil, energy, weights, &fd.Settings{Formula: fd.Central})
	gradient, u := make([]float64, 2*len(state)), make([]float64, 1)
	check.OK(t, network.EnergyGradient(t.Context(), state, u, gradient))
	if math.Abs(u[0]-energy(weights)) > 1e-9 {
		t.Errorf("energy %v, want %v", u[0], energy(weights))
	}
	for j, d := range want {
		if math.Abs(gradient[2*j+1]-d) > 1e-5*(1+math.Abs(d)) || gradient[2*j] != -gradient[2*j+1] {
			t.Errorf("slot %d: %v and %v, by differences %v", j, gradient[2*j], gradient[2*j+1], d)
		}
	}
}

func smallIsingStudy(t *testing.T) *lab.Study {
	return study(t, "learn ising", "size", "3", "samplers", "gwg,dula:step-size=0.2", "steps", "1,2", "updates", "12",
		"data", "30", "data-sweeps", "2",
		"batch", "10", "buffer", "12", "repeats", "1")
}

// TestResume: a study that is stopped in every cell finds the same results as
// one that runs through, without running kept cells again.
func TestResume(t *testing.T) {
	whole := labtest.Studied(t, smallIsingStudy(t), lab.StudyOptions{Seed: 3})
	dir := t.TempDir()
	stops, updates, stopped := 0, 0, map[string]bool{}
	for {
		ctx, cancel := context.WithCancel(t.Context())
		o := lab.StudyOptions{Seed: 3, Folder: dir, Observe: func(cell string, done, of int) {
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
			if got, want := labtest.Text(t, r.Cells), labtest.Text(t, whole.Cells); got != want {
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

	files := check.Must(labtest.Studied(t, smallIsingStudy(t), lab.StudyOptions{Seed: 3, Folder: dir}).Write(dir))(t)
	for _, want := range []string{"report.json", "results.csv", "log-rmse-2.svg", "log-rmse-by-steps.svg"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Errorf("%v: wrote %v", err, files)
		}
	}
	if _, err := smallIsingStudy(t).Run(t.Context(), lab.StudyOptions{Seed: 4, Folder: dir}); err == nil ||
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
	w := lab.SymmetricNormals(9, 0.2, r)
	model := newPairwise(w, make([]float64, 9))
	data := samplers.RandomPositions(model, samplers.Streams(1, "data", 50))
	e := labtest.Enumerated(t, model)
	want := make([]float64, 81)
	check.OK(t, model.AddGradient(ctx, data, 1, want))
	for i := range 9 {
		for j := range 9 {
			if i != j {
				want[i*9+j] -= e.Mean(func(s []int) float64 { return float64((2*s[i] - 1) * (2*s[j] - 1)) })
			}
		}
	}
	for _, spec := range []string{"gibbs", "dmala:step-size=0.8", "gwg"} {
		const chains, updates = 400, 12
		list := check.Must(lab.ParseSpecs(spec))(t)
		options := pcdFlags(pflag.NewFlagSet("", pflag.ContinueOnError), updates, chains, chains, 0, 0)
		training, err := options.newPCD(labtest.Bare(1), model, list[0], 40,
			samplers.RandomPositions(model, samplers.Streams(4, "b", chains)))
		if err != nil {
			t.Fatal(err)
		}
		byUpdate := make([][]float64, 81)
		for n := range updates + 3 {
			if err := training.update(ctx, labtest.Bare(1), data); err != nil { // the rate is 0: nothing is learnt
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

func study(t *testing.T, name string, settings ...string) *lab.Study {
	t.Helper()
	return labtest.Study(t, Studies(), name, settings...)
}
