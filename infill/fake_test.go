package infill

import (
	"context"
	"slices"
	"testing"

	"infill/internal/lmtest"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// fakeWords is the vocabulary of the fake model: 5 special tokens, one unused,
// words and pieces.
func fakeWords() []string {
	return []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]",
		"the", "cat", "dog", "sat", "ran", "on", "mat", "rug", "un", "##seen", "##known", ".", "seen"}
}

func newTokenizer(t testing.TB) *tokenize.Tokenizer {
	t.Helper()
	tokenizer, err := lmtest.Tokenizer(fakeWords())
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// newModel makes the fake model, whose bonds have a strength, and which
// reads so many tokens.
func newModel(positions int, bond float64) *lmtest.Model {
	m := lmtest.New(len(fakeWords()), positions)
	m.Bond = bond
	return m
}

var _ LanguageModel = (*lmtest.Model)(nil)

// expected returns log p of every token in some slots while all of them are masked,
// [slots][vocabulary].
func expected(t testing.TB, m LanguageModel, ids []int, slots ...int) [][]float32 {
	t.Helper()
	ids = slices.Clone(ids)
	for _, slot := range slots {
		ids[slot] = lmtest.Mask
	}
	rows, err := m.For(&lm.Caller{}).LogProbabilities(t.Context(), []lm.Row{{IDs: ids, Positions: slots}})
	if err != nil {
		t.Fatal(err)
	}
	return rows[0]
}

// listener is a model that notes the rows that it is asked for.
type listener struct {
	*lmtest.Model
	rows []lm.Row
}

func (m *listener) For(*lm.Caller) lm.Asker { return m }

func (m *listener) LogProbabilities(ctx context.Context, rows []lm.Row) ([][][]float32, error) {
	m.rows = append(m.rows, rows...)
	return m.Model.LogProbabilities(ctx, rows)
}

var _ LanguageModel = (*listener)(nil)

// followed is how many chains a test of a law follows. The race detector's run, with
// -short, follows half: enough for the same limits.
func followed(chains int) int {
	if testing.Short() {
		return chains / 2
	}
	return chains
}

// chainOptions are the defaults of chains over all that the fake's slots may take.
func chainOptions() asked {
	o := asked{}
	c := newAskedChains("dmala")
	o.Chains = &c
	return o
}

// asked holds all that a test may ask for side by side, in plain types. Its method
// is Chains if there are some, Draws if there are samples, else Search.
type asked struct {
	Slots          Lists
	Speech         Parts
	Ban            Words
	Fill           FillKind
	Case           Case
	Distinct       bool
	Blank, Context string
	Top            int
	Seed           uint64
	Order          Order
	Budget         Budget
	Samples        int
	Temperature    float64
	Rank           Rank
	Chains         *askedChains
}

type askedChains struct {
	Sampler    string
	Energy     lm.Energy
	Steps      int
	WarmUp     int // halfSteps is half of the steps
	StepSize   float64
	Balance    string
	Gradient   lm.Gradient
	Candidates int
	Initial    Start
}

const halfSteps = -1

// newAskedChains are the defaults of a sampler. Unlike those of Chains, its zeros are
// numbers.
func newAskedChains(sampler string) askedChains {
	return askedChains{Sampler: sampler, Steps: 50, WarmUp: halfSteps, Candidates: 250}
}

// mustSampler reads a sampler, which a test names; nil for none that is known.
func mustSampler(text string) samplers.Sampler {
	s, err := samplers.Parse(text)
	if err != nil {
		return nil
	}
	return s
}

// textSamplers lists the names of the samplers that fill text.
func textSamplers() (names []string) {
	for _, s := range samplers.All() {
		d := s.Describe()
		if d.OnText != nil {
			names = append(names, d.Name)
		}
	}
	return names
}

// orNone returns n, or None for 0.
func orNone(n int) int {
	if n == 0 {
		return None
	}
	return n
}

func (o asked) request(template string) Request {
	r := Request{Template: template, Blank: o.Blank, Context: o.Context, Top: o.Top, Seed: o.Seed}
	r.Fit = Fit{Slots: o.Slots, Speech: o.Speech, Ban: o.Ban, Fill: o.Fill, Case: o.Case, Distinct: o.Distinct}
	samples, temperature := o.Samples, o.Temperature
	switch c := o.Chains; {
	case c != nil:
		own := Chains{Sampler: mustSampler(c.Sampler), Energy: Energy(c.Energy), Steps: orNone(c.Steps),
			WarmUp: orNone(c.WarmUp), StepSize: c.StepSize, Balance: samplers.Balance(c.Balance),
			Gradient: Gradient(c.Gradient), Candidates: orNone(c.Candidates), Initial: c.Initial,
			Samples: samples, Temperature: temperature, Rank: o.Rank}
		if c.WarmUp == halfSteps {
			own.WarmUp = 0
		}
		r.Method = own
	case o.Samples != 0:
		r.Method = Draws{Samples: samples, Temperature: temperature, Rank: o.Rank, Order: o.Order, Budget: o.Budget}
	default:
		r.Method = Search{Order: o.Order, Budget: o.Budget}
	}
	return r
}

// withOriginals is a request whose blanks replaced words.
func withOriginals(r Request, words []string) Request {
	r.Originals = words
	return r
}
