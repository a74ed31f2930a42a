// Package clitest calls a command beside which a test lies, with streams in
// memory and a model that is a formula.
package clitest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/lmtest"
	"infill/tokenize"
)

// words are the vocabulary of the model behind its special tokens.
const words = `[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog mat sea boat house river garden sat ran slept came was is
	old big small red on in by and he she it un ##seen ##known . , ! ? ( ) " ' - >`

// Model has commands open a model that is a formula, over a few words, for as
// long as the test runs. It takes any name but "nowhere".
func Model(t testing.TB) {
	t.Helper()
	tokenizer, err := lmtest.Tokenizer(strings.Fields(words))
	if err != nil {
		t.Fatal(err)
	}
	ModelOf(t, tokenizer)
}

// ModelOf does what Model does, for a tokenizer of the test.
func ModelOf(t testing.TB, tokenizer *tokenize.Tokenizer) {
	t.Helper()
	before := cli.OpenModel
	t.Cleanup(func() { cli.OpenModel = before })
	cli.OpenModel = func(o infill.OpenOptions) (*infill.Filler, error) {
		if o.Model == "nowhere" {
			return nil, errors.New("model nowhere: not in the cache")
		}
		model := lmtest.New(tokenizer.VocabularySize(), 64)
		model.Info.Name = cmp.Or(o.Model, "formula")
		model.Bond = 4 // some words are a thousand times likelier than others
		if o.Model == "other" {
			model.Bond = 2
		}
		f := infill.New(model, tokenizer)
		o.Loaded(f.Model())
		return f, nil
	}
}

// A Result is what came of a call: the exit code, standard output and standard
// error.
type Result struct {
	Code     int
	Out, Err string
}

// Call calls a command as the program does, with arguments that begin with its
// name. s.Out and s.Err are set; without s.In, standard input is empty.
func Call(t testing.TB, command func(*terminal.Streams) *cobra.Command, s terminal.Streams, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a server that should refuse would wait for ever
	defer cancel()
	return CallContext(ctx, command, s, args...)
}

// CallContext does what Call does, until ctx ends.
func CallContext(ctx context.Context, command func(*terminal.Streams) *cobra.Command, s terminal.Streams,
	args ...string) Result {
	var out, errs bytes.Buffer
	s.Out = &out
	s.Err = &errs
	if s.In == nil {
		s.In = strings.NewReader("")
	}
	root := &cobra.Command{Use: "infill", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetOut(io.Discard)
	root.AddCommand(command(&s))
	root.SetArgs(args)
	code := cli.Report(s.Err, root.ExecuteContext(ctx))
	return Result{code, out.String(), errs.String()}
}

// A Case is a call and what is wanted of it.
type Case struct {
	Line  string   // the arguments, with spaces between them
	Texts []string // further arguments, which may hold spaces
	In    string
	Code  int
	// Out and Err are parts of standard output and standard error, in the order in
	// which they stand, with "…" between them. "" is an empty output.
	Out, Err string
}

// Run runs cases, each in a test of its own.
func Run(t *testing.T, command func(*terminal.Streams) *cobra.Command, cases []Case) {
	t.Helper()
	for _, c := range cases {
		args := append(strings.Fields(c.Line), c.Texts...)
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Helper()
			r := Call(t, command, terminal.Streams{In: strings.NewReader(c.In)}, args...)
			if r.Code != c.Code || !holds(r.Out, c.Out) || !holds(r.Err, c.Err) {
				t.Errorf("exit code %d, want %d\nstandard output %q\nwant %q\nstandard error %q\nwant %q", r.Code,
					c.Code,
					r.Out, c.Out, r.Err, c.Err)
			}
		})
	}
}

// holds reports whether a text has the parts of want, one behind the other.
func holds(text, want string) bool {
	if want == "" {
		return text == ""
	}
	for part := range strings.SplitSeq(want, "…") {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// Write writes files, content by name, into a folder that becomes the
// test's working folder.
func Write(t testing.TB, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}
