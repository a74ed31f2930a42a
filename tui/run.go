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

// jobs runs the commands, so that none outlives the screen: bubbletea itself does not wait for them.
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

// command makes a tea.Cmd of a job. After close, the command does nothing.
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

// request holds everything that determines a run.
type request struct {
	filler   Filler
	template string
	options  infill.Options
}

// stream is one running run.
type stream struct {
	number int
	cancel context.CancelCauseFunc
	frames chan *snapshot // the latest one, until the screen fetches it
	over   chan struct{}
}

// The messages of a run. number is the number of the run: the screen ignores messages of an abandoned run.
type (
	snapshotMsg struct {
		number   int
		snapshot *snapshot
	}
	finishedMsg struct {
		number   int
		snapshot *snapshot // nil if nothing was found
		err      error
	}
)

// start starts a run. Its commands run side by side: one fills, and the other is listen, which carries one snapshot to
// the screen and must then be called again.
func (j *jobs) start(number int, q request, now func() time.Time) (*stream, tea.Cmd) {
	ctx, cancel := context.WithCancelCause(j.ctx)
	s := &stream{number: number, cancel: cancel, frames: make(chan *snapshot, 1), over: make(chan struct{})}
	run := j.command(func(context.Context) tea.Msg {
		defer cancel(nil)
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

const (
	frame     = 50 * time.Millisecond // the shortest time between two snapshots of a run
	mostDrawn = 2000                  // the most fills of chains in the list
)

// run fills, and returns the last snapshot, also for a run that was stopped after it found something.
func (q request) run(ctx context.Context, frames chan *snapshot, now func() time.Time) (*snapshot, error) {
	o := q.options
	if o.Chains != nil {
		o.Top = max(o.Top, mostDrawn)
	}
	r := &recorder{request: q}
	next := now()
	result, err := q.filler.Fill(ctx, q.template, o, func(p infill.Progress) {
		r.add(p)
		at := now()
		if at.Before(next) {
			return
		}
		s := r.snap()
		select {
		case <-frames:
		default:
		}
		frames <- s
		// Snapshots take a tenth of the run at most.
		next = at.Add(max(frame, 10*now().Sub(at)))
	})
	if result == nil {
		return nil, err
	}
	return r.finish(result), err
}

// snapshot is the state of a run at one moment. Nothing in it changes once it is made.
type snapshot struct {
	result *infill.Result // nil before there is one: the screen does not show such a snapshot
	over   bool
	step   int
	steps  int  // of the whole run
	warmUp bool // whether the result has states of the warm-up, which are no draws
	warm   int  // steps of the warm-up so far
	// logLikelihoods and accepted are the history of each chain from step 0, [chains][steps]; NaN if unknown.
	logLikelihoods, accepted [][]float32
	stepSize                 float64 // 0 for samplers without a step size
	moves                    []move  // the last move of each chain
}

// move is a chain's last change.
type move struct {
	step     int      // 0 if the chain has not moved
	blanks   []int    // the blanks that changed
	from, to []string // their texts before and after
}

// fills returns the known fills.
func (s *snapshot) fills() []infill.Fill {
	if s == nil {
		return nil
	}
	return s.result.Fills
}

// stats returns the figures of chains, nil without chains.
func (s *snapshot) stats() *infill.ChainStats {
	if s == nil {
		return nil
	}
	return s.result.Stats.Chains
}

// recorder gathers the steps of a run for the screen, as snapshots. Only the goroutine that fills uses it.
type recorder struct {
	request
	snapshot
	template *tokenize.Template // the template of the chains' tokens; nil before the first step
	last     infill.Progress
}

// add records one step.
func (r *recorder) add(p infill.Progress) {
	r.warmUp, r.step, r.steps = p.WarmUp, p.Step, p.Steps
	if p.WarmUp {
		r.warm = p.Step
	}
	chains := len(p.LogLikelihoods)
	if r.moves == nil && chains > 0 {
		r.moves, r.template = make([]move, chains), r.read(p.Pieces)
		r.logLikelihoods, r.accepted = make([][]float32, chains), make([][]float32, chains)
	}
	for chain, u := range p.LogLikelihoods {
		accepted := float32(math.NaN())
		if p.Accepted != nil {
			accepted = 0
			if p.Accepted[chain] {
				accepted = 1
			}
		}
		r.logLikelihoods[chain] = append(r.logLikelihoods[chain], float32(u))
		r.accepted[chain] = append(r.accepted[chain], accepted)
		if p.Changed != nil && p.Changed[chain] > 0 && r.template != nil {
			r.move(chain, p)
		}
	}
	r.last, r.stepSize = p, p.StepSize
}

// read reads the template for the chains' tokens; nil if it cannot be read, which the run itself reports.
func (r *recorder) read(pieces []int) *tokenize.Template {
	t, err := r.filler.Tokenizer().Shortest(r.request.template, r.options.Blank)
	if err != nil {
		return nil
	}
	lengths := make([][]int, len(pieces))
	for blank, n := range pieces {
		lengths[blank] = []int{n}
	}
	list, err := t.Expand(lengths)
	if err != nil {
		return nil
	}
	return list[0]
}

// move records the blanks that a chain changed in a step, with their texts before and after.
func (r *recorder) move(chain int, p infill.Progress) {
	slots := len(r.template.Slots)
	was := r.template.Fill(r.last.TokenIDs[chain*slots : (chain+1)*slots]).Fills
	is := r.template.Fill(p.TokenIDs[chain*slots : (chain+1)*slots]).Fills
	m := move{step: p.Step}
	for blank := range is {
		if was[blank] != is[blank] {
			m.blanks = append(m.blanks, blank)
			m.from, m.to = append(m.from, was[blank]), append(m.to, is[blank])
		}
	}
	r.moves[chain] = m
}

// snap copies the snapshot for the screen.
func (r *recorder) snap() *snapshot {
	s := r.snapshot
	s.moves, s.logLikelihoods, s.accepted = slices.Clone(r.moves), slices.Clone(r.logLikelihoods),
		slices.Clone(r.accepted)
	if r.last.Result != nil {
		s.result = r.last.Result()
	}
	return &s
}

// finish returns the snapshot of a finished run. It writes the log-likelihoods that the sampler did not need, and that
// the result now has, into the chains' histories.
func (r *recorder) finish(result *infill.Result) *snapshot {
	s := r.snap()
	if s.result != nil {
		for chain, draws := range s.result.Draws {
			// Snapshots share the arrays: this is a new one, not a change of the old.
			history := slices.Clone(s.logLikelihoods[chain])
			tail := history[max(len(history)-len(draws), 0):]
			for i := range tail {
				if math.IsNaN(float64(tail[i])) {
					tail[i] = float32(draws[len(draws)-len(tail)+i])
				}
			}
			s.logLikelihoods[chain] = history
		}
	}
	s.result, s.over, s.warmUp = result, !result.Unfinished, false
	return s
}

// explain writes an error as a line for the user, "" for a run that the user stopped.
func explain(err error) string {
	var option *infill.OptionError
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &option):
		return harmless(option.Option + ": " + option.Reason)
	}
	return harmless(err.Error())
}
