package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// ScaleRule says how seconds at the papers' sizes are worked out.
const ScaleRule = "At the papers' sizes, seconds are those of the results times the paper's number of updates, " +
	"steps, chains, trainings and pixels, each over that of the results. **run** means that the results have those " +
	"sizes."

// A Scale is how an experiment grows to a paper's sizes.
type Scale struct {
	Results string
	Sizes   string  // the paper's, in words
	Ratios  []Ratio // none if the results have the paper's sizes
}

// A Ratio is a size of the paper over that of the results.
type Ratio struct {
	Name  string
	Paper float64
	Here  float64 // of the results; 0 if their signature has it by its name
}

// Scales returns the experiments whose sizes at the papers' scale are known.
// The papers, or their authors' programs, have these sizes.
func Scales() []Scale {
	const pixels8, pixels28 = 8 * 8, 28 * 28
	chainsAndSteps := []Ratio{{Name: "chains", Paper: 50}, {Name: "steps", Paper: 1000}}
	return []Scale{
		{"arm-toy", "ARM: one bit, four p0; the slides name no steps", nil},
		{"dlp-figure-3", "DLP: 5 × 5 sites, 50,000 steps; 10 chains, not 2", nil},
		{"dlp-figure-4-steps", "DLP: 784 × 500 units, 100 chains, 5,000 steps; random weights", nil},
		{"dlp-figure-7", "DLP: 50,000 and 125,000 steps", nil},
		{"fhmm", "GWG: one target, 100 chains, 5,000 steps",
			[]Ratio{{Name: "chains", Paper: 100}, {Name: "steps", Paper: 5000}, {Name: "repeats", Paper: 1}}},
		{"gwg-ising", "GWG: 10 × 10 sites, 100 chains, 5,000 steps", nil},
		{"networks", "DLP: 50 chains, 1,000 steps, on these tables", chainsAndSteps},
		{"networks-breast-cancer", "DLP: 50 chains, 1,000 steps, on this table", chainsAndSteps},
		{"networks-unit", "DLP: 50 chains, 1,000 steps, on these tables", chainsAndSteps},
		{"rbm-random", "DLP: one machine, 784 × 500 units, 100 chains, 5,000 steps",
			[]Ratio{{Name: "chains", Paper: 100}, {Name: "steps", Paper: 5000}, {Name: "repeats", Paper: 1}}},
		{"rbm-steps", "DLP: one machine, 784 × 500 units, 100 chains, 5,000 steps",
			[]Ratio{{Name: "chains", Paper: 100}, {Name: "steps", Paper: 5000}, {Name: "repeats", Paper: 1}}},
		{"sizes-arm-vae", "ARM: 200 bits, a million updates, 784 pixels, 5 trainings of ARM alone",
			[]Ratio{{Name: "updates", Paper: 1e6}, {Name: "repeats", Paper: 5}, {"pixels", pixels28, pixels8}}},
		{"sizes-arm-vae-halves", "ARM: 200 bits, 1,100,000 updates, 784 pixels, of ARM alone",
			[]Ratio{{Name: "updates", Paper: 1.1e6}, {"pixels", pixels28, pixels8}}},
		{"sizes-learn-contacts", "GWG: 10,000 updates, 256 chains; 100 sites of 21 states",
			[]Ratio{{Name: "updates", Paper: 10000}}},
		{"sizes-learn-images", "DLP: 64 features, 8 blocks, 50,000 updates, 784 pixels; without annealing",
			[]Ratio{{Name: "updates", Paper: 50000}, {"pixels", pixels28, pixels8}}},
		{"sizes-learn-ising", "DLP: 25 × 25 sites, 10,000 updates, 256 chains",
			[]Ratio{{Name: "updates", Paper: 10000}}},
	}
}

// factor returns how many times the work of the results the paper's sizes take.
func (s Scale) factor(of Results) (float64, error) {
	product := 1.0
	for _, r := range s.Ratios {
		here := r.Here
		if here == 0 {
			var err error
			here, err = of.setting(r.Name)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", s.Results, err)
			}
		}
		product *= r.Paper / here
	}
	return product, nil
}

// setting returns the number that the signature of the results has for a
// setting.
func (r Results) setting(name string) (float64, error) {
	for field := range strings.SplitSeq(r[0]["signature"], "|") {
		text, found := strings.CutPrefix(field, name+":")
		if found {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("the signature has no %s", name)
}

// secondsTable lists the processor time of all cells of each results, and at
// the papers' sizes.
func secondsTable(all map[string]Results) (string, error) {
	scales := map[string]Scale{}
	for _, s := range Scales() {
		scales[s.Results] = s
	}
	lines := [][]string{
		{"results", "cells", "seconds", "at the paper's sizes", "the paper's sizes"},
		{"---", "---:", "---:", "---:", "---"},
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sum, err := all[name].seconds()
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if sum == 0 {
			continue
		}
		s := scales[name]
		at := ""
		switch {
		case len(s.Ratios) > 0:
			factor, err := s.factor(all[name])
			if err != nil {
				return "", err
			}
			at = twoDigits(sum * factor)
		case s.Sizes != "":
			at = "run"
		}
		lines = append(lines, []string{code(name), strconv.Itoa(len(all[name])), fmt.Sprintf("%.0f", sum), at, s.Sizes})
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
