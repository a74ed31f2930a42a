package parallel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// TestEach: what is slow at first comes first, and no more than width are in work.
func TestEach(t *testing.T) {
	list := make([]int, 200)
	for i := range list {
		list[i] = i
	}
	number := -1
	var working, most atomic.Int64
	var got []int
	err := Each(t.Context(), 8, func(context.Context) (int, error) {
		if number++; number == len(list) {
			return 0, io.EOF
		}
		return list[number], nil
	}, func(_ context.Context, i int) (int, error) {
		if n := working.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer working.Add(-1)
		time.Sleep(time.Duration(i*7919%5) * 100 * time.Microsecond)
		return i, nil
	}, func(i int) error {
		got = append(got, i)
		return nil
	})
	if err != nil || !slices.Equal(got, list) {
		t.Errorf("%v, %v", got, err)
	}
	if n := most.Load(); n < 2 || n > 8 {
		t.Errorf("%d at once", n)
	}
}

// TestErrors: all before the first error is emitted, and nothing after it.
func TestErrors(t *testing.T) {
	wrong := errors.New("wrong")
	for _, from := range []string{"next", "do", "emit", "context"} {
		ctx, cancel := context.WithCancel(t.Context())
		number, emitted := 0, 0
		err := Each(ctx, 4, func(context.Context) (int, error) {
			if number++; from == "next" && number > 10 {
				return 0, wrong
			}
			return number, nil
		}, func(_ context.Context, i int) (int, error) {
			if from == "do" && i == 11 {
				return 0, wrong
			}
			return i, nil
		}, func(i int) error {
			if i != emitted+1 {
				t.Errorf("%s: %d after %d", from, i, emitted)
			}
			if i == 11 {
				switch from {
				case "context":
					cancel()
				case "emit":
					return wrong
				}
			}
			emitted = i
			return nil
		})
		cancel()
		if want := fmt.Sprint(wrong); from != "context" && (fmt.Sprint(err) != want || emitted != 10) {
			t.Errorf("%s: %v after %d", from, err, emitted)
		}
		if from == "context" && err != context.Canceled {
			t.Errorf("context: %v", err)
		}
	}
}
