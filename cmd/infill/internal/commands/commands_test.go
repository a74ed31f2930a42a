// Package commands tests the commands, which it calls with streams in memory
// and a model that is a formula. One program for all is linked sooner than
// one for each.
package commands

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

// useFormula has commands open a model that is a formula, over a few words, for as
// long as the test runs. It takes any name but "nowhere".
func useFormula(t testing.TB) {
	t.Helper()
	tokenizer, err := lmtest.Tokenizer(strings.Fields(words))
	if err != nil {
		t.Fatal(err)
	}
	useModel(t, tokenizer)
}

// useModel does what useFormula does, for a tokenizer of the test.
func useModel(t testing.TB, tokenizer *tokenize.Tokenizer) {
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

// A callResult is what came of a call: the exit code, standard output and standard
// error.
type callResult struct {
	Code     int
	Out, Err string
}

// call calls a command as the program does, with arguments that begin with its
// name. s.Out and s.Err are set; without s.In, standard input is empty.
func call(t testing.TB, command func(*terminal.Streams) *cobra.Command, s terminal.Streams, args ...string) callResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a server that should refuse would wait for ever
	defer cancel()
	return callContext(ctx, command, s, args...)
}

// callContext does what call does, until ctx ends.
func callContext(ctx context.Context, command func(*terminal.Streams) *cobra.Command, s terminal.Streams,
	args ...string) callResult {
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
	return callResult{code, out.String(), errs.String()}
}

// A callCase is a call and what is wanted of it.
type callCase struct {
	Line  string   // the arguments, with spaces between them
	Texts []string // further arguments, which may hold spaces
	In    string
	Code  int
	// Out and Err are parts of standard output and standard error, in the order in
	// which they stand, with "…" between them. "" is an empty output.
	Out, Err string
}

// runCases runs cases, each in a test of its own.
func runCases(t *testing.T, command func(*terminal.Streams) *cobra.Command, cases []callCase) {
	t.Helper()
	for _, c := range cases {
		args := append(strings.Fields(c.Line), c.Texts...)
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Helper()
			r := call(t, command, terminal.Streams{In: strings.NewReader(c.In)}, args...)
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

// writeFiles writes files, content by name, into a folder that becomes the
// test's working folder.
func writeFiles(t testing.TB, files map[string]string) {
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
