package batch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Shard is one of several parts of a run: of Count, the one numbered Index from 1. Record n, from 0, is of part
// n mod Count. The zero value is the whole run.
type Shard struct{ Index, Count int }

// maxShards is the largest number of parts.
const maxShards = 10000

// String is what UnmarshalText reads, "2/8", and "" for the whole run.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// MarshalText implements encoding.TextMarshaler.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Its error completes the sentence `"x" is not …`.
func (s *Shard) UnmarshalText(text []byte) error {
	left, right, _ := strings.Cut(string(text), "/")
	index, err := strconv.Atoi(left)
	count, err2 := strconv.Atoi(right)
	switch {
	case len(text) == 0: // as of a variable that is not set
		return errors.New("I/N, the number of this part from 1 and that of all; for the whole run leave the flag out")
	case cmp.Or(err, err2) != nil || count < 1 || index < 1 || index > count:
		return errors.New("I/N, the number of this part from 1 and that of all")
	case count > maxShards:
		return fmt.Errorf("I/N with at most %d parts: make them larger", maxShards)
	}
	*s = Shard{index, count}
	return nil
}

// number is that of a record in the whole input, from 1, of one of the part, counted from 0.
func (s Shard) number(record int64) int64 { return record*int64(s.Count) + int64(s.Index) }

// of is how many records the part has of so many.
func (s Shard) of(records int64) int64 {
	return (records - int64(s.Index) + int64(s.Count)) / int64(s.Count)
}

// partsOf is the folder of the parts of a run.
func partsOf(output string) string { return output + ".parts" }

// pathOf is the journal of a part.
func pathOf(output string, s Shard) string {
	return filepath.Join(partsOf(output), fmt.Sprintf("%05d-of-%05d.jsonl", s.Index, s.Count))
}

// partsThere lists the parts that there are, in their order.
func partsThere(output string) (list []Shard, err error) {
	entries, err := os.ReadDir(partsOf(output))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		var s Shard
		n, _ := fmt.Sscanf(e.Name(), "%05d-of-%05d.jsonl", &s.Index, &s.Count)
		if n == 2 && e.Name() == filepath.Base(pathOf(output, s)) {
			list = append(list, s)
		}
	}
	return list, nil
}
