package journal

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

// Has reports whether a record, counted from 0, is of the part.
func (s Shard) Has(record int64) bool {
	return s.Count == 0 || record%int64(s.Count) == int64(s.Index-1)
}

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
	case len(text) > 0 && (cmp.Or(err, err2) != nil || count < 1 || index < 1 || index > count):
		return errors.New("I/N, the number of this part from 1 and that of all")
	case count > maxShards:
		return fmt.Errorf("I/N with at most %d parts: make them larger", maxShards)
	}
	*s = Shard{index, count}
	return nil
}

// PartsOf is the folder of the parts of a run.
func PartsOf(output string) string { return output + ".parts" }

// PartOf is the folder of a part of a run.
func PartOf(output string, s Shard) string {
	return filepath.Join(PartsOf(output), fmt.Sprintf("%05d-of-%05d", s.Index, s.Count))
}

// Parts lists the folders of parts that there are, in their order.
func Parts(output string) (list []Shard, err error) {
	entries, err := os.ReadDir(PartsOf(output))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		var s Shard
		if n, err := fmt.Sscanf(e.Name(), "%05d-of-%05d", &s.Index, &s.Count); err == nil && n == 2 && e.IsDir() {
			list = append(list, s)
		}
	}
	return list, nil
}

// Ended reports whether the journal in a folder is finished.
func Ended(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, Tail))
	return err == nil
}

// Finished lists the folders of all parts of a run, in their order. It is an error where one is missing or not
// finished; how says how to run it.
func Finished(output, how string) (folders []string, err error) {
	list, err := Parts(output)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s holds no parts: run them first, with this output and --shard 1/N to N/N",
			PartsOf(output))
	}
	there, count := map[Shard]bool{}, list[0].Count
	for _, s := range list {
		if there[s] = Ended(PartOf(output, s)); s.Count != count {
			return nil, fmt.Errorf("%s holds parts of %d and of %d: remove those that are of another run",
				PartsOf(output), min(count, s.Count), max(count, s.Count))
		}
	}
	var missing []string
	for i := range count {
		s := Shard{i + 1, count}
		if folders = append(folders, PartOf(output, s)); !there[s] {
			missing = append(missing, s.String())
		}
	}
	if n := len(missing); n > 0 {
		if n > 8 {
			missing = append(missing[:8:8], "…")
		}
		return nil, fmt.Errorf("%d of %d parts are not finished: run %s%s", n, count, strings.Join(missing, ", "), how)
	}
	return folders, nil
}
