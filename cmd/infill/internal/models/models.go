// Package models is infill models.
package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/object"
	"infill/lm"
	"infill/models"
	"infill/models/hub"
)

// NewCmd makes the commands that keep the store of models.
func NewCmd(s *terminal.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List, fetch, check and remove models",
		Long: `List, fetch, check and remove models.

Models are kept in the cache folder, one folder for each revision. One that is
fetched or imported is used by its name: infill -m NAME "...". infill models use
NAME makes one the default of every command. The environment decides where from
and how models are fetched: see infill help environment.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				hint := "see infill models --help"
				if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
					hint = "did you mean infill models " + near[0] + "?"
				}
				return &cli.UsageError{Err: fmt.Errorf("unknown command %q of infill models", args[0]), Hint: hint}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		newCmdModelsList(s),
		newCmdModelsRecommend(s),
		newCmdModelsUse(s),
		newCmdModelsPull(s),
		newCmdModelsShow(s),
		newCmdModelsVerify(s),
		newCmdModelsRemove(s),
		newCmdModelsImport(s),
		newCmdModelsExport(s),
	)
	return cmd
}

// modelEntry is what list and show tell of a model, also as JSON.
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
	// ConvertedFrom lists what the weights were converted from.
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

func newCmdModelsList(s *terminal.Streams) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the models that are here",
		Long: `List the models that are here: those built in, then those in the cache folder.
No file is read but the manifests: infill models verify does that.`,
		Example: "  $ infill models list\n  $ infill models list --format json",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			store, err := models.DefaultStore()
			if err != nil {
				return err
			}
			entries, err := store.List()
			if err != nil {
				return err
			}
			chosen, err := store.Default()
			if err != nil {
				return err
			}
			if entry, err := store.Find(chosen); err == nil {
				chosen = entry.Name + entry.Revision
			}
			return printModels(s, format, entries, chosen)
		},
	}
	cli.AddChoice(cmd, &format, "format", "", []string{"text", "json"}, "form of the result")
	return cmd
}

// printModels marks the default, named by name and revision.
func printModels(s *terminal.Streams, format string, entries []models.Entry, chosen string) error {
	if format == "json" {
		list := make([]modelEntry, len(entries))
		for i, e := range entries {
			list[i] = describe(e)
			list[i].Default = e.Name+e.Revision == chosen
		}
		return cli.WriteJSON(s.Out, list)
	}
	rows := [][]string{{"NAME", "REVISION", "FAMILY", "SIZE", "LICENCE", ""}}
	for _, e := range entries {
		m := describe(e)
		revision := fmt.Sprintf("%.12s", m.Revision)
		if len(m.Refs) > 0 {
			revision += " (" + strings.Join(m.Refs, ", ") + ")"
		}
		var notes []string
		if m.BuiltIn {
			notes = append(notes, "built in")
		}
		if m.Name+m.Revision == chosen {
			notes = append(notes, "the default")
		}
		if m.Problem != "" {
			notes = append(notes, "damaged: "+m.Problem)
		}
		rows = append(rows,
			[]string{m.Name, revision, m.Family, cli.BytesText(m.Size), m.Licence, strings.Join(notes, ", ")})
	}
	return printColumns(s, rows)
}

// printColumns aligns rows; what it is given may hold anything.
func printColumns(s *terminal.Streams, rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = cli.OneLine(row[i])
		}
	}
	_, err := io.WriteString(s.Out, cli.RenderTable(0, nil, rows, -1))
	return err
}

func newCmdModelsRecommend(s *terminal.Streams) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "recommend",
		Short: "List published models that know more than the built-in one",
		Long: `List published models that know more than the built-in one, or other languages. Their
short names can be given wherever a model is named.`,
		Example: "  $ infill models recommend\n  $ infill models use base",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			if format == "json" {
				return cli.WriteJSON(s.Out, models.Recommended())
			}
			var b strings.Builder
			for _, m := range models.Recommended() {
				size := cli.BytesText(m.Megabytes * 1e6)
				fmt.Fprintf(&b, "%-12s%s\n", m.Name, m.Repository)
				fmt.Fprintf(&b, "%12s%s; %d M parameters; %s to fetch; %s; ", "", m.Languages, m.Parameters, size,
					m.Licence)
				fmt.Fprintf(&b, "%g times the built-in model's time\n%12s%s\n", m.Time, "", m.Quality)
			}
			_, err := fmt.Fprintf(s.Out, `%s
Qualities are from the papers named. Times were measured here, with random weights of
the same shapes: the published weights were not at hand. The built-in model,
%s, has 23 M parameters and knows English alone.

infill models use NAME makes one the default, infill models use %[2]s goes back.
`, &b, models.BuiltInName)
			return err
		},
	}
	cli.AddChoice(cmd, &format, "format", "", []string{"text", "json"}, "form of the result")
	return cmd
}

func newCmdModelsUse(s *terminal.Streams) *cobra.Command {
	quiet, maxTime := false, hub.DefaultTotal
	cmd := &cobra.Command{
		Use:   "use NAME",
		Short: "Make a model the default of every command",
		Long: `Make a model the default of every command: NAME is a short one of infill models
recommend, one of the hub, that of a model that is here, or a folder. What is not
here is fetched, as by infill models pull. --model and INFILL_MODEL win over it.
infill models use ` + models.BuiltInName + ` goes back to the built-in model.`,
		Example:           "  $ infill models use base\n  $ infill models use " + models.BuiltInName,
		Args:              oneName,
		ValidArgsFunction: cli.CompleteModels,
		RunE: func(cmd *cobra.Command, names []string) error {
			return cli.UseModel(cmd.Context(), s, names[0], maxTime, quiet)
		},
	}
	cli.AddMaxTime(cmd, &maxTime)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress, no result: the exit code tells")
	return cmd
}

func newCmdModelsPull(s *terminal.Streams) *cobra.Command {
	quiet, maxTime := false, hub.DefaultTotal
	var keeps capitals
	cmd := &cobra.Command{
		Use:   "pull NAME[@REVISION]...",
		Short: "Fetch models from the Hugging Face hub",
		Long: `Fetch models from the Hugging Face hub, or from a mirror, into the cache folder:
configuration, tokenizer and weights, each file verified. Weights are read as
safetensors; where a model has none, its pytorch_model.bin is converted.

REVISION is a branch, a tag or a commit; without one it is main. A pull that
breaks off goes on where it stopped when it is started again. What is already
here is not fetched again.

HF_ENDPOINT names a mirror, HF_TOKEN opens private models, HF_HUB_OFFLINE=1
forbids the network: see infill help environment.

A model of a vocab.txt that does not say whether it keeps capitals needs --cased
or --uncased.`,
		Example: "  $ infill models pull google-bert/bert-base-uncased\n  $ infill -m google-bert/bert-base-uncased " +
			"\"he had [MASK] me\"",
		Args: someNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, name := range names {
				base, _, _ := strings.Cut(name, "@")
				if err := models.CheckName(base); err != nil {
					return &cli.UsageError{Err: err}
				}
			}
			store, err := models.DefaultStore()
			if err != nil {
				return err
			}
			store.Case = keeps.answer()
			for _, name := range names {
				if err := pullModel(cmd.Context(), s, store, name, maxTime, quiet); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cli.AddMaxTime(cmd, &maxTime)
	keeps.register(cmd)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress, no result: the exit code tells")
	return cmd
}

// capitals are the flags that say whether a model keeps them.
type capitals struct{ cased, uncased bool }

func (c *capitals) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.cased, "cased", false, "the model keeps capitals, where its files do not say it")
	cmd.Flags().BoolVar(&c.uncased, "uncased", false, "the model keeps none")
	cmd.MarkFlagsMutuallyExclusive("cased", "uncased")
}

func (c *capitals) answer() models.Case {
	switch {
	case c.cased:
		return models.Cased
	case c.uncased:
		return models.Uncased
	}
	return ""
}

func pullModel(ctx context.Context, s *terminal.Streams, store *models.Store, name string, maxTime time.Duration,
	quiet bool) error {
	bar := cli.NewTransfer(s, quiet)
	options := cli.FetchOptions(bar, maxTime)
	bundle, err := store.Pull(ctx, name, options)
	bar.Clear()
	if err != nil {
		return err
	}
	return printPlaced(s, bundle, quiet)
}

// printPlaced tells of a model that is in the store now.
func printPlaced(s *terminal.Streams, b *models.Bundle, quiet bool) error {
	if quiet {
		return nil
	}
	_, err := fmt.Fprintf(s.Out, "%s@%s: %s, %s in %s\n", cli.OneLine(b.Name), b.Manifest.Revision,
		cli.OneLine(b.Description), cli.BytesText(b.Manifest.Size()), b.Dir)
	return err
}

func newCmdModelsShow(s *terminal.Streams) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Tell what a model is: origin, architecture, files",
		Long: `Tell what a model is: where it is from, its architecture and its files. NAME is
that of a model that is here, with @REVISION where several are, or a folder.`,
		Example: "  $ infill models show small-uncased\n  $ infill models show google-bert/bert-base-uncased " +
			"--format json",
		Args: oneName,
		RunE: func(_ *cobra.Command, names []string) error {
			m, err := findModel(names[0])
			if err != nil {
				return err
			}
			if format == "json" {
				return object.WriteLine(s.Out, m)
			}
			return printModel(s, m)
		},
		ValidArgsFunction: cli.CompleteModels,
	}
	cli.AddChoice(cmd, &format, "format", "", []string{"text", "json"}, "form of the result")
	return cmd
}

// findModel finds a model as filling would. Of one in the store it reads manifest and config alone, so that a damaged
// one can be shown as well.
func findModel(name string) (modelEntry, error) {
	store, err := models.DefaultStore()
	if err != nil {
		return modelEntry{}, err
	}
	var entry models.Entry
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() && name != models.BuiltInName {
		b, err := models.Open(name)
		if err != nil {
			return modelEntry{}, err
		}
		entry = models.Entry{Name: b.Name, Revision: b.Manifest.Revision, Dir: b.Dir, Manifest: b.Manifest}
	} else if entry, err = store.Find(name); err != nil {
		return modelEntry{}, absentModel(name, err)
	}
	if entry.BuiltIn && entry.Dir == "" {
		b, err := store.Open(entry.Name)
		if err != nil {
			return modelEntry{}, err
		}
		entry.Dir = b.Dir
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
	if !errors.Is(err, models.ErrNotStored) {
		return err
	}
	if strings.Contains(name, "/") {
		return &cli.Failure{Err: err,
			Hint: "infill models pull " + name + " fetches it, infill models list tells what is here"}
	}
	return &cli.Failure{Err: err, Hint: "infill models list tells what is here"}
}

func printModel(s *terminal.Streams, m modelEntry) error {
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
	if _, err := s.Out.Write([]byte(b.String())); err != nil || len(m.Files) == 0 {
		return err
	}
	rows := [][]string{{"FILE", "SIZE", "SHA-256"}}
	for _, f := range m.Files {
		rows = append(rows, []string{f.Path, cli.BytesText(f.Size), f.SHA256})
	}
	return printColumns(s, rows)
}

func newCmdModelsVerify(s *terminal.Streams) *cobra.Command {
	quiet := false
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Read every file of models and compare it with its checksum",
		Long: `Read every file of models and compare size and SHA-256 with the manifest. Without
a NAME all models that are here are read. The exit code is 1 where one is damaged.`,
		Example: "  $ infill models verify\n  $ infill models verify google-bert/bert-base-uncased",
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := models.DefaultStore()
			if err != nil {
				return err
			}
			if len(names) == 0 {
				entries, err := store.List()
				if err != nil {
					return err
				}
				for _, e := range entries {
					names = append(names, describe(e).full())
				}
			}
			damaged := false
			for _, name := range names {
				whole, err := verifyModel(cmd.Context(), s, store, name, quiet)
				if err != nil {
					return err
				}
				damaged = damaged || !whole
			}
			if damaged {
				return cli.ErrReported
			}
			return nil
		},
		ValidArgsFunction: cli.CompleteModels,
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print what is damaged and nothing else")
	return cmd
}

func verifyModel(ctx context.Context, s *terminal.Streams, store *models.Store, name string,
	quiet bool) (whole bool, err error) {
	entry, err := store.Find(name)
	if err != nil {
		return false, absentModel(name, err)
	}
	problems, err := store.Verify(ctx, name)
	if err != nil {
		return false, err
	}
	m := describe(entry)
	for i, problem := range problems {
		hint := ""
		if i == len(problems)-1 {
			switch {
			case entry.BuiltIn:
				hint = "it is written again when it is next used"
			case strings.Contains(m.Name, "/"):
				hint = "infill models pull " + m.full() + " fetches what is damaged"
			default:
				hint = "infill models remove " + m.full() + ", then import it again"
			}
		}
		cli.PrintError(s.Err, fmt.Errorf("model %s: %w", m.full(), problem), hint)
	}
	if len(problems) > 0 || quiet {
		return len(problems) == 0, nil
	}
	_, err = fmt.Fprintf(s.Out, "%s: whole, %s, %s\n", m.full(), cli.Counted(len(entry.Manifest.Files), "file"),
		cli.BytesText(m.Size))
	return true, err
}

func newCmdModelsRemove(s *terminal.Streams) *cobra.Command {
	quiet := false
	cmd := &cobra.Command{
		Use:     "remove NAME[@REVISION]...",
		Aliases: []string{"rm"},
		Short:   "Remove models from the cache folder",
		Long: `Remove models from the cache folder: the REVISION named, or all revisions of NAME
and its unfinished downloads.`,
		Example:           "  $ infill models remove google-bert/bert-base-uncased",
		Args:              someNames,
		ValidArgsFunction: cli.CompleteModels,
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := models.DefaultStore()
			if err != nil {
				return err
			}
			for _, name := range names {
				entries, err := store.Remove(cmd.Context(), name)
				if err != nil {
					return absentModel(name, err)
				}
				for _, e := range entries {
					if m := describe(e); !quiet {
						if _, err := fmt.Fprintf(s.Out, "removed %s (%s)\n", m.full(),
							cli.BytesText(m.Size)); err != nil {
							return err
						}
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no result: the exit code tells")
	return cmd
}

// importOptions are the flags of importing.
type importOptions struct {
	streams   *terminal.Streams
	from      string
	name      string
	tokenizer string
	positions int
	capitals  capitals
	quiet     bool
}

func newCmdModelsImport(s *terminal.Streams) *cobra.Command {
	o := &importOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "import DIR | FILE.onnx --tokenizer DIR",
		Short: "Copy a model from a folder, or an exported ONNX graph, into the cache folder",
		Long: `Copy a model into the cache folder, where it gets a manifest and is used by its
name.

A DIR holds config.json, the tokenizer's files and model.safetensors, as the
hub's libraries save it. It can be used where it lies as well: infill -m DIR.
Where there is pytorch_model.bin instead, the copy is converted. A vocab.txt that
does not say whether the model keeps capitals needs --cased or --uncased.

A FILE.onnx is a masked language model exported by others: input_ids, perhaps
attention_mask, token_type_ids and position_ids, with dynamic axes, to logits.
The folder given with --tokenizer holds the tokenizer's files, and perhaps the
model's config.json. The gradient is added by differentiating the graph; where
an operator cannot be differentiated, it is named, and the model serves the
samplers that need no gradient.`,
		Example: "  $ infill models import ./my-bert --name my-bert\n  $ infill models import exported/model.onnx " +
			"--tokenizer exported --name my/export",
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.from = args[0]
			return importRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "`NAME` of the model in the cache; otherwise that of the folder")
	cmd.Flags().StringVar(&o.tokenizer, "tokenizer", "", "`DIR` with the tokenizer of an ONNX graph")
	cmd.Flags().IntVar(&o.positions, "positions", 0,
		"longest text that an ONNX graph takes, in tokens; 0 is as its config.json says")
	o.capitals.register(cmd)
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no result, no warning: the exit code tells")
	return cmd
}

func importRun(ctx context.Context, o *importOptions) error {
	info, err := os.Stat(o.from)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("there is no folder or file %.200q", o.from)
	}
	if err != nil {
		return err
	}
	graph := !info.IsDir()
	switch {
	case graph && o.tokenizer == "":
		return &cli.UsageError{Err: errors.New(
			"--tokenizer: no folder is named, and a graph has no tokenizer of its own"),
			Hint: "give one: --tokenizer DIR"}
	case !graph && (o.tokenizer != "" || o.positions != 0):
		return cli.Usagef("--tokenizer and --positions belong to an ONNX graph, and %.200q is a folder, which has its "+
			"own", o.from)
	case o.positions < 0:
		return cli.Usagef("--positions: %d is not a whole number of 0 or more", o.positions)
	}
	name := o.name
	if name == "" {
		path, err := filepath.Abs(o.from)
		if err != nil {
			return err
		}
		name = filepath.Base(path)
		if graph {
			name = strings.TrimSuffix(name, ".onnx")
		}
		if graph && name == "model" {
			name = filepath.Base(filepath.Dir(path))
		}
	}
	if err := models.CheckName(name); err != nil {
		return &cli.UsageError{Err: err, Hint: "give another with --name"}
	}
	store, err := models.DefaultStore()
	if err != nil {
		return err
	}
	store.Case = o.capitals.answer()
	if !graph {
		bundle, err := store.Import(ctx, o.from, name)
		if err != nil {
			return err
		}
		return printPlaced(o.streams, bundle, o.quiet)
	}
	bundle, err := lm.Import(ctx, store, o.from, name, o.tokenizer, o.positions)
	if err != nil {
		return err
	}
	if why := bundle.Config.Imported.NoGradient; why != "" {
		cli.Warn(o.streams, o.quiet, "the model has no gradient: %s; samplers without one work", why)
	}
	return printPlaced(o.streams, bundle, o.quiet)
}

func newCmdModelsExport(s *terminal.Streams) *cobra.Command {
	var dir string
	quiet := false
	cmd := &cobra.Command{
		Use:   "export NAME -o DIR",
		Short: "Write a model as plain ONNX files",
		Long: `Write a model as plain ONNX files, for any other onnxruntime binding: the graphs of
conditional log-probabilities, of the energy, and of the energy with its gradient,
the model's own files, of which the graphs read their weights, and a README.md that
documents inputs and outputs. DIR can be imported and used as a model again. It must not exist or be empty; it appears whole or
not at all.`,
		Example: "  $ infill models export small-uncased -o exported",
		Args:    oneName,
		RunE: func(cmd *cobra.Command, names []string) error {
			if dir == "" {
				return &cli.UsageError{Err: errors.New("--output: no folder is named"), Hint: "give one: -o DIR"}
			}
			bundle, err := models.Open(names[0])
			if err != nil {
				return err
			}
			tokenizer, err := bundle.Tokenizer()
			if err != nil {
				return err
			}
			note, err := lm.Export(cmd.Context(), bundle, tokenizer.MaskID(), tokenizer.SeparatorID(), dir)
			if note != "" {
				cli.Warn(s, false, "%s", note)
			}
			if err != nil || quiet {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "%s: %s\n", cli.OneLine(bundle.Name), dir)
			return err
		},
		ValidArgsFunction: cli.CompleteModels,
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`DIR` to write into")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no result: the exit code tells")
	return cmd
}

func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &cli.UsageError{Err: fmt.Errorf("%s takes one argument, %d given", cmd.CommandPath(), len(args)),
			Hint: "see " + cmd.CommandPath() + " --help"}
	}
	return nil
}

func someNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return &cli.UsageError{Err: fmt.Errorf("%s: no model is named", cmd.CommandPath()),
			Hint: "see " + cmd.CommandPath() + " --help"}
	}
	return nil
}
