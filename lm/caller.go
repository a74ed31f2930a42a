package lm

import (
	"context"
	"sync"
	"sync/atomic"
)

// Caller is who asks a model for rows: the model adds up what its rows cost, so
// that a caller of many rows does not delay others. The zero value is a caller
// of few rows. A Caller may ask from many goroutines, and must not be copied.
//
// A method of many rows is Heavy, a text of a file has a Turn, and a server
// bounds a request by a Limit.
type Caller struct {
	// Heavy says that many rows will come. Other callers are heavy once their rows
	// have cost [MostLight].
	Heavy bool
	// Turn orders heavy callers: rows of a smaller turn go first. So the texts of a
	// file end in their order, and few of them hold their searches in memory.
	Turn int64
	// Limit, unless it is 0, is the cost of rows, as a number of tokens, before
	// which the model calls Admit, once. Rows beyond the limit wait for Admit, and
	// fail with its error.
	Limit int
	Admit func(context.Context) error

	spent   atomic.Int64 // what the rows have cost so far
	once    sync.Once
	refused error // of Admit
}

// MostLight is the largest cost of a caller of few rows, as a number of tokens.
const MostLight = 1024

// weight returns by what the caller is light or heavy: what its rows have cost,
// and more than any light caller if it is heavy from the start.
func (c *Caller) weight() int64 {
	if c.Heavy {
		return c.spent.Load() + MostLight
	}
	return c.spent.Load()
}

// admitted returns the error of Admit if rows of that cost go beyond the limit.
func (c *Caller) admitted(ctx context.Context, cost int) error {
	if c.Limit == 0 || c.spent.Load()+int64(cost) <= int64(c.Limit) {
		return nil
	}
	c.once.Do(func() { c.refused = c.Admit(ctx) })
	return c.refused
}

// Asker is a model as one caller asks it.
type Asker interface {
	// LogProbabilities returns, for each position of each row, log p of every
	// token or, of a row with targets, of the position's target, in nats:
	// [rows][positions][vocabulary or 1]. The rows may have any lengths; those of
	// about one length and number of positions share model calls.
	LogProbabilities(ctx context.Context, rows []Row) ([][][]float32, error)
	// NewTarget returns the target over the fills of ids, which include [CLS] and
	// [SEP], at the positions slots. The ids at these positions are ignored.
	NewTarget(ids, slots []int, o TargetOptions) (Target, error)
}

var (
	_ Asker = (*MaskedLM)(nil)
	_ Asker = (*asker)(nil)
)

type asker struct {
	m      *MaskedLM
	caller *Caller
}

// For returns the model as c asks it.
func (m *MaskedLM) For(c *Caller) Asker { return m.as(c) }

func (m *MaskedLM) as(c *Caller) *asker { return &asker{m: m, caller: c} }

// LogProbabilities asks as a caller of its own: see [Asker].
func (m *MaskedLM) LogProbabilities(ctx context.Context, rows []Row) ([][][]float32, error) {
	return m.as(&Caller{}).LogProbabilities(ctx, rows)
}

// NewTarget returns a target that asks as a caller of its own: see [Asker].
func (m *MaskedLM) NewTarget(ids, slots []int, o TargetOptions) (Target, error) {
	return m.as(&Caller{}).NewTarget(ids, slots, o)
}
