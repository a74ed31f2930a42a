package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"infill/infill"
	"infill/models"
)

// forgiveness is how long a name whose fetch failed is not fetched again.
const forgiveness = time.Minute

// pulls fetches models that requests name and that are not served yet, one at a time. A
// request does not wait for it: its answer says to try again. A model that was fetched is
// served until the end, so Limits.Models bounds the memory, and Limits.ModelBytes the
// disk, that requests can take.
type pulls struct {
	limits Limits
	pull   func(ctx context.Context, name string, progress models.Progress) (*infill.Filler, error)
	log    func(message string)
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  sync.WaitGroup

	lock    sync.Mutex
	running string // the name of the model that is being fetched
	fetched map[string]*infill.Filler
	failed  map[string]failed

	bytes, failures atomic.Int64
}

// failed is a name that could not be fetched.
type failed struct {
	at   time.Time
	told *Problem
}

func newPulls(o Options) *pulls {
	p := &pulls{limits: o.Limits, pull: o.Pull, log: o.Log, fetched: map[string]*infill.Filler{},
		failed: map[string]failed{}}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// get gives a model that was fetched, or begins to fetch it and tells the client so.
func (p *pulls) get(name string) (*infill.Filler, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	later := func(status int, format string, args ...any) error {
		return &Problem{status: status, Message: fmt.Sprintf(format, args...)}
	}
	switch f, before := p.fetched[name], p.failed[name]; {
	case f != nil:
		return f, nil
	case models.CheckName(name) != nil:
		return nil, later(http.StatusNotFound, "%.80q is no name of a model", name)
	case p.running == name:
		return nil, later(http.StatusServiceUnavailable, "the model %s is being fetched: ask again in a while", name)
	case before.told != nil && time.Since(before.at) < forgiveness:
		return nil, before.told
	case p.running != "":
		return nil, later(http.StatusServiceUnavailable, "another model is being fetched: ask again in a while")
	case len(p.fetched) >= p.limits.Models:
		return nil, later(http.StatusUnprocessableEntity, "%d models were fetched for requests, which is as many as "+
			"this server takes: ask for one of them", len(p.fetched))
	case p.ctx.Err() != nil:
		return nil, later(http.StatusServiceUnavailable, "the server ends")
	}
	p.running = name
	p.ended.Add(1)
	go p.fetch(name)
	return nil, later(http.StatusServiceUnavailable, "the model %s is fetched now: ask again in a while", name)
}

func (p *pulls) fetch(name string) {
	defer p.ended.Done()
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	p.tell("fetching the model %s for a request", name)
	f, err := p.pull(ctx, name, &pullProgress{pulls: p, stop: cancel})
	p.lock.Lock()
	defer p.lock.Unlock()
	p.running = ""
	if err == nil {
		p.fetched[name] = f
		p.tell("the model %s is served now", name)
		return
	}
	p.failures.Add(1)
	p.tell("%v", err)
	// Why is for who runs the server: it may name files.
	told := &Problem{status: http.StatusNotFound, Message: fmt.Sprintf("the model %s could not be fetched", name)}
	errors.As(context.Cause(ctx), &told) // it is too large
	if len(p.failed) >= 1000 {
		clear(p.failed)
	}
	p.failed[name] = failed{time.Now(), told}
}

func (p *pulls) tell(format string, args ...any) {
	if p.log != nil {
		p.log(fmt.Sprintf(format, args...))
	}
}

// models are those that were fetched, by name.
func (p *pulls) models() map[string]*infill.Filler {
	if p == nil {
		return nil
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	return maps.Clone(p.fetched)
}

// close ends a fetch, and closes what was fetched.
func (p *pulls) close() (err error) {
	p.cancel(errors.New("the server ends"))
	p.ended.Wait()
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, f := range p.fetched {
		err = errors.Join(err, f.Close())
	}
	clear(p.fetched)
	return err
}

// pullProgress counts bytes, and stops what is too large before its weights come.
type pullProgress struct {
	*pulls
	stop context.CancelCauseFunc
}

var _ models.Progress = (*pullProgress)(nil)

func (p *pullProgress) Begin(_ int, _, total int64) {
	if total > p.limits.ModelBytes {
		p.stop(unfit("the model has %d bytes, this "+"server fetches %d at most", total, p.limits.ModelBytes))
	}
}
func (p *pullProgress) Advance(bytes int64)          { p.bytes.Add(bytes) }
func (p *pullProgress) File(string)                  {}
func (p *pullProgress) Waiting(error, time.Duration) {}
func (p *pullProgress) Converting()                  {}

// all are the models that can be asked for now.
func (s *Server) all() map[string]*infill.Filler {
	all := maps.Clone(s.Models)
	maps.Copy(all, s.pulls.models())
	return all
}

// served finds a model by name; "" is the default.
func (s *Server) served(name string) (*infill.Filler, string, error) {
	if name == "" {
		name = s.Default
	}
	all := s.all()
	if f := all[name]; f != nil {
		return f, name, nil
	}
	return nil, "", &Problem{status: http.StatusNotFound, Message: fmt.Sprintf("no model %.80q is served here; there "+
		"are: %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))}
}

// model finds a model by name, and where that is allowed begins to fetch it.
func (s *Server) model(name string) (*infill.Filler, string, error) {
	if name == "" || s.Models[name] != nil || s.pulls == nil {
		return s.served(name)
	}
	f, err := s.pulls.get(name)
	return f, name, err
}
