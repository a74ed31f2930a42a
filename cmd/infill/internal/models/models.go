// Package models is infill models.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/lm"
	"infill/models"
	"infill/models/hub"
)

// command holds the flags of these commands. Each command defines those that it has.
type command struct {
	streams *terminal.Streams
	store   *models.Store
	format  string
	quiet   bool
	maxTime time.Duration
	// Of a model that comes in: whether it keeps capitals, where its files do not say it.
	cased, uncased bool
	// Of an import.
	name, tokenizer string
	positions       int
}

// NewCmd makes the commands that keep the store of models.
func NewCmd(s *terminal.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List, fetch, check and remove models",
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
	c := &command{streams: s, maxTime: hub.DefaultTotal}
	add := func(use, short string, args cobra.PositionalArgs, complete cobra.CompletionFunc,
		run func(ctx context.Context, args []string) error, flags ...func(*cobra.Command)) *cobra.Command {
		sub := &cobra.Command{Use: use, Short: short, Args: args, ValidArgsFunction: complete, RunE: c.run(run)}
		for _, define := range flags {
			define(sub)
		}
		cmd.AddCommand(sub)
		return sub
	}
	all, none := cli.CompleteModels, cobra.NoFileCompletions
	noResult := c.quietFlag("no progress, no result: the exit code tells")
	add("list", "List the models that are here", cli.NoArguments, none, c.list, c.formatFlag).Aliases = []string{"ls"}
	add("recommend", "List published models that know more than the built-in one", cli.NoArguments, none, c.recommend,
		c.formatFlag)
	add("use NAME", "Make a model the default of every command", oneName, all, c.use, c.timeFlag, noResult)
	add("pull NAME[@REVISION]...", "Fetch models from the Hugging Face hub", someNames, none, c.pull, c.timeFlag,
		c.caseFlags, noResult)
	add("show NAME", "Tell what a model is: origin, architecture, files", oneName, all, c.show, c.formatFlag)
	add("verify [NAME...]", "Read every file of models and compare it with its checksum", nil, all, c.verifyAll,
		c.quietFlag("print what is damaged and nothing else"))
	add("remove NAME[@REVISION]...", "Remove models from the cache folder", someNames, all, c.remove,
		c.quietFlag("no result: the exit code tells")).Aliases = []string{"rm"}
	add("import DIR | FILE.onnx --tokenizer DIR",
		"Copy a model from a folder, or an exported ONNX graph, into the cache folder", oneName, nil, c.importModel,
		c.importFlags, c.caseFlags, c.quietFlag("no result, no warning: the exit code tells"))
	return cmd
}

// run opens the store, and then runs a command.
func (c *command) run(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		if c.store, err = models.DefaultStore(); err != nil {
			return err
		}
		switch {
		case c.cased:
			c.store.Case = models.Cased
		case c.uncased:
			c.store.Case = models.Uncased
		}
		return do(cmd.Context(), args)
	}
}

func (c *command) formatFlag(cmd *cobra.Command) {
	c.format = "text"
	cli.AddChoice(cmd, &c.format, "format", "", []string{"text", "json"}, "form of the result")
}

func (c *command) quietFlag(usage string) func(*cobra.Command) {
	return func(cmd *cobra.Command) { cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, usage) }
}

func (c *command) timeFlag(cmd *cobra.Command) { cli.AddMaxTime(cmd, &c.maxTime) }

func (c *command) caseFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.cased, "cased", false, "the model keeps capitals, where its files do not say it")
	cmd.Flags().BoolVar(&c.uncased, "uncased", false, "the model keeps none")
	cmd.MarkFlagsMutuallyExclusive("cased", "uncased")
}

func (c *command) importFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.name, "name", "", "`NAME` of the model in the cache; otherwise that of the folder")
	cmd.Flags().StringVar(&c.tokenizer, "tokenizer", "", "`DIR` with the tokenizer of an ONNX graph")
	cmd.Flags().IntVar(&c.positions, "positions", 0,
		"longest text that an ONNX graph takes, in tokens; 0 is as its config.json says")
}

func (c *command) list(context.Context, []string) error {
	entries, err := c.store.List()
	if err != nil {
		return err
	}
	chosen, err := c.store.Default()
	if err != nil {
		return err
	}
	if entry, err := c.store.Find(chosen); err == nil {
		chosen = entry.Name + entry.Revision
	}
	return c.printModels(entries, chosen)
}

func (c *command) use(ctx context.Context, names []string) error {
	return cli.UseModel(ctx, c.streams, names[0], c.maxTime, c.quiet)
}

func (c *command) pull(ctx context.Context, names []string) error {
	for _, name := range names {
		base, _, _ := strings.Cut(name, "@")
		if err := models.CheckName(base); err != nil {
			return &cli.UsageError{Err: err}
		}
	}
	for _, name := range names {
		bar := cli.NewTransfer(c.streams, c.quiet)
		bundle, err := c.store.Pull(ctx, name, cli.FetchOptions(bar, c.maxTime))
		bar.Clear()
		if err == nil {
			err = c.printPlaced(bundle)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *command) show(_ context.Context, names []string) error {
	m, err := c.find(names[0])
	if err != nil {
		return err
	}
	return c.printModel(m)
}

func (c *command) verifyAll(ctx context.Context, names []string) error {
	if len(names) == 0 {
		entries, err := c.store.List()
		if err != nil {
			return err
		}
		for _, e := range entries {
			names = append(names, describe(e).full())
		}
	}
	damaged := false
	for _, name := range names {
		whole, err := c.verify(ctx, name)
		if err != nil {
			return err
		}
		damaged = damaged || !whole
	}
	if damaged {
		return cli.ErrReported
	}
	return nil
}

func (c *command) remove(ctx context.Context, names []string) error {
	for _, name := range names {
		entries, err := c.store.Remove(ctx, name)
		if err != nil {
			return absentModel(name, err)
		}
		for _, e := range entries {
			m := describe(e)
			if err := c.say("removed %s (%s)\n", m.full(), cli.BytesText(m.Size)); err != nil {
				return err
			}
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
	case graph && c.tokenizer == "":
		return &cli.UsageError{Err: errors.New(
			"--tokenizer: no folder is named, and a graph has no tokenizer of its own"),
			Hint: "give one: --tokenizer DIR"}
	case !graph && (c.tokenizer != "" || c.positions != 0):
		return cli.Usagef("--tokenizer and --positions belong to an ONNX graph, and %.200q is a folder, which has its "+
			"own", from)
	case c.positions < 0:
		return cli.Usagef("--positions: %d is not a whole number of 0 or more", c.positions)
	}
	path, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if graph {
		if name = strings.TrimSuffix(name, ".onnx"); name == "model" {
			name = filepath.Base(filepath.Dir(path))
		}
	}
	name = cmp.Or(c.name, name)
	if err := models.CheckName(name); err != nil {
		return &cli.UsageError{Err: err, Hint: "give another with --name"}
	}
	var bundle *models.Bundle
	if graph {
		bundle, err = lm.Import(ctx, c.store, from, name, c.tokenizer, c.positions)
	} else {
		bundle, err = c.store.Import(ctx, from, name)
	}
	if err != nil {
		return err
	}
	if i := bundle.Config.Imported; i != nil && i.NoGradient != "" {
		cli.Warn(c.streams, c.quiet, "the model has no gradient: %s; samplers without one work", i.NoGradient)
	}
	return c.printPlaced(bundle)
}

func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return misused(cmd, "%s takes one argument, %d given", cmd.CommandPath(), len(args))
	}
	return nil
}

func someNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return misused(cmd, "%s: no model is named", cmd.CommandPath())
	}
	return nil
}

func misused(cmd *cobra.Command, format string, arguments ...any) error {
	return &cli.UsageError{Err: fmt.Errorf(format, arguments...), Hint: "see " + cmd.CommandPath() + " --help"}
}
