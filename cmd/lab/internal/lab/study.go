package lab

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"infill/internal/chart"
	"infill/internal/object"
)

// A Study is an experiment of many cells: trainings or measurements, each with labels such as its sampler, and repeated
// with other random numbers. Its flags are its settings, to be set before [Study.Run].
type Study struct {
	Name        string // words of the command, as "learn ising"
	Short, Help string
	Flags       *flag.FlagSet

	// plan checks the settings and lists the cells.
	plan func(ctx context.Context, seed uint64) (*plan, error)
}

// newStudy is a study without flags and plan.
func newStudy(name, short, help string) *Study {
	return &Study{Name: name, Short: short, Help: help, Flags: flag.NewFlagSet(name, flag.ContinueOnError)}
}

// Studies lists the experiments, with their default settings, which take minutes.
func Studies() []*Study {
	var list []*Study
	for _, k := range kinds() {
		list = append(list, newComparison(k), newARMFit(k))
	}
	return append(list, newLearnIsing(), newLearnImages(), newNetworks(), newLearnContacts(), newARMToy(),
		newARMGradients())
}

// plan is what a study is going to do.
type plan struct {
	title   string
	columns []column
	curves  []curve
	cells   []cell
	notes   []string // below the table
	// between names what the errors of single cells are between; "": repetitions.
	between  string
	warnings []string
	figures  func(*StudyReport) ([]chart.Figure, error)
}

func newPlan(title string, columns []column, curves ...curve) *plan {
	return &plan{title: title, columns: columns, curves: curves, figures: (*StudyReport).draw}
}

// column is a number that every cell finds.
type column struct {
	name, format, definition string
	timed                    bool // depends on the clock
	// against names a label of numbers, or a column, that the column is drawn against.
	against string
	bar     bool     // the column is drawn as bars
	table   int      // columns of several tables
	words   []string // for the numbers 0, 1, ...
	// follows names a curve: the column is its last point within the smallest budget of a panel, in steps or seconds.
	follows string
}

// curve is a number that is followed in the course of a cell.
type curve struct {
	name, x, y string
	log        bool // x is drawn by its logarithm
	byXAlone   bool // and not by seconds
}

// cell is one training or measurement. Cells that differ in the label repeat alone are repetitions of each other.
type cell struct {
	labels labels
	run    func(context.Context, *bench) error
}

// A parameter is one setting, of a target in the order of the signature, or a label.
type parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type labels []parameter

const repeatLabel = "repeat"

func (l labels) value(name string) string {
	i := slices.IndexFunc(l, func(p parameter) bool { return p.Name == name })
	if i < 0 {
		return ""
	}
	return l[i].Value
}

func (l labels) names() (list []string) {
	for _, p := range l {
		list = append(list, p.Name)
	}
	return list
}

func (l labels) values() (list []string) {
	for _, p := range l {
		list = append(list, p.Value)
	}
	return list
}

// join is the values in a row, with a separator.
func (l labels) join(separator string) string {
	words := l.values()
	for i, p := range l {
		if p.Name == repeatLabel {
			words[i] = repeatLabel + " " + p.Value
		}
	}
	return strings.Join(words, separator)
}

func (l labels) String() string { return l.join(" ") }

// add adds a cell for each repetition.
func (p *plan) add(repeats int, run func(context.Context, *bench) error, of ...parameter) {
	for repeat := range repeats {
		own := append(slices.Clone(labels(of)), parameter{repeatLabel, strconv.Itoa(repeat + 1)})
		p.cells = append(p.cells, cell{own, run})
	}
}

func repeatsFlag(f *flag.FlagSet, at int) *int {
	return Whole(f, "repeats", at, 1, 1000, "repetitions with other random numbers, which errors are taken from")
}

// Progress tells how far a cell is.
type Progress struct {
	Sampler     string
	Step, Steps int
}

// StudyOptions say how a study runs.
type StudyOptions struct {
	Seed uint64
	// Folder keeps every cell when it is done, and trainings on the way: a study
	// that was stopped goes on there. Empty: nothing is kept.
	Folder  string
	Version string // of the program, for signatures
	Observe func(Progress)
}

// Run runs the cells one after the other. Cells that the folder holds are not run
// again; a folder that holds another study, or another seed, is refused.
func (s *Study) Run(ctx context.Context, o StudyOptions) (*StudyReport, error) {
	p, err := s.plan(ctx, o.Seed)
	if err != nil {
		return nil, err
	}
	r := &StudyReport{Study: s.Name, Title: p.title, Seed: o.Seed, plan: p}
	s.Flags.VisitAll(func(f *flag.Flag) { r.Parameters = append(r.Parameters, parameter{f.Name, f.Value.String()}) })
	r.Signature = signature(s.Name, r.Parameters, o)
	if o.Folder != "" {
		if err := claim(o.Folder, r.Signature); err != nil {
			return nil, err
		}
	}
	for i, c := range p.cells {
		b := &bench{
			seed: o.Seed, repeat: c.labels.value(repeatLabel), folder: o.Folder, slug: slug(c.labels), start: clock(),
			saved: time.Now(), result: &cellResult{Signature: r.Signature, Labels: c.labels},
		}
		name := fmt.Sprintf("%d/%d %s", i+1, len(p.cells), c.labels)
		b.observe = func(done, of int) {
			if o.Observe != nil {
				o.Observe(Progress{name, done, of})
			}
		}
		if err := b.runOrRead(ctx, c); err != nil {
			if o.Folder != "" && ctx.Err() != nil {
				err = fmt.Errorf("%w: the same command goes on from here", err)
			}
			return nil, fmt.Errorf("%s: %w", c.labels, err)
		}
		r.Cells = append(r.Cells, b.result)
	}
	r.atEqualBudgets()
	return r, nil
}

// cellFile is the form of what is kept of a cell.
type cellFile struct {
	Signature string      `json:"signature"`
	Found     *cellResult `json:"found"`
}

// runOrRead runs a cell and keeps what it found, unless the folder holds that.
func (b *bench) runOrRead(ctx context.Context, c cell) error {
	if b.folder == "" {
		return c.run(ctx, b)
	}
	path := filepath.Join(b.folder, "cells", b.slug+".json")
	text, err := os.ReadFile(path)
	if err == nil {
		var known cellFile
		if err := json.Unmarshal(text, &known); err != nil {
			return fmt.Errorf("%s: %w: delete it to run this again", path, err)
		}
		if known.Signature == b.result.Signature && known.Found != nil {
			b.result = known.Found
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.run(ctx, b); err != nil {
		return err
	}
	if text, err = object.EncodeIndent(cellFile{b.result.Signature, b.result}, "", "  "); err != nil {
		return err
	}
	if err := maybe.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return err
	}
	if err := os.Remove(b.checkpoint()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// claim makes the folder of an experiment, or checks that it is this one's.
func claim(folder, signature string) error {
	if err := os.MkdirAll(filepath.Join(folder, "cells"), 0o777); err != nil {
		return err
	}
	path := filepath.Join(folder, "signature.txt")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return maybe.WriteFile(path, []byte(signature+"\n"), 0o666)
	}
	if there := strings.TrimSpace(string(text)); err == nil && there != signature {
		return refuse("output", "%s holds another experiment (%s): choose another folder", folder, there)
	}
	return err
}

// signature is one line with all that the numbers depend on.
func signature(name string, settings []parameter, o StudyOptions) string {
	words := []string{"lab:" + name}
	for _, p := range settings {
		words = append(words, p.Name+":"+p.Value)
	}
	words = append(words, fmt.Sprintf("seed:%d", o.Seed))
	if o.Version != "" {
		words = append(words, "version:"+o.Version)
	}
	return strings.Join(words, "|")
}

// An OptionError is an option that cannot be taken. Its text begins with the option's name as the command line has it.
type OptionError struct {
	Option string
	Err    error
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

func refuse(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}
