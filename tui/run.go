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
	"infill/internal/ask"
	"infill/tokenize"
)

// jobs ends the screen's commands with it: bubbletea does not wait for them.
type jobs struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	mutex   sync.Mutex // guards closed
	closed  bool
}

func newJobs(ctx context.Context) *jobs {
	j := &jobs{}
	j.ctx, j.cancel = context.WithCancel(ctx)
	return j
}

// command makes a tea.Cmd that runs job. After close, the command does nothing.
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

func (j *jobs) close() {
	j.mutex.Lock()
	j.closed = true
	j.mutex.Unlock()
	j.cancel()
	j.running.Wait()
}

func (j *jobs) after(delay time.Duration, message tea.Msg) tea.Cmd {
	return j.command(func(ctx context.Context) tea.Msg {
		select {
		case <-time.After(delay):
			return message
		case <-ctx.Done():
			return nil
		}
	})
}

type stream struct {
	number int
	cancel context.CancelCauseFunc
	frames chan *snapshot // has the latest snapshot until the screen takes it
	over   chan struct{}
}

// These are messages of a run; those of abandoned runs are ignored.
type (
	snapshotMsg struct {
		number   int
		snapshot *snapshot
	}
	finishedMsg struct {
		number   int
		snapshot *snapshot // nil if the run found nothing
		err      error
	}
)

// start prepares a run. Of the two commands of its own, one fills; the other,
// listen, sends one snapshot, and must be called again.
func (j *jobs) start(number int, r *recorder, now func() time.Time) (*stream, tea.Cmd) {
	ctx, cancel := context.WithCancelCause(j.ctx)
	s := &stream{number: number, cancel: cancel, frames: make(chan *snapshot, 1), over: make(chan struct{})}
	run := j.command(func(context.Context) tea.Msg {
		defer cancel(nil)
		defer close(s.over)
		last, err := r.run(ctx, s.frames, now)
		return finishedMsg{number, last, err}
	})
	return s, tea.Batch(run, j.listen(s))
}

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
	frame     = 50 * time.Millisecond // shortest time between two snapshots
	mostDrawn = 2000                  // most fills listed of a run with chains, unless the option top is larger
)

// run fills, and returns the last snapshot, or nil. A stopped run may have one.
func (r *recorder) run(ctx context.Context, frames chan *snapshot, now func() time.Time) (*snapshot, error) {
	asked := r.asked
	_, chains := asked.Chains()
	if chains {
		asked.Top = max(asked.Top, mostDrawn)
	}
	next := now()
	result, err := r.filler.Fill(ctx, asked, func(p infill.Progress) {
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
		// This keeps the time for snapshots to a tenth of the run.
		next = at.Add(max(frame, 10*now().Sub(at)))
	})
	if result == nil {
		return nil, err
	}
	return r.finish(result), err
}

// snapshot is the state of a run at one moment. It never changes.
type snapshot struct {
	result *infill.Result // nil until there is a result; only then the screen shows the snapshot
	over   bool
	step   int
	steps  int  // number of steps of the whole run
	warmUp bool // whether the result counts states of the warm-up, which are no draws
	warm   int  // number of steps of the warm-up so far
	// logLikelihoods and accepted are the history of each chain from step 0,
	// [chains][steps]; NaN if unknown.
	logLikelihoods, accepted [][]float32
	stepSize                 float64 // 0 if the sampler has no step size
	moves                    []move  // last move of each chain
}

type move struct {
	step     int      // 0 if the chain has not moved
	blanks   []int    // indices of the blanks that changed
	from, to []string // texts of these blanks before and after
}

func (s *snapshot) fills() []infill.Fill {
	if s == nil {
		return nil
	}
	return s.result.Fills
}

// stats returns the figures of the chains, or nil if the run has no chains.
func (s *snapshot) stats() *infill.ChainStats {
	if s == nil {
		return nil
	}
	return s.result.Stats.Chains
}

// recorder collects a run's steps. Only the goroutine that fills uses it.
type recorder struct {
	filler Filler
	asked  infill.Request
	snapshot
	template *tokenize.Template // for the tokens of the chains; nil before the first step
	last     infill.Progress
}

func (r *recorder) add(p infill.Progress) {
	r.warmUp = p.WarmUp
	r.step = p.Step
	r.steps = p.Steps
	if p.WarmUp {
		r.warm = p.Step
	}
	chains := len(p.LogLikelihoods)
	if r.moves == nil && chains > 0 {
		r.moves, r.template = make([]move, chains), r.read(p.Pieces)
		r.logLikelihoods = make([][]float32, chains)
		r.accepted = make([][]float32, chains)
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
	r.last = p
	r.stepSize = p.StepSize
}

// read returns the template with its pieces, or nil: Fill tells the error.
func (r *recorder) read(pieces []int) *tokenize.Template {
	t, err := r.filler.Tokenizer().Shortest(r.asked.Template, string(r.asked.Blank))
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

// move records which blanks a chain changed in this step, and how.
func (r *recorder) move(chain int, p infill.Progress) {
	slots := len(r.template.Slots)
	was := r.template.Fill(r.last.TokenIDs[chain*slots : (chain+1)*slots]).Fills
	is := r.template.Fill(p.TokenIDs[chain*slots : (chain+1)*slots]).Fills
	m := move{step: p.Step}
	for blank := range is {
		if was[blank] != is[blank] {
			m.blanks = append(m.blanks, blank)
			m.from = append(m.from, was[blank])
			m.to = append(m.to, is[blank])
		}
	}
	r.moves[chain] = m
}

func (r *recorder) snap() *snapshot {
	s := r.snapshot
	s.moves = slices.Clone(r.moves)
	s.logLikelihoods = slices.Clone(r.logLikelihoods)
	s.accepted = slices.Clone(r.accepted)
	s.result = r.last.Result()
	return &s
}

// finish returns the last snapshot. Its histories get the log-likelihoods that
// only the result has.
func (r *recorder) finish(result *infill.Result) *snapshot {
	s := r.snap()
	if s.result != nil {
		for chain, draws := range s.result.Draws {
			// Older snapshots share the array, which must not change, so copy it.
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
	s.result = result
	s.over = !result.Unfinished
	s.warmUp = false
	return s
}

// explain returns an error as a line, or "" if the user stopped the run.
func explain(err error) string {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	_, line := ask.Describe(err, ask.Keys)
	return harmless(line.Error())
}
