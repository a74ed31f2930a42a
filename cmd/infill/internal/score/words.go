package score

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/internal/phrase"
)

// units are the names of surprisals by base, and their size in nats.
var units = map[string]struct {
	name string
	nats float64
}{"2": {"bits", math.Ln2}, "e": {"nats", 1}, "10": {"bans", math.Ln10}}

// surprisal returns -log P of a word, given log P in nats.
func (r row) surprisal(nats float64) float64 {
	if nats == 0 { // no negative zero
		return 0
	}
	return -nats / units[r.base].nats
}

// wordColumns returns the names and values of a word's columns. after is the
// punctuation that follows the word without a space.
func (r row) wordColumns() []any {
	s := r.scores[0]
	w := s.Words[r.word-1]
	position := r.position(w)
	after := []rune(s.Text)[w.End:]
	end := slices.IndexFunc(after, func(c rune) bool { return !unicode.IsPunct(c) && !unicode.IsSymbol(c) })
	if end >= 0 {
		after = after[:end]
	}
	columns := []any{"text", s.Text, "word", w.Word, "start", w.Start, "end", w.End, "tokens", w.Tokens,
		"surprisal", r.surprisal(w.LogLikelihood), "log_likelihood", w.LogLikelihood,
		"position", position, "after", string(after)}
	switch {
	case r.counted && r.target == 0:
		columns = append(columns, "from_target", nil)
	case r.counted:
		columns = append(columns, "from_target", position-r.target)
	}
	return columns
}

// position returns the number, from 1, of a word's text between spaces.
func (r row) position(w infill.ScoredWord) int {
	runes := []rune(r.scores[0].Text)
	position := len(strings.Fields(string(runes[:w.Start])))
	if w.Start == 0 || unicode.IsSpace(runes[w.Start-1]) {
		position++
	}
	return position
}

// find returns the position of a word that the text has once. It is 0 for an empty cell.
func (r row) find(word string) (position int, err error) {
	if word == "" {
		return 0, nil
	}
	for _, w := range r.scores[0].Words {
		if w.Word != word {
			continue
		}
		if position > 0 {
			return 0, fmt.Errorf("the text has the word %.80q twice: leave its cell empty, and count from position",
				word)
		}
		position = r.position(w)
	}
	if position == 0 {
		return 0, fmt.Errorf("the text has no word %.80q", word)
	}
	return position, nil
}

// steps are bounds between the colours of words, in bits.
var steps = []float64{2, 4, 8, 16}

// colours are the backgrounds of words, of the least surprising the terminal's.
var colours = []ansi.Color{nil, ansi.IndexedColor(230), ansi.IndexedColor(222), ansi.IndexedColor(215),
	ansi.IndexedColor(203)}

// coloured returns text on the background for a surprisal in bits.
func coloured(text string, bits float64) string {
	level := 0
	for level < len(steps) && bits >= steps[level] {
		level++
	}
	if colours[level] == nil {
		return text
	}
	return ansi.NewStyle().ForegroundColor(ansi.Black).BackgroundColor(colours[level]).Styled(text)
}

// wordsText returns a table of the words of a text. On a terminal with colours,
// the text stands above it, each word on the colour of its surprisal.
func (c *command) wordsText(r row, width int) string {
	s := r.scores[0]
	unit := units[c.Base]
	var rows [][]string
	var line strings.Builder
	runes := []rune(s.Text)
	from := 0
	for _, w := range s.Words {
		rows = append(rows, []string{cli.OneLine(w.Word), fmt.Sprintf("%.2f", r.surprisal(w.LogLikelihood)),
			fmt.Sprint(w.Tokens)})
		line.WriteString(cli.Mark(string(runes[from:w.Start]), nil))
		line.WriteString(coloured(cli.Mark(w.Word, nil), -w.LogLikelihood/math.Ln2))
		from = w.End
	}
	line.WriteString(cli.Mark(string(runes[from:]), nil))
	text := cli.Wrap(line.String(), width, "") + "\n\n"
	if c.streams.Colors() >= colorprofile.ANSI {
		text += scale(unit.name, unit.nats) + "\n\n"
	}
	return text + cli.RenderTable(width, []string{"word", unit.name, "tokens"}, rows, 0) + "\n" + cli.Notes(width,
		fmt.Sprintf("%s, %.2f %s together, method %s%s", phrase.Counted(len(rows), "word"),
			r.surprisal(s.LogLikelihood), unit.name, s.Method, r.by()))
}

// scale returns what the colours mean.
func scale(unit string, nats float64) string {
	said := []string{"surprisal in " + unit + ":"}
	for i := range colours {
		low := 0.0
		if i > 0 {
			low = steps[i-1]
		}
		said = append(said, coloured(fmt.Sprintf(" %.3g and more ", low*math.Ln2/nats), low))
	}
	return strings.Join(said, " ")
}
