package fill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/internal/ask"
	"infill/internal/batch"
	"infill/internal/phrase"
	"infill/internal/rawjson"
)

// answer is a result with the columns that the user gave with its template.
type answer struct {
	result *infill.Result
	work   *batch.Fill
	copied rawjson.Object
}

func (a answer) MarshalJSON() ([]byte, error) { return a.work.Object(a.result, a.copied) }

// style returns how to print results. CSV has the columns of infill run.
func (c *command) style() cli.Style[answer] {
	return cli.Style[answer]{
		Add: func(sheet *batch.Sheet, a answer) error {
			rows, err := c.work.Rows(a.result)
			if err != nil {
				return err
			}
			return sheet.Add(rows, a.copied)
		},
		Layout: c.work.Layout,
		Text:   func(a answer, width int) string { return resultText(a.result, width, c.model.Verbose) },
		Lines: func(a answer) (lines []string) {
			for _, f := range a.result.Fills {
				line := f.Text
				if c.input.Format == "words" {
					line = strings.Join(f.Values, "\t")
				}
				lines = append(lines, line)
			}
			return lines
		},
	}
}

// resultText returns template, fills, words, and how they were found.
func resultText(r *infill.Result, width int, verbose bool) string {
	var headers []string
	var cells []func(f infill.Fill) string
	column := func(wanted bool, header string, cell func(f infill.Fill) string) {
		if wanted {
			headers, cells = append(headers, header), append(cells, cell)
		}
	}
	// On a narrow terminal, the text needs the room of some numbers.
	narrow := width > 0 && width < 60
	chains := r.Stats.Chains != nil
	draws := r.Drawn()
	has := func(number func(f infill.Fill) bool) bool { return slices.ContainsFunc(r.Fills, number) }
	shares := !chains && has(func(f infill.Fill) bool { return f.Share != nil })
	diagnosed := !narrow && has(func(f infill.Fill) bool { return f.SplitRHat != nil })
	logLikelihood := func(f infill.Fill) string { return fmt.Sprintf("%.2f", f.LogLikelihood) }

	column(true, "#", func(f infill.Fill) string { return strconv.Itoa(f.Rank) })
	column(true, "fill", func(f infill.Fill) string { return cli.Mark(f.Text, f.Spans) })
	column(!narrow && r.Stats.Lengths > 0, "tokens", func(f infill.Fill) string {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(f.Tokens), "[]"), " ", "+")
	})
	column(chains, "U", logLikelihood)
	column(chains, "drawn", func(f infill.Fill) string { return ask.SharePercent(&f, !narrow) })
	column(!chains && narrow, "log-lik.", logLikelihood)
	column(!chains && !narrow, "log-likelihood", logLikelihood)
	column(!chains && !(narrow && shares), "probability",
		func(f infill.Fill) string { return phrase.Percent(*f.Probability) })
	column(draws, "drawn", func(f infill.Fill) string { return strconv.Itoa(f.Count) })
	column(shares && !draws, "share", func(f infill.Fill) string { return phrase.Percent(*f.Share) })
	column(diagnosed, "R-hat", func(f infill.Fill) string { return rHat(f.SplitRHat) })
	column(diagnosed, "effective", func(f infill.Fill) string { return optional("%.0f", f.EffectiveDraws) })
	rows := make([][]string, len(r.Fills))
	for i, f := range r.Fills {
		for _, cell := range cells {
			rows[i] = append(rows[i], cell(f))
		}
	}
	head := cli.Wrap(cli.Mark(r.Template, r.Blanks), width, "") + "\n"
	return head + "\n" + cli.RenderTable(width, headers, rows, 1) + "\n" + alone(r, width) +
		cli.Notes(width, footer(r, verbose)...)
}

// alone returns the words of blanks by themselves; of one, the fills list them.
func alone(r *infill.Result, width int) string {
	if len(r.Alone) < 2 {
		return ""
	}
	var lines []string
	for blank, values := range r.Alone {
		var texts []string
		for _, v := range values {
			texts = append(texts, v.Text+" "+phrase.Percent(v.Probability))
		}
		if texts != nil {
			lines = append(lines, fmt.Sprintf("blank %d by itself: %s", blank+1, strings.Join(texts, ", ")))
		}
	}
	if lines == nil {
		return ""
	}
	return cli.Notes(width, lines...) + "\n"
}

func optional[T any](format string, x *T) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf(format, *x)
}

func rHat(x *float64) string {
	if x != nil && *x >= infill.CappedRHat {
		return fmt.Sprintf(">= %d", infill.CappedRHat)
	}
	return optional("%.2f", x)
}

// footer says how a result was found; verbose, also how chains moved.
func footer(r *infill.Result, verbose bool) []string {
	s := r.Stats
	var lines []string
	if r.Unfinished {
		lines = append(lines, "unfinished: interrupted "+r.Place)
	}
	if divided := ask.Divided(r); divided != "" {
		lines = append(lines, divided)
	}
	cost := fmt.Sprintf("%s, %.2f s%s", phrase.Counted(s.ModelRows, "model row"), s.Seconds,
		optional(", seed %d", r.Seed))
	lines = append(lines, ask.Found(r)+"; "+cost)
	if verbose && s.Chains != nil {
		lines = append(lines, chainsNote(s))
	}
	return lines
}

func chainsNote(s infill.Stats) string {
	c := s.Chains
	var notes []string
	if c.StepSize != nil {
		notes = append(notes, fmt.Sprintf("step size %.3g", *c.StepSize))
	}
	if c.AcceptanceRate != nil {
		notes = append(notes,
			fmt.Sprintf("acceptance %.2f%s", *c.AcceptanceRate, optional(" ± %.2f", c.AcceptanceStandardError)))
	}
	if c.Steps > c.WarmUp.Steps {
		notes = append(notes,
			fmt.Sprintf("%.2f of %s changed per step", c.ChangedSlotsPerStep, phrase.Counted(s.Slots, "slot")))
	}
	notes = append(notes,
		fmt.Sprintf("%s in %s", phrase.Counted(s.DistinctFills, "distinct fill"), phrase.Counted(s.Draws, "draw")))
	if c.SplitRHat != nil && c.EffectiveDraws != nil {
		notes = append(notes,
			fmt.Sprintf("split R-hat %s, %.0f effective draws of U", rHat(c.SplitRHat), *c.EffectiveDraws))
	}
	notes = append(notes,
		fmt.Sprintf("mean U %.2f%s", c.MeanLogLikelihood, optional(" ± %.2f", c.MeanLogLikelihoodStandardError)))
	return strings.Join(notes, ", ")
}
