// Package lab has what the experiments of the laboratory share. Each experiment
// is a [Study]: a table of cells, a runner and a report. The package does not
// use terminals. docs/reference/laboratory.md defines the numbers.
//
// Four rooms have the experiments: chains, energies, bits and fills. The doc.go
// of a room says which file has which command and which figure.
//
// Standard errors compare repetitions, or chains, which are independent, unlike
// the steps of a chain. Seconds count only the processor time of the steps, so
// run nothing else in the same process during a comparison.
package lab

import (
	"context"
	_ "embed"
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
	"sync"
	"time"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"infill/internal/journal"
	"infill/internal/logmath"
	"infill/internal/phrase"
	"infill/samplers"
)

// A Study is an experiment of many cells, which are trainings or measurements.
// A cell has labels, such as its sampler, and repetitions with other random
// numbers. The flags are the settings: set them before [Study.Run].
type Study struct {
	Name  string // words of the command, as "learn ising"
	Flags *pflag.FlagSet
	description

	// Plan checks the settings and returns the cells.
	// What it reads, it reads by in.
	Plan func(ctx context.Context, in *Inputs, seed uint64) (*Plan, error)
}

// description is what studies.yaml has of a study; its head says what is what.
type description struct {
	Short   string
	Help    []string // paragraphs
	Repeats string
	Columns []Column
	Curves  []Curve
}

//go:embed studies.yaml
var studiesFile []byte

var descriptions = sync.OnceValue(func() map[string]description { return Own[map[string]description](studiesFile) })

// Own reads YAML that is part of the program.
func Own[T any](text []byte) (value T) {
	err := yaml.UnmarshalStrict(text, &value)
	if err != nil {
		panic(err) // the program's own file is wrong
	}
	return value
}

// NewStudy makes the study of that name, without flags and plan.
func NewStudy(name string) *Study {
	return &Study{Name: name, Flags: pflag.NewFlagSet(name, pflag.ContinueOnError), description: descriptions()[name]}
}

// instead is the annotation of flags whose place an option takes.
const instead = "instead"

// Instead says that an option, where it is given, takes the place of other
// flags. They are then no settings of the study, and giving one is an error.
func Instead(f *pflag.FlagSet, option string, of ...string) {
	for _, name := range of {
		err := f.SetAnnotation(name, instead, []string{option})
		if err != nil {
			panic(err) // the study does not define the flag
		}
	}
}

func (s *Study) settings() (list []Label, err error) {
	s.Flags.VisitAll(func(f *pflag.Flag) {
		for _, option := range f.Annotations[instead] {
			file := s.Flags.Lookup(option).Value.String()
			if file == "" {
				continue
			}
			if f.Changed {
				err = Refuse(f.Name, "%s, but --%s %s has its own: give one of the two", f.Value, option, file)
			}
			return
		}
		list = append(list, Label{f.Name, f.Value.String()})
	})
	return list, err
}

type Plan struct {
	title   string
	Caption string // title of the pictures, in words, with the paper's figure
	Columns []Column
	Curves  []Curve
	Cells   []Cell
	Notes   []string // printed below the table
	Level   float64  // of the columns that reach it
	// Between says between what the standard errors of single cells are, such
	// as "4 chains"; if "", repetitions.
	Between string
	// chains is how many chains a cell's standard errors are between, or 0.
	chains int
}

// NewPlan makes a plan without cells. The pictures have the title up to its
// first comma or colon. Definitions of columns have the words in place of those
// in braces, as "{level}", "-2.8".
func (s *Study) NewPlan(title string, words ...string) *Plan {
	p := &Plan{title: title, Caption: title[:strings.IndexAny(title+",", ":,")], Columns: slices.Clone(s.Columns),
		Curves: s.Curves}
	if s.Repeats != "" {
		p.Caption = s.Repeats + ":\n" + p.Caption
	}
	put := strings.NewReplacer(append(words, "{clock}", SecondsAre)...)
	for i := range p.Columns {
		p.Columns[i].Definition = put.Replace(p.Columns[i].Definition)
	}
	return p
}

// Column is a number that each cell computes: see studies.yaml.
type Column struct {
	Name, Format, Definition string
	Timed                    bool
	Against                  string
	Table                    int
	Words                    []string
	Follows, Budget          string
	Progress                 bool
	Reaches                  string
}

// Curve is a number that a cell records while it runs: see studies.yaml.
type Curve struct {
	Name, X, Y string
	Log        bool
	Interval   string
	Shares     bool
}

// Cell is one training or measurement. Cells whose labels differ only in repeat
// are repetitions of each other.
type Cell struct {
	Labels Labels
	Run    func(context.Context, *Bench) error
}

// A Label is what a cell is of, such as its sampler, or one setting of a target.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type Labels []Label

// RepeatLabel is the name of the label that numbers repetitions.
const RepeatLabel = "repeat"

func (l Labels) Value(name string) (value string) {
	for _, p := range l {
		if p.Name == name {
			value = p.Value
		}
	}
	return value
}

func (l Labels) names() (list []string) {
	for _, p := range l {
		list = append(list, p.Name)
	}
	return list
}

func (l Labels) values() (list []string) {
	for _, p := range l {
		list = append(list, p.Value)
	}
	return list
}

// join joins the values, with the word repeat before that of a repetition.
func (l Labels) join(separator string) string {
	words := l.values()
	for i, p := range l {
		if p.Name == RepeatLabel {
			words[i] = RepeatLabel + " " + p.Value
		}
	}
	return strings.Join(words, separator)
}

func (l Labels) String() string { return l.join(" ") }

// Add adds a cell for each repetition.
func (p *Plan) Add(repeats int, run func(context.Context, *Bench) error, of ...Label) {
	for repeat := range repeats {
		own := append(slices.Clone(Labels(of)), Label{RepeatLabel, strconv.Itoa(repeat + 1)})
		p.Cells = append(p.Cells, Cell{own, run})
	}
}

func RepeatsFlag(f *pflag.FlagSet, at int) *int {
	return WholeFlag(f, "repeats", at, 1, 1000, "repetitions with other random numbers, which errors are taken from")
}

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
	var err error
	r.Parameters, err = s.settings()
	if err != nil {
		return nil, err
	}
	for _, p := range r.Parameters {
		r.Signature += "|" + p.Name + ":" + p.Value
	}
	in := &Inputs{}
	p, err := s.Plan(ctx, in, o.Seed)
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
	r.Plan = p
	r.Title = p.title
	for i, c := range p.Cells {
		name := fmt.Sprintf("%d/%d %s", i+1, len(p.Cells), c.Labels)
		b := &Bench{Seed: o.Seed, Repeat: c.Labels.Value(RepeatLabel), Folder: o.Folder,
			slug:  fmt.Sprintf("%d-%.60s", i+1, Plain(c.Labels.join("-"))),
			Start: Clock(), Result: &CellResult{Signature: r.Signature, Labels: c.Labels},
			Observe: func(done, of int) {
				if o.Observe != nil {
					o.Observe(name, done, of)
				}
			}}
		if err := b.runOrRead(ctx, c); err != nil {
			if o.Folder != "" && ctx.Err() != nil {
				err = fmt.Errorf("%w: the same command goes on from here", err)
			}
			return nil, fmt.Errorf("%s: %w", c.Labels, err)
		}
		r.Cells = append(r.Cells, b.Result)
	}
	r.atEqualBudgets()
	return r, nil
}

// runOrRead reads the result of cell c from b.folder. If there is no result, it
// runs c and stores the result there.
func (b *Bench) runOrRead(ctx context.Context, c Cell) error {
	if b.Folder == "" {
		return c.Run(ctx, b)
	}
	path := filepath.Join(b.Folder, "cells", b.slug+".json")
	var known CellResult
	found, err := journal.ReadJSON(path, &known)
	if err != nil {
		return err
	}
	if found && known.Signature == b.Result.Signature {
		b.Result = &known
		return nil
	}
	err = c.Run(ctx, b)
	if err != nil {
		return err
	}
	return journal.WriteJSON(path, b.Result)
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
	return Refuse("output", "%s holds another experiment (%s): choose another folder", folder, differs)
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

func Refuse(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

type CellResult struct {
	Signature string              `json:"signature"`
	Labels    Labels              `json:"labels"`
	Numbers   map[string]float64  `json:"numbers"` // finite numbers only
	Errors    map[string]float64  `json:"standard_errors,omitempty"`
	Curves    map[string][]Sample `json:"curves,omitempty"`
	Files     []string            `json:"files,omitempty"` // pictures and traces, in the study's folder
	Warnings  []string            `json:"warnings,omitempty"`
}

// Sample is a point of a curve.
type Sample struct {
	X           float64 `json:"x"`
	Evaluations float64 `json:"evaluations,omitempty"` // of each chain, up to this point
	Seconds     float64 `json:"seconds,omitempty"`     // of the cell, up to this point
	Y           float64 `json:"y"`
	Error       float64 `json:"error,omitempty"` // standard error; 0 if unknown
	// Low and High are the interval of Y, or both 0 if Error says it.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// spent returns how much of a budget a chain or a cell has used up to the point.
func (s Sample) spent(budget string) float64 {
	switch budget {
	case "evaluations":
		return s.Evaluations
	case "seconds":
		return s.Seconds
	}
	return s.X
}

// Put sets an entry of a map. If the map is nil, put makes it first.
func Put[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

// Bench gives a running cell its seed, its result, and its place in folder.
type Bench struct {
	Seed    uint64
	Repeat  string
	Result  *CellResult
	Folder  string // "" if nothing is stored
	slug    string
	Observe func(done, of int)
	Start   time.Time // what the clock showed at the start
}

// Streams returns n random streams of the repetition. Cells that differ only in
// other labels get the same streams, so that samplers learn from the same data.
func (b *Bench) Streams(label string, n int) []*rand.Rand {
	return samplers.Streams(b.Seed, b.Repeat+" "+label, n)
}

// Repetition returns the number of the repetition, from 0.
func (b *Bench) Repetition() int {
	n, err := strconv.Atoi(b.Repeat)
	if err != nil {
		panic(err) // the plan has numbered the repetitions
	}
	return n - 1
}

// Stream returns one stream, as [Bench.Streams] does.
func (b *Bench) Stream(label string) *rand.Rand { return b.Streams(label, 1)[0] }

// Number records a number of the cell, if it is finite.
func (b *Bench) Number(name string, value float64) {
	if logmath.Finite(value) {
		Put(&b.Result.Numbers, name, value)
	}
}

// Estimate returns what records a number and its error, which may be NaN.
func (b *Bench) Estimate(name string) func(value, standardError float64) {
	return func(value, standardError float64) {
		b.Number(name, value)
		if logmath.Finite(value) && logmath.Finite(standardError) {
			Put(&b.Result.Errors, name, standardError)
		}
	}
}

// Chains records the mean over chains, with its error if there are several.
func (b *Bench) Chains(name string, byChain []float64) {
	mean, standardError := samplers.MeanAndError(byChain)
	b.Number(name, mean)
	if logmath.Finite(standardError) {
		b.Estimate(name)(mean, standardError)
	}
}

// Point records a point of a curve, at the seconds that are used by now.
func (b *Bench) Point(curve string, x, y float64) {
	b.PointAt(curve, Sample{X: x, Seconds: b.Seconds(), Y: y})
}

// PointAt records a point of a curve, if it is finite.
func (b *Bench) PointAt(curve string, s Sample) {
	if !logmath.Finite(s.Error) {
		s.Error = 0
	}
	if logmath.Finite(s.Y) {
		Put(&b.Result.Curves, curve, append(b.Result.Curves[curve], s))
	}
}

func (b *Bench) Warn(format string, args ...any) {
	b.Result.Warnings = append(b.Result.Warnings, fmt.Sprintf(format, args...))
}

// Seconds returns the processor time that the cell has used.
func (b *Bench) Seconds() float64 { return Clock().Sub(b.Start).Seconds() }

// Picture writes an image to b.folder, unless that is "".
func (b *Bench) Picture(name string, m image.Image) error {
	if b.Folder == "" {
		return nil
	}
	file, err := b.Create(name, ".png")
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(file, m), file.Close())
}

// Create makes a file for the cell in b.folder, which must not be "".
func (b *Bench) Create(name, extension string) (*os.File, error) {
	if b.Folder == "" {
		return nil, Refuse("output", "give a folder for %s%s", name, extension)
	}
	name += "-" + b.slug + extension
	b.Result.Files = append(b.Result.Files, name)
	return os.Create(filepath.Join(b.Folder, name))
}

// Tick reports progress. If ctx has ended, it returns ctx's error.
func (b *Bench) Tick(ctx context.Context, done, of int) error {
	b.Observe(done, of)
	return ctx.Err()
}

var notPlain = regexp.MustCompile(`[^a-zA-Z0-9.=-]`)

// Plain replaces characters that do not suit a file name by hyphens.
func Plain(text string) string { return notPlain.ReplaceAllString(text, "-") }

func (p *Plan) BetweenChains(n int) {
	p.Between = phrase.Counted(n, "chain")
	p.chains = n
}
