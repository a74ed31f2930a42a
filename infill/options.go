package infill

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"infill/lm"
	"infill/samplers"
)

// Mode says what is done with a template.
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
	// as many rounds as there are slots, or Steps if that is less; the first chain
	// settles on the most probable token each time, the others draw at the temperature.
	ModeDecode Mode = "decode"
)

// Rank says which fills are kept.
type Rank string

const (
	// rankDistinct keeps the distinct fills of highest U among all states after the
	// warm-up, the likelier one of those that read alike.
	rankDistinct Rank = "distinct"
	// RankFinal keeps the final states of highest U, repeats included, as the papers do.
	RankFinal Rank = "final"
)

// LengthScore says by what fills of several lengths are compared.
type LengthScore string

const (
	// blankLeftToRight masks a piece together with all pieces to its right in the
	// same blank, so that neither the pieces nor the words of a fill give each other
	// away.
	blankLeftToRight LengthScore = "blank-l2r"
	// wordLeftToRight masks it with those in the same word alone (Kauf and Ivanova,
	// ACL 2023).
	wordLeftToRight LengthScore = "word-l2r"
)

// Start says where chains start.
type Start struct {
	Kind StartKind
	Fill []string // what each blank holds, where Kind is "fill"
}

// StartKind is where the starts come from.
type StartKind string

const (
	// startModel draws from the model's own conditionals with every slot masked.
	startModel StartKind = "model"
	// startRandom draws uniformly.
	startRandom StartKind = "random"
	// StartShared is one draw from the model that all chains share, as in the DISCS
	// benchmark.
	StartShared StartKind = "shared"
	// StartMask has all slots masked, and then draws one by one in a random order,
	// each from the model with those drawn before it in their places. [MASK] itself is
	// no fill that a target has an energy for, so this is the nearest start to it.
	StartMask StartKind = "mask"
	// startGiven is a given fill.
	startGiven StartKind = "fill"
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

// UnmarshalText implements encoding.TextUnmarshaler. A kind that is none is left to
// Validate.
func (s *Start) UnmarshalText(text []byte) error {
	if fill, given := strings.CutPrefix(string(text), string(startGiven)+":"); given {
		*s = Start{startGiven, strings.Split(fill, ",")}
	} else {
		*s = Start{Kind: StartKind(text)}
	}
	return nil
}

// FillKind says what a blank may take that has no list of its own.
type FillKind string

const (
	// fillWords takes words: letters and digits. A blank that is written onto the end of
	// a word goes on with it, every other begins a word of its own.
	fillWords FillKind = "words"
	// fillTokens takes punctuation too.
	fillTokens FillKind = "tokens"
	// FillAny takes everything that the model can put there, pieces that would go on
	// with the word on the left included, as the papers and other tools have it.
	FillAny FillKind = "any"
)

// Case says which capitals a fill has.
type Case string

const (
	// caseAuto gives the fills of a model without capitals those that the text asks for:
	// see tokenize.Template.Fill.
	caseAuto Case = ""
	// caseKeep leaves the letters as the model has them.
	caseKeep Case = "keep"
)

// Options says how a template is filled. Start from DefaultOptions; [Table] lists
// them with their names, values and words of help.
type Options struct {
	Mode Mode
	// Fill is what blanks without a list may take, and Case how what they take is written.
	Fill FillKind
	Case Case
	Sampling
	// Error is the relative standard error that Auto is to reach for the probability
	// of the first fill, and Budget what that may cost. Only for Auto.
	Error  float64
	Budget Budget
	// Chains is their number, 0 the default one; the final state of each is one sample of
	// the papers' protocol. Where neither a sampler nor anything that chains alone have is
	// named, it is the number of independent draws from the chain rule.
	Chains int
	// Top is the number of fills to keep.
	Top int
	// Ladder, where not nil, are the temperatures of parallel tempering, ascending.
	// The first is Temperature, the one that is drawn from; the hotter replicas of
	// each chain only swap with their neighbours.
	Ladder      []float64
	Rank        Rank
	LengthScore LengthScore
	// Context is a text that the model reads before the template, as [CLS] context [SEP] text [SEP]; "" is none.
	Context string
	// Together, where not nil, are further templates whose blanks take the same fills as
	// the template's: U is then the sum over all of them. A blank with a name answers to
	// that of its name, the others to each other in their order.
	Together []string
	// Constraints must not change while they are used.
	Constraints
	// Window is the number of tokens that the model sees of a text at most, [CLS] and
	// [SEP] included; 0 is usualWindow, and of proteins all that it takes. The model's own limit holds beside it.
	Window int
	// Pins, where not nil, hold for every slot of the template the id of the one token
	// it may take, or Free. A pinned slot stays part of the energy, so the chains draw
	// from the same distribution as without pins, conditional on the pinned tokens,
	// and log-likelihoods compare.
	Pins []int
	// Seed gives, together with the template, every random number of a run. The
	// library never draws one by itself: see NewSeed.
	Seed uint64
}

// Sampling is how chains move, and over what: what methods of an evaluation may
// differ in, as its files hold it.
type Sampling struct {
	// Sampler is Auto or one of Samplers(); Settings are those of its own that are not
	// listed here, see samplers.Describe.
	Sampler  string                `json:"sampler"`
	Settings []samplers.Assignment `json:"settings,omitempty"`
	// Steps is the length of each chain, its warm-up included. 0 keeps the starts.
	Steps int `json:"steps"`
	// WarmUp is the number of first steps that are not drawn from and in which
	// an automatic step size adapts; HalfSteps takes half of Steps, rounded down.
	WarmUp int `json:"warm_up"`
	// StepSize is α in the convention of the discrete Langevin paper: changing a
	// slot costs 1/α nats. 0 leaves it to the sampler, which adapts it in the
	// warm-up where it can. Only for samplers that have a step size.
	StepSize float64 `json:"step_size"`
	// Balance is what an energy difference weighs in a proposal, as
	// samplers.Balance reads it; "" leaves it to the sampler. Only for
	// samplers that propose from a gradient.
	Balance string `json:"balance"`
	// Gradient "" leaves it to the sampler. Only for samplers that use one.
	Gradient lm.Gradient `json:"gradient"`
	// Candidates limits every slot to the model's most probable tokens, and the
	// target with it; 0 is the whole vocabulary.
	// AutoCandidates takes 250, and fewer for an answer by Auto where fewer hold
	// nearly all that the model believes of the slot; a single slot then has the
	// whole vocabulary.
	Candidates int `json:"candidates"`
	// Joint is what U is, and Order the chain rule's.
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

// Auto, as Sampler, takes the cheapest way to probabilities of a wanted accuracy:
// enumeration, weighted draws, or chains, see Result.Method. Where an option is set that
// chains alone have, such as Steps or Initial, it is the sampler that moves chains
// where none is named.
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

// DefaultOptions returns what a user gets who names nothing but a template. The
// seed is 0.
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

// Answers tells whether a fill computes probabilities, Auto, and moves no chains.
func (o *Options) Answers() bool { return o.answers() }

// answers tells whether probabilities are asked for, and no chains: neither a sampler
// nor anything that chains alone have.
func (o *Options) answers() bool {
	return o.searches() || o.draws() || o.weighs()
}

// weighs tells whether fills are enumerated, or weighted draws made: of joints that are not
// the chain rule.
func (o *Options) weighs() bool {
	return o.Joint != JointChain && o.Sampler == Auto && o.Mode == ModeSample && o.Chains == 0 &&
		o.Rank == rankDistinct && !o.moved()
}

// moved tells whether an option is set that chains alone have.
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

// Chained returns the options of chains: with the sampler that moves them in the place of
// Auto, and with the default number of chains where none is named.
func (o Options) Chained() Options {
	o.Sampler, o.Chains = o.moves(), cmp.Or(o.Chains, defaultChains)
	return o
}

// Samplers lists the samplers that fill text by chains, the first being the one that
// moves them where none is named.
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

// has tells whether the sampler has a setting.
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

// ErrUnwanted, as the cause that a context ended for, says that nobody reads what was found by
// then: [Plan.Fill] returns at once, without a result.
var ErrUnwanted = errors.New("nobody waits for the result")

// OptionError is a value of Options that cannot be used.
type OptionError struct {
	// Option is its name in Table, for example "step-size".
	Option string
	Reason string
	// Misfit tells that it does not fit one template, while others may be filled.
	Misfit bool
}

var _ error = (*OptionError)(nil)

// Error is one line: the option and what is wrong with it.
func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

func misfit(option, format string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...), Misfit: true}
}

// Constraints narrow what blanks may take. They restrict the support: the chains
// draw from the same distribution, conditional on the fills that are left, and
// log-likelihoods compare with those of a run without them.
type Constraints struct {
	// Words lists, by the number of a blank from 1, the fills it may take. A fill
	// is one word or several, of one piece or several; a blank without a length
	// of its own takes each at the number of its pieces.
	Words map[int][]string
	// Speech lists, by the number of a blank from 1 or for all blanks under 0, the parts of speech of which its fill,
	// a single English word, has to be able to be one: "noun", "verb", "adjective", "adverb".
	Speech map[int][]string
	// Ban lists words that no blank may hold: their pieces side by side.
	Ban []string
	// Distinct keeps blanks from holding the same, but for those of one name.
	Distinct bool
	// MinCharacters and MaxCharacters bound the characters of a fill, blanks
	// between its words not counted; 0 is no bound.
	MinCharacters, MaxCharacters int
	// MinPieces and MaxPieces are the number of pieces of blanks without a length
	// of their own and without a list; 0 is one piece, and up to three for the word
	// of an only blank, which a MinPieces of 1 alone turns off. They also bound lists.
	MinPieces, MaxPieces int
}

// Any tells whether there is a constraint.
func (c *Constraints) Any() bool {
	return len(c.Words) > 0 || len(c.Speech) > 0 || len(c.Ban) > 0 || c.Distinct ||
		c.MinCharacters > 0 || c.MaxCharacters > 0 || c.MinPieces > 1 || c.MaxPieces > 0
}

// searches tells whether the likeliest fills are searched for, and proven.
func (o *Options) searches() bool {
	return o.Joint == JointChain && o.Sampler == Auto && o.Mode != ModeDecode && o.Chains == 0 &&
		o.Rank == rankDistinct && !o.moved()
}

// draws tells whether independent draws are made.
func (o *Options) draws() bool {
	return o.Joint == JointChain && o.Sampler == Auto && o.Mode == ModeSample && o.Chains > 0 && !o.moved()
}
