package energies

import (
	"bytes"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/network"
)

// TestLearnImages: the training learns bars and stripes, its estimate is the
// exact likelihood within the interval, and a stopped one goes on to the same
// end.
func TestLearnImages(t *testing.T) {
	settings := strings.Fields("data bars-and-stripes side 3 samplers gibbs-x:block=1,dmala:step-size=0.4 steps 30 " +
		"updates 200 batch 14 buffer 50 learning-rate 0.002 features 12 blocks 1 downsampling 1 average 0.9 " +
		"ais-steps 200 ais-chains 60 repeats 1")
	dir := t.TempDir()
	r := labtest.Studied(t, study(t, "learn images", settings...), lab.StudyOptions{Seed: 1, Folder: dir})
	for _, c := range r.Cells {
		n := c.Numbers
		if !(n["exact-ll"] > n["independent"]+0.5) || n["exact-ll"] < n["low"]-0.1 || n["exact-ll"] > n["high"]+0.1 ||
			math.Abs(n["exact-ll"]-n["test-ll"]) > 0.3 {
			t.Errorf("%v: %v", c.Labels, n)
		}
		for _, name := range c.Files {
			text := check.Must(os.ReadFile(filepath.Join(dir, name)))(t)
			if _, err := png.Decode(bytes.NewReader(text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(c.Files) != 2 {
			t.Errorf("pictures %v", c.Files)
		}
	}
}

// TestLearnGreyImages: with three greys, the training learns, and its estimate
// is the exact likelihood within the interval.
func TestLearnGreyImages(t *testing.T) {
	path := labtest.GreyImages(t)
	r := labtest.Studied(t, study(t, "learn images", strings.Fields("levels 3 data "+path+" test "+path+
		" samplers gwg,dmala:step-size=0.4 steps 20 updates 200 batch 14 buffer 50 learning-rate 0.0015 features 12 "+
		"blocks 1 downsampling 0 average 0.9 ais-steps 200 ais-chains 60 repeats 1")...), lab.StudyOptions{Seed: 1})
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
	energy := check.Must(network.Open(t.Context(), network.Shape{Rows: 2, Columns: 2, Features: 3, Levels: levels},
		1))(t)
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
	check.OK(t, model.EnergyGradient(t.Context(), state, u, gradient))
	for slot, now := range state {
		for v := range levels {
			other := slices.Clone(state)
			other[slot] = v
			there := make([]float64, 1)
			check.OK(t, model.Energy(t.Context(), other, there))
			labtest.Near(t, "difference", gradient[slot*levels+v]-gradient[slot*levels+now], there[0]-u[0], 1e-5)
		}
	}
}
