package energies

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/logmath"
)

// network5 is a network over 5 words of 6, with drawn weights.
func network5() (n *wordNetwork, weights []float64) {
	n = newWordNetwork(5, 6, 3, 1, 4)
	weights = make([]float64, n.Weights())
	n.Initialise(rand.New(rand.NewPCG(1, 2)), weights)
	n.Set(weights)
	return n, weights
}

// TestWordNetwork: the energy of a sentence is the sum over its windows, which
// is written down again; the slopes of the weights are those of finite differences; and
// all words of a slot at once differ as whole sentences do.
func TestWordNetwork(t *testing.T) {
	n, weights := network5()
	states := []int{0, 3, 5, 1, 2, 4, 4, 0, 2, 1}
	energy := make([]float64, 2)
	check.OK(t, n.Energies(t.Context(), states, energy))
	for c := range energy {
		want := 0.0
		for slot := range 5 {
			var seen []float64
			for at := slot - 1; at <= slot+1; at++ {
				word := make([]float64, 3)
				if at >= 0 && at < 5 {
					copy(word, weights[3*states[5*c+at]:])
				}
				seen = append(seen, word...)
			}
			g := weights[6*3:] // [9 × 4], 4 biases, 4 weights, a bias
			out := g[44]
			for k := range 4 {
				unit := g[36+k]
				for i, x := range seen {
					unit += x * g[i*4+k]
				}
				out += math.Tanh(unit) * g[40+k]
			}
			want += out
		}
		labtest.Near(t, "energy", energy[c], want, 1e-12)
	}

	mean := func(w []float64) float64 {
		n.Set(w)
		check.OK(t, n.Energies(t.Context(), states, energy))
		return floats.Sum(energy) / 2
	}
	want := fd.Gradient(nil, mean, weights, &fd.Settings{Formula: fd.Central})
	n.Set(weights)
	got := make([]float64, len(weights))
	check.OK(t, n.WeightGradient(t.Context(), states, 3, got))
	for i := range want {
		labtest.Near(t, fmt.Sprintf("weight %d", i), got[i], 3*want[i], 1e-6)
	}

	of := make([]float64, 12)
	check.OK(t, n.SlotEnergies(t.Context(), states, []int{0, 3}, of))
	for c, slot := range []int{0, 3} {
		for v := range 6 {
			other := slices.Clone(states)
			other[5*c+slot] = v
			check.OK(t, n.Energies(t.Context(), states, energy))
			was := energy[c]
			check.OK(t, n.Energies(t.Context(), other, energy))
			labtest.Near(t, "difference", of[6*c+v]-of[6*c+states[5*c+slot]], energy[c]-was, 1e-12)
		}
	}
}

// TestSlotGradient: the derivative by a word's indicator less that by the
// present word's is the slope of f along the line between their embeddings. A
// word that no other slot has is moved along it.
func TestSlotGradient(t *testing.T) {
	n, weights := network5()
	states := []int{0, 3, 5, 1, 2}
	energy, gradient := make([]float64, 1), make([]float64, 30)
	check.OK(t, n.SlotGradient(t.Context(), states, energy, gradient))
	whole := make([]float64, 1)
	check.OK(t, n.Energies(t.Context(), states, whole))
	labtest.Near(t, "energy", energy[0], whole[0], 1e-12)
	for slot, now := range states {
		for v := range 6 {
			slope := fd.Derivative(func(x float64) float64 {
				w := slices.Clone(weights)
				for k := range 3 {
					w[3*now+k] += x * (weights[3*v+k] - weights[3*now+k])
				}
				n.Set(w)
				check.OK(t, n.Energies(t.Context(), states, whole))
				return whole[0]
			}, 0, &fd.Settings{Formula: fd.Central})
			labtest.Near(t, fmt.Sprintf("slot %d, word %d", slot, v), gradient[6*slot+v]-gradient[6*slot+now], slope,
				1e-6)
		}
	}
}

// TestConditionalEnergy: the conditionals are those of the listed energies.
func TestConditionalEnergy(t *testing.T) {
	n, weights := network5()
	laws := chains.CategoryLaws([][]int{{0, 1, 2, 3, 4}, {5, 1, 0, 3, 4}}, 6)
	deep := &deepEnergy{network: n, weights: weights, base: chains.NewBase(laws), categories: slices.Repeat([]int{6},
		5)}
	states := []int{0, 3, 5, 1, 2}
	for slot := range 5 {
		want, logp := make([]float64, 6), make([]float64, 6)
		for v := range want {
			other := slices.Clone(states)
			other[slot] = v
			check.OK(t, deep.Energy(t.Context(), other, want[v:v+1]))
		}
		logmath.Normalise(want)
		check.OK(t, conditionalEnergy{deep, n}.LogConditionals(t.Context(), states, []int{slot}, logp))
		for v := range want {
			labtest.Near(t, fmt.Sprintf("slot %d, word %d", slot, v), logp[v], want[v], 1e-12)
		}
	}
}

// paired has sentences whose words depend on each other, in 3 words of 7 and
// less; a longer one is left out.
const paired = "a b a\nb a b\na b\nb a\nc d c\nd c d\n\na b a\nb a b b\nb a b\nc d\nd c\nc d c\n"

// TestLearnText: the training learns which words follow which, the estimate is
// the exact likelihood within its interval, and the two laws without a sampler
// are those that are written down again.
func TestLearnText(t *testing.T) {
	path := labtest.Saved(t, "small.txt", strings.Repeat(paired, 20))
	dir := t.TempDir()
	settings := strings.Fields("data " + path + " words 3 vocabulary 7 updates 200 batch 20 buffer 100 steps 20 " +
		"learning-rate 0.01 average 0.9 ais-steps 400 ais-chains 60 repeats 1")
	r := labtest.Studied(t, study(t, "learn text", settings...), lab.StudyOptions{Seed: 1, Folder: dir})
	of := map[string]map[string]float64{}
	for _, c := range r.Cells {
		n := c.Numbers
		of[c.Labels.Value("sampler")] = n
		if len(c.Files) == 0 {
			continue
		}
		if !(n["exact-ll"] > n["independent"]+0.5) || n["exact-ll"] < n["low"]-0.1 || n["exact-ll"] > n["high"]+0.1 ||
			math.Abs(n["exact-ll"]-n["test-ll"]) > 0.3 {
			t.Errorf("%v: %v", c.Labels, n)
		}
		for _, name := range c.Files {
			text := string(check.Must(os.ReadFile(filepath.Join(dir, name)))(t))
			pairs, right := 0, 0
			for line := range strings.Lines(text) {
				words := strings.Fields(line)
				for i := range len(words) - 1 {
					pairs++
					right += strings.Count("ab ba cd dc", words[i]+words[i+1])
				}
			}
			if strings.Count(text, "\n") != 100 || pairs < 100 || float64(right)/float64(pairs) < 0.8 {
				t.Errorf("%s: %d of %d pairs are those of the data:\n%s", name, right, pairs, text)
			}
		}
		if len(c.Files) != 2 {
			t.Errorf("files %v", c.Files)
		}
	}
	if len(of) != 4 || !(of["gwg"]["test-ll"] > of["independent"]["test-ll"]) ||
		!(of["bigrams"]["test-ll"] > of["independent"]["test-ll"]+0.5) ||
		of["gwg"]["independent"] != of["independent"]["test-ll"] {
		t.Errorf("%v", of)
	}
	want := "220 of 240 sentences have at most 3 words; the vocabulary has 4 of their 4 words, which are 100 % of " +
		"what they say, and a mark for others and one for the end"
	if !slices.Contains(r.Plan.Notes, want) {
		t.Errorf("notes %q, want %q", r.Plan.Notes, want)
	}
}

// TestBigrams: the law sums to one over all sentences, and has the smoothed
// counts.
func TestBigrams(t *testing.T) {
	data := [][]int{{2, 3, 0}, {2, 3, 0}, {2, 1, 3}}
	laws := chains.CategoryLaws(data, 4)
	m := newBigrams(laws, data)
	total := 0.0
	for a := range 4 {
		for b := range 4 {
			for c := range 4 {
				total += math.Exp(m.log([]int{a, b, c}))
			}
		}
	}
	labtest.Near(t, "sum", total, 1, 1e-12)
	// "2" stands three times before a word, two of them "3".
	want := math.Log(laws[0][2]) + math.Log((2+priorPairs*laws[1][3])/(3+priorPairs)) +
		math.Log((2+priorPairs*laws[2][0])/(2+priorPairs))
	labtest.Near(t, "a sentence", m.log([]int{2, 3, 0}), want, 1e-12)
}
