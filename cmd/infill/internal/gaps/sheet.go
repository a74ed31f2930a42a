package gaps

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/infill/batch"
)

// sheetOptions say how a sheet looks.
type sheetOptions struct {
	key   bool   // whether the right answers are printed, apart
	title string // of HTML and Moodle
	lang  string // language of the text, in HTML
}

// replaced returns the exercise's text with what gap returns for each gap.
func replaced(e *infill.Exercise, own func(string) string, gap func(n int, g infill.Gap) string) string {
	var b strings.Builder
	at := 0
	for i, g := range e.Gaps {
		b.WriteString(own(e.Text[at:g.Span[0]]))
		b.WriteString(gap(i+1, g))
		at = g.Span[1]
	}
	b.WriteString(own(e.Text[at:]))
	return b.String()
}

// line is the place for an answer.
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

// choice reports whether a gap of the exercise has options.
func choice(e *infill.Exercise) bool {
	return slices.ContainsFunc(e.Gaps, func(g infill.Gap) bool { return g.Options != nil })
}

// answer returns the key of a gap, how surprising it is, and the words that would do
// nearly as well.
func answer(g infill.Gap) string {
	key := fmt.Sprintf("%s, %.1f bits", g.Key, g.Bits)
	if len(g.Rivals) == 0 {
		return key
	}
	return fmt.Sprintf("%s (also likely: %s)", key, strings.Join(g.Rivals, ", "))
}

// style says how a sheet of plain lines looks.
type style struct {
	own       func(text string) string // the text as the style writes it
	gap, item string                   // formats of a gap's number and line, and of an entry of a list
	options   string                   // what stands above the options
	key       string                   // what stands above the key
}

// marks are the characters that Markdown reads.
var marks = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "#", `\#`, "<", `\<`, "[", `\[`, "]", `\]`)

var (
	plain = style{own: func(text string) string { return text }, gap: "(%d) %s", item: "%3d  %s\n", options: "\n",
		key: "\nKey\n"}
	markdown = style{own: marks.Replace, gap: "**(%d)** %s", item: "%d. %s\n", options: "\n", key: "\n## Key\n\n"}
)

func writeText(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	return plain.write(w, e, o.key)
}
func writeMarkdown(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	return markdown.write(w, e, o.key)
}

func (s style) write(w io.Writer, e *infill.Exercise, key bool) error {
	var b strings.Builder
	numbered := func(n int, _ infill.Gap) string { return fmt.Sprintf(s.gap, n, s.own(line)) }
	b.WriteString(replaced(e, s.own, numbered) + "\n")
	list := func(heading string, of func(g infill.Gap) string) {
		b.WriteString(heading)
		for i, g := range e.Gaps {
			fmt.Fprintf(&b, s.item, i+1, s.own(of(g)))
		}
	}
	if choice(e) {
		list(s.options, lettered)
	}
	if key {
		list(s.key, answer)
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

// paragraph is a list of pieces of text; a piece with a number ends with a gap.
type paragraph []struct {
	Text   string
	Number int
}

func writeHTML(w io.Writer, e *infill.Exercise, o sheetOptions) error {
	// A character that no checked text holds stands for each gap.
	const gap = "\x00"
	text := replaced(e, plain.own, func(int, infill.Gap) string { return gap })
	var paragraphs []paragraph
	number := 0
	for block := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(block) == "" {
			continue
		}
		var p paragraph
		pieces := strings.Split(block, gap)
		for i, piece := range pieces {
			n := 0
			if i < len(pieces)-1 {
				number++
				n = number
			}
			p = append(p, struct {
				Text   string
				Number int
			}{piece, n})
		}
		paragraphs = append(paragraphs, p)
	}
	return sheet.Execute(w, map[string]any{"Paragraphs": paragraphs, "Gaps": e.Gaps, "Key": o.key, "Title": o.title,
		"Lang": o.lang, "Options": choice(e)})
}

func writeCSV(w io.Writer, e *infill.Exercise, _ sheetOptions) error {
	most := 0
	for _, g := range e.Gaps {
		most = max(most, len(g.Options))
	}
	head := []string{"gap", "key", "probability", "bits", "rivals", "start", "end"}
	for i := range most {
		head = append(head, fmt.Sprintf("option_%d", i+1))
	}
	rows := [][]string{head}
	for i, g := range e.Gaps {
		cells := []string{strconv.Itoa(i + 1), g.Key, strconv.FormatFloat(g.Probability, 'g', -1, 64),
			strconv.FormatFloat(g.Bits, 'g', -1, 64), strings.Join(g.Rivals, " "),
			strconv.Itoa(g.Span[0]), strconv.Itoa(g.Span[1])}
		cells = append(cells, g.Options...)
		rows = append(rows, append(cells, make([]string, len(head)-len(cells))...))
	}
	return batch.WriteCSV(w, rows...)
}

// right returns the right answers of a gap without options, as escape writes them: what
// is as likely as the key is right, too.
func right(g infill.Gap, escape *strings.Replacer) []string {
	var answers []string
	for _, answer := range append([]string{g.Key}, g.Rivals...) {
		literal := strings.ReplaceAll(answer, "*", `\*`) // else it stands for any letters
		answers = append(answers, escape.Replace(literal))
	}
	return answers
}

// controls are the characters that GIFT reads.
var controls = strings.NewReplacer("~", `\~`, "=", `\=`, "#", `\#`, "{", `\{`, "}", `\}`, ":", `\:`, `\`, `\\`)

// weighed returns an answer that begins with % behind its weight in per cent: else GIFT
// could read one from it.
func weighed(percent, answer string) string {
	if strings.HasPrefix(answer, "%") {
		return "%" + percent + "%" + answer
	}
	return answer
}

// writeGIFT writes a question with a missing word for each gap. The other gaps
// of its line hold their keys.
func writeGIFT(w io.Writer, e *infill.Exercise, _ sheetOptions) error {
	var b strings.Builder
	for i, g := range e.Gaps {
		from := strings.LastIndex(e.Text[:g.Span[0]], "\n") + 1
		to := len(e.Text)
		end := strings.Index(e.Text[g.Span[1]:], "\n")
		if end >= 0 {
			to = g.Span[1] + end
		}
		answers := []string{"=" + weighed("100", controls.Replace(g.Key))}
		for _, option := range g.Options {
			if option != g.Key {
				answers = append(answers, "~"+weighed("0", controls.Replace(option)))
			}
		}
		if g.Options == nil {
			answers = right(g, controls)
			for i, answer := range answers {
				// An arrow makes a question of pairs; * stands for any letters, here none.
				answers[i] = "=" + weighed("100", strings.ReplaceAll(answer, "->", "-*>"))
			}
		}
		// Without [plain], < begins a tag of HTML.
		fmt.Fprintf(&b, "::Gap %d::[plain]%s{%s}%s\n\n", i+1, controls.Replace(e.Text[from:g.Span[0]]),
			strings.Join(answers, " "),
			controls.Replace(e.Text[g.Span[1]:to]))
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
			return "{1:SHORTANSWER:=" + strings.Join(right(g, entities), "~=") + "}"
		}
		var list []string
		for _, option := range g.Options {
			text := entities.Replace(option)
			if option == g.Key {
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
		html.EscapeString(o.title), html.EscapeString(strings.Join(paragraphs, "\n")))
	return err
}

func writeJSON(w io.Writer, e *infill.Exercise, _ sheetOptions) error { return cli.WriteJSON(w, e) }
