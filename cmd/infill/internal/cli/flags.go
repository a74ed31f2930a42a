package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/batch"
	"infill/internal/option"
	"infill/internal/phrase"
	"infill/internal/rawjson"
)

// AddChoice defines a flag whose value must be in valid. The default is *value.
func AddChoice(cmd *cobra.Command, value *string, name, shorthand string, valid []string, usage string) {
	o := option.Choice(valid)
	o.Name, o.Short, o.Help = name, shorthand, usage
	bind(cmd, o, reflect.ValueOf(value).Elem())
}

func offer(cmd *cobra.Command, name string, values []string) {
	complete(cmd, name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func complete(cmd *cobra.Command, name string, offer cobra.CompletionFunc) {
	err := cmd.RegisterFlagCompletionFunc(name, offer)
	if err != nil { // the flag does not exist or already has values, which is a bug in the program
		panic(err)
	}
}

// CompleteFiles makes the shell offer files for arguments. A command with
// subcommands needs it: by itself, the shell offers only these.
func CompleteFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completeParts offers values in lists by blank, as in 1=noun,verb.
func completeParts(values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (offers []cobra.Completion,
		directive cobra.ShellCompDirective) {
		at := strings.LastIndexAny(typed, "=, ") + 1
		for _, value := range values {
			if strings.HasPrefix(value, typed[at:]) {
				offers = append(offers, typed[:at]+value)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeList offers files after an @ in a list of words, as in 1=@words.txt.
func completeList(_ *cobra.Command, _ []string, typed string) (offers []cobra.Completion,
	directive cobra.ShellCompDirective) {
	directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	at := strings.LastIndex(typed, "@")
	if at < 0 || at > 0 && !strings.ContainsAny(typed[at-1:at], "=,") {
		return nil, directive
	}
	folder, begun := filepath.Split(typed[at+1:])
	entries, _ := os.ReadDir(cmp.Or(folder, ".")) // a folder that cannot be read offers nothing
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begun) || begun == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		offers = append(offers, typed[:at+1]+folder+name)
	}
	return offers, directive
}

// Bind defines a flag, by its value, for each field of *to that is an option.
func Bind(cmd *cobra.Command, to any) {
	v := reflect.ValueOf(to).Elem()
	for _, o := range option.Of(option.Owner{Zero: v.Interface()}).Options() {
		bind(cmd, o, o.Field(v))
	}
}

func bind(cmd *cobra.Command, o ask.Option, field reflect.Value) {
	f := boundFlag{o, field, new(bool)}
	help := o.Help
	if o.Word != "" {
		help = strings.Replace(help, o.Word, "`"+o.Word+"`", 1) // pflag expects the word in backquotes
	}
	if f.Type() == "NAME" {
		help += "; one of " + strings.Join(o.Values, ", ")
	}
	flag := cmd.Flags().VarPF(f, o.Name, o.Short, help)
	switch {
	case o.JSON == "boolean":
		flag.NoOptDefVal = "true"
	case o.Values != nil:
		offer(cmd, o.Name, o.Values)
	}
}

type boundFlag struct {
	option ask.Option
	field  reflect.Value
	used   *bool // whether the command line has the flag
}

var _ pflag.Value = boundFlag{}

// Set sets the field. A list gets the values of each use of the flag.
func (f boundFlag) Set(text string) error {
	g, err := f.option.Given(text)
	if err != nil {
		return err
	}
	value := reflect.ValueOf(g.Value())
	if *f.used && value.Kind() == reflect.Slice {
		value = reflect.AppendSlice(f.field, value)
	}
	*f.used = true
	f.field.Set(value)
	return nil
}

func (f boundFlag) String() string { return f.option.Of(f.field.Interface()).Text() }

// Type returns the word for the value in the usage text, as pflag does. A long list of values
// would push all descriptions to the right.
func (f boundFlag) Type() string {
	if f.option.Closed && f.option.JSON == "string" {
		list := "{" + strings.Join(f.option.Values, "|") + "}"
		if len(list) > 36 {
			return "NAME"
		}
		return list
	}
	switch f.field.Interface().(type) {
	case []string:
		return "stringSlice"
	case []int:
		return "intSlice"
	case time.Duration:
		return "duration"
	}
	return f.field.Kind().String()
}

// FlagError turns an error of the flag parser into a UsageError with words
// of this program. Its hint names the help that has the flag.
func FlagError(cmd *cobra.Command, err error) error {
	hint := "see " + cmd.CommandPath() + " --help"
	if !cmd.HasParent() {
		hint = optionsHelp // the help of the root command has no flags
	}
	if strings.HasPrefix(err.Error(), "unknown shorthand flag") {
		hint += "; put -- before a text that begins with a dash"
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f, _ := invalid.GetFlag().Value.(optionFlag)
		switch {
		case invalid.GetFlag().Name == "slot" || invalid.GetFlag().Name == "pos":
			hint = "see infill help templates"
		case f.fill:
			hint = optionsHelp
		}
		// The errors of the flags of this package complete this sentence.
		err = fmt.Errorf("--%s: %q is not %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	return &UsageError{err, hint}
}

const optionsHelp = "see infill help options"

type optionFlag struct {
	option  ask.Option
	fill    bool // whether it is one of ask.Options
	command *cobra.Command
	given   *[]ask.Given
	used    *bool // whether the command line has the flag
}

var _ pflag.Value = optionFlag{}

// Set adds the value to those given, or to those of earlier uses.
func (f optionFlag) Set(text string) error {
	if takesFiles(f.option) {
		var err error
		text, err = withFiles(f.command.Context(), text)
		if err != nil {
			return err
		}
	}
	g, err := f.option.Given(text)
	if err != nil {
		return err
	}
	earlier, again := ask.Last(*f.given, f.option.Name)
	if again && *f.used && f.option.Join != "" {
		both, ok := earlier.With(g)
		if !ok {
			return errors.New("the only list of its blank: put all its words into one, as in 1=red,blue")
		}
		g = both
	}
	*f.used = true
	*f.given = append(*f.given, g)
	return nil
}

func takesFiles(o ask.Option) bool { return o.Name == "slot" || o.Name == "ban" }

// fileInList is an @FILE in a list of words: a name in quotes, or one up to the next
// comma or the number of the next list.
var fileInList = regexp.MustCompile(`(^|[=,])@(?:"([^"]+)"|([^,"]+))`)

// nextList is the number of the next list behind a name.
var nextList = regexp.MustCompile(`\s+\d+\s*=`)

// withFiles replaces each @FILE in a list of words by the lines of that file.
func withFiles(ctx context.Context, list string) (text string, err error) {
	next := nextList.FindStringIndex(list)
	if next != nil {
		first, err := withFiles(ctx, list[:next[0]])
		if err != nil {
			return "", err
		}
		rest, err := withFiles(ctx, strings.TrimLeft(list[next[0]:], " \t\n"))
		return first + " " + rest, err
	}
	text = fileInList.ReplaceAllStringFunc(list, func(found string) string {
		before, name, _ := strings.Cut(found, "@")
		name = strings.Trim(strings.TrimSpace(name), `"`)
		words, wrong := ReadWords(ctx, name)
		if wrong != nil {
			err = fmt.Errorf("a list of words: %w", wrong)
			return found
		}
		if words == nil {
			err = fmt.Errorf("a list of words: %s has none", name)
			return found
		}
		quoted, _ := infill.Words(words).MarshalText() // never fails
		return before + string(quoted)
	})
	return text, err
}

func ReadWords(ctx context.Context, name string) (words []string, err error) {
	content, err := ReadText(ctx, name)
	if err != nil {
		return nil, err
	}
	lines := batch.NewReader(bytes.NewReader(content), "text", "word")
	for {
		record, err := lines.Next()
		if err == io.EOF {
			return words, nil
		}
		err = cmp.Or(err, record.Err)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if record.Blank {
			continue
		}
		word := strings.TrimSpace(rawjson.Plain(record.Object.Get("word")))
		if strings.Contains(word, "\t") {
			return nil, fmt.Errorf("%s: line %d has a tab in %q: write one word, or several as one, on a line",
				name, record.Line, word)
		}
		words = append(words, word)
	}
}

// String returns the default. A seed has none: the default seed is random.
func (f optionFlag) String() string {
	if f.given == nil || f.option.Name == "seed" {
		return ""
	}
	return f.option.Default
}

// Type returns "bool" for a switch, so that pflag shows no value for it.
func (f optionFlag) Type() string { return cmp.Or(f.option.Word, "bool") }

// AddOptions defines a flag for each option of a fill, or, if there are names,
// for the options with these names. The flags add to given.
func AddOptions(cmd *cobra.Command, given *[]ask.Given, names ...string) {
	addOptions(cmd, ask.Options(), true, given, names)
}

// AddOptionsOf does what AddOptions does, for the options of another request.
func AddOptionsOf(cmd *cobra.Command, set *option.Set, given *[]ask.Given, names ...string) {
	addOptions(cmd, set.Options(), false, given, names)
}

func addOptions(cmd *cobra.Command, options []ask.Option, fill bool, given *[]ask.Given, names []string) {
	shorthands := map[string]string{"samples": "n", "top": "k"}
	for _, option := range options {
		if names != nil && !slices.Contains(names, option.Name) {
			continue
		}
		flag := cmd.Flags().VarPF(optionFlag{option, fill, cmd, given, new(bool)}, option.Name,
			shorthands[option.Name], option.Help)
		if option.Word == "" {
			flag.NoOptDefVal = "true"
		}
		switch {
		case takesFiles(option):
			complete(cmd, option.Name, completeList)
		case option.Join != "" && option.Values != nil:
			complete(cmd, option.Name, completeParts(option.Values))
		case option.Values != nil && option.Word != "":
			offer(cmd, option.Name, option.Values)
		}
	}
}

// SplitFlags returns the flags of a command: options of a fill, and others.
func SplitFlags(cmd *cobra.Command) (options, others *pflag.FlagSet) {
	options = &pflag.FlagSet{SortFlags: false}
	others = &pflag.FlagSet{SortFlags: false}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		own, _ := f.Value.(optionFlag)
		if own.fill {
			options.AddFlag(f)
		} else {
			others.AddFlag(f)
		}
	})
	return options, others
}

func DrawSeed(given *[]ask.Given) {
	_, ok := ask.Last(*given, "seed")
	if ok {
		return
	}
	*given = append(*given, ask.MustGive("seed", fmt.Sprint(infill.NewSeed())))
}

// Texts converts values, of a type such as infill.Sampler, to strings.
func Texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// NoArguments does what cobra.NoArgs does, but returns a UsageError.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &UsageError{fmt.Errorf("unexpected argument %q", args[0]), "see " + cmd.CommandPath() + " --help"}
	}
	return nil
}

// OneArgument accepts one argument. An error ends as in "one file is read".
func OneArgument(what, hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return &UsageError{fmt.Errorf("%s given, %s", phrase.Counted(len(args), "argument"), what), hint}
		}
		return nil
	}
}

// List is a flag with texts between commas, but those in quotes; uses add up.
type List []string

var _ pflag.Value = (*List)(nil)

func (l *List) Set(text string) error {
	words, err := option.Split(text)
	if err != nil {
		return errors.New("a list of texts, such as red,dark blue")
	}
	*l = append(*l, words...)
	return nil
}

func (l *List) String() string { return option.Join(*l) }
func (l *List) Type() string   { return "strings" }

type Corpus struct{ Name, File string }

// CorpusList is a flag that collects corpora in the order of the command line.
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

func (l *CorpusList) String() string { return "" } // there is no default
func (l *CorpusList) Type() string   { return "NAME=FILE" }
