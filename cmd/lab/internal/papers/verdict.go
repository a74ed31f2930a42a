package papers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// These are the least numbers of repetitions behind a verdict: of trainings and
// chains, and of targets that are drawn at random.
const (
	enough        = 5
	enoughTargets = 10
)

// significant is the largest adjusted p of a claim that is decided.
const significant = 0.05

type Finding int

const (
	Unknown  Finding = iota // too few repetitions
	Unlearnt                // at equal seconds one training has hardly begun
	NoOrder                 // the paper has none
	Holds                   // decided as the paper has it
	Level                   // not decided
	Reversed                // decided against the paper
	NotShown                // equivalence is not shown
)

func (f Finding) String() string {
	return [...]string{"too few repetitions", "nothing is learned by then", "no order in the paper", "holds", "level",
		"reversed", "not shown"}[f]
}

type Judgement struct {
	Difference
	P, Adjusted float64 // NaN if the claim is not tested
	Finding     Finding
}

// Judgements are those of all distinct claims of some rows.
type Judgements struct {
	byKey map[string]Judgement
	// Tested counts the distinct claims behind the adjustment. Decided counts
	// those of them that are decided, and Cautious those that the adjustment by
	// Benjamini and Yekutieli decides, which holds for any dependence.
	Tested, Decided, Cautious int
}

func (j *Judgements) Of(c Claim) Judgement { return j.byKey[c.key()] }

// Judge compares the rows' claims with the results, each claim once.
func Judge(rows []Row, all map[string]Results) (*Judgements, error) {
	j := &Judgements{byKey: map[string]Judgement{}}
	claims := map[string]Claim{}
	var tested []string // keys, in a fixed order
	for _, row := range rows {
		if row.notRun() != "" {
			continue
		}
		for _, c := range row.Claims {
			key := c.key()
			if _, known := claims[key]; known {
				continue
			}
			claims[key] = c
			one, err := c.judge(all)
			if err != nil {
				return nil, err
			}
			j.byKey[key] = one
			if !math.IsNaN(one.P) {
				tested = append(tested, key)
			}
		}
	}
	j.Tested = len(tested)
	slices.SortStableFunc(tested, func(a, b string) int { return cmp.Compare(j.byKey[a].P, j.byKey[b].P) })
	harmonic := 0.0 // by which Benjamini and Yekutieli are more cautious
	for i := range tested {
		harmonic += 1 / float64(i+1)
	}
	adjusted := 1.0
	for i := len(tested) - 1; i >= 0; i-- {
		one := j.byKey[tested[i]]
		adjusted = min(adjusted, one.P*float64(len(tested))/float64(i+1))
		one.Adjusted = adjusted
		one.Finding = claims[tested[i]].finding(one)
		j.byKey[tested[i]] = one
		if adjusted < significant {
			j.Decided++
		}
		if adjusted*harmonic < significant {
			j.Cautious++
		}
	}
	return j, nil
}

// judge compares a claim with the results, without the adjustment.
func (c Claim) judge(all map[string]Results) (Judgement, error) {
	j := Judgement{P: math.NaN(), Adjusted: math.NaN()}
	low, err := c.Low.estimate(all)
	if err != nil {
		return j, fmt.Errorf("%s: %w", c.Text, err)
	}
	high, err := c.High.estimate(all)
	if err != nil {
		return j, fmt.Errorf("%s: %w", c.Text, err)
	}
	j.Difference = low.less(high)
	if _, directed := c.inPaper(); !directed {
		j.Finding = NoOrder
		return j, nil
	}
	early, err := c.early(all)
	if err != nil {
		return j, fmt.Errorf("%s: %w", c.Text, err)
	}
	if early {
		j.Finding = Unlearnt
		return j, nil
	}
	least := enough
	for _, name := range c.results() {
		run, _ := RunOf(name)
		if !run.Random {
			continue
		}
		least = enoughTargets
		if low.byRepeat == nil || high.byRepeat == nil {
			return j, nil // chains of one target are no repetitions
		}
	}
	if j.Count < least {
		return j, nil
	}
	j.P = j.p(c.Margin, c.Shift)
	return j, nil
}

// p returns the p of the two-sided t test, or of the two one-sided tests of
// equivalence (Schuirmann 1987) if the margin is not 0.
func (d Difference) p(margin, shift float64) float64 {
	above := func(x float64) float64 { // the one-sided p of a mean below x
		t := (d.Mean - shift - x) / d.Error
		switch {
		case d.Error > 0:
			return distuv.StudentsT{Sigma: 1, Nu: d.Freedom}.CDF(t)
		case d.Mean-shift < x: // all repetitions differ by the same
			return 0
		}
		return 1
	}
	if margin > 0 {
		return max(above(margin), 1-above(-margin))
	}
	if d.Error == 0 && d.Mean == shift {
		return 1
	}
	one := above(0)
	return 2 * min(one, 1-one)
}

func (c Claim) finding(j Judgement) Finding {
	switch decided := j.Adjusted < significant; {
	case c.Margin > 0 && decided:
		return Holds
	case c.Margin > 0:
		return NotShown
	case !decided:
		return Level
	case j.Mean < c.Shift:
		return Holds
	}
	return Reversed
}

// early reports whether, at equal seconds, one of the trainings has made less
// than a tenth of its updates.
func (c Claim) early(all map[string]Results) (bool, error) {
	const made = "updates-at-seconds"
	for _, cell := range []Cell{c.Low, c.High} {
		rows := all[cell.Results].where(cell.Where)
		if !strings.HasSuffix(cell.Number, "-at-seconds") || rows[0][made] == "" {
			continue
		}
		by, err := rows.number(made)
		if err != nil {
			return false, err
		}
		updates, err := rows.setting("updates")
		if err != nil {
			return false, err
		}
		if by.Mean < updates/10 {
			return true, nil
		}
	}
	return false, nil
}

func (c Cell) estimate(all map[string]Results) (Estimate, error) {
	if c.Results == "" {
		return Estimate{Mean: c.Given, exact: true}, nil
	}
	of, found := all[c.Results]
	if !found {
		return Estimate{}, fmt.Errorf("no results are stored as %s", c.Results)
	}
	e, err := of.where(c.Where).number(c.Number)
	if err != nil {
		return e, fmt.Errorf("%s, %v: %w", c.Results, c.Where, err)
	}
	if c.Less != "" {
		other := maps.Clone(c.Where)
		maps.Copy(other, labelsOf(c.Less))
		base, err := of.where(other).number(c.Number)
		if err != nil {
			return e, fmt.Errorf("%s, %v: %w", c.Results, other, err)
		}
		pairs := e.minus(base)
		if pairs.Count < 2 {
			return e, errors.New("a difference needs two repetitions or more")
		}
		return pairs, nil
	}
	if c.Log {
		return e.log()
	}
	return e, nil
}

type Verdict struct {
	Word     string // yes, partly, no, or no verdict with its reason
	Held, Of int    // claims that hold, of those that are judged
	Others   []Others
}

// Others are the claims of a row with a finding, other than that they hold.
type Others struct {
	Finding Finding
	Claims  []string
}

func (o Others) String() string { return o.Finding.String() + ": " + together(o.Claims) }

func (v Verdict) String() string {
	parts := []string{v.Word}
	for _, o := range v.Others {
		parts = append(parts, o.String())
	}
	return strings.Join(parts, "; ")
}

// verdictOf returns yes, partly, no or no verdict, and where the claims fail.
func verdictOf(claims []Claim, j *Judgements) Verdict {
	texts := map[Finding][]string{}
	for _, c := range claims {
		f := j.Of(c).Finding
		texts[f] = append(texts[f], c.Text)
	}
	v := Verdict{Word: "partly", Held: len(texts[Holds])}
	for _, f := range []Finding{Holds, Level, Reversed, NotShown} {
		v.Of += len(texts[f])
	}
	switch v.Held {
	case v.Of:
		v.Word = "yes"
	case 0:
		v.Word = "no"
	}
	if v.Of == 0 {
		v.Word = "no verdict"
	}
	for _, f := range []Finding{Level, Reversed, NotShown, Unlearnt, NoOrder, Unknown} {
		if len(texts[f]) > 0 {
			v.Others = append(v.Others, Others{f, texts[f]})
		}
	}
	return v
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

func (j *Judgements) Count() string {
	of := map[Finding]int{}
	for _, one := range j.byKey {
		of[one.Finding]++
	}
	few := ""
	if of[Unknown] > 0 {
		few = fmt.Sprintf(", and %d have too few repetitions", of[Unknown])
	}
	return fmt.Sprintf("%d distinct claims are tested: %d hold, %d are reversed, %d level, and of %d equivalence is "+
		"not shown. By Benjamini and Yekutieli, whose adjustment holds for any dependence between claims, %d would be "+
		"decided in place of %d. Of %d more no p is computed: the paper has no order in %d, in %d nothing is learned "+
		"by then%s.", j.Tested, of[Holds], of[Reversed], of[Level], of[NotShown], j.Cautious, j.Decided,
		len(j.byKey)-j.Tested, of[NoOrder], of[Unlearnt], few)
}

func (row Row) Verdict(all map[string]Results, j *Judgements) (Verdict, error) {
	if row.Without != "" {
		return Verdict{Word: "no verdict: " + row.Without}, nil
	}
	if reason := row.notRun(); reason != "" {
		return Verdict{Word: "no verdict: not run: " + reason}, nil
	}
	if row.Test != "" {
		return Verdict{Word: "yes, by a test"}, nil
	}
	for _, e := range row.Exact {
		holds, err := e.holds(all)
		if err != nil {
			return Verdict{}, err
		}
		if !holds {
			return Verdict{Word: "no; not " + e.Text}, nil
		}
	}
	if len(row.Claims) == 0 {
		return Verdict{Word: "yes"}, nil
	}
	return verdictOf(row.Claims, j), nil
}

// holds reports whether exact numbers have the order.
func (e Exact) holds(all map[string]Results) (bool, error) {
	results, number, _ := strings.Cut(e.Number, " ")
	rows := all[results].where(labelsOf(e.Where))
	if len(rows) < 2 {
		return false, fmt.Errorf("%s: %d rows of %s", e.Text, len(rows), results)
	}
	before := math.Inf(-1)
	for _, row := range rows {
		x, err := strconv.ParseFloat(row[number], 64)
		if err != nil {
			return false, err
		}
		if e.Most == "" {
			if x <= before {
				return false, nil
			}
			before = x
			continue
		}
		most, err := strconv.ParseFloat(row[e.Most], 64)
		if err != nil {
			return false, err
		}
		if x > most {
			return false, nil
		}
	}
	return true, nil
}

// notRun says why a result that the row reads has not been made; "" if all have.
func (row Row) notRun() string {
	for _, name := range row.Results() {
		if run, _ := RunOf(name); run.NotRun != "" {
			return run.NotRun
		}
	}
	return ""
}
