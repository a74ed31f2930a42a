package main

import (
	"bufio"
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
	"infill/infill/batch"
	"infill/internal/object"
	"infill/lm"
	"infill/tokenize"
)

// TestBadInput is the list of issue 2 as far as it concerns texts: one line, exit
// code 2, nothing on standard output, and onnxruntime never looked for.
func TestBadInput(t *testing.T) {
	t.Setenv("INFILL_ONNXRUNTIME", "/nonexistent/so-that-a-use-fails")
	tests := []struct{ name, template, want string }{
		{"no slot", "he had told me", "infill: no blank in the template: write [MASK] where a word is wanted\n"},
		{"lower case", "he had [mask] me", "infill: no blank in the template: \"[mask]\" at byte offset 7 is not one; write [MASK] where a word is wanted\n"},
		{"only slots", "[MASK] [MASK]", "infill: nothing but blanks in the template: add at least one word around them\n"},
		{"empty", "", "infill: no text: the text is empty or only white space\n"},
		{"blank", " \t\n", "infill: no text: the text is empty or only white space\n"},
		{"too long", strings.Repeat("the ", 300000) + "[MASK]", "infill: text too long: 1200006 bytes, at most 1048576 are taken; give one chapter at a time\n"},
		{"a megabyte", strings.Repeat("a", 1<<20) + " [MASK]", fmt.Sprintf("infill: text too long: 1048583 bytes, at most %d are taken; give one chapter at a time\n", tokenize.MaxText)},
		{"invalid UTF-8", "he \xff [MASK]", "infill: text is not valid UTF-8 at byte offset 3: byte 0xff; convert the text to UTF-8\n"},
		{"control character", "he \x1b[2J [MASK]", "infill: control character in the text at byte offset 3: U+001B; take it out\n"},
		{"NUL", "he \x00 [MASK]", "infill: control character in the text at byte offset 3: U+0000; take it out\n"},
		{"separator", "he [SEP] had [MASK]", "infill: special token in the text at byte offset 3: [SEP] is added by the program where the model needs it; take it out\n"},
		{"classifier", "[CLS] he had [MASK]", "infill: special token in the text at byte offset 0: [CLS] is added by the program where the model needs it; take it out\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := run(t, strings.NewReader(""), test.template)
			if code != exitUsage || stdout != "" {
				t.Errorf("exit code %d, want 2; standard output %q", code, stdout)
			}
			if diff := cmp.Diff(test.want, stderr); diff != "" {
				t.Error(diff)
			}
			// With another one: nothing is printed although the first is fine.
			code, stdout, stderr = run(t, strings.NewReader(""), "he had [MASK] me", test.template)
			if code != exitUsage || stdout != "" || stderr != strings.Replace(test.want, "infill: ", "infill: template 2: ", 1) {
				t.Errorf("as the second: exit code %d, standard output %q, error %q", code, stdout, stderr)
			}
			// On standard input, where a line cannot hold a line end: reported with its number.
			if strings.Contains(test.template, "\n") || test.template == "" {
				return
			}
			code, stdout, stderr = run(t, strings.NewReader(test.template+"\n"))
			if code != exitFailed || stdout != "" || !strings.HasPrefix(stderr, "infill: line 1: ") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("on standard input: exit code %d, standard output %q, error %q", code, stdout, stderr)
			}
		})
	}
}

// TestNoTemplate: a terminal is not waited for.
func TestNoTemplate(t *testing.T) {
	for _, args := range [][]string{{}, {"score"}} {
		var out, err bytes.Buffer
		streams := &terminal.Streams{In: iotest.ErrReader(errors.New("must not be read")), Out: &out, Err: &err, InTerminal: true}
		if code := Main(t.Context(), streams, args); code != exitUsage || out.Len() > 0 || strings.Count(err.String(), "\n") != 2 || !strings.Contains(err.String(), "hint: infill ") {
			t.Errorf("%v: exit code %d, standard output %q, error %q", args, code, &out, &err)
		}
	}
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	tests := []struct {
		name, text string
		want       []string // lines; "long" stands for the error
	}{
		{"nothing", "", nil},
		{"one", "a", []string{"a"}},
		{"ended", "a\n", []string{"a"}},
		{"empty ones", "\n\na\n\n", []string{"", "", "a", ""}},
		{"carriage returns", "a\r\nb\rc\r\n", []string{"a", "b\rc"}},
		{"longest", long + "\nb\n", []string{long, "b"}},
		{"longest with CR LF", long + "\r\nb", []string{long, "b"}},
		{"too long", long + "x\nb\n", []string{"long", "b"}},
		{"too long and last", "b\n" + long + long, []string{"b", "long"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// One byte at a time too: lines must not depend on how they arrive.
			for _, r := range []io.Reader{strings.NewReader(test.text), iotest.HalfReader(strings.NewReader(test.text))} {
				lines := bufio.NewReader(r)
				var got []string
				for {
					line, err := readLine(lines)
					if err == io.EOF {
						break
					}
					if errors.Is(err, errLongLine) {
						line = []byte("long")
					} else if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(line))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestReadEntries(t *testing.T) {
	read := func(r io.Reader, format string) (list []string) {
		entries := make(chan entry)
		go readEntries(t.Context(), r, format, "template", entries)
		for e := range entries {
			if e.err != nil {
				list = append(list, "error: "+e.err.Error())
			} else {
				list = append(list, e.text+"/"+string(e.id))
			}
		}
		return list
	}
	broken := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("disk gone")))
	if diff := cmp.Diff([]string{"a/", "error: read standard input: disk gone"}, read(broken, "lines")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a/", "\ufeffb/"}, read(strings.NewReader("\ufeffa\n\ufeffb\n"), "lines")); diff != "" {
		t.Errorf("a byte-order mark is one at the very start only: %s", diff)
	}
	if diff := cmp.Diff([]string{"error: " + batch.ErrReturn.Error(), "a/", "b\r/"}, read(strings.NewReader("one\rtwo\rthree\na\r\nb\r\r\n"), "lines")); diff != "" {
		t.Errorf("carriage returns: %s", diff)
	}
	objects := "\ufeff{\"template\":\"a\",\"id\":[1, \"x\"]}\n{\"template\":\"b\\u00e9\",\"id\":null}\n{\"template\":\"\xff\"}\n"
	objects += `{"template":"a \ud83d"}` + "\n"
	want := []string{`a/[1, "x"]`, "bé/null", "error: the line is not valid UTF-8",
		`error: the line has half of a character, \ud83d: write both halves of the pair, or the character itself`}
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
		var e entry
		if err := e.parse(line, "template"); err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		// What was taken can be written back.
		if _, err := encode(object.Identified{ID: e.id, Value: map[string]string{"template": e.text}}, "", ""); err != nil {
			t.Error(err)
		}
		if e.id != nil && !json.Valid(e.id) {
			t.Errorf("id %q is not JSON", e.id)
		}
	})
}

// TestEach: texts are worked at many at once and told of in their order, whichever is done first.
func TestEach(t *testing.T) {
	const lines, broken = 300, 40
	var text strings.Builder
	for i := 1; i <= lines; i++ {
		fmt.Fprintln(&text, map[bool]string{true: " ", false: "text"}[i%50 == 0])
	}
	wrong := &misfitError{errors.New("wrong")}
	for _, test := range []struct {
		name  string
		fails error // of line broken
		want  error
	}{
		{"all", nil, nil},
		{"a wrong text", wrong, errReported},
		{"a failure", io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"interrupted", context.Canceled, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stderr bytes.Buffer
			o := &inputOptions{key: "template", input: "lines", streams: &terminal.Streams{In: strings.NewReader(text.String()), Err: &stderr}}
			ctx, cancel := context.WithCancel(t.Context())
			var lock sync.Mutex
			now, most, ended, first := 0, 0, 0, true
			count := func(by int) {
				lock.Lock()
				defer lock.Unlock()
				if by > 0 && first && now > 0 {
					t.Error("the first is not alone")
				}
				now += by
				most = max(most, now)
			}
			var told []int
			read := func(entry) (struct{}, error) { return struct{}{}, nil }
			err := each(ctx, o, false, read, func() error { ended++; return nil }, func(ctx context.Context, e entry, _ struct{}) (func() error, error) {
				count(1)
				defer count(-1)
				if e.line%9 == 0 {
					if err := await(ctx, e.next); err != nil {
						return nil, err
					}
				} else {
					time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
				}
				lock.Lock()
				first = false
				lock.Unlock()
				if e.line == broken && test.fails != nil {
					if test.fails == context.Canceled {
						<-e.turn
						cancel()
						return func() error { told = append(told, e.line); return ctx.Err() }, ctx.Err()
					}
					return nil, test.fails
				}
				return func() error { told = append(told, e.line); return nil }, nil
			})
			if !errors.Is(err, test.want) || now != 0 || most < 3 || most > lm.InFlight {
				t.Errorf("error %v, %d at once, %d still at work", err, most, now)
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
			if want := fmt.Sprintf("infill: line %d: wrong\n", broken); strings.HasPrefix(stderr.String(), want) != (reported) {
				t.Errorf("standard error %q", stderr.String())
			}
		})
	}
}
