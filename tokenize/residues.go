package tokenize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// residues is the scheme of protein models: each token is found wherever it stands in a text, and most are one letter.
type residues struct {
	each bool // of what is no token each character is unknown, white space too (ESM C), or each word (ESM)
}

// standardResidues are the twenty amino acids that the genetic code has words for.
const standardResidues = "ACDEFGHIKLMNPQRSTVWY"

// The classes that read proteins.
const (
	esmClass  = "EsmTokenizer"
	esmcClass = "EsmcTokenizer"
)

var _ scheme = residues{}

func (r residues) encode(e *encoder, from, to int) error {
	for at := from; at < to; {
		rest := e.text[at:to]
		_, size := utf8.DecodeRuneInString(rest)
		if !r.each {
			word := strings.TrimLeftFunc(rest, separates)
			at += len(rest) - len(word)
			if size = strings.IndexFunc(word, separates); size < 0 {
				size = len(word)
			}
		}
		if size > 0 {
			e.addWord(e.t.unknown, at, at+size)
		}
		at += size
	}
	return nil
}

// separates is true of what Python's split cuts at.
func separates(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

func (residues) read(token string) (text string, joins bool) { return token, false }

func (residues) apart(_, _ string) bool { return false }

// loadResidues makes a tokenizer of a class that reads proteins; configuration is the content of tokenizer_config.json.
func loadResidues(file string, tokens []string, class string, configuration []byte) (*Tokenizer, error) {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(configuration, &named); err != nil {
		return nil, fileFault(configurationFile, errMalformed, "%v", err)
	}
	t := &Tokenizer{ids: map[string]int{}, cased: true, scheme: residues{each: class == esmcClass}}
	if err := t.addTokens(tokens); err != nil {
		return nil, nameFile(err, file)
	}
	t.notWords, t.silent = make([]bool, len(tokens)), make([]bool, len(tokens))
	for i, special := range [][2]string{{"pad_token", "<pad>"}, {"unk_token", "<unk>"}, {"cls_token", "<cls>"},
		{"eos_token", "<eos>"}, {"mask_token", "<mask>"}} {
		key, name := special[0], special[1]
		if raw := named[key]; raw != nil {
			var value specialValue
			err := json.Unmarshal(raw, &value)
			if name = value.name; err != nil || bytes.Equal(raw, []byte("null")) {
				return nil, fileFault(configurationFile, errUnsupported,
					"%s %s; %s needs a token there (models of DNA have none after a text, and "+
						"their tokens are six bases)", key, raw, class)
			}
		}
		id, ok := t.ids[name]
		if !ok {
			return nil, fileFault(file, errMissingToken, "%s %q is not in the vocabulary", key, name)
		}
		*t.roles()[i], t.notWords[id], t.silent[id] = id, true, true
	}
	added := make([]addedToken, len(tokens))
	for id, token := range tokens {
		special := len(token) > 2 && strings.HasPrefix(token, "<") && strings.HasSuffix(token, ">")
		added[id] = addedToken{text: token, id: id, special: special}
		between := token == "|" // chains, of ESM C
		t.notWords[id], t.silent[id] = t.notWords[id] || special || between, t.silent[id] || between
	}
	t.setSpecials(added)
	sum := sha256.New()
	fmt.Fprintf(sum, "residues 1 %s %d %d %d %d %d\n", class, t.padding, t.unknown, t.classifier, t.separator, t.mask)
	for _, token := range tokens {
		fmt.Fprintf(sum, "%q\n", token)
	}
	t.sum = hex.EncodeToString(sum.Sum(nil))
	return t, nil
}

// refuseUnknown names what is no residue in the text of an encoding; other models read what they do not know.
func (t *Tokenizer) refuseUnknown(text string, e *Encoding) error {
	at := slices.Index(e.IDs, t.unknown)
	if !t.Protein() || at < 0 {
		return nil
	}
	span := e.Offsets[at]
	return &InputError{Fault: errUnknownWord, Offset: span[0],
		Detail: fmt.Sprintf("%s is no residue; write capital letters, X for one that is not known",
			excerpt(text[span[0]:span[1]]))}
}
