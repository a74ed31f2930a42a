package papers

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// claimsFile has what the papers say, and by which numbers it is judged. Its
// head says how to add a claim. runsFile has the stored results with their
// commands.
var (
	//go:embed claims.yaml
	claimsFile []byte
	//go:embed runs.yaml
	runsFile []byte
)

type Document struct {
	Rule     string // the rule of verdicts, in words
	Sections []Section
	// Numbers are those of the papers' tables that no claim judges, and
	// Sentences those that compare and are not judged.
	Numbers   []NotJudged `json:"numbers-not-judged"`
	Sentences []NotJudged `json:"sentences-not-judged"`
}

// A Section is a figure, a table or another part of a paper.
type Section struct {
	Name    string `json:"section"`
	Picture string // a file of docs/pictures
	Alt     string // what the picture shows
	Rows    []Row
}

// A Row is what a section shows in one way, and what came of it. The head of
// claims.yaml says what each field of a row and of a statement is.
type Row struct {
	Of                   string `json:"-"` // the section
	Shows, Here, Smaller string
	Statements, Unjudged []Statement
	Claims, Left         []Claim `json:"-"` // of the statements, and of those that are not judged
	Exact                []Exact
	Test, Without, Paper string
	Also                 []string
	Command, Takes       string
}

// Exact is an order of exact numbers that holds in each of some rows.
type Exact struct {
	Text   string
	Number string // as RESULTS COLUMN
	Where  string
	// Most is the column above the number; "" if it rises from row to row.
	Most string
}

// NotJudged is a number or a sentence of a paper that no claim judges.
type NotJudged struct{ Place, Says, Reason string }

// A Statement is a sentence, figure or table of a paper, with numbers here.
type Statement struct {
	Says, Number, Other, Label string
	Where                      []string
	Less                       string
	About                      *string
	Claims                     []string
	Cells                      string
	Sets, Methods              []string
	Of                         string
}

var Claims = sync.OnceValue(func() Document {
	d, err := readClaims(claimsFile)
	if err != nil {
		panic(err) // the program's own file is wrong
	}
	return d
})

func Rows() (rows []Row) {
	for _, s := range Claims().Sections {
		rows = append(rows, s.Rows...)
	}
	return rows
}

// Results lists the stored results that a row reads, in the order of its claims.
func (row Row) Results() (list []string) {
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	for _, c := range row.Claims {
		add(c.results()...)
	}
	for _, e := range row.Exact {
		results, _, _ := strings.Cut(e.Number, " ")
		add(results)
	}
	return list
}

// Missing lists the runs whose results the row reads and all lacks.
func (row Row) Missing(all map[string]Results) (list []Run) {
	for _, name := range row.Results() {
		if _, found := all[name]; found {
			continue
		}
		run, known := RunOf(name)
		if !known {
			run.Name = name
		}
		list = append(list, run)
	}
	return list
}

func readClaims(text []byte) (d Document, err error) {
	err = yaml.UnmarshalStrict(text, &d)
	if err != nil {
		return d, err
	}
	for _, section := range d.Sections {
		for i := range section.Rows {
			row := &section.Rows[i]
			row.Of = section.Name
			row.Claims, err = claimsOf(row.Statements)
			if err == nil {
				row.Left, err = claimsOf(row.Unjudged)
			}
			if err != nil {
				return d, fmt.Errorf("%s, %s: %w", row.Of, row.Shows, err)
			}
		}
	}
	return d, nil
}

func claimsOf(statements []Statement) (list []Claim, err error) {
	for _, s := range statements {
		claims, err := s.claims()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Says, err)
		}
		list = append(list, claims...)
	}
	return list, nil
}

func (s Statement) claims() (list []Claim, err error) {
	if len(s.Where) == 0 {
		s.Where = []string{""}
	}
	if len(s.Sets) > 0 && strings.Count(s.Cells, "|") != 3 {
		return nil, fmt.Errorf("cells %q are not DOCUMENT|TABLE|ROW|COLUMN", s.Cells)
	}
	for _, method := range s.Methods {
		if strings.Count(method, " = ") != 1 {
			return nil, fmt.Errorf("method %q is not NAME = LABEL", method)
		}
	}
	if len(s.Claims) == 0 {
		return s.pairs(), nil
	}
	for _, text := range s.Claims {
		for _, where := range s.Where {
			claims, err := s.stated(text, where)
			if err != nil {
				return nil, err
			}
			list = append(list, claims...)
		}
	}
	return list, nil
}

var claimSyntax = regexp.MustCompile(`^(\S+) (below|above|within (\S+)(?: times (\S+))? of) (\S.*)$`)

// stated returns claims of the first cell and each of the others.
func (s Statement) stated(text, where string) (list []Claim, err error) {
	words := ""
	if i := strings.LastIndex(text, " = "); i >= 0 {
		words = text[:i]
		text = text[i+len(" = "):]
	}
	parts := claimSyntax.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("%q is not A below B, A above B or A within 2 of B", text)
	}
	one, rule, others := parts[1], parts[2], strings.Fields(parts[5])
	if words != "" && len(others) > 1 {
		return nil, fmt.Errorf("%q: words of its own are for one claim, and these are %d", text, len(others))
	}
	margin, err := strconv.ParseFloat(cmp.Or(parts[3], "0"), 64)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	times, err := strconv.ParseFloat(cmp.Or(parts[4], "1"), 64)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	for _, other := range others {
		c := Claim{Place: s.Says, Stated: true, Margin: margin}
		c.Low = s.cell(where, one, s.Number)
		c.High = s.cell(where, other, s.Number)
		if s.Other != "" {
			c.High.Number = s.Other
		}
		if parts[4] != "" {
			c.Margin = math.Log(margin)
			c.Shift = math.Log(times)
			c.Low.Log = true
			c.High.Log = true
		}
		if rule == "above" {
			c.Low, c.High = c.High, c.Low
		}
		c.Text = words
		if words == "" {
			c.Text = short(one) + " " + rule + " " + short(other)
		}
		c.Text += s.about(where)
		for _, set := range s.Sets {
			c.Sets = append(c.Sets, s.set(set, s.paperName(c.Low), s.paperName(c.High)))
		}
		list = append(list, c)
	}
	return list, nil
}

func (s Statement) cell(where, of, number string) Cell {
	given, err := strconv.ParseFloat(of, 64)
	if err == nil {
		return Cell{Given: given}
	}
	c := Cell{Where: labelsOf(where + ";" + s.label() + "=" + of)}
	c.Results, c.Number, _ = strings.Cut(number, " ")
	if s.Less != "" {
		c.Less = s.label() + "=" + s.Less
	}
	return c
}

func (s Statement) label() string { return cmp.Or(s.Label, "sampler") }

// paperName returns the name that a cell here has in the paper.
func (s Statement) paperName(c Cell) string {
	for _, m := range s.Methods {
		paper, here, _ := strings.Cut(m, " = ")
		if here == c.Where[s.label()] {
			return paper
		}
	}
	return ""
}

func (s Statement) set(text, low, high string) Set {
	name, value, two := strings.Cut(text, " = ")
	if !two {
		value = name
	}
	place := func(method string) Place {
		parts := strings.Split(strings.NewReplacer("{set}", value, "{method}", method).Replace(s.Cells), "|")
		return Place{parts[0], parts[1], parts[2], parts[3]}
	}
	return Set{name, place(low), place(high)}
}

// pairs makes a claim of each two methods that the paper's table has. Their
// order follows from its cells.
func (s Statement) pairs() (list []Claim) {
	for _, where := range s.Where {
		for i, one := range s.Methods {
			for _, other := range s.Methods[i+1:] {
				first, here, _ := strings.Cut(one, " = ")
				second, also, _ := strings.Cut(other, " = ")
				if s.Of != "" && s.Of != first && s.Of != second {
					continue
				}
				c := Claim{Place: s.Says, Low: s.cell(where, here, s.Number), High: s.cell(where, also, s.Number)}
				for _, set := range s.Sets {
					c.Sets = append(c.Sets, s.set(set, first, second))
				}
				if !slices.ContainsFunc(c.Sets, func(p Set) bool { return order(p.Low, p.High) != Missing }) {
					continue // the paper says nothing of the two
				}
				so, opposite, _ := c.paperSays()
				if len(opposite) > len(so) { // say it as most of the paper's sets have it
					first, second = second, first
					c.Low, c.High = c.High, c.Low
					for i, set := range c.Sets {
						c.Sets[i].Low, c.Sets[i].High = set.High, set.Low
					}
				}
				c.Text = title(first) + " below " + title(second) + s.about(where)
				list = append(list, c)
			}
		}
	}
	return list
}

// about says in parentheses what a claim says of the labels that its cells
// share: numbers with their label, and words alone.
func (s Statement) about(where string) string {
	text := ""
	name, value, _ := strings.Cut(where, "=")
	switch {
	case s.About != nil:
		text = *s.About
		for label, value := range labelsOf(where) {
			text = strings.ReplaceAll(text, "{"+label+"}", value)
		}
	case name == "steps" || name == "p0":
		text = name + " " + value
	default:
		text = value
	}
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// title returns the name of a method of a paper without the kind of its model.
func title(method string) string {
	name, found := strings.CutPrefix(method, "EBM (")
	if !found {
		return method
	}
	return strings.TrimSuffix(name, ")")
}

// short returns a sampler's name without its settings, but for the slots that a
// step may change, as the papers have it: gibbs-1, gwg-5.
func short(sampler string) string {
	for prefix, name := range map[string]string{"gibbs-x:block=": "gibbs-", "gwg-x:radius=": "gwg-"} {
		settings, found := strings.CutPrefix(sampler, prefix)
		if found {
			number, _, _ := strings.Cut(settings, ",")
			return name + number
		}
	}
	name, _, _ := strings.Cut(sampler, ":")
	return name
}

// labelsOf reads labels as "steps=5;part=x". A value may have = itself.
func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, found := strings.Cut(part, "=")
		if found {
			labels[name] = value
		}
	}
	return labels
}
