package lab

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"infill/samplers"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is the report for people, in lines of a width, 0 for any. Rows of tables are not broken.
func (r *Report) Text(width int) string {
	p := printer{width: width}
	for _, curve := range r.Bias {
		p.bias(curve)
	}
	for _, run := range r.Runs {
		p.run(run)
	}
	return p.text.String()
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// withError is a mean with its standard error, where that is known.
func withError(format string, mean float64, standardError *float64) string {
	text := fmt.Sprintf(format, mean)
	if standardError != nil {
		text += " ± " + fmt.Sprintf(format, *standardError)
	}
	return text
}

// MeanAndError writes a mean with its standard error, of one value without.
func MeanAndError(format string, values []float64) string {
	mean, e := samplers.MeanAndError(values)
	return withError(format, mean, e)
}

// printer writes for people.
type printer struct {
	text  strings.Builder
	width int
}

func (p *printer) heading(text string) {
	if p.text.Len() > 0 {
		p.text.WriteString("\n")
	}
	p.text.WriteString(p.wrap(text) + "\n\n")
}

// wrap breaks a text that is wider than the page between words.
func (p *printer) wrap(text string) string {
	var b strings.Builder
	room := p.width
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case p.width > 0 && n+1 > room:
			b.WriteString("\n")
			room = p.width
		default:
			b.WriteString(" ")
			room--
		}
		b.WriteString(word)
		room -= n
	}
	return b.String()
}

func (p *printer) rest(format string, args ...any) {
	p.text.WriteString(p.wrap(fmt.Sprintf(format, args...)) + "\n")
}

// table aligns the first column to the left and the others, which are numbers, to the right.
func (p *printer) table(headers []string, rows [][]string) {
	widths := make([]int, len(headers))
	all := append([][]string{headers}, rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range all {
		line := ""
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line += "  " + cell + gap
			} else {
				line += "  " + gap + cell
			}
		}
		p.text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	p.text.WriteString("\n")
}

func (p *printer) bias(c *biasCurve) {
	p.heading(c.Title)
	variable, _, _ := strings.Cut(c.Variable, " (")
	headers := []string{variable, "‖π_α - π‖₁", "observed", "± noise", "bound 5.1", "~ e^(-1/2α)"}
	if c.Slope == nil {
		// The theorem and its rate are of step sizes.
		headers = headers[:4]
	}
	var rows [][]string
	for _, b := range c.Points {
		row := []string{strconv.FormatFloat(b.X, 'g', 3, 64), scientific(&b.Exact), scientific(b.Observed),
			scientific(b.Noise), scientific(b.Bound), scientific(b.Rate)}
		rows = append(rows, row[:len(headers)])
	}
	p.table(headers, rows)
	if c.Slope != nil {
		p.rest("slope of ln bias against -1/(2α) at small α: %.3f", *c.Slope)
	}
	p.rest("%s, observed over %s × %s", c.Variable, counted(c.Chains, "chain"), counted(c.Steps, "step"))
}

func scientific(x *float64) string {
	switch {
	case x == nil:
		return ""
	case *x < 1e-13:
		return "0" // rounding
	}
	return strconv.FormatFloat(*x, 'g', 3, 64)
}

func (p *printer) run(run *Run) {
	title := run.Title
	if title == "" {
		title = "Samplers on " + run.Kind
	}
	for _, parameter := range run.Parameters {
		title += ", " + parameter.Name + " " + parameter.Value
	}
	p.heading(title)

	var moves, worth [][]string
	timed := run.Comparison.Seconds != nil
	for _, r := range run.Samplers {
		step := ""
		if r.StepSize != nil {
			step = strconv.FormatFloat(*r.StepSize, 'g', 3, 64)
		}
		exact := "no"
		if r.Exact {
			exact = "yes"
		}
		acceptance := "1"
		if r.Acceptance < 1 {
			acceptance = withError("%.3f", r.Acceptance, r.AcceptanceStandardError)
		}
		moves = append(moves, []string{
			r.Sampler, exact, step, acceptance,
			fmt.Sprintf("%.2f", r.Proposed), withError("%.2f", r.Changed, r.ChangedStandardError),
			fmt.Sprintf("%.1f", r.Evaluations.PerStep),
		})
		row := []string{r.Sampler, "", "", "", ""}
		if r.ESS != nil {
			row[1] = withError("%.1f", 1000*r.ESS.PerStep, times(r.ESS.StandardError, 1000/float64(r.ESS.Kept)))
			row[2] = withError("%.1f", 1000*r.ESS.PerEvaluation,
				times(r.ESS.StandardError, 1000*r.ESS.PerEvaluation/r.ESS.Mean))
			if r.ESS.RHat != nil {
				row[4] = fmt.Sprintf("%.2f", *r.ESS.RHat)
			}
			row[3] = fmt.Sprintf("%.1f to %.1f", 1000*r.ESS.Min/float64(r.ESS.Kept), 1000*r.ESS.Max/float64(r.ESS.Kept))
		}
		if timed {
			second := ""
			if r.ESS != nil {
				second = withError("%.0f", r.Timing.ESSPerSecond, r.Timing.ESSPerSecondStandardError)
			}
			row = append(row, second, fmt.Sprintf("%.2f s", r.Timing.Seconds))
		}
		worth = append(worth, row)
	}
	headers := []string{"sampler", "ESS/1000 steps", "/1000 evaluations", "of slots", "R-hat"}
	if timed {
		headers = append(headers, "ESS/s", "time")
	}
	narrow := p.width > 0 && p.width < 100
	if narrow {
		headers = slices.Delete(headers, 3, 4)
		for i := range worth {
			worth[i] = slices.Delete(worth[i], 3, 4)
		}
	}
	p.table([]string{"sampler", "exact", "step size", "acceptance", "proposed", "changed", "evaluations"}, moves)
	p.rest("acceptance: of proposals; proposed, changed, evaluations: slots and states a step of each chain")
	p.text.WriteString("\n")
	p.table(headers, worth)
	note := "ESS: effective sample size, mean over observables; R-hat: the largest, near 1 where chains agree"
	if !narrow {
		note += "; of slots: lowest to highest per 1000 steps"
	}
	if slices.ContainsFunc(run.Samplers, func(r *Result) bool { return !r.Exact }) {
		note += "; that of a sampler that is not exact is of its own law"
	}
	if timed {
		note += "; seconds: processor time of one thread, one run, noisy"
	}
	p.rest("%s", note)
	p.text.WriteString("\n")

	headers = []string{"log RMSE", fmt.Sprintf("at %s", counted(run.Comparison.Steps, "step")),
		fmt.Sprintf("at %.4g evaluations", run.Comparison.Evaluations)}
	if timed {
		headers = append(headers, fmt.Sprintf("at %.2g s", *run.Comparison.Seconds))
	}
	p.budgets(run, headers, func(r *reached) string { return withError("%.2f", float64(r.LogRMSE), r.StandardError) })
	if run.Reference != nil {
		headers[0] = "log MMD²"
		p.budgets(run, headers, func(r *reached) string {
			return withError("%.2f", math.Log(*r.MMD2), times(r.MMD2StandardError, 1 / *r.MMD2))
		})
	}
	if run.Floor != nil {
		p.rest("log MMD² from %d states by %s; draws of their own law: %.2f ± %.2f between %d sets",
			run.Reference.Samples, run.Reference.Method,
			math.Log(run.Floor.MMD2), run.Floor.StandardDeviation/run.Floor.MMD2, run.Floor.Sets)
		if a := run.Reference.AgainstExact; a != nil {
			p.rest("the reference itself, from as many exact draws: log MMD² %.2f", math.Log(*a))
		}
	}
	if t := run.Training; t != nil && t.Mass != nil {
		p.rest("training: %.1f %% of the probability on the %d patterns, mean log-likelihood %.2f (best possible %.2f)",
			100**t.Mass, t.Patterns, *t.LogLikelihood, -math.Log(float64(t.Patterns)))
	}
	p.rest("exact means: %s", run.Truth.Method)
	p.rest("± is a standard error between %s; seed %d", counted(run.Chains, "chain"), run.Seed)
	for _, l := range run.LeftOut {
		p.rest("left out: %s", l.Reason)
	}
}

// times scales an error that may be unknown.
func times(x *float64, factor float64) *float64 {
	if x == nil {
		return nil
	}
	scaled := *x * factor
	return &scaled
}

// budgets writes one number at the budgets that the headers name.
func (p *printer) budgets(run *Run, headers []string, number func(*reached) string) {
	var rows [][]string
	for _, b := range run.Comparison.Rows {
		row := []string{b.Sampler}
		for _, r := range []*reached{b.AtSteps, b.AtEvaluations, b.AtSeconds}[:len(headers)-1] {
			text := ""
			if r != nil {
				text = number(r)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	p.table(headers, rows)
}

// CSV is a row for each sampler, or for each point of a bias, with their headers.
func (r *Report) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	number := decimal
	optional := func(x *float64) string {
		if x == nil {
			return ""
		}
		return number(*x)
	}
	var rows [][]string
	if len(r.Bias) > 0 {
		rows = append(rows,
			[]string{"title", "variable", "x", "exact", "bound", "bound_spins", "rate", "observed", "noise"})
	}
	for _, c := range r.Bias {
		for _, p := range c.Points {
			rows = append(rows,
				[]string{c.Title, c.Variable, number(p.X), number(p.Exact), optional(p.Bound), optional(p.BoundSpins),
					optional(p.Rate), optional(p.Observed), optional(p.Noise)})
		}
	}
	if len(r.Runs) > 0 {
		rows = append(rows, []string{
			"run", "sampler", "name", "exact", "step_size", "chains", "steps", "acceptance_rate",
			"acceptance_standard_error",
			"proposed_slots_per_step", "changed_slots_per_step", "changed_slots_standard_error", "energies",
			"gradients", "conditionals",
			"log_rmse", "log_rmse_standard_error", "ess", "ess_standard_error", "ess_kept_steps", "r_hat", "mmd2",
			"mmd2_standard_error",
			"seconds", "ess_per_second", "ess_per_second_standard_error", "signature",
		})
	}
	for i, run := range r.Runs {
		for _, s := range run.Samplers {
			last := s.Curve[len(s.Curve)-1]
			row := []string{
				strconv.Itoa(i + 1), s.Sampler, s.Name, strconv.FormatBool(s.Exact), optional(s.StepSize),
				strconv.Itoa(run.Chains), strconv.Itoa(s.Steps),
				number(s.Acceptance), optional(s.AcceptanceStandardError), number(s.Proposed), number(s.Changed),
				optional(s.ChangedStandardError),
				strconv.FormatInt(s.Evaluations.Energies, 10), strconv.FormatInt(s.Evaluations.Gradients, 10),
				strconv.FormatInt(s.Evaluations.Conditionals, 10),
				number(float64(s.LogRMSE)), optional(s.LogRMSEStandardError),
			}
			if s.ESS == nil {
				row = append(row, "", "", "", "")
			} else {
				row = append(row, number(s.ESS.Mean), optional(s.ESS.StandardError), strconv.Itoa(s.ESS.Kept),
					optional(s.ESS.RHat))
			}
			row = append(row, optional(last.MMD2), optional(last.MMD2StandardError))
			if s.Timing == nil {
				row = append(row, "", "", "")
			} else {
				row = append(row, number(s.Timing.Seconds), number(s.Timing.ESSPerSecond),
					optional(s.Timing.ESSPerSecondStandardError))
			}
			rows = append(rows, append(row, run.Signature))
		}
	}
	err := w.WriteAll(rows)
	return b.Bytes(), err
}
