package score

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"infill/internal/phrase"
)

// place is where a value belongs: to the word in a range of characters of a
// text, or to the whole text, whose range is empty.
type place struct {
	text       int64
	start, end int
}

// values returns surprisals of words, or log-likelihoods of texts.
func (c *command) values(r row) map[place]float64 {
	s := r.scores[0]
	if !c.Words {
		return map[place]float64{{text: r.turn}: s.LogLikelihood}
	}
	values := map[place]float64{}
	for _, w := range s.Words {
		values[place{r.turn, w.Start, w.End}] = r.surprisal(w.LogLikelihood)
	}
	return values
}

// compared says how the values of a further model compare with those of the first.
func (c *command) compared(first, further map[place]float64) string {
	all := newComparison(first, further)
	if c.Words {
		return all.text("word", units[c.Base].name)
	}
	return all.text("text", "nats")
}

// comparison relates the values of two models at the places that both have.
// Words are the same where their ranges are, whatever tokens they have.
type comparison struct {
	texts map[int64]moments
	both  moments
	alone int // places of one of the models
}

func newComparison(first, values map[place]float64) *comparison {
	c := &comparison{texts: map[int64]moments{}}
	for at, y := range values {
		x, ok := first[at]
		if ok {
			c.texts[at.text] = c.texts[at.text].plus(moments{1, x, y, x * x, y * y, x * y}, 1)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(c.texts)) {
		c.both = c.both.plus(c.texts[text], 1)
	}
	c.alone = len(first) + len(values) - 2*int(c.both[0])
	return c
}

// moments are the number of pairs (x, y), and their sums of x, y, x², y² and xy.
type moments [6]float64

func (m moments) plus(o moments, times float64) moments {
	for i := range m {
		m[i] += times * o[i]
	}
	return m
}

// difference returns the mean of y - x.
func (m moments) difference() float64 { return (m[2] - m[1]) / m[0] }

// z returns Fisher's z of Pearson's r.
func (m moments) z() float64 {
	return math.Atanh((m[0]*m[5] - m[1]*m[2]) / math.Sqrt((m[0]*m[3]-m[1]*m[1])*(m[0]*m[4]-m[2]*m[2])))
}

// standardError returns that of an estimate, by the jackknife over texts,
// because words of one text depend on each other. It is NaN for one text.
func (c *comparison) standardError(estimate func(moments) float64) float64 {
	var without []float64
	for _, text := range slices.Sorted(maps.Keys(c.texts)) {
		without = append(without, estimate(c.both.plus(c.texts[text], -1)))
	}
	n := float64(len(without))
	return math.Sqrt(stat.Variance(without, nil) * (n - 1) * (n - 1) / n)
}

// text says how much larger the values of the further model are, and how the two
// sets of values correlate. noun is that of a place.
func (c *comparison) text(noun, unit string) string {
	if len(c.texts) == 0 {
		return "no " + noun + " has a value by both"
	}
	text := phrase.Counted(int(c.both[0]), noun)
	if noun != "text" {
		text += " of " + phrase.Counted(len(c.texts), "text")
	}
	if c.alone > 0 {
		text += fmt.Sprintf(" (%d only by one of the two)", c.alone)
	}
	text += fmt.Sprintf(", mean difference %+.3g", c.both.difference())
	deviation := c.standardError(moments.difference)
	if !math.IsNaN(deviation) {
		text += fmt.Sprintf(" ± %.2g", deviation)
	}
	text += " " + unit
	z := c.both.z()
	if math.IsNaN(z) {
		return text
	}
	text += fmt.Sprintf(", r %.3f", math.Tanh(z))
	spread := c.standardError(moments.z)
	if math.IsNaN(spread) || math.IsInf(z, 0) {
		return text
	}
	reach := distuv.StudentsT{Sigma: 1, Nu: float64(len(c.texts) - 1)}.Quantile(0.975) * spread
	return text + fmt.Sprintf(", 95 %% interval %.3f to %.3f", math.Tanh(z-reach), math.Tanh(z+reach))
}
