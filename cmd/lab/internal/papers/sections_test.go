package papers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longest is the most characters of a list on the page; a longer one is in the
// file of claims.
const longest = 400

// repeatable is the most characters that an item says again after the one above.
const repeatable = 40

// claimsLink leads from the page to the file of claims.
const claimsLink = "[claims.csv](../measured/claims.csv)"

// sections writes the sections of the papers in Markdown: an item for each row,
// and one below it for each finding of claims that do not hold.
func sections(all map[string]Results) (string, error) {
	judgements, err := Judge(Rows(), all)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range Claims().Sections {
		fmt.Fprintf(&b, "\n### %s\n\n", s.Name)
		if s.Picture != "" {
			fmt.Fprintf(&b, "![%s](../pictures/%s)\n\n", s.Alt, s.Picture)
		}
		above := map[string]string{}
		for _, row := range s.Rows {
			err := row.write(&b, above, all, judgements)
			if err != nil {
				return "", fmt.Errorf("%s, %s: %w", row.Of, row.Shows, err)
			}
		}
	}
	b.WriteString("\n")
	return b.String(), nil
}

// write writes the item of a row. above has what the item above it says.
func (row Row) write(b *strings.Builder, above map[string]string, all map[string]Results, j *Judgements) error {
	here, err := row.here(all)
	if err != nil && row.notRun() == "" {
		return err
	}
	runs, err := row.runs(all)
	if err != nil {
		return err
	}
	verdict, err := row.Verdict(all, j)
	if err != nil {
		return err
	}
	of := ""
	if verdict.Word == "partly" {
		of = fmt.Sprintf(", %d of %d claims hold", verdict.Held, verdict.Of)
	}
	fmt.Fprintf(b, "- **%s: %s%s.**", row.Shows, verdict.Word, of)
	paper := row.paper()
	if utf8.RuneCountInString(paper) > longest {
		paper = row.places() + " (orders in " + claimsLink + ")"
	}
	parts := [][2]string{{"The paper", paper}, {"Here", here}, {"Weaker here", row.Smaller}, {"Run", runs}}
	for _, part := range parts {
		name, text := part[0], part[1]
		again := text == above[name] && utf8.RuneCountInString(text) > repeatable
		above[name] = text
		switch {
		case again:
			fmt.Fprintf(b, " %s: as above.", name)
		case text != "":
			fmt.Fprintf(b, " %s: %s.", name, strings.TrimSuffix(text, "."))
		}
	}
	b.WriteString("\n")
	for _, others := range verdict.Others {
		text := others.String()
		if utf8.RuneCountInString(text) > longest {
			text = fmt.Sprintf("%s: %d claims of %s", others.Finding, len(others.Claims), claimsLink)
		}
		fmt.Fprintf(b, "  - %s\n", text)
	}
	return nil
}

// runs lists the runs that a row reads, with the time that they take on one core.
func (row Row) runs(all map[string]Results) (string, error) {
	var list []string
	for _, name := range slices.Concat(row.Results(), row.Also) {
		run, _ := RunOf(name)
		took, err := run.time(all)
		if err != nil {
			return "", err
		}
		list = append(list, code(name)+" ("+took+")")
	}
	if row.Command != "" {
		list = append(list, code(row.Command)+" ("+row.Takes+")")
	}
	return strings.Join(list, ", "), nil
}

// time says how long the command of a result takes on one core.
func (run Run) time(all map[string]Results) (string, error) {
	seconds, err := all[run.Name].seconds()
	switch {
	case err != nil || seconds == 0:
		return cmp.Or(run.Takes, run.NotRun), err
	case seconds < 120:
		return fmt.Sprintf("%.0f s", math.Ceil(seconds)), nil
	}
	return fmt.Sprintf("%.0f min", seconds/60), nil
}

// ClaimTable returns the lines of the file of claims: each claim of each row with
// its numbers, and each row without claims.
func ClaimTable(all map[string]Results) ([][]string, error) {
	judgements, err := Judge(Rows(), all)
	if err != nil {
		return nil, err
	}
	lines := [][]string{{"section", "row", "claim", "the paper", "its cells", "low", "high", "low here", "high here",
		"difference", "from", "to", "repetitions", "p", "adjusted", "finding"}}
	for _, row := range Rows() {
		verdict, err := row.Verdict(all, judgements)
		if err != nil {
			return nil, err
		}
		if len(row.Claims) == 0 {
			line := append([]string{row.Of, row.Shows, "", row.paper()}, make([]string, 11)...)
			lines = append(lines, append(line, verdict.Word))
		}
		for _, c := range row.Claims {
			line, err := c.line(all, judgements.Of(c))
			if err != nil {
				return nil, err
			}
			lines = append(lines, append([]string{row.Of, row.Shows}, line...))
		}
	}
	return lines, nil
}

// line returns the fields of a claim in the file of claims.
func (c Claim) line(all map[string]Results, j Judgement) ([]string, error) {
	cells, _ := c.inPaper()
	line := []string{c.Text, c.Place, cells, c.Low.String(), c.High.String()}
	for _, cell := range []Cell{c.Low, c.High} {
		e, err := cell.estimate(all)
		if err != nil {
			return nil, err
		}
		line = append(line, digits(e.Mean))
	}
	interval := []string{"", "", ""}
	if j.Count > 0 {
		interval = []string{digits(j.Low), digits(j.High), strconv.Itoa(j.Count)}
	}
	line = append(append(line, digits(j.Mean)), interval...)
	return append(line, digits(j.P), digits(j.Adjusted), j.Finding.String()), nil
}

// digits writes a number with four digits that count, and NaN as nothing.
func digits(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return fmt.Sprintf("%.4g", x)
}

// paper returns what the paper has: its places, and what its cells say.
func (row Row) paper() string {
	var parts []string
	if row.Paper != "" {
		text := placeholder.ReplaceAllStringFunc(row.Paper, func(field string) string {
			p := strings.Split(strings.Trim(field, "{@}"), "|")
			return fmt.Sprintf("%.2f", Numbers()[Place{p[0], p[1], p[2], p[3]}].Value)
		})
		parts = append(parts, text)
	}
	var places []string
	texts := map[string][]string{}
	for _, c := range slices.Concat(row.Claims, row.Left) {
		if !slices.Contains(places, c.Place) {
			places = append(places, c.Place)
		}
		text, _ := c.inPaper()
		if text != "" && !slices.Contains(texts[c.Place], text) {
			texts[c.Place] = append(texts[c.Place], text)
		}
	}
	for _, place := range places {
		if len(texts[place]) > 0 {
			place += ": " + strings.Join(texts[place], "; ")
		}
		parts = append(parts, place)
	}
	return strings.Join(parts, "; ")
}

// places lists where the paper says it.
func (row Row) places() string {
	var list []string
	if row.Paper != "" {
		list = append(list, row.Paper)
	}
	for _, s := range slices.Concat(row.Statements, row.Unjudged) {
		if !slices.Contains(list, s.Says) {
			list = append(list, s.Says)
		}
	}
	return strings.Join(list, "; ")
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// shares are the numbers that are shares of one. Texts have them in percent, as
// the papers do.
var shares = []string{"acceptance"}

// here returns the text of the row with its numbers.
func (row Row) here(all map[string]Results) (string, error) {
	var errs []error
	text := placeholder.ReplaceAllStringFunc(row.Here, func(field string) string {
		parts := strings.Split(strings.Trim(field, "{}"), "|")
		if len(parts) != 4 {
			errs = append(errs, fmt.Errorf("%s: four parts are wanted", field))
			return field
		}
		e, err := all[parts[0]].where(labelsOf(parts[3])).number(parts[1])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
		if !slices.Contains(shares, parts[1]) {
			return e.text(parts[2])
		}
		e.Mean *= 100
		e.Error *= 100
		return e.text(parts[2]) + " %"
	})
	return text, errors.Join(errs...)
}
