package tokenize

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (f *folder) wordPiece() (file pipelineFile, err error) {
	c := &f.configured
	if !isTrue(c.BasicTokenize) {
		return file, fileFault(configurationFile, errUnsupported, "do_basic_tokenize false")
	}
	for _, word := range c.NeverSplit {
		if !slices.Contains(bertTokens, word) {
			return file, fileFault(configurationFile, errUnsupported, "never_split word %q", word)
		}
	}
	file.Model.Type = "WordPiece"
	file.Model.list, err = parseVocabulary(string(f.content))
	return file, err
}

// parseVocabulary returns the tokens of vocab.txt, one a line, from id 0. As in
// the reference, white space after one is no part of it.
func parseVocabulary(content string) ([]string, error) {
	fault := func(fault Fault, line int, format string, arguments ...any) error {
		return fileFault(fmt.Sprintf("%s line %d", vocabularyFile, line), fault, format, arguments...)
	}
	content = strings.TrimSuffix(content, "\n")
	content = strings.TrimSuffix(content, "\r")
	if content == "" {
		return nil, fileFault(vocabularyFile, errEmptyVocabulary, "")
	}
	valid := utf8.ValidString(content) // checked at once, because most files are valid and this is much faster
	tokens := make([]string, 0, min(strings.Count(content, "\n")+1, maxVocabulary))
	for token := range strings.SplitSeq(content, "\n") {
		token = strings.TrimSuffix(token, "\r")
		line := len(tokens) + 1
		switch {
		case token == "":
			return nil, fault(errMalformed, line, "the line is empty")
		case !valid && !utf8.ValidString(token):
			return nil, fault(errMalformed, line, "%q is not valid UTF-8", token)
		case line > maxVocabulary:
			return nil, fault(errLargeVocabulary, line, "at most %d tokens are taken", maxVocabulary)
		}
		word := strings.TrimRightFunc(token, unicode.IsSpace)
		if word != "" {
			token = word
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// bytePairs returns the vocabulary of vocab.json, which is f.content so far, and
// the rules of merges.txt, which it appends: f.content is what a hash is of.
func (f *folder) bytePairs() (file pipelineFile, err error) {
	merges, err := readFile(f.fsys, mergesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return file, fileFault(mergesFile, errMissingTokenizer, "it belongs to %s", bytePairFile)
	}
	if err != nil {
		return file, err
	}
	file.Model = pipelineModel{Type: "BPE", Vocabulary: json.RawMessage(f.content)}
	file.Model.Merges, err = parseMerges(string(merges))
	f.content = append(f.content, merges...)
	return file, err
}

// parseMerges reads merges.txt, which has a merge on each line. As in the
// reference, the first line is not a merge, and text after the last line break
// is ignored. Of equal merges, only the first counts.
func parseMerges(content string) ([]mergeRule, error) {
	lines := strings.Split(content, "\n")
	merges := make([]mergeRule, 0, len(lines))
	seen := make(map[mergeRule]bool, len(lines))
	for i := 1; i < len(lines)-1; i++ {
		sides := strings.Fields(lines[i])
		if len(sides) != 2 {
			return nil, fileFault(fmt.Sprintf("%s line %d", mergesFile, i+1), errMalformed, "%.40q is not two tokens",
				lines[i])
		}
		rule := mergeRule{sides[0], sides[1]}
		if !seen[rule] {
			seen[rule] = true
			merges = append(merges, rule)
		}
	}
	return merges, nil
}
