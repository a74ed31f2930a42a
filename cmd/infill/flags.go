package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/infill"
	"infill/infill/batch"
)

// The values below are pflag.Values whose errors complete the sentence
// `"x" is not ...`; flagError writes its beginning.

// choice is one of a list, which also goes into usage and completion.
type choice struct {
	value *string
	valid []string
}

var _ pflag.Value = choice{}

func (c choice) Set(text string) error {
	if !slices.Contains(c.valid, text) {
		return fmt.Errorf("one of %s", strings.Join(c.valid, ", "))
	}
	*c.value = text
	return nil
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type is what stands for the value in the usage text, where a long list would
// push the descriptions of all flags to the right.
func (c choice) Type() string {
	if list := "{" + strings.Join(c.valid, "|") + "}"; len(list) <= 36 {
		return list
	}
	return "NAME"
}

// addChoice defines an enumerated flag. Its default is what value holds.
func addChoice(cmd *cobra.Command, value *string, name, shorthand string, valid []string, usage string) {
	if c := (choice{value, valid}); c.Type() == "NAME" {
		usage += "; one of " + strings.Join(valid, ", ")
	}
	cmd.Flags().VarP(choice{value, valid}, name, shorthand, usage)
	complete(cmd, name, valid)
}

// complete makes the shell offer the values of a flag.
func complete(cmd *cobra.Command, name string, values []string) {
	// The error is for a flag that does not exist or has its values already,
	// which is a slip in the program.
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// whole is a whole number. Its range is the business of who takes the options.
type whole struct{ value *int }

var _ pflag.Value = whole{}

func (w whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("a whole number")
	}
	*w.value = n
	return nil
}

func (w whole) String() string {
	if w.value == nil {
		return ""
	}
	return strconv.Itoa(*w.value)
}

func (w whole) Type() string { return "N" }

// decimal is a number; word, when not "", stands for the value 0.
type decimal struct {
	value *float64
	word  string
	kind  string // in the usage text
}

var _ pflag.Value = decimal{}

func (d decimal) Set(text string) error {
	if d.word != "" && text == d.word {
		*d.value = 0
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && d.word != "":
		return fmt.Errorf("a number or %s", d.word)
	case err != nil:
		return errors.New("a number")
	case d.word != "" && x == 0:
		// 0 is how the word is kept, and must not pass for it.
		return fmt.Errorf("a number above 0, or %s", d.word)
	}
	*d.value = x
	return nil
}

func (d decimal) String() string {
	switch {
	case d.value == nil:
		return ""
	case d.word != "" && *d.value == 0:
		return d.word
	}
	return strconv.FormatFloat(*d.value, 'g', -1, 64)
}

func (d decimal) Type() string { return d.kind }

// seed is a number of 64 bits and whether it was given.
type seed struct {
	value *uint64
	given *bool
}

var _ pflag.Value = seed{}

func (s seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("a whole number of 0 or more, below 2^64")
	}
	*s.value, *s.given = n, true
	return nil
}

// String is empty: the default is drawn.
func (s seed) String() string { return "" }
func (s seed) Type() string   { return "N" }

// shardFlag is a part of a run. An empty value, as of a variable that is not set, is not the whole run.
type shardFlag struct{ *batch.Shard }

var _ pflag.Value = shardFlag{}

func (f shardFlag) Set(text string) error {
	if text == "" {
		return errors.New("I/N, the number of this part from 1 and that of all; for the whole run leave the flag out")
	}
	return f.UnmarshalText([]byte(text))
}

func (f shardFlag) String() string {
	if f.Shard == nil {
		return ""
	}
	return f.Shard.String()
}

func (shardFlag) Type() string { return "I/N" }

// device is where a model runs.
type device struct{ value *string }

var _ pflag.Value = device{}

// devices are the values that completion offers; cuda:N is one more.
func devices() []string { return []string{"auto", "cpu", "cuda", "openvino", "openvino:gpu"} }

func (d device) Set(text string) error {
	if !slices.Contains(devices(), text) {
		number, ok := strings.CutPrefix(text, "cuda:")
		if n, err := strconv.Atoi(number); !ok || err != nil || n < 0 || number[0] == '+' {
			return errors.New("one of auto, cpu, cuda, cuda:N with the number of a GPU, openvino, openvino:gpu")
		}
	}
	*d.value = text
	return nil
}

func (d device) String() string {
	if d.value == nil {
		return ""
	}
	return *d.value
}

func (d device) Type() string { return "{auto|cpu|cuda[:N]|openvino|openvino:gpu}" }

// optionFlag is an option of [infill.Table].
type optionFlag struct {
	infill.Option
	command *cobra.Command
	options *infill.Options
	given   *bool
}

var _ pflag.Value = optionFlag{}

// Set adds to what earlier uses of the flag have given, where it takes several.
func (f optionFlag) Set(text string) error {
	if *f.given && f.Join != "" {
		text = f.Get(f.options) + f.Join + text
	}
	*f.given = true
	if f.Name == "slot" || f.Name == "ban" {
		var err error
		if text, err = withFiles(f.command.Context(), text); err != nil {
			return err
		}
	}
	return f.Option.Set(f.options, text)
}

var fileInList = regexp.MustCompile(`(^|[=,])@([^,\s]+)`)

// withFiles puts the lines of a file in the place of @FILE in a list of words.
func withFiles(ctx context.Context, list string) (text string, err error) {
	text = fileInList.ReplaceAllStringFunc(list, func(found string) string {
		before, name, _ := strings.Cut(found, "@")
		content, wrong := readFile(ctx, name)
		if wrong != nil {
			err = fmt.Errorf("a list of words: %w", wrong)
			return found
		}
		var words []string
		for line := range strings.Lines(string(content)) {
			if word := strings.TrimSpace(line); word != "" {
				words = append(words, word)
			}
		}
		return before + strings.Join(words, ",")
	})
	return text, err
}

// String is empty for a seed, whose default is drawn.
func (f optionFlag) String() string {
	if f.options == nil || f.Name == "seed" {
		return ""
	}
	return f.Get(f.options)
}

// Type is "bool" for a switch, which pflag then writes without a value.
func (f optionFlag) Type() string { return cmp.Or(f.Kind, "bool") }

// addOptions defines a flag for each option of a fill, or for those that are named.
func addOptions(cmd *cobra.Command, o *infill.Options, names ...string) {
	shorthands := map[string]string{"samples": "n", "top": "k"}
	for _, option := range infill.Table() {
		if names != nil && !slices.Contains(names, option.Name) {
			continue
		}
		usage := option.Help
		if option.Closed && option.Kind == "NAME" {
			usage += "; one of " + strings.Join(option.Values, ", ")
		}
		flag := cmd.Flags().VarPF(optionFlag{option, cmd, o, new(bool)}, option.Name, shorthands[option.Name], usage)
		if option.Kind == "" {
			flag.NoOptDefVal = "true"
		}
		if option.Values != nil && option.Kind != "" {
			complete(cmd, option.Name, option.Values)
		}
	}
}

// texts turns a list of named strings into strings.
func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// namedFile is NAME=FILE.
type namedFile struct{ name, file string }

// named gathers them, in the order given.
type named struct{ list []namedFile }

func (n *named) Set(text string) error {
	name, file, ok := strings.Cut(text, "=")
	if !ok || name == "" || file == "" {
		return errors.New("NAME=FILE")
	}
	if slices.ContainsFunc(n.list, func(f namedFile) bool { return f.name == name }) {
		return fmt.Errorf("a new name: %q is given already", name)
	}
	n.list = append(n.list, namedFile{name, file})
	return nil
}

// String is empty: there is no default.
func (n *named) String() string { return "" }

func (n *named) Type() string { return "NAME=FILE" }

// noArguments is cobra.NoArgs with an error of the program's own form.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("unexpected argument %q", args[0]), "see " + cmd.CommandPath() + " --help"}
	}
	return nil
}

// group puts flags into groups of the help, which come in the order given. A group is
// its title and the names of its flags.
func group(cmd *cobra.Command, groups ...[]string) {
	for i, group := range groups {
		for _, name := range group[1:] {
			// An error is a flag that does not exist: a slip in the program, as in complete.
			if err := cmd.Flags().SetAnnotation(name, groupOf, []string{strconv.Itoa(i), group[0]}); err != nil {
				panic(err)
			}
		}
	}
}

// groupOf is the annotation of a flag that names its group in the help.
const groupOf = "infill_group"
