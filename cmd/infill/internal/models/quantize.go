package models

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"infill/cmd/infill/internal/cli"
	"infill/internal/logmath"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

// ownText is what models are compared on if the user gives no text: a sentence
// on each line, written for this project.
//
//go:embed quantize.txt
var ownText []byte

// mostRows is the number of tokens that are masked to compare two models.
const mostRows = 4000

// quantize makes a copy of a model in int8, and measures its distance.
func (c *command) quantize(ctx context.Context, args []string) error {
	if err := lm.CheckInt8(); err != nil {
		return fmt.Errorf("%w; stay with the model in float", err)
	}
	bundle, err := c.store.Open(args[0])
	if err != nil {
		return err
	}
	name := cmp.Or(c.name, bundle.Name+"-int8")
	if err := models.CheckName(name); err != nil {
		return &cli.UsageError{Err: err, Hint: "give another with --name"}
	}
	from := "infill's own sentences"
	text := ownText
	if c.text != "" {
		from = c.text
		text, err = cli.ReadText(ctx, c.text)
		if err != nil {
			return err
		}
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		return err
	}
	texts, others := readTexts(text, tokenizer, bundle.Config.MaxPositions)
	if len(texts) < 2 {
		return cli.Usagef("%s: of its lines, fewer than three are texts that the model can read", from)
	}
	largest, err := lm.LargestInputs(ctx, bundle, options(tokenizer), others)
	if err != nil {
		return err
	}
	var found distance
	made, err := c.store.Quantize(ctx, bundle, name, largest, func(copied *models.Bundle) ([]byte, error) {
		bar := cli.NewBar(c.streams, c.quiet, 0)
		defer bar.Clear()
		found, err = compare(ctx, bundle, copied, tokenizer, texts, func(done int) {
			bar.Tell(int64(done), int64(len(texts)), func() string { return "texts compared" })
		})
		return []byte(card(bundle, copied, found, from)), err
	})
	if err != nil {
		return err
	}
	if err := c.printPlaced(made); err != nil {
		return err
	}
	return c.say("%s", found.report(from))
}

// readTexts returns the ids of lines that the model can read. Of two, one
// measures and the other spreads inputs. texts has up to mostRows tokens.
func readTexts(text []byte, tokenizer *tokenize.Tokenizer, positions int) (texts, others [][]int) {
	rows := 0
	for line := range bytes.Lines(text) {
		encoding, err := tokenizer.Plain(strings.TrimSpace(string(line)))
		if err != nil || len(encoding.IDs) > positions || rows+len(encoding.IDs) > mostRows {
			continue
		}
		if len(texts) > len(others) {
			others = append(others, encoding.IDs)
			continue
		}
		texts = append(texts, encoding.IDs)
		rows += len(encoding.IDs) - 2
	}
	return texts, others
}

// distance says how far a copy in int8 is from its model. Each token was masked
// once. Errors are standard errors, between texts.
type distance struct {
	texts, tokens int
	float, int8   mean // nats a token
	worse         mean // nats a token that int8 has more
	variation     mean // total variation
	same          mean // share of tokens whose likeliest token is the same
}

// mean is a mean over tokens, with its standard error.
type mean struct{ value, err float64 }

// meanOf returns the mean of lists that are independent of each other.
func meanOf(values [][]float64) mean {
	sum := 0.0
	n := 0
	for _, list := range values {
		n += len(list)
		for _, x := range list {
			sum += x
		}
	}
	m := mean{value: sum / float64(n)}
	squares := 0.0
	for _, list := range values {
		rest := 0.0
		for _, x := range list {
			rest += x - m.value
		}
		squares += rest * rest
	}
	lists := float64(len(values))
	m.err = math.Sqrt(squares*lists/(lists-1)) / float64(n)
	return m
}

// compare measures the distance of copied from bundle on texts. After each text
// it calls told with the number of texts so far.
func compare(ctx context.Context, bundle, copied *models.Bundle, tokenizer *tokenize.Tokenizer, texts [][]int,
	told func(done int)) (d distance, err error) {
	var pair [2]*lm.MaskedLM
	for i, b := range []*models.Bundle{bundle, copied} {
		pair[i], err = lm.Open(ctx, b, options(tokenizer))
		if err != nil {
			return d, err
		}
		defer func() { err = errors.Join(err, pair[i].Close()) }()
	}
	var lists [5][][]float64 // of each text: those of the means of a distance
	for n, ids := range texts {
		var rows []lm.Row
		for at := 1; at < len(ids)-1; at++ {
			masked := slices.Clone(ids)
			masked[at] = tokenizer.MaskID()
			rows = append(rows, lm.Row{IDs: masked, Positions: []int{at}})
		}
		p, err := pair[0].LogProbabilities(ctx, rows)
		if err != nil {
			return d, err
		}
		q, err := pair[1].LogProbabilities(ctx, rows)
		if err != nil {
			return d, err
		}
		var own [5][]float64
		for i := range rows {
			token := ids[i+1]
			p, q := p[i][0], q[i][0]
			a := -float64(p[token])
			b := -float64(q[token])
			alike := float64(logmath.Indicator(likeliest(p) == likeliest(q)))
			for k, x := range []float64{a, b, b - a, totalVariation(p, q), alike} {
				own[k] = append(own[k], x)
			}
		}
		for k := range lists {
			lists[k] = append(lists[k], own[k])
		}
		d.tokens += len(rows)
		told(n + 1)
	}
	return distance{len(texts), d.tokens, meanOf(lists[0]), meanOf(lists[1]), meanOf(lists[2]), meanOf(lists[3]),
		meanOf(lists[4])}, nil
}

func options(t *tokenize.Tokenizer) lm.Options {
	return lm.Options{Device: "cpu", MaskID: t.MaskID(), SeparatorID: t.SeparatorID()}
}

// totalVariation returns half the sum of |p − q|, given the logarithms of p and q.
func totalVariation(p, q []float32) float64 {
	sum := 0.0
	for i := range p {
		sum += math.Abs(math.Exp(float64(p[i])) - math.Exp(float64(q[i])))
	}
	return sum / 2
}

func likeliest(logp []float32) int { return slices.Index(logp, slices.Max(logp)) }

// report has a line for each measurement.
func (d distance) report(from string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tokens in %d texts of %s, each token masked alone:\n", d.tokens, d.texts, cli.OneLine(from))
	line := func(what string, m mean) { fmt.Fprintf(&b, "  %-22s %.4f ± %.4f\n", what, m.value, m.err) }
	line("nats a token in float", d.float)
	line("nats a token in int8", d.int8)
	line("difference", d.worse)
	line("total variation", d.variation)
	fmt.Fprintf(&b, "  %-22s %.1f ± %.1f %%\n", "likeliest the same", 100*d.same.value, 100*d.same.err)
	b.WriteString("± is one standard error, between texts.\n")
	return b.String()
}

func card(bundle, copied *models.Bundle, d distance, from string) string {
	return fmt.Sprintf("# %s\n\n"+
		"A copy in int8 of the model %s (SHA-256 %s), made by infill models quantize. Its probabilities are its own.\n"+
		"Its likeliest words are mostly those of the model in float. Take that for the numbers of a paper.\n\n"+
		"```\n%s```\n", copied.Name, bundle.Name, bundle.SHA256, d.report(from))
}
