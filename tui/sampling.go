package tui

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"infill/infill"
	"infill/lm"
	"infill/tokenize"
)

// Filler is what the screen asks of the pipeline.
type Filler interface {
	Template(text string) (*tokenize.Template, error)
	Fill(ctx context.Context, template string, o infill.Options, observe func(infill.Progress)) (*infill.Result, error)
	LogConditionals(ctx context.Context, template string, ids []int) ([][]float32, error)
	LogLikelihoods(ctx context.Context, template string, energy lm.Energy, fills [][]int) ([]float64, error)
	Close() error
}

var _ Filler = (*infill.Filler)(nil)

// jobs runs the commands, so that none outlives the screen: bubbletea itself does
// not wait for them.
type jobs struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	mutex   sync.Mutex // guards closed against a job that starts meanwhile
	closed  bool
}

func newJobs(ctx context.Context) *jobs {
	j := &jobs{}
	j.ctx, j.cancel = context.WithCancel(ctx)
	return j
}

// command makes a tea.Cmd of a job. It is not run after close.
func (j *jobs) command(job func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		j.mutex.Lock()
		if j.closed {
			j.mutex.Unlock()
			return nil
		}
		j.running.Add(1)
		j.mutex.Unlock()
		defer j.running.Done()
		return job(j.ctx)
	}
}

// close cancels the running jobs and waits for them.
func (j *jobs) close() {
	j.mutex.Lock()
	j.closed = true
	j.mutex.Unlock()
	j.cancel()
	j.running.Wait()
}

// after delivers a message some time later.
func (j *jobs) after(delay time.Duration, message tea.Msg) tea.Cmd {
	return j.command(func(ctx context.Context) tea.Msg {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			return message
		case <-ctx.Done():
			return nil
		}
	})
}

// pin is a blank that is kept at one value.
type pin struct {
	ids  []int
	text string
}

// request is all that decides a run.
type request struct {
	filler   Filler
	template string
	pins     map[int]pin
	options  infill.Options
}

// stream is one run on its way.
type stream struct {
	number int
	cancel context.CancelFunc
	frames chan *Snapshot
	over   chan struct{}
}

// The messages of sampling. number is the run's: what an abandoned run still says
// is not listened to.
type (
	snapshotMsg struct {
		number   int
		snapshot *Snapshot
	}
	finishedMsg struct {
		number   int
		snapshot *Snapshot // nil where the run failed before its first step
		err      error
	}
)

// frame is the shortest time between two snapshots of a run.
const frame = 50 * time.Millisecond

// sample starts a run. The commands are to be run side by side: one samples, the
// other carries snapshots to the screen and must be asked for again after each.
func (j *jobs) sample(number int, q request, now func() time.Time) (*stream, tea.Cmd) {
	ctx, cancel := context.WithCancel(j.ctx)
	s := &stream{number: number, cancel: cancel, frames: make(chan *Snapshot, 1), over: make(chan struct{})}
	run := j.command(func(context.Context) tea.Msg {
		defer cancel()
		defer close(s.over)
		last, err := q.run(ctx, s.frames, now)
		return finishedMsg{number, last, err}
	})
	return s, tea.Batch(run, j.listen(s))
}

// listen waits for the next snapshot of a run.
func (j *jobs) listen(s *stream) tea.Cmd {
	return j.command(func(ctx context.Context) tea.Msg {
		select {
		case snapshot := <-s.frames:
			return snapshotMsg{s.number, snapshot}
		case <-s.over:
			return nil
		case <-ctx.Done():
			return nil
		}
	})
}

// run samples, and returns the last snapshot, which there is also of a run that
// was stopped.
func (q request) run(ctx context.Context, frames chan *Snapshot, now func() time.Time) (*Snapshot, error) {
	template, err := q.filler.Template(q.template)
	var input *tokenize.InputError
	open := errors.As(err, &input) && input.Fault == tokenize.ErrSlotLength
	if err != nil && !open {
		return nil, err
	}
	options := q.options
	if len(q.pins) > 0 && !open {
		options.Pins = slices.Repeat([]int{infill.Free}, len(template.Slots))
		for blank, p := range q.pins {
			if blank < len(template.Blanks) && len(p.ids) == template.Blanks[blank].Slots {
				copy(options.Pins[template.Blanks[blank].First:], p.ids)
			}
		}
	}
	if open || options.Constraints.Any() {
		// Of several lengths the pipeline lists the fills, see lengths.
		options.Top = max(options.Top, mostLengths)
	}
	var several *lengths // where the fills have several lengths, or another than the template's
	var r *recorder
	if open {
		several = &lengths{request: q, start: now(), now: now}
	} else {
		r = newRecorder(template, q.options, q.pins, now)
		r.latest = frames
	}
	next, cost := now(), time.Duration(0)
	result, err := q.filler.Fill(ctx, q.template, options, func(p infill.Progress) {
		if several == nil && !fitting(template, p.Pieces) {
			several = &lengths{request: q, start: r.start, now: now}
		}
		if several != nil {
			several.last = p
		} else {
			r.add(p)
		}
		at := now()
		if at.Before(next) {
			return
		}
		if several != nil {
			publish(frames, several.snapshot())
		} else {
			r.publish(r.snapshot())
		}
		// A tenth of the run is spent on showing it, at most.
		cost = now().Sub(at)
		next = at.Add(max(frame, 10*cost))
	})
	if several != nil {
		if several.last.Steps == 0 {
			return nil, err
		}
		last := several.snapshot()
		last.take(result)
		return last, err
	}
	r.finish()
	if err == nil {
		r.adopt(result.Fills)
		entries, fills := r.unknown()
		var known []float64
		if known, err = q.filler.LogLikelihoods(ctx, q.template, q.options.Energy, fills); err == nil {
			r.learn(entries, known)
		}
	}
	if r.tokens == nil {
		return nil, err
	}
	last := r.snapshot()
	last.Result = result
	return last, err
}

// explain puts an error into a line for the user.
func explain(err error) string {
	var option *infill.OptionError
	switch {
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.As(err, &option):
		return harmless(option.Option + ": " + option.Reason)
	}
	return harmless(err.Error())
}
