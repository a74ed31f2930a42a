package papers

import (
	"fmt"
	"slices"
	"strings"
)

// A Claim is something that a paper says and that stored results can carry: that
// one number is below another, or that two are about equal.
type Claim struct {
	Text string // as "DMALA below GWG (steps 5)"
	// Place is where the paper says it: a table with what its numbers are, or a
	// sentence or a figure.
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

// A Set is a data set of a paper with the two cells of a claim.
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
	return fmt.Sprintf("%s %s %s", c.Results, c.Number, strings.Join(labels, ";"))
}

// key tells distinct claims apart: the same question of the same numbers is one
// claim in several rows.
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
		switch order(set.Low, set.High) {
		case Below:
			so = append(so, set.Name)
		case Above:
			opposite = append(opposite, set.Name)
		case Even:
			open = append(open, set.Name+" level")
		case Bounded:
			open = append(open, set.Name+" a bound")
		case Missing:
			open = append(open, set.Name+" missing")
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
		name = withoutPlace(c.Text)
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

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// A family makes claims about cells of one experiment that differ in a label.
type family struct{ results, number, label string }

// below claims that the cell low has a smaller number than each of the others.
// place is where the paper says so. where is empty, or the labels that the
// cells share, as "steps=5;part=x".
func (f family) below(place, where, low string, others ...string) (list []Claim) {
	for _, other := range others {
		list = append(list, Claim{Text: short(low) + " below " + short(other) + at(where), Place: place, Stated: true,
			Low: f.cell(where, low), High: f.cell(where, other)})
	}
	return list
}

// above claims that the cell high has a larger number than each of the others.
func (f family) above(place, where, high string, others ...string) (list []Claim) {
	for _, other := range others {
		list = append(list, Claim{Text: short(high) + " above " + short(other) + at(where), Place: place, Stated: true,
			Low: f.cell(where, other), High: f.cell(where, high)})
	}
	return list
}

// similar claims that the numbers of two cells differ by less than the margin.
func (f family) similar(place, where string, margin float64, one string, others ...string) (list []Claim) {
	for _, other := range others {
		list = append(list, Claim{Text: fmt.Sprintf("%s within %v of %s%s", short(one), margin, short(other),
			at(where)),
			Place: place, Stated: true, Low: f.cell(where, one), High: f.cell(where, other), Margin: margin})
	}
	return list
}

func (f family) cell(where, of string) Cell {
	labels := labelsOf(where)
	labels[f.label] = of
	return Cell{Results: f.results, Number: f.number, Where: labels}
}

// A method is a method of a paper: its name there, and its label here.
type method struct{ paper, here string }

// title returns the name of the method without the kind of its model.
func (m method) title() string {
	name, found := strings.CutPrefix(m.paper, "EBM (")
	if !found {
		return m.paper
	}
	return strings.TrimSuffix(name, ")")
}

// A paperTable is a part of a paper's table: its numbers of several data sets, which
// here one data set stands for.
type paperTable struct {
	place string // as "table 2, training log-likelihood"
	sets  []string
	cell  func(set, method string) Place
}

// pairs makes a claim of each two methods: their order in the paper follows
// from the cells. Numbers here are those of f; where is as for below.
func (t paperTable) pairs(f family, where string, methods ...method) (list []Claim) {
	for i, one := range methods {
		list = append(list, t.against(f, where, one, methods[i+1:]...)...)
	}
	return list
}

// against makes a claim of one method and each of the others that the paper has
// beside it.
func (t paperTable) against(f family, where string, one method, others ...method) (list []Claim) {
	for _, other := range others {
		c := Claim{Place: t.place, Low: f.cell(where, one.here), High: f.cell(where, other.here)}
		both := 0
		for _, set := range t.sets {
			c.Sets = append(c.Sets, Set{set, t.cell(set, one.paper), t.cell(set, other.paper)})
			if order(t.cell(set, one.paper), t.cell(set, other.paper)) != Missing {
				both++
			}
		}
		if both == 0 {
			continue // the paper says nothing of the two
		}
		first, second := one.title(), other.title()
		so, opposite, _ := c.paperSays()
		if len(opposite) > len(so) { // say it as most of the paper's sets have it
			first, second = second, first
			c.Low, c.High = c.High, c.Low
			for i, set := range c.Sets {
				c.Sets[i].Low, c.Sets[i].High = set.High, set.Low
			}
		}
		c.Text = first + " below " + second + at(where)
		list = append(list, c)
	}
	return list
}

// short returns a sampler's name without its settings, but for the slots that a
// step may change, as the papers have it: gibbs-1, gwg-5.
func short(sampler string) string {
	for prefix, name := range map[string]string{"gibbs-x:block=": "gibbs-", "gwg-x:radius=": "gwg-"} {
		settings, found := strings.CutPrefix(sampler, prefix)
		if found {
			number, _, _ := strings.Cut(settings, ",")
			return name + number
		}
	}
	name, _, _ := strings.Cut(sampler, ":")
	return name
}

// at says where a claim is about: numbers with their label, and words alone.
func at(where string) string {
	name, value, _ := strings.Cut(where, "=")
	switch name {
	case "":
		return ""
	case "steps", "p0":
		return " (" + name + " " + value + ")"
	}
	return " (" + value + ")"
}

// labelsOf reads labels as "steps=5;part=x". A value may have = itself.
func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, found := strings.Cut(part, "=")
		if found {
			labels[name] = value
		}
	}
	return labels
}

// withoutPlace leaves out of a claim's text where the claim is about.
func withoutPlace(text string) string {
	name, _, _ := strings.Cut(text, " (")
	return name
}
