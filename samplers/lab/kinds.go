package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"infill/samplers"
)

// A Kind is a kind of target. Its flags are its parameters, to be set before
// [Kind.Problem].
type Kind struct {
	Name, Title, Help string
	Flags             *flag.FlagSet

	setup setup
}

// setup holds the parameters of a kind.
type setup interface {
	register(f *flag.FlagSet)
	// problem finds exact means with random numbers of the seed, where it needs
	// any.
	problem(ctx context.Context, seed uint64) (*Problem, error)
}

// Kinds lists the kinds of targets, with their default parameters.
func Kinds() []*Kind {
	ising, potts, table, rbm := defaultIsing(), defaultPotts(), defaultTable(), defaultRBM()
	kinds := []*Kind{
		{"ising", "an Ising model", "An Ising model on a torus, U = a Σ_i Σ_k s_i s_k + b Σ_i s_i with s = ±1, where the\ndouble sum counts every edge twice, as in the papers.", nil, &ising},
		{"potts", "a Potts model", "A Potts model on a torus, U = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i], every edge once.", nil, &potts},
		{"rbm", "a restricted Boltzmann machine", "A restricted Boltzmann machine, trained here on bars and stripes by contrastive\ndivergence, or random. The chains' states are also compared with reference draws, by\nthe maximum mean discrepancy (MMD).", nil, &rbm},
		{"table", "a random table", "A table of random energies, one for each state. Errors of the gradient and of the\nconditionals make it as unkind as a language model: proposals then see estimates\nonly, and the conditionals belong to no joint distribution.", nil, &table},
	}
	for _, k := range kinds {
		k.Flags = flag.NewFlagSet(k.Name, flag.ContinueOnError)
		k.setup.register(k.Flags)
	}
	return kinds
}

// Problem makes the target with its exact means. A seed is for those that are
// estimated by a long run.
func (k *Kind) Problem(ctx context.Context, seed uint64) (*Problem, error) {
	return k.setup.problem(ctx, seed)
}

// NewProblem makes a target that is written as samplers are:
// "ising:size=3x3,coupling=0.2", "potts:field=0/0.1/0.2".
func NewProblem(ctx context.Context, text string, seed uint64) (*Problem, error) {
	list, err := samplers.ParseList(text)
	if err != nil {
		return nil, refuse("target", "%w", err)
	}
	var names []string
	for _, k := range Kinds() {
		if names = append(names, k.Name); k.Name != list[0].Name || len(list) != 1 {
			continue
		}
		for _, a := range list[0].Settings {
			f := k.Flags.Lookup(a.Setting)
			if f == nil {
				return nil, refuse("target", "%s has no %s", k.Name, a.Setting)
			}
			if err := f.Value.Set(a.Value); err != nil {
				return nil, refuse(a.Setting, "%q is not %w", a.Value, err)
			}
		}
		return k.Problem(ctx, seed)
	}
	return nil, refuse("target", "%q is not one of %s", text, strings.Join(names, ", "))
}

// The values of flags. Their errors complete the sentence `"x" is not ...`; what
// a number may be is checked with the problem.

type number float64

func numberVar(f *flag.FlagSet, to *float64, name, usage string) {
	f.Var((*number)(to), name, usage)
}

func (v *number) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("a number")
	}
	*v = number(x)
	return nil
}

func (v *number) String() string { return decimal(float64(*v)) }

type whole int

func wholeVar(f *flag.FlagSet, to *int, name, usage string) { f.Var((*whole)(to), name, usage) }

func (v *whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("a whole number")
	}
	*v = whole(n)
	return nil
}

func (v *whole) String() string { return strconv.Itoa(int(*v)) }

// choice is one of a list; the first stands where nothing is chosen.
type choice struct {
	to *string
	of []string
}

func choiceVar(f *flag.FlagSet, to *string, name string, of []string, usage string) {
	if *to == "" {
		*to = of[0]
	}
	f.Var(&choice{to, of}, name, strings.Join(of, "|")+": "+usage)
}

func (v *choice) Set(text string) error {
	if !slices.Contains(v.of, text) {
		return errors.New("one of " + strings.Join(v.of, ", "))
	}
	*v.to = text
	return nil
}

func (v *choice) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

// list is numbers with commas, or slashes, between them.
type list[N int | float64] []N

func (v *list[N]) Set(text string) error {
	var numbers list[N]
	for word := range strings.SplitSeq(strings.ReplaceAll(text, "/", ","), ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if n := N(x); err == nil && (float64(n) == x || math.IsNaN(x)) {
			numbers = append(numbers, n)
			continue
		}
		if _, whole := any(*v).(list[int]); whole {
			return errors.New("whole numbers with commas between them")
		}
		return errors.New("numbers with commas between them")
	}
	*v = numbers
	return nil
}

func (v *list[N]) String() string { return joined(*v) }

func joined[N int | float64](numbers []N) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ",")
}

// size is the two sides of a lattice.
type size struct{ rows, columns *int }

func (v *size) Set(text string) error {
	first, second, two := strings.Cut(text, "x")
	if !two {
		second = first
	}
	rows, err := strconv.Atoi(first)
	columns, also := strconv.Atoi(second)
	if err != nil || also != nil {
		return errors.New("a size as 5x5, or 5 for both sides")
	}
	*v.rows, *v.columns = rows, columns
	return nil
}

func (v *size) String() string {
	if v.rows == nil {
		return ""
	}
	return fmt.Sprintf("%dx%d", *v.rows, *v.columns)
}

type seed uint64

func (v *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("a whole number from 0 to 2^64 - 1")
	}
	*v = seed(n)
	return nil
}

func (v *seed) String() string { return strconv.FormatUint(uint64(*v), 10) }
