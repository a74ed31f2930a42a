package gaps

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"html"
	"html/template"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/internal/batch"
	"infill/internal/lines"
	"infill/tokenize"
)

type sheetOptions struct {
	Key   bool   `option:"key" help:"print the right answers, apart"`
	Title string `option:"title" word:"TEXT" help:"TEXT above html and versions, in the names of questions of gift and moodle, and anki's tag"`
	// Versions is how many pages there are; 0 for one that has no letter.
	Versions int    `option:"versions" minimum:"2" maximum:"10" word:"N" help:"N pages for neighbours: the same gaps and answers, in another order in each"`
	Lang     string `option:"lang" word:"CODE" help:"CODE of the text's language in html, such as de"`
}

type version struct {
	*infill.Exercise
	Title, Letter string
}

// versions returns the pages of an exercise. The options of a gap are turned by another
// number of places in each, so that the letter of a right answer differs between
// as many pages as there are options.
func (o sheetOptions) versions(e *infill.Exercise) []version {
	list := []version{{e, o.Title, ""}}
	for v := range o.Versions {
		letter := string(rune('A' + v))
		page := version{&infill.Exercise{Text: e.Text, Gaps: slices.Clone(e.Gaps)}, o.Title + " " + letter, letter}
		for i, g := range e.Gaps {
			n := len(g.Options)
			if v > 0 && n > 0 {
				turns := rand.New(rand.NewPCG(0, uint64(g.Span[0]))).Perm(n - 1)
				by := 1 + turns[(v-1)%(n-1)]
				page.Gaps[i].Options = slices.Concat(g.Options[by:], g.Options[:by])
			}
		}
		list = append(list, page)
	}
	return list[min(1, o.Versions):]
}

// check returns an error if an exercise has too few options for the versions.
func (o sheetOptions) check(e *infill.Exercise) error {
	most := 0
	for _, g := range e.Gaps {
		most = max(most, len(g.Options))
	}
	if most >= o.Versions {
		return nil
	}
	return cli.Usagef("--versions: %d orders need a gap with %[1]d options, and here a gap has %d at most: give "+
		"fewer, or more --options", o.Versions, most)
}

// replaced returns the exercise's text with what gap returns for each gap.
func replaced(e *infill.Exercise, own func(string) string, gap func(n int, g infill.Gap) string) string {
	var b strings.Builder
	at := 0
	for i, g := range inBytes(e) {
		b.WriteString(own(e.Text[at:g.Span[0]]))
		b.WriteString(gap(i+1, g))
		at = g.Span[1]
	}
	b.WriteString(own(e.Text[at:]))
	return b.String()
}

func inBytes(e *infill.Exercise) []infill.Gap {
	gaps := slices.Clone(e.Gaps)
	var spans [][2]int
	for _, g := range gaps {
		spans = append(spans, g.Span)
	}
	for i, span := range lines.Bytes(e.Text, spans) {
		gaps[i].Span = span
	}
	return gaps
}

const line = "________"

// lettered returns the options of a gap with letters before them; of a gap without
// options, the place for an answer.
func lettered(g infill.Gap) string {
	if g.Options == nil {
		return line
	}
	var list []string
	for i, option := range g.Options {
		list = append(list, fmt.Sprintf("%c) %s", 'a'+i, option))
	}
	return strings.Join(list, "   ")
}

func choice(e *infill.Exercise) bool {
	return slices.ContainsFunc(e.Gaps, func(g infill.Gap) bool { return g.Options != nil })
}

func right(g infill.Gap, answer string) bool {
	return answer == g.Key || slices.Contains(g.Right, answer)
}

func answers(g infill.Gap) []string { return append([]string{g.Key}, g.Right...) }

// answer returns the right answers of a gap with their letters, how surprising the key is,
// and whether it is open: the words that would do nearly as well.
func answer(g infill.Gap) string {
	var list []string
	for _, a := range answers(g) {
		at := slices.Index(g.Options, a)
		if at >= 0 {
			a = fmt.Sprintf("%c) %s", 'a'+at, a)
		}
		list = append(list, a)
	}
	key := strings.Join(list, " / ")
	if measured(g) {
		key += fmt.Sprintf(", %.1f bits", g.Bits)
	}
	if len(g.Rivals) == 0 {
		return key
	}
	return fmt.Sprintf("%s, open (also likely: %s)", key, strings.Join(g.Rivals, ", "))
}

// measured reports whether the model has seen a gap, and nobody has written it by hand.
func measured(g infill.Gap) bool { return g.Probability > 0 || g.Bits > 0 }

type style struct {
	own       func(text string) string // the text as the style writes it
	gap, item string                   // formats of a gap's number and line, and of an entry of a list
	title     string                   // what stands before the title
	key       string                   // format of what stands above the key
}

var marks = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "#", `\#`, "<", `\<`, "[", `\[`, "]", `\]`)

var (
	plain = style{own: func(text string) string { return text }, gap: "(%d) %s", item: "%3d  %s\n",
		key: "\n%s\n"}
	markdown = style{own: marks.Replace, gap: "**(%d)** %s", item: "%d. %s\n",
		title: "# ", key: "\n## %s\n\n"}
)

func (s style) write(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	var b strings.Builder
	numbered := func(n int, _ infill.Gap) string { return fmt.Sprintf(s.gap, n, s.own(line)) }
	list := func(v version, of func(g infill.Gap) string) {
		for i, g := range v.Gaps {
			fmt.Fprintf(&b, s.item, i+1, s.own(of(g)))
		}
	}
	versions := o.versions(e)
	for i, v := range versions {
		if i > 0 {
			b.WriteString("\n")
		}
		if v.Letter != "" {
			b.WriteString(s.title + s.own(v.Title) + "\n\n")
		}
		b.WriteString(replaced(e, s.own, numbered) + "\n")
		if choice(e) {
			b.WriteString("\n")
			list(v, lettered)
		}
	}
	if o.Key {
		for _, v := range versions {
			fmt.Fprintf(&b, s.key, strings.TrimSuffix("Key "+v.Letter, " "))
			list(v, answer)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

//go:embed sheet.html
var page string

var sheet = template.Must(template.New("sheet").Funcs(template.FuncMap{
	"answer": answer,
	"letter": func(i int) string { return string(rune('a' + i)) },
}).Parse(page))

// piece is a piece of text; one with a number ends with a gap.
type piece struct {
	Text   string
	Number int
}

func writeHTML(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	// A character that no checked text holds stands for each gap.
	const gap = "\x00"
	text := replaced(e, plain.own, func(int, infill.Gap) string { return gap })
	var paragraphs [][]piece
	number := 0
	for block := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(block) == "" {
			continue
		}
		var p []piece
		texts := strings.Split(block, gap)
		for i, text := range texts {
			n := 0
			if i < len(texts)-1 {
				number++
				n = number
			}
			p = append(p, piece{text, n})
		}
		paragraphs = append(paragraphs, p)
	}
	return sheet.Execute(w, map[string]any{"Paragraphs": paragraphs, "Versions": o.versions(e), "Key": o.Key,
		"Title": o.Title, "Lang": o.Lang, "Options": choice(e)})
}

func writeCSV(w io.Writer, e *infill.Exercise, _ sheetOptions) error {
	head := []string{"gap", "key", "probability", "bits", "rivals", "start", "end"}
	rows := [][]string{head}
	for i, g := range e.Gaps {
		cells := []string{strconv.Itoa(i + 1), g.Key, "", "", strings.Join(g.Rivals, " "),
			strconv.Itoa(g.Span[0]), strconv.Itoa(g.Span[1])}
		if measured(g) {
			cells[2] = strconv.FormatFloat(g.Probability, 'g', -1, 64)
			cells[3] = strconv.FormatFloat(g.Bits, 'g', -1, 64)
		}
		rows = append(rows, cells)
	}
	columns := func(name string, of func(g infill.Gap) []string) {
		most := 0
		for _, g := range e.Gaps {
			most = max(most, len(of(g)))
		}
		for i := range most {
			rows[0] = append(rows[0], fmt.Sprintf("%s_%d", name, i+1))
		}
		for i, g := range e.Gaps {
			cells := append(rows[i+1], of(g)...)
			rows[i+1] = append(cells, make([]string, len(rows[0])-len(cells))...)
		}
	}
	columns("option", func(g infill.Gap) []string { return g.Options })
	columns("right", func(g infill.Gap) []string { return g.Right })
	return batch.WriteCSV(w, rows...)
}

// accepted returns the right answers of a gap without options, as escape writes them.
func accepted(g infill.Gap, escape *strings.Replacer) (list []string) {
	for _, answer := range answers(g) {
		literal := strings.ReplaceAll(answer, "*", `\*`) // else it stands for any letters
		list = append(list, escape.Replace(literal))
	}
	return list
}

var controls = strings.NewReplacer("~", `\~`, "=", `\=`, "#", `\#`, "{", `\{`, "}", `\}`, ":", `\:`, `\`, `\\`)

// weighed puts a weight before an answer with %, which GIFT would read as one.
func weighed(percent, answer string) string {
	if strings.HasPrefix(answer, "%") {
		return "%" + percent + "%" + answer
	}
	return answer
}

// blanked returns a text from one byte to another, with a line in each gap there.
func blanked(text string, gaps []infill.Gap, from, to int) string {
	var b strings.Builder
	for _, g := range gaps {
		if g.Span[0] >= from && g.Span[1] <= to {
			b.WriteString(text[from:g.Span[0]] + line)
			from = g.Span[1]
		}
	}
	b.WriteString(text[from:to])
	return b.String()
}

// writeGIFT writes a question with a missing word for each gap. The other gaps
// of its line are blank, as no question may answer another.
func writeGIFT(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	var b strings.Builder
	gaps := inBytes(e)
	for i, g := range gaps {
		from := strings.LastIndex(e.Text[:g.Span[0]], "\n") + 1
		to := len(e.Text)
		end := strings.Index(e.Text[g.Span[1]:], "\n")
		if end >= 0 {
			to = g.Span[1] + end
		}
		var answers, wrong []string
		for _, option := range g.Options {
			if right(g, option) {
				answers = append(answers, "="+weighed("100", controls.Replace(option)))
			} else {
				wrong = append(wrong, "~"+weighed("0", controls.Replace(option)))
			}
		}
		answers = append(answers, wrong...)
		if g.Options == nil {
			answers = accepted(g, controls)
			for i, answer := range answers {
				// An arrow makes a question of pairs; * stands for any letters, here none.
				answers[i] = "=" + weighed("100", strings.ReplaceAll(answer, "->", "-*>"))
			}
		}
		// Without [plain], < begins a tag of HTML.
		fmt.Fprintf(&b, "::%s %d::[plain]%s{%s}%s\n\n", controls.Replace(lines.One(o.Title)), i+1,
			controls.Replace(blanked(e.Text, gaps, from, g.Span[0])), strings.Join(answers, " "),
			controls.Replace(blanked(e.Text, gaps, g.Span[1], to)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// entities are the characters that Moodle reads in an answer of an embedded question. Of its
// own escapes it undoes two, and of entities all. No answer ends behind &amp;.
var entities = strings.NewReplacer("&", "&#38;", "<", "&lt;", ">", "&gt;", "~", "&#126;",
	"=", "&#61;", "#", "&#35;", "{", "&#123;", "}", "&#125;", "%", "&#37;",
	`\`, "&#92;", ":", "&#58;")

// writeMoodle writes the whole text as one question with embedded answers (Cloze), in
// Moodle's XML. Its text is HTML.
func writeMoodle(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	own := func(text string) string { // {1: in the text itself asks nothing
		return strings.NewReplacer("{", "&#123;", "}", "&#125;").Replace(html.EscapeString(text))
	}
	gap := func(_ int, g infill.Gap) string {
		if g.Options == nil {
			return "{1:SHORTANSWER:=" + strings.Join(accepted(g, entities), "~=") + "}"
		}
		var list []string
		for _, option := range g.Options {
			text := entities.Replace(option)
			if right(g, option) {
				text = "=" + text
			}
			list = append(list, text)
		}
		return "{1:MULTICHOICE_S:" + strings.Join(list, "~") + "}"
	}
	var paragraphs []string
	for block := range strings.SplitSeq(replaced(e, own, gap), "\n") {
		if strings.TrimSpace(block) != "" {
			paragraphs = append(paragraphs, "<p>"+block+"</p>")
		}
	}
	_, err := fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<quiz>\n<question type=\"cloze\">\n"+
		"<name><text>%s</text></name>\n"+
		"<questiontext format=\"html\"><text>%s</text></questiontext>\n</question>\n</quiz>\n",
		html.EscapeString(o.Title), html.EscapeString(strings.Join(paragraphs, "\n")))
	return err
}

// ankiMarks are the characters that Anki reads in a field, whose text is HTML: # begins a
// comment, and [sound: a sound.
var ankiMarks = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "#", "&#35;", "[", "&#91;", "\r\n", "<br>",
	"\n", "<br>")

// writeAnki writes a note for each gap, as Anki imports text: the sentence with the gap and
// its options, the right answers, and the title as a tag. Two gaps of a sentence differ
// in what stands there, as a note with a front that is there already takes its place.
func writeAnki(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	var b strings.Builder
	b.WriteString("#separator:tab\n#html:true\n#tags column:3\n")
	rows := csv.NewWriter(&b)
	rows.Comma = '\t'
	gaps := inBytes(e)
	starts := tokenize.Sentences(e.Text)
	for _, g := range gaps {
		first := sort.SearchInts(starts, g.Span[0]+1) - 1
		last := sort.SearchInts(starts, g.Span[1])
		before := blanked(e.Text, gaps, starts[first], g.Span[0])
		after := strings.TrimRightFunc(blanked(e.Text, gaps, g.Span[1], starts[last]), unicode.IsSpace)
		front := ankiMarks.Replace(before) + "<b>&#91;...]</b>" + ankiMarks.Replace(after)
		for i, option := range g.Options {
			front += fmt.Sprintf("<br>%c) %s", 'a'+i, ankiMarks.Replace(option))
		}
		err := rows.Write([]string{front, ankiMarks.Replace(strings.Join(answers(g), " / ")),
			strings.Join(strings.Fields(o.Title), "_")})
		if err != nil {
			return err
		}
	}
	rows.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, e *infill.Exercise, _ sheetOptions) error { return cli.WriteJSON(w, e) }
