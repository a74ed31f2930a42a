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
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/terminal"
	"infill/internal/rawjson"
)

// linesOf reads all lines of standard input.
func linesOf(t *testing.T, in io.Reader, form string) (list []Entry, err error) {
	next := (&InputOptions{Key: "template", Input: form, Streams: &terminal.Streams{In: in}}).entries(t.Context())
	for {
		e, err := next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, form, text string
		want             []string
	}{
		{"a byte-order mark is one at the very start only", "lines", "\ufeffa\n\ufeffb\n", []string{"a/", "\ufeffb/"}},
		{"carriage returns", "lines", "a\r\nb\r\r\n", []string{"a/",
			"error: a carriage return (CR) ends no line: save the file with line feeds (LF); " +
				"quotes of CSV and TSV keep it as text"}},
		{"objects", "jsonl", "\ufeff{\"template\":\"a\",\"id\":[1, \"x\"]}\n" +
			"{\"template\":\"b\\u00e9\",\"id\":null}\n{\"template\":\"\xff\"}\n" + `{"template":"a \ud83d"}` + "\n",
			[]string{`a/[1,"x"]`, "bé/", "error: the line is not valid UTF-8", "error: " +
				`"template" has half of a surrogate pair: write both halves, or the character itself`}},
	} {
		var got []string
		list, err := linesOf(t, strings.NewReader(c.text), c.form)
		for _, e := range list {
			if e.Err != nil {
				got = append(got, "error: "+e.Err.Error())
			} else {
				got = append(got, e.Text+"/"+string(e.ID))
			}
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", c.name, err, diff)
		}
	}
	broken := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("disk gone")))
	if list, err := linesOf(t, broken, "lines"); err == nil || len(list) != 1 ||
		err.Error() != "read standard input: disk gone" {
		t.Errorf("of a broken disk: %v, %v", list, err)
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add([]byte(`{"template":"a [MASK]","id":7}`))
	f.Add([]byte(`{"template":null}`))
	f.Add([]byte(`[{}]`))
	f.Add([]byte("{\"template\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := linesOf(t, bytes.NewReader(text), "jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Err != nil {
				if strings.ContainsAny(e.Err.Error(), "\n") {
					t.Errorf("an error of several lines: %q", e.Err)
				}
				continue
			}
			// What was taken can be written back.
			if _, err := rawjson.Pairs("id", e.ID, "template", e.Text); err != nil {
				t.Error(err)
			}
			if e.ID != nil && !json.Valid(e.ID) {
				t.Errorf("id %q is not JSON", e.ID)
			}
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
			ended := 0
			var told []int
			read := func(e Entry) (int, error) { return e.Line, nil }
			err := Each(ctx, o, &ModelOptions{}, read, func() error { ended++; return nil },
				func(ctx context.Context, e Entry, line int) (func() error, error) {
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
			if !errors.Is(err, test.want) {
				t.Errorf("error %v", err)
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
