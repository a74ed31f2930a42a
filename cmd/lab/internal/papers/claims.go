package papers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Claim is something that a paper says and that stored results can carry: that
// one number is below another, or that two are about equal.
type Claim struct {
	Text string // as "DMALA below GWG (steps 5)"
	// Place is where the paper says it: a table and its numbers, or a sentence.
	Place string
	// Sets are the paper's data sets that the claim stands for, with their two
	// cells. A sentence or a figure has none, unless a table tells of the same.
	Sets []Set
	// Stated says that the paper has the order in words or in a picture. Else
	// it follows from the cells of Sets.
	Stated bool
	// Low and High are the numbers here: Low's is the smaller one.
	Low, High Cell
	// Margin, if it is not 0, makes it a claim of equivalence: Low less High,
	// less Shift, is between -Margin and Margin.
	Margin, Shift float64
}

type Set struct {
	Name      string
	Low, High Place
}

// A Cell is a number of the stored results, or of nothing but itself.
type Cell struct {
	Results, Number string // "" for a number that is given
	Where           map[string]string
	Given           float64
	// Log takes the natural logarithm, so that a difference is a ratio.
	Log bool
	// Less is a label, as sampler=gwg: the number is less that of the cell
	// that has it in place of its own.
	Less string
}

func (c Cell) String() string {
	if c.Results == "" {
		return fmt.Sprint(c.Given)
	}
	var labels []string
	for name, value := range c.Where {
		labels = append(labels, name+"="+value)
	}
	slices.Sort(labels)
	text := fmt.Sprintf("%s %s %s", c.Results, c.Number, strings.Join(labels, ";"))
	if c.Less != "" {
		text += " less " + c.Less
	}
	return text
}

// key tells claims apart: one question of the same numbers is one claim.
func (c Claim) key() string {
	return fmt.Sprint(c.Low, " < ", c.High, " ", c.Low.Log, c.Margin, c.Shift)
}

// results lists the stored results that the claim reads.
func (c Claim) results() (list []string) {
	for _, cell := range []Cell{c.Low, c.High} {
		if cell.Results != "" && !slices.Contains(list, cell.Results) {
			list = append(list, cell.Results)
		}
	}
	return list
}

// paperSays returns what the cells say of Low below High: in which data sets it is
// so, in which the other way, and in which nothing follows, with the reason.
func (c Claim) paperSays() (so, opposite, open []string) {
	for _, set := range c.Sets {
		switch o := order(set.Low, set.High); o {
		case Below:
			so = append(so, set.Name)
		case Above:
			opposite = append(opposite, set.Name)
		default:
			open = append(open, set.Name+" "+string(o))
		}
	}
	return so, opposite, open
}

// inPaper returns what stands in the paper, and whether the claim has a
// direction. A claim of cells has one if none is opposite and one is decided.
func (c Claim) inPaper() (text string, directed bool) {
	so, opposite, open := c.paperSays()
	name := c.Text
	if c.Low.Results != "" {
		name, _, _ = strings.Cut(name, " (") // without where the claim is about
	}
	if c.Stated {
		if len(opposite) > 0 {
			return name + ", but its table has the opposite: " + strings.Join(opposite, ", "), true
		}
		return "", true
	}
	directed = len(opposite) == 0 && len(so) > 0
	if directed {
		return name + ": " + strings.Join(append(so, open...), ", "), true
	}
	a, b, _ := strings.Cut(name, " below ")
	if len(so)+len(opposite) > 0 {
		text = fmt.Sprintf("no order of %s and %s: below in %s, above in %s", a, b, listed(so), listed(opposite))
	} else {
		text = fmt.Sprintf("no order of %s and %s: %s", a, b, strings.Join(open, ", "))
	}
	return text, false
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
