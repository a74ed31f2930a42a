package lab

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

	"infill/internal/logmath"
	"infill/samplers"
)

// traced is what a trace says of U: of each chain, from its start on.
type traced struct {
	u      [][]float64
	warmUp int // states of each chain that are not counted: the start and the warm-up
}

// newTrace returns the study that draws a trace.
func newTrace() *Study {
	s := newStudy("trace", "Draw U of chains and its autocorrelation",
		`Read the states of chains, as infill --trace FILE or the laboratory's --trace writes them, and
say how well the chains mix: U of each chain, its effective sample size by Geyer's initial
positive sequence, and split R-hat. With -o, pictures show U at each step and the
autocorrelation of U. The numbers leave out the warm-up.`)
	file := s.Flags.String("file", "", "trace to read, a CSV `FILE` (needed)")
	lags := wholeFlag(s.Flags, "lags", 50, 1, maxSteps, "largest distance of two states, in steps")
	drawn := wholeFlag(s.Flags, "drawn", 4, 1, 100, "chains that pictures show, from the first on")
	s.plan = func(_ context.Context, in *inputs, _ uint64) (*plan, error) {
		if *file == "" {
			return nil, refuse("file", "name a trace, as infill --trace writes it")
		}
		text, err := in.read("file", *file, nil, "")
		if err != nil {
			return nil, refuse("file", "%w", err)
		}
		t, err := readTrace(text)
		if err != nil {
			return nil, refuse("file", "%s: %w", *file, err)
		}
		p := newPlan("U of the chains of a trace", []column{
			{name: "u", format: "%.2f", definition: "mean of U, nats"},
			{name: "deviation", format: "%.2f", definition: "standard deviation of U"},
			{name: "states", format: "%.0f", definition: "states that count"},
			{name: "ess", format: "%.1f", definition: "effective sample size of U"},
			{name: "r-hat", format: "%.3f", definition: "split R-hat of U, near 1 where chains agree"},
		}, curve{name: "u", x: "step", y: "U, nats"},
			curve{name: "autocorrelation", x: "lag, steps", y: "autocorrelation of U"})
		p.betweenChains(len(t.u))
		for i := range t.u {
			p.cells = append(p.cells, cell{labels{{"chain", strconv.Itoa(i + 1)}},
				func(_ context.Context, b *bench) error { return t.chain(b, i, i < *drawn, *lags) }})
		}
		p.cells = append(p.cells, cell{labels{{"chain", all}},
			func(_ context.Context, b *bench) error { return t.all(b, *lags) }})
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

// add adds a row, a state.
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

// chain records one chain, with its curves if it is drawn.
func (t traced) chain(b *bench, i int, drawn bool, lags int) error {
	u := t.counted(i)
	mean, deviation := stat.MeanStdDev(u, nil)
	b.number("u", mean)
	b.number("deviation", deviation)
	b.number("states", float64(len(u)))
	b.number("ess", samplers.EffectiveSampleSize([][]float64{u}))
	correlation := autocorrelation(u, lags)
	if correlation == nil {
		b.warn("U never changes after the warm-up, so it has no autocorrelation")
	}
	if !drawn {
		return nil
	}
	for step, u := range t.u[i] {
		b.pointAt("u", sample{X: float64(step), Y: u})
	}
	for lag, c := range correlation {
		b.pointAt("autocorrelation", sample{X: float64(lag), Y: c})
	}
	return nil
}

// all records all chains together. Their autocorrelation is the mean of the
// chains'.
func (t traced) all(b *bench, lags int) error {
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
	b.chains("u", means)
	b.number("states", float64(len(counted)*len(counted[0])))
	b.number("ess", samplers.EffectiveSampleSize(counted))
	b.number("r-hat", samplers.SplitRHat(counted))
	if len(correlations) == 0 {
		return nil
	}
	for lag := range correlations[0] {
		var values []float64
		for _, c := range correlations {
			values = append(values, c[lag])
		}
		mean, e := meanAndError(values)
		b.pointAt("autocorrelation", sample{X: float64(lag), Y: mean, Error: e})
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
