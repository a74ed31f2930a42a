package tui

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"infill/infill"
	"infill/tokenize"
)

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
	frames chan *snapshot // the latest, where nobody has fetched it
	over   chan struct{}
}

// The messages of sampling. number is the run's: what an abandoned run still says
// is not listened to.
type (
	snapshotMsg struct {
		number   int
		snapshot *snapshot
	}
	finishedMsg struct {
		number   int
		snapshot *snapshot // nil if the run failed before its first step
		err      error
	}
)

// sample starts a run. The commands are to be run side by side: one samples, the
// other carries snapshots to the screen and must be asked for again after each.
func (j *jobs) sample(number int, q request, now func() time.Time) (*stream, tea.Cmd) {
	ctx, cancel := context.WithCancel(j.ctx)
	s := &stream{number: number, cancel: cancel, frames: make(chan *snapshot, 1), over: make(chan struct{})}
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

// frame is the shortest time between two snapshots of a run.
const frame = 50 * time.Millisecond

// mostLengths is how many fills of several lengths are listed.
const mostLengths = 200

// run samples, and returns the last snapshot, which there is also of a run that
// was stopped.
//
// Fills of several lengths, as of [MASK:1-3] or of a list of words of several
// pieces, come from chains of one length after the other: there is no one path of
// a chain to show, and no share of draws. Such a run shows how far it is, and at
// the end the fills that the pipeline found, compared by their score.
func (q request) run(ctx context.Context, frames chan *snapshot, now func() time.Time) (*snapshot, error) {
	template, err := q.filler.Template(q.template)
	var input *tokenize.InputError
	several := errors.As(err, &input) && input.Fault == tokenize.ErrBlankLength
	if !q.options.Answers() {
		q.options = q.options.Chained()
	}
	options := q.options
	r := &recorder{now: now, start: now()}
	switch {
	case several:
	case err != nil:
		return nil, err
	default:
		r = newRecorder(template, q.options, now)
		options.Pins = q.fixed(template)
	}
	if several || options.Constraints.Any() || options.Answers() {
		options.Top = max(options.Top, mostLengths)
	}
	var last infill.Progress
	answers := options.Answers()
	// snap is what is known now; of a run that is over, known is its result.
	snap := func(known *infill.Result) *snapshot {
		if !several && !answers {
			return r.snap()
		}
		s := &snapshot{Template: template, Options: q.options, Answer: answers, Several: several, Step: last.Step,
			Steps: last.Steps, RHat: math.NaN(), ESS: math.NaN(), Elapsed: now().Sub(r.start)}
		if several {
			s.Template = &tokenize.Template{Text: q.template}
		}
		if !answers {
			s.Chains = q.options.Chains
		} else if known == nil && last.Result != nil {
			known = last.Result()
		}
		if known != nil {
			s.know(known)
		}
		return s
	}
	next := now()
	result, err := q.filler.Fill(ctx, q.template, options, func(p infill.Progress) {
		last = p
		several = several ||
			!slices.EqualFunc(template.Blanks, p.Pieces,
				func(b tokenize.Blank, pieces int) bool { return b.Slots == pieces })
		if !several && !answers {
			r.add(p)
		}
		at := now()
		if at.Before(next) {
			return
		}
		s := snap(nil)
		select {
		case <-frames:
		default:
		}
		frames <- s
		// A tenth of the run is spent on showing it, at most.
		next = at.Add(max(frame, 10*now().Sub(at)))
	})
	if err != nil {
		result = nil // the snapshot is what there is of a run that was stopped
	}
	switch {
	case answers && result != nil:
	case last.TokenIDs == nil:
		return nil, err
	case !several && err == nil:
		r.finish()
	}
	s := snap(result)
	s.Result = result
	return s, err
}

// fixed are the pins by slot, nil for none.
func (q request) fixed(template *tokenize.Template) []int {
	if len(q.pins) == 0 {
		return nil
	}
	fixed := slices.Repeat([]int{infill.Free}, len(template.Slots))
	for blank, p := range q.pins {
		if blank < len(template.Blanks) && len(p.ids) == template.Blanks[blank].Slots {
			copy(fixed[template.Blanks[blank].First:], p.ids)
		}
	}
	return fixed
}

const stopped = "stopped"

// explain puts an error into a line for the user.
func explain(err error) string {
	var option *infill.OptionError
	switch {
	case errors.Is(err, context.Canceled):
		return stopped
	case errors.As(err, &option):
		return harmless(option.Option + ": " + option.Reason)
	}
	return harmless(err.Error())
}
