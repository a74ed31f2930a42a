package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"infill/internal/chart"
	"infill/internal/logmath"
	"infill/internal/object"
	"infill/samplers"
)

// A Study is an experiment of many cells: trainings or measurements, each with labels such as its sampler, and repeated
// with other random numbers. Its flags are its settings, to be set before [Study.Run].
type Study struct {
	Name        string // words of the command, as "learn ising"
	Short, Help string
	Flags       *flag.FlagSet

	setup studySetup
}

type studySetup interface {
	register(f *flag.FlagSet)
	// plan checks the settings and lists the cells.
	plan(ctx context.Context, seed uint64) (*plan, error)
}

func newStudy(name, short, help string, setup studySetup) *Study {
	s := &Study{name, short, help, flag.NewFlagSet(name, flag.ContinueOnError), setup}
	setup.register(s.Flags)
	return s
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
	// finish, which may be nil, finds the numbers that need all cells.
	finish func(*StudyReport)
	draw   func(*StudyReport) ([]chart.Figure, error) // more figures, where not nil
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
}

// curve is a number that is followed in the course of a cell.
type curve struct {
	name, x, y string
	log        bool // x is drawn by its logarithm
	byXAlone   bool // and not by seconds
}

// cell is one training or measurement. Cells that differ in the label repeat alone are repetitions of each other.
type cell struct {
	labels []parameter
	run    func(context.Context, *bench) error
}

const repeatLabel = "repeat"

// add adds a cell for each repetition, with labels that are given as name, value, name, value.
func (p *plan) add(repeats int, run func(context.Context, *bench) error, labels ...string) {
	for repeat := range repeats {
		c := cell{run: run}
		for pair := range slices.Chunk(append(slices.Clone(labels), repeatLabel, strconv.Itoa(repeat+1)), 2) {
			c.labels = append(c.labels, parameter{pair[0], pair[1]})
		}
		p.cells = append(p.cells, c)
	}
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

// cellResult is what a cell found.
type cellResult struct {
	Signature string              `json:"signature"`
	Labels    []parameter         `json:"labels"`
	Numbers   map[string]float64  `json:"numbers"` // those that are not finite are left out
	Errors    map[string]float64  `json:"standard_errors,omitempty"`
	Curves    map[string][]sample `json:"curves,omitempty"`
	Pictures  []string            `json:"pictures,omitempty"` // files in the folder
	Warnings  []string            `json:"warnings,omitempty"`
}

// sample is a point of a curve.
type sample struct {
	X       float64 `json:"x"`
	Seconds float64 `json:"seconds,omitempty"` // of the cell so far
	Y       float64 `json:"y"`
	Error   float64 `json:"error,omitempty"` // standard error, where it is known
}

// bench is what a cell works on.
type bench struct {
	seed    uint64
	repeat  string
	result  *cellResult
	folder  string // empty: nothing is kept
	slug    string
	observe func(done, of int)
	start   time.Time     // of the clock
	before  time.Duration // spent before the cell was stopped
	saved   time.Time
}

// streams are random streams of the repetition: cells that differ in another
// label share them, so that samplers learn from the same data.
func (b *bench) streams(label string, n int) []*rand.Rand {
	return samplers.Streams(b.seed, b.repeat+" "+label, n)
}

func (b *bench) number(name string, value float64) {
	if logmath.Finite(value) {
		b.result.Numbers[name] = value
	}
}

// estimate takes a number with its standard error, which may be NaN.
func (b *bench) estimate(name string) func(value, standardError float64) {
	return func(value, standardError float64) {
		b.number(name, value)
		if logmath.Finite(value) && logmath.Finite(standardError) {
			b.result.Errors[name] = standardError
		}
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
		b.result.Curves[curve] = append(b.result.Curves[curve], s)
	}
}

func (b *bench) warn(format string, args ...any) {
	b.result.Warnings = append(b.result.Warnings, fmt.Sprintf(format, args...))
}

// seconds is the processor time that the cell has used.
func (b *bench) seconds() float64 { return (b.before + clock().Sub(b.start)).Seconds() }

// picture keeps an image in the folder.
func (b *bench) picture(name string, m image.Image) error {
	if b.folder == "" {
		return nil
	}
	var text bytes.Buffer
	if err := png.Encode(&text, m); err != nil {
		return err
	}
	name += "-" + b.slug + ".png"
	b.result.Pictures = append(b.result.Pictures, name)
	return maybe.WriteFile(filepath.Join(b.folder, name), text.Bytes(), 0o666)
}

func (b *bench) checkpoint() string {
	return filepath.Join(b.folder, "cells", b.slug+".checkpoint")
}

// kept is a checkpoint: the state of the training, and what was found so far.
type kept struct {
	Signature string
	Result    cellResult
	Spent     time.Duration
	State     []byte
}

// resume reads the state of a training that was stopped, and tells whether there was one.
func (b *bench) resume(state any) (bool, error) {
	if b.folder == "" {
		return false, nil
	}
	text, err := os.ReadFile(b.checkpoint())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var k kept
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(text)).Decode(&k)
	}
	if err == nil && k.Signature != b.result.Signature {
		return false, nil
	}
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(k.State)).Decode(state)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w: delete it to begin the training again", b.checkpoint(), err)
	}
	*b.result = k.Result
	b.result.fillMaps()
	b.before = k.Spent
	return true, nil
}

// keepEvery is how much of a training is lost at most when the machine stops.
const keepEvery = 15 * time.Second

// tick tells how far a training is, and keeps its state now and then, and when the
// context ends, whose error it returns.
func (b *bench) tick(ctx context.Context, done, of int, state any) error {
	b.observe(done, of)
	stopped := ctx.Err()
	if b.folder == "" || state == nil || stopped == nil && time.Since(b.saved) < keepEvery {
		return stopped
	}
	var inner, text bytes.Buffer
	err := gob.NewEncoder(&inner).Encode(state)
	if err == nil {
		err = gob.NewEncoder(&text).Encode(
			kept{b.result.Signature, *b.result, b.before + clock().Sub(b.start), inner.Bytes()})
	}
	if err == nil {
		err = maybe.WriteFile(b.checkpoint(), text.Bytes(), 0o666)
	}
	b.saved = time.Now()
	return errors.Join(stopped, err)
}

// Run runs the cells one after the other. Cells that the folder holds are not run
// again; a folder that holds another study, or another seed, is refused.
func (s *Study) Run(ctx context.Context, o StudyOptions) (*StudyReport, error) {
	p, err := s.setup.plan(ctx, o.Seed)
	if err != nil {
		return nil, err
	}
	r := &StudyReport{Study: s.Name, Title: p.title, Signature: s.signature(o), Seed: o.Seed,
		Parameters: parametersOf(s.Flags), plan: p}
	if o.Folder != "" {
		if err := claim(o.Folder, r.Signature); err != nil {
			return nil, err
		}
	}
	for i, c := range p.cells {
		b := &bench{
			seed: o.Seed, folder: o.Folder, slug: slug(c.labels), start: clock(), saved: time.Now(),
			result: &cellResult{Signature: r.Signature, Labels: c.labels},
		}
		b.result.fillMaps()
		for _, l := range c.labels {
			if l.Name == repeatLabel {
				b.repeat = l.Value
			}
		}
		name := fmt.Sprintf("%d/%d %s", i+1, len(p.cells), strings.Join(values(c.labels), " "))
		b.observe = func(done, of int) {
			if o.Observe != nil {
				o.Observe(Progress{name, done, of})
			}
		}
		if err := b.runOrRead(ctx, c); err != nil {
			if o.Folder != "" && ctx.Err() != nil {
				err = fmt.Errorf("%w: the same command goes on from here", err)
			}
			return nil, fmt.Errorf("%s: %w", strings.Join(values(c.labels), " "), err)
		}
		b.result.fillMaps()
		r.Cells = append(r.Cells, b.result)
	}
	if p.finish != nil {
		p.finish(r)
	}
	return r, nil
}

// fillMaps makes the maps that a file leaves out where they are empty.
func (c *cellResult) fillMaps() {
	for _, m := range []*map[string]float64{&c.Numbers, &c.Errors} {
		if *m == nil {
			*m = map[string]float64{}
		}
	}
	if c.Curves == nil {
		c.Curves = map[string][]sample{}
	}
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
	switch {
	case err == nil:
		var known cellFile
		if err := json.Unmarshal(text, &known); err != nil {
			return fmt.Errorf("%s: %w: delete it to run this again", path, err)
		}
		if known.Signature == b.result.Signature && known.Found != nil {
			b.result = known.Found
			return nil
		}
	case !errors.Is(err, fs.ErrNotExist):
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
	if err := os.Remove(b.checkpoint()); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
func (s *Study) signature(o StudyOptions) string {
	words := []string{"lab:" + s.Name}
	for _, p := range parametersOf(s.Flags) {
		words = append(words, p.Name+":"+p.Value)
	}
	words = append(words, fmt.Sprintf("seed:%d", o.Seed))
	if o.Version != "" {
		words = append(words, "version:"+o.Version)
	}
	return strings.Join(words, "|")
}

func parametersOf(f *flag.FlagSet) []parameter {
	var list []parameter
	f.VisitAll(func(f *flag.Flag) { list = append(list, parameter{f.Name, f.Value.String()}) })
	return list
}

func values(labels []parameter) []string {
	var list []string
	for _, l := range labels {
		if l.Name == repeatLabel {
			l.Value = repeatLabel + " " + l.Value
		}
		list = append(list, l.Value)
	}
	return list
}

var notPlain = regexp.MustCompile(`[^a-zA-Z0-9.=-]`)

// slug names a cell's files: what of its labels suits a file's name, and a few
// digits that tell apart what that leaves out.
func slug(labels []parameter) string {
	text := strings.Join(values(labels), "-")
	plain := notPlain.ReplaceAllString(text, "-")
	if plain == text || plain == strings.ReplaceAll(text, " ", "-") {
		return plain
	}
	hash := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%.60s-%x", plain, hash[:3])
}

// group is the repetitions of a cell.
type group struct {
	labels []parameter
	cells  []*cellResult
}

func (r *StudyReport) groups() []*group {
	var list []*group
	known := map[string]*group{}
	for _, c := range r.Cells {
		var labels []parameter
		for _, l := range c.Labels {
			if l.Name != repeatLabel {
				labels = append(labels, l)
			}
		}
		key := fmt.Sprint(labels)
		if known[key] == nil {
			known[key] = &group{labels: labels}
			list = append(list, known[key])
		}
		known[key].cells = append(known[key].cells, c)
	}
	return list
}

// numbers are those of the repetitions that found one.
func (g *group) numbers(name string) []float64 {
	var list []float64
	for _, c := range g.cells {
		if x, found := c.Numbers[name]; found {
			list = append(list, x)
		}
	}
	return list
}

// StudyReport is what a study found.
type StudyReport struct {
	Study       string            `json:"study"`
	Title       string            `json:"title"`
	Signature   string            `json:"signature"`
	Seed        uint64            `json:"seed"`
	Parameters  []parameter       `json:"parameters"`
	Cells       []*cellResult     `json:"cells"`
	Notes       []string          `json:"notes,omitempty"`
	Definitions map[string]string `json:"definitions"`

	plan *plan
}

// WithoutTimes removes all that depends on the clock.
func (r *StudyReport) WithoutTimes() {
	for _, cell := range r.Cells {
		for _, c := range r.plan.columns {
			if c.timed {
				delete(cell.Numbers, c.name)
				delete(cell.Errors, c.name)
			}
		}
		for _, list := range cell.Curves {
			for i := range list {
				list[i].Seconds = 0
			}
		}
	}
	r.plan.columns = slices.DeleteFunc(r.plan.columns, func(c column) bool { return c.timed })
}

// Warnings are sentences about what limits the results.
func (r *StudyReport) Warnings() []string {
	list := slices.Clone(r.plan.warnings)
	for _, c := range r.Cells {
		for _, w := range c.Warnings {
			list = append(list, strings.Join(values(c.Labels), " ")+": "+w)
		}
	}
	return list
}

// JSON is the whole report, indented, with a line end.
func (r *StudyReport) JSON() ([]byte, error) {
	r.Definitions, r.Notes = map[string]string{}, r.plan.notes
	for _, c := range r.plan.columns {
		r.Definitions[c.name] = c.definition
	}
	maps.DeleteFunc(r.Definitions, func(_, text string) bool { return text == "" })
	text, err := object.EncodeIndent(r, "", "  ")
	return append(text, '\n'), err
}
