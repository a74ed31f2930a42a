package product

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/internal/eval/corpus"
	"infill/internal/logmath"
	"infill/internal/parallel"
	"infill/lm"
)

// The joints of two blanks, by the names of their rows.
const (
	leftToRight = "l2r"
	rightToLeft = "r2l"
	expU        = "exp U"
	compatible  = "AG"
)

var jointNames = []string{leftToRight, rightToLeft, expU, compatible}

// closeEnough is the total variation of a step below which the search for the
// most nearly compatible joint ends, and mostSteps is the most that it makes.
const (
	closeEnough = 1e-6
	mostSteps   = 100000
)

// jointStudy holds the flags of the study of joints.
type jointStudy struct {
	texts             *[]string
	sentences, tokens *int
	model             *string
}

func newJoints() *lab.Study {
	s := lab.NewStudy("joints", "Compare joint laws of two blanks, and how likely each finds the true words",
		`A masked model's conditionals of two blanks fit to no joint law. Of two words of a sentence, each one
token of the model, masked together, compare four laws over the likeliest tokens of each: that of
the chain rule from left to right (l2r), which infill's P is, from right to left (r2l), exp U, and
the most nearly compatible law (AG: Arnold and Gokhale 1998; for masked models Torroba Hennigen and
Kim, ACL 2023), which minimises the sum of the conditionals' Kullback-Leibler divergences from its
own. Half of the sentences have two neighbours masked, half two words at random. Take texts that
the model was not trained on.`)
	j := &jointStudy{}
	j.texts = lab.DefineFlag(s.Flags, "texts", nil,
		"files with a sentence on each line, with commas between them (needed)",
		filesOf, joinedWords)
	j.sentences = lab.WholeFlag(s.Flags, "sentences", 200, 4, 1<<30,
		"sentences of all files together, drawn by the seed")
	j.tokens = lab.WholeFlag(s.Flags, "tokens", 200, 2, 2000,
		"likeliest tokens of each blank, with both masked; the true "+
			"one stands in place of the last if it is not among them")
	j.model = s.Flags.String("model", "", "`NAME` of a model, or a folder with one (default: the built-in)")
	s.Plan = j.plan
	return s
}

// Names of the kinds of pairs of blanks.
const (
	neighbours = "neighbours"
	atRandom   = "at random"
)

// plan lays out the cells: a joint for each kind of blanks, and what both joints
// come from.
func (j *jointStudy) plan(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
	texts, err := readTexts(in, *j.texts)
	if err != nil {
		return nil, err
	}
	model, err := openLanguage(ctx, *j.model, in)
	if err != nil {
		return nil, lab.Refuse("model", "%w", err)
	}
	pairs, err := drawPairs(model, texts, *j.sentences, seed)
	if err := errors.Join(err, model.Close()); err != nil {
		return nil, err
	}
	run := &jointRun{of: j, pairs: pairs}
	columns := []lab.Column{
		{Name: "nats", Format: "%.3f", Definition: "of the two true words, log of the joint with the sign turned"},
		{Name: "less-l2r", Format: "%.3f", Definition: "the same less that of l2r, sentence by sentence"},
	}
	for _, other := range jointNames {
		columns = append(columns, lab.Column{Name: "tv-" + lab.Plain(other), Format: "%.3f", Table: 1,
			Definition: "total variation between the joint and " + other})
	}
	for _, other := range jointNames {
		columns = append(columns, lab.Column{Name: "kl-" + lab.Plain(other), Format: "%.3f", Table: 2,
			Definition: "Kullback-Leibler divergence of the joint from " + other + ", nats"})
	}
	columns = append(columns,
		lab.Column{Name: "mass", Format: "%.3f", Table: 3, Definition: "P of the listed pairs, left to right"},
		lab.Column{Name: "absent", Format: "%.3f", Table: 3,
			Definition: "share of the true words that are not among the likeliest tokens"},
		lab.Column{Name: "incompatibility", Format: "%.3f", Table: 3, Definition: "sum of the divergences of the " +
			"conditionals from those of AG, the least that there is, over all tokens, nats"},
		lab.Column{Name: "steps", Format: "%.0f", Table: 3, Definition: "of the search for AG"},
		lab.Column{Name: "sentences", Format: "%.0f", Table: 3})
	p := lab.NewPlan(fmt.Sprintf("joint laws of two blanks, by %s", model.name), columns)
	p.Between = "sentences"
	for _, kind := range []string{together, neighbours, atRandom} {
		for _, name := range jointNames {
			p.Add(1, func(ctx context.Context, b *lab.Bench) error { return run.record(ctx, b, kind, name) },
				lab.Label{Name: "joint", Value: name}, lab.Label{Name: "blanks", Value: kind})
		}
		p.Add(1, func(ctx context.Context, b *lab.Bench) error { return run.whole(ctx, b, kind) },
			lab.Label{Name: "joint", Value: "all"}, lab.Label{Name: "blanks", Value: kind})
	}
	return p, nil
}

// maskedPair is a sentence with two of its words.
type maskedPair struct {
	kind  string
	ids   []int
	slots [2]int // positions in ids, from left to right
}

// drawPairs draws sentences. The first half has two neighbours masked, each a
// token of its own, the second half two such words at random.
func drawPairs(model *language, texts []*corpus.Corpus, sentences int, seed uint64) (pairs []maskedPair, err error) {
	random := rand.New(rand.NewPCG(seed, 0))
	var lines []string
	for _, text := range texts {
		lines = append(lines, text.Raw()...)
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, line := range lines {
		if len(pairs) == sentences {
			return pairs, nil
		}
		shared := shareText([]*language{model}, released.Replace(line))
		var chosen [][2]int
		kind := neighbours
		if len(pairs) >= (sentences+1)/2 {
			kind = atRandom
		}
		for i, one := range shared.places {
			for _, other := range shared.places[i+1:] {
				if kind == atRandom || other[0] == one[0]+1 {
					chosen = append(chosen, [2]int{one[0], other[0]})
				}
			}
		}
		if len(chosen) > 0 {
			pairs = append(pairs, maskedPair{kind, shared.ids[0], chosen[random.IntN(len(chosen))]})
		}
	}
	if len(pairs) < sentences {
		return nil, lab.Refuse("sentences", "%d have two such words, and %d are wanted", len(pairs), sentences)
	}
	return pairs, nil
}

// jointRun compares the joints of all pairs once, for all cells.
type jointRun struct {
	of    *jointStudy
	pairs []maskedPair
	found []foundJoints
}

// foundJoints is what comes of a pair of blanks.
type foundJoints struct {
	kind            string
	nats            map[string]float64 // of the true pair, by joint
	tv, kl          map[[2]string]float64
	mass, absent    float64
	incompatibility float64
	steps           int
}

func (r *jointRun) measure(ctx context.Context, b *lab.Bench) (err error) {
	if r.found != nil {
		return nil
	}
	model, err := openLanguage(ctx, *r.of.model, &lab.Inputs{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	next := 0
	var found []foundJoints
	err = parallel.Each(ctx, lm.InFlight(0), func(context.Context) (maskedPair, error) {
		if next == len(r.pairs) {
			return maskedPair{}, io.EOF
		}
		next++
		return r.pairs[next-1], nil
	}, func(ctx context.Context, p maskedPair) (foundJoints, error) {
		return p.joints(ctx, model, *r.of.tokens)
	}, func(f foundJoints) error {
		found = append(found, f)
		return b.Tick(ctx, len(found), len(r.pairs))
	})
	r.found = found
	return err
}

// joints asks the model for the conditionals of a pair of blanks, and compares
// the joints that they give.
func (p maskedPair) joints(ctx context.Context, model *language, tokens int) (f foundJoints, err error) {
	both, err := chains.Expected(ctx, model.MaskedLM, p.ids, p.slots[:])
	if err != nil {
		return f, err
	}
	f.kind = p.kind
	var lists [2][]int
	var truth [2]int
	for k, slot := range p.slots {
		lists[k] = model.likeliest(both[k], tokens)
		truth[k] = slices.Index(lists[k], p.ids[slot])
		if truth[k] < 0 {
			truth[k] = len(lists[k]) - 1
			lists[k][truth[k]] = p.ids[slot]
			f.absent += 0.5
		}
	}
	t := &pairTable{rows: len(lists[0]), columns: len(lists[1])}
	for k, list := range lists {
		for _, id := range list {
			t.alone[k] = append(t.alone[k], float64(both[k][id]))
		}
		t.given[k], err = p.given(ctx, model, k, lists)
		if err != nil {
			return f, err
		}
	}
	f.compare(t, truth)
	return f, nil
}

// given returns log f of each listed token in blank k given each in the other,
// [rows × columns] of the pair's table.
func (p maskedPair) given(ctx context.Context, model *language, k int, lists [2][]int) ([]float64, error) {
	var rows []lm.Row
	for _, id := range lists[1-k] {
		ids := slices.Clone(p.ids)
		ids[p.slots[k]] = model.MaskID()
		ids[p.slots[1-k]] = id
		rows = append(rows, lm.Row{IDs: ids, Positions: p.slots[k : k+1]})
	}
	answers, err := model.LogProbabilities(ctx, rows)
	if err != nil {
		return nil, err
	}
	columns := len(lists[1])
	logf := make([]float64, len(lists[0])*columns)
	for other, answer := range answers {
		for own, id := range lists[k] {
			at := own*columns + other
			if k == 1 {
				at = other*columns + own
			}
			logf[at] = float64(answer[0][id])
		}
	}
	return logf, nil
}

// pairTable holds log f of two blanks, a in the first and b in the second, over
// the whole vocabulary.
type pairTable struct {
	rows, columns int
	alone         [2][]float64 // log f(a) and log f(b), both masked
	given         [2][]float64 // log f(a|b) and log f(b|a), [rows × columns]
}

// laws returns the joints that need no search, as logarithms, each normalised,
// and log P of the whole table from left to right.
func (t *pairTable) laws() (laws map[string][]float64, mass float64) {
	laws = map[string][]float64{}
	for name, of := range map[string]func(a, b, at int) float64{
		leftToRight: func(a, _, at int) float64 { return t.alone[0][a] + t.given[1][at] },
		rightToLeft: func(_, b, at int) float64 { return t.alone[1][b] + t.given[0][at] },
		expU:        func(_, _, at int) float64 { return t.given[0][at] + t.given[1][at] },
	} {
		law := make([]float64, t.rows*t.columns)
		for at := range law {
			law[at] = of(at/t.columns, at%t.columns, at)
		}
		whole := floats.LogSumExp(law)
		if name == leftToRight {
			mass = math.Exp(whole)
		}
		floats.AddConst(-whole, law)
		laws[name] = law
	}
	return laws, mass
}

// conditionals returns f(a|b) over the listed a, and f(b|a) over the listed b.
func (t *pairTable) conditionals() (first, second []float64) {
	first = make([]float64, t.rows*t.columns)
	for b := range t.columns {
		column := make([]float64, t.rows)
		for a := range column {
			column[a] = t.given[0][a*t.columns+b]
		}
		logmath.Normalise(column)
		for a, l := range column {
			first[a*t.columns+b] = math.Exp(l)
		}
	}
	second = slices.Clone(t.given[1])
	for a := range t.rows {
		row := second[a*t.columns : (a+1)*t.columns]
		logmath.Normalise(row)
		for b, l := range row {
			row[b] = math.Exp(l)
		}
	}
	return first, second
}

// nearest returns the joint whose conditionals are nearest to the given ones: it
// minimises Σ_b KL(q(·|b)‖μ(·|b)) + Σ_a KL(q(·|a)‖μ(·|a)) (Arnold and Gokhale
// 1998). first is q(a|b) and second q(b|a), [rows × columns]. It also returns the
// minimum, 0 if they are compatible, and the steps of the search.
func nearest(first, second []float64, columns int) (joint []float64, least float64, steps int) {
	n := len(first)
	joint = make([]float64, n)
	for at := range joint {
		joint[at] = 1 / float64(n)
	}
	rowSums := make([]float64, n/columns)
	columnSums := make([]float64, columns)
	sum := func() {
		clear(rowSums)
		clear(columnSums)
		for at, p := range joint {
			rowSums[at/columns] += p
			columnSums[at%columns] += p
		}
	}
	next := make([]float64, n)
	for moved := 1.0; moved >= closeEnough && steps < mostSteps; steps++ {
		sum()
		for at := range next {
			next[at] = (first[at] + second[at]) / (1/rowSums[at/columns] + 1/columnSums[at%columns])
		}
		floats.Scale(1/floats.Sum(next), next)
		moved = floats.Distance(next, joint, 1) / 2
		joint, next = next, joint
	}
	sum()
	for at, p := range joint {
		least += divergence(first[at], p/columnSums[at%columns]) + divergence(second[at], p/rowSums[at/columns])
	}
	return joint, least, steps
}

// divergence returns p ln(p/q), a term of a Kullback-Leibler divergence.
func divergence(p, q float64) float64 {
	if p == 0 {
		return 0
	}
	return p * math.Log(p/q)
}

// compare fills in what comes of the table. truth has the places of the true
// words.
func (f *foundJoints) compare(t *pairTable, truth [2]int) {
	laws, mass := t.laws()
	f.mass = mass
	first, second := t.conditionals()
	var joint []float64
	joint, f.incompatibility, f.steps = nearest(first, second, t.columns)
	for at, p := range joint {
		joint[at] = math.Log(p)
	}
	laws[compatible] = joint
	f.nats, f.tv, f.kl = map[string]float64{}, map[[2]string]float64{}, map[[2]string]float64{}
	for _, one := range jointNames {
		f.nats[one] = -laws[one][truth[0]*t.columns+truth[1]]
		for _, other := range jointNames {
			for at, l := range laws[one] {
				p := math.Exp(l)
				f.tv[[2]string{one, other}] += math.Abs(p-math.Exp(laws[other][at])) / 2
				if p > 0 {
					f.kl[[2]string{one, other}] += p * (l - laws[other][at])
				}
			}
		}
	}
}

// values returns a number of each sentence of a kind.
func (r *jointRun) values(kind string, number func(foundJoints) float64) (values []float64) {
	for _, f := range r.found {
		if kind == together || kind == f.kind {
			values = append(values, number(f))
		}
	}
	return values
}

// record records a joint.
func (r *jointRun) record(ctx context.Context, b *lab.Bench, kind, name string) error {
	if err := r.measure(ctx, b); err != nil {
		return err
	}
	estimate := func(column string, number func(foundJoints) float64) {
		b.Estimate(column)(lab.MeanAndError(r.values(kind, number)))
	}
	estimate("nats", func(f foundJoints) float64 { return f.nats[name] })
	if name != leftToRight {
		estimate("less-l2r", func(f foundJoints) float64 { return f.nats[name] - f.nats[leftToRight] })
	}
	for _, other := range jointNames {
		if other == name {
			continue
		}
		estimate("tv-"+lab.Plain(other), func(f foundJoints) float64 { return f.tv[[2]string{name, other}] })
		estimate("kl-"+lab.Plain(other), func(f foundJoints) float64 { return f.kl[[2]string{name, other}] })
	}
	return nil
}

// whole records what does not belong to one joint.
func (r *jointRun) whole(ctx context.Context, b *lab.Bench, kind string) error {
	if err := r.measure(ctx, b); err != nil {
		return err
	}
	for column, number := range map[string]func(foundJoints) float64{
		"mass":            func(f foundJoints) float64 { return f.mass },
		"absent":          func(f foundJoints) float64 { return f.absent },
		"incompatibility": func(f foundJoints) float64 { return f.incompatibility },
		"steps":           func(f foundJoints) float64 { return float64(f.steps) },
	} {
		b.Estimate(column)(lab.MeanAndError(r.values(kind, number)))
	}
	b.Number("sentences", float64(len(r.values(kind, func(foundJoints) float64 { return 0 }))))
	return nil
}
