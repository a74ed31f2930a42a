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

	"infill/internal/logmath"
	"infill/samplers"
)

// A Kind is a kind of target. Its flags are its parameters, to be set before [Kind.Problem].
type Kind struct {
	Name, Title, Help string
	Flags             *flag.FlagSet

	setup setup
}

// setup holds the parameters of a kind.
type setup interface {
	register(f *flag.FlagSet)
	// problem finds exact means with random numbers of the seed, where it needs any.
	problem(ctx context.Context, seed uint64) (*Problem, error)
}

// Kinds lists the kinds of targets, with their default parameters.
func Kinds() []*Kind {
	ising, potts, table, rbm := defaultIsing(), defaultPotts(), defaultTable(), defaultRBM()
	hidden, mixture, contacts := defaultFHMM(), defaultMixture(), sampledContacts{defaultContacts()}
	kinds := []*Kind{
		{"ising", "an Ising model", "An Ising model on a torus, U = a Σ_i Σ_k s_i s_k + b Σ_i s_i with s = ±1, where " +
			"the\ndouble sum counts every edge twice, as in the papers.", nil, &ising},
		{"potts", "a Potts model", "A Potts model on a torus, U = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i], every edge once.",
			nil, &potts},
		{"rbm", "a restricted Boltzmann machine", "A restricted Boltzmann machine, trained here on bars and stripes " +
			"by contrastive\ndivergence, or random. The chains' states are also compared with reference draws, " +
			"by\nthe maximum mean discrepancy (MMD).", nil, &rbm},
		{"fhmm", "a factorial hidden Markov model", "The states of a factorial hidden Markov model given what was " +
			"observed: y_t is a weighted\nsum of binary chains that rarely change, with noise. Exact means come from " +
			"the forward and\nbackward recursions.", nil, &hidden},
		{"mixture", "a Bernoulli mixture", "A mixture of laws under which binary slots are independent. Means are " +
			"exact, and the\nchains' states are compared with exact draws (MMD).", nil, &mixture},
		{"contacts", "the Potts model of a protein", "The Potts model of a protein family, U = Σ_i h_i[x_i] + " +
			"Σ_{i<j} J_ij[x_i, x_j], made up or\nfrom a file.", nil, &contacts},
		{"table", "a random table", "A table of random energies, one for each state. Errors of the gradient and of " +
			"the\nconditionals make it as unkind as a language model: proposals then see estimates\nonly, and the " +
			"conditionals belong to no joint distribution.", nil, &table},
	}
	for _, k := range kinds {
		k.Flags = flag.NewFlagSet(k.Name, flag.ContinueOnError)
		k.setup.register(k.Flags)
	}
	return kinds
}

// Problem makes the target with its exact means. A seed is for those that are estimated by a long run.
func (k *Kind) Problem(ctx context.Context, seed uint64) (*Problem, error) {
	return k.setup.problem(ctx, seed)
}

// parameters are some of the flags of a setup, as they are set.
func parameters(s setup, names ...string) []parameter {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	s.register(f)
	list := make([]parameter, len(names))
	for i, name := range names {
		list[i] = parameter{name, f.Lookup(name).Value.String()}
	}
	return list
}

// NewProblem makes a target that is written as samplers are: "ising:size=3x3,coupling=0.2", "potts:field=0/0.1/0.2".
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

// The values of flags. Their errors complete the sentence `"x" is not ...`.

// number is finite, and where it is bounded 0 or more, or above 0.
type number struct {
	to    *float64
	bound string // "", " of 0 or more", " above 0"
}

func numberVar(f *flag.FlagSet, to *float64, name, bound, usage string) {
	f.Var(&number{to, bound}, name, usage)
}

func (v *number) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !logmath.Finite(x) || v.bound != "" && x < 0 || v.bound == " above 0" && x == 0 {
		return errors.New("a finite number" + v.bound)
	}
	*v.to = x
	return nil
}

func (v *number) String() string {
	if v.to == nil {
		return ""
	}
	return decimal(*v.to)
}

// whole is a whole number between bounds.
type whole struct {
	to        *int
	low, high int
}

// WholeVar defines the flag of a whole number between bounds.
func WholeVar(f *flag.FlagSet, to *int, name string, low, high int, usage string) {
	f.Var(&whole{to, low, high}, name, usage)
}

func (v *whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < v.low || n > v.high {
		return fmt.Errorf("a whole number from %d to %d", v.low, v.high)
	}
	*v.to = n
	return nil
}

func (v *whole) String() string {
	if v.to == nil || *v.to < v.low {
		return "" // not set
	}
	return strconv.Itoa(*v.to)
}

// WholesVar defines the flag of whole numbers of 1 or more.
func WholesVar(f *flag.FlagSet, to *[]int, name, usage string) { f.Var((*list[int])(to), name, usage) }

type seed uint64

func (v *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("a whole number of 0 or more, below 2^64")
	}
	*v = seed(n)
	return nil
}

func (v *seed) String() string { return strconv.FormatUint(uint64(*v), 10) }

// choice is one of a list.
type choice struct {
	to *string
	of []string
}

// ChoiceVar defines the flag of one of a list.
func ChoiceVar(f *flag.FlagSet, to *string, name string, of []string, usage string) {
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

// list is finite numbers, or whole ones of 1 or more, with commas or slashes between them.
type list[N int | float64] []N

func (v *list[N]) Set(text string) error {
	var numbers list[N]
	for word := range strings.SplitSeq(strings.ReplaceAll(text, "/", ","), ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		_, whole := any(*v).(list[int])
		switch {
		case whole && (err != nil || x != math.Trunc(x) || x < 1 || x > maxCategories):
			return fmt.Errorf("whole numbers from 1 to %d with commas between them", maxCategories)
		case err != nil || !logmath.Finite(x):
			return errors.New("finite numbers with commas between them")
		}
		numbers = append(numbers, N(x))
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

// maxSites bounds lattices, so that a slip of a digit is told at once.
const maxSites = 1 << 16

func (v *size) Set(text string) error {
	first, second, two := strings.Cut(text, "x")
	if !two {
		second = first
	}
	rows, err := strconv.Atoi(first)
	columns, also := strconv.Atoi(second)
	if err != nil || also != nil || rows < 1 || columns < 1 || rows > maxSites/columns {
		return fmt.Errorf("a size as 5x5, or 5 for both sides, up to %d sites", maxSites)
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
