package fill

import (
	"fmt"
	"math"
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
	header = append(header, "probability", "probability_error", "log_likelihood", "score", "count", "token_ids",
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
					digitsOrNone(s.Probability), digitsOrNone(s.ProbabilityError), cli.AllDigits(s.LogLikelihood),
					digitsOrNone(s.Score), count, list(s.TokenIDs), r.Template, r.Method, proven,
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

// ranks marks the head of the column by which fills are ranked, where it is not their probability.
const ranks = " (rank)"

func resultText(r *infill.Result, width int, verbose bool) string {
	// The text needs the room of a narrow terminal more than the numbers do.
	narrow := width > 0 && width < 60
	probabilities := (r.Method != "" || !r.Unfinished)
	headers := []string{"#", "fill"}
	likelihood := true
	switch {
	case narrow && r.Stats.Lengths != nil:
		headers, likelihood = append(headers, "pieces", "score"), false // which alone ranks
	case r.Stats.Lengths != nil:
		headers = append(headers, "pieces", "score"+ranks)
	}
	switch {
	case !likelihood:
	case narrow:
		headers = append(headers, "log-lik.")
	case r.Stats.Lengths == nil && !(probabilities && r.Stats.Sampler == infill.Auto):
		headers = append(headers, "log-likelihood"+ranks)
	default:
		headers = append(headers, "log-likelihood")
	}
	switch {
	case probabilities && r.Stats.Sampler == infill.Auto:
		headers = append(headers, "probability")
	case probabilities:
		headers = append(headers, "drawn")
	}
	diagnosed := !narrow && slices.ContainsFunc(r.Fills, func(f infill.Fill) bool { return f.SplitRHat != nil })
	if diagnosed {
		headers = append(headers, "R-hat", "effective")
	}
	var rows [][]string
	for _, s := range r.Fills {
		row := []string{strconv.Itoa(s.Rank), cli.Mark(cli.Neighbourhood(s.Text, s.Spans))}
		if r.Stats.Lengths != nil {
			row = append(row, cli.Joined(s.Pieces, "%d", "+"), fmt.Sprintf("%.2f", *s.Score))
		}
		if likelihood {
			row = append(row, fmt.Sprintf("%.2f", s.LogLikelihood))
		}
		if probabilities {
			row = append(row, share(s, !narrow))
		}
		if diagnosed {
			row = append(row, rHat(s.SplitRHat), optional("%.0f", s.EffectiveDraws))
		}
		rows = append(rows, row)
	}
	head := cli.Wrap(cli.Mark(cli.Neighbourhood(r.Template, r.Blanks)), width, "") + "\n"
	return head + "\n" + cli.RenderTable(width, headers, rows, 1) + "\n" +
		cli.Notes(width, footer(r, verbose)...)
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

// share is a fill's probability, with its standard error where it is wanted and known,
// or else with what it may be.
func share(s infill.Fill, withError bool) string {
	if i := s.FrequencyInterval; i != nil && s.ProbabilityError == nil && withError {
		return fmt.Sprintf("%.1f (%.1f to %.1f) %%", 100*s.Frequency, 100*i[0], 100*i[1])
	}
	if s.Probability == nil && s.Count == 0 {
		return ""
	}
	if s.Probability != nil {
		return probability(*s.Probability, s.ProbabilityError, withError)
	}
	return probability(s.Frequency, s.FrequencyStandardError, withError)
}

// probability writes one in percent, with its standard error where that is wanted and
// there is one, to as many digits as say something.
func probability(p float64, standardError *float64, withError bool) string {
	if e := standardError; e != nil && *e > 0 && withError {
		digits := min(max(1, -int(math.Floor(math.Log10(100**e)))), 4)
		return fmt.Sprintf("%.*f ± %.*f %%", digits, 100*p, digits, 100**e)
	}
	digits := 1
	switch {
	case p > 0 && p < 1e-8: // all its zeros would need the width of the screen
		return fmt.Sprintf("%.1e %%", 100*p)
	case p > 0 && p < 0.001:
		digits = 1 - int(math.Floor(math.Log10(100*p)))
	}
	return fmt.Sprintf("%.*f %%", digits, 100*p)
}

// searchFooter tells what a search has proven.
func searchFooter(r *infill.Result) string {
	n := "the likeliest"
	if len(r.Fills) > 1 {
		n = fmt.Sprintf("the %d likeliest", len(r.Fills))
	}
	switch {
	case *r.LeftOutAtMost == 0:
		return "all that the blanks may take"
	case *r.Proven:
		return n + ", proven: nothing that the blanks may take is more probable"
	}
	return fmt.Sprintf("%s found, not proven: nothing left out has more than %s", n, atMost(*r.LeftOutAtMost))
}

// atMost writes a bound in percent, rounded up.
func atMost(p float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(100*p))-1)
	return strconv.FormatFloat(math.Ceil(100*p/unit)*unit, 'g', 3, 64) + " %" // 3: of 100
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

// footer tells in one sentence how a result was made and what its probabilities are among; verbose adds to it.
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
	if s.Sampler == infill.Auto {
		return append(lines, answerFooter(r)+"; "+cost)
	}
	how := fmt.Sprintf("%s: %s of %s", s.Sampler, cli.Counted(s.Chains, "chain"), cli.Counted(s.Steps, "step"))
	if r.Method == "" && r.Unfinished {
		return append(lines, how+"; "+cost)
	}
	if s.WarmUp.Steps > 0 {
		how += fmt.Sprintf(", the first %d left out", s.WarmUp.Steps)
	}
	lines = append(lines, how+lengthsNote(r)+"; "+cost)
	if verbose {
		lines = append(lines, chainsNote(s))
	}
	return lines
}

// answerFooter tells how probabilities were found, among what they are, and what those above have of them.
func answerFooter(r *infill.Result) string {
	s := r.Stats
	switch r.Method {
	case infill.MethodSearch:
		return searchFooter(r)
	case infill.MethodDraws:
		draws, fills := cli.Counted(s.Draws, "independent draw"), cli.Counted(s.DistinctFills, "different fill")
		return fmt.Sprintf("%s from the model, %s", draws, fills)
	case "":
		if s.DistinctFills == 0 {
			return "no fill was looked at"
		}
		return fmt.Sprintf("the likeliest of %s that were looked at", cli.Counted(s.DistinctFills, "fill"))
	}
	return r.Method
}

// lengthsNote tells what compares where fills have several lengths and no law of all of them.
func lengthsNote(r *infill.Result) string {
	if r.Stats.Lengths == nil {
		return ""
	}
	lengths := cli.Counted(len(r.Stats.Lengths), "length")
	return "; " + lengths + ", ranked by score, in nats a word: all other numbers compare within a length"
}

// chainsNote tells how chains moved.
func chainsNote(s infill.Stats) string {
	var notes []string
	if s.StepSize != nil {
		notes = append(notes, fmt.Sprintf("step size %.3g", *s.StepSize))
	}
	if s.AcceptanceRate != nil {
		notes = append(notes, "acceptance "+cli.WithError("%.2f", *s.AcceptanceRate, s.AcceptanceStandardError))
	}
	if s.Steps > s.WarmUp.Steps {
		notes = append(notes,
			fmt.Sprintf("%.2f of %s changed per step", s.ChangedSlotsPerStep, cli.Counted(s.Slots, "slot")))
	}
	notes = append(notes,
		fmt.Sprintf("%s in %s", cli.Counted(s.DistinctFills, "distinct fill"), cli.Counted(s.Draws, "draw")))
	if s.SplitRHat != nil && s.EffectiveDraws != nil {
		const mixing = "split R-hat %s, %.0f effective draws of the log-likelihood"
		notes = append(notes, fmt.Sprintf(mixing, rHat(s.SplitRHat), *s.EffectiveDraws))
	}
	mean := cli.WithError("%.2f", s.MeanLogLikelihood, s.MeanLogLikelihoodStandardError)
	return strings.Join(append(notes, "mean log-likelihood "+mean), ", ")
}
