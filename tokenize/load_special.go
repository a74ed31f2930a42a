package tokenize

import (
	"encoding/json"
	"maps"
	"slices"
)

// specialTokens holds the special tokens that tokenizer_config.json or
// special_tokens_map.json names.
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

// extraTokens is a list of tokens. In JSON it is a list, or an object of tokens by role.
type extraTokens []specialValue

// UnmarshalJSON reads a list, or an object of tokens by role.
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
	token *added // nil unless the token is written as an object
}

// UnmarshalJSON reads a string, an object, or null.
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
