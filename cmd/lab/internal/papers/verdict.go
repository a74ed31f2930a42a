package papers

import (
	"fmt"
	"slices"
	"strings"
)

// enough is the least number of repetitions behind a verdict.
const enough = 5

// Rule is the rule of verdicts, in words.
const Rule = "The paper's order holds if the 95 % interval of the difference, over at least five repetitions, leaves " +
	"out zero. Repetitions are chains, or trainings, which are compared in pairs. **yes**: each order of the paper " +
	"holds. **partly**: those that follow do not. **no**: none does. **no verdict**: fewer repetitions, or no numbers."

// A Claim is that one number is below another.
type Claim struct {
	Text    string // as "DMALA below GWG"
	Results string // name of the stored results
	Number  string
	// Low and High are labels of the two cells. Low's number is the smaller
	// one.
	Low, High map[string]string
}

// A Finding is what the results say of a claim.
type Finding int

// Findings.
const (
	Unknown  Finding = iota // fewer repetitions than enough
	Holds                   // the interval is on the side of the claim
	Level                   // the interval holds zero
	Reversed                // the interval is on the other side
)

func (f Finding) String() string { return [...]string{"unknown", "holds", "level", "reversed"}[f] }

// Check compares a claim with the results.
func (c Claim) Check(all map[string]Results) (Difference, Finding, error) {
	of, found := all[c.Results]
	if !found {
		return Difference{}, Unknown, fmt.Errorf("%s: no results are stored as %s", c.Text, c.Results)
	}
	low, err := of.where(c.Low).number(c.Number)
	if err != nil {
		return Difference{}, Unknown, fmt.Errorf("%s: %s, %v: %w", c.Text, c.Results, c.Low, err)
	}
	high, err := of.where(c.High).number(c.Number)
	if err != nil {
		return Difference{}, Unknown, fmt.Errorf("%s: %s, %v: %w", c.Text, c.Results, c.High, err)
	}
	d := low.less(high)
	return d, d.finding(), nil
}

func (d Difference) finding() Finding {
	switch {
	case d.Count < enough:
		return Unknown
	case d.High < 0:
		return Holds
	case d.Low > 0:
		return Reversed
	}
	return Level
}

// Verdict returns yes, partly, no or no verdict, and where the claims fail.
func Verdict(claims []Claim, all map[string]Results) (string, error) {
	var level, reversed []string
	for _, c := range claims {
		_, finding, err := c.Check(all)
		if err != nil {
			return "", err
		}
		switch finding {
		case Unknown:
			return "no verdict: fewer than five repetitions", nil
		case Level:
			level = append(level, c.Text)
		case Reversed:
			reversed = append(reversed, c.Text)
		}
	}
	failed := len(level) + len(reversed)
	if failed == 0 {
		return "yes", nil
	}
	word := "partly"
	if failed == len(claims) {
		word = "no"
	}
	var parts []string
	if len(level) > 0 {
		parts = append(parts, "level: "+together(level))
	}
	if len(reversed) > 0 {
		parts = append(parts, "reversed: "+together(reversed))
	}
	return word + "; " + strings.Join(parts, "; "), nil
}

// together lists claims. Those that differ only in where they are about, which
// stands in parentheses, become one.
func together(texts []string) string {
	var names []string
	places := map[string][]string{}
	for _, text := range texts {
		name, place, _ := strings.Cut(strings.TrimSuffix(text, ")"), " (")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		places[name] = append(places[name], place)
	}
	for i, name := range names {
		if places[name][0] != "" {
			names[i] += " (" + strings.Join(places[name], ", ") + ")"
		}
	}
	return strings.Join(names, ", ")
}
