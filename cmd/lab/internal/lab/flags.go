package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"infill/internal/logmath"
	"infill/internal/option"
	"infill/samplers"
)

const (
	// MaxCategories is the largest number of categories of a slot, because a
	// run keeps each slot in a byte.
	MaxCategories = 256
	// MaxChains and MaxSteps are the most chains, and the most steps of each.
	MaxChains = 1 << 14
	MaxSteps  = 1 << 30
)

// value is a flag's value. Errors of parse complete `"x" is not ...`.
type value[T any] struct {
	at    *T
	parse func(string) (T, error)
	text  func(T) string
}

func (v value[T]) Set(text string) error {
	x, err := v.parse(text)
	if err == nil {
		*v.at = x
	}
	return err
}

func (v value[T]) String() string { return v.text(*v.at) }
func (value[T]) Type() string     { return "value" }

func DefineFlag[T any](f *pflag.FlagSet, name string, at T, usage string, parse func(string) (T, error),
	text func(T) string) *T {
	f.Var(value[T]{&at, parse, text}, name, usage)
	return &at
}

// WrongValue is the error for a wrong value; wanted says what is right.
func WrongValue(name, text string, wanted error) error {
	if errors.Is(wanted, strconv.ErrSyntax) || errors.Is(wanted, strconv.ErrRange) {
		wanted = errors.New("a whole number of 0 or more, below 2^64")
	}
	return Refuse(name, "%q is not %w", text, wanted)
}

// NumberFlag is for a finite number; bound is "", " of 0 or more", " above 0".
func NumberFlag(f *pflag.FlagSet, name string, at float64, bound, usage string) *float64 {
	return DefineFlag(f, name, at, usage, func(text string) (float64, error) {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !logmath.Finite(x) || bound != "" && x < 0 || bound == " above 0" && x == 0 {
			return 0, errors.New("a finite number" + bound)
		}
		return x, nil
	}, Decimal)
}

// Decimal writes a number with as few digits as tell it apart.
func Decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func WholeFlag(f *pflag.FlagSet, name string, at, low, high int, usage string) *int {
	return DefineFlag(f, name, at, usage, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("a whole number from %d to %d", low, high)
		}
		return n, nil
	}, strconv.Itoa)
}

func TargetSeed(f *pflag.FlagSet, usage string) *uint64 { return f.Uint64("target-seed", 1, usage) }

// ChoiceFlag is a flag for one of the words, by default words[0].
func ChoiceFlag(f *pflag.FlagSet, name string, words []string, usage string) *string {
	return DefineFlag(f, name, words[0], strings.Join(words, "|")+": "+usage, func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", errors.New("one of " + strings.Join(words, ", "))
		}
		return text, nil
	}, func(text string) string { return text })
}

// ChoicesFlag defines a flag whose value is a list of words, separated by commas.
func ChoicesFlag(f *pflag.FlagSet, name string, at, words []string) *[]string {
	usage := "some of " + strings.Join(words, ", ") + ", with commas between them"
	return DefineFlag(f, name, at, usage, func(text string) ([]string, error) {
		list := strings.Split(text, ",")
		for _, word := range list {
			if !slices.Contains(words, word) {
				return nil, fmt.Errorf("a list: %q is not one of %s", word, strings.Join(words, ", "))
			}
		}
		return list, nil
	}, func(list []string) string { return strings.Join(list, ",") })
}

func SamplersFlag(f *pflag.FlagSet, name, at, usage string) *[]Spec {
	specs, err := ParseSpecs(at)
	if err != nil {
		panic(err) // the program's own default is wrong
	}
	return DefineFlag(f, name, specs, usage, func(text string) ([]Spec, error) {
		specs, err := ParseSpecs(text)
		if err != nil {
			err = fmt.Errorf("a list of samplers: %s", strings.TrimPrefix(err.Error(), "samplers: "))
		}
		return specs, err
	}, LabelsOf)
}

// NumbersFlag defines a flag for finite numbers, or for whole numbers of 1 or
// more, separated by commas or slashes.
func NumbersFlag[N int | float64](f *pflag.FlagSet, name string, at []N, usage string) *[]N {
	_, whole := any(at).([]int)
	return DefineFlag(f, name, at, usage, func(text string) (numbers []N, err error) {
		for word := range strings.SplitSeq(strings.ReplaceAll(text, "/", ","), ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			switch {
			case whole && (err != nil || x != math.Trunc(x) || x < 1 || x > MaxCategories):
				return nil, fmt.Errorf("whole numbers from 1 to %d with commas between them", MaxCategories)
			case err != nil || !logmath.Finite(x):
				return nil, errors.New("finite numbers with commas between them")
			}
			numbers = append(numbers, N(x))
		}
		return numbers, nil
	}, Joined)
}

func Joined[N int | float64](numbers []N) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ",")
}

type Size struct{ Rows, Columns int }

func (s Size) Sites() int { return s.Rows * s.Columns }

// maxSites bounds a lattice, so that a mistyped digit fails at once.
const maxSites = 1 << 16

// SizeFlag defines the flag for the size of a lattice, as 5x5.
func SizeFlag(f *pflag.FlagSet, at Size, usage string) *Size {
	return DefineFlag(f, "size", at, usage, func(text string) (Size, error) {
		first, second, two := strings.Cut(text, "x")
		if !two {
			second = first
		}
		r, err := strconv.Atoi(first)
		c, also := strconv.Atoi(second)
		if err != nil || also != nil || r < 1 || c < 1 || r > maxSites/c {
			return Size{}, fmt.Errorf("a size as 5x5, or 5 for both sides, up to %d sites", maxSites)
		}
		return Size{r, c}, nil
	}, func(s Size) string { return fmt.Sprintf("%dx%d", s.Rows, s.Columns) })
}

// AllSamplers stands, in a list of samplers, for every sampler that suits the target.
const AllSamplers = "all"

type Spec struct {
	Sampler samplers.Sampler // nil for all of them, which a comparison unfolds
	// Label is the text as typed: the name in results, and of random streams.
	Label string
	// Steps is the length of each chain; 0 for the comparison's number.
	Steps int
	// Blind is whether the proposal knows no gradient, so that each of its
	// changes is as likely as another.
	Blind bool
}

func Named(s samplers.Sampler) Spec { return Spec{Sampler: s, Label: samplers.Text(s)} }

func LabelsOf(specs []Spec) string {
	var labels []string
	for _, s := range specs {
		labels = append(labels, s.Label)
	}
	return strings.Join(labels, ",")
}

// ParseSpecs reads samplers with commas between them. There are two more settings
// than [samplers.Parse] reads: steps, as in
// "gibbs,dmala:step-size=0.4,balance=ratio,gwg:steps=500", and gradient=none of
// gwg. "all" becomes a single spec, which a comparison unfolds.
func ParseSpecs(text string) (specs []Spec, err error) {
	list, err := option.ParseNamed(text)
	if err != nil {
		return nil, Refuse("samplers", "%w", err)
	}
	for _, named := range list {
		s, err := newSpec(named)
		if err != nil {
			return nil, Refuse("samplers", "%w", err)
		}
		if slices.ContainsFunc(specs, func(earlier Spec) bool { return earlier.Label == s.Label }) {
			return nil, Refuse("samplers", "%q is given twice", s.Label)
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func newSpec(named option.Named) (s Spec, err error) {
	s.Label = named.String()
	steps, given := named.Take("steps")
	if given {
		s.Steps, err = strconv.Atoi(steps)
		if err != nil || s.Steps < 1 {
			return s, fmt.Errorf("%s: steps %q is not a whole number of 1 or more", named.Name, steps)
		}
	}
	gradient, given := named.Take("gradient")
	if given && (named.Name != "gwg" || gradient != "none") {
		return s, fmt.Errorf("%s: gradient %q: only gwg takes gradient, and only none", named.Name, gradient)
	}
	s.Blind = given
	if s.Label == AllSamplers {
		return s, nil
	}
	var names []string
	for _, known := range samplers.All() {
		names = append(names, known.Describe().Name)
	}
	if !slices.Contains(names, named.Name) {
		return s, fmt.Errorf("%q is not one of %s, %s", named.Name, AllSamplers, strings.Join(names, ", "))
	}
	s.Sampler, err = samplers.Parse(named.String())
	return s, err
}

// CheckedSpecs refuses a spec that only comparisons take.
func CheckedSpecs(list []Spec) error {
	if slices.ContainsFunc(list, func(s Spec) bool { return s.Sampler == nil || s.Steps > 0 }) {
		return Refuse("samplers",
			"all, and steps of one sampler, are not for trainings: name the samplers, and give --steps")
	}
	return nil
}
