package infill_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"infill/lm"
	"infill/models"
	"infill/samplers"
	"infill/tokenize"
)

// mini is a smaller model than the built-in one, for tests that need many rows.
const mini = "../testdata/mini-uncased"

// grid is a template of two slots with 40 candidates each, on a small model,
// and its 1,600 fills enumerated.
type grid struct {
	target      samplers.GradientTarget
	probability []float64 // [1600]
}

const gridSide = 40

func newGrid(t *testing.T) grid {
	t.Helper()
	ctx := context.Background()
	bundle, err := models.Open(mini)
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := tokenize.Load(bundle.FS())
	if err != nil {
		t.Fatal(err)
	}
	found, err := lm.EnsureLibrary(ctx, "cpu", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", Library: found.Path, MaskID: tokenizer.MaskID()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	template, err := tokenizer.Template("the old [MASK] sat by the [MASK] and said nothing .")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := m.LogProbabilities(ctx, []lm.Row{{IDs: template.IDs, Positions: template.Slots}})
	if err != nil {
		t.Fatal(err)
	}
	support := make([][]int, len(template.Slots))
	for j := range support {
		support[j] = samplers.Likeliest(tokenizer.Fillable(), rows[0][j], gridSide)
		slices.Sort(support[j])
	}
	made, err := m.NewTarget(template.IDs, template.Slots,
		lm.TargetOptions{Gradient: lm.Local, Support: support})
	if err != nil {
		t.Fatal(err)
	}
	target := made.(samplers.GradientTarget)
	var states []int
	for a := range gridSide {
		for b := range gridSide {
			states = append(states, a, b)
		}
	}
	g := grid{target, make([]float64, gridSide*gridSide)}
	if err := target.Energy(ctx, states, g.probability); err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, u := range g.probability {
		total += math.Exp(u)
	}
	for i, u := range g.probability {
		g.probability[i] = math.Exp(u) / total
	}
	return g
}

// distance is the total variation between the law and observed counts.
func (g grid) distance(counts []float64, draws float64) float64 {
	sum := 0.0
	for i, p := range g.probability {
		sum += math.Abs(counts[i]/draws - p)
	}
	return sum / 2
}

// expected is about the total variation that n independent draws show: each
// frequency is off by √(p(1−p)/n), and a normal deviate by √(2/π) of that.
func (g grid) expected(n float64) float64 {
	sum := 0.0
	for _, p := range g.probability {
		sum += math.Sqrt(2 / math.Pi * p * (1 - p) / n)
	}
	return sum / 2
}

// Every exact sampler's draws converge to the enumerated distribution of the
// built-in model: the total variation falls with the draws, and ends where
// as many independent draws as the chains are worth would be.
func TestExactSamplersReachTheGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("some ten thousand steps")
	}
	g, ctx := newGrid(t), context.Background()
	for _, s := range samplers.All() {
		name := s.Describe().Name
		_, err := s.Kernel(g.target, nil)
		if err != nil || !s.Describe().Exact {
			continue
		}
		t.Run(name, func(t *testing.T) {
			kernel, err := s.Kernel(g.target, nil)
			if err != nil {
				t.Fatal(err)
			}
			const chains, warmUp, steps = 50, 100, 500
			streams := samplers.Streams(1, name, chains)
			counts, draws := make([]float64, len(g.probability)), 0.0
			first, second := make([][]float64, chains), make([][]float64, chains)
			var early float64
			plan := samplers.Plan{Streams: streams, WarmUp: warmUp, Steps: steps}
			_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(g.target, streams), plan,
				func(s samplers.Step) error {
					if s.WarmUp {
						return nil
					}
					for c := range chains {
						a, b := s.State.Positions[2*c], s.State.Positions[2*c+1]
						counts[a*gridSide+b]++
						draws++
						first[c], second[c] = append(first[c], float64(a)), append(second[c], float64(b))
					}
					if s.Number == warmUp+steps/10 {
						early = g.distance(counts, draws)
					}
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
			late := g.distance(counts, draws)
			worth := min(samplers.EffectiveSampleSize(first), samplers.EffectiveSampleSize(second), draws)
			t.Logf("total variation %.4f after %.0f draws, %.4f after %.0f; %.0f effective draws would show about %.4f",
				early, draws/10, late, draws, worth, g.expected(worth))
			if !(late < early/2) {
				t.Errorf("total variation fell from %.4f to %.4f only", early, late)
			}
			if !(late < 1.5*g.expected(worth)) {
				t.Errorf("total variation %.4f; independent draws would show %.4f", late, g.expected(worth))
			}
		})
	}
}
