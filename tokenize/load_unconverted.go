package tokenize

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
)

// The files of tokenizers that were published without tokenizer.json, under the names that Hugging Face gives them.
const (
	modelFile         = "config.json"
	specialFile       = "special_tokens_map.json"
	addedFile         = "added_tokens.json"
	bytePairFile      = "vocab.json"
	mergesFile        = "merges.txt"
	albertFile        = "spiece.model"
	debertaFile       = "spm.model"
	fairseqFile       = "sentencepiece.bpe.model" // despite its name, Unigram
	sentencePieceFile = "tokenizer.model"
)

// unconvertedFiles are those that hold a vocabulary.
func unconvertedFiles() []string {
	return []string{bytePairFile, mergesFile, albertFile, debertaFile, fairseqFile, sentencePieceFile}
}

// tokenizerClass is the name of a class of transformers that reads such files, without the ending Fast.
type tokenizerClass string

const (
	robertaClass   tokenizerClass = "RobertaTokenizer"
	xlmClass       tokenizerClass = "XLMRobertaTokenizer"
	camembertClass tokenizerClass = "CamembertTokenizer"
	albertClass    tokenizerClass = "AlbertTokenizer"
	debertaClass   tokenizerClass = "DebertaV2Tokenizer"
)

// unconverted is a tokenizer without tokenizer.json on its way to what transformers would write there.
//
// The rules are those of transformers 4.57 (convert_slow_tokenizer.py, tokenization_utils_base.py,
// tokenization_utils_fast.py and the classes' own files; the converters are the same in 4.46). They ignore what a
// SentencePiece file says on dummy prefixes, extra white space and byte fallback, and so does this; from version 5 on
// transformers no longer follows them.
type unconverted struct {
	class    tokenizerClass
	settings configuration
	file     pipelineFile
	ids      map[string]int // of the vocabulary and the tokens added so far
	places   map[string]int // in file.Added
	next     int            // id of the next token that is not in the vocabulary
	notWords []int          // pieces that are no text
}

// maxAdded bounds the tokens that a text is searched for, one by one. The largest lists of published models have about
// a thousand.
const maxAdded = 1 << 13

// loadUnconverted makes a tokenizer of vocab.json and merges.txt or of a SentencePiece file, one of found, as the
// model's class of tokenizer says. The content of tokenizer_config.json may be empty.
func loadUnconverted(fsys fs.FS, configurationContent []byte, found []string) (*Tokenizer, error) {
	u := &unconverted{ids: map[string]int{}, places: map[string]int{}}
	if err := unmarshal(configurationFile, configurationContent, &u.settings); err != nil {
		return nil, err
	}
	if err := u.findClass(fsys); err != nil {
		return nil, err
	}
	if isSet(u.settings.SplitSpecial) {
		return nil, fileFault(configurationFile, errUnsupported, "split_special_tokens true")
	}
	names, convert := u.conversion()
	contents := make([][]byte, len(names))
	for i, name := range names {
		content, err := readFile(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fileFault(name, errMissingTokenizer, "without tokenizer.json, %s needs %s; found %s",
				u.class, strings.Join(names, " and "), strings.Join(found, ", "))
		}
		if err != nil {
			return nil, err
		}
		contents[i] = content
	}
	if err := convert(contents); err != nil {
		return nil, nameFile(err, names[0])
	}
	listed, err := u.readSpecials(fsys)
	if err != nil {
		return nil, err
	}
	if err := u.addTokens(listed); err != nil {
		return nil, nameFile(err, names[0])
	}
	t, err := u.file.tokenizer(&u.settings.specialTokens, nil)
	if err != nil {
		return nil, nameFile(err, names[0])
	}
	for _, id := range u.notWords {
		t.notWords[id] = true
	}
	if err := u.digest(t, names, contents); err != nil {
		return nil, err
	}
	return t, nil
}

// isSet is isTrue for settings that are off unless a file says otherwise.
func isSet(value *bool) bool { return value != nil && *value }

// unmarshal reads a JSON file, which may be empty.
func unmarshal(name string, content []byte, value any) error {
	if len(content) == 0 {
		return nil
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fileFault(name, errMalformed, "%v", err)
	}
	return nil
}

// readOptional gives the content of a file, empty if there is none.
func readOptional(fsys fs.FS, name string) ([]byte, error) {
	content, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// findClass takes the class that tokenizer_config.json names, else config.json, else the one of the model's family.
func (u *unconverted) findClass(fsys fs.FS) error {
	content, err := readOptional(fsys, modelFile)
	if err != nil {
		return err
	}
	var model struct {
		Type     string  `json:"model_type"`
		Exported string  `json:"exported_model_type"` // of a graph that was imported
		Class    *string `json:"tokenizer_class"`
	}
	if err := unmarshal(modelFile, content, &model); err != nil {
		return err
	}
	name, file := u.settings.Class, configurationFile
	if name == "" && model.Class != nil {
		name, file = *model.Class, modelFile
	}
	if name == "" {
		file = modelFile
		families := map[string]tokenizerClass{"roberta": robertaClass, "xlm-roberta": xlmClass,
			"camembert": camembertClass, "albert": albertClass, "deberta-v2": debertaClass}
		name = string(families[cmp.Or(model.Exported, model.Type)])
	}
	u.class = tokenizerClass(strings.TrimSuffix(name, "Fast"))
	switch u.class {
	case robertaClass, xlmClass, camembertClass, albertClass, debertaClass:
		return nil
	case "":
		return fileFault(tokenizerFile, errMissingTokenizer,
			"and neither tokenizer_class nor model_type %.40q tells how to read the vocabulary "+
				"without it; name the tokenizer_class in %s", model.Type, configurationFile)
	}
	return fileFault(file, errUnsupported,
		"tokenizer_class %.40q without tokenizer.json; %s, %s, %s, %s and %s are read without",
		name, robertaClass, xlmClass, camembertClass, albertClass, debertaClass)
}

// conversion gives the files of the class that hold its vocabulary, and what makes a pipeline of their contents.
func (u *unconverted) conversion() (names []string, convert func([][]byte) error) {
	switch u.class {
	case robertaClass:
		return []string{bytePairFile, mergesFile}, u.convertBytePairs
	case albertClass:
		return []string{albertFile}, u.convertPieces
	case debertaClass:
		return []string{debertaFile}, u.convertPieces
	}
	return []string{fairseqFile}, u.convertPieces
}

// convertBytePairs makes the pipeline of vocab.json and merges.txt.
func (u *unconverted) convertBytePairs(contents [][]byte) error {
	vocabulary := map[string]int{}
	if err := unmarshal(bytePairFile, contents[0], &vocabulary); err != nil {
		return err
	}
	merges, err := parseMerges(string(contents[1]))
	if err != nil {
		return err
	}
	for token, id := range vocabulary {
		u.ids[token] = id
	}
	u.next = len(vocabulary)
	prefixSpace := isSet(u.settings.PrefixSpace)
	u.file.Model = pipelineModel{Type: "BPE", ids: vocabulary, Merges: merges}
	u.file.PreTokenizer = &pipelineStep{Type: "ByteLevel", PrefixSpace: &prefixSpace}
	return nil
}

// parseMerges reads merges.txt, a merge on each line. As in the reference, the first line is never one, and what
// follows the last line end is no line; of a merge that comes twice the first counts.
func parseMerges(content string) ([]mergeRule, error) {
	lines := strings.Split(content, "\n")
	merges := make([]mergeRule, 0, len(lines))
	seen := make(map[mergeRule]bool, len(lines))
	for i := 1; i < len(lines)-1; i++ {
		sides := strings.Fields(lines[i])
		if len(sides) != 2 {
			return nil, &vocabularyError{Fault: errMalformed, File: mergesFile, Line: i + 1,
				Detail: fmt.Sprintf("%.40q is not two tokens", lines[i])}
		}
		rule := mergeRule{sides[0], sides[1]}
		if !seen[rule] {
			seen[rule] = true
			merges = append(merges, rule)
		}
	}
	return merges, nil
}

// convertPieces makes the pipeline of a SentencePiece file.
func (u *unconverted) convertPieces(contents [][]byte) error {
	m, err := parseSentencePieces(contents[0])
	if err != nil {
		return pipelineFault(errMalformed, "%v", err)
	}
	if err := m.check(); err != nil {
		return pipelineFault(errUnsupported, "%v", err)
	}
	tokens, unknown, err := u.vocabulary(m)
	if err != nil {
		return err
	}
	for id, token := range tokens {
		u.ids[token.text] = id
	}
	u.next = len(tokens)
	u.file.Model = pipelineModel{Type: "Unigram", scored: tokens, Unknown: &unknown}
	for _, piece := range m.pieces {
		switch id, there := u.ids[piece.text]; {
		case !there || piece.kind == pieceNormal:
		case piece.kind == pieceUserDefined, piece.kind == pieceControl:
			u.add(pipelineAdded{added: added{Content: piece.text}, Special: piece.kind == pieceControl,
				fillable: piece.kind == pieceUserDefined})
		default:
			u.notWords = append(u.notWords, id)
		}
	}
	u.file.Normalizer = &pipelineStep{Type: "Sequence", Normalizers: u.normalizers(m.characterMap)}
	words := pipelineStep{Type: "Metaspace", Replacement: string(metaspace), PrependScheme: prependAlways}
	u.file.PreTokenizer = &words
	if u.class == debertaClass && isSet(u.settings.SplitPunctuation) {
		u.file.PreTokenizer = &pipelineStep{Type: "Sequence",
			PreTokenizers: []pipelineStep{{Type: "Punctuation", Behavior: "Isolated"}, words}}
	}
	return nil
}

// vocabulary gives each piece the id that the class gives it: XLM-R and CamemBERT keep the order of fairseq's
// dictionaries, with their special tokens first and the mask last.
func (u *unconverted) vocabulary(m *sentencePieces) (tokens []scoredToken, unknown int, err error) {
	dropped := 0 // pieces that others stand for
	switch u.class {
	case xlmClass:
		tokens, unknown, dropped = []scoredToken{{"<s>", 0}, {"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}}, 3, 3
	case camembertClass:
		tokens, unknown,
			dropped = []scoredToken{{"<s>NOTUSED", 0}, {"<pad>", 0}, {"</s>NOTUSED", 0}, {"<unk>", 0},
			{"<unk>NOTUSED", -100}}, 3, 1
	default:
		unknown = m.unknown
	}
	for i, piece := range m.pieces {
		switch {
		case i < dropped && piece.kind == pieceNormal:
			return nil, 0, pipelineFault(errUnsupported, "piece %d is %q; %s needs <unk>, <s> and </s> first", i,
				piece.text, u.class)
		case i < dropped:
			continue
		case u.class == albertClass && endsInNumberComma(piece.text):
			piece.score -= 100 // so that "1,000" is cut before its comma
		}
		tokens = append(tokens, scoredToken{piece.text, piece.score})
	}
	if dropped > 0 {
		tokens = append(tokens, scoredToken{"<mask>", 0})
	}
	return tokens, unknown, nil
}

// endsInNumberComma reports whether a piece ends in a digit and a comma.
func endsInNumberComma(piece string) bool {
	number, found := strings.CutSuffix(piece, ",")
	last := []rune(number)
	return found && len(last) > 0 && isDigit(last[len(last)-1])
}

// isDigit holds for decimal digits and for other characters that stand for one digit, superscripts and circled ones for
// instance (Numeric_Type=Digit in Unicode's DerivedNumericType.txt), as Python's isdigit does.
func isDigit(r rune) bool {
	if unicode.IsDigit(r) {
		return true
	}
	for _, run := range [][2]rune{
		{0xb2, 0xb3}, {0xb9, 0xb9}, {0x1369, 0x1371}, {0x19da, 0x19da}, {0x2070, 0x2070}, {0x2074, 0x2079},
		{0x2080, 0x2089},
		{0x2460, 0x2468}, {0x2474, 0x247c}, {0x2488, 0x2490}, {0x24ea, 0x24ea}, {0x24f5, 0x24fd}, {0x24ff, 0x24ff},
		{0x2776, 0x277e},
		{0x2780, 0x2788}, {0x278a, 0x2792}, {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a},
		{0x1f100, 0x1f10a},
	} {
		if run[0] <= r && r <= run[1] {
			return true
		}
	}
	return false
}

// normalizers are the class's own around the model's character map.
func (u *unconverted) normalizers(characterMap []byte) []pipelineStep {
	replace := func(text, with string) pipelineStep {
		s := pipelineStep{Type: "Replace", Content: with}
		s.Pattern.String = &text
		return s
	}
	squeeze := func(with string) pipelineStep {
		pattern := " {2,}"
		s := pipelineStep{Type: "Replace", Content: with}
		s.Pattern.Regex = &pattern
		return s
	}
	var steps []pipelineStep
	precompiled := func() {
		if len(characterMap) > 0 {
			steps = append(steps, pipelineStep{Type: "Precompiled", CharacterMap: characterMap})
		}
	}
	switch u.class {
	case albertClass:
		steps = append(steps, replace("``", `"`), replace("''", `"`))
		if !isSet(u.settings.KeepAccents) {
			steps = append(steps, pipelineStep{Type: "NFKD"}, pipelineStep{Type: "StripAccents"})
		}
		if isTrue(u.settings.LowerCase) {
			steps = append(steps, pipelineStep{Type: "Lowercase"})
		}
		precompiled()
		return append(steps, squeeze(" "))
	case debertaClass:
		if isSet(u.settings.LowerCase) {
			steps = append(steps, pipelineStep{Type: "Lowercase"})
		}
		steps = append(steps, pipelineStep{Type: "Strip"})
		precompiled()
		return append(steps, squeeze(" "))
	}
	precompiled()
	left := false
	return append(steps, pipelineStep{Type: "Strip", StripLeft: &left}, squeeze(string(metaspace)))
}

// digest sets the sum over the vocabulary's files and everything else that the tokenizer was made of.
func (u *unconverted) digest(t *Tokenizer, names []string, contents [][]byte) error {
	sum := sha256.New()
	fmt.Fprintf(sum, "unconverted 1 padding %d unknown %d classifier %d separator %d mask %d\n", t.padding, t.unknown,
		t.classifier, t.separator, t.mask)
	for _, token := range u.file.Added {
		fmt.Fprintf(sum, "early %t fillable %t\n", token.early, token.fillable)
	}
	for i, name := range names {
		fmt.Fprintf(sum, "%s %d\n", name, len(contents[i]))
		sum.Write(contents[i])
	}
	rest := u.file
	rest.Model.Merges = nil // in merges.txt
	if err := json.NewEncoder(sum).Encode(rest); err != nil {
		return err
	}
	t.sum = hex.EncodeToString(sum.Sum(nil))
	return nil
}
