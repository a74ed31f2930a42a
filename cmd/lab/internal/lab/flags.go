package lab

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"infill/internal/logmath"
)

// value is that of a flag. Errors of set complete the sentence `"x" is not ...`.
type value struct {
	set  func(text string) error
	text func() string
}

func (v *value) Set(text string) error { return v.set(text) }

func (v *value) String() string {
	if v.text == nil {
		return "" // flag asks a zero value
	}
	return v.text()
}

// numberVar is of a finite number; bound is "", " of 0 or more" or " above 0".
func numberVar(f *flag.FlagSet, to *float64, name, bound, usage string) {
	f.Var(&value{func(text string) error {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !logmath.Finite(x) || bound != "" && x < 0 || bound == " above 0" && x == 0 {
			return errors.New("a finite number" + bound)
		}
		*to = x
		return nil
	}, func() string { return decimal(*to) }}, name, usage)
}

// WholeVar defines the flag of a whole number between bounds.
func WholeVar(f *flag.FlagSet, to *int, name string, low, high int, usage string) {
	f.Var(&value{func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return fmt.Errorf("a whole number from %d to %d", low, high)
		}
		*to = n
		return nil
	}, func() string {
		if *to < low {
			return "" // not set
		}
		return strconv.Itoa(*to)
	}}, name, usage)
}

func seedVar(f *flag.FlagSet, to *uint64, usage string) {
	f.Var(&value{func(text string) error {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errors.New("a whole number of 0 or more, below 2^64")
		}
		*to = n
		return nil
	}, func() string { return strconv.FormatUint(*to, 10) }}, "target-seed", usage)
}

// ChoiceVar defines the flag of one of a list.
func ChoiceVar(f *flag.FlagSet, to *string, name string, of []string, usage string) {
	f.Var(&value{func(text string) error {
		if !slices.Contains(of, text) {
			return errors.New("one of " + strings.Join(of, ", "))
		}
		*to = text
		return nil
	}, func() string { return *to }}, name, strings.Join(of, "|")+": "+usage)
}

// listVar is of texts with a separator between them.
func listVar(f *flag.FlagSet, to *[]string, name, separator, usage string) {
	f.Var(&value{func(text string) error {
		*to = strings.Split(text, separator)
		return nil
	}, func() string { return strings.Join(*to, separator) }}, name, usage)
}

// samplersVar is of a list of samplers.
func samplersVar(f *flag.FlagSet, to *[]Spec, name, usage string) {
	f.Var(&value{func(text string) error {
		list, err := ParseSpecs(text)
		if err != nil {
			return fmt.Errorf("a list of samplers: %s", strings.TrimPrefix(err.Error(), "samplers: "))
		}
		*to = list
		return nil
	}, func() string { return labelsOf(*to) }}, name, usage)
}

// NumbersVar defines the flag of finite numbers, or of whole ones of 1 or more, with commas or slashes between them.
func NumbersVar[N int | float64](f *flag.FlagSet, to *[]N, name, usage string) {
	_, whole := any(*to).([]int)
	f.Var(&value{func(text string) error {
		var numbers []N
		for word := range strings.SplitSeq(strings.ReplaceAll(text, "/", ","), ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			switch {
			case whole && (err != nil || x != math.Trunc(x) || x < 1 || x > maxCategories):
				return fmt.Errorf("whole numbers from 1 to %d with commas between them", maxCategories)
			case err != nil || !logmath.Finite(x):
				return errors.New("finite numbers with commas between them")
			}
			numbers = append(numbers, N(x))
		}
		*to = numbers
		return nil
	}, func() string { return joined(*to) }}, name, usage)
}

func joined[N int | float64](numbers []N) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ",")
}

// maxSites bounds lattices, so that a mistyped digit is reported at once.
const maxSites = 1 << 16

// sizeVar is of the two sides of a lattice.
func sizeVar(f *flag.FlagSet, rows, columns *int, usage string) {
	f.Var(&value{func(text string) error {
		first, second, two := strings.Cut(text, "x")
		if !two {
			second = first
		}
		r, err := strconv.Atoi(first)
		c, also := strconv.Atoi(second)
		if err != nil || also != nil || r < 1 || c < 1 || r > maxSites/c {
			return fmt.Errorf("a size as 5x5, or 5 for both sides, up to %d sites", maxSites)
		}
		*rows, *columns = r, c
		return nil
	}, func() string { return fmt.Sprintf("%dx%d", *rows, *columns) }}, "size", usage)
}
