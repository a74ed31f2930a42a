package infill

import (
	"context"

	"infill/lm"
)

// Model is what the pipeline asks of a masked language model. Ids are token
// ids, [CLS] and [SEP] included; slots are positions in them.
type Model interface {
	// Description names what the signature of a result needs.
	Description() Description
	// Positions is the longest text the model takes, in tokens.
	Positions() int
	// MaskedLogProbabilities returns log p of every token for each slot while
	// all slots hold [MASK], [slots][vocabulary], nats. It runs one row.
	MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error)
	// NewTarget makes the distribution over the slots of a text.
	NewTarget(ids, slots []int, o TargetOptions) (Target, error)
	// Score returns the log probability of the token at each query's position, nats.
	Score(ctx context.Context, ids []int, queries []Query) ([]float64, error)
}

// The types of package lm that the pipeline works on.
type (
	Description   = lm.Description
	TargetOptions = lm.TargetOptions
	Target        = lm.Target
	Counts        = lm.Counts
	Query         = lm.Query
)
