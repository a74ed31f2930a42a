// Package lab compares samplers on distributions that are known exactly,
// repeats figures of papers, and learns models with samplers. Each such
// experiment is a [Study]: a table of cells, a runner and a report. The package
// does not use terminals. docs/reference/laboratory.md defines the numbers.
//
// Standard errors compare repetitions, or chains, which are independent, unlike
// the steps of a chain. Seconds count only the processor time of the steps, so
// run nothing else in the same process during a comparison.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/pflag"

	"infill/internal/logmath"
	"infill/internal/object"
	"infill/samplers"
)

// A Study is an experiment of many cells, which are trainings or measurements.
// A cell has labels, such as its sampler, and repetitions with other random
// numbers. The flags are the settings: set them before [Study.Run].
type Study struct {
	Name        string // words of the command, as "learn ising"
	Short, Help string
	Flags       *pflag.FlagSet

	// plan checks the settings and returns the cells.
	// What it reads, it reads by in.
	plan func(ctx context.Context, in *inputs, seed uint64) (*plan, error)
}

func newStudy(name, short, help string) *Study {
	return &Study{Name: name, Short: short, Help: help, Flags: pflag.NewFlagSet(name, pflag.ContinueOnError)}
}

// Studies returns all experiments. With default settings, each takes minutes.
func Studies() []*Study {
	var list []*Study
	for _, k := range kinds() {
		list = append(list, newComparison(k))
	}
	return append(list, newLearnIsing(), newLearnImages(), newLearnText(), newNetworks(), newLearnContacts(),
		newARMToy(), newARMGradients(), newARMAutoencoders(), newAnnealing(), newCalibration(), newModelStudy(),
		newProofs(), newInfilling(), newJoints(), newTrace())
}

// plan describes the work of a study before it runs.
type plan struct {
	title   string
	caption string // title of the pictures, in words, with the paper's figure
	columns []column
	curves  []curve
	cells   []cell
	notes   []string // printed below the table
	// between says between what the standard errors of single cells are, such
	// as "4 chains"; if "", repetitions.
	between string
	// chains is the number of chains that the standard errors of single cells
	// are between, or 0.
	chains   int
	warnings []string
}

func newPlan(title string, columns []column, curves ...curve) *plan {
	return &plan{title: title, caption: title[:strings.IndexAny(title+",", ":,")], columns: columns, curves: curves}
}

// repeats makes the pictures name the part of a paper that the study repeats.
func (p *plan) repeats(paper, part string) { p.caption = paper + ", " + part + ":\n" + p.caption }

// Papers, as pictures name them.
const (
	discreteLangevin = "Discrete Langevin paper"
	gibbsGradients   = "Gibbs with Gradients"
	slidesARM        = "ARM slides"
)

// column describes a number that each cell computes.
type column struct {
	name, format, definition string
	timed                    bool // whether it depends on time measurements
	// against names the numeric label, or the other column, against which the
	// column is plotted.
	against string
	table   int      // index of the table that shows the column
	words   []string // words shown in place of the numbers 0, 1, ...
	// follows names a curve. The column is the curve's last point within the
	// smallest budget of a panel. spent returns the budget that a point has
	// used.
	follows  string
	spent    func(sample) float64
	progress bool // whether it is that point's x, and not its y
	// reaches names a curve. The column has the seconds of its first point at
	// or below level.
	reaches string
	level   float64
}

// acceptanceColumn and secondsColumn return columns that several studies have.
func acceptanceColumn() column {
	return column{name: "acceptance", format: "%.2f", definition: "of proposals; in a training, at the last update"}
}

func secondsColumn(of string) column {
	return column{name: "seconds", format: "%.1f", definition: secondsAre + " " + of, timed: true}
}

// curve describes a number that a cell records while it runs.
type curve struct {
	name, x, y string
	log        bool   // whether plots show x on a logarithmic axis
	interval   string // what the points' own intervals are; if "", they have none
	shares     bool   // whether x and y are percent: plots then show where y equals x
}

// cell is one training or measurement. Cells whose labels differ only in repeat
// are repetitions of each other.
type cell struct {
	labels labels
	run    func(context.Context, *bench) error
}

// A parameter is a label, or one setting of a target, in the order of the
// signature.
type parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type labels []parameter

const repeatLabel = "repeat"

func (l labels) value(name string) (value string) {
	for _, p := range l {
		if p.Name == name {
			value = p.Value
		}
	}
	return value
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

// join joins the values with the separator. It writes the word repeat before
// the number of a repetition.
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

func repeatsFlag(f *pflag.FlagSet, at int) *int {
	return wholeFlag(f, "repeats", at, 1, 1000, "repetitions with other random numbers, which errors are taken from")
}

// StudyOptions say how a study runs.
type StudyOptions struct {
	Seed uint64
	// Folder is where every finished cell is stored, so that a stopped study
	// can be resumed. If "", nothing is stored.
	Folder  string
	Version string // version of the program, for signatures
	// Observe, unless nil, is called with the progress of a cell.
	Observe func(cell string, done, of int)
}

// Run runs the cells one after another, and skips cells whose results are in
// o.Folder. If o.Folder is of another study, of other settings or of another
// seed, Run returns an error.
func (s *Study) Run(ctx context.Context, o StudyOptions) (*StudyReport, error) {
	r := &StudyReport{Study: s.Name, Seed: o.Seed, Signature: "lab:" + s.Name}
	s.Flags.VisitAll(func(f *pflag.Flag) {
		r.Parameters = append(r.Parameters, parameter{f.Name, f.Value.String()})
		r.Signature += "|" + f.Name + ":" + f.Value.String()
	})
	in := &inputs{}
	p, err := s.plan(ctx, in, o.Seed)
	if err != nil {
		return nil, err
	}
	r.Inputs = in.list
	for _, input := range in.list {
		r.Signature += "|" + input.Name + ":" + input.Value
	}
	r.Signature += fmt.Sprintf("|seed:%d", o.Seed)
	if o.Version != "" {
		r.Signature += "|version:" + o.Version
	}
	if o.Folder != "" {
		if err := claim(o.Folder, r.Signature); err != nil {
			return nil, fmt.Errorf("write to %s: %w", o.Folder, err)
		}
	}
	r.plan = p
	r.Title = p.title
	for i, c := range p.cells {
		name := fmt.Sprintf("%d/%d %s", i+1, len(p.cells), c.labels)
		b := &bench{seed: o.Seed, repeat: c.labels.value(repeatLabel), folder: o.Folder,
			slug:  fmt.Sprintf("%d-%.60s", i+1, plain(c.labels.join("-"))),
			start: clock(), result: &cellResult{Signature: r.Signature, Labels: c.labels},
			observe: func(done, of int) {
				if o.Observe != nil {
					o.Observe(name, done, of)
				}
			}}
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

func (b *bench) path() string { return filepath.Join(b.folder, "cells", b.slug+".json") }

// runOrRead reads the result of cell c from b.folder. If there is no result, it
// runs c and stores the result there.
func (b *bench) runOrRead(ctx context.Context, c cell) error {
	if b.folder == "" {
		return c.run(ctx, b)
	}
	known, err := b.known()
	if err != nil {
		return err
	}
	if known != nil && known.Signature == b.result.Signature {
		b.result = known
		return nil
	}
	if err := c.run(ctx, b); err != nil {
		return err
	}
	text, err := object.EncodeIndent(b.result, "", "  ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(b.path(), append(text, '\n'), 0o666)
}

// known reads the result that b.folder has of the cell, or returns nil.
func (b *bench) known() (*cellResult, error) {
	text, err := os.ReadFile(b.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var known cellResult
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("%s: %w: delete it to run this again", b.path(), err)
	}
	return &known, nil
}

// claim makes the folder of an experiment. If the folder holds another
// experiment, claim returns an error.
func claim(folder, signature string) error {
	if err := os.MkdirAll(filepath.Join(folder, "cells"), 0o777); err != nil {
		return err
	}
	path := filepath.Join(folder, "signature.txt")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return maybe.WriteFile(path, []byte(signature+"\n"), 0o666)
	}
	if err != nil {
		return err
	}
	there := strings.TrimSpace(string(text))
	if there == signature {
		return nil
	}
	differs := "the same in another order"
	own := besides(there, signature)
	wanted := besides(signature, there)
	if own+wanted != "" {
		differs = own + ", and not " + wanted
	}
	return refuse("output", "%s holds another experiment (%s): choose another folder", folder, differs)
}

// besides lists the fields of a signature that another signature lacks.
func besides(signature, other string) string {
	known := strings.Split(other, "|")
	fields := slices.DeleteFunc(strings.Split(signature, "|"), func(field string) bool {
		return slices.Contains(known, field)
	})
	return strings.Join(fields, "|")
}

// An OptionError is an error about an option's value. Its text begins with the
// option's name, as the user types it.
type OptionError struct {
	Option string
	Err    error
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

func refuse(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

// cellResult holds the results of a cell.
type cellResult struct {
	Signature string              `json:"signature"`
	Labels    labels              `json:"labels"`
	Numbers   map[string]float64  `json:"numbers"` // finite numbers only
	Errors    map[string]float64  `json:"standard_errors,omitempty"`
	Curves    map[string][]sample `json:"curves,omitempty"`
	Files     []string            `json:"files,omitempty"` // pictures and traces, in the study's folder
	Warnings  []string            `json:"warnings,omitempty"`
}

// sample is a point of a curve.
type sample struct {
	X           float64 `json:"x"`
	Evaluations float64 `json:"evaluations,omitempty"` // of each chain, up to this point
	Seconds     float64 `json:"seconds,omitempty"`     // of the cell, up to this point
	Y           float64 `json:"y"`
	Error       float64 `json:"error,omitempty"` // standard error; 0 if unknown
	// Low and High are the interval of Y, or both 0 if Error says it.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// put sets an entry of a map. If the map is nil, put makes it first.
func put[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

// bench gives a running cell its seed, a result to fill in, and its place in
// folder.
type bench struct {
	seed    uint64
	repeat  string
	result  *cellResult
	folder  string // "" if nothing is stored
	slug    string
	observe func(done, of int)
	start   time.Time // what the clock showed at the start
}

// streams returns n random streams of the repetition. Cells that differ only in
// other labels get the same streams, so that samplers learn from the same data.
func (b *bench) streams(label string, n int) []*rand.Rand {
	return samplers.Streams(b.seed, b.repeat+" "+label, n)
}

// repetition returns the number of the repetition, from 0.
func (b *bench) repetition() int {
	n, err := strconv.Atoi(b.repeat)
	if err != nil {
		panic(err) // the plan has numbered the repetitions
	}
	return n - 1
}

func (b *bench) stream(label string) *rand.Rand { return b.streams(label, 1)[0] }

func (b *bench) number(name string, value float64) {
	if logmath.Finite(value) {
		put(&b.result.Numbers, name, value)
	}
}

// estimate returns a function that records a number with its standard error,
// which may be NaN.
func (b *bench) estimate(name string) func(value, standardError float64) {
	return func(value, standardError float64) {
		b.number(name, value)
		if logmath.Finite(value) && logmath.Finite(standardError) {
			put(&b.result.Errors, name, standardError)
		}
	}
}

// chains records the mean of a number over chains, with its standard error if
// there are several chains.
func (b *bench) chains(name string, byChain []float64) {
	mean, standardError := samplers.MeanAndError(byChain)
	b.number(name, mean)
	if standardError != nil {
		b.estimate(name)(mean, *standardError)
	}
}

func (b *bench) point(curve string, x, y float64) {
	b.pointAt(curve, sample{X: x, Seconds: b.seconds(), Y: y})
}

func (b *bench) pointAt(curve string, s sample) {
	if !logmath.Finite(s.Error) {
		s.Error = 0
	}
	if logmath.Finite(s.Y) {
		put(&b.result.Curves, curve, append(b.result.Curves[curve], s))
	}
}

func (b *bench) warn(format string, args ...any) {
	b.result.Warnings = append(b.result.Warnings, fmt.Sprintf(format, args...))
}

// seconds returns the processor time that the cell has used.
func (b *bench) seconds() float64 { return clock().Sub(b.start).Seconds() }

// picture writes an image to b.folder, unless that is "".
func (b *bench) picture(name string, m image.Image) error {
	if b.folder == "" {
		return nil
	}
	file, err := b.create(name, ".png")
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(file, m), file.Close())
}

// create makes a file for the cell in b.folder. If that is "", it returns an
// error.
func (b *bench) create(name, extension string) (*os.File, error) {
	if b.folder == "" {
		return nil, refuse("output", "give a folder for %s%s", name, extension)
	}
	name += "-" + b.slug + extension
	b.result.Files = append(b.result.Files, name)
	return os.Create(filepath.Join(b.folder, name))
}

// tick reports the progress of the cell. If ctx has ended, it returns ctx's
// error.
func (b *bench) tick(ctx context.Context, done, of int) error {
	b.observe(done, of)
	return ctx.Err()
}

var notPlain = regexp.MustCompile(`[^a-zA-Z0-9.=-]`)

// plain replaces characters that do not suit a file name by hyphens.
func plain(text string) string { return notPlain.ReplaceAllString(text, "-") }
