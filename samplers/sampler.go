package samplers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"

	"infill/internal/option"
)

// A Sampler is a sampler with its settings. The samplers of this package are
// structs whose fields are the settings; the zero value of a field is its
// default. In all of them Balance says what an energy difference weighs in a
// proposal, Preconditioner is g, a factor of the step size for each slot, nil
// for 1, and Terms is the size of the random subset of the energy's terms that
// a step takes the gradient of, 0 for all of them. Another module may implement Sampler: see
// docs/how-to/sample-your-own-target.md.
type Sampler interface {
	// Kernel makes the transition over a target. shared draws the subset of
	// terms of a stochastic gradient, which all chains share. It must not be a
	// chain's stream, and may be nil if no such subset is drawn. If the target
	// lacks what the sampler needs, the error matches [ErrUnsupported].
	Kernel(target Target, shared *rand.Rand) (Kernel, error)
	// Describe describes the sampler. It does not depend on the settings.
	Describe() Description
}

// Description describes a sampler.
type Description struct {
	Name  string // the name that [Parse] takes
	Title string // the name in words
	Paper string // authors, title, year
	Exact bool   // whether the stationary law of the chain is the target
	// Interacting reports whether the move of a chain depends on the other chains.
	Interacting bool
	Target      string // law to which the chain converges
	Cost        string // evaluations in one step of one chain
	// Conditionals reports whether the target must be a [ConditionalTarget] or
	// a [MaskedConditionalTarget].
	Conditionals bool
	// noEnergies reports whether the chains move without energies: those of a
	// state are NaN until [State.Evaluate].
	noEnergies bool
	OnText     *OnText // nil if the sampler has nothing to say of text
}

// OnText says how to run a sampler on text, over tens of thousands of
// categories and with a language model's gradients.
type OnText struct {
	// Sampler has the settings that suit text where the defaults do not; nil if
	// the defaults do.
	Sampler Sampler
	// Start is the step size from which a warm-up adapts it; 0 for the default.
	Start float64
	// Gradient is the gradient that suits the sampler best: "local" (the direct
	// term, which needs no backward pass) or "full". It is "" if the sampler
	// uses no gradient.
	Gradient string
}

const (
	onlyExp   = "exp(U) on the categories"
	oneForAll = "1 energy and gradient"
)

// All returns all samplers of this package with their default settings, in the
// order of the documentation.
func All() []Sampler {
	return []Sampler{
		Gibbs{},
		MLMMetropolis{},
		GWG{},
		GWGX{},
		PathAuxiliary{},
		DULA{},
		DMALA{},
		AdaptiveDMALA{},
		DLMC{},
		EulerDLMC{},
		Cyclical{},
		OrdinalDULA{},
		OrdinalDMALA{},
		LocallyBalanced{},
		BlockGibbs{},
		HammingBall{},
		LatentGibbs{},
		RelaxedMALA{},
		RelaxedHMC{},
		SteinDescent{},
	}
}

func find(name string) Sampler {
	for _, s := range All() {
		if s.Describe().Name == name {
			return s
		}
	}
	return nil
}

// BuiltIn reports whether s is of this package: others have other names.
func BuiltIn(s Sampler) bool {
	own := find(s.Describe().Name)
	return own != nil && reflect.TypeOf(own) == reflect.TypeOf(s)
}

// Parse reads a sampler of this package with its settings, as in
// dmala:step-size=0.4,balance=ratio. It returns an error for an unknown name,
// setting or value, and for a setting that is given twice.
func Parse(text string) (Sampler, error) {
	named, err := option.ParseOne(text)
	if err != nil {
		return nil, err
	}
	s := find(named.Name)
	if s == nil {
		var names []string
		for _, known := range All() {
			names = append(names, known.Describe().Name)
		}
		return nil, fmt.Errorf("unknown sampler %q: valid are %s", named.Name, strings.Join(names, ", "))
	}
	for _, setting := range named.Settings {
		s, err = With(s, setting.Name, setting.Value)
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Text returns what [Parse] reads, with the settings that are not zero.
func Text(s Sampler) string {
	named := option.Named{Name: s.Describe().Name}
	for _, fact := range settingsOf(s).NonZero(s) {
		named.Settings = append(named.Settings, option.Setting{Name: fact.Name, Value: fact.Text})
	}
	return named.String()
}

// Settings lists the names of a sampler's settings, sorted.
func Settings(s Sampler) []string {
	var names []string
	for _, o := range settingsOf(s).Options() {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return names
}

// Value returns the text of a setting, its default if it is zero; "" for a
// setting that the sampler does not have.
func Value(s Sampler, setting string) string {
	set := settingsOf(s)
	for _, fact := range set.Facts(option.Changed(s, set.Settle)) {
		if fact.Name == setting {
			return fact.Text
		}
	}
	return ""
}

// With returns a sampler with one setting, by its text as in [Parse]. The error
// says which settings the sampler has, or which values the setting takes.
func With(s Sampler, setting, text string) (Sampler, error) {
	name := s.Describe().Name
	o, ok := settingsOf(s).Find(setting)
	if !ok || o.Name != setting {
		names := "it has no settings"
		if list := Settings(s); list != nil {
			names = "its settings are " + strings.Join(list, ", ")
		}
		return nil, fmt.Errorf("%s has no %s: %s", name, setting, names)
	}
	given, err := o.Given(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s %q is not %w", name, setting, text, err)
	}
	return option.With(s, []option.Given{given}), nil
}

// Take returns a sampler without one of its settings, and the text of the setting;
// "" if it is zero.
func Take(s Sampler, setting string) (rest Sampler, text string) {
	for _, fact := range settingsOf(s).NonZero(s) {
		if fact.Name == setting {
			o, _ := settingsOf(s).Find(setting)
			return option.Changed(s, func(to any) { o.Field(reflect.ValueOf(to).Elem()).SetZero() }), fact.Text
		}
	}
	return s, ""
}

// Check returns an error for a value that a setting of the sampler may not have.
func Check(s Sampler) error {
	err := settingsOf(s).Check(s)
	var wrong *option.Error
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: %s %s", s.Describe().Name, wrong.Key, wrong.Reason)
	}
	return err
}

// Suited returns a sampler with the settings that suit text instead of
// those that are zero. Its error is of a sampler of this package that is not
// for text.
func Suited(s Sampler) (Sampler, error) {
	d := s.Describe()
	if d.OnText == nil && BuiltIn(s) {
		return nil, fmt.Errorf("%s is not for text: it needs slots of another kind", d.Name)
	}
	if d.OnText == nil || d.OnText.Sampler == nil {
		return s, nil
	}
	return option.Changed(s, func(to any) { settingsOf(s).Fill(to, d.OnText.Sampler) }), nil
}

// TextKernel makes the kernel of a sampler on the slots of a text: with the
// settings that suit text, see [OnText].
func TextKernel(s Sampler, target Target, shared *rand.Rand) (Kernel, error) {
	suited, err := Suited(s)
	if err != nil {
		return nil, err
	}
	k, err := suited.Kernel(target, shared)
	if err != nil {
		return nil, err
	}
	on := s.Describe().OnText
	tuned, ok := tunedOf(k)
	if ok && on != nil && on.Start > 0 {
		err = tuned.SetStepSize(on.Start)
	}
	return k, err
}

var sets sync.Map // the settings of each sampler, by its type

func settingsOf(s Sampler) *option.Set {
	known, ok := sets.Load(reflect.TypeOf(s))
	if !ok {
		known, _ = sets.LoadOrStore(reflect.TypeOf(s), option.Of(option.Owner{Zero: s}))
	}
	return known.(*option.Set)
}

// slotsOf returns the number of slots that a setting asks for: all by default,
// if the target has fewer than byDefault.
func slotsOf(setting string, given, byDefault, slots int) (int, error) {
	if given == 0 {
		return min(byDefault, slots), nil
	}
	if given > slots {
		return 0, fmt.Errorf("%s %d: choose from 1 to the number of slots, %d", setting, given, slots)
	}
	return given, nil
}

// factorsOf returns the preconditioner g of each slot, [slots], or an error if
// there is another number of factors. nil means that all are 1.
func factorsOf(given []float64, slots int) ([]float64, error) {
	if given == nil {
		return slices.Repeat([]float64{1}, slots), nil
	}
	if len(given) != slots {
		return nil, fmt.Errorf("%d preconditioner values for %d slots: give one per slot", len(given), slots)
	}
	return given, nil
}
