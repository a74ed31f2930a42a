package papers

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Blocks of a page that are made of results stand between two comments:
//
//	<!-- table learn-ising | rows=steps | columns=sampler | numbers=log-rmse:%.3f -->
//	<!-- end -->
//
// rows and columns name labels. Without columns, each number is a column. A row
// without numbers is left out.
// where=LABEL=VALUE;LABEL=VALUE chooses cells. The block papers is the table of
// [Rows], rule is [Rule], count is [Judgements.Count], not judged is
// [NotJudged], scale is [ScaleRule], and seconds is the processor
// time of all results that know theirs.
var block = regexp.MustCompile(`(?s)<!-- (table [^>]*?|papers|rule|count|not judged|scale|seconds) -->\n(.*?)<!-- end -->\n`)

// Fill returns a page whose blocks show the results.
func Fill(page string, all map[string]Results) (string, error) {
	var errs []error
	filled := block.ReplaceAllStringFunc(page, func(old string) string {
		what := block.FindStringSubmatch(old)[1]
		text, err := content(what, all)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
		return "<!-- " + what + " -->\n" + text + "<!-- end -->\n"
	})
	return filled, errors.Join(errs...)
}

func content(what string, all map[string]Results) (string, error) {
	switch what {
	case "papers":
		return PaperTable(all)
	case "count":
		judgements, err := Judge(Rows(), all)
		if err != nil {
			return "", err
		}
		return "\n" + judgements.Count() + "\n\n", nil
	case "not judged":
		return notJudgedTable(), nil
	case "rule":
		return "\n" + Rule + "\n\n", nil
	case "scale":
		return "\n" + ScaleRule + "\n\n", nil
	case "seconds":
		return secondsTable(all)
	}
	fields := strings.Split(strings.TrimPrefix(what, "table "), "|")
	options := labelsOf("")
	for _, field := range fields[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		options[name] = value
	}
	name := strings.TrimSpace(fields[0])
	results, found := all[name]
	if !found {
		return "", fmt.Errorf("no results are stored as %s", name)
	}
	return table(results.where(labelsOf(options["where"])), options)
}

// table lays results out in rows and columns.
func table(results Results, options map[string]string) (string, error) {
	rows := options["rows"]
	columns := options["columns"]
	numbers := strings.Split(options["numbers"], ",")
	head := []string{rows}
	if columns == "" {
		for _, number := range numbers {
			head = append(head, code(name(number)))
		}
	} else {
		for _, column := range results.values(columns) {
			head = append(head, code(column))
		}
	}
	lines := [][]string{head, slices.Repeat([]string{"---"}, len(head))}
	for _, row := range results.values(rows) {
		of := results.where(map[string]string{rows: row})
		cells, err := cellsOf(of, results.values(columns), columns, numbers)
		if err != nil {
			return "", fmt.Errorf("%s: %w", row, err)
		}
		if strings.Join(cells, "") != "" {
			lines = append(lines, append([]string{code(row)}, cells...))
		}
	}
	return markdown(lines), nil
}

// cellsOf returns the cells of a row: one for each number or, if columns is
// given, one for each of its values, with all numbers.
func cellsOf(row Results, values []string, columns string, numbers []string) (cells []string, err error) {
	if columns == "" {
		for _, number := range numbers {
			text, err := row.text(number)
			if err != nil {
				return nil, err
			}
			cells = append(cells, text)
		}
		return cells, nil
	}
	for _, value := range values {
		var texts []string
		for _, number := range numbers {
			text, err := row.where(map[string]string{columns: value}).text(number)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", value, err)
			}
			if text != "" {
				texts = append(texts, text)
			}
		}
		cells = append(cells, strings.Join(texts, ", "))
	}
	return cells, nil
}

// notJudgedTable lists the papers' numbers that no claim judges.
func notJudgedTable() string {
	lines := [][]string{{"table", "row or column", "why"}, {"---", "---", "---"}}
	for _, n := range NotJudged() {
		lines = append(lines, []string{n.Table, n.Named, n.Reason})
	}
	return markdown(lines)
}

// code sets a word of the command line in the letters of code.
func code(word string) string { return "`" + word + "`" }

// markdown writes the lines of a table.
func markdown(lines [][]string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
	}
	return b.String()
}

// values lists the values of a label, in the order of the results.
func (r Results) values(label string) (list []string) {
	for _, row := range r {
		if !slices.Contains(list, row[label]) {
			list = append(list, row[label])
		}
	}
	return list
}

func name(number string) string {
	name, _, _ := strings.Cut(number, ":")
	return name
}

// text formats a number, given as NAME:FORMAT, of the one cell whose rows r
// are, with its standard error. It is empty if the cell lacks the number.
func (r Results) text(number string) (string, error) {
	name, format, found := strings.Cut(number, ":")
	if !found {
		format = "%.2f"
	}
	if len(r) == 0 || r[0][name] == "" {
		return "", nil
	}
	e, err := r.number(name)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf(format, e.Mean)
	if !math.IsNaN(e.Error) {
		text += " ± " + fmt.Sprintf(format, e.Error)
	}
	return strings.ReplaceAll(text, "-", "−"), nil
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// PaperTable returns the table of the papers in Markdown, with the verdicts.
func PaperTable(all map[string]Results) (string, error) {
	rows := Rows()
	judgements, err := Judge(rows, all)
	if err != nil {
		return "", err
	}
	lines := [][]string{
		{"of", "shows", "command", "paper has", "here", "smaller or weaker here", "repeats?"},
		slices.Repeat([]string{"---"}, 7),
	}
	for _, row := range rows {
		here, err := row.here(all)
		if err != nil && row.notRun() == "" {
			return "", fmt.Errorf("%s: %w", row.Of, err)
		}
		verdict, err := row.Verdict(all, judgements)
		if err != nil {
			return "", fmt.Errorf("%s: %w", row.Of, err)
		}
		var commands []string
		for _, command := range row.commands() {
			commands = append(commands, code(command))
		}
		lines = append(lines, []string{row.Of, row.Shows, strings.Join(commands, ", "), row.paper(), here, row.Smaller,
			verdict})
	}
	return markdown(lines), nil
}

// paper returns what the paper has, from the claims of the row.
func (row Row) paper() string {
	if row.Paper != "" {
		return row.Paper
	}
	var places []string
	texts := map[string][]string{}
	for _, c := range append(slices.Clone(row.Claims), row.Unjudged...) {
		if !slices.Contains(places, c.Place) {
			places = append(places, c.Place)
		}
		text, _ := c.inPaper()
		if text != "" && !slices.Contains(texts[c.Place], text) {
			texts[c.Place] = append(texts[c.Place], text)
		}
	}
	for i, place := range places {
		if len(texts[place]) > 0 {
			places[i] += ": " + strings.Join(texts[place], "; ")
		}
	}
	return strings.Join(places, "; ")
}

// notRun says why a result that the row reads has not been made; "" if all have.
func (row Row) notRun() string {
	for _, name := range row.Results() {
		if run, _ := runOf(name); run.NotRun != "" {
			return run.NotRun
		}
	}
	return ""
}

// here returns the text of the row with its numbers.
func (row Row) here(all map[string]Results) (string, error) {
	var errs []error
	text := placeholder.ReplaceAllStringFunc(row.Here, func(field string) string {
		parts := strings.Split(strings.Trim(field, "{}"), "|")
		if len(parts) != 4 {
			errs = append(errs, fmt.Errorf("%s: four parts are wanted", field))
			return field
		}
		of := all[parts[0]].where(labelsOf(parts[3]))
		if len(of) == 0 {
			errs = append(errs, fmt.Errorf("%s: no such cell", field))
		}
		number, err := of.text(parts[1] + ":" + parts[2])
		errs = append(errs, err)
		return number
	})
	return text, errors.Join(errs...)
}

// Verdict returns what the results say of the row.
func (row Row) Verdict(all map[string]Results, j *Judgements) (string, error) {
	if row.Without != "" {
		return "no verdict: " + row.Without, nil
	}
	if reason := row.notRun(); reason != "" {
		return "no verdict: not run: " + reason, nil
	}
	if row.Test != "" {
		return "yes, by a test", nil
	}
	for _, e := range row.Exact {
		holds, err := e.holds(all)
		if err != nil {
			return "", err
		}
		if !holds {
			return "no; not " + e.Text, nil
		}
	}
	if len(row.Claims) == 0 {
		return "yes", nil
	}
	return Verdict(row.Claims, j), nil
}

// holds reports whether exact numbers have the order.
func (e Exact) holds(all map[string]Results) (bool, error) {
	rows := all[e.Results].where(e.Where)
	if len(rows) < 2 {
		return false, fmt.Errorf("%s: %d rows of %s", e.Text, len(rows), e.Results)
	}
	before := math.Inf(-1)
	for _, row := range rows {
		x, err := strconv.ParseFloat(row[e.Number], 64)
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
