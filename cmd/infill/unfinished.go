package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/tokenize"
)

// unfinished keeps the likeliest fills of a run that may be interrupted.
type unfinished struct {
	answer      *infill.Result // where the method has one on the way
	answered    time.Time
	pieces      []int
	step, steps int
	best        []find
}

// find is the tokens of the slots, with U in nats.
type find struct {
	ids           []int
	logLikelihood float64
}

// keptFinds bounds what is kept of one run.
const keptFinds = 100

// observe hears every step of a run.
func (u *unfinished) observe(at infill.Progress) {
	// An answer can be made while the observer runs alone, and takes a moment.
	if at.Answer != nil && time.Since(u.answered) > 300*time.Millisecond {
		u.answer, u.answered = at.Answer(), time.Now()
	}
	if !slices.Equal(u.pieces, at.Pieces) { // fills of another length do not compare
		u.best, u.pieces = nil, at.Pieces
	}
	u.step, u.steps = at.Step, at.Steps
	if len(at.LogLikelihoods) == 0 {
		return
	}
	slots := len(at.TokenIDs) / len(at.LogLikelihoods)
	for chain, likelihood := range at.LogLikelihoods {
		full := len(u.best) == keptFinds
		if math.IsNaN(likelihood) || full && likelihood <= u.best[keptFinds-1].logLikelihood {
			continue
		}
		ids := at.TokenIDs[chain*slots : (chain+1)*slots]
		if slices.ContainsFunc(u.best, func(f find) bool { return slices.Equal(f.ids, ids) }) {
			continue
		}
		place, _ := slices.BinarySearchFunc(u.best, likelihood, func(f find, x float64) int { return cmp.Compare(x, f.logLikelihood) })
		u.best = slices.Insert(u.best, place, find{ids, likelihood})
		u.best = u.best[:min(keptFinds, len(u.best))]
	}
}

// result is the answer by then, marked as unfinished; nil where there is none.
func (u *unfinished) result() *infill.Result {
	if u.answer == nil || len(u.answer.Fills) == 0 {
		return nil
	}
	r := *u.answer
	r.Unfinished, r.Warnings = true, append([]string{"unfinished: interrupted before the end"}, r.Warnings...)
	return &r
}

// print writes what was found by then, marked as unfinished.
func (u *unfinished) print(s *terminal.Streams, tokenizer *tokenize.Tokenizer, text string, top int) error {
	if u.answer != nil && len(u.answer.Fills) > 0 {
		_, err := io.WriteString(s.Styled(), resultText(u.answer, s.Width, false)+notes(s.Width, "unfinished: interrupted before the end"))
		return err
	}
	typed, err := tokenizer.Template(text)
	if err != nil || len(u.best) == 0 || len(u.best[0].ids) != len(typed.Slots) {
		return nil // nothing to show
	}
	var rows [][]string
	for i, f := range u.best[:min(top, len(u.best))] {
		filled := typed.Fill(f.ids)
		rows = append(rows, []string{fmt.Sprint(i + 1), mark(filled.Text, filled.Spans), fmt.Sprintf("%.2f", f.logLikelihood)})
	}
	_, err = io.WriteString(s.Styled(), wrap(text, s.Width, "")+"\n\n"+renderTable(s.Width, []string{"#", "fill", "log-likelihood"}, rows, 1)+"\n"+
		notes(s.Width, fmt.Sprintf("unfinished: interrupted at step %d of %d; these are the likeliest fills met by then, not draws", u.step, u.steps)))
	return err
}
