package parallel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestFirstComesSoon: where a machine shares its time among all values in work, the first
// result comes after a few of them, and later the width is full.
func TestFirstComesSoon(t *testing.T) {
	const width, each = 256, 400 * time.Millisecond // of the machine's time
	synctest.Test(t, func(t *testing.T) {
		machine := make(chan struct{}, 1)
		var working, most atomic.Int64
		began := time.Now()
		first := time.Duration(0)
		number := 0
		err := Each(t.Context(), width, func(context.Context) (int, error) {
			number++
			if number > 4*width {
				return 0, io.EOF
			}
			return number, nil
		}, func(context.Context, int) (int, error) {
			most.Store(max(most.Load(), working.Add(1)))
			defer working.Add(-1)
			for range 20 {
				machine <- struct{}{}
				time.Sleep(each / 20)
				<-machine
			}
			return 0, nil
		}, func(int) error {
			if first == 0 {
				first = time.Since(began)
			}
			return nil
		})
		if err != nil || first > 2*time.Second || time.Since(began) != 4*width*each {
			t.Errorf("the first of %d results comes after %v, and all after %v, error %v", 4*width, first,
				time.Since(began), err)
		}
		if most.Load() != width {
			t.Errorf("%d at once, want %d", most.Load(), width)
		}
	})
}

// TestWidthOfNone: a width that nobody gave is one at a time.
func TestWidthOfNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		err := All(t.Context(), 0, 3, func(context.Context, int) error {
			made++
			return nil
		})
		if err != nil || made != 3 {
			t.Errorf("%d of 3 are made, error %v", made, err)
		}
	})
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
