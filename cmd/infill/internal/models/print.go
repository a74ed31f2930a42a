package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"infill/cmd/infill/internal/cli"
	"infill/internal/object"
	"infill/models"
)

// modelEntry has the fields that list and show print of a model, also as JSON.
type modelEntry struct {
	Name        string   `json:"name"`
	Revision    string   `json:"revision"`
	Refs        []string `json:"refs,omitempty"`
	Family      string   `json:"family,omitempty"`
	Description string   `json:"description,omitempty"`
	Licence     string   `json:"licence,omitempty"`
	Source      string   `json:"source,omitempty"`
	Size        int64    `json:"size"` // bytes
	SHA256      string   `json:"sha256,omitempty"`
	Dir         string   `json:"dir,omitempty"`
	BuiltIn     bool     `json:"built_in"`
	Default     bool     `json:"default,omitempty"` // list tells this
	Problem     string   `json:"problem,omitempty"`

	// show tells these as well.
	Config json.RawMessage       `json:"config,omitempty"` // config.json
	Files  []models.ManifestFile `json:"files,omitempty"`
	// ConvertedFrom lists the original files of converted weights.
	ConvertedFrom []models.ManifestFile `json:"converted_from,omitempty"`
}

func describe(e models.Entry) modelEntry {
	m := modelEntry{Name: e.Name, Revision: e.Revision, Refs: e.Refs, Dir: e.Dir, BuiltIn: e.BuiltIn}
	if e.Problem != nil {
		m.Problem = e.Problem.Error()
	}
	if e.Manifest != nil {
		m.Family, m.Description, m.Licence, m.Source = e.Manifest.Family, e.Manifest.Description, e.Manifest.Licence,
			e.Manifest.Source
		m.Size, m.SHA256 = e.Manifest.Size(), e.Manifest.SHA256()
	}
	return m
}

// full is the name that means this revision alone.
func (m modelEntry) full() string {
	if m.BuiltIn || m.Revision == "" {
		return m.Name
	}
	return m.Name + "@" + m.Revision
}

// say prints a result for those who did not ask for silence.
func (c *command) say(format string, arguments ...any) error {
	if c.quiet {
		return nil
	}
	_, err := fmt.Fprintf(c.streams.Out, format, arguments...)
	return err
}

// printPlaced tells of a model that is in the store now.
func (c *command) printPlaced(b *models.Bundle) error {
	return c.say("%s@%s: %s, %s in %s\n", cli.OneLine(b.Name), b.Manifest.Revision, cli.OneLine(b.Description),
		cli.BytesText(b.Manifest.Size()), b.Dir)
}

// printModels marks the default, named by name and revision.
func (c *command) printModels(entries []models.Entry, chosen string) error {
	list := make([]modelEntry, len(entries))
	rows := [][]string{{"NAME", "REVISION", "FAMILY", "SIZE", "LICENCE", ""}}
	for i, e := range entries {
		m := describe(e)
		m.Default = e.Name+e.Revision == chosen
		list[i] = m
		revision := fmt.Sprintf("%.12s", m.Revision)
		if len(m.Refs) > 0 {
			revision += " (" + strings.Join(m.Refs, ", ") + ")"
		}
		var notes []string
		if m.BuiltIn {
			notes = append(notes, "built in")
		}
		if m.Default {
			notes = append(notes, "the default")
		}
		if m.Problem != "" {
			notes = append(notes, "damaged: "+m.Problem)
		}
		rows = append(rows,
			[]string{m.Name, revision, m.Family, cli.BytesText(m.Size), m.Licence, strings.Join(notes, ", ")})
	}
	if c.format == "json" {
		return cli.WriteJSON(c.streams.Out, list)
	}
	return c.printColumns(rows)
}

// printColumns aligns rows; their cells may hold any characters.
func (c *command) printColumns(rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = cli.OneLine(row[i])
		}
	}
	_, err := io.WriteString(c.streams.Out, cli.RenderTable(0, nil, rows, -1))
	return err
}

func (c *command) recommend(context.Context, []string) error {
	if c.format == "json" {
		return cli.WriteJSON(c.streams.Out, models.Recommended())
	}
	var b strings.Builder
	for _, m := range models.Recommended() {
		fmt.Fprintf(&b, "%-12s%s\n", m.Name, m.Repository)
		fmt.Fprintf(&b, "%12s%s; %d M parameters; %s to fetch; %s; ", "", m.Languages, m.Parameters,
			cli.BytesText(m.Megabytes*1e6), m.Licence)
		fmt.Fprintf(&b, "%g times the built-in model's time\n%12s%s\n", m.Time, "", m.Quality)
	}
	return c.say(`%s
Qualities are from the papers named. Times were measured here, with random weights of
the same shapes: the published weights were not at hand. The built-in model,
%s, has 23 M parameters and knows English alone.

infill models use NAME makes one the default, infill models use %[2]s goes back.
`, &b, models.BuiltInName)
}

// find finds a model as filling would. Of one in the store it reads manifest and config alone, so that a damaged one
// can be shown as well.
func (c *command) find(name string) (modelEntry, error) {
	info, err := os.Stat(name)
	folder := err == nil && info.IsDir() && name != models.BuiltInName
	var entry models.Entry
	if !folder {
		if entry, err = c.store.Find(name); err != nil {
			return modelEntry{}, absentModel(name, err)
		}
	}
	if folder || entry.BuiltIn && entry.Dir == "" {
		b, err := c.store.Open(name)
		if err != nil {
			return modelEntry{}, err
		}
		entry = models.Entry{Name: b.Name, Revision: b.Manifest.Revision, Dir: b.Dir, Manifest: b.Manifest,
			BuiltIn: entry.BuiltIn}
	}
	m := describe(entry)
	if entry.Manifest != nil {
		m.Files, m.ConvertedFrom = entry.Manifest.Files, entry.Manifest.ConvertedFrom
	}
	if content, err := os.ReadFile(filepath.Join(entry.Dir, "config.json")); err == nil && json.Valid(content) {
		m.Config = content
	}
	return m, nil
}

// absentModel says how to get a model that is not stored.
func absentModel(name string, err error) error {
	hint := "infill models list tells what is here"
	if strings.Contains(name, "/") {
		hint = "infill models pull " + name + " fetches it, " + hint
	}
	if errors.Is(err, models.ErrNotStored) {
		err = &cli.Failure{Err: err, Hint: hint}
	}
	return err
}

func (c *command) printModel(m modelEntry) error {
	if c.format == "json" {
		return object.WriteLine(c.streams.Out, m)
	}
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-13s %s\n", key, cli.OneLine(value))
		}
	}
	line("name", m.Name)
	line("description", m.Description)
	line("family", m.Family)
	line("revision", m.Revision)
	line("named", strings.Join(m.Refs, ", "))
	line("licence", m.Licence)
	line("source", m.Source)
	line("folder", m.Dir)
	line("size", cli.BytesText(m.Size))
	line("sha256", m.SHA256)
	line("problem", m.Problem)
	if c, err := models.ParseConfig(m.Config); err == nil {
		graph := c.Imported
		if graph == nil {
			line("architecture",
				fmt.Sprintf("%d layers, %d heads, hidden size %d, feed-forward %d, %s", c.Layers, c.Heads, c.HiddenSize,
					c.IntermediateSize, c.Activation))
		} else {
			line("architecture", "an ONNX graph")
		}
		line("vocabulary", fmt.Sprintf("%d tokens", c.VocabularySize))
		line("positions", fmt.Sprintf("%d tokens at most", c.MaxPositions))
		if graph != nil && graph.Gradient {
			line("gradient", "added by differentiating the graph")
		} else if graph != nil {
			line("no gradient", graph.NoGradient)
		}
	}
	for _, f := range m.ConvertedFrom {
		line("converted", fmt.Sprintf("from %s, %s, %s", f.Path, cli.BytesText(f.Size), f.SHA256))
	}
	if err := c.say("%s", &b); err != nil || len(m.Files) == 0 {
		return err
	}
	rows := [][]string{{"FILE", "SIZE", "SHA-256"}}
	for _, f := range m.Files {
		rows = append(rows, []string{f.Path, cli.BytesText(f.Size), f.SHA256})
	}
	return c.printColumns(rows)
}

// verify reads a model's files, prints which are damaged, and reports whether it is whole.
func (c *command) verify(ctx context.Context, name string) (whole bool, err error) {
	entry, err := c.store.Find(name)
	if err != nil {
		return false, absentModel(name, err)
	}
	problems, err := entry.Verify(ctx)
	if err != nil {
		return false, err
	}
	m := describe(entry)
	hint := "infill models remove " + m.full() + ", then import it again"
	switch {
	case entry.BuiltIn:
		hint = "it is written again when it is next used"
	case strings.Contains(m.Name, "/"):
		hint = "infill models pull " + m.full() + " fetches what is damaged"
	}
	for i, problem := range problems {
		if i < len(problems)-1 {
			cli.PrintError(c.streams.Err, fmt.Errorf("model %s: %w", m.full(), problem), "")
			continue
		}
		cli.PrintError(c.streams.Err, fmt.Errorf("model %s: %w", m.full(), problem), hint)
		return false, nil
	}
	return true, c.say("%s: whole, %s, %s\n", m.full(), cli.Counted(len(entry.Manifest.Files), "file"),
		cli.BytesText(m.Size))
}
