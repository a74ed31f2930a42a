package chains

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/samplers"
)

// traced is what a trace says of U: of each chain, from its start on.
type traced struct {
	u      [][]float64
	warmUp int // states of each chain that are not counted: the start and the warm-up
}

func newTrace() *lab.Study {
	s := lab.NewStudy("trace")
	file := s.Flags.String("file", "", "trace to read, a CSV `FILE` (needed)")
	lags := lab.WholeFlag(s.Flags, "lags", 50, 1, lab.MaxSteps, "largest distance of two states, in steps")
	drawn := lab.WholeFlag(s.Flags, "drawn", 4, 1, 100, "chains that pictures show, from the first on")
	s.Plan = func(_ context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		if *file == "" {
			return nil, lab.Refuse("file", "name a trace, as infill --trace writes it")
		}
		t, err := lab.ReadAs(in, "file", *file, nil, "", readTrace)
		if err != nil {
			return nil, err
		}
		p := s.NewPlan("U of the chains of a trace")
		p.BetweenChains(len(t.u))
		for i := range t.u {
			p.Cells = append(p.Cells, lab.Cell{Labels: lab.Labels{{Name: "chain", Value: strconv.Itoa(i + 1)}},
				Run: func(_ context.Context, b *lab.Bench) error { return t.chain(b, i, i < *drawn, *lags) }})
		}
		p.Cells = append(p.Cells, lab.Cell{Labels: lab.Labels{{Name: "chain", Value: lab.AllSamplers}},
			Run: func(_ context.Context, b *lab.Bench) error { return t.all(b, *lags) }})
		return p, nil
	}
	return s
}

// readTrace reads a trace. Rows may be in any order of the chains.
func readTrace(text []byte) (traced, error) {
	rows := csv.NewReader(bytes.NewReader(text))
	head, err := rows.Read()
	if err != nil || len(head) < 5 || fmt.Sprint(head[:4]) != "[chain step warm_up u]" {
		return traced{}, errors.New("the first line is not chain,step,warm_up,u and the slots, as --trace writes it")
	}
	var t traced
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return t, err
		}
		err = t.add(row)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return t, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if len(t.u) == 0 {
		return t, errors.New("no chain")
	}
	for i, u := range t.u {
		if len(u) != len(t.u[0]) {
			return t, fmt.Errorf("chain %d has %d states, and chain 1 has %d", i+1, len(u), len(t.u[0]))
		}
	}
	if n := len(t.u[0]) - t.warmUp; n < 4 {
		return t, fmt.Errorf("%d states after the warm-up: four at least are needed", n)
	}
	return t, nil
}

func (t *traced) add(row []string) error {
	chain, err := strconv.Atoi(row[0])
	if err != nil || chain < 1 || chain > len(t.u)+1 {
		return fmt.Errorf("chain %q: chains are numbered from 1, and begin one after the other", row[0])
	}
	if chain > len(t.u) {
		t.u = append(t.u, nil)
	}
	own := &t.u[chain-1]
	step, err := strconv.Atoi(row[1])
	if err != nil || step != len(*own) {
		return fmt.Errorf("step %q of chain %d, and %d is next", row[1], chain, len(*own))
	}
	warmUp, err := strconv.ParseBool(row[2])
	if err != nil {
		return fmt.Errorf("warm_up %q is neither true nor false", row[2])
	}
	u, err := strconv.ParseFloat(row[3], 64)
	if err != nil || !logmath.Finite(u) {
		return fmt.Errorf("u %q: a sampler that evaluates no U has nothing to draw", row[3])
	}
	*own = append(*own, u)
	if step == 0 || warmUp {
		t.warmUp = max(t.warmUp, step+1)
	}
	return nil
}

// counted returns U of the states of a chain that count.
func (t traced) counted(chain int) []float64 { return t.u[chain][t.warmUp:] }

func (t traced) chain(b *lab.Bench, i int, drawn bool, lags int) error {
	u := t.counted(i)
	mean, deviation := stat.MeanStdDev(u, nil)
	b.Number("u", mean)
	b.Number("deviation", deviation)
	b.Number("states", float64(len(u)))
	b.Number("ess", samplers.EffectiveSampleSize([][]float64{u}))
	correlation := autocorrelation(u, lags)
	if correlation == nil {
		b.Warn("U never changes after the warm-up, so it has no autocorrelation")
	}
	if !drawn {
		return nil
	}
	for step, u := range t.u[i] {
		b.PointAt("u", lab.Sample{X: float64(step), Y: u})
	}
	for lag, c := range correlation {
		b.PointAt("autocorrelation", lab.Sample{X: float64(lag), Y: c})
	}
	return nil
}

// all records all chains, with the mean of their autocorrelations.
func (t traced) all(b *lab.Bench, lags int) error {
	var counted, correlations [][]float64
	var means []float64
	for i := range t.u {
		u := t.counted(i)
		counted = append(counted, u)
		means = append(means, stat.Mean(u, nil))
		correlation := autocorrelation(u, lags)
		if correlation != nil {
			correlations = append(correlations, correlation)
		}
	}
	b.Chains("u", means)
	b.Number("states", float64(len(counted)*len(counted[0])))
	b.Number("ess", samplers.EffectiveSampleSize(counted))
	b.Number("r-hat", samplers.SplitRHat(counted))
	if len(correlations) == 0 {
		return nil
	}
	for lag := range correlations[0] {
		var values []float64
		for _, c := range correlations {
			values = append(values, c[lag])
		}
		mean, e := samplers.MeanAndError(values)
		b.PointAt("autocorrelation", lab.Sample{X: float64(lag), Y: mean, Error: e})
	}
	return nil
}

// autocorrelation returns Σ (x_t - m)(x_{t+k} - m) / Σ (x_t - m)² for the lags
// k from 0 on, m the mean: at most most of them, and fewer than x has values.
// If x never changes, it returns nil.
func autocorrelation(x []float64, most int) (list []float64) {
	if floats.Min(x) == floats.Max(x) {
		return nil
	}
	apart := slices.Clone(x)
	floats.AddConst(-stat.Mean(x, nil), apart)
	whole := floats.Dot(apart, apart)
	for lag := range min(most+1, len(x)) {
		list = append(list, floats.Dot(apart[lag:], apart[:len(x)-lag])/whole)
	}
	return list
}
