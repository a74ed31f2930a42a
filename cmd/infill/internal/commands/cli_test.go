package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/ask"
	"infill/internal/check"
	"infill/lm"
)

// bound is a struct whose fields become flags.
type bound struct {
	Ratio float64       `option:"ratio" minimum:"0" maximum:"1" help:"a share"`
	Sizes []int         `option:"sizes" help:"several sizes"`
	Wait  time.Duration `option:"wait" help:"a time"`
	Loud  bool          `option:"loud" help:"a switch"`
}

// flags returns a command that has a flag of each kind, and prints what they hold.
func flags(s *terminal.Streams) *cobra.Command {
	to := bound{Wait: time.Second, Sizes: []int{7}}
	var given []ask.Given
	var list cli.List
	var corpora cli.CorpusList
	kind := "short"
	var numbers struct {
		Number int    `option:"number" help:"a number"`
		Seed   uint64 `option:"seed" help:"a seed"`
	}
	cmd := &cobra.Command{Use: "flags", Args: cli.NoArguments, RunE: func(*cobra.Command, []string) error {
		fmt.Fprintf(s.Out, "%+v %q %v %s", to, []string(list), corpora.List, kind)
		for _, g := range given {
			fmt.Fprintf(s.Out, " %s=%s", g.Option.Name, g.Text())
		}
		return nil
	}}
	cli.Bind(cmd, &to)
	cli.AddOptions(cmd, &given, "slot", "ban", "pos", "top", "samples", "distinct")
	cmd.Flags().Var(&list, "list", "texts")
	cmd.Flags().Var(&corpora, "corpus", "corpora")
	cli.AddChoice(cmd, &kind, "kind", "", []string{"short", "long"}, "a choice")
	cli.Bind(cmd, &numbers)
	return cmd
}

// What a flag cannot be is said in words of the command line, with the help that has it.
func TestFlags(t *testing.T) {
	writeFiles(t, map[string]string{"words.txt": "red\n\n dark blue\n", "none.txt": "\n", "tab.txt": "a\tb\n"})
	const help = "\nhint: see infill flags --help\n"
	const templates = "\nhint: see infill help templates\n"
	const options = "\nhint: see infill help options\n"
	runCases(t, flags, []callCase{
		{Line: "flags x", Code: 2, Err: "infill: unexpected argument \"x\"" + help},
		{Line: "flags --nothing", Code: 2, Err: "infill: unknown flag: --nothing" + help},
		{Line: "flags -z", Code: 2,
			Err: "-z\nhint: see infill flags --help; put -- before a text that begins with a dash\n"},
		{Line: "flags --number x", Code: 2, Err: "infill: --number: \"x\" is not a whole number" + help},
		{Line: "flags --seed -1", Code: 2,
			Err: "infill: --seed: \"-1\" is not a whole number of 0 or more, below 2^64" + help},
		{Line: "flags --kind tall", Code: 2, Err: "infill: --kind: \"tall\" is not one of short, long" + help},
		{Line: "flags --ratio 2", Code: 2, Err: "infill: --ratio: \"2\" is not a number from 0 to 1" + help},
		{Line: "flags --sizes 2,x", Code: 2, Err: "infill: --sizes: \"2,x\" is not "},
		{Line: "flags --wait 5", Code: 2, Err: "infill: --wait: \"5\" is not a length of time, such as 90s or 5m" +
			help},
		{Line: "flags --top none", Code: 2, Err: "infill: --top: \"none\" is not a whole number from 1 to 65536" +
			options},
		{Line: "flags --pos thing", Code: 2, Err: "infill: --pos: \"thing\" is not a list of noun, " + "…" + templates},
		{Line: "flags --slot 1=", Code: 2, Err: "infill: --slot: \"1=\" is not " + "…" + templates},
		{Line: "flags --slot 1=red --slot 1=blue", Code: 2, Err: "infill: --slot: \"1=blue\" is not the only list " +
			"of its " +
			"blank: put all its words into one, as in 1=red,blue" + templates},
		{Line: "flags --slot @nowhere.txt", Code: 2, Err: "is not a list of words: open nowhere.txt: "},
		{Line: "flags --slot @none.txt", Code: 2, Err: "is not a list of words: none.txt has none" + templates},
		{Line: "flags --ban @tab.txt", Code: 2, Err: "is not a list of words: tab.txt: line 1 has a tab in " +
			"\"a\\tb\": write " +
			"one word, or several as one, on a line" + options},
		{Line: "flags --corpus a", Code: 2, Err: "infill: --corpus: \"a\" is not NAME=FILE" + help},
		{Line: "flags --corpus a=b --corpus a=c", Code: 2, Err: "is not a new name: \"a\" is given already" + help},
	})
	runCases(t, flags, []callCase{
		{Line: "flags", Out: "{Ratio:0 Sizes:[7] Wait:1s Loud:false} [] [] short"},
		{Line: "flags --ratio 0.5 --sizes 2 --sizes 3,4 --wait 2m --loud --kind long",
			Out: "{Ratio:0.5 Sizes:[2 3 4] Wait:2m0s Loud:true} [] [] long"},
		{Line: "flags --list a,b --list", Texts: []string{`"c,d"`}, Out: `["a" "b" "c,d"]`},
		{Line: "flags --corpus a=b --corpus c=d=e", Out: "[{a b} {c d=e}]"},
		{Line: "flags -k 3 -n 4 --distinct", Out: " top=3 samples=4 distinct=true"},
		{Line: "flags --slot 1=red --slot 2=@words.txt", Out: "slot=1=red slot=1=red 2=red,dark blue"},
		{Line: "flags --ban @words.txt,green", Out: " ban=red,dark blue,green"},
		{Line: "flags --ban red --ban blue", Out: " ban=red,blue"},
		{Line: "flags --slot", Texts: []string{`1=@"words.txt" 2=@words.txt`}, Out: " slot=1=red,dark blue 2=red,dark blue"},
	})
}

// The shell is offered values, lists by blank, and files in a list of words.
func TestCompletion(t *testing.T) {
	writeFiles(t, map[string]string{"words.txt": "", ".hidden": ""})
	check.OK(t, os.Mkdir("more", 0o755))
	for line, want := range map[string][]string{
		"--kind ": {"short", "long"}, "--pos 1=noun,v": {"1=noun,verb"}, "--slot 1=@": {"1=@more/", "1=@words.txt"},
		"--slot 1=@w": {"1=@words.txt"}, "--slot a@w": nil, "--ban red,@": {"red,@more/", "red,@words.txt"},
		"--ban @.h": {"@.hidden"}, "--slot red": nil,
	} {
		var out bytes.Buffer
		root := &cobra.Command{Use: "infill"}
		root.AddCommand(flags(&terminal.Streams{}))
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(append([]string{"__complete", "flags"}, strings.Split(line, " ")...))
		check.OK(t, root.Execute())
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		got = got[:len(got)-1] // the last line is the directive
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// The flags of a model are checked before it is opened.
func TestModelOptions(t *testing.T) {
	for want, o := range map[string]cli.ModelOptions{
		"--device: ": {Device: "tpu"},
		"--threads: -1 is not a whole number of 0":         {Threads: -1},
		"is more than four times the":                      {Threads: lm.MaxThreads() + 1},
		"--quiet and --verbose exclude each other: give o": {Quiet: true, Verbose: true},
	} {
		err := o.Validate()
		check.Says(t, err, want)
		if cli.Report(&bytes.Buffer{}, err) != cli.ExitUsage {
			t.Errorf("%v is no usage error", err)
		}
	}
	check.OK(t, (&cli.ModelOptions{Device: "cuda:1", Threads: lm.MaxThreads(), Quiet: true}).Validate())
	for jobs, wrong := range map[int]bool{0: true, 1: false, 4096: false, 4097: true} {
		if err := cli.CheckJobs(jobs); (err != nil) != wrong {
			t.Errorf("%d jobs: %v", jobs, err)
		}
	}
}

// A text has at most five warnings, and a count of the rest; --quiet has none.
func TestWarnOf(t *testing.T) {
	for number, want := range map[int]string{5: "infill: warning: line 3: w\n",
		7: "infill: warning: line 3: and 2 more; --format json lists all\n"} {
		var errs bytes.Buffer
		s := &terminal.Streams{Err: &errs}
		warnings := slices.Repeat([]string{"w"}, number)
		(&cli.ModelOptions{Quiet: true}).WarnOf(s, cli.Entry{Line: 3}, warnings, "")
		(&cli.ModelOptions{}).WarnOf(s, cli.Entry{Line: 3}, warnings, "")
		if strings.Count(errs.String(), "line 3: w\n") != 5 || !strings.HasSuffix(errs.String(), want) {
			t.Errorf("of %d: %s", number, errs.String())
		}
	}
}

// An argument is a file if there is one, or if it looks like one that is missing; behind
// -- it is a text.
func TestIsFile(t *testing.T) {
	writeFiles(t, map[string]string{"notes": "", "texts.csv": ""})
	check.OK(t, os.Mkdir("folder", 0o755))
	for argument, want := range map[string]bool{"notes": true, "texts.csv": true, "a text": false, "word": false,
		"I read notes.txt": false, "folder": false, "notes.csv\nof today.csv": false} {
		file, err := cli.IsFile(argument, false)
		check.OK(t, err)
		if file != want {
			t.Errorf("%s is a file: %t", argument, file)
		}
		file, err = cli.IsFile(argument, true)
		if file || err != nil {
			t.Errorf("%s is a file behind --: %v", argument, err)
		}
	}
	check.OK(t, os.Mkdir("folder.csv", 0o755))
	for argument, want := range map[string]string{"missing.csv": "there is no file missing.csv",
		"My notes.csv": "there is no file 'My notes.csv'", "a/my notes.txt": "there is no file 'a/my notes.txt'",
		"it's.txt": `there is no file 'it'\''s.txt'`, "folder.csv": "folder.csv is a folder"} {
		_, err := cli.IsFile(argument, false)
		check.Says(t, err, want)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || usage.Hint != "put -- before a text that looks like a path" {
			t.Errorf("%s: the hint of %v", argument, err)
		}
	}
}

// A file that a flag names is read up to 64 MB; standard input is kept in a file that is
// removed.
func TestFiles(t *testing.T) {
	writeFiles(t, map[string]string{"small": "words"})
	check.OK(t, os.WriteFile("large", nil, 0o600))
	check.OK(t, os.Truncate("large", 64<<20+1))
	content, err := cli.ReadText(t.Context(), "small")
	if err != nil || string(content) != "words" {
		t.Errorf("%q, %v", content, err)
	}
	_, err = cli.ReadText(t.Context(), "large")
	check.Says(t, err, "large: more than 67108864 bytes")
	check.OK(t, os.Truncate("large", 64<<20))
	_, err = cli.ReadText(t.Context(), "large")
	check.OK(t, err)
	_, err = cli.ReadText(t.Context(), "nowhere")
	check.Says(t, err, "open nowhere: ")
	path, remove, err := cli.Spool(strings.NewReader("lines"))
	check.OK(t, err)
	if kept := check.Must(os.ReadFile(path))(t); string(kept) != "lines" {
		t.Errorf("kept %q", kept)
	}
	check.OK(t, remove())
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is still there")
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{59900 * time.Millisecond: "59s", time.Minute: "1m00s",
		time.Hour:          "1h00m",
		3599 * time.Second: "59m59s", time.Hour + 5*time.Minute: "1h05m", 100 * time.Hour: "100h00m"} {
		if got := cli.RoundDuration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 1_000_000: "1.0 MB",
		1_500_000_000: "1.50 GB"} {
		if got := cli.BytesText(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// A long text is shown near its blanks, and its ends are cut between words.
func TestMark(t *testing.T) {
	long := strings.Repeat("word ", 100) + "[MASK]" + strings.Repeat(" word", 100)
	shown := cli.Mark(long, [][2]int{{500, 506}})
	before, after, _ := strings.Cut(ansi.Strip(shown), "[MASK]")
	for _, side := range []string{before, after} {
		words := strings.Fields(strings.Replace(side, "…", "", 1))
		if len(words) < 10 || len(words) > 12 || slices.ContainsFunc(words,
			func(w string) bool { return w != "word" }) {
			t.Errorf("beside the blank stands %q", side)
		}
	}
	if shown := cli.Mark(long, nil); shown != long {
		t.Errorf("a text without blanks is cut: %q", shown)
	}
	if shown := cli.Mark("a\r\nb\tc\rd", nil); shown != "a\nb c\nd" {
		t.Errorf("%q", shown)
	}
}

// A table keeps to the width: its text is wrapped, its numbers are not.
func TestTable(t *testing.T) {
	rows := [][]string{{"a text of several words that is long", "1.25"}, {"short", "10.5"}}
	if diff := cmp.Diff("  text                                  number\n  a text of several words that is long    "+
		"1.25\n"+
		"  short                                   10.5\n", cli.RenderTable(0, []string{"text", "number"}, rows,
		0)); diff != "" {
		t.Error(diff)
	}
	narrow := cli.RenderTable(30, []string{"text", "number"}, rows, 0)
	for line := range strings.Lines(narrow) {
		if len(line) > 31 {
			t.Errorf("%q is wider than 30 columns", line)
		}
	}
	if !strings.Contains(narrow, "1.25\n") {
		t.Errorf("a number is broken:\n%s", narrow)
	}
}

// texts returns a command that prints each text of its arguments or of standard input.
func texts(s *terminal.Streams) *cobra.Command {
	o := cli.InputOptions{Streams: s, Key: "text", Reads: func(key string) bool { return key == "known" }}
	var model cli.ModelOptions
	cmd := &cobra.Command{Use: "texts"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.Take(args, "give one"); err != nil {
			return err
		}
		read := func(e cli.Entry) (string, error) {
			switch e.Text {
			case "wrong":
				return "", &cli.MisfitError{Err: errors.New("it is wrong")}
			case "misused":
				return "", &cli.UsageError{Err: errors.New("it is misused"), Hint: "use it well"}
			}
			return e.Text, nil
		}
		return cli.Each(cmd.Context(), &o, &model, read, func() error {
			_, err := fmt.Fprint(s.Out,
				"end")
			return err
		},
			func(_ context.Context, _ cli.Entry, text string) (func() error, error) {
				if text == "unfit" {
					return nil, &cli.MisfitError{Err: errors.New("the model cannot take it")}
				}
				return func() error { _, err := fmt.Fprintln(s.Out, text); return err }, nil
			})
	}
	o.Register(cmd, "more")
	model.Register(cmd)
	return cmd
}

// A wrong argument ends the command before any work; a wrong line is reported with its
// number, and the others are done.
func TestTexts(t *testing.T) {
	runCases(t, texts, []callCase{
		{Line: "texts a b", Out: "a\nb\nend"},
		{Line: "texts -", In: "a\nb", Out: "a\nb\nend"},
		{Line: "texts", In: "a\n\n \nb\n", Out: "a\nb\nend",
			Err: "infill: warning: 2 blank lines of standard input passed over, the first is line 2\n"},
		{Line: "texts -q", In: "a\n\n", Out: "a\nend"},
		{Line: "texts", Code: 2, Err: "infill: no text on standard input\nhint: give one as an argument, or one a " +
			"line\n"},
		{Line: "texts", In: "\n", Code: 2, Err: "infill: warning: 1 blank line …infill: no text on standard input\n"},
		{Line: "texts wrong", Code: 2, Err: "infill: it is wrong\n"},
		{Line: "texts a wrong", Code: 2, Err: "infill: text 2: it is wrong\n"},
		{Line: "texts misused b", Code: 2, Err: "infill: text 1: it is misused\nhint: use it well\n"},
		{Line: "texts unfit", Code: 2, Err: "infill: the model cannot take it\n"},
		{Line: "texts", In: "unfit\nb\n", Code: 1, Out: "b\nend", Err: "infill: line 1: the model cannot take it\n"},
		{Line: "texts", In: "a\nwrong\nb\n", Code: 1, Out: "a\nb\nend", Err: "infill: line 2: it is wrong\n"},
		{Line: "texts --input jsonl", In: `{"text":"a","id":1,"known":2,"other":3}` + "\n" + `{"text":"b","other":4}` + "\n",
			Out: "a\nb\nend", Err: "infill: warning: line 1: the key \"other\" is not read\n"},
		{Line: "texts --input jsonl", In: "{\"text\":5}\n\"a\"\n{\"text\":\"c\"}", Code: 1, Out: "c\nend",
			Err: "infill: line 1: \"text\" is not a string…\ninfill: line 2: "},
		{Line: "texts --input xml", Code: 2, Err: "infill: --input: \"xml\" is not one of lines, jsonl\n"},
		{Line: "texts --format xml", Code: 2, Err: "infill: --format: \"xml\" is not one of text, json, jsonl, csv, " +
			"more\n"},
	})
	r := call(t, texts, terminal.Streams{InTerminal: true}, "texts")
	if r.Code != 2 || r.Err != "infill: no text: give one, or pipe texts to standard input\nhint: give one\n" {
		t.Errorf("of a terminal: %+v", r)
	}
	if r := call(t, texts, terminal.Streams{InTerminal: true}, "texts", "a"); r.Code != 0 {
		t.Errorf("of an argument at a terminal: %+v", r)
	}
}
