package fill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/internal/object"
)

// resultPrinter keeps the columns of CSV the same.
type resultPrinter struct{ cli.Printer[*infill.Result] }

// room makes room for the blanks of the first result, and refuses one that has more.
func (p *resultPrinter) room(r *infill.Result, format string) error {
	const fixed = 15 // columns beside those of the blanks
	have := len(p.Header) - fixed
	switch {
	case format != "csv" || len(r.Blanks) <= have:
	case p.Results == 0:
		p.Form = resultForm(len(r.Blanks), false)
	default:
		return &cli.MisfitError{Err: fmt.Errorf("%s in the template, and the CSV has columns for %d: take --format "+
			"jsonl, or put it first", cli.Counted(len(r.Blanks), "blank"), have)}
	}
	return nil
}

// resultForm writes a row of CSV for each fill, with a column for each blank, in the order of infill run.
func resultForm(blanks int, verbose bool) cli.Form[*infill.Result] {
	header := []string{"rank", "text"}
	for blank := range blanks {
		header = append(header, fmt.Sprintf("blank_%d", blank+1))
	}
	header = append(header, "probability", "log_likelihood", "share", "share_error", "count", "token_ids",
		"template", "method", "proven", "left_out_at_most", "seed", "unfinished", "id")
	return cli.Form[*infill.Result]{
		Header: header,
		Rows: func(id string, r *infill.Result) (rows [][]string) {
			proven, unfinished := "", ""
			if r.Proven != nil {
				proven = strconv.FormatBool(*r.Proven)
			}
			if r.Unfinished {
				unfinished = "true"
			}
			for _, s := range r.Fills {
				count := ""
				if s.Count > 0 {
					count = strconv.Itoa(s.Count)
				}
				values := append(slices.Clone(s.Values), make([]string, blanks-len(s.Values))...)
				rows = append(rows, slices.Concat([]string{strconv.Itoa(s.Rank), s.Text}, values, []string{
					digitsOrNone(s.Probability), cli.AllDigits(s.LogLikelihood), digitsOrNone(s.Share),
					digitsOrNone(s.ShareError), count, list(s.TokenIDs), r.Template, r.Method, proven,
					digitsOrNone(r.LeftOutAtMost), seedOrNone(r.Seed), unfinished, id,
				}))
			}
			return rows
		},
		Text: func(r *infill.Result, width int) string { return resultText(r, width, verbose) },
	}
}

// digitsOrNone is a cell of CSV with a number, empty if there is none.
func digitsOrNone(x *float64) string {
	if x == nil {
		return ""
	}
	return cli.AllDigits(*x)
}

// list is a cell of CSV with several values, which may hold any character: JSON.
func list[T int | string](values []T) string {
	text, err := object.Encode(values)
	if err != nil {
		panic(err) // there is JSON for every number and every text
	}
	return string(text)
}

// resultText is the template, a table of its fills, the likeliest words of each blank, and how all that was found.
func resultText(r *infill.Result, width int, verbose bool) string {
	// The text needs the room of a narrow terminal more than the numbers do.
	narrow := width > 0 && width < 60
	chains := r.Stats.Chains != nil
	has := func(number func(f infill.Fill) bool) bool { return slices.ContainsFunc(r.Fills, number) }
	lengths := has(func(f infill.Fill) bool { return f.Pieces != nil })
	shares := !chains && has(func(f infill.Fill) bool { return f.Share != nil })
	diagnosed := !narrow && has(func(f infill.Fill) bool { return f.SplitRHat != nil })
	headers := []string{"#", "fill"}
	if lengths && !narrow {
		headers = append(headers, "pieces")
	}
	switch {
	case chains:
		headers = append(headers, "U", "drawn")
	case narrow && shares:
		headers = append(headers, "log-lik.")
	case narrow:
		headers = append(headers, "log-lik.", "probability")
	default:
		headers = append(headers, "log-likelihood", "probability")
	}
	switch {
	case r.Method == infill.MethodDraws:
		headers = append(headers, "drawn")
	case shares:
		headers = append(headers, "share")
	}
	if diagnosed {
		headers = append(headers, "R-hat", "effective")
	}
	var rows [][]string
	for _, f := range r.Fills {
		row := []string{strconv.Itoa(f.Rank), cli.Mark(cli.Neighbourhood(f.Text, f.Spans))}
		if lengths && !narrow {
			row = append(row, cli.Joined(f.Pieces, "%d", "+"))
		}
		row = append(row, fmt.Sprintf("%.2f", f.LogLikelihood))
		if chains {
			row = append(row, share(f, !narrow))
		} else if !narrow || !shares {
			row = append(row, infill.Percent(*f.Probability))
		}
		switch {
		case r.Method == infill.MethodDraws:
			row = append(row, strconv.Itoa(f.Count))
		case shares:
			row = append(row, infill.Percent(*f.Share))
		}
		if diagnosed {
			row = append(row, rHat(f.SplitRHat), optional("%.0f", f.EffectiveDraws))
		}
		rows = append(rows, row)
	}
	head := cli.Wrap(cli.Mark(cli.Neighbourhood(r.Template, r.Blanks)), width, "") + "\n"
	return head + "\n" + cli.RenderTable(width, headers, rows, 1) + "\n" + alone(r, width) +
		cli.Notes(width, footer(r, verbose)...)
}

// alone lists the likeliest words of each blank by itself, "" for a single blank, whose fills say so.
func alone(r *infill.Result, width int) string {
	if len(r.Alone) < 2 {
		return ""
	}
	var lines []string
	for blank, values := range r.Alone {
		var texts []string
		for _, v := range values {
			texts = append(texts, v.Text+" "+infill.Percent(v.Probability))
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

// optional is a number, "" if there is none.
func optional(format string, x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf(format, *x)
}

// rHat is R-hat, of which 1000 stands for all that is more.
func rHat(x *float64) string {
	if x != nil && *x >= 1000 {
		return ">= 1000"
	}
	return optional("%.2f", x)
}

// share is a fill's part of the draws, with its standard error where it is wanted and known, or else with its interval.
func share(f infill.Fill, withError bool) string {
	switch i := f.ShareInterval; {
	case f.Share == nil:
		return ""
	case withError && f.ShareError != nil && *f.ShareError > 0:
		return infill.PercentError(*f.Share, *f.ShareError)
	case withError && f.ShareError == nil && i != nil:
		return fmt.Sprintf("%.1f (%.1f to %.1f) %%", 100**f.Share, 100*i[0], 100*i[1])
	}
	return infill.Percent(*f.Share)
}

// searchFooter tells what a search has proven.
func searchFooter(r *infill.Result) string {
	n := "the likeliest"
	if len(r.Fills) > 1 {
		n = fmt.Sprintf("the %d likeliest", len(r.Fills))
	}
	switch {
	case *r.Proven && *r.LeftOutAtMost == 0:
		return "all that the blanks may take"
	case *r.Proven:
		return n + ", proven: nothing that the blanks may take is more probable"
	}
	return fmt.Sprintf("%s found, not proven: nothing left out has more than %s", n, infill.AtMost(*r.LeftOutAtMost))
}

// withSeed ends a line with the seed, where something was random.
func withSeed(seed *uint64) string {
	if seed == nil {
		return ""
	}
	return fmt.Sprintf(", seed %d", *seed)
}

func seedOrNone(seed *uint64) string {
	if seed == nil {
		return ""
	}
	return strconv.FormatUint(*seed, 10)
}

// footer says how a result was made and at which cost; verbose adds how chains moved.
func footer(r *infill.Result, verbose bool) []string {
	s := r.Stats
	var lines []string
	if r.Unfinished {
		for _, w := range r.Warnings {
			if strings.HasPrefix(w, "unfinished: ") {
				line, _, _ := strings.Cut(w, ": nothing left out") // the last line tells it in percent
				lines = append(lines, line)
			}
		}
	}
	cost := fmt.Sprintf("%s, %.2f s%s", cli.Counted(s.ModelRows, "model row"), s.Seconds, withSeed(r.Seed))
	switch c := s.Chains; {
	case c != nil:
		how := fmt.Sprintf("%s: %s of %s", c.Sampler, cli.Counted(c.Chains, "chain"), cli.Counted(c.Steps, "step"))
		if c.WarmUp.Steps > 0 {
			how += fmt.Sprintf(", the first %d left out", c.WarmUp.Steps)
		}
		if lines = append(lines, how+"; "+cost); verbose {
			lines = append(lines, chainsNote(s))
		}
		return lines
	case r.Method == infill.MethodDraws:
		draws, fills := cli.Counted(s.Draws, "independent draw"), cli.Counted(s.DistinctFills, "different fill")
		return append(lines, fmt.Sprintf("%s from the model, %s; %s", draws, fills, cost))
	}
	return append(lines, searchFooter(r)+"; "+cost)
}

// chainsNote tells how chains moved.
func chainsNote(s infill.Stats) string {
	c := s.Chains
	var notes []string
	if c.StepSize != nil {
		notes = append(notes, fmt.Sprintf("step size %.3g", *c.StepSize))
	}
	if c.AcceptanceRate != nil {
		notes = append(notes, "acceptance "+cli.WithError("%.2f", *c.AcceptanceRate, c.AcceptanceStandardError))
	}
	if c.Steps > c.WarmUp.Steps {
		notes = append(notes,
			fmt.Sprintf("%.2f of %s changed per step", c.ChangedSlotsPerStep, cli.Counted(s.Slots, "slot")))
	}
	notes = append(notes,
		fmt.Sprintf("%s in %s", cli.Counted(s.DistinctFills, "distinct fill"), cli.Counted(s.Draws, "draw")))
	if c.SplitRHat != nil && c.EffectiveDraws != nil {
		notes = append(notes,
			fmt.Sprintf("split R-hat %s, %.0f effective draws of U", rHat(c.SplitRHat), *c.EffectiveDraws))
	}
	mean := cli.WithError("%.2f", c.MeanLogLikelihood, c.MeanLogLikelihoodStandardError)
	return strings.Join(append(notes, "mean U "+mean), ", ")
}
