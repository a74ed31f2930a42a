package papers

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Blocks of a page that are made of results stand between two comments:
//
//	<!-- table learn-ising | rows=steps | columns=sampler | numbers=log-rmse:%.3f -->
//	<!-- end -->
//
// rows and columns name labels. Without columns, each number is a column. A row
// without numbers is left out.
// where=LABEL=VALUE;LABEL=VALUE chooses cells. The block papers has the sections
// of [Claims], not judged and sentences have what no claim judges. rule is
// [Document.Rule], count is [Judgements.Count], scale is [ScaleRule], and seconds lists
// the stored results.
var block = regexp.MustCompile(`(?s)<!-- (table [^>]*?|papers|rule|count|not judged|sentences|scale|seconds)` +
	` -->\n(.*?)<!-- end -->\n`)

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
		return sections(all)
	case "count":
		judgements, err := Judge(Rows(), all)
		if err != nil {
			return "", err
		}
		return "\n" + judgements.Count() + "\n\n", nil
	case "not judged":
		return notJudgedTable(Claims().Numbers, "table", "row or column"), nil
	case "sentences":
		return notJudgedTable(Claims().Sentences, "where", "sentence"), nil
	case "rule":
		return "\n" + Claims().Rule + "\n\n", nil
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

// notJudgedTable lists what no claim judges, with the reasons.
func notJudgedTable(list []NotJudged, place, says string) string {
	lines := [][]string{{place, says, "why"}, {"---", "---", "---"}}
	for _, n := range list {
		lines = append(lines, []string{n.Place, n.Says, n.Reason})
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
	return e.text(format), nil
}

func (e Estimate) text(format string) string {
	text := fmt.Sprintf(format, e.Mean)
	if !math.IsNaN(e.Error) {
		text += " ± " + fmt.Sprintf(format, e.Error)
	}
	return strings.ReplaceAll(text, "-", "−")
}
