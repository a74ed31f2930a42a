package bert

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"infill/internal/check"
	"infill/models"
)

// The rows of distances are the reference implementation's.
func TestBucket(t *testing.T) {
	data := check.Must(os.ReadFile(filepath.Join("testdata", "distances.json")))(t)
	var tables map[string][]int
	check.OK(t, json.Unmarshal(data, &tables))
	if len(tables) == 0 {
		t.Fatal("no tables")
	}
	for name, table := range tables {
		var a models.RelativeAttention
		if _, err := fmt.Sscan(name, &a.Buckets, &a.Farthest); err != nil {
			t.Fatal(err)
		}
		if a.Span = a.Buckets; a.Buckets == 0 {
			a.Span = a.Farthest
		}
		for i, want := range table {
			if distance := i - len(table)/2; bucket(distance, &a) != want {
				t.Errorf("%s: distance %d has row %d, want %d", name, distance, bucket(distance, &a), want)
			}
		}
	}
}
