package lm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"
	"golang.org/x/sys/cpu"

	"infill/lm/internal/ort"
)

// checkedRows is the largest call that is compared with calls of a single row. Kernels of integer products work on
// blocks of up to 32 rows; two blocks show what is wrong at their edges.
const checkedRows = 64

// checkIntegers refuses integer arithmetic whose results depend on how many rows share a call: onnxruntime 1.24.1
// shifts the last of 32 rows by nats on processors with AMX. What passed is remembered beside the prepared weights, for
// this library and the abilities of this processor.
func (m *MaskedLM) checkIntegers(ctx context.Context, session *ort.Session, dir string) error {
	path := filepath.Join(dir, "rows-agree-"+m.machine())
	if _, err := os.Stat(path); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := checkRows(m.Vocabulary(), m.mask, func(b *batch) error {
		b.prepare(m.Vocabulary())
		rows := part{&request{ctx: ctx, batch: b}, 0, b.rows()}
		return m.engine.callOn(ctx, session, &sharedCall{}, []part{rows}, b.tokens)
	})
	if err != nil {
		return fmt.Errorf("model %s: precision int8 cannot be trusted with onnxruntime %s on this processor: %w; "+
			"take --precision fp32, or let `infill setup` fetch another onnxruntime", m.bundle.Name,
			m.runtime.Version(), err)
	}
	return maybe.WriteFile(path, nil, 0o644)
}

// machine tells this library on a processor of these abilities from others.
func (m *MaskedLM) machine() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %v %v", m.runtime.Version(), m.runtime.Library(), cpu.X86, cpu.ARM64))
	return fmt.Sprintf("%.8x", sum[:])
}

// checkRows compares each row of calls of 2 to checkedRows rows with the same row alone.
func checkRows(vocabulary, mask int, run func(*batch) error) error {
	// Rows of a word and a mask, whose word's probability is asked for. The bound
	// is far above what rounding does (1e-3), and far below the fault (nats).
	const bound = 0.05
	call := func(from, to int) ([]float32, error) {
		var b batch
		b.reset(2, 1, 0, false)
		for row := from; row < to; row++ {
			word := int64(row * (vocabulary - 1) / checkedRows)
			b.ids = append(b.ids, word, int64(mask))
			b.queries, b.targets = append(b.queries, 1), append(b.targets, word)
		}
		err := run(&b)
		return b.target, err
	}
	var alone []float32
	for row := range checkedRows {
		one, err := call(row, row+1)
		if err != nil {
			return err
		}
		alone = append(alone, one[0])
	}
	for rows := 2; rows <= checkedRows; rows++ {
		together, err := call(0, rows)
		if err != nil {
			return err
		}
		for row, x := range together {
			if d := math.Abs(float64(x) - float64(alone[row])); !(d <= bound) {
				return fmt.Errorf("in a call of %d rows, row %d has log-probability %.4g, alone %.4g", rows, row+1, x,
					alone[row])
			}
		}
	}
	return nil
}
