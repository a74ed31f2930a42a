// Package models has the command infill models.
package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/hub"
	"infill/internal/phrase"
	"infill/lm"
	"infill/models"
)

// command holds the flags of infill models; each subcommand defines some.
type command struct {
	streams *terminal.Streams
	store   *models.Store

	format                 string
	quiet                  bool
	cased, uncased, asFile bool // how a new model's tokenizer is read

	name, text string // of a new model, and of models quantize
	graph      struct {
		Tokenizer string `option:"tokenizer" word:"DIR" help:"DIR with the tokenizer of an ONNX graph"`
		Positions int    `option:"positions" help:"longest text that an ONNX graph takes, in tokens; 0 is as its config.json says"`
	}
}

// NewCmd returns infill models, whose commands manage the store.
func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, format: "text"}
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List, fetch, check and remove models",
		Args:  cli.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(use, short, quiet string, args cobra.PositionalArgs,
		run func(ctx context.Context, args []string) error) *cobra.Command {
		sub := &cobra.Command{Use: use, Short: short, Args: args, RunE: c.run(run),
			ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return cli.ModelNames(), cobra.ShellCompDirectiveNoFileComp
			}}
		if quiet != "" {
			sub.Flags().BoolVarP(&c.quiet, "quiet", "q", false, quiet)
		}
		cmd.AddCommand(sub)
		return sub
	}
	list := add("list [NAME...]", "List the models that are here", "", nil, c.list)
	cli.AddChoice(list, &c.format, "format", "", []string{"text", "json"}, "form of the result; json has all facts")
	list.Aliases = []string{"ls"}
	pull := add("pull NAME[@REVISION]...", "Fetch models from the Hugging Face hub",
		"no progress, no result: the exit code tells", someNames, c.pull)
	add("verify [NAME...]", "Read every file of models and compare it with its checksum",
		"print what is damaged and nothing else", nil, c.verifyAll)
	add("remove NAME...", "Remove models from the cache folder", "no result: the exit code tells",
		someNames, c.remove).Aliases = []string{"rm"}
	imports := add("import DIR | FILE.onnx --tokenizer DIR",
		"Copy a model from a folder, or an exported ONNX graph, into the cache folder",
		"no result, no warning: the exit code tells",
		cli.OneArgument("one model is imported", "infill models import DIR"), c.importModel)
	imports.ValidArgsFunction = nil // the shell completes file names
	imports.Flags().StringVar(&c.name, "name", "", "`NAME` of the model in the cache (default: that of the folder)")
	cli.Bind(imports, &c.graph)
	quantized := add("quantize NAME | DIR", "Make a copy of a model in int8, which fills faster, and measure it",
		"no progress, no result: the exit code tells",
		cli.OneArgument("one model is made int8", "infill models quantize small-uncased"), c.quantize)
	quantized.Flags().StringVar(&c.name, "name", "",
		"`NAME` of the copy in the cache (default: the model's with -int8)")
	quantized.Flags().StringVar(&c.text, "text", "",
		"`FILE` of texts, one on each line: every second one helps to choose the int8 steps, the others measure "+
			"(default: sentences of infill's own)")
	for _, sub := range []*cobra.Command{pull, imports} {
		sub.Flags().BoolVar(&c.cased, "cased", false,
			"the model keeps capitals, where its files do not say it or contradict each other")
		sub.Flags().BoolVar(&c.uncased, "uncased", false, "the model keeps none")
		sub.Flags().BoolVar(&c.asFile, "tokenizer-json", false,
			"take tokenizer.json as it is, where other files contradict it")
		sub.MarkFlagsMutuallyExclusive("cased", "uncased", "tokenizer-json")
	}
	return cmd
}

func someNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return &cli.UsageError{Err: fmt.Errorf("%s: no model is named", cmd.CommandPath()),
			Hint: "see " + cmd.CommandPath() + " --help"}
	}
	return nil
}

// run returns a cobra function that opens the store and then runs do.
func (c *command) run(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		c.store, err = models.DefaultStore()
		if err != nil {
			return err
		}
		switch {
		case c.cased:
			c.store.Reading = models.Cased
		case c.uncased:
			c.store.Reading = models.Uncased
		case c.asFile:
			c.store.Reading = models.AsFile
		}
		return do(cmd.Context(), args)
	}
}

// say prints a result, unless the flag quiet is set.
func (c *command) say(format string, arguments ...any) error {
	if c.quiet {
		return nil
	}
	_, err := fmt.Fprintf(c.streams.Out, format, arguments...)
	return err
}

// printPlaced prints a line about a model that has just been stored, after a
// warning if the files of its tokenizer contradict each other.
func (c *command) printPlaced(b *models.Bundle) error {
	t, err := b.Tokenizer()
	if err != nil {
		return err
	}
	cli.WarnOfTokenizer(c.streams, c.quiet, cli.OneLine(b.Name), t)
	return c.say("%s@%s: %s, %s in %s\n", cli.OneLine(b.Name), b.Manifest.Revision, cli.OneLine(b.Description),
		cli.BytesText(b.Manifest.Size()), b.Dir)
}

// entries returns the models with the given names, or all if there are no
// names. It reads only manifests, so that it also finds a damaged model.
func (c *command) entries(names []string) (list []models.Entry, err error) {
	if len(names) == 0 {
		return c.store.List()
	}
	for _, name := range names {
		entry, err := c.store.Find(name)
		if err != nil {
			return nil, absentModel(name, err)
		}
		list = append(list, entry)
	}
	return list, nil
}

// absentModel adds advice to an error if that says that the model is not in the store.
func absentModel(name string, err error) error {
	hint := "infill models pull " + name + " fetches it, infill models list tells what is here"
	if errors.Is(err, models.ErrNotStored) {
		err = &cli.Failure{Err: err, Hint: hint}
	}
	return err
}

// sizeOf returns the size of a model in words, or "" if the size is unknown.
func sizeOf(e models.Entry) string {
	if e.Manifest == nil {
		return ""
	}
	return cli.BytesText(e.Manifest.Size())
}

// modelFacts has all that is known of a model, as JSON for programs.
type modelFacts struct {
	Name     string `json:"name"`
	Revision string `json:"revision"`
	Dir      string `json:"dir,omitempty"`
	BuiltIn  bool   `json:"built_in"`
	Default  bool   `json:"default,omitempty"`
	Problem  string `json:"problem,omitempty"`
	Size     int64  `json:"size"` // bytes
	SHA256   string `json:"sha256,omitempty"`
	*models.Manifest
	Config json.RawMessage `json:"config,omitempty"` // content of config.json
}

// chosen returns the name of the model that commands use.
func (c *command) chosen() string {
	name := models.DefaultName()
	entry, err := c.store.Find(name)
	if err != nil {
		return name
	}
	return entry.FullName()
}

func (c *command) list(_ context.Context, names []string) error {
	entries, err := c.entries(names)
	if err != nil {
		return err
	}
	chosen := c.chosen()
	facts := []modelFacts{}
	headers := []string{"NAME", "REVISION", "FAMILY", "SIZE", "LICENCE", ""}
	rows := [][]string{}
	for _, e := range entries {
		f := modelFacts{Name: e.Name, Revision: e.Revision, Dir: e.Dir, BuiltIn: e.BuiltIn,
			Default: e.FullName() == chosen, Manifest: e.Manifest}
		revision := fmt.Sprintf("%.12s", e.Revision)
		notes := []string{}
		if f.BuiltIn {
			notes = append(notes, "built in")
		}
		if f.Default {
			notes = append(notes, "the default")
		}
		if e.Problem != nil {
			f.Problem = e.Problem.Error()
			notes = append(notes, "damaged: "+f.Problem)
		}
		family := ""
		licence := ""
		m := e.Manifest
		if m != nil {
			family, licence, f.Size, f.SHA256 = m.Family, m.Licence, m.Size(), m.SHA256()
			if m.Ref != "" {
				revision += " (" + m.Ref + ")"
			}
		}
		content, err := os.ReadFile(filepath.Join(e.Dir, "config.json"))
		if err == nil && json.Valid(content) {
			f.Config = content
		}
		row := []string{e.Name, revision, family, sizeOf(e), licence, strings.Join(notes, ", ")}
		for i := range row { // a manifest may have control characters
			row[i] = cli.OneLine(row[i])
		}
		rows, facts = append(rows, row), append(facts, f)
	}
	if c.format == "json" {
		return cli.WriteJSON(c.streams.Out, facts)
	}
	_, err = io.WriteString(c.streams.Out, cli.RenderTable(0, headers, rows, -1))
	return err
}

func (c *command) pull(ctx context.Context, names []string) error {
	for _, name := range names {
		base, _, _ := strings.Cut(name, "@")
		if err := models.CheckName(base); err != nil {
			return &cli.UsageError{Err: err}
		}
	}
	o := models.PullOptions(hub.FromEnvironment())
	for _, name := range names {
		bar := cli.NewBar(c.streams, c.quiet, 0)
		o.Progress = cli.NewTransfer(bar, c.streams.Err)
		bundle, err := c.store.Pull(ctx, name, o)
		bar.Clear()
		if err != nil {
			return err
		}
		err = c.printPlaced(bundle)
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyAll reads all files of the models and prints which files are damaged.
func (c *command) verifyAll(ctx context.Context, names []string) error {
	entries, err := c.entries(names)
	if err != nil {
		return err
	}
	var damaged error
	for _, e := range entries {
		problems, err := e.Verify(ctx)
		if err != nil {
			return err
		}
		for i, problem := range problems {
			damaged = cli.ErrReported
			hint := ""
			if i == len(problems)-1 {
				hint = e.Remedy()
			}
			cli.PrintError(c.streams.Err, fmt.Errorf("model %s: %w", e.FullName(), problem), hint)
		}
		if len(problems) == 0 {
			if err := c.say("%s: whole, %s, %s\n", e.FullName(), phrase.Counted(len(e.Manifest.Files), "file"),
				sizeOf(e)); err != nil {
				return err
			}
		}
	}
	return damaged
}

func (c *command) remove(ctx context.Context, names []string) error {
	for _, name := range names {
		entry, err := c.store.Remove(ctx, name)
		if err != nil {
			return absentModel(name, err)
		}
		if err := c.say("removed %s (%s)\n", entry.FullName(), sizeOf(entry)); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) importModel(ctx context.Context, args []string) error {
	from := args[0]
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("there is no folder or file %.200q", from)
	}
	if err != nil {
		return err
	}
	graph := !info.IsDir()
	switch {
	case graph && c.graph.Tokenizer == "":
		return &cli.UsageError{Err: errors.New(
			"--tokenizer: no folder is named, and a graph has no tokenizer of its own"),
			Hint: "give one: --tokenizer DIR"}
	case !graph && (c.graph.Tokenizer != "" || c.graph.Positions != 0):
		return cli.Usagef("--tokenizer and --positions belong to an ONNX graph, and %.200q is a folder, which has its "+
			"own", from)
	case c.graph.Positions != 0 && (c.graph.Positions < 4 || c.graph.Positions > 1<<20):
		return cli.Usagef("--positions: %d is not a whole number from 4 to %d", c.graph.Positions, 1<<20)
	}
	path, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if graph {
		name = strings.TrimSuffix(name, ".onnx")
		if name == "model" {
			name = filepath.Base(filepath.Dir(path))
		}
	}
	name = cmp.Or(c.name, name)
	if err := models.CheckName(name); err != nil {
		return &cli.UsageError{Err: err, Hint: "give another with --name"}
	}
	var bundle *models.Bundle
	if graph {
		bundle, err = lm.Import(ctx, c.store, from, name, c.graph.Tokenizer, c.graph.Positions)
	} else {
		bundle, err = c.store.Import(ctx, from, name)
	}
	if err != nil {
		return err
	}
	why := bundle.NoGradient()
	if why != "" {
		cli.Warn(c.streams, c.quiet, "the model has no gradient: %s; samplers without one work", why)
	}
	return c.printPlaced(bundle)
}
