// Package lmtest has a masked language model for tests. The model is a formula:
// every token has a weight, and two tokens side by side have a bond.
package lmtest

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing/fstest"

	"infill/internal/logmath"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// Mask is the id of [MASK], the last of a vocabulary's five special tokens.
const Mask = 4

// Tokenizer returns a tokenizer without capitals. The vocabulary begins with
// [PAD], [UNK], [CLS], [SEP] and [MASK].
func Tokenizer(vocabulary []string) (*tokenize.Tokenizer, error) {
	return tokenize.LoadVocabulary(fstest.MapFS{
		"vocab.txt":             {Data: []byte(strings.Join(vocabulary, "\n") + "\n")},
		"tokenizer_config.json": {Data: []byte(`{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}`)},
	})
}

// Model is a model whose energy U is the sum of the tokens' weights and bonds.
type Model struct {
	Info   lm.Description
	Limit  int // the largest number of tokens of a text
	Size   int // number of tokens of the vocabulary
	Weight func(token int) float64
	Bond   float64                         // strength of all bonds
	Bonds  func(token int) bool            // whether a token next to a slot has a bond with it
	Blind  bool                            // whether gradients are 0
	Deaf   bool                            // whether conditionals of masked slots ignore bonds between slots
	Before func(ctx context.Context) error // called at the start of every evaluation
	Calls  atomic.Int64                    // number of evaluations
	Asked  atomic.Int64                    // number of rows
}

// New returns a model over size tokens, with bonds of strength 1, that takes
// texts of at most limit tokens.
func New(size, limit int) *Model {
	return &Model{
		Info: lm.Description{Name: "fake", SHA256: "0123456789abcdef0123456789abcdef", Runtime: "1.2.3",
			Device: "cpu"},
		Limit:  limit,
		Size:   size,
		Weight: Weight,
		Bond:   1,
		Bonds:  func(token int) bool { return token != Mask },
		Before: func(ctx context.Context) error { return ctx.Err() },
	}
}

// Weight returns the default weight of a token.
func Weight(token int) float64 { return 2 * math.Sin(3*float64(token)) }

// BondOf returns the bond of two tokens side by side.
func (m *Model) BondOf(left, right int) float64 { return m.Bond * math.Cos(float64(left*right)) }

// U returns the energy of the tokens of all slots.
func (m *Model) U(tokens []int) float64 {
	u := 0.0
	for slot, token := range tokens {
		u += m.Weight(token)
		if slot > 0 {
			u += m.BondOf(tokens[slot-1], token)
		}
	}
	return u
}

// Description returns m.Info.
func (m *Model) Description() lm.Description { return m.Info }

// Positions returns m.Limit.
func (m *Model) Positions() int { return m.Limit }

// For returns m, whoever asks.
func (m *Model) For(*lm.Caller) lm.Asker { return m }

// Begin counts one evaluation, and calls m.Before.
func (m *Model) Begin(ctx context.Context) error {
	m.Calls.Add(1)
	return m.Before(ctx)
}

// LogProbabilities returns each position's distribution, or its target's number.
func (m *Model) LogProbabilities(ctx context.Context, rows []lm.Row) ([][][]float32, error) {
	m.Asked.Add(int64(len(rows)))
	found := make([][][]float32, len(rows))
	for i, r := range rows {
		for j, p := range r.Positions {
			logp := m.distribution(r.IDs[p-1], r.IDs[p+1])
			if r.Targets != nil {
				logp = logp[r.Targets[j] : r.Targets[j]+1]
			}
			found[i] = append(found[i], logp)
		}
	}
	return found, m.Begin(ctx)
}

func (m *Model) distribution(left, right int) []float32 {
	u := make([]float64, m.Size)
	for token := range u {
		u[token] = m.Weight(token)
		if m.Bonds(left) {
			u[token] += m.BondOf(left, token)
		}
		if m.Bonds(right) {
			u[token] += m.BondOf(token, right)
		}
	}
	logmath.Normalise(u)
	logp := make([]float32, m.Size)
	for token := range logp {
		logp[token] = float32(u[token])
	}
	return logp
}

// NewTarget returns the distribution of the slots' tokens in o.Support.
func (m *Model) NewTarget(_, _ []int, o lm.TargetOptions) (lm.Target, error) {
	t := &target{model: m, support: o.Support}
	for _, s := range o.Support {
		t.categories = append(t.categories, len(s))
		t.width = max(t.width, len(s))
	}
	return t, nil
}

// target is the distribution of fills with probabilities proportional to exp U.
type target struct {
	model      *Model
	support    [][]int
	categories []int
	width      int
	energies   atomic.Int64
	gradients  atomic.Int64
}

var (
	_ lm.Target                        = (*target)(nil)
	_ samplers.GradientTarget          = (*target)(nil)
	_ samplers.ConditionalTarget       = (*target)(nil)
	_ samplers.MaskedConditionalTarget = (*target)(nil)
)

func (t *target) Categories() []int { return t.categories }

func (t *target) Counts() lm.Counts {
	e := t.energies.Load()
	g := t.gradients.Load()
	return lm.Counts{EnergyEvaluations: e + g, GradientEvaluations: g, Rows: (e + g) * int64(len(t.support))}
}

// tokens returns the tokens in the state of the given chain.
func (t *target) tokens(states []int, chain int) []int {
	tokens := make([]int, len(t.support))
	for slot := range tokens {
		tokens[slot] = t.support[slot][states[chain*len(tokens)+slot]]
	}
	return tokens
}

func (t *target) evaluate(ctx context.Context, states []int, energy []float64) error {
	for chain := range energy {
		energy[chain] = t.model.U(t.tokens(states, chain))
	}
	return t.model.Begin(ctx)
}

func (t *target) Energy(ctx context.Context, states []int, energy []float64) error {
	t.energies.Add(int64(len(energy)))
	return t.evaluate(ctx, states, energy)
}

func (t *target) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	t.gradients.Add(int64(len(energy)))
	n := len(t.support)
	for chain := range energy {
		tokens := t.tokens(states, chain)
		for slot := range tokens {
			for category, token := range t.support[slot] {
				g := t.model.Weight(token)
				if slot > 0 {
					g += t.model.BondOf(tokens[slot-1], token)
				}
				if slot+1 < n {
					g += t.model.BondOf(token, tokens[slot+1])
				}
				if t.model.Blind {
					g = 0
				}
				gradient[(chain*n+slot)*t.width+category] = g
			}
		}
	}
	return t.evaluate(ctx, states, energy)
}

func (t *target) LogConditionals(ctx context.Context, states, slots []int, logp []float64) error {
	for chain, slot := range slots {
		tokens := t.tokens(states, chain)
		row := logp[chain*t.width:][:t.categories[slot]]
		for category, token := range t.support[slot] {
			tokens[slot] = token
			row[category] = t.model.U(tokens)
		}
		logmath.Normalise(row)
	}
	return t.model.Begin(ctx)
}

// LogMaskedConditionals sums over all tokens of all open slots.
func (t *target) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	n := len(t.support)
	for at := 0; at < len(states); at += n {
		state := slices.Clone(states[at : at+n])
		sums := make([]float64, n*t.width)
		total := 0.0
		var visit func(slot int)
		visit = func(slot int) {
			if slot < n && open[at+slot] {
				for v := range t.support[slot] {
					state[slot] = v
					visit(slot + 1)
				}
				return
			}
			if slot < n {
				visit(slot + 1)
				return
			}
			p := t.mass(t.tokens(state, 0))
			total += p
			for j, v := range state {
				sums[j*t.width+v] += p
			}
		}
		visit(0)
		for j := range n {
			for v := range t.support[j] {
				if open[at+j] {
					logp[(at+j)*t.width+v] = math.Log(sums[j*t.width+v] / total)
				}
			}
		}
	}
	return t.model.Begin(ctx)
}

// mass returns exp U, without bonds if the model is deaf.
func (t *target) mass(tokens []int) float64 {
	if !t.model.Deaf {
		return math.Exp(t.model.U(tokens))
	}
	p := 1.0
	for _, token := range tokens {
		p *= math.Exp(t.model.Weight(token))
	}
	return p
}
