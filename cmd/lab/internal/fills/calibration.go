package fills

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
	"infill/internal/eval/corpus"
	"infill/internal/parallel"
	"infill/lm"
	"infill/metrics"
	"infill/samplers"
)

// mostMasked is the largest number of blanks in a sentence of a calibration.
const mostMasked = 8

type calibration struct {
	*lab.Study
	texts     *[]string
	sentences *int
	blanks    *[]int
	least     *float64
	model     *string
}

func newCalibration() *lab.Study {
	s := lab.NewStudy("calibration")
	f := s.Flags
	c := &calibration{Study: s}
	c.texts = textsFlag(f)
	c.sentences = lab.WholeFlag(f, "sentences", 1000, 2, 1<<30, "sentences of the file, for each number of blanks")
	c.blanks = lab.NumbersFlag(f, "blanks", []int{1, 2}, "numbers of blanks in a sentence, with commas between them")
	c.least = lab.NumberFlag(f, "least", 0.03, " above 0", "smallest probability of a fill that is compared")
	c.model = f.String("model", "", "`NAME` of a model, or a folder with one (default: the built-in)")
	s.Plan = c.plan
	return s
}

// open opens the model. Its weights are loaded when it first runs.
func (c *calibration) open() (*infill.Filler, error) {
	return infill.Open(infill.OpenOptions{Model: *c.model, Device: "cpu"})
}

func textsFlag(f *pflag.FlagSet) *[]string {
	return lab.DefineFlag(f, "texts", nil, "files with a sentence on each line, with commas between them (needed)",
		filesOf, joinedWords)
}

// filesOf reads the names of files whose last parts differ.
func filesOf(text string) ([]string, error) {
	paths := strings.Split(text, ",")
	var names []string
	for _, path := range paths {
		name := filepath.Base(path)
		if path == "" || slices.Contains(names, name) {
			return nil, errors.New("a list of files with different names")
		}
		names = append(names, name)
	}
	return paths, nil
}

func joinedWords(list []string) string { return strings.Join(list, ",") }

func readTexts(in *lab.Inputs, paths []string) (texts []*corpus.Corpus, err error) {
	if len(paths) == 0 {
		return nil, lab.Refuse("texts", "name a file with a sentence on each line")
	}
	for _, path := range paths {
		text, err := corpus.Read(filepath.Base(path), path, nil, "")
		if err != nil {
			return nil, lab.Refuse("texts", "%w", err)
		}
		in.Add("texts", text.Name, text.SHA256)
		texts = append(texts, text)
	}
	return texts, nil
}

// maskWords chooses sentences and words that are one token of the model.
func maskWords(ctx context.Context, filler *infill.Filler, text *corpus.Corpus, sentences, blanks int,
	seed uint64) ([]corpus.Prompt, error) {
	if blanks > mostMasked {
		return nil, lab.Refuse("blanks", "%d are too many: at most %d", blanks, mostMasked)
	}
	chosen, err := text.Select(corpus.SelectOptions{Sentences: sentences, Mask: corpus.Mask{Count: blanks}, Seed: seed,
		Word:  func(word string) bool { return oneToken(filler, word) },
		Check: func(template string) string { return checkBlanks(ctx, filler, template, blanks) }})
	if err != nil {
		return nil, lab.Refuse("sentences", "%w", err)
	}
	return chosen.Prompts, nil
}

const together = "together"

func (c *calibration) plan(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
	if *c.least < 0.001 || *c.least >= 0.1 { // more than a thousand fills of a sentence are never asked for
		return nil, lab.Refuse("least", "%q is not a number of 0.001 or more, below 0.1", lab.Decimal(*c.least))
	}
	texts, err := readTexts(in, *c.texts)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, text := range texts {
		names = append(names, text.Name)
	}
	filler, err := c.open()
	if err != nil {
		return nil, lab.Refuse("model", "%w", err)
	}
	defer filler.Close()
	model := filler.Model()
	p := c.NewPlan(fmt.Sprintf("calibration of %s: fills of %s", model.Name,
		strings.Join(names, " and ")))
	p.Caption = "Probabilities of fills by tenths"
	p.Between = "sentences"
	in.Add("model", model.Name, model.SHA256)
	for _, text := range texts {
		p.Notes = append(p.Notes, text.LeftOut()...)
	}
	for _, blanks := range *c.blanks {
		all := &calibrationRun{of: c, blanks: blanks}
		for _, text := range texts {
			prompts, err := maskWords(ctx, filler, text, *c.sentences, blanks, seed)
			if err != nil {
				return nil, err
			}
			run := &calibrationRun{of: c, prompts: prompts, blanks: blanks}
			run.add(p, text.Name)
			all.parts = append(all.parts, run)
		}
		if len(texts) > 1 {
			all.add(p, together)
		}
	}
	return p, nil
}

// add adds the run's cells: one for each part of the probabilities, and all.
func (r *calibrationRun) add(p *lab.Plan, text string) {
	cell := func(forecast string, run func(context.Context, *lab.Bench) error) {
		p.Add(1, run, lab.Label{Name: "texts", Value: text}, lab.Label{Name: "blanks", Value: strconv.Itoa(r.blanks)},
			lab.Label{Name: "forecast", Value: forecast})
	}
	for _, part := range append(r.of.tenths(), coarser...) {
		cell(part.String(), func(ctx context.Context, b *lab.Bench) error { return r.compare(ctx, b, part) })
	}
	cell("all", r.whole)
}

// oneToken reports whether a word is one token of the model, and no piece.
func oneToken(filler *infill.Filler, word string) bool {
	tokenizer := filler.Tokenizer()
	ids, err := tokenizer.Candidate(word)
	return err == nil && len(ids) == 1 && tokenizer.Word(ids[0]) && !tokenizer.Continues(ids[0])
}

// checkBlanks returns why a template cannot be filled, or "".
func checkBlanks(ctx context.Context, filler *infill.Filler, template string, blanks int) string {
	plan, err := filler.Plan(ctx, infill.Request{Template: template})
	if err != nil {
		return "refused by the model"
	}
	if plan.Slots() != blanks {
		return "text that is read as a blank"
	}
	return ""
}

// span is a part of the probabilities, from low up to high.
type span struct{ low, high float64 }

func (p span) String() string { return fmt.Sprintf("%g to %g %%", 100*p.low, 100*p.high) }

// holds reports whether the part holds a probability. The last holds 1, too.
func (p span) holds(probability float64) bool {
	return p.low <= probability && (probability < p.high || p.high == 1)
}

// coarser are wide parts of the probabilities, of which few fills suffice.
var coarser = []span{{0.1, 0.3}, {0.3, 1}}

// tenths returns the tenths of the probabilities from the least one on.
func (c *calibration) tenths() []span {
	parts := []span{{*c.least, 0.1}}
	for tenth := 1; tenth < 10; tenth++ {
		parts = append(parts, span{float64(tenth) / 10, float64(tenth+1) / 10})
	}
	return parts
}

// calibrationRun fills the chosen sentences once, for all parts of the
// probabilities. A run of several texts has their runs.
type calibrationRun struct {
	of      *calibration
	prompts []corpus.Prompt
	parts   []*calibrationRun
	blanks  int
	filled  []filledSentence // of each prompt; empty until fill has run
}

type filledSentence struct {
	fills    []forecast
	forth    float64 // log P of the true words, left to right
	back     float64 // the same, right to left
	unproven bool    // whether fills with at least the least probability may be missing
}

type forecast struct {
	probability float64
	right       bool
}

// fill fills all sentences, unless it has done so.
func (r *calibrationRun) fill(ctx context.Context, b *lab.Bench) error {
	if len(r.filled) > 0 {
		return nil
	}
	if len(r.parts) > 0 {
		return r.gather(ctx, b)
	}
	filler, err := r.of.open()
	if err != nil {
		return err
	}
	defer filler.Close()
	r.filled, err = inOrder(ctx, b, r.prompts, func(ctx context.Context, p corpus.Prompt) (filledSentence, error) {
		return r.of.fill(ctx, filler, p)
	})
	return err
}

// inOrder returns what do makes of each element of a list. What is done at once
// shares calls of the model.
func inOrder[T, R any](ctx context.Context, b *lab.Bench, list []T,
	do func(context.Context, T) (R, error)) (results []R, err error) {
	next := 0
	err = parallel.Each(ctx, lm.InFlight(0), func(context.Context) (of T, err error) {
		if next == len(list) {
			return of, io.EOF
		}
		next++
		return list[next-1], nil
	}, do, func(r R) error {
		results = append(results, r)
		return b.Tick(ctx, len(results), len(list))
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (r *calibrationRun) gather(ctx context.Context, b *lab.Bench) error {
	var filled []filledSentence
	for _, part := range r.parts {
		err := part.fill(ctx, b)
		if err != nil {
			return err
		}
		filled = append(filled, part.filled...)
	}
	r.filled = filled
	return nil
}

// fill fills a sentence: with its true words in both orders, and freely.
func (c *calibration) fill(ctx context.Context, filler *infill.Filler, p corpus.Prompt) (filledSentence, error) {
	var s filledSentence
	words := infill.Lists{}
	for i, word := range p.Words {
		words[i+1] = []string{word}
	}
	truth := infill.Request{Template: p.Template, Fit: infill.Fit{Slots: words}}
	forth, err := filler.Fill(ctx, truth, nil)
	if err != nil {
		return s, fmt.Errorf("line %d: %w", p.Line, err)
	}
	truth.Method = infill.Search{Order: infill.RightToLeft}
	back, err := filler.Fill(ctx, truth, nil)
	if err != nil {
		return s, fmt.Errorf("line %d: %w", p.Line, err)
	}
	s.forth = forth.Fills[0].LogLikelihood
	s.back = back.Fills[0].LogLikelihood
	free, err := c.likely(ctx, filler, p)
	if err != nil {
		return s, fmt.Errorf("line %d: %w", p.Line, err)
	}
	s.unproven = *free.LeftOutAtMost >= *c.least
	for _, f := range free.Fills {
		if *f.Probability >= *c.least {
			s.fills = append(s.fills, forecast{*f.Probability, slices.Equal(f.TokenIDs, forth.Fills[0].TokenIDs)})
		}
	}
	return s, nil
}

// likely asks for ever more fills, until none left out has the least
// probability. Fewer than 1/least fills have it.
func (c *calibration) likely(ctx context.Context, filler *infill.Filler, p corpus.Prompt) (*infill.Result, error) {
	most := int(1 / *c.least) + 1
	for top := 8; ; top *= 2 {
		top = min(top, most)
		result, err := filler.Fill(ctx, infill.Request{Template: p.Template, Top: top}, nil)
		if err != nil {
			return nil, err
		}
		if *result.LeftOutAtMost < *c.least || !*result.Proven || top == most {
			return result, nil
		}
	}
}

// A shareRight is what came of the fills of a part of the probabilities.
type shareRight struct {
	fills         float64
	said, right   float64 // mean probability and share of right ones, in percent
	standardError float64 // of right; NaN if it is not known
	low, high     float64 // 95 % interval of right
}

// share returns what came of the fills of one part. r.fill has run.
func (r *calibrationRun) share(of span) (s shareRight) {
	said := 0.0
	var fills, right []float64 // of each sentence with such a fill
	for _, sentence := range r.filled {
		n := 0.0
		hits := 0.0
		for _, f := range sentence.fills {
			if !of.holds(f.probability) {
				continue
			}
			n++
			said += f.probability
			if f.right {
				hits++
			}
		}
		if n > 0 {
			fills = append(fills, n)
			right = append(right, hits)
		}
	}
	s.fills = floats.Sum(fills)
	if s.fills == 0 {
		return s
	}
	share, standardError := ratio(right, fills)
	independent := independentDraws(share, standardError, s.fills, float64(len(fills)))
	low, high := metrics.Wilson(share, independent, 0.95)
	s.said = 100 * said / s.fills
	s.right = 100 * share
	s.standardError = 100 * standardError
	s.low = 100 * low
	s.high = 100 * high
	return s
}

func (r *calibrationRun) compare(ctx context.Context, b *lab.Bench, of span) error {
	err := r.fill(ctx, b)
	if err != nil {
		return err
	}
	s := r.share(of)
	b.Number("fills", s.fills)
	if s.fills == 0 {
		return nil
	}
	b.Number("said", s.said)
	b.Estimate("right")(s.right, s.standardError)
	b.Number("low", s.low)
	b.Number("high", s.high)
	return nil
}

// whole draws the tenths, and tells what the two orders say of the true words.
func (r *calibrationRun) whole(ctx context.Context, b *lab.Bench) error {
	err := r.fill(ctx, b)
	if err != nil {
		return err
	}
	for _, part := range r.of.tenths() {
		s := r.share(part)
		if s.fills > 0 && len(r.parts) == 0 {
			b.PointAt("calibration", lab.Sample{X: s.said, Y: s.right, Low: s.low, High: s.high})
		}
	}
	r.orders(b)
	return nil
}

// ratio returns Σ y / Σ x over clusters, and its standard error between them
// by the delta method. The error is NaN if the clusters do not tell it: if
// there is only one, or if all have the same ratio.
func ratio(y, x []float64) (value, standardError float64) {
	value = floats.Sum(y) / floats.Sum(x)
	squares := 0.0
	for i := range x {
		squares += math.Pow(y[i]-value*x[i], 2)
	}
	if squares == 0 {
		return value, math.NaN()
	}
	n := float64(len(x))
	return value, math.Sqrt(squares*n/(n-1)) / floats.Sum(x)
}

// independentDraws returns how many independent draws have the standard error
// of a share. If the error is not known, each cluster counts as one.
func independentDraws(share, standardError, draws, clusters float64) float64 {
	if math.IsNaN(standardError) {
		return clusters
	}
	return min(draws, share*(1-share)/(standardError*standardError))
}

func (r *calibrationRun) orders(b *lab.Bench) {
	unproven := 0
	var forth, back, mean, gain, apart []float64
	for _, s := range r.filled {
		if s.unproven {
			unproven++
		}
		both := floats.LogSumExp([]float64{s.forth, s.back}) - math.Ln2
		forth = append(forth, s.forth)
		back = append(back, s.back)
		mean = append(mean, both)
		gain = append(gain, both-s.forth)
		apart = append(apart, math.Abs(s.forth-s.back))
	}
	b.Number("sentences", float64(len(r.filled)))
	b.Number("unproven", float64(unproven))
	b.Estimate("log-p")(samplers.MeanAndError(forth))
	if r.blanks == 1 {
		return
	}
	b.Estimate("log-p-r2l")(samplers.MeanAndError(back))
	b.Estimate("log-p-mean")(samplers.MeanAndError(mean))
	b.Estimate("gain")(samplers.MeanAndError(gain))
	slices.Sort(apart)
	for _, percent := range []int{50, 90, 99} {
		quantile := stat.Quantile(float64(percent)/100, stat.Empirical, apart, nil)
		b.Number(fmt.Sprintf("apart-%d", percent), quantile)
	}
}
