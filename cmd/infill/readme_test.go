package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"infill/cmd/infill/internal/terminal"
	"infill/internal/check"
)

// The README and the pages of docs are tests. The rules:
//
//   - A block, fenced or indented, that calls infill, as `infill` or `go run ./cmd/infill`, is
//     run, its commands one after the other by a shell in one new folder for the whole
//     page. Blocks that do not call it are not. The shell is a library, so that
//     infill is called in this process: .ci/first and the scripts start it as one.
//   - In a block with lines that begin with "$ " those are the commands, and the
//     lines below each are what it prints, standard error included; without any
//     the command has only to succeed. In a block without them every line is a
//     command that has to succeed. A line that ends in \ goes on in the next.
//   - An expected line "..." stands for any number of lines. Seconds, in text and
//     in JSON, stand for any. Numbers with a decimal point are compared as numbers,
//     whose last digit depends on the processor. Every other character counts.
//   - A line `<!-- not run: REASON -->` above a block leaves it out.
//
// With -update, expected lines that differ are written again. Around one "..."
// as many lines are kept as before; what has several is for you to write.
type readmeBlock struct {
	line     int // of the fence, from 1
	commands []readmeCommand
}

type readmeCommand struct {
	line   int
	text   string // for sh
	output string // "" to be only successful
}

var (
	calls  = regexp.MustCompile(`(^|[|;&(] *)(infill|go run \./cmd/infill)(\s|$)`)
	notRun = regexp.MustCompile(`^<!-- not run: .+ -->$`)
)

// parseReadme returns the blocks that are to be run.
func parseReadme(text string) (blocks []readmeBlock) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		start := i
		var inside []string
		const indent = "    "
		switch {
		case strings.HasPrefix(strings.TrimSpace(lines[i]), "```"):
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
				inside = append(inside, lines[i])
			}
		case strings.HasPrefix(lines[i], indent) && i > 0 && lines[i-1] == "":
			start-- // the block begins on the line itself
			for ; i < len(lines) && strings.HasPrefix(lines[i], indent); i++ {
				inside = append(inside, strings.TrimPrefix(lines[i], indent))
			}
			i--
		default:
			continue
		}
		above := start - 1
		for above >= 0 && strings.TrimSpace(lines[above]) == "" {
			above--
		}
		if above >= 0 && notRun.MatchString(strings.TrimSpace(lines[above])) {
			continue
		}
		if b := parseBlock(start+1, inside); b != nil {
			blocks = append(blocks, *b)
		}
	}
	return blocks
}

func parseBlock(fence int, lines []string) *readmeBlock {
	prompts, called := false, false
	for _, line := range lines {
		prompts = prompts || strings.HasPrefix(line, "$ ")
	}
	block := &readmeBlock{line: fence}
	for i := 0; i < len(lines); i++ {
		line, number := lines[i], fence+i+1
		command, isCommand := strings.CutPrefix(line, "$ ")
		if !prompts {
			isCommand = strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#")
		}
		if !isCommand {
			if n := len(block.commands); prompts && n > 0 {
				block.commands[n-1].output += line + "\n"
			}
			continue
		}
		for strings.HasSuffix(command, `\`) && i+1 < len(lines) {
			i++
			command += "\n" + lines[i]
		}
		called = called || calls.MatchString(command)
		block.commands = append(block.commands,
			readmeCommand{number, strings.ReplaceAll(command, "go run ./cmd/infill", "infill"), ""})
	}
	if !called {
		return nil
	}
	return block
}

// matches compares an output with what is expected of it.
func matches(want, got string) bool {
	return matchLines(slices.Collect(strings.Lines(untimed(want))), slices.Collect(strings.Lines(untimed(got))))
}

func matchLines(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "..." {
		return matchLines(want[1:], got) || len(got) > 0 && matchLines(want, got[1:])
	}
	return len(got) > 0 && check.SameNumbers(want[0], got[0]) && matchLines(want[1:], got[1:])
}

func TestReadme(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	for _, page := range append([]string{"../../README.md"}, pages...) {
		page, err := filepath.Abs(page)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := parseReadme(string(text))
		if len(blocks) == 0 && filepath.Base(page) == "README.md" {
			t.Fatal("the README has no block that calls infill")
		}
		folder := t.TempDir()
		for _, block := range blocks {
			t.Run(fmt.Sprintf("%s line %d", filepath.Base(page), block.line), func(t *testing.T) {
				t.Chdir(folder)
				block.run(t, page)
			})
		}
	}
}

// shortened returns the lines of got that want would show: all, or around the
// "..." of want as many as want has there.
func shortened(want, got string) string {
	shown, lines := strings.Split(want, "\n"), strings.Split(got, "\n")
	at := slices.Index(shown, "...")
	if at < 0 {
		return got
	}
	head := lines[:min(at, len(lines))]
	tail := lines[max(0, len(lines)-(len(shown)-1-at)):]
	return strings.Join(slices.Concat(head, []string{"..."}, tail), "\n")
}

// rewrite replaces an expectation of a page.
func rewrite(t *testing.T, page, old, new string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), old) != 1 {
		t.Errorf("%s: the lines are there %d times: write them by hand", page, strings.Count(string(text), old))
		return
	}
	err = os.WriteFile(page, []byte(strings.Replace(string(text), old, new, 1)), 0o644)
	if err != nil {
		t.Fatal(err)
	}
}

// run runs the commands of a block of a page in the folder of the test and
// compares what they print.
func (b readmeBlock) run(t *testing.T, page string) {
	for _, command := range b.commands {
		output, err := shell(t, command.text)
		want := strings.TrimRight(command.output, "\n")
		if err != nil && want == "" {
			t.Errorf("line %d: %s: %v\n%s", command.line, command.text, err, output)
		}
		got := strings.TrimRight(string(output), "\n")
		if want == "" || matches(want+"\n", got+"\n") {
			continue
		}
		if *update && strings.Count("\n"+want+"\n", "\n...\n") < 2 {
			rewrite(t, page, want, shortened(want, got))
		} else {
			t.Errorf("line %d: %s: %s", command.line, command.text, cmp.Diff(untimed(want), untimed(got)))
		}
	}
}

// shell runs a command of the shell, which calls Main as `infill`, and returns
// what it prints, standard error included.
func shell(t *testing.T, text string) (output []byte, err error) {
	t.Helper()
	program, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, err
	}
	// A file, as the commands of a pipe write at once.
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	infill := func(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
		return func(ctx context.Context, args []string) error {
			if args[0] != "infill" {
				return next(ctx, args)
			}
			with := interp.HandlerCtx(ctx)
			code := Main(ctx, &terminal.Streams{In: with.Stdin, Out: with.Stdout, Err: with.Stderr}, args[1:])
			if code != 0 {
				return interp.ExitStatus(code)
			}
			return nil
		}
	}
	runner, err := interp.New(interp.StdIO(strings.NewReader(""), file, file), interp.ExecHandlers(infill))
	if err != nil {
		t.Fatal(err)
	}
	err = runner.Run(t.Context(), program)
	output, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return output, err
}

// TestParseReadme tries the rules on a README of its own: a rule that overlooked
// blocks would make TestReadme prove nothing.
func TestParseReadme(t *testing.T) {
	fence := "```"
	text := strings.Join([]string{
		"# Title", "infill in a line is no block", "",
		fence + "sh", "# a comment", "go run ./cmd/infill \"a [MASK]\"", fence,
		fence, "git clone somewhere", fence,
		"<!-- not run: downloads much -->", "", fence + "console", "$ infill setup --cuda", fence,
		"", "    infill version", "", "<!-- not run: a reason -->", "", "    infill tui", "",
		"    infill: a message is no call", "",
		fence + "console", "$ printf 'a\\n' > t.txt", "$ infill --seed 1 \\", "    < t.txt", "out 1", "", "out 2",
		"$ cat t.txt | infill -q", fence,
	}, "\n")
	want := []readmeBlock{
		{4, []readmeCommand{{6, `infill "a [MASK]"`, ""}}},
		{16, []readmeCommand{{17, `infill version`, ""}}},
		{25, []readmeCommand{{26, `printf 'a\n' > t.txt`, ""},
			{27, "infill --seed 1 \\\n    < t.txt", "out 1\n\nout 2\n"}, {32, "cat t.txt | infill -q", ""}}},
	}
	if diff := cmp.Diff(want, parseReadme(text), cmp.AllowUnexported(readmeBlock{}, readmeCommand{})); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct {
		want, got string
		equal     bool
	}{
		{"a\n", "a\n", true},
		{"a\n", "b\n", false},
		{"a\n", "a\nb\n", false},
		{"x 0.42 s, seed 7\n", "x 1.05 s, seed 7\n", true},
		{"x 0.42 s, seed 7\n", "x 0.42 s, seed 8\n", false},
		{"\"seconds\": 0.5,\n", "\"seconds\": 1e-05,\n", true},
		{"-1.50 nats\n", "-1.51 nats\n", true},
		{"-1.50 nats\n", "-1.52 nats\n", false},
		{"a\n...\nc\n", "a\nb\nb\nc\n", true},
		{"a\n...\nc\n", "a\nb\n", false},
		{"...\n", "", true},
	} {
		if got := matches(test.want, test.got); got != test.equal {
			t.Errorf("%q against %q: %t", test.got, test.want, got)
		}
	}
}

// TestModelNames: names of the hub in the pages are full ones, which exist there.
func TestModelNames(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:models pull|infill -m|INFILL_MODEL=) *([A-Za-z0-9][\w./-]*)`)
	found := 0
	for _, page := range append([]string{"../../README.md"}, pages...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			name := match[1]
			if !strings.Contains(name, "/") && name != "small-uncased" && name != "NAME" && name != "FOLDER" {
				t.Errorf("%s: %s is no full name of a model", page, name)
			}
		}
	}
	if found < 5 {
		t.Errorf("the pages name %d models", found)
	}
}
