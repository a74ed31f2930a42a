package serve_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"infill/internal/serve"
)

// TestPipeWithoutReader: work that would take hours ends soon after its reader
// is gone, as with a program that asked and was killed.
func TestPipeWithoutReader(t *testing.T) {
	f, m := newFaulty(t, nil)
	m.Before = func(ctx context.Context) error { // works for a day
		select {
		case <-ctx.Done():
		case <-time.After(24 * time.Hour):
		}
		return ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf(f)
		o.Limits.Time = 24 * time.Hour
		s, err := serve.New(o)
		if err != nil {
			t.Fatal(err)
		}
		const request = `{"id": 1, "path": "/v1/fill", "body": {"template": "the [MASK] sat"}}`
		answers, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.Pipe(t.Context(), strings.NewReader(request), out) }()
		first := make([]byte, 1)
		if _, err := io.ReadFull(answers, first); err != nil || first[0] != ' ' {
			t.Fatalf("not at work: %q, %v", first, err)
		}
		answers.Close()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("no error")
			}
		case <-time.After(time.Minute):
			t.Error("still at work")
		}
	})
}

// A line whose text could not come back as it was sent is refused, whatever it asks for.
func TestPipeHalfOfAPair(t *testing.T) {
	s, err := serve.New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`a \ud83d b`, "a \xff b"} {
		var out strings.Builder
		line := `{"id": 1, "path": "/v1/score", "body": {"texts": "` + text + `"}}`
		if err := s.Pipe(t.Context(), strings.NewReader(line), &out); err != nil ||
			!strings.HasPrefix(out.String(), `{"id":1,"status":400,`) {
			t.Errorf("%q: %v %s", text, err, out.String())
		}
	}
}

// TestQuietPipe: once all is answered, the server writes nothing more.
func TestQuietPipe(t *testing.T) {
	o := options(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := serve.New(o)
		if err != nil {
			t.Fatal(err)
		}
		in, ask := io.Pipe()
		answers, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.Pipe(t.Context(), in, out) }()
		_, err = io.WriteString(ask, `{"id":1,"path":"/v1/models","method":"GET"}`+"\n")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(answers)
		line, err := lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, `{"id":1,"status":200,`) {
			t.Fatalf("%q, error %v", line, err)
		}
		more := make(chan byte, 1)
		go func() {
			b, _ := lines.ReadByte()
			more <- b
		}()
		select {
		case b := <-more:
			t.Errorf("it writes %q", b)
		case <-time.After(time.Minute):
		}
		ask.Close()
		out.Close()
		time.Sleep(time.Minute) // all that it has started ends
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
