package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// ScaleRule says how seconds at the papers' sizes are worked out.
const ScaleRule = "At the papers' sizes, seconds are those of the results times the paper's number of updates, " +
	"steps, chains, trainings and pixels, each over that of the results. **run** means that the results have those " +
	"sizes."

// factor returns how many times the work of the results the paper's sizes take.
func (run Run) factor(of Results) (float64, error) {
	product := 1.0
	for _, r := range run.Ratios {
		here := r.Here
		if here == 0 {
			var err error
			here, err = of.setting(r.Name)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", run.Name, err)
			}
		}
		product *= r.Paper / here
	}
	return product, nil
}

// secondsTable lists the stored results: their commands, and the processor time
// of all cells, also at the papers' sizes.
func secondsTable(all map[string]Results) (string, error) {
	lines := [][]string{
		{"results", "command", "cells", "seconds", "at the paper's sizes", "the paper's sizes"},
		{"---", "---", "---:", "---:", "---:", "---"},
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sum, err := all[name].seconds()
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		run, _ := RunOf(name)
		seconds := fmt.Sprintf("%.0f", sum)
		if sum == 0 {
			seconds = run.Takes
		}
		at := ""
		switch {
		case len(run.Ratios) > 0:
			factor, err := run.factor(all[name])
			if err != nil {
				return "", err
			}
			at = twoDigits(sum * factor)
		case run.Sizes != "":
			at = "run"
		}
		command := code(run.Command)
		if run.Before != "" {
			command = code(run.Before) + ", then " + command
		}
		lines = append(lines, []string{code(name), command, strconv.Itoa(len(all[name])), seconds, at, run.Sizes})
	}
	return markdown(lines), nil
}

// seconds returns the processor time of all cells that know theirs.
func (r Results) seconds() (sum float64, err error) {
	for _, row := range r {
		if row["seconds"] == "" {
			continue
		}
		seconds, err := strconv.ParseFloat(row["seconds"], 64)
		if err != nil {
			return 0, err
		}
		sum += seconds
	}
	return sum, nil
}

// twoDigits writes a number with two digits that count, and commas between
// thousands.
func twoDigits(x float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return message.NewPrinter(language.English).Sprintf("%.0f", math.Round(x/unit)*unit)
}
