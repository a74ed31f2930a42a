package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

// AddChoice defines an enumerated flag. Its default is what value holds.
func AddChoice(cmd *cobra.Command, value *string, name, shorthand string, valid []string, usage string) {
	if c := (choice{value, valid}); c.Type() == "NAME" {
		usage += "; one of " + strings.Join(valid, ", ")
	}
	cmd.Flags().VarP(choice{value, valid}, name, shorthand, usage)
	Complete(cmd, name, valid)
}

// Complete makes the shell offer the values of a flag.
func Complete(cmd *cobra.Command, name string, values []string) {
	// The error is for a flag that does not exist or has its values already,
	// which is a bug in the program.
	if err := cmd.RegisterFlagCompletionFunc(name,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// A Number is a flag whose range is the business of who takes the options.
type Number[T int | uint64 | float64] struct {
	Value *T
	Kind  string // in the usage text; "" is N
}

// Whole, Decimal and Seed are the kinds of numbers.
type (
	Whole   = Number[int]
	Decimal = Number[float64]
	Seed    = Number[uint64]
)

var _ pflag.Value = Whole{}

func (n Number[T]) Set(text string) error {
	switch value := any(n.Value).(type) {
	case *int:
		whole, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("a whole number")
		}
		*value = whole
	case *uint64:
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errors.New("a whole number of 0 or more, below 2^64")
		}
		*value = seed
	case *float64:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("a number")
		}
		*value = number
	}
	return nil
}

func (n Number[T]) String() string {
	if n.Value == nil {
		return ""
	}
	return fmt.Sprint(*n.Value)
}

func (n Number[T]) Type() string { return cmp.Or(n.Kind, "N") }

// ShardFlag is a part of a run. An empty value, as of a variable that is not set, is not the whole run.
type ShardFlag struct{ *batch.Shard }

var _ pflag.Value = ShardFlag{}

func (f ShardFlag) Set(text string) error {
	if text == "" {
		return errors.New("I/N, the number of this part from 1 and that of all; for the whole run leave the flag out")
	}
	return f.UnmarshalText([]byte(text))
}

func (f ShardFlag) String() string {
	if f.Shard == nil {
		return ""
	}
	return f.Shard.String()
}

func (ShardFlag) Type() string { return "I/N" }

// device is where a model runs.
type device struct{ value *string }

var _ pflag.Value = device{}

// Devices are the values that completion offers; cuda:N is one more.
func Devices() []string { return []string{"auto", "cpu", "cuda"} }

func (d device) Set(text string) error {
	if !slices.Contains(Devices(), text) {
		number, ok := strings.CutPrefix(text, "cuda:")
		if n, err := strconv.Atoi(number); !ok || err != nil || n < 0 || number[0] == '+' {
			return errors.New("one of auto, cpu, cuda, or cuda:N with the number of a GPU")
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

func (d device) Type() string { return "{auto|cpu|cuda[:N]}" }

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
	own := text
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
	err := f.Option.Set(f.options, text)
	if err != nil && text != own && f.Option.Set(new(infill.Options), own) == nil {
		return errors.New("the only list of its blank: put all its words into one, as in 1=red,blue")
	}
	return err
}

var fileInList = regexp.MustCompile(`(^|[=,])@([^,\s]+)`)

// withFiles replaces @FILE in a list of words by the lines of the file.
func withFiles(ctx context.Context, list string) (text string, err error) {
	text = fileInList.ReplaceAllStringFunc(list, func(found string) string {
		before, name, _ := strings.Cut(found, "@")
		content, wrong := ReadFile(ctx, name)
		if wrong != nil {
			err = fmt.Errorf("a list of words: %w", wrong)
			return found
		}
		var words []string
		for line := range strings.Lines(string(content)) {
			if word := strings.TrimSpace(line); strings.ContainsAny(word, `",`) {
				words = append(words, `"`+strings.ReplaceAll(word, `"`, `""`)+`"`)
			} else if word != "" {
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

// AddOptions defines a flag for each option of a fill, or for those that are named.
func AddOptions(cmd *cobra.Command, o *infill.Options, names ...string) {
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
			Complete(cmd, option.Name, option.Values)
		}
	}
}

// Texts turns a list of named strings into strings.
func Texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// NamedFile is NAME=FILE.
type NamedFile struct{ Name, File string }

// Named gathers them, in the order given.
type Named struct{ List []NamedFile }

func (n *Named) Set(text string) error {
	name, file, ok := strings.Cut(text, "=")
	if !ok || name == "" || file == "" {
		return errors.New("NAME=FILE")
	}
	if slices.ContainsFunc(n.List, func(f NamedFile) bool { return f.Name == name }) {
		return fmt.Errorf("a new name: %q is given already", name)
	}
	n.List = append(n.List, NamedFile{name, file})
	return nil
}

// String is empty: there is no default.
func (n *Named) String() string { return "" }

func (n *Named) Type() string { return "NAME=FILE" }

// NoArguments is cobra.NoArgs with an error of the program's own form.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &UsageError{fmt.Errorf("unexpected argument %q", args[0]), "see " + cmd.CommandPath() + " --help"}
	}
	return nil
}

// OneArgument refuses any number of arguments but one. what says what that is for, as in "one
// file is read".
func OneArgument(what, hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return &UsageError{fmt.Errorf("%s given, %s", Counted(len(args), "argument"), what), hint}
		}
		return nil
	}
}

// MatterFirst is the title of the flags that a short help shows.
const MatterFirst = "The flags that matter first"

// Group puts flags into groups of the help, which come in the order given. A group is
// its title and the names of its flags. A short help shows the first group alone.
func Group(cmd *cobra.Command, groups ...[]string) {
	for i, group := range groups {
		for _, name := range group[1:] {
			// An error is a flag that does not exist: a bug in the program, as in complete.
			if err := cmd.Flags().SetAnnotation(name, GroupOf, []string{strconv.Itoa(i), group[0]}); err != nil {
				panic(err)
			}
		}
	}
}

// GroupOf is the annotation of a flag that names its group in the help.
const GroupOf = "infill_group"

// ByCorpus is a choice for all corpora, the first of the choices where none is
// given, and others for those that are named: VALUE or NAME=VALUE, also several
// with commas between them.
type ByCorpus struct {
	Choices []string
	What    string // the word for a value in the help
	all     string
	named   map[string]string
}

var _ pflag.Value = (*ByCorpus)(nil)

func (b *ByCorpus) Set(text string) error {
	for _, part := range strings.Split(text, ",") {
		name, value, named := strings.Cut(part, "=")
		if !named {
			name, value = "", part
		}
		if !slices.Contains(b.Choices, value) || named && name == "" {
			return fmt.Errorf("one of %s, or NAME=%s", strings.Join(b.Choices, ", "), b.What)
		}
		if !named {
			b.all = value
			continue
		}
		if b.named == nil {
			b.named = map[string]string{}
		}
		b.named[name] = value
	}
	return nil
}

// Of is the value for a corpus.
func (b *ByCorpus) Of(name string) string {
	if value, ok := b.named[name]; ok {
		return value
	}
	return cmp.Or(b.all, b.Choices[0])
}

// Names lists the corpora that have a value of their own.
func (b *ByCorpus) Names() []string { return slices.Sorted(maps.Keys(b.named)) }

func (b *ByCorpus) String() string {
	if b == nil || len(b.Choices) == 0 {
		return ""
	}
	list := []string{b.Of("")}
	for _, name := range b.Names() {
		list = append(list, name+"="+b.named[name])
	}
	return strings.Join(list, ",")
}

func (b *ByCorpus) Type() string { return "[NAME=]" + b.What }
