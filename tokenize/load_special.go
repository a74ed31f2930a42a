package tokenize

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
)

// specialTokens names special tokens, in tokenizer_config.json and special_tokens_map.json.
type specialTokens struct {
	Beginning  specialValue   `json:"bos_token"`
	End        specialValue   `json:"eos_token"`
	Unknown    specialValue   `json:"unk_token"`
	Separator  specialValue   `json:"sep_token"`
	Padding    specialValue   `json:"pad_token"`
	Classifier specialValue   `json:"cls_token"`
	Mask       specialValue   `json:"mask_token"`
	Additional []specialValue `json:"additional_special_tokens"`
	Extra      extraTokens    `json:"extra_special_tokens"`
}

// extraTokens is a list, or an object by roles of which only the tokens count.
type extraTokens []specialValue

// UnmarshalJSON reads either form.
func (e *extraTokens) UnmarshalJSON(content []byte) error {
	if len(content) == 0 || content[0] != '{' {
		return json.Unmarshal(content, (*[]specialValue)(e))
	}
	var byRole map[string]specialValue
	err := json.Unmarshal(content, &byRole)
	*e = slices.Collect(maps.Values(byRole))
	return err
}

var _ json.Unmarshaler = (*extraTokens)(nil)

// maskRole is the mask's place among the roles.
const maskRole = 6

// roles gives the value of each role, in the order in which transformers adds them.
func (s *specialTokens) roles() []*specialValue {
	return []*specialValue{&s.Beginning, &s.End, &s.Unknown, &s.Separator, &s.Padding, &s.Classifier, &s.Mask}
}

// specialValue is a special token, written as a string, as an object, or as null.
type specialValue struct {
	given bool // the file has it, if only as null
	bare  bool // a string, or an object of special_tokens_map.json
	name  string
	token *listedToken // where it is an object
}

// UnmarshalJSON reads any of the forms.
func (v *specialValue) UnmarshalJSON(content []byte) error {
	*v = specialValue{given: true, bare: true}
	switch {
	case string(content) == "null":
		return nil
	case len(content) > 0 && content[0] == '{':
		v.bare, v.token = false, &listedToken{}
		err := json.Unmarshal(content, v.token)
		v.name = v.token.Content
		return err
	}
	return json.Unmarshal(content, &v.name)
}

var _ json.Unmarshaler = (*specialValue)(nil)

// inMap is a value of special_tokens_map.json, where every object is a special token.
func (v specialValue) inMap() specialValue {
	if v.token != nil {
		v.bare, v.token.Special = true, true
	}
	return v
}

// listedToken is an added token as a file has it: normalized, where the file does not say, follows from special.
type listedToken struct {
	added
	Normalized *bool `json:"normalized"`
	Special    bool  `json:"special"`
}

// token resolves the default; special: whether it is one by its role, too.
func (l *listedToken) token(special bool) pipelineAdded {
	a := pipelineAdded{added: l.added, Special: l.Special || special}
	a.ID, a.Normalized = nil, !a.Special
	if l.Normalized != nil {
		a.Normalized = *l.Normalized
	}
	return a
}

// readSpecials completes the settings by special_tokens_map.json, and gives the tokens that are added by id: those of
// tokenizer_config.json, which makes the other two files old news, or of added_tokens.json.
func (u *unconverted) readSpecials(fsys fs.FS) (map[int]listedToken, error) {
	if u.settings.Listed != nil {
		return u.settings.Listed, nil
	}
	listed := map[int]listedToken{}
	content, err := readOptional(fsys, specialFile)
	if err != nil {
		return nil, err
	}
	var special specialTokens
	if err := unmarshal(specialFile, content, &special); err != nil {
		return nil, err
	}
	own := u.settings.roles()
	for i, value := range special.roles() {
		if value.given {
			*own[i] = value.inMap()
		}
	}
	for _, value := range special.Additional {
		u.settings.Additional = append(u.settings.Additional, value.inMap())
	}
	if content, err = readOptional(fsys, addedFile); err != nil {
		return nil, err
	}
	var ids map[string]int
	if err := unmarshal(addedFile, content, &ids); err != nil {
		return nil, err
	}
	named := map[string]bool{} // the class's defaults are not, nor are objects of tokenizer_config.json
	for _, value := range append(values(u.settings.roles()), u.settings.Additional...) {
		named[value.name] = named[value.name] || value.bare
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		id := ids[name]
		if other, taken := listed[id]; taken {
			return nil, fileFault(addedFile, errMalformed,
				"tokens %q and %q have the same id %d", other.Content, name, id)
		}
		normalized := !named[name]
		listed[id] = listedToken{added: added{Content: name}, Normalized: &normalized, Special: named[name]}
	}
	return listed, nil
}

func values(list []*specialValue) []specialValue {
	out := make([]specialValue, len(list))
	for i, value := range list {
		out[i] = *value
	}
	return out
}

// addTokens adds the listed tokens, then those of roles and the additional special ones.
func (u *unconverted) addTokens(listed map[int]listedToken) error {
	names := []string{"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"} // RoBERTa's, where none is named
	roles := u.settings.roles()
	for i, value := range roles {
		if !value.given {
			value.name = names[i]
		}
	}
	additional := u.settings.Additional
	special := map[string]bool{}
	for _, value := range append(values(roles), additional...) {
		special[value.name] = true
	}
	byName := map[string]pipelineAdded{} // of tokenizer_config.json alone: the reference looks up nothing else
	for _, id := range slices.Sorted(maps.Keys(listed)) {
		source := listed[id]
		token := source.token(special[source.Content])
		if u.settings.Listed != nil {
			byName[token.Content] = token
		}
		if got := u.add(token); got != id {
			return fileFault(u.listing(), errMalformed,
				"added token %.40q has id %d, but %d by its place", token.Content, id, got)
		}
	}
	before, seen := maps.Clone(u.places), map[string]bool{}
	for i, value := range append(values(roles), additional...) {
		if value.name == "" || seen[value.name] {
			continue
		}
		seen[value.name] = i < len(roles) // of two additional ones of one name the last counts
		token, known := byName[value.name]
		switch {
		case known && i < len(roles) && value.given:
		case value.token != nil:
			token = value.token.token(false)
		case i < len(roles): // the class's own flags
			token = pipelineAdded{added: added{Content: value.name, StripLeft: i == maskRole, Normalized: i != maskRole}}
		default:
			if _, there := before[value.name]; there {
				continue // a bare name changes no token that is there
			}
			token = pipelineAdded{added: added{Content: value.name}}
		}
		token.Special = true
		u.add(token)
	}
	if len(u.file.Added) > maxAdded {
		return pipelineFault(errLargeVocabulary, "%d added tokens, at most %d are taken", len(u.file.Added),
			maxAdded)
	}
	first, last := u.settings.Classifier.name, u.settings.Separator.name
	u.file.PostProcessor = &pipelineStep{Type: "RobertaProcessing", Classifier: []any{first, u.ids[first]},
		Separator: []any{last, u.ids[last]}}
	return nil
}

// listing names the file that lists added tokens by id.
func (u *unconverted) listing() string {
	if u.settings.Listed != nil {
		return configurationFile
	}
	return addedFile
}

// add adds a token, or gives one that was added before other flags. Its id is that of the vocabulary, or else the next.
//
// A special token is looked for where its first flags have it, before or after normalising; later ones change only the
// rest. Another that becomes special is looked for in both.
func (u *unconverted) add(token pipelineAdded) (id int) {
	id, known := u.ids[token.Content]
	if !known {
		id = u.next
		u.next++
		u.ids[token.Content] = id
	}
	token.ID = &id
	place, there := u.places[token.Content]
	if !there {
		u.places[token.Content] = len(u.file.Added)
		u.file.Added = append(u.file.Added, token)
		return id
	}
	other := u.file.Added[place]
	if other.Special {
		token.Special, token.Normalized, token.early = true, other.Normalized, other.early
	} else {
		token.early = other.early || other.Normalized != token.Normalized
		token.Normalized = token.Normalized || other.Normalized
	}
	u.file.Added[place] = token
	return id
}
