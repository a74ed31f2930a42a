package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/google/renameio/v2/maybe"

	"infill/infill"
)

// openPrompt opens the prompt, to filter or to save.
func (m *Model) openPrompt(value string, saving bool) {
	if !saving {
		value = m.filter
	}
	m.prompt = &prompt{saving: saving, input: newInput(value, 400)}
}

func (m *Model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc":
		m.prompt = nil
		if !p.saving {
			m.filter = ""
			m.list()
		}
		return nil
	case "enter":
		if !p.saving {
			m.prompt = nil
			return nil
		}
		path := strings.TrimSpace(p.input.Value())
		if path == "" {
			p.note = "name a file, or esc"
			return nil
		}
		return m.save(path, p.replace)
	}
	m.promptEdit(k)
	return nil
}

// promptEdit gives a key or a paste to the prompt's text.
func (m *Model) promptEdit(message tea.Msg) {
	p := m.prompt
	before := p.input.Value()
	p.input, _ = p.input.Update(message)
	if p.input.Value() != before {
		p.note, p.replace = "", false
		if !p.saving {
			m.filter, m.chosen = p.input.Value(), ""
			m.list()
		}
	}
}

// chosenFills are what is saved: the favourites, or else what is listed.
func (m *Model) chosenFills() []Fill {
	if len(m.favourites) > 0 {
		return m.favourites
	}
	return m.listed
}

// save writes the fills to a file: a text a line, or the run's JSON object where
// the name ends in .jsonl or .json. It replaces a file only when told to.
func (m *Model) save(path string, replace bool) tea.Cmd {
	fills := append([]Fill(nil), m.chosenFills()...)
	p, model := m.sides[0].snapshot, m.config.Model
	return m.jobs.command(func(context.Context) tea.Msg {
		var content bytes.Buffer
		if lower := strings.ToLower(path); strings.HasSuffix(lower, ".jsonl") || strings.HasSuffix(lower, ".json") {
			e := json.NewEncoder(&content)
			e.SetEscapeHTML(false)
			if err := e.Encode(resultOf(p, model, fills)); err != nil {
				// JSON has no number for what is not known yet.
				return savedMsg{path: path, err: errors.New("wait for the run to end, its log-likelihoods are not known yet")}
			}
		} else {
			for _, f := range fills {
				// A text is a line: line ends inside it become blanks.
				content.WriteString(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(f.Text) + "\n")
			}
		}
		if _, err := os.Lstat(path); !replace && err == nil {
			return savedMsg{path: path, exists: true}
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return savedMsg{path: path, err: err}
		}
		return savedMsg{path: path, fills: len(fills), err: maybe.WriteFile(path, content.Bytes(), 0o644)}
	})
}

func (m *Model) saved(message savedMsg) {
	switch {
	case message.exists && m.prompt != nil:
		m.prompt.note, m.prompt.replace = "is there already: enter again replaces it", true
	case message.err != nil && m.prompt != nil:
		m.prompt.note = "not saved: " + reason(message.err)
	case message.err != nil:
		m.fail("not saved: " + reason(message.err))
	case !message.exists:
		m.prompt = nil
		noun := "fills"
		if message.fills == 1 {
			noun = "fill"
		}
		m.say(strconv.Itoa(message.fills) + " " + noun + " saved to " + harmless(message.path))
	}
}

// pick makes what the screen gives back.
func (m *Model) pick(f *Fill) *Picked {
	return &Picked{Text: f.Text, Result: resultOf(m.sides[0].snapshot, m.config.Model, []Fill{*f})}
}

// resultOf makes the run's result with the given fills as its samples.
func resultOf(p *Snapshot, model string, fills []Fill) *infill.Result {
	result := &infill.Result{Model: infill.Model{Name: model}, Warnings: []string{}}
	if p != nil && p.Result != nil {
		kept := *p.Result
		result = &kept
	} else {
		result.Warnings = append(result.Warnings, "taken from a run that was not over: there is no signature")
		if p != nil {
			result.Template, result.Seed = p.Template.Text, p.Options.Seed
			result.Stats.Sampler, result.Stats.Chains, result.Stats.Steps = p.Options.Sampler, p.Chains, p.Step
			result.Stats.Slots, result.Stats.Draws, result.Stats.DistinctFills = len(p.Template.Slots), p.Rounds*p.Chains, p.Distinct
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
