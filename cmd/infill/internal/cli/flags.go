package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/infill"
)

// The values below are pflag.Values whose errors complete the sentence
// `"x" is not ...`; FlagError writes its beginning.

// choice is the value of a flag that takes one of a list. Usage and completion show the list.
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

// Type names the value in the usage text, where a long list would push the descriptions of all flags to the right.
func (c choice) Type() string {
	if list := "{" + strings.Join(c.valid, "|") + "}"; len(list) <= 36 {
		return list
	}
	return "NAME"
}

// AddChoice defines a flag that takes one of a list. Its default is the present value.
func AddChoice(cmd *cobra.Command, value *string, name, shorthand string, valid []string, usage string) {
	if c := (choice{value, valid}); c.Type() == "NAME" {
		usage += "; one of " + strings.Join(valid, ", ")
	}
	cmd.Flags().VarP(choice{value, valid}, name, shorthand, usage)
	Complete(cmd, name, valid)
}

// Complete makes the shell offer the values of a flag.
func Complete(cmd *cobra.Command, name string, values []string) {
	// The error is for a flag that does not exist or has its values already, which is a bug in the program.
	if err := cmd.RegisterFlagCompletionFunc(name,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// Bind defines a flag for each field of a struct with the tags flag, the flag's name, and help. The default is the
// field's value. Other tags are short, a letter; value, the word of the help that names the value; and choices, a list.
func Bind(cmd *cobra.Command, to any) {
	flags, v := cmd.Flags(), reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, short, help := tag.Get("flag"), tag.Get("short"), tag.Get("help")
		if name == "" {
			continue
		}
		if word := tag.Get("value"); word != "" {
			help = strings.Replace(help, word, "`"+word+"`", 1) // as pflag wants it
		}
		switch p := v.Field(i).Addr().Interface().(type) {
		case *bool:
			flags.BoolVarP(p, name, short, *p, help)
		case *int:
			flags.IntVarP(p, name, short, *p, help)
		case *int64:
			flags.Int64VarP(p, name, short, *p, help)
		case *uint64:
			flags.Uint64VarP(p, name, short, *p, help)
		case *float64:
			flags.Float64VarP(p, name, short, *p, help)
		case *time.Duration:
			flags.DurationVarP(p, name, short, *p, help)
		case *string:
			if choices := tag.Get("choices"); choices != "" {
				AddChoice(cmd, p, name, short, strings.Split(choices, ","), help)
				continue
			}
			flags.StringVarP(p, name, short, *p, help)
		case *[]int:
			flags.IntSliceVarP(p, name, short, *p, help)
		case *[]string:
			flags.StringSliceVarP(p, name, short, *p, help)
		default:
			panic(name + " has a type without a flag") // a bug in the program, as in Complete
		}
	}
}

// kinds describe pflag's own types of values, for errors.
var kinds = map[string]string{"int": "a whole number", "int64": "a whole number", "float64": "a number",
	"uint64":   "a whole number of 0 or more, below 2^64",
	"intSlice": "a list of whole numbers, such as 2,3", "duration": "a length of time, such as 90s or 5m"}

// FlagError gives an error of the flag parser the form of this program's errors.
func FlagError(command string, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		wrong := invalid.Unwrap()
		if is := kinds[invalid.GetFlag().Value.Type()]; is != "" {
			wrong = errors.New(is)
		}
		err = fmt.Errorf("--%s: %q is not %w", invalid.GetFlag().Name, invalid.GetValue(), wrong)
	}
	return &UsageError{err, "see " + command + " --help"}
}

// optionFlag is an option of [infill.Table].
type optionFlag struct {
	infill.Option
	command *cobra.Command
	options *infill.Options
	given   *bool
}

var _ pflag.Value = optionFlag{}

// Set sets the value. If the flag takes several, it adds to the values of earlier uses of the flag.
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
			word := strings.TrimSpace(line)
			if strings.Contains(word, "\t") {
				err = fmt.Errorf("a list of words: %s has a tab in %q: write one word, or several as one, on a line",
					name, word)
			}
			if strings.ContainsAny(word, `",`) {
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

// OptionUsages returns the usages of a command's flags: of the options of a fill, and of all others.
func OptionUsages(cmd *cobra.Command) (options, others string) {
	var sets [2]pflag.FlagSet
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		i := 1
		if _, ok := f.Value.(optionFlag); ok {
			i = 0
		}
		sets[i].SortFlags = false
		sets[i].AddFlag(f)
	})
	return sets[0].FlagUsagesWrapped(100), sets[1].FlagUsagesWrapped(100)
}

// DrawSeed draws the seed of a command without --seed.
func DrawSeed(cmd *cobra.Command, o *infill.Options) (err error) {
	if !cmd.Flags().Changed("seed") {
		o.Seed, err = infill.NewSeed()
	}
	return err
}

// Texts turns a list of named strings into strings.
func Texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// NoArguments is cobra.NoArgs with an error of the program's own form.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &UsageError{fmt.Errorf("unexpected argument %q", args[0]), "see " + cmd.CommandPath() + " --help"}
	}
	return nil
}

// OneArgument returns an error unless there is one argument. what says the use of it, as in "one file is read".
func OneArgument(what, hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return &UsageError{fmt.Errorf("%s given, %s", Counted(len(args), "argument"), what), hint}
		}
		return nil
	}
}

// Corpus is a text that the command line names as NAME=FILE.
type Corpus struct{ Name, File string }

// CorpusList gathers corpora, in the order of the command line.
type CorpusList struct{ List []Corpus }

var _ pflag.Value = (*CorpusList)(nil)

func (l *CorpusList) Set(text string) error {
	name, file, ok := strings.Cut(text, "=")
	if !ok || name == "" || file == "" {
		return errors.New("NAME=FILE")
	}
	if slices.ContainsFunc(l.List, func(c Corpus) bool { return c.Name == name }) {
		return fmt.Errorf("a new name: %q is given already", name)
	}
	l.List = append(l.List, Corpus{name, file})
	return nil
}

// String is empty: there is no default.
func (l *CorpusList) String() string { return "" }

func (l *CorpusList) Type() string { return "NAME=FILE" }
