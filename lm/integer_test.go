package lm

import (
	"strings"
	"testing"
)

// A kernel that shifts the last of 32 rows, as onnxruntime 1.24.1 does on
// processors with AMX, is found; one that does not, passes.
func TestCheckRows(t *testing.T) {
	for _, test := range []struct {
		name  string
		shift func(rows, row int) float32
		want  string
	}{
		{"right", func(int, int) float32 { return 0 }, ""},
		{"rounding", func(_, row int) float32 { return 1e-4 * float32(row%3) }, ""},
		{"every 32nd row", func(rows, row int) float32 {
			if rows >= 32 && row%32 == 31 {
				return 2.5
			}
			return 0
		}, "in a call of 32 rows, row 32 has log-probability"},
		{"not a number", func(rows, row int) float32 {
			var zero float32
			if rows == 64 {
				return zero / zero
			}
			return 0
		}, "in a call of 64 rows, row 1 has"},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			err := checkRows(30522, 103, func(b *batch) error {
				calls++
				b.prepare(30522)
				for row := range b.target {
					b.target[row] = -float32(b.ids[2*row]%97) + test.shift(b.rows(), row)
				}
				return nil
			})
			switch {
			case test.want == "" && (err != nil || calls != 2*checkedRows-1):
				t.Errorf("%v after %d calls", err, calls)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v", err)
			}
		})
	}
}
