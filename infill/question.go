package infill

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// This file asks the model. Every number of the model answers one question: how
// likely is each token of a slot, given the text, the tokens in other slots, and
// masks in the rest?

type question struct {
	text    []int // ids of the whole text, which questions share
	context []int // ids in front of the text
	from    int   // the first and the last token of text that the model reads, beside [CLS] and [SEP]
	to      int
	slots   []int // positions of the slots in ids, ascending
	mask    int
}

// newQuestion makes the question of a text, given as ids with their offsets. slots
// are positions in ids. Of a text that is too long the model reads a window around
// the slots; ok is false if no window has them all.
func (f *Filler) newQuestion(ids []int, offsets [][2]int, slots, context []int) (q question, ok bool) {
	from, to, ok := tokenize.Window(offsets, slots, f.room(context))
	if !ok {
		return question{}, false
	}
	q = question{text: ids, context: context, from: from, to: to, mask: f.tokenizer.MaskID()}
	for _, position := range slots {
		q.slots = append(q.slots, position-from+1+len(context))
	}
	return q, true
}

// ids returns what the model reads while all slots are masked: [CLS], the context,
// the text or a window of it, [SEP].
func (q question) ids() []int {
	last := len(q.text) - 1
	ids := slices.Concat(q.text[:1], q.context, q.text[q.from:q.to+1], q.text[last:])
	for _, slot := range q.slots {
		ids[slot] = q.mask
	}
	return ids
}

func (q question) size() int { return len(q.context) + q.to - q.from + 3 }

// seen returns the number of ids if they hold a window of a longer text, else 0.
func (q question) seen() int {
	if q.to-q.from+3 == len(q.text) {
		return 0
	}
	return q.size()
}

// room returns how many tokens of a text the model reads at once behind a context.
func (f *Filler) room(context []int) int { return f.maxPositions - 2 - len(context) }

// Cut returns the beginning of a template that the model reads at once, as libraries
// that cut a text at the right do. It is an *tokenize.InputError if a blank is cut off.
func (f *Filler) Cut(template string) (string, error) {
	t, err := f.tokenizer.Shortest(template, "")
	if err != nil {
		return "", err
	}
	last := f.room(nil) // the last token that stays
	if last >= len(t.IDs)-2 {
		return template, nil
	}
	if t.Slots[len(t.Slots)-1] > last {
		return "", &tokenize.InputError{Fault: tokenize.ErrTooLong, Offset: t.Blanks[len(t.Blanks)-1].Start,
			Detail: fmt.Sprintf("the model reads %d tokens, and the cut takes a blank off", f.maxPositions)}
	}
	return template[:t.Offsets[last][1]], nil
}

// row asks for a slot while the other slots hold the tokens of a state. If there are
// targets, the row rates only them.
func (q question) row(state []int, slot int, targets ...int) lm.Row {
	ids := q.ids()
	for other, token := range state {
		if token != samplers.Open {
			ids[q.slots[other]] = token
		}
	}
	return lm.Row{IDs: ids, Positions: q.slots[slot : slot+1], Targets: targets}
}

// tooLong returns the warning for a text of which the model reads a window around
// what it is asked for, or nil if it reads all.
func tooLong(tokens, seen int, around string) []string {
	if seen == 0 {
		return nil
	}
	return []string{fmt.Sprintf("of the text's %d tokens the model sees the %d around %s", tokens, seen, around)}
}

// asker asks the model, and counts the rows that ran.
type asker struct {
	model      lm.Asker
	vocabulary int
	rows       int
}

// asker loads the model. heavy says that many rows will be asked for; a caller
// that a door has given says so itself.
func (f *Filler) asker(ctx context.Context, heavy bool) (*asker, error) {
	model, err := f.source.open(ctx)
	if err != nil {
		return nil, err
	}
	caller := f.caller
	if caller == nil {
		caller = &lm.Caller{Heavy: heavy}
	}
	return &asker{model: model.For(caller), vocabulary: f.tokenizer.VocabularySize()}, nil
}

// askedBytes bounds the memory of the rows that are asked for at once.
const askedBytes = 32 << 20

// ask asks n rows of any lengths, as many at once as askedBytes allows. It calls take
// with what each found, [positions][vocabulary or 1].
func (a *asker) ask(ctx context.Context, n int, row func(i int) lm.Row,
	take func(i int, found [][]float32)) error {
	for first := 0; first < n; {
		var rows []lm.Row
		for bytes := 0; first+len(rows) < n && bytes < askedBytes; {
			r := row(first + len(rows))
			bytes += 16 * len(r.IDs) // an int, and an int64
			if r.Targets == nil {
				bytes += 4 * len(r.Positions) * a.vocabulary
			}
			rows = append(rows, r)
		}
		found, err := a.model.LogProbabilities(ctx, rows)
		if err != nil {
			return err
		}
		a.rows += len(rows)
		for i, logp := range found {
			take(first+i, logp)
		}
		first += len(rows)
	}
	return nil
}

// root returns log p of every token for each slot of a question, [slots][vocabulary],
// while all slots are masked. It asks one row.
func (a *asker) root(ctx context.Context, q question) (logp [][]float32, err error) {
	err = a.ask(ctx, 1, func(int) lm.Row { return lm.Row{IDs: q.ids(), Positions: q.slots} },
		func(_ int, found [][]float32) { logp = found })
	return logp, err
}

// held is a question with a token for each of its slots.
type held struct {
	question question
	tokens   []int
}

// given returns log p of each token of each held question, given the tokens before it
// and masks in the later slots. It asks a row for each token.
func (a *asker) given(ctx context.Context, all []held) ([][]float64, error) {
	logp := make([][]float64, len(all))
	var at [][2]int // the question and the slot of each row
	for i, h := range all {
		for slot := range h.tokens {
			at = append(at, [2]int{i, slot})
		}
	}
	row := func(i int) lm.Row {
		h, slot := all[at[i][0]], at[i][1]
		return h.question.row(h.tokens[:slot], slot, h.tokens[slot])
	}
	err := a.ask(ctx, len(at), row, func(i int, found [][]float32) {
		logp[at[i][0]] = append(logp[at[i][0]], float64(found[0][0]))
	})
	return logp, err
}

// law gives samplers.Search and samplers.Draw the chain rule's conditionals.
// Categories are token ids. Probabilities are the model's own over the whole
// vocabulary: the options narrow the fills, not the law.
type law struct {
	asker    *asker
	question question
	root     [][]float32
	// kept caches the log-probabilities of earlier rows for draws, which may
	// ask again; it is nil for a search.
	kept *simplelru.LRU[string, []float32]
}

// keptNumbers is the largest number of probabilities in law.kept: 64 MiB.
const keptNumbers = 16 << 20

var _ samplers.PartialTarget = (*law)(nil)

// laws returns the law by the chain rule for each layout. All combinations of
// lengths have the same weight, also those without a fill.
func (w *work) laws(o Order) []samplers.Law {
	var laws []samplers.Law
	for i, l := range w.plan.layouts {
		target := &law{asker: w.asker, question: l.question, root: w.roots[i]}
		laws = append(laws, samplers.Law{Target: target, Order: l.order(o), Choices: l.choices,
			LogWeight: -math.Log(float64(w.plan.lengths))})
	}
	return laws
}

func (l *law) PartialConditionals(ctx context.Context, asked []samplers.Partial,
	take func(i int, logp []float32)) error {
	var rows []samplers.Partial
	var takers [][]int // for each row, the indices in asked that wait for it
	var keys []string
	own := map[string]int{} // the row of each key
	for i, a := range asked {
		if !slices.ContainsFunc(a.State, func(token int) bool { return token != samplers.Open }) {
			take(i, l.root[a.Slot])
			continue
		}
		key := ""
		if l.kept != nil {
			key = string(samplers.AppendKey(samplers.AppendKey(nil, a.State...), a.Slot))
			logp, ok := l.kept.Get(key)
			if ok {
				take(i, logp)
				continue
			}
			row, asked := own[key]
			if asked {
				takers[row] = append(takers[row], i)
				continue
			}
			own[key] = len(rows)
		}
		rows = append(rows, a)
		takers = append(takers, []int{i})
		keys = append(keys, key)
	}
	return l.asker.ask(ctx, len(rows),
		func(i int) lm.Row { return l.question.row(rows[i].State, rows[i].Slot) },
		func(i int, found [][]float32) {
			if l.kept != nil {
				l.kept.Add(keys[i], slices.Clone(found[0]))
			}
			for _, taker := range takers[i] {
				take(taker, found[0])
			}
		})
}

// keep makes the law cache its rows in kept from now on.
func (l *law) keep() {
	rows := max(1, keptNumbers/len(l.root[0]))
	l.kept, _ = simplelru.NewLRU[string, []float32](rows, nil) // of 1 row or more it cannot fail
}
