package fill

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/internal/batch"
)

// trace writes the states of chains to a new CSV file: a row for each chain
// at each step, from step 0, its start. U is in nats.
type trace struct {
	file *os.File
	rows *bufio.Writer
}

func newTrace(path string) (*trace, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, cli.Usagef("--trace: %s is there already: name another file, or remove it", path)
	case err != nil:
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return &trace{file: file, rows: bufio.NewWriter(file)}, nil
}

// observe writes the states after one step. An error appears at close.
func (t *trace) observe(at infill.Progress) {
	slots := len(at.TokenIDs) / len(at.LogLikelihoods)
	if at.Step == 0 {
		row := []string{"chain", "step", "warm_up", "u"}
		for slot := range slots {
			row = append(row, fmt.Sprintf("token_%d", slot+1))
		}
		_ = batch.WriteCSV(t.rows, row)
	}
	for chain, u := range at.LogLikelihoods {
		row := []string{strconv.Itoa(chain + 1), strconv.Itoa(at.Step), strconv.FormatBool(at.WarmUp), fmt.Sprint(u)}
		for _, id := range at.TokenIDs[chain*slots : (chain+1)*slots] {
			row = append(row, strconv.Itoa(id))
		}
		_ = batch.WriteCSV(t.rows, row)
	}
}

func (t *trace) close() error { return errors.Join(t.rows.Flush(), t.file.Close()) }
