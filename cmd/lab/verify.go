package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/papers"
	"infill/internal/journal"
)

func newVerify(out io.Writer) *cobra.Command {
	folder := stored
	whole := false
	cmd := &cobra.Command{Use: "verify [NAME]", Short: "Run the command of a stored result again, and compare",
		Long: "Run the command of the stored result NAME again, and compare each number but those of the clock.\n" +
			"Where the command is long, a part of it is run, with fewer samplers or repetitions, whose numbers are\n" +
			"the same; --whole runs all. Without NAME, the stored results and their commands are listed.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, run := range papers.Runs() {
					fmt.Fprintf(out, "%s: lab %s --seed 1\n", run.Name, run.Command)
				}
				return nil
			}
			return verify(cmd.Context(), out, folder, args[0], whole)
		}}
	cmd.Flags().StringVar(&folder, "results", folder, "`FOLDER` of the stored results")
	cmd.Flags().BoolVar(&whole, "whole", false, "run the whole command")
	return cmd
}

// verify runs the command of a stored result again and compares all numbers but
// seconds: in the small, if the result has such options, unless whole is true.
func verify(ctx context.Context, out io.Writer, folder, name string, whole bool) error {
	run, known := papers.RunOf(name)
	if !known {
		return &usageError{fmt.Errorf("%q is no stored result: lab verify lists them", name)}
	}
	if run.Needs != "" {
		return fmt.Errorf("%s needs %s: run lab %s --seed 1 where they are", name, run.Needs, run.Command)
	}
	all, err := papers.Read(folder)
	if err != nil {
		return err
	}
	want, found := all[name]
	if !found {
		return fmt.Errorf("%s has no %s.csv", folder, name)
	}
	dir, err := os.MkdirTemp("", "lab-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	command := run.Command
	if run.Small != "" && !whole {
		command += " " + run.Small
	}
	fmt.Fprintf(out, "lab %s --seed 1\n", command)
	root := newRoot(io.Discard, io.Discard)
	root.SetArgs(append(strings.Fields(command), "--seed", "1", "-q", "-o", filepath.Join(dir, name)))
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	again, err := papers.Read(dir)
	if err != nil {
		return err
	}
	var report lab.StudyReport
	found, err = journal.ReadJSON(filepath.Join(dir, name, "report.json"), &report)
	if err != nil {
		return err
	}
	if !found {
		return errors.New("the run wrote no report.json")
	}
	var labels []string
	for _, label := range report.Cells[0].Labels {
		labels = append(labels, label.Name)
	}
	c, err := compare(want, again[name], labels, command == run.Command)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d of %d numbers are equal, in %d of %d cells\n", name, c.numbers-len(c.differ), c.numbers,
		len(again[name]), len(want))
	for _, text := range c.differ {
		fmt.Fprintln(out, "    "+text)
	}
	if len(c.differ) > 0 {
		return errors.New(name + " differs from the stored result")
	}
	return nil
}

// A comparison counts the numbers of two results, and lists those that differ.
type comparison struct {
	numbers int
	differ  []string
}

// compare compares results with the cells of stored ones that have the same
// labels. Numbers that the clock decides are left out and, unless all cells were
// run, those that depend on the other cells.
func compare(stored, again papers.Results, labels []string, all bool) (c comparison, err error) {
	if all && len(stored) != len(again) {
		return c, fmt.Errorf("%d cells are stored, and %d come of the command", len(stored), len(again))
	}
	for _, row := range again {
		at := slices.IndexFunc(stored, func(old map[string]string) bool {
			return !slices.ContainsFunc(labels, func(name string) bool { return old[name] != row[name] })
		})
		var cell []string
		for _, name := range labels {
			cell = append(cell, row[name])
		}
		if at < 0 {
			return c, fmt.Errorf("no such cell is stored: %s", strings.Join(cell, " "))
		}
		for _, name := range slices.Sorted(maps.Keys(row)) {
			depends := strings.Contains(name, "second") || name == "signature" || slices.Contains(labels, name) ||
				!all && strings.Contains(name, "-at-")
			if depends || row[name] == "" && stored[at][name] == "" {
				continue
			}
			c.numbers++
			if !equal(stored[at][name], row[name]) {
				c.differ = append(c.differ, fmt.Sprintf("%s: %s is %s, stored %s", strings.Join(cell, " "), name,
					row[name], stored[at][name]))
			}
		}
	}
	return c, nil
}

// equal compares two numbers up to rounding.
func equal(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, failed := strconv.ParseFloat(b, 64)
	if err != nil || failed != nil {
		return a == b
	}
	return math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y))
}
