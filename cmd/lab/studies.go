package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/lab/internal/lab"
	"infill/lm/network"
)

// openNetwork takes one thread, as all of the laboratory does.
func openNetwork(ctx context.Context, s lab.NetworkShape) (lab.Network, error) {
	return network.Open(ctx, network.Shape(s), 1)
}

// addStudies adds the experiments of many cells, those of ARM to its command.
func addStudies(root, arm *cobra.Command, out, messages io.Writer) {
	learn := &cobra.Command{Use: "learn MODEL", Short: "Learn a model with each sampler", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			return &usageError{errors.New("no model: name one, as in lab learn ising")}
		}}
	root.AddCommand(learn)
	for _, s := range lab.Studies(openNetwork) {
		parent, name := root, s.Name
		if first, rest, two := strings.Cut(s.Name, " "); two {
			name, parent = rest, map[string]*cobra.Command{"learn": learn, "arm": arm}[first]
		}
		parent.AddCommand(newExperiment(out, messages).study(s, name))
	}
}

const resumes = `

With -o the folder keeps every cell when it is done, and trainings on the way: after an
interruption the same command goes on there.`

// study makes the command of a study.
func (e *experiment) study(s *lab.Study, name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: s.Short, Long: s.Help + resumes, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd, s) }}
	cmd.Flags().AddGoFlagSet(s.Flags)
	e.register(cmd)
	return cmd
}
