package infill

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// fakeWords is the vocabulary of the fake model: 5 special tokens, one unused, words and pieces.
func fakeWords() []string {
	return []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]",
		"the", "cat", "dog", "sat", "ran", "on", "mat", "rug", "un", "##seen", "##known", ".", "seen"}
}

func newTokenizer(t testing.TB) *tokenize.Tokenizer {
	t.Helper()
	tokenizer, err := tokenize.New(fakeWords(), tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// fakeModel has a known energy: a weight per token, and a bond between the
// tokens of neighbouring slots.
type fakeModel struct {
	positions int
	bond      float64
	blind     bool // the gradient is zero
	deaf      bool // the conditionals of masked slots know of no bond
	tokens    int  // of the vocabulary; 0: those of fakeWords()
	scored    []lm.Query
	// before, when not nil, runs at the start of every evaluation.
	before func(ctx context.Context) error
}

func weight(token int) float64 { return 2 * math.Sin(3*float64(token)) }

func (m *fakeModel) bondOf(a, b int) float64 { return m.bond * math.Cos(float64(a*b)) }

func (m *fakeModel) Description() lm.Description {
	return lm.Description{Name: "fake", SHA256: "0123456789abcdef0123456789abcdef", Runtime: "1.2.3", Device: "cpu"}
}

func (m *fakeModel) Positions() int { return m.positions }

func (m *fakeModel) MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	logp := make([][]float32, len(slots))
	for slot := range logp {
		logp[slot] = m.distribution(func(token int) float64 { return weight(token) })
	}
	return logp, nil
}

// LogProbabilities bonds a token to the neighbours that are not masked.
func (m *fakeModel) LogProbabilities(ctx context.Context, rows []lm.Row) ([][]float32, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	const mask = 4
	var logp [][]float32
	for _, r := range rows {
		left, right := r.IDs[r.Position-1], r.IDs[r.Position+1]
		logp = append(logp, m.distribution(func(token int) float64 {
			u := weight(token)
			if left != mask {
				u += m.bondOf(left, token)
			}
			if right != mask {
				u += m.bondOf(token, right)
			}
			return u
		}))
	}
	return logp, nil
}

// distribution normalises exp of the logits of all tokens.
func (m *fakeModel) distribution(logit func(token int) float64) []float32 {
	n := max(m.tokens, len(fakeWords()))
	total := 0.0
	for token := range n {
		total += math.Exp(logit(token))
	}
	logp := make([]float32, n)
	for token := range logp {
		logp[token] = float32(logit(token) - math.Log(total))
	}
	return logp
}

func (m *fakeModel) check(ctx context.Context) error {
	if m.before != nil {
		return m.before(ctx)
	}
	return ctx.Err()
}

func (m *fakeModel) Score(ctx context.Context, ids []int, queries []lm.Query) ([]float64, error) {
	m.scored = queries
	scores := make([]float64, len(queries))
	for i, q := range queries {
		scores[i] = -float64(ids[q.Position]) - float64(len(q.Masked))/8
	}
	return scores, m.check(ctx)
}

func (m *fakeModel) NewTarget(ids, slots []int, o lm.TargetOptions) (lm.Target, error) {
	t := &fakeTarget{model: m, options: o, support: o.Support}
	for _, s := range o.Support {
		t.categories = append(t.categories, len(s))
		t.width = max(t.width, len(s))
	}
	if o.Distances {
		return fakeMetric{t}, nil
	}
	return t, nil
}

type fakeTarget struct {
	model      *fakeModel
	options    lm.TargetOptions
	support    [][]int
	categories []int
	width      int
	energies   atomic.Int64
	gradients  atomic.Int64
}

var (
	_ LanguageModel                     = (*fakeModel)(nil)
	_ lm.Target                         = (*fakeTarget)(nil)
	_ samplers.StochasticGradientTarget = (*fakeTarget)(nil)
	_ samplers.ConditionalTarget        = (*fakeTarget)(nil)
	_ samplers.MaskedConditionalTarget  = (*fakeTarget)(nil)
)

// fakeMetric knows that tokens are as far apart as their ids.
type fakeMetric struct{ *fakeTarget }

var _ samplers.MetricTarget = fakeMetric{}

func (t fakeMetric) Distances(slot, from, first int, distance []float64) {
	tokens := t.support[slot]
	for i := range distance {
		distance[i] = math.Abs(float64(tokens[from] - tokens[first+i]))
	}
}

func (t *fakeTarget) Categories() []int { return t.categories }

func (t *fakeTarget) Counts() lm.Counts {
	e, g := t.energies.Load(), t.gradients.Load()
	return lm.Counts{EnergyEvaluations: e + g, GradientEvaluations: g, Rows: (e + g) * int64(len(t.support))}
}

// energyOf is U of the tokens of the slots.
func (t *fakeTarget) energyOf(tokens []int) float64 {
	u := 0.0
	for slot, token := range tokens {
		u += weight(token)
		if slot > 0 {
			u += t.model.bondOf(tokens[slot-1], token)
		}
	}
	return u
}

func (t *fakeTarget) tokens(state []int) []int {
	tokens := make([]int, len(state))
	for slot, category := range state {
		tokens[slot] = t.support[slot][category]
	}
	return tokens
}

func (t *fakeTarget) evaluate(ctx context.Context, states []int, energy []float64) error {
	slots := len(t.support)
	for c := range energy {
		energy[c] = t.energyOf(t.tokens(states[c*slots : (c+1)*slots]))
	}
	return t.model.check(ctx)
}

func (t *fakeTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	t.energies.Add(int64(len(energy)))
	return t.evaluate(ctx, states, energy)
}

func (t *fakeTarget) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	t.gradients.Add(int64(len(energy)))
	slots := len(t.support)
	for c := range energy {
		tokens := t.tokens(states[c*slots : (c+1)*slots])
		for slot := range tokens {
			for category, token := range t.support[slot] {
				g := weight(token)
				if slot > 0 {
					g += t.model.bondOf(tokens[slot-1], token)
				}
				if slot+1 < slots {
					g += t.model.bondOf(token, tokens[slot+1])
				}
				if t.model.blind {
					g = 0
				}
				gradient[(c*slots+slot)*t.width+category] = g
			}
		}
	}
	return t.evaluate(ctx, states, energy)
}

func (t *fakeTarget) Terms() int { return len(t.support) }

// EnergyGradientOf pretends that every term has the same gradient.
func (t *fakeTarget) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy,
	gradient []float64) error {
	return t.EnergyGradient(ctx, states, energy, gradient)
}

func (t *fakeTarget) LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error {
	m := len(t.support)
	for c, slot := range slots {
		tokens := t.tokens(states[c*m : (c+1)*m])
		row := logp[c*t.width:][:t.categories[slot]]
		total := 0.0
		for category, token := range t.support[slot] {
			tokens[slot] = token
			row[category] = t.energyOf(tokens)
			total += math.Exp(row[category])
		}
		for category := range row {
			row[category] -= math.Log(total)
		}
	}
	return t.model.check(ctx)
}

// LogMaskedConditionals are those of the energy, by summing over all that the
// open slots may hold.
func (t *fakeTarget) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	m := len(t.support)
	for at := 0; at < len(states); at += m {
		state := append([]int(nil), states[at:at+m]...)
		sums := make([]float64, m*t.width)
		total := 0.0
		var visit func(slot int)
		visit = func(slot int) {
			if slot == m {
				p := math.Exp(t.energyOf(t.tokens(state)))
				if t.model.deaf {
					p = 1
					for _, token := range t.tokens(state) {
						p *= math.Exp(weight(token))
					}
				}
				total += p
				for j, v := range state {
					sums[j*t.width+v] += p
				}
				return
			}
			if !open[at+slot] {
				visit(slot + 1)
				return
			}
			for v := range t.support[slot] {
				state[slot] = v
				visit(slot + 1)
			}
		}
		visit(0)
		for j := range m {
			for v := range t.support[j] {
				if open[at+j] {
					logp[(at+j)*t.width+v] = math.Log(sums[j*t.width+v] / total)
				}
			}
		}
	}
	return t.model.check(ctx)
}

// followed is how many chains a test of a law follows. The race detector's run, with
// -short, follows half: enough for the same limits.
func followed(chains int) int {
	if testing.Short() {
		return chains / 2
	}
	return chains
}

// chainOptions are the defaults of chains over all that the fake's slots may take.
func chainOptions() Options {
	o := DefaultOptions()
	c := DefaultChains(Samplers()[0])
	o.Chains = &c
	return o
}
