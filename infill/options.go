package infill

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"infill/samplers"
)

// Energies lists the values of Options.Energy, the default first: the
// pseudo-log-likelihood of the slots, each masked in turn (appendix I.6 of the
// discrete Langevin paper), and that of the filled text with nothing masked.
func Energies() []string { return []string{"pll", "filled"} }

// Gradients lists the values of Options.Gradient: the direct term alone, which
// needs no backward pass; the whole gradient; or that of a random half of the
// slots' terms.
func Gradients() []string { return []string{"local", "full", "stochastic"} }

// Initials lists the values of Options.Initial, the default first: a draw from
// the model's own conditionals with every slot masked; a uniform draw; one draw
// from the model that all chains share, as in the DISCS benchmark; or all slots
// masked, and then drawn one by one in a random order, each from the model with
// those drawn before it in their places. [MASK] itself is no fill that a target
// has an energy for, so this is the nearest start to it. One more value is a
// given fill, InitialFill and one fill for each blank, joined by commas.
func Initials() []string { return []string{"model", "random", "shared", "mask"} }

// InitialFill begins an Options.Initial that names a fill: "fill:dark,blue".
const InitialFill = "fill:"

// The values of Options.Mode.
const (
	// ModeSample draws from the target.
	ModeSample = "sample"
	// ModeBest looks for the likeliest fill by simulated annealing.
	ModeBest = "best"
	// ModeDecode decodes by confidence, without Markov chains: mask-predict.
	ModeDecode = "decode"
)

// Modes lists the values of Options.Mode, the default first.
func Modes() []string { return []string{ModeSample, ModeBest, ModeDecode} }

// LengthScores lists the values of Options.LengthScore, the default first: a piece
// is masked together with all pieces to its right in the same blank, so that
// neither the pieces nor the words of a fill give each other away; or with those
// in the same word alone (Kauf and Ivanova, ACL 2023).
func LengthScores() []string { return []string{"blank-l2r", "word-l2r"} }

// Ranks lists the values of Options.Rank, the default first.
func Ranks() []string { return []string{"distinct", "final"} }

// Samplers lists the values of Options.Sampler, the default first.
func Samplers() []string {
	names := []string{defaultSampler}
	for _, name := range samplers.Names() {
		if _, ok := presets()[name]; ok && name != defaultSampler {
			names = append(names, name)
		}
	}
	return names
}

// Options says how a template is filled. Start from DefaultOptions.
type Options struct {
	// Mode is one of Modes(). The fills of ModeBest and ModeDecode follow no known
	// law: they are ranked, and have no frequencies. ModeBest moves the chains
	// with the sampler while the temperature falls from 2 to 0.1; a given step
	// size is kept, and nothing adapts. ModeDecode takes as many rounds as there
	// are slots, or Steps if that is less; the first chain settles on the most
	// probable token each time, the others draw at the temperature.
	Mode string
	// Sampler is one of Samplers().
	Sampler string
	// Samples is the number of chains; the final state of each is one sample of
	// the papers' protocol.
	Samples int
	// Top is the number of fills to keep.
	Top int
	// Steps is the length of each chain, its warm-up included. 0 keeps the
	// initial states.
	Steps int
	// WarmUp is the number of first steps that are not drawn from and in which
	// an automatic step size adapts; HalfSteps takes half of Steps, rounded down.
	WarmUp int
	// StepSize is α in the convention of the discrete Langevin paper: changing a
	// slot costs 1/α nats. 0 leaves it to the sampler, which adapts it in the
	// warm-up where it can. Only for samplers that have a step size.
	StepSize float64
	// Balance is what an energy difference weighs in a proposal, as
	// samplers.ParseBalance reads it; "" leaves it to the sampler. Only for
	// samplers that propose from a gradient.
	Balance string
	// Candidates limits every slot to the model's most probable tokens, and the
	// target with it; 0 is the whole vocabulary.
	Candidates int
	// Energy is one of Energies().
	Energy string
	// Gradient is one of Gradients(); "" leaves it to the sampler. Only for
	// samplers that use one.
	Gradient string
	// Temperature T samples from exp(U/T).
	Temperature float64
	// Ladder, where not "", are the temperatures of parallel tempering, joined by
	// commas and ascending. The first is Temperature, the one that is drawn from;
	// the hotter replicas of each chain only swap with their neighbours.
	Ladder string
	// Initial is one of Initials(), or a given fill.
	Initial string
	// Rank is one of Ranks(): "distinct" keeps the Top distinct fills of highest
	// U among all states after the warm-up, the likelier one of those that read
	// alike; "final" keeps the Top final states, repeats included, as the papers do.
	Rank string
	// LengthScore is one of LengthScores(): by which fills of several lengths are
	// compared.
	LengthScore string
	// Constraints narrow what the blanks may take; nil for none. They must not
	// change while they are used.
	Constraints *Constraints
	// Seed gives, together with the template, every random number of a run. The
	// library never draws one by itself: see NewSeed.
	Seed uint64
}

// HalfSteps, as Options.WarmUp, is half of Options.Steps.
const HalfSteps = -1

const defaultSampler = "dmala"

// DefaultOptions returns what a user gets who names nothing but a template. The
// seed is 0.
func DefaultOptions() Options {
	return Options{
		Mode:        ModeSample,
		Sampler:     defaultSampler,
		Samples:     25,
		Top:         5,
		Steps:       50,
		WarmUp:      HalfSteps,
		Candidates:  250,
		Energy:      Energies()[0],
		Temperature: 1,
		Initial:     Initials()[0],
		Rank:        Ranks()[0],
		LengthScore: LengthScores()[0],
	}
}

// preset is what a sampler takes where the user leaves the choice to it.
type preset struct {
	// stepped samplers take a step size; stepSize is where its adaptation
	// starts, or its value, 0 being the kernel's own default.
	stepped  bool
	stepSize float64
	// balance is "" for samplers that have none, gradient for those that use none.
	balance, gradient string
	// metric samplers need the distances between tokens.
	metric bool
	// conditional samplers draw a slot from the model with that slot masked.
	conditional bool
}

// presets holds every sampler that fills text; the other kernels are for targets
// of other kinds. The square root of the papers hardly moves over 30,000
// categories; 1 with a large step size does.
func presets() map[string]preset {
	return map[string]preset{
		"dmala":          {stepped: true, stepSize: 5, balance: "1", gradient: "local"},
		"dula":           {stepped: true, stepSize: 5, balance: "1", gradient: "local"},
		"dmala-adaptive": {stepped: true, balance: "sqrt", gradient: "local"},
		"dlmc":           {stepped: true, balance: "sqrt", gradient: "local"},
		"dlmc-euler":     {stepped: true, balance: "sqrt", gradient: "local"},
		"acs":            {stepped: true, gradient: "local"},
		"gwg":            {balance: "sqrt", gradient: "local"},
		"gwg-x":          {balance: "sqrt", gradient: "local"},
		"pafs":           {balance: "sqrt", gradient: "local"},
		"mlm-mh":         {conditional: true},
		"gibbs":          {conditional: true},
		"p-ncg":          {stepped: true, balance: "sqrt", gradient: "full", metric: true},
		"gwl":            {stepped: true, balance: "sqrt", gradient: "full", metric: true},
		// These evaluate the energy of every neighbour: for few candidates only.
		"lb-1":         {balance: "sqrt"},
		"gibbs-x":      {},
		"hamming-ball": {},
	}
}

// settled returns the options with the sampler's own choices in the places that
// were left to it, and whether what the sampler can tune is to be adapted.
func (o Options) settled() (settled Options, adapt bool) {
	p := presets()[o.Sampler]
	if o.Mode != ModeSample {
		o.WarmUp = 0
	}
	if o.Mode == ModeDecode {
		// No proposals, so nothing of what shapes them.
		o.Gradient = Gradients()[0]
		return o, false
	}
	if o.WarmUp == HalfSteps {
		o.WarmUp = o.Steps / 2
	}
	adapt = o.StepSize == 0 && o.WarmUp > 0
	if o.StepSize == 0 {
		o.StepSize = p.stepSize
	}
	if o.Balance == "" {
		o.Balance = p.balance
	}
	if o.Gradient == "" {
		o.Gradient = p.gradient
	}
	return o, adapt
}

// NewSeed draws a seed from the operating system. It has 32 bits, so that a
// user can type it again.
func NewSeed() (uint64, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("draw a seed: %w", err)
	}
	return uint64(binary.LittleEndian.Uint32(b[:])), nil
}

// The largest counts that are taken. They only keep a slip of the finger from
// asking for more memory than there is.
const (
	maxSamples = 1 << 16
	maxSteps   = 1 << 24
)

// OptionError is a value of Options that cannot be used.
type OptionError struct {
	// Option is the field as the command spells it, for example "step-size".
	Option string
	Reason string
}

// Error is one line: the option and what is wrong with it.
func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

// Validate returns an *OptionError for the first value that cannot be used.
func (o *Options) Validate() error {
	choices := []struct {
		option, value string
		valid         []string
	}{
		{"mode", o.Mode, Modes()},
		{"sampler", o.Sampler, Samplers()},
		{"energy", o.Energy, Energies()},
		{"gradient", o.Gradient, append(Gradients(), "")},
		{"rank", o.Rank, Ranks()},
		{"length-score", o.LengthScore, LengthScores()},
	}
	for _, c := range choices {
		if !slices.Contains(c.valid, c.value) {
			return &OptionError{c.option, fmt.Sprintf("%q is not one of %s", c.value, strings.Join(slices.DeleteFunc(c.valid, func(s string) bool { return s == "" }), ", "))}
		}
	}
	if _, given := strings.CutPrefix(o.Initial, InitialFill); !given && !slices.Contains(Initials(), o.Initial) {
		return &OptionError{"initial", fmt.Sprintf("%q is not one of %s, or %sWORD,...", o.Initial, strings.Join(Initials(), ", "), InitialFill)}
	}
	// Comparisons are written so that NaN fails them.
	numbers := []struct {
		option string
		valid  bool
		value  any
		want   string
	}{
		{"samples", o.Samples >= 1 && o.Samples <= maxSamples, o.Samples, fmt.Sprintf("a whole number from 1 to %d", maxSamples)},
		{"top", o.Top >= 1, o.Top, "a whole number of 1 or more"},
		{"steps", o.Steps >= 0 && o.Steps <= maxSteps, o.Steps, fmt.Sprintf("a whole number from 0 to %d", maxSteps)},
		{"warm-up", o.WarmUp == HalfSteps || o.WarmUp >= 0 && o.WarmUp <= o.Steps, o.WarmUp, fmt.Sprintf("a whole number from 0 to the number of steps, %d", o.Steps)},
		{"step-size", o.StepSize >= 0 && !math.IsInf(o.StepSize, 1), o.StepSize, "a number above 0, or auto"},
		{"candidates", o.Candidates >= 0, o.Candidates, "a whole number of 0 (the whole vocabulary) or more"},
		{"temperature", o.Temperature > 0 && !math.IsInf(o.Temperature, 1), o.Temperature, "a number above 0"},
	}
	for _, c := range numbers {
		if !c.valid {
			return &OptionError{c.option, fmt.Sprintf("%v is not %s", c.value, c.want)}
		}
	}
	if o.Balance != "" {
		if _, err := samplers.ParseBalance(o.Balance); err != nil {
			return &OptionError{"balance", fmt.Sprintf("%q is not one of %s, or a number from 0.5 to 1", o.Balance, strings.Join(samplers.BalanceNames(), ", "))}
		}
	}
	p := presets()[o.Sampler]
	switch {
	case o.StepSize != 0 && !p.stepped:
		return &OptionError{"step-size", o.Sampler + " has none: leave it out"}
	case o.Balance != "" && p.balance == "":
		return &OptionError{"balance", o.Sampler + " has none to choose: leave it out"}
	case o.Gradient != "" && p.gradient == "":
		return &OptionError{"gradient", o.Sampler + " uses none: leave it out"}
	}
	if err := o.validateMode(); err != nil {
		return err
	}
	if _, err := o.ladder(); err != nil {
		return err
	}
	return o.Constraints.validate()
}

// validateMode refuses what a mode has no use for.
func (o *Options) validateMode() error {
	if o.Mode == ModeSample {
		return nil
	}
	switch {
	case o.WarmUp != HalfSteps:
		return &OptionError{"warm-up", o.Mode + " has none: leave it out"}
	case o.Ladder != "":
		return &OptionError{"ladder", o.Mode + " draws from no distribution, so there is none to temper: take mode sample"}
	case o.Steps == 0:
		return &OptionError{"steps", o.Mode + " needs at least one"}
	}
	if o.Mode == ModeBest {
		switch {
		case o.Temperature != 1:
			return &OptionError{"temperature", "best lowers it itself: leave it out"}
		case o.Gradient == "stochastic":
			return &OptionError{"gradient", "best needs the same gradient at every temperature: take local or full"}
		}
		return nil
	}
	switch {
	case o.StepSize != 0:
		return &OptionError{"step-size", "decode has none: leave it out"}
	case o.Balance != "":
		return &OptionError{"balance", "decode has none: leave it out"}
	case o.Gradient != "":
		return &OptionError{"gradient", "decode uses none: leave it out"}
	case o.Initial != Initials()[0]:
		return &OptionError{"initial", "decode always starts from slots that are all masked: leave it out"}
	}
	return nil
}

// maxRungs bounds the work that a slip of the finger can ask for.
const maxRungs = 64

// ladder reads Ladder; nil where there is none.
func (o *Options) ladder() ([]float64, error) {
	if o.Ladder == "" {
		return nil, nil
	}
	var ladder []float64
	for field := range strings.SplitSeq(o.Ladder, ",") {
		t, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		switch {
		case err != nil || !(t > 0) || math.IsInf(t, 1):
			return nil, &OptionError{"ladder", fmt.Sprintf("%q is not a temperature: list numbers above 0, as in 1,2,4", field)}
		case len(ladder) > 0 && t <= ladder[len(ladder)-1]:
			return nil, &OptionError{"ladder", fmt.Sprintf("%v after %v: temperatures must ascend", t, ladder[len(ladder)-1])}
		}
		ladder = append(ladder, t)
	}
	p := presets()[o.Sampler]
	switch {
	case len(ladder) < 2:
		return nil, &OptionError{"ladder", "one temperature alone has none to swap with: list two or more"}
	case len(ladder) > maxRungs:
		return nil, &OptionError{"ladder", fmt.Sprintf("%d temperatures, at most %d are taken", len(ladder), maxRungs)}
	case ladder[0] != o.Temperature:
		return nil, &OptionError{"ladder", fmt.Sprintf("it begins with %v, and what is drawn from is temperature %v: begin with that", ladder[0], o.Temperature)}
	case o.Sampler == "gibbs":
		return nil, &OptionError{"ladder", "replicas swap by their energies, and gibbs moves without knowing any: take another sampler"}
	case p.gradient != "" && o.Gradient == "stochastic":
		return nil, &OptionError{"ladder", "replicas with stochastic gradients cannot swap: take gradient local or full"}
	}
	return ladder, nil
}
