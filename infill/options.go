package infill

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"infill/lm"
	"infill/samplers"
)

// Options says how to fill a template. Start from DefaultOptions. Table lists the options with their names, values and
// help.
//
// Two fields choose the method: chains if Chains is set, else independent draws if Samples is set, else a search for
// the likeliest fills. Slots, Ban, Speech, Distinct and the patterns of blanks narrow which fills are allowed, and
// change no probability.
type Options struct {
	// Slots lists, by the number of a blank from 1, the fills that the blank may take. A fill is one word or several. A
	// blank typed without a length may have the length of any fill in its list.
	Slots Lists
	// Speech lists parts of speech, "noun", "verb", "adjective" or "adverb", by the number of a blank from 1, or under
	// 0 for all blanks. Such a blank takes only a single English word that can be a listed part of speech.
	Speech Lists
	// Ban lists words that no blank may hold. A ban also forbids pieces that spell the word side by side.
	Ban Words
	// Distinct forbids two blanks to hold the same text, unless the blanks have the same name.
	Distinct bool
	// Fill says which fills blanks without a list may take. Case says how fills are capitalised.
	Fill FillKind
	Case Case
	// Blank is a further spelling of a blank, beside [MASK], ___, <mask> and the model's own mask; "" adds no spelling.
	Blank string
	// Context is a text that the model reads before the template, as [CLS] context [SEP] text [SEP]; "" for no context.
	Context string
	// Top is the number of fills to keep.
	Top int
	// Order is the order of the chain rule. Samplers do not use Order.
	Order Order
	// Samples is the number of independent draws, or of chains, each of which ends in one sample. 0 means a search, or
	// 25 chains if Chains is set.
	Samples int
	// Temperature T draws with conditionals over the whole vocabulary to the power 1/T, or runs chains on exp(U/T). A
	// search does not use it.
	Temperature float64
	// Rank says which fills of draws and chains are listed.
	Rank Rank
	// Budget bounds the cost of a search and of draws.
	Budget Budget
	// Seed determines, together with the template, every random number of a run. The library never chooses a seed by
	// itself: see NewSeed.
	Seed uint64
	// Chains, if not nil, runs Markov chains of the sampler that it names.
	Chains *Chains
}

// Chains says which sampler moves the chains, over which energy and tokens, and for how many steps.
type Chains struct {
	// Sampler is one of Samplers(). Settings are the sampler's settings that have no field here, see samplers.Describe.
	Sampler  string                `json:"sampler"`
	Settings []samplers.Assignment `json:"settings,omitempty"`
	// Energy chooses the energy U, in nats.
	Energy lm.Energy `json:"energy"`
	// Steps is the length of each chain, its warm-up included. With 0, the chains stay at their starts.
	Steps int `json:"steps"`
	// WarmUp is the number of first steps that give no draws. An automatic step size adapts during these steps.
	// HalfSteps means half of Steps, rounded down.
	WarmUp int `json:"warm_up"`
	// StepSize is α in the convention of the discrete Langevin paper: changing a slot costs 1/α nats. 0 adapts α in
	// the warm-up, if the sampler has a step size.
	StepSize float64 `json:"step_size"`
	// Balance is the weight of an energy difference in a proposal, in the syntax of samplers.Balance; "" means the
	// sampler's default.
	Balance string `json:"balance"`
	// Gradient is the gradient that the sampler uses; "" means the sampler's default.
	Gradient lm.Gradient `json:"gradient"`
	// Candidates is the number of the model's most probable tokens that every slot, and so the target, keeps; 0 keeps
	// the whole vocabulary.
	Candidates int   `json:"candidates"`
	Initial    Start `json:"initial"`

	// given is the first option of chains that was set while Sampler was still "".
	given string
}

// HalfSteps, as the value of Chains.WarmUp, means half of Steps.
const HalfSteps = -1

// defaultSamples is the number of chains if Options.Samples is 0.
const defaultSamples = 25

// DefaultOptions returns the options of a user who gives only a template. Their Seed is 0.
func DefaultOptions() Options {
	return Options{Fill: fillWords, Top: 5, Order: orderLeftToRight, Temperature: 1, Rank: rankDistinct,
		Budget: Budget{Rows: 4000}}
}

// DefaultChains returns the settings of chains for a user who names a sampler and nothing else.
func DefaultChains(sampler string) Chains {
	return Chains{Sampler: sampler, Energy: lm.PLL, Steps: 50, WarmUp: HalfSteps, Candidates: 250,
		Initial: Start{Kind: startModel}}
}

// Samplers lists the names of the samplers that can fill text by chains. The first is dmala.
func Samplers() []string {
	const first = "dmala"
	names := []string{first}
	for _, name := range samplers.Names() {
		if samplers.Describe(name).OnText != nil && name != first {
			names = append(names, name)
		}
	}
	return names
}

// FillKind says which fills a blank without a list may take. "words" takes words of letters and digits: a blank
// directly after a word continues that word, and every other blank begins a new word. "tokens" takes punctuation too.
// "any" takes every token, also pieces that continue the word on the left, as the papers and other tools do.
type FillKind string

const (
	fillWords  FillKind = "words"
	fillTokens FillKind = "tokens"
	FillAny    FillKind = "any"
)

// Case says which capitals a fill has. With "auto" or "", a fill from a model without capitals gets the capitals that
// the text asks for (see tokenize.Template.Fill). With "keep", a fill keeps the model's letters.
type Case string

const caseKeep Case = "keep"

// Rank says which fills of draws and chains are listed. "distinct" lists different fills, the likeliest first: of all
// draws, or of all states of chains after the warm-up. "final" lists every draw, or the final state of every chain,
// repeats included, as the papers do.
type Rank string

const (
	rankDistinct Rank = "distinct"
	RankFinal    Rank = "final"
)

// Order is the order in which the chain rule takes the blanks; the pieces of a blank are always neighbours. The values
// are "l2r" (left to right), "r2l", and permutations of the blanks such as "2,1,3".
type Order string

const (
	orderLeftToRight Order = "l2r"
	orderRightToLeft Order = "r2l"
)

// UnmarshalText reads "l2r", "r2l" or a permutation such as "2,1,3".
func (o *Order) UnmarshalText(text []byte) error {
	*o = Order(text)
	switch {
	case *o == "both":
		return errors.New("an order: both went in 0.3, which has one order: leave it out")
	case *o == orderLeftToRight || *o == orderRightToLeft || o.numbers() != nil:
		return nil
	}
	return errors.New("one of l2r, r2l, or a permutation of the blanks, as in 2,1,3")
}

// MarshalText returns the order as a text that UnmarshalText reads.
func (o Order) MarshalText() ([]byte, error) { return []byte(o), nil }

// setList reads a permutation, given as one text for each number.
func (o *Order) setList(values []string) error {
	return o.UnmarshalText([]byte(strings.Join(values, ",")))
}

// numbers returns the blanks of a permutation, counted from 0; nil if the order is a named one or not valid.
func (o Order) numbers() []int {
	var list []int
	for text := range strings.SplitSeq(string(o), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil
		}
		list = append(list, n-1)
	}
	for i, n := range slices.Sorted(slices.Values(list)) {
		if i != n {
			return nil
		}
	}
	return list
}

// A Budget bounds the cost of an answer by Rows, by Seconds, or by both. The zero Budget has no bound.
type Budget struct {
	Rows    int     // most model rows; a draw made again counts as one more
	Seconds float64 // most seconds since the start of the fill
}

// MarshalText writes the budget as UnmarshalText reads it: "500" for rows, "2s" for seconds.
func (b Budget) MarshalText() ([]byte, error) {
	if b.Seconds > 0 {
		return fmt.Appendf(nil, "%gs", b.Seconds), nil
	}
	return strconv.AppendInt(nil, int64(b.Rows), 10), nil
}

// UnmarshalText reads "500" as rows and "2s" as seconds.
func (b *Budget) UnmarshalText(text []byte) error {
	var read Budget
	var err error
	if seconds, timed := strings.CutSuffix(string(text), "s"); timed {
		read.Seconds, err = strconv.ParseFloat(seconds, 64)
	} else {
		read.Rows, err = strconv.Atoi(string(text))
	}
	if err != nil || !read.bounds() {
		return errors.New("a number of model rows above 0, or seconds above 0, as in 2s")
	}
	*b = read
	return nil
}

// bounds reports whether the budget is valid: finite seconds above 0, or no seconds and rows above 0.
func (b Budget) bounds() bool {
	return b.Seconds > 0 && !math.IsInf(b.Seconds, 1) || b.Seconds == 0 && b.Rows > 0
}

// room returns the number of further rows that the budget allows after rows, 0 if the seconds since began are used up.
func (b Budget) room(rows int, began time.Time) int {
	if b.Seconds > 0 && time.Since(began).Seconds() >= b.Seconds {
		return 0
	}
	if b.Rows == 0 {
		return math.MaxInt
	}
	return max(0, b.Rows-rows)
}

// share returns the used part of the budget, from 0 to 1.
func (b Budget) share(rows int, began time.Time) float64 {
	if b.Seconds > 0 {
		return min(1, time.Since(began).Seconds()/b.Seconds)
	}
	return min(1, float64(rows)/float64(max(1, b.Rows)))
}

// text writes the budget for people, as "2s" or "500 model rows".
func (b Budget) text() string {
	text, _ := b.MarshalText() // MarshalText of a Budget never fails
	if b.Seconds > 0 {
		return string(text)
	}
	return string(text) + " model rows"
}

// Start says in which states chains start.
type Start struct {
	Kind StartKind
	Fill []string // the text of each blank, if Kind is "fill"
}

// StartKind says where the starts come from. "model" draws from the model's conditionals with every slot masked,
// "random" draws uniformly, and "fill" is a given fill. "shared" is one draw from the model that all chains share, as
// in the DISCS benchmark. "mask" draws the slots one by one in a random order from the model, with later slots masked.
// This start is the nearest to a text of masks, which has no energy.
type StartKind string

const (
	startModel  StartKind = "model"
	startRandom StartKind = "random"
	StartShared StartKind = "shared"
	StartMask   StartKind = "mask"
	startGiven  StartKind = "fill"
)

// MarshalText writes the text that UnmarshalText reads: Kind, or as "fill:dark,blue".
func (s Start) MarshalText() ([]byte, error) {
	if s.Kind == startGiven {
		return []byte(string(s.Kind) + ":" + joinWords(s.Fill)), nil
	}
	return []byte(s.Kind), nil
}

// UnmarshalText reads "model", "random", "shared", "mask", or a fill as "fill:dark,blue".
func (s *Start) UnmarshalText(text []byte) error {
	if fill, given := strings.CutPrefix(string(text), string(startGiven)+":"); given {
		words, err := splitWords(fill)
		*s = Start{startGiven, words}
		return err
	}
	*s = Start{Kind: StartKind(text)}
	if !slices.Contains([]StartKind{startModel, startRandom, StartShared, StartMask}, s.Kind) {
		return errors.New("fill:WORD,..., or one of model, random, shared, mask")
	}
	return nil
}

// NewSeed returns a random seed from the operating system. The seed has only 32 bits, so that a user can retype it.
func NewSeed() (uint64, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("draw a seed: %w", err)
	}
	return uint64(binary.LittleEndian.Uint32(b[:])), nil
}

// OptionError reports a value of Options that cannot be used.
type OptionError struct {
	// Option is the option's name in Table, for example "step-size".
	Option string
	Reason string
	// Misfit reports whether only this template makes the value wrong.
	Misfit bool
}

var _ error = (*OptionError)(nil)

// Error returns one line: the option's name and what is wrong with its value.
func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

func misfit(option, format string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...), Misfit: true}
}

func wrong(option, format string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...)}
}

// Validate returns an *OptionError for the first option whose value cannot be used, or nil.
func (o *Options) Validate() error {
	fields := o.fields()
	for _, row := range table {
		if row.Chains && o.Chains == nil {
			continue
		}
		if err := row.check(o, fields[row.Name]); err != nil {
			return err
		}
	}
	switch {
	case o.Chains == nil && o.Samples == 0 && o.Temperature != 1:
		return wrong("temperature", "it shapes draws and chains: add --samples N or --sampler NAME")
	case o.Chains == nil && o.Samples == 0 && o.Rank != rankDistinct:
		return wrong("rank", "it says which draws are listed: add --samples N or --sampler NAME")
	case o.Chains == nil && o.Samples == 0 && o.Top > maxTop:
		return wrong("top", "%d are too many to prove: ask for %d at most, or make draws with samples", o.Top, maxTop)
	case o.Chains != nil && o.Order != orderLeftToRight:
		return wrong("order", "it is the chain rule's, and samplers have none: leave it out")
	case o.Chains != nil && o.Budget != DefaultOptions().Budget:
		return wrong("budget", "it bounds the chain rule, and samplers run the steps that they are given: leave it out")
	case o.Chains != nil:
		return o.Chains.validate()
	}
	return nil
}

// validate checks the options of chains, and how they fit together.
func (c *Chains) validate() error {
	if c.Sampler == "" {
		return wrong(c.given, "it is an option of samplers: name one with --sampler, as in --sampler %s", Samplers()[0])
	}
	if !slices.Contains(Samplers(), c.Sampler) {
		return wrong("sampler", "%q is not one of %s", c.Sampler, strings.Join(Samplers(), ", "))
	}
	if err := c.own().Check(); err != nil {
		return wrong("sampler", "%q is not a sampler with its settings: %v", c.own(), err)
	}
	kind := samplers.Describe(c.Sampler)
	switch {
	case c.WarmUp > c.Steps:
		return wrong("warm-up", "%d is not a whole number from 0 to the number of steps, %d", c.WarmUp, c.Steps)
	case c.StepSize != 0 && !kind.Has("step-size"):
		return wrong("step-size", "%s has none: leave it out", c.Sampler)
	case c.Balance != "" && !kind.Has("balance"):
		return wrong("balance", "%s has none to choose: leave it out", c.Sampler)
	case c.Balance != "" && new(samplers.Balance).Set(c.Balance) != nil:
		return wrong("balance", "%q is not one of auto, %s, or a number from 0.5 to 1", c.Balance,
			strings.Join(samplers.BalanceNames(), ", "))
	case c.Gradient != "" && kind.OnText.Gradient == "":
		return wrong("gradient", "%s uses none: leave it out", c.Sampler)
	}
	return nil
}

// own returns the sampler with c.Settings, the settings that have no field in Chains.
func (c *Chains) own() samplers.Spec {
	return samplers.Spec{Name: c.Sampler, Settings: c.Settings, OnText: true}
}

// spec returns c.Sampler with c.Settings, and with c.StepSize and c.Balance if they are not zero values.
func (c *Chains) spec() samplers.Spec {
	spec := c.own()
	if c.StepSize != 0 {
		spec = spec.With("step-size", c.StepSize)
	}
	if c.Balance != "" {
		spec = spec.With("balance", c.Balance)
	}
	return spec
}

// settled returns the chains with actual values instead of HalfSteps and of an empty Gradient and Balance.
func (c Chains) settled() Chains {
	if c.WarmUp == HalfSteps {
		c.WarmUp = c.Steps / 2
	}
	if c.Gradient == "" {
		c.Gradient = lm.Gradient(samplers.Describe(c.Sampler).OnText.Gradient)
	}
	if c.Balance == "" {
		c.Balance = c.spec().Value("balance")
	}
	return c
}

// Take sets the sampler and its settings, some of which are also rows of Table. The text of an error completes the
// sentence `"x" is not …`.
func (o *Options) Take(spec samplers.Spec) error {
	if !slices.Contains(Samplers(), spec.Name) {
		return errors.New("one of " + strings.Join(Samplers(), ", "))
	}
	changed := *o
	c := DefaultChains(spec.Name)
	if o.Chains != nil {
		c = *o.Chains
		c.Sampler, c.Settings, c.given = spec.Name, nil, ""
	}
	changed.Chains = &c
	for _, a := range spec.Settings {
		if row := Find(a.Setting); row.Name == "" || !row.Chains && row.Name != "temperature" {
			c.Settings = append(c.Settings, a)
		} else if err := row.Set(&changed, a.Value); err != nil {
			return fmt.Errorf("a sampler with its settings: %s: %q is not %w", a.Setting, a.Value, err)
		}
	}
	changed.Chains.Settings = c.Settings
	if err := changed.Chains.own().Check(); err != nil {
		return fmt.Errorf("a sampler with its settings: %w", err)
	}
	*o = changed
	return nil
}
