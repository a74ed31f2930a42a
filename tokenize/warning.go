package tokenize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Warning says in one line what the files of the tokenizer say differently, and
// what is taken. It is "" if they agree.
func (t *Tokenizer) Warning() string { return t.warning }

// note adds a part to the warning.
func (f *folder) note(format string, arguments ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, arguments...))
}

const lowercase = "lowercase"

// settings are the parts of a tokenizer in words, by name.
type settings map[string]string

// inWords lists some settings, at most six.
func (s settings) inWords(names []string) string {
	const most = 6
	var words []string
	for _, name := range names {
		value, ok := s[name]
		if ok {
			words = append(words, strings.TrimSpace(name+" "+value))
		}
	}
	if len(words) > most {
		words = append(words[:most], fmt.Sprintf("%d more", len(words)-most))
	}
	return cmp.Or(strings.Join(words, ", "), "nothing of it")
}

// unlike returns the names, sorted, of the settings that other has not or has
// with another value, and of those that only other has.
func (s settings) unlike(other settings) []string {
	names := map[string]bool{}
	for name := range s {
		value, ok := other[name]
		names[name] = !ok || value != s[name]
	}
	for name := range other {
		_, ok := s[name]
		names[name] = names[name] || !ok
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return !names[name] })
}

// noteContradictions notes what tokenizer.json and tokenizer_config.json say
// otherwise than it is taken, by the class c, which may be nil. It returns false
// if all of tokenizer.json is taken.
func (f *folder) noteContradictions(c *class, file, taken *pipelineFile) (changed bool) {
	configured := f.configured.settings()
	says := file.settings()
	takes := taken.settings()
	names := says.unlike(takes)
	if f.source != tokenizerFile {
		return len(names) > 0
	}
	var ignored []string
	for _, name := range configured.unlike(takes) {
		_, told := takes[name]
		_, said := configured[name]
		if told && said {
			ignored = append(ignored, name)
		}
	}
	if len(ignored) > 0 {
		f.note("%s says %s, and %s %s: the second is taken, as by transformers 5.24", configurationFile,
			configured.inWords(ignored), tokenizerFile, takes.inWords(ignored))
	}
	if len(names) == 0 {
		return false
	}
	by := configurationFile
	if f.unconfigured {
		by = modelFile
	}
	if c != nil {
		by += ", read as " + c.name + ","
	}
	option := "--tokenizer-json of infill models import and pull takes the first"
	if slices.Contains(names, lowercase) && says[lowercase] != "" {
		reading := map[string]string{"true": "uncased", "false": "cased"}[says[lowercase]]
		option = fmt.Sprintf("--%s of infill models import and pull takes lowercase %s, --tokenizer-json all of the "+
			"first", reading, says[lowercase])
	}
	for _, name := range names {
		_, said := configured[name]
		if slices.Contains(sayable, name) && !said {
			takes[name] += " by default"
		}
	}
	f.note("%s says %s, and %s %s: the second is taken, as by transformers 5.24; %s", tokenizerFile,
		says.inWords(names), by, takes.inWords(names), option)
	return true
}

// sayable are the settings that tokenizer_config.json can say.
var sayable = []string{lowercase, "strip_accents", "handle_chinese_chars", "add_prefix_space"}

// settings returns what tokenizer_config.json says of the steps, and of the mask.
func (c *configuration) settings() settings {
	s := settings{}
	for i, value := range []*bool{c.LowerCase, c.StripAccents, c.TokenizeChinese, c.PrefixSpace} {
		if value != nil {
			s[sayable[i]] = fmt.Sprint(*value)
		}
	}
	if c.Mask.token != nil && c.Listed == nil {
		s.put(*c.Mask.token)
	}
	return s
}

// settings returns the model, the steps and the added tokens.
func (file *pipelineFile) settings() settings {
	s := settings{"tokens around a text": "of another kind"}
	if file.Model.Type == "WordPiece" {
		s["max_input_chars_per_word"] = fmt.Sprint(file.Model.longest())
		s["unk_token"] = file.Model.UnknownToken
	}
	if file.Normalizer.is("BertNormalizer") {
		o := file.Normalizer.options()
		for i, value := range []bool{!o.Cased, !o.KeepAccents, !o.JoinChinese} {
			s[sayable[i]] = fmt.Sprint(value)
		}
		s["clean_text"] = fmt.Sprint(!o.KeepControls)
	} else {
		s["normalizer"] = file.normalizerInWords()
	}
	if file.PreTokenizer.is("ByteLevel") {
		s["add_prefix_space"] = fmt.Sprint(isTrue(file.PreTokenizer.PrefixSpace))
	} else {
		s["pre_tokenizer"] = file.PreTokenizer.inWords()
	}
	first, last, err := surroundings(file.PostProcessor)
	if err == nil {
		s["tokens around a text"] = first + " " + last
	}
	for _, token := range file.Added {
		s.put(token)
	}
	return s
}

func (s settings) put(token added) {
	flags := ""
	if token.StripLeft {
		flags += "with lstrip "
	}
	if token.Normalized {
		flags += "normalized"
	}
	s[token.inWords()] = strings.TrimSpace(flags)
}

func (a *added) inWords() string { return fmt.Sprintf("the token %.40q", a.Content) }

// inWords returns a normalizer or a pre-tokenizer in words.
func (s *pipelineStep) inWords() string {
	return cmp.Or(strings.Join(s.words(), " + "), "none")
}

// normalizerInWords returns the normalizer's steps that change something.
func (file *pipelineFile) normalizerInWords() string {
	const plain = "NFKD + StripAccents + Lowercase"
	words := []string{file.Normalizer.inWords()}
	if strings.HasPrefix(file.PreTokenizer.inWords(), "WhitespaceSplit") {
		words = slices.DeleteFunc(file.Normalizer.words(), func(word string) bool {
			return word == `Replace " {2,}"` || word == fmt.Sprintf("Replace %q", gapPattern) ||
				strings.HasPrefix(word, "Strip ")
		})
	}
	return cmp.Or(strings.ReplaceAll(strings.Join(words, " + "), plain+" + "+plain, plain), "none")
}

// words returns a step in words, or each step of a sequence.
func (s *pipelineStep) words() (list []string) {
	if s == nil {
		return nil
	}
	switch s.Type {
	case "Sequence":
		for _, part := range slices.Concat(s.Normalizers, s.PreTokenizers) {
			list = append(list, part.words()...)
		}
		return list
	case "Precompiled":
		if len(s.CharacterMap) == 0 {
			return nil
		}
	case "Replace":
		pattern := cmp.Or(s.Pattern.String, s.Pattern.Regex)
		if pattern != nil {
			text := fmt.Sprintf("Replace %.40q", *pattern)
			if s.Content != " " {
				text += fmt.Sprintf(" by %.20q", s.Content)
			}
			return []string{text}
		}
	case "Strip":
		return []string{fmt.Sprintf("Strip %t %t", isTrue(s.StripLeft), isTrue(s.StripRight))}
	case "Metaspace":
		text := "Metaspace " + s.scheme()
		if !isTrue(s.Split) {
			text += " in one piece"
		}
		return []string{text}
	}
	return []string{s.Type}
}
