package chains

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"infill/cmd/lab/internal/lab"
	"infill/internal/option"
	"infill/internal/targets"
	"infill/samplers"
)

// A distribution is a target with known values, to check samplers by.
type distribution struct {
	kind       string
	parameters []lab.Label
	Target     samplers.Target
	truth      truth
	// reference holds states for the mean discrepancy, or is nil.
	reference *reference
	// pictures has data in a state's form, or is nil if states are no images.
	pictures *lab.ImageSet
	// onText gives samplers their defaults for text.
	onText bool
	// inconsistent: the conditionals are not π's, and Gibbs is not exact.
	inconsistent bool
	observables  []observable
	// independent holds a law of each slot by itself, [slots][categories], from
	// which chains can start, or is nil if the target has no such laws.
	independent [][]float64
}

func (d *distribution) String() string {
	text := d.kind
	for _, p := range d.parameters {
		text += ", " + p.Name + " " + p.Value
	}
	return text
}

// observable is a function of the category of one slot.
type observable struct {
	slot  int
	value []float64 // value for each category
}

// numbered returns an observable a slot, with one value a category.
func numbered(slots int, value ...float64) []observable {
	list := make([]observable, slots)
	for j := range list {
		list[j] = observable{j, value}
	}
	return list
}

// indicators returns an observable for each category of each slot: 1 if the
// slot has the category, else 0.
func indicators(categories []int) []observable {
	var list []observable
	for j, k := range categories {
		for v := range k {
			value := make([]float64, k)
			value[v] = 1
			list = append(list, observable{j, value})
		}
	}
	return list
}

// enumerate returns the name of its method, and the exact means of the
// observables by a list of all states.
func (d *distribution) enumerate(ctx context.Context) (string, []float64, error) {
	e, err := targets.Enumerate(ctx, d.Target)
	if err != nil {
		return "", nil, err
	}
	var means []float64
	for _, o := range d.observables {
		means = append(means, e.Mean(func(state []int) float64 { return o.value[state[o.slot]] }))
	}
	return fmt.Sprintf("enumeration of %d states", e.Len()), means, nil
}

// positions draws the state at which each chain starts, [chains × slots]: each
// slot uniform, or by the target without interactions (Ising and Potts: the
// field alone; RBM: the data's means).
func (d *distribution) positions(initial string, streams []*rand.Rand) ([]int, error) {
	if initial == "uniform" {
		return samplers.RandomPositions(d.Target, streams), nil
	}
	if d.independent == nil {
		return nil, lab.Refuse("initial", "independent has no meaning for a %s: choose uniform", d.kind)
	}
	return lab.DrawFrom(d.independent, streams), nil
}

type truth struct {
	method string
	means  []float64 // of the observables, in their order; empty if the target is too large
}

var errTooLarge = errors.New("too large for exact means")

// settle stores the exact means, or a note if the target is too large.
func (d *distribution) settle(exact func() (string, []float64, error)) (err error) {
	d.truth.method, d.truth.means, err = exact()
	if errors.Is(err, errTooLarge) {
		d.truth.method = "none, and no log RMSE: " + err.Error()
		err = nil
	}
	return err
}

func (d *distribution) settleSmall(ctx context.Context) error {
	return d.settle(func() (string, []float64, error) {
		if states := lab.StatesOf(d.Target.Categories()); states > targets.MaxStates {
			return "", nil, fmt.Errorf("%w: %.2g states", errTooLarge, states)
		}
		return d.enumerate(ctx)
	})
}

type kind struct {
	name string
	// flags defines the parameters with their defaults. It returns a maker,
	// which reads the parameters when it runs.
	flags func(f *pflag.FlagSet) maker
}

// maker makes a target and finds its exact means.
type maker func(ctx context.Context, in *lab.Inputs) (*distribution, error)

func kinds() []kind {
	return []kind{{"ising", newIsing}, {"potts", newPotts}, {"rbm", newRBM}, {"fhmm", newHiddenChains},
		{"table", newTable}, {"text", newText}}
}

// another makes the target of repetition n, from 0: a target that is drawn at
// random is drawn by its --target-seed and n.
func another(ctx context.Context, in *lab.Inputs, f *pflag.FlagSet, target maker, n int) (*distribution, error) {
	own := f.Lookup("target-seed")
	if own == nil {
		return target(ctx, in)
	}
	given := own.Value.String()
	seed, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		return nil, lab.WrongValue(own.Name, given, err)
	}
	if err := own.Value.Set(strconv.FormatUint(seed+uint64(n), 10)); err != nil {
		return nil, lab.WrongValue(own.Name, given, err)
	}
	d, err := target(ctx, in)
	return d, errors.Join(err, own.Value.Set(given))
}

func settings(f *pflag.FlagSet, names ...string) []lab.Label {
	list := make([]lab.Label, len(names))
	for i, name := range names {
		list[i] = lab.Label{Name: name, Value: f.Lookup(name).Value.String()}
	}
	return list
}

// NewDistribution makes the target that text describes, written as samplers
// are: "ising:size=3x3,coupling=0.2", "potts:field=0/0.1/0.2". It is the target
// of a repetition, from 0.
func NewDistribution(ctx context.Context, in *lab.Inputs, text string, repeat int) (*distribution, error) {
	list, err := option.ParseNamed(text)
	if err != nil {
		return nil, lab.Refuse("target", "%w", err)
	}
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
		if k.name != list[0].Name || len(list) != 1 {
			continue
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		make := k.flags(flags)
		for _, a := range list[0].Settings {
			f := flags.Lookup(a.Name)
			if f == nil {
				return nil, lab.Refuse("target", "%s has no %s", k.name, a.Name)
			}
			if err := f.Value.Set(a.Value); err != nil {
				return nil, lab.WrongValue(a.Name, a.Value, err)
			}
		}
		return another(ctx, in, flags, make, repeat)
	}
	return nil, lab.Refuse("target", "%q is not one of %s", text, strings.Join(names, ", "))
}
