package infill

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"infill/lm"
	"infill/samplers"
)

// Mode is what to do with a template.
type Mode string

// The modes. The fills of ModeBest and ModeDecode follow no known law: they are
// ranked, and have no frequencies.
const (
	// ModeSample draws from the target.
	ModeSample Mode = "sample"
	// ModeBest looks for the likeliest fill by simulated annealing: the chains move
	// with the sampler while the temperature falls from 2 to 0.1. A given step size
	// is kept, and nothing adapts.
	ModeBest Mode = "best"
	// ModeDecode decodes by confidence, without Markov chains: mask-predict. It takes
	// as many rounds as there are slots, or Steps if that is less; the first chain always takes the most
	// probable token, the others draw at the temperature.
	ModeDecode Mode = "decode"
)

// Rank says which fills to keep. "distinct" keeps the distinct fills of highest U among all states after the
// warm-up, of those that read alike the likelier. "final" keeps the final states of highest U, repeats included,
// as the papers do.
type Rank string

const (
	rankDistinct Rank = "distinct"
	RankFinal    Rank = "final"
)

// LengthScore names the score that compares fills of several lengths. "blank-l2r" masks a piece together with all
// pieces to its right in the same blank, so that the pieces and words of a fill do not reveal each other.
// "word-l2r" masks it with those to its right in the same word (Kauf and Ivanova, ACL 2023).
type LengthScore string

const (
	blankLeftToRight LengthScore = "blank-l2r"
	wordLeftToRight  LengthScore = "word-l2r"
)

// Start says where chains start.
type Start struct {
	Kind StartKind
	Fill []string // what each blank holds, where Kind is "fill"
}

// StartKind is the source of the starts: "model" draws from the model's conditionals with every slot masked, "random"
// draws uniformly, and "fill" is a given fill. "shared" is one draw from the model that all chains share, as in the
// DISCS benchmark. "mask" masks all slots and then draws one by one in a random order, each from the model with
// those drawn before it in their places: the nearest start to [MASK] itself, which has no energy.
type StartKind string

const (
	startModel  StartKind = "model"
	startRandom StartKind = "random"
	StartShared StartKind = "shared"
	StartMask   StartKind = "mask"
	startGiven  StartKind = "fill"
)

// String is what UnmarshalText reads: the kind, or "fill:dark,blue".
func (s Start) String() string {
	if s.Kind == startGiven {
		return string(s.Kind) + ":" + strings.Join(s.Fill, ",")
	}
	return string(s.Kind)
}

// MarshalText implements encoding.TextMarshaler.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A value that is no kind is left to
// Validate.
func (s *Start) UnmarshalText(text []byte) error {
	if fill, given := strings.CutPrefix(string(text), string(startGiven)+":"); given {
		*s = Start{startGiven, strings.Split(fill, ",")}
	} else {
		*s = Start{Kind: StartKind(text)}
	}
	return nil
}

// FillKind says what a blank without a list may take. "words" takes words: letters and digits; a blank directly after
// a word continues that word, every other blank begins a new one. "tokens" takes punctuation too. "any" takes every
// token, also pieces that continue the word on the left, as the papers and other tools do.
type FillKind string

const (
	fillWords  FillKind = "words"
	fillTokens FillKind = "tokens"
	FillAny    FillKind = "any"
)

// Case says which capitals a fill has: "" gives the fills of a model without capitals those that the
// text asks for (see tokenize.Template.Fill), "keep" leaves the letters as the model has them.
type Case string

const caseKeep Case = "keep"

// Options says how to fill a template. Start from DefaultOptions. Table lists the options with their names,
// values and help.
type Options struct {
	Mode Mode
	// Fill is what blanks without a list may take, and Case how fills are capitalised.
	Fill FillKind
	Case Case
	Sampling
	// Error is the relative standard error that Auto tries to reach for the probability of the first fill.
	// Budget bounds the cost. Only for Auto.
	Error  float64
	Budget Budget
	// Chains is the number of chains, 0 for the default; the final state of each is one sample of the papers'
	// protocol. If no sampler and no option of chains is set, it is the number of independent draws by the chain
	// rule.
	Chains int
	// Top is the number of fills to keep.
	Top int
	// Ladder, if not nil, are the temperatures of parallel tempering, ascending.
	// The first is Temperature, from which draws are taken; the hotter replicas of each chain only swap with
	// their neighbours.
	Ladder      []float64
	Rank        Rank
	LengthScore LengthScore
	// Context is a text that the model reads before the template, as [CLS] context [SEP] text [SEP]; "" for no context.
	Context string
	// Together, if not nil, are further templates whose blanks take the same fills as the template's: U is then
	// the sum over all of them. Blanks of one name belong together; the others are matched in their order.
	Together []string
	// Constraints must not change while they are used.
	Constraints
	// Window is the largest number of tokens that the model sees of a text, [CLS] and [SEP] included; 0 is
	// usualWindow, or for proteins the model's limit. The model's limit always holds.
	Window int
	// Pins, if not nil, hold for every slot of the template the id of the one token
	// it may take, or Free. A pinned slot stays part of the energy. So chains draw from the same distribution as
	// without pins, conditional on the pinned tokens, and log-likelihoods are comparable.
	Pins []int
	// Seed gives, together with the template, every random number of a run. The
	// library never draws one by itself: see NewSeed.
	Seed uint64
}

// Sampling is how chains move, and over what. Methods of an evaluation may differ in it.
type Sampling struct {
	// Sampler is Auto or one of Samplers(). Settings are its own settings that have no field here, see
	// samplers.Describe.
	Sampler  string                `json:"sampler"`
	Settings []samplers.Assignment `json:"settings,omitempty"`
	// Steps is the length of each chain, its warm-up included. 0 keeps the starts.
	Steps int `json:"steps"`
	// WarmUp is the number of first steps that give no draws and in which an automatic step size adapts;
	// HalfSteps takes half of Steps, rounded down.
	WarmUp int `json:"warm_up"`
	// StepSize is α in the convention of the discrete Langevin paper: changing a
	// slot costs 1/α nats. 0 leaves it to the sampler, which adapts it in the
	// warm-up where it can. Only for samplers that have a step size.
	StepSize float64 `json:"step_size"`
	// Balance is the weight of an energy difference in a proposal, as samplers.Balance reads it; "" is the
	// sampler's default. Only for samplers that propose from a gradient.
	Balance string `json:"balance"`
	// Gradient is the gradient that the sampler uses, if it uses one; "" is the sampler's default.
	Gradient lm.Gradient `json:"gradient"`
	// Candidates limits every slot to the model's most probable tokens, and the
	// target with it; 0 is the whole vocabulary.
	// AutoCandidates takes 250. For Auto it takes fewer if fewer hold nearly all of the slot's probability, and
	// the whole vocabulary for a single slot.
	Candidates int `json:"candidates"`
	// Joint is the joint distribution, and Order the order of the chain rule.
	Joint Joint `json:"joint"`
	Order Order `json:"order"`
	// Temperature T samples from exp(U/T).
	Temperature float64 `json:"temperature"`
	Initial     Start   `json:"initial"`
}

// HalfSteps, as WarmUp, is half of Steps.
const HalfSteps = -1

// Free, as a pin, leaves a slot to the sampler.
const Free = -1

// usualWindow bounds what long texts cost, which grows with the tokens that the model sees:
// three blanks among 300 words take less than three times as long as among 60.
const usualWindow = 192

// AutoCandidates, as Candidates, leaves their number to the sampler.
const AutoCandidates = -1

// Auto, as Sampler, takes the cheapest way to probabilities: see Result.Method. If an option is set that only
// chains have, such as Steps or Initial, Auto runs chains with the first of [Samplers].
const Auto = "auto"

// defaultSampler moves the chains where none is named.
const defaultSampler = "dmala"

// Chains have so many steps, and there are so many of them, where nothing else is said.
const (
	defaultSteps  = 50
	defaultChains = 25
)

// defaultCandidates is how many tokens a slot keeps of the vocabulary at most.
const defaultCandidates = 250

// DefaultOptions returns the options of a user who gives only a template. The seed is 0.
func DefaultOptions() Options {
	return Options{
		Mode: ModeSample,
		Fill: fillWords,
		Sampling: Sampling{
			Sampler:     Auto,
			Steps:       defaultSteps,
			WarmUp:      HalfSteps,
			Candidates:  AutoCandidates,
			Joint:       JointChain,
			Order:       orderBoth,
			Temperature: 1,
			Initial:     Start{Kind: startModel},
		},
		Error:       0.05,
		Budget:      Budget{Rows: 4000},
		Top:         5,
		Rank:        rankDistinct,
		LengthScore: blankLeftToRight,
	}
}

// Answers reports whether a fill computes probabilities (Auto) and runs no chains.
func (o *Options) Answers() bool { return o.answers() }

// answers reports whether probabilities are asked for, and no chains: neither a sampler
// nor anything that chains alone have.
func (o *Options) answers() bool {
	return o.searches() || o.draws() || o.weighs()
}

// weighs reports whether fills are enumerated, or weighted draws made: of joints that are not
// the chain rule.
func (o *Options) weighs() bool {
	return o.Joint != JointChain && o.Sampler == Auto && o.Mode == ModeSample && o.Chains == 0 &&
		o.Rank == rankDistinct && !o.moved()
}

// moved reports whether an option is set that chains alone have.
func (o *Options) moved() bool {
	return o.Steps != defaultSteps || o.WarmUp != HalfSteps || o.StepSize != 0 || o.Balance != "" || o.Gradient != "" ||
		o.Ladder != nil || o.Initial.Kind != startModel
}

// moves is the sampler that moves the chains where there are any.
func (s *Sampling) moves() string {
	if s.Sampler == Auto {
		return defaultSampler
	}
	return s.Sampler
}

// Chained returns options that run chains: the default sampler instead of Auto, and the default number of chains
// if none is set.
func (o Options) Chained() Options {
	o.Sampler, o.Chains = o.moves(), cmp.Or(o.Chains, defaultChains)
	return o
}

// Samplers lists the samplers that fill text by chains, the default first.
func Samplers() []string {
	names := []string{defaultSampler}
	for _, name := range samplers.Names() {
		if samplers.Describe(name).OnText != nil && name != defaultSampler {
			names = append(names, name)
		}
	}
	return names
}

// samplerNames are all that the option sampler takes, the default first.
func samplerNames() []string { return append([]string{Auto}, Samplers()...) }

// onText is how the sampler is run on text, the zero value where it is not.
func (o *Options) onText() samplers.OnText {
	if onText := samplers.Describe(o.moves()).OnText; onText != nil {
		return *onText
	}
	return samplers.OnText{}
}

// has reports whether the sampler has a setting.
func (o *Options) has(setting string) bool { return samplers.Describe(o.moves()).Has(setting) }

// own is the sampler with the settings that are no options here.
func (s *Sampling) own() samplers.Spec {
	return samplers.Spec{Name: s.moves(), Settings: s.Settings, OnText: true}
}

// spec is the sampler with what the options set.
func (o *Options) spec() samplers.Spec {
	spec := o.own()
	if o.StepSize != 0 {
		spec = spec.With("step-size", o.StepSize)
	}
	if o.Balance != "" {
		spec = spec.With("balance", o.Balance)
	}
	return spec
}

// settled returns the options with the sampler's own choices in the places that
// were left to it, and whether what the sampler can tune is to be adapted.
func (o Options) settled() (settled Options, adapt bool) {
	if o.answers() {
		return o, false // no chains, so nothing of what moves them
	}
	o = o.Chained()
	if o.Candidates == AutoCandidates {
		o.Candidates = defaultCandidates
	}
	if o.Mode != ModeSample {
		o.WarmUp = 0
	}
	if o.Mode == ModeDecode {
		// No proposals, so nothing of what shapes them.
		o.Gradient = lm.Local
		return o, false
	}
	if o.WarmUp == HalfSteps {
		o.WarmUp = o.Steps / 2
	}
	adapt = o.StepSize == 0 && o.WarmUp > 0
	onText := o.onText()
	for _, a := range onText.Settings {
		if a.Setting == "step-size" && o.StepSize == 0 {
			o.StepSize, _ = strconv.ParseFloat(a.Value, 64)
		}
	}
	if o.Balance == "" {
		o.Balance = o.spec().Value("balance")
	}
	if o.Gradient == "" {
		o.Gradient = lm.Gradient(onText.Gradient)
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

// ErrUnwanted, as the cause of a cancelled context, says that nobody reads what was found by then: Plan.Fill
// returns at once, without a result.
var ErrUnwanted = errors.New("nobody waits for the result")

// Unwanted is a context for work of which nobody reads what was found when ctx ends before it.
func Unwanted(ctx context.Context) (own context.Context, done func()) {
	own, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(ErrUnwanted) })
	return own, func() { stop(); end(nil) }
}

// InterruptedError is why a run that was called off has no result.
type InterruptedError struct {
	Place string // at which it was, in words
	err   error  // of its context
}

func (e *InterruptedError) Error() string { return "interrupted " + e.Place }
func (e *InterruptedError) Unwrap() error { return e.err }

// OptionError reports a value of Options that cannot be used.
type OptionError struct {
	// Option is its name in Table, for example "step-size".
	Option string
	Reason string
	// Misfit reports whether the value fails for this template only.
	Misfit bool
}

var _ error = (*OptionError)(nil)

// Error returns one line: the option and what is wrong with it.
func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

func misfit(option, format string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...), Misfit: true}
}

// Constraints narrow what blanks may take. They restrict the support: chains draw from the same distribution,
// conditional on the fills that are left. Log-likelihoods are comparable with those of a run without them.
type Constraints struct {
	// Words lists, by the number of a blank from 1, the fills it may take. A fill is one word or several. A
	// blank without a length of its own takes the length of each fill.
	Words map[int][]string
	// Speech lists, by the number of a blank from 1, or under 0 for all blanks, parts of speech: "noun", "verb",
	// "adjective", "adverb". The fill is a single English word that can be one of them.
	Speech map[int][]string
	// Ban lists words that no blank may hold: their pieces side by side.
	Ban []string
	// Distinct keeps blanks from holding the same, unless they have one name.
	Distinct bool
	// MinCharacters and MaxCharacters bound the characters of a fill, without the spaces between its words; 0 is
	// no bound.
	MinCharacters, MaxCharacters int
	// MinPieces and MaxPieces are the number of pieces of blanks without a length of their own and without a
	// list. 0 is one piece, or up to three for the word of an only blank; a MinPieces of 1 alone turns that off.
	// They also bound lists.
	MinPieces, MaxPieces int
}

// Any reports whether there is a constraint.
func (c *Constraints) Any() bool {
	return len(c.Words) > 0 || len(c.Speech) > 0 || len(c.Ban) > 0 || c.Distinct ||
		c.MinCharacters > 0 || c.MaxCharacters > 0 || c.MinPieces > 1 || c.MaxPieces > 0
}

// searches reports whether the likeliest fills are searched for, and proven.
func (o *Options) searches() bool {
	return o.Joint == JointChain && o.Sampler == Auto && o.Mode != ModeDecode && o.Chains == 0 &&
		o.Rank == rankDistinct && !o.moved()
}

// draws reports whether independent draws are made.
func (o *Options) draws() bool {
	return o.Joint == JointChain && o.Sampler == Auto && o.Mode == ModeSample && o.Chains > 0 && !o.moved()
}
