package tokenize

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A class is a tokenizer class of transformers 5.24. Whatever the steps in
// tokenizer.json are, the class takes the vocabulary and the added tokens of
// the file, and makes the steps of its own settings.
type class struct {
	name  string
	model string // the kind of its model
	// names are its special tokens, in the order of specialTokens.roles, for
	// those that no file names.
	names      [7]string
	maskStrips bool // whether a mask to which no file gives flags includes the white space before it
	steps      func(c *configuration, names [7]string, file *pipelineFile)
}

// These are the indices of special tokens in the order of specialTokens.roles.
const (
	roleBeginning = iota
	roleEnd
	roleUnknown
	roleSeparator
	rolePadding
	roleClassifier
	roleMask
)

var (
	bertNames    = [7]string{"", "", unknownToken, "[SEP]", "[PAD]", "[CLS]", maskToken}
	robertaNames = [7]string{"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}
)

// classes are the known classes, by the name without Fast.
var classes = func() map[string]*class {
	list := []*class{
		{name: "XLMRobertaTokenizer", model: "Unigram", names: robertaNames, steps: sentencePieceSteps},
		{name: "CamembertTokenizer", model: "Unigram", names: robertaNames, maskStrips: true,
			steps: sentencePieceSteps},
		{name: "AlbertTokenizer", model: "Unigram",
			names: [7]string{"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", maskToken},
			steps: albertSteps},
		{name: "DebertaV2Tokenizer", model: "Unigram",
			names: [7]string{"[CLS]", "[SEP]", unknownToken, "[SEP]", "[PAD]", "[CLS]", maskToken},
			steps: debertaSteps},
	}
	for _, name := range []string{"Bert", "DistilBert", "Electra", "MobileBert", "ConvBert", "Lxmert", "LayoutLM",
		"SqueezeBert"} {
		list = append(list, &class{name: name + "Tokenizer", model: "WordPiece", names: bertNames, steps: bertSteps})
	}
	for _, name := range []string{"Roberta", "Bart", "LED", "Longformer", "Mvp"} {
		list = append(list, &class{name: name + "Tokenizer", model: "BPE", names: robertaNames, steps: robertaSteps})
	}
	byName := map[string]*class{}
	for _, c := range list {
		byName[c.name] = c
	}
	return byName
}()

// modelClasses are the classes of models, by model_type, whose files name none.
var modelClasses = map[string]string{"albert": "AlbertTokenizer", "bert": "BertTokenizer",
	"camembert": "CamembertTokenizer", "data2vec-text": "RobertaTokenizer", "deberta-v2": "DebertaV2Tokenizer",
	"distilbert": "BertTokenizer", "electra": "BertTokenizer", "ernie": "BertTokenizer", "roberta": "RobertaTokenizer",
	"xlm-roberta": "XLMRobertaTokenizer"}

// fileClasses are the classes that take tokenizer.json as it is.
var fileClasses = []string{"", "PreTrainedTokenizer", "TokenizersBackend", "PythonBackend"}

// pythonClasses are written in Python, so that transformers makes no
// tokenizer.json of their files.
var pythonClasses = []string{"BertJapaneseTokenizer", "BertweetTokenizer", "EsmTokenizer", "PhobertTokenizer"}

// class chooses the class by the rules of transformers' AutoTokenizer. It
// returns nil if tokenizer.json is taken as it is. An error says that the files
// are not those of a known class.
func (f *folder) class(file *pipelineFile) (*class, error) {
	said := cmp.Or(f.configured.Class, f.model.Class)
	by := modelFile
	if f.configured.Class != "" {
		by = configurationFile
	}
	kind := cmp.Or(f.model.Exported, f.model.Type)
	name := cmp.Or(strings.TrimSuffix(said, "Fast"), modelClasses[kind])
	c := classes[name]
	switch {
	case f.source == bytePairFile && name != "RobertaTokenizer":
		return nil, fileFault(bytePairFile, errUnsupported, "tokenizer_class %.40q of model_type %.40q without %s; %s",
			said, f.model.Type, tokenizerFile, saveIt)
	case f.source == vocabularyFile && slices.Contains(pythonClasses, name):
		return nil, fileFault(by, errUnsupported, "tokenizer_class %q, of which transformers makes no %s: choose "+
			"another model", name, tokenizerFile)
	case f.source == vocabularyFile && said != "" && (c == nil || c.model != file.Model.Type):
		return nil, fileFault(by, errUnsupported, "tokenizer_class %.40q with %s alone; BertTokenizer and its like "+
			"have one; for others, %s", said, vocabularyFile, saveIt)
	case f.source == vocabularyFile && f.unconfigured:
		return nil, fileFault(configurationFile, errMissingTokenizer, "%s alone does not say whether the model keeps "+
			"capitals: give --cased or --uncased to infill models import or pull", vocabularyFile)
	case f.source == vocabularyFile && said == "":
		return classes["BertTokenizer"], nil
	case kind == "modernbert" || slices.Contains(fileClasses, name):
		return nil, nil
	case c == nil:
		f.note("%s names the class %.40q, whose steps infill does not know; %s is taken as it is", by, name,
			tokenizerFile)
		return nil, nil
	case c.model != file.Model.Type:
		f.note("the class %s (by %s) has the model %s, and %s has %s: %[4]s is taken as it is", name, by, c.model,
			tokenizerFile, file.Model.Type)
		return nil, nil
	}
	return c, nil
}

// named returns the special tokens' names, "" for none, in the order of
// specialTokens.roles, and their flags if a file gives some.
func (f *folder) named(c *class) (names [7]string, flags [7]*added) {
	if c != nil {
		names = c.names
	}
	sources := []*specialTokens{&f.configured.specialTokens}
	if f.configured.Listed == nil {
		sources = append(sources, &f.special)
	}
	for _, source := range sources {
		for i, value := range source.roles() {
			if value.name != "" {
				names[i] = value.name
				flags[i] = value.token
			}
		}
	}
	return names, flags
}

// addedTokens returns the added tokens with their ids, as transformers adds
// them to a model whose tokens have ids. Of those that two files list, the
// flags in added_tokens_decoder count more than those in tokenizer.json, and
// these more than those in other files.
func (f *folder) addedTokens(c *class, file *pipelineFile, ids map[string]int) []added {
	var list []added
	places := map[string]int{}
	next := len(ids) // the id of a token that the model lacks
	put := func(token added) {
		places[token.Content] = len(list)
		list = append(list, token)
		next = max(next, *token.ID+1)
	}
	add := func(token added, replace bool) {
		at, there := places[token.Content]
		switch {
		case there && replace:
			token.ID = list[at].ID
			list[at] = token
		case !there:
			id, ok := ids[token.Content]
			if !ok {
				id = next
			}
			token.ID = &id
			put(token)
		}
	}
	if c == nil {
		for _, token := range file.Added {
			put(token)
		}
	}
	listed := f.configured.Listed
	if listed == nil {
		listed = map[int]added{}
		files, _ := f.named(nil)
		for _, name := range slices.Sorted(maps.Keys(f.added)) {
			special := slices.Contains(files[:], name) ||
				slices.ContainsFunc(f.extra(), func(v specialValue) bool { return v.name == name })
			listed[f.added[name]] = added{Content: name, Special: special, Normalized: !special}
		}
		for _, token := range file.Added {
			listed[*token.ID] = token
		}
	}
	for _, id := range slices.Sorted(maps.Keys(listed)) {
		add(listed[id], true)
	}
	names, flags := f.named(c)
	for i, name := range names {
		// transformers 5.24 makes no exception for vocab.json, as 4.57 did, and
		// puts a space before each mask.
		strips := f.source == bytePairFile || c != nil && c.maskStrips
		token := added{Content: name, StripLeft: i == roleMask && strips}
		if flags[i] != nil {
			token = *flags[i]
		}
		token.Special = true
		_, known := ids[name]
		// An id made up for a role would be one that the model may not embed.
		if name != "" && known {
			add(token, false)
		}
	}
	for _, value := range f.further() {
		token := added{Content: value.name}
		if value.token != nil {
			token = *value.token
		}
		token.Special = true
		add(token, false)
	}
	return list
}

// embedded leaves out added tokens without a role that the model does not embed:
// text here, where transformers fails.
func (f *folder) embedded(list []added, names [7]string) []added {
	if f.model.Size < 1 {
		return list
	}
	var beyond []string
	list = slices.DeleteFunc(list, func(token added) bool {
		if *token.ID < f.model.Size || slices.Contains(names[:], token.Content) {
			return false
		}
		beyond = append(beyond, token.inWords())
		return true
	})
	if len(beyond) > 0 {
		f.note("%s has vocab_size %d, so that these are text: %s", modelFile, f.model.Size,
			strings.Join(beyond[:min(len(beyond), 6)], ", "))
	}
	return list
}

// extra returns the roleless special tokens of tokenizer_config.json.
func (f *folder) extra() []specialValue {
	list := []specialValue(f.configured.Extra)
	if len(list) == 0 {
		list = f.configured.Additional
	}
	if f.configured.Listed == nil {
		list = slices.Concat(list, f.special.Extra)
	}
	return list
}

// further returns the special tokens without a role.
func (f *folder) further() []specialValue {
	list := f.extra()
	if len(list) == 0 && f.configured.Listed == nil {
		return f.special.Additional
	}
	return list
}

func bertSteps(c *configuration, names [7]string, file *pipelineFile) {
	prefix := continuation
	file.Model.Prefix = &prefix
	file.Model.UnknownToken = names[roleUnknown]
	file.Model.LongestWord = 0
	file.Normalizer = &pipelineStep{Type: "BertNormalizer", LowerCase: c.LowerCase, StripAccents: c.StripAccents,
		HandleChinese: c.TokenizeChinese}
	file.PreTokenizer = &pipelineStep{Type: "BertPreTokenizer"}
	file.PostProcessor = around(names[roleClassifier], names[roleSeparator])
}

func robertaSteps(c *configuration, names [7]string, file *pipelineFile) {
	file.Model = pipelineModel{Type: file.Model.Type, Vocabulary: file.Model.Vocabulary, Merges: file.Model.Merges}
	prefixSpace := isSet(c.PrefixSpace)
	file.Normalizer = nil
	file.PreTokenizer = &pipelineStep{Type: "ByteLevel", PrefixSpace: &prefixSpace}
	file.PostProcessor = around(names[roleClassifier], names[roleSeparator])
}

// sentencePieceSteps is for XLMRobertaTokenizer and CamembertTokenizer.
func sentencePieceSteps(c *configuration, names [7]string, file *pipelineFile) {
	file.Normalizer = file.Normalizer.characterMap()
	file.PreTokenizer = metaspaceWords(isTrue(c.PrefixSpace))
	file.PostProcessor = around(names[roleBeginning], names[roleEnd])
}

// albertSteps makes the steps of AlbertTokenizer, which keeps the tokens around
// a text that tokenizer.json has.
func albertSteps(c *configuration, _ [7]string, file *pipelineFile) {
	var steps []pipelineStep
	for _, quotes := range []string{"``", "''"} {
		step := pipelineStep{Type: "Replace", Content: `"`}
		step.Pattern.String = &quotes
		steps = append(steps, step)
	}
	if !isSet(c.KeepAccents) {
		steps = append(steps, pipelineStep{Type: "NFKD"}, pipelineStep{Type: "StripAccents"})
	}
	if isTrue(c.LowerCase) {
		steps = append(steps, pipelineStep{Type: "Lowercase"})
	}
	characterMap := file.Normalizer.characterMap()
	if characterMap != nil {
		steps = append(steps, *characterMap)
	}
	file.Normalizer = &pipelineStep{Type: "Sequence", Normalizers: steps}
	file.PreTokenizer = metaspaceWords(isTrue(c.PrefixSpace))
	file.PostProcessor = cmp.Or(file.PostProcessor, around("[CLS]", "[SEP]"))
}

func debertaSteps(c *configuration, names [7]string, file *pipelineFile) {
	var steps []pipelineStep
	if isSet(c.LowerCase) {
		steps = append(steps, pipelineStep{Type: "Lowercase"})
	}
	replace := pipelineStep{Type: "Replace", Content: " "}
	pattern := gapPattern
	replace.Pattern.Regex = &pattern
	left := false
	steps = append(steps, replace, pipelineStep{Type: "NFC"}, pipelineStep{Type: "Strip", StripLeft: &left})
	file.Normalizer = &pipelineStep{Type: "Sequence", Normalizers: steps}
	scheme := prependAlways
	if !isTrue(c.PrefixSpace) {
		scheme = prependFirst
	}
	steps = []pipelineStep{{Type: "Metaspace", PrependScheme: scheme}}
	if isSet(c.SplitPunctuation) {
		steps = append([]pipelineStep{{Type: "Punctuation"}}, steps...)
	}
	file.PreTokenizer = &pipelineStep{Type: "Sequence", PreTokenizers: steps}
	file.PostProcessor = around(names[roleClassifier], names[roleSeparator])
}

func around(first, last string) *pipelineStep {
	return &pipelineStep{Type: "BertProcessing", Classifier: []any{first, 0}, Separator: []any{last, 0}}
}

func metaspaceWords(prepend bool) *pipelineStep {
	scheme := prependNever
	if prepend {
		scheme = prependAlways
	}
	return &pipelineStep{Type: "Sequence",
		PreTokenizers: []pipelineStep{{Type: "WhitespaceSplit"}, {Type: "Metaspace", PrependScheme: scheme}}}
}

// characterMap returns the first Precompiled step of a normalizer, or nil.
func (s *pipelineStep) characterMap() *pipelineStep {
	if s == nil {
		return nil
	}
	for _, step := range append([]pipelineStep{*s}, s.Normalizers...) {
		if step.Type == "Precompiled" {
			return &step
		}
	}
	return nil
}
