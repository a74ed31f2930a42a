// Package batch does the same work on every record of a file, in one or more
// processes, which may be killed and restarted.
//
// A part of a run is a file that only grows (package journal), such as
// OUTPUT.parts/00003-of-00008.jsonl: a line of settings, and then a line for
// each finished record, in order. A run in one process has one part. A
// process that continues a part counts its whole lines. When all parts are
// finished, join makes the output from them and renames it into place. So the
// output has the same bytes for any number of parts and kills, and it exists
// only when it is finished.
package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"infill/infill"
	"infill/internal/journal"
	"infill/internal/lines"
	"infill/internal/option"
	"infill/internal/parallel"
	"infill/internal/rawjson"
)

type Job struct {
	Input     File
	Output    File
	Work      work
	Resume    bool `option:"resume" help:"go on with a run that was not finished"`
	Overwrite bool `option:"overwrite" help:"start again, and remove the old output and its parts"`
	InFlight  int  `option:"jobs" help:"lines to fill at the same time, which share the model's calls; 0 is 128 a core, at most 1024"` // here 0 means 1
	// Columns are the columns of the output that are written, in this order; nil for all.
	Columns []string `option:"columns" word:"LIST" help:"LIST of the columns, or keys, to write, in this order; all by default"`
	// Shard is the part that Run does. The zero Shard means the whole run, and
	// Run then writes the output too.
	Shard Shard `option:"shard" word:"I/N" help:"I/N: do part I of N, from 1; infill run merge puts them together"`
	// Observe, if not nil, is called with the progress of the run, one call at a time.
	Observe func(Progress)
	// Note, if not nil, is called with lines about the input before the work.
	Note func(string)
}

// work makes rows of output from records, several at once.
type work interface {
	// settings loads the model, and returns all but the record that a row
	// depends on (options, model, version, device). Other parts are refused.
	settings(ctx context.Context) (map[string]string, error)
	// column returns the name of the column that holds a record's text. A line
	// of plain text becomes this column.
	column() string
	// layout returns the columns of an output table. It is called before do,
	// with the names of the input's columns in the order first seen.
	layout(input []string, form Form) Layout
	// options returns those columns of the input that do reads as options, or an
	// *infill.OptionError for a setting that names a column which is not there.
	options(input []string) ([]string, error)
	// warnings is called after all records. It returns a warning for each text
	// of the settings that no record contains.
	warnings() []string
	// do returns the lines of output for a record. A *RejectError rejects the
	// record; any other error ends the run.
	do(ctx context.Context, r Record, form Form) (Rows, error)
}

type Progress struct {
	Done, Total int64 // records, including those of earlier processes
	Rejected    int64
	PerSecond   float64 // records that this process finishes a second
}

type Summary struct {
	Output                   string // "" if the run did only a part
	Done                     bool   // whether the output existed before the run; the counts are then 0
	Records, Rejected, Blank int64
	Lines                    int64 // lines of the output
	Missing                  int64 // variants that were wanted and could not be made
	// Unproven is the number of texts whose fills are not proven, and Excluded how
	// many of these have a blank whose likeliest token is no word.
	Unproven, Excluded int64
	// Options are columns whose values were refused as values of options.
	Options   []string
	Kept      int64  // records finished by earlier processes
	Signature string // all settings in one line; "" if the run did only a part
	Warnings  []string
}

// RejectError says why a record was rejected. The run goes on with the next record.
type RejectError struct {
	error
	option string // the column whose value was refused as that of an option, or ""
}

func (e *RejectError) Unwrap() error { return e.error }
func reject(format string, args ...any) error {
	return &RejectError{error: fmt.Errorf(format, args...)}
}

func outError(format string, args ...any) error {
	return &infill.OptionError{Option: "out", Reason: fmt.Sprintf(format, args...)}
}

// Run does a run or a part. With j.Resume it continues an unfinished run. If
// ctx ends, Run returns ctx.Err() and keeps the finished records.
// Errors: *infill.OptionError if the output or an unfinished run exists
// already, *journal.ChangedError if the unfinished run has other settings.
func Run(ctx context.Context, j Job) (_ *Summary, err error) {
	defer func() { err = full(err) }()
	out, err := j.output()
	if err != nil {
		return nil, err
	}
	made, err := j.made(out.Path)
	if err != nil {
		return nil, err
	}
	now, notes, err := j.head(ctx, out)
	if err != nil {
		return nil, err
	}
	whole := j.Shard.Count == 0
	if made != nil {
		s := &Summary{Output: out.Path, Done: true, Rejected: made.Rejected}
		err = journal.CheckUnchanged(out.Path, made.Settings, now.Settings)
		if err != nil || !whole {
			return s, err
		}
		return s, removeParts(out.Path) // a process killed before it removed them has left them
	}
	if j.Note != nil {
		for _, note := range notes {
			j.Note(note)
		}
	}
	if whole {
		now.Part = Shard{Index: 1, Count: 1}
	}
	s, err := j.part(ctx, now, out.Path)
	if err != nil || !whole {
		return s, err
	}
	kept := s.Kept
	s, err = join(ctx, out.Path, kept)
	if err != nil {
		return nil, err
	}
	if kept == 0 {
		s.Warnings = j.Work.warnings()
	}
	return s, removeParts(out.Path)
}

// output returns the output if nothing is there that must not be replaced.
func (j Job) output() (File, error) {
	there, err := os.Stat(j.Output.Path)
	if err == nil && !there.Mode().IsRegular() && !there.IsDir() {
		return File{}, outError("%s is a device or a pipe, and a run needs a file, to go on with after a break: to "+
			"print the fills, give infill --input jsonl --format jsonl < FILE", j.Output.Path)
	}
	out, err := j.Output.resolve("output")
	if err != nil {
		return File{}, err
	}
	from, _ := os.Stat(j.Input.Path) // survey reports this error later
	for _, path := range []string{out.Path, rejectsOf(out.Path), receiptOf(out.Path)} {
		switch at, err := os.Stat(path); {
		case err != nil:
		case os.SameFile(from, at):
			return File{}, outError("%s would be replaced, and is the input: choose another output", path)
		case !at.Mode().IsRegular():
			return File{}, outError("%s is a folder, a device or a pipe: choose another output", path)
		}
	}
	if !areRejects(rejectsOf(out.Path)) {
		return File{}, outError("%s would be replaced, and no run has written it: choose another output",
			rejectsOf(out.Path))
	}
	return out, nil
}

// made returns the receipt of an output that is done, or nil.
func (j Job) made(output string) (*receipt, error) {
	made, err := readReceipt(output)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(output)
	if err != nil || j.Overwrite {
		return nil, nil
	}
	if !j.Resume {
		return nil, outError("%s is there already: --resume takes it as done, --overwrite makes it again", output)
	}
	if made == nil {
		return nil, outError("%s is there already, and without %s nobody knows its options: --overwrite makes it again",
			output, receiptOf(output))
	}
	return made, nil
}

// head surveys the input, and returns the head of a part, and notes on it.
func (j Job) head(ctx context.Context, out File) (now *head, notes []string, err error) {
	input, err := survey(j.Input, j.Work.column())
	if err != nil {
		return nil, nil, err
	}
	options, err := j.Work.options(input.columns)
	if err != nil {
		return nil, nil, err
	}
	now = &head{Format: partFormat, Part: j.Shard, Records: input.records,
		Layout: j.Work.layout(input.columns, out.Form)}
	old, err := os.Stat(out.Path)
	if err == nil {
		now.Mode = old.Mode().Perm()
	}
	now.Layout.Wanted = j.Columns
	if j.Columns != nil && out.Form == formText {
		return nil, nil, &infill.OptionError{Option: "columns", Reason: "an output of plain text has none"}
	}
	err = now.Layout.check()
	if err != nil {
		return nil, nil, err
	}
	now.Settings, err = j.Work.settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(now.Settings, map[string]string{"form": string(out.Form), "input": input.sum, "column": j.Work.column(),
		"options": option.Join(options), "columns": option.Join(j.Columns)})
	if input.note != "" {
		notes = append(notes, input.note)
	}
	if len(options) > 0 {
		notes = append(notes, fmt.Sprintf("columns read as options: %s; --keep %s copies one instead",
			strings.Join(options, ", "), options[0]))
	}
	return now, notes, nil
}

// Merge joins the finished parts of a run into its output. It keeps the parts,
// so that the output can be made again, unless remove is true.
func Merge(ctx context.Context, output string, remove bool) (*Summary, error) {
	output = followed(output)
	s, err := merge(ctx, output)
	if err == nil && remove {
		err = removeParts(output)
	}
	return s, full(err)
}

func merge(ctx context.Context, output string) (*Summary, error) {
	made, err := readReceipt(output)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(output)
	if err != nil {
		return join(ctx, output, 0)
	}
	count, err := partsThere(output)
	if err != nil {
		return nil, err
	}
	if made == nil && count == 0 {
		return nil, outError("%s is there, and neither %s nor parts of a run beside it: it may be no output of a run",
			output, receiptOf(output))
	}
	done := &Summary{Output: output, Done: true}
	if made != nil {
		done.Rejected = made.Rejected
	}
	if count == 0 {
		return done, nil
	}
	first, err := readHead(pathOf(output, Shard{1, count}))
	if err != nil {
		return nil, err
	}
	if made == nil || !maps.Equal(made.Settings, first.Settings) {
		return nil, outError("%s is there already, and %s is of another run: remove one of them", output,
			folderOf(output))
	}
	return done, nil
}

func removeAny(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// full adds advice to err if the disk is full.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: make room, and go on with --resume", err)
	}
	return err
}

// part processes the missing records of one part of a run.
func (j Job) part(ctx context.Context, now *head, output string) (_ *Summary, err error) {
	count, err := partsThere(output)
	if err != nil {
		return nil, err
	}
	if count > 0 && count != now.Part.Count {
		return nil, outError("%s holds a run in %d parts, and not in %d: remove it, or choose another output",
			folderOf(output), count, now.Part.Count)
	}
	err = unlikeOthers(output, now)
	if err != nil {
		return nil, err
	}
	p := part{sum: new(Summary)}
	lines, err := journal.Open(pathOf(output, now.Part),
		fmt.Sprintf("another process is at work at part %s in %s", now.Part, folderOf(output)),
		func(line []byte) error {
			if j.Overwrite {
				return nil
			}
			_, err := p.read(line)
			return err
		})
	if err != nil {
		return nil, err
	}
	lines.Pause = time.Second
	defer func() { err = cmp.Or(err, lines.Close()) }()
	if j.Overwrite {
		if err := errors.Join(lines.Clear(), removeAny(output), removeAny(rejectsOf(output)),
			removeAny(receiptOf(output))); err != nil {
			return nil, err
		}
	}
	if p.head != nil {
		err = p.head.known(pathOf(output, now.Part))
		if err != nil {
			return nil, err
		}
	}
	if p.head == nil {
		err = lines.Append(now)
	} else {
		err = j.mayGoOn(output, &p, now)
	}
	p.sum.Kept = p.records
	p.head = now
	if err != nil || p.finished() {
		return p.sum, err
	}
	return p.sum, j.work(ctx, &p, lines)
}

// unlikeOthers returns an error if another part of the run was begun with other
// settings, so that a wrong part is no hour's work before the merge refuses it.
func unlikeOthers(output string, now *head) error {
	for i := range now.Part.Count {
		path := pathOf(output, Shard{i + 1, now.Part.Count})
		if i+1 == now.Part.Index {
			continue
		}
		there, err := readHead(path)
		if err != nil {
			continue // it is not there, or its process is just beginning
		}
		err = cmp.Or(there.known(path), journal.CheckUnchanged(path, there.Settings, now.Settings))
		if err != nil {
			return err
		}
	}
	return nil
}

// mayGoOn returns an error if a part was begun with other settings, or is not
// finished and nobody asked to go on with it.
func (j Job) mayGoOn(output string, p *part, now *head) error {
	err := journal.CheckUnchanged(folderOf(output), p.head.Settings, now.Settings)
	if err != nil || p.finished() || j.Resume {
		return err
	}
	return outError("%s is a run that was not finished: --resume goes on with it, --overwrite begins again",
		pathOf(output, now.Part))
}

// work processes the records that part p lacks, several at once.
func (j Job) work(ctx context.Context, p *part, lines *journal.Journal) error {
	hash := sha256.New()
	from, err := openInput(j.Input, j.Work.column(), hash)
	if err != nil {
		return err
	}
	defer from.body.Close()
	before, own := p.head.Part.of(p.head.Records)
	changed := fmt.Errorf("%s %w", j.Input, errChanged)
	kept, start := p.records, time.Now()
	tell := func() {
		if j.Observe != nil {
			j.Observe(Progress{Done: p.records, Total: own, Rejected: p.sum.Rejected,
				PerSecond: float64(p.records-kept) / time.Since(start).Seconds()})
		}
	}
	tell()
	err = parallel.Each(ctx, j.InFlight, func(ctx context.Context) (r Record, err error) {
		for from.number < before+kept && err == nil {
			_, err = from.split()
			err = cmp.Or(err, ctx.Err())
		}
		if err == nil && from.number == before+own {
			err = io.EOF
		}
		if err != nil {
			return r, err
		}
		r, err = from.Next()
		if err == nil && from.number == before+own {
			// Before the last record is done, the file has to be the one that
			// the signature names.
			err = from.rest()
			if err == nil && shortSum(hash) != p.head.Settings["input"] {
				err = changed
			}
		}
		return r, err
	}, func(ctx context.Context, r Record) (*entry, error) { return j.do(ctx, r, p.head) },
		func(e *entry) error {
			err := lines.Write(e.line)
			if err != nil {
				return err
			}
			p.take(e)
			tell()
			return nil
		})
	if err == nil && !p.finished() {
		err = changed
	}
	if errors.Is(err, errChanged) {
		err = errors.Join(err, lines.Clear())
	}
	return err
}

// errChanged is the error of an input that changes while a run reads it. The
// rows of such a part are of two inputs, and are dropped.
var errChanged = errors.New("has changed since the run began: what is done of it is dropped, run it again")

// do returns the entry of a record: its rows, or why it was rejected.
func (j Job) do(ctx context.Context, r Record, h *head) (*entry, error) {
	e := &entry{Line: r.Line, Blank: r.Blank}
	err := r.Err
	if err == nil && !r.Blank {
		own, done := infill.Unwanted(ctx)
		e.Rows, err = j.Work.do(own, r, h.form())
		done()
	}
	var wrong *RejectError
	if errors.As(err, &wrong) {
		e.Error = lines.Short(wrong.Error())
		e.Option = wrong.option
		e.Rows = Rows{Blanks: e.Blanks} // the table has columns for its blanks, too
		err = nil
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("line %d: %w", e.Line, err)
	}
	if err == nil {
		if h.form() == formJSONL {
			h.Layout.pick(e.Lines)
		}
		e.line, err = e.encode()
	}
	return e, err
}

// textOf returns the text of a record under key, or a *RejectError.
func textOf(o rawjson.Object, key string) (string, error) {
	text, err := o.Text(key)
	if err != nil {
		return "", reject("%w, or name the column", err)
	}
	return text, nil
}
