package infill

import (
	"context"
	"fmt"
	"math"

	"infill/samplers"
)

// MethodSearch is the method that finds the likeliest fills under the chain rule and proves them.
const MethodSearch = "search"

// mostCombined is the largest number of fills of lists that a search scores completely, so that each fill has a share.
const mostCombined = 4096

var errNoFill = misfit("constraints", "the constraints forbid every fill: loosen them")

// search is the method that finds the likeliest fills.
type search struct{}

func (search) solve(ctx context.Context, w *work) error {
	o := &w.plan.Options
	laws, err := w.laws()
	if err != nil {
		return err
	}
	s, err := samplers.NewSearch(laws)
	if err != nil {
		return err
	}
	all := w.combinations()
	wanted := max(o.Top, all)
	room := func() int { return o.Budget.room(w.rows, w.began) }
	note := func() {
		w.answer = answer{method: MethodSearch, law: true, proven: s.Proven(), place: "before the proof"}
		w.answer.fills, w.answer.left = w.found(s)
		w.answer.distinct = s.Len()
		if all > 0 && s.Proven() {
			w.answer.complete, w.answer.total = true, 0
			for _, f := range s.Found() {
				w.answer.total += math.Exp(f.LogProbability)
			}
		}
	}
	tell := func() {}
	if w.observe != nil {
		tell = func() {
			p := Progress{Template: w.plan.Template, Step: int(100 * o.Budget.share(w.rows, w.began)), Steps: 100,
				Pieces: w.plan.layouts[0].pieces()}
			if s.Len() > 0 {
				p.Result = func() *Result { note(); return w.result() }
			}
			w.observe(p)
		}
	}
	for {
		err := s.Run(ctx, wanted, room, tell)
		if s.Len() > 0 {
			note()
		}
		if err != nil {
			w.answer.place += fmt.Sprintf(": nothing left out has more than %.3g", math.Exp(min(0, w.answer.left)))
			return err
		}
		// Fills with the same text are listed once.
		missing := o.Top - len(w.answer.fills)
		if missing <= 0 || !s.Proven() || s.Len() < wanted {
			break
		}
		wanted += max(missing, wanted/2)
	}
	switch {
	case s.Len() > 0:
		return nil
	case s.Proven():
		return errNoFill
	}
	return misfit("constraints", "no fill that they allow was found in %d model rows: loosen them, or give more with "+
		"--budget", w.rows)
}

// combinations returns the number of fills of the lists, or 0 if a blank has no list or if it is above mostCombined.
func (w *work) combinations() int {
	n := 0.0
	for _, l := range w.plan.layouts {
		c := l.combinations()
		if c == 0 {
			return 0
		}
		n += c
	}
	if n > mostCombined {
		return 0
	}
	return int(n)
}

// found returns the likeliest fills with different texts, Options.Top at most. left is an upper bound of the
// log-probability of every other fill.
func (w *work) found(s *samplers.Search) (fills []found, left float64) {
	seen := map[string]bool{}
	all := s.Found()
	for i, f := range all {
		text := w.plan.layouts[f.Law].template.Fill(f.State).Text
		if seen[text] {
			continue
		}
		if len(fills) == w.plan.Options.Top {
			return fills, s.LeftOut(i)
		}
		seen[text] = true
		fills = append(fills, found{layout: f.Law, tokens: f.State, logLikelihood: f.LogProbability})
	}
	return fills, s.LeftOut(len(all))
}
