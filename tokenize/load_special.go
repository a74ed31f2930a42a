package tokenize

import (
	"encoding/json"
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
	Listed     map[int]added  `json:"added_tokens_decoder"` // by id
}

// further returns the special tokens without a role.
func (s *specialTokens) further() []specialValue { return slices.Concat(s.Additional, s.Extra) }

// extraTokens is a list of tokens, or the tokens of an object by roles.
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

// specialValue is a special token, written as a string, as an object, or as null.
type specialValue struct {
	name  string
	token *added // if it is an object
}

// UnmarshalJSON reads any of the forms.
func (v *specialValue) UnmarshalJSON(content []byte) error {
	*v = specialValue{}
	if len(content) > 0 && content[0] == '{' {
		v.token = &added{}
		err := json.Unmarshal(content, v.token)
		v.name = v.token.Content
		return err
	}
	return json.Unmarshal(content, &v.name)
}

var (
	_ json.Unmarshaler = (*extraTokens)(nil)
	_ json.Unmarshaler = (*specialValue)(nil)
)
