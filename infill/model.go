package infill

import (
	"context"

	"infill/lm"
	"infill/samplers"
)

// Model is what the pipeline asks of a masked language model. Ids are token
// ids, [CLS] and [SEP] included; slots are positions in them.
type Model interface {
	// Description names what the signature of a result needs.
	Description() Description
	// MaxPositions is the longest text the model takes, in tokens.
	MaxPositions() int
	// MaskedLogProbabilities returns log p of every token for each slot while
	// all slots hold [MASK], [slots][vocabulary], nats. It runs one row.
	MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error)
	// NewTarget makes the distribution over the slots of a text.
	NewTarget(ids, slots []int, o TargetOptions) (Target, error)
	// Score returns the log probability of the token at each query's position, nats.
	Score(ctx context.Context, ids []int, queries []Query) ([]float64, error)
}

// Description says which model computed a result, and with what.
type Description struct {
	Name    string // of the bundle
	SHA256  string // of the bundle, 64 hexadecimal digits
	Runtime string // version of onnxruntime
	Device  string // that is really used, "cpu" or "cuda:N"
	// Precision is the arithmetic of the model's graphs; empty means fp32.
	Precision string
}

// TargetOptions says which distribution over the slots is meant.
type TargetOptions struct {
	Energy   lm.Energy
	Gradient lm.Gradient
	Support  [][]int // token ids that each slot may take, ascending, [slots][categories]
	// Distances asks for a samplers.MetricTarget.
	Distances bool
}

// Target is the distribution over the slots of one template; category k of slot
// j is the token Support[j][k].
type Target interface {
	samplers.Target
	Counts() Counts
}

// Counts is the work done so far, one evaluation being one state of one chain.
type Counts struct {
	EnergyEvaluations, GradientEvaluations int64
	// Rows is the number of token sequences that went through the model.
	Rows int64
}

// Query asks for one token's log probability while the masked positions hold
// [MASK]; Position itself is among them or not, as the caller wishes.
type Query struct {
	Position int
	Masked   []int
}
