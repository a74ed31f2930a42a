package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/renameio/v2/maybe"

	"infill/infill"
	"infill/internal/object"
)

// prompt asks for a line of text at the foot of the screen.
type prompt struct {
	saving  bool // or filtering
	fresh   bool // the name is a proposal: what is typed first takes its place
	input   textinput.Model
	note    string
	replace bool // the file is there, and enter was pressed before
}

type savedMsg struct {
	path   string
	fills  int
	exists bool
	err    error
}

func (m *model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch path := strings.TrimSpace(p.input.Value()); {
	case k.String() == "esc":
		m.prompt = nil
		if !p.saving {
			m.fills.filter = ""
			m.list()
		}
	case k.String() != "enter":
		m.promptEdit(k)
	case !p.saving:
		m.prompt = nil
	case path == "":
		p.note = "name a file, or esc"
	default:
		return m.save(path, p.replace)
	}
	return nil
}

// promptEdit gives a key or a paste to the prompt's text.
func (m *model) promptEdit(message tea.Msg) {
	p := m.prompt
	before := p.input.Value()
	if p.fresh && types(message) {
		p.input.SetValue("")
	}
	p.fresh = false
	p.input, _ = p.input.Update(message)
	if p.input.Value() != before {
		p.note, p.replace = "", false
		if !p.saving {
			m.fills.filter, m.fills.chosen = p.input.Value(), ""
			m.list()
		}
	}
}

// types reports whether a message brings text, rather than moving or deleting.
func types(message tea.Msg) bool {
	switch message := message.(type) {
	case tea.KeyPressMsg:
		return message.Text != ""
	case tea.PasteMsg:
		return message.Content != ""
	}
	return false
}

// promptLine draws the prompt.
func (m *model) promptLine(columns int) string {
	p, label, note, look := m.prompt, "filter ", fmt.Sprintf("%d found", len(m.fills.listed)), m.faint
	if p.saving {
		label, note = fmt.Sprintf("save %d to ", len(m.fills.toSave())), ".jsonl for JSON"
	}
	if p.note != "" {
		note, look = p.note, m.amber
	}
	value := []rune(harmless(p.input.Value()) + " ")
	at := min(p.input.Position(), len(value)-1)
	shown := string(value[:at]) + m.cursor.Render(string(value[at])) + strings.TrimSuffix(string(value[at+1:]), " ")
	if p.fresh {
		shown = m.cursor.Render(strings.TrimSuffix(string(value), " "))
	}
	room := max(columns-width(label)-width(note)-3, 8)
	if w := width(shown); w > room {
		shown = ansi.TruncateLeft(shown, w-room+1, "…")
	}
	return between(m.accent.Render(label)+shown, " "+look.Render(cut(note, columns-8)), columns)
}

// save writes fills to a file: a text a line, or the run's JSON object where the
// name ends in .jsonl or .json. It replaces a file only if asked to.
func (m *model) save(path string, replace bool) tea.Cmd {
	fills := m.fills.toSave()
	result := m.resultOf(fills)
	return m.jobs.command(func(context.Context) tea.Msg {
		var content bytes.Buffer
		if lower := strings.ToLower(path); strings.HasSuffix(lower, ".jsonl") || strings.HasSuffix(lower, ".json") {
			if err := object.WriteLine(&content, result); err != nil {
				// JSON has no number for what is not known yet.
				return savedMsg{err: errors.New("wait for the run to end, its log-likelihoods are not known yet")}
			}
		} else {
			for _, f := range result.Fills {
				// A text is a line: line ends inside it become blanks.
				content.WriteString(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(f.Text) + "\n")
			}
		}
		if _, err := os.Lstat(path); !replace && err == nil {
			return savedMsg{exists: true}
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return savedMsg{err: err}
		}
		return savedMsg{path: path, fills: len(result.Fills), err: maybe.WriteFile(path, content.Bytes(), 0o644)}
	})
}

func (m *model) saved(message savedMsg) {
	switch {
	case message.exists && m.prompt != nil:
		m.prompt.note, m.prompt.replace = "is there already: enter again replaces it", true
	case message.err != nil && m.prompt != nil:
		m.prompt.note = "not saved: " + reason(message.err)
	case message.err != nil:
		m.fail("not saved: " + reason(message.err))
	case message.fills == 1:
		m.prompt = nil
		m.say("1 fill saved to " + harmless(message.path))
	case !message.exists:
		m.prompt = nil
		m.say(fmt.Sprintf("%d fills saved to %s", message.fills, harmless(message.path)))
	}
}

// resultOf makes the run's result with the given fills.
func (m *model) resultOf(fills []fill) *infill.Result {
	result, s := &infill.Result{Model: infill.Model{Name: m.config.Model}}, m.run.snapshot
	if s != nil && s.Result != nil {
		kept := *s.Result
		result = &kept
	} else {
		result.Warnings = []string{"taken from a run that was not over: there is no signature"}
		if s != nil {
			result.Template, result.Seed = s.Template.Text, &s.Options.Seed
			result.Stats.Sampler, result.Stats.Chains, result.Stats.Steps = s.Options.Sampler, s.Chains, s.Step
			result.Stats.Slots, result.Stats.Draws, result.Stats.DistinctFills = len(s.Template.Slots),
				s.Rounds*s.Chains, s.Distinct
		}
	}
	result.Fills = nil
	for _, f := range fills {
		result.Fills = append(result.Fills, f.Fill)
	}
	return result
}

// reason is an error without the path, which the user has just typed.
func reason(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return explain(err)
}
