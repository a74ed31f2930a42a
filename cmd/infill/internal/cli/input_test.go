package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/terminal"
	"infill/internal/object"
)

func TestReadEntries(t *testing.T) {
	read := func(r io.Reader, format string) (list []string) {
		entries := make(chan Entry)
		go readEntries(t.Context(), r, format, "template", entries)
		for e := range entries {
			if e.Err != nil {
				list = append(list, "error: "+e.Err.Error())
			} else {
				list = append(list, e.Text+"/"+string(e.ID))
			}
		}
		return list
	}
	broken := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("disk gone")))
	if diff := cmp.Diff([]string{"a/", "error: read standard input: disk gone"}, read(broken, "lines")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a/", "\ufeffb/"},
		read(strings.NewReader("\ufeffa\n\ufeffb\n"), "lines")); diff != "" {
		t.Errorf("a byte-order mark is one at the very start only: %s", diff)
	}
	objects := "\ufeff{\"template\":\"a\",\"id\":[1, " +
		"\"x\"]}\n{\"template\":\"b\\u00e9\",\"id\":null}\n{\"template\":\"\xff\"}\n"
	want := []string{`a/[1, "x"]`, "bé/null", "error: the line is not valid UTF-8"}
	if diff := cmp.Diff(want, read(strings.NewReader(objects), "jsonl")); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add([]byte(`{"template":"a [MASK]","id":7}`))
	f.Add([]byte(`{"template":null}`))
	f.Add([]byte(`[{}]`))
	f.Add([]byte("{\"template\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		var e Entry
		o, err := object.Parse(line)
		if err == nil {
			e.take(o, true, "template")
			err = e.Err
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		// What was taken can be written back.
		if _, err := object.Encode(
			object.Identified{ID: e.ID, Value: map[string]string{"template": e.Text}}); err != nil {
			t.Error(err)
		}
		if e.ID != nil && !json.Valid(e.ID) {
			t.Errorf("id %q is not JSON", e.ID)
		}
	})
}

// TestEach: many texts are in work at once, and results come in the order of the texts.
func TestEach(t *testing.T) {
	const lines, broken = 300, 40
	var text strings.Builder
	for i := 1; i <= lines; i++ {
		fmt.Fprintln(&text, map[bool]string{true: " ", false: "text"}[i%50 == 0])
	}
	wrong := &MisfitError{errors.New("wrong")}
	for _, test := range []struct {
		name  string
		fails error // of line broken
		want  error
	}{
		{"all", nil, nil},
		{"a wrong text", wrong, ErrReported},
		{"a failure", io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"interrupted", context.Canceled, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stderr bytes.Buffer
			o := &InputOptions{Key: "template", Input: "lines",
				Streams: &terminal.Streams{In: strings.NewReader(text.String()), Err: &stderr}}
			ctx, cancel := context.WithCancel(t.Context())
			var lock sync.Mutex
			now, most, ended := 0, 0, 0
			count := func(by int) {
				lock.Lock()
				defer lock.Unlock()
				now += by
				most = max(most, now)
			}
			var told []int
			read := func(e Entry) (int, error) { return e.Line, nil }
			large := func(line int) bool { return line%9 == 0 || line == broken }
			err := Each(ctx, o, false, read, large, func() error { ended++; return nil },
				func(ctx context.Context, e Entry, line int) (func() error, error) {
					if large(line) {
						count(1)
						defer count(-1)
					}
					time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
					if e.Line == broken && test.fails != nil {
						if test.fails == context.Canceled {
							cancel()
							return func() error { told = append(told, e.Line); return ctx.Err() }, ctx.Err()
						}
						return nil, test.fails
					}
					return func() error { told = append(told, e.Line); return nil }, nil
				})
			if !errors.Is(err, test.want) || now != 0 || most != 2 {
				t.Errorf("error %v, %d large ones at once, %d still at work", err, most, now)
			}
			reported := test.fails == error(wrong)
			var want []int
			for i := 1; i <= lines; i++ {
				if i%50 != 0 && (i != broken || test.fails == nil || test.fails == context.Canceled) {
					want = append(want, i)
				}
				if i == broken && test.fails != nil && !reported {
					break
				}
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Error(diff)
			}
			if whole := test.fails == nil || reported; (ended == 1) != whole {
				t.Errorf("the end was told %d times", ended)
			}
			if want := fmt.Sprintf("infill: line %d: wrong\n", broken); strings.HasPrefix(stderr.String(),
				want) != (reported) {
				t.Errorf("standard error %q", stderr.String())
			}
		})
	}
}
