package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

const Slot = "[MASK]"

// Mask says which words become slots, by either Fraction or Count.
type Mask struct {
	// Fraction is the part of a sentence's words to mask, rounded to the
	// nearest number, halves up, at least 1.
	Fraction float64 `json:"fraction,omitempty"`
	// Count is the number of slots; sentences with fewer words are left out.
	Count int `json:"count,omitempty"`
	// Interior never masks the first or the last white-space token.
	Interior bool `json:"interior,omitempty"`
	// Punctuation counts [UNK], and tokens without a letter or digit, as words too.
	Punctuation bool `json:"punctuation,omitempty"`
	// Whole masks a white-space token with all punctuation attached to it.
	// Otherwise "sat." becomes "[MASK].". Where punctuation stands apart from
	// words, Whole only matters for abbreviations.
	Whole bool `json:"whole,omitempty"`
}

type SelectOptions struct {
	Sentences int `json:"sentences"`
	// MinimumTokens and MaximumTokens bound the length of a sentence in
	// white-space tokens; 0 means no bound.
	MinimumTokens int  `json:"minimum_tokens,omitempty" option:"min-tokens" help:"fewest white-space tokens of a sentence"`
	MaximumTokens int  `json:"maximum_tokens,omitempty" option:"max-tokens" help:"most white-space tokens of a sentence; 0 is no limit"`
	Mask          Mask `json:"mask"`
	// Markers says how to replace markers; "" means BertGen.
	Markers Markers `json:"-"`
	Seed    uint64  `json:"seed"`
	// Check, if not nil, returns why a template cannot be used, as when it is
	// too long for a model, or "" if it can be used. Select counts the sentence
	// under that reason, and takes another sentence.
	Check func(template string) (reason string) `json:"-"`
	// Word, if not nil, reports whether a word may be masked, such as whether
	// it is one token of a model. Mask.Fraction still refers to all words.
	Word func(word string) bool `json:"-"`
}

// DLP returns the protocol of the discrete Langevin paper, section 7.5, for a
// number of sentences: it masks a quarter of the words. The paper gives no
// bounds of length; MinimumTokens is 2 so that a word stays beside a slot.
func DLP(sentences int, seed uint64) SelectOptions {
	return SelectOptions{Sentences: sentences, MinimumTokens: 2, Mask: Mask{Fraction: 0.25}, Seed: seed}
}

// DISCSProtocol returns the protocol of google-research/discs
// (create_infill_dataset): sentences of 15 to 25 tokens, with four slots at
// any tokens except the first and the last. That protocol takes 10
// sentences of each corpus.
func DISCSProtocol(sentences int, seed uint64) SelectOptions {
	return SelectOptions{
		Sentences: sentences, MinimumTokens: 15, MaximumTokens: 25, Markers: DISCS, Seed: seed,
		Mask: Mask{Count: 4, Interior: true, Punctuation: true, Whole: true},
	}
}

func (o SelectOptions) Validate() error {
	switch {
	case o.Sentences < 1:
		return fmt.Errorf("%d sentences: choose at least 1", o.Sentences)
	case o.MinimumTokens < 0 || o.MaximumTokens < 0:
		return errors.New("bounds of a sentence's length must not be negative")
	case o.MaximumTokens > 0 && o.MinimumTokens > o.MaximumTokens:
		return fmt.Errorf("sentences of at least %d and at most %d tokens: there are none", o.MinimumTokens,
			o.MaximumTokens)
	case o.Mask.Fraction == 0 && o.Mask.Count == 0:
		return errors.New("nothing to mask: give a fraction of the words or a number of slots")
	case o.Mask.Fraction != 0 && o.Mask.Count != 0:
		return errors.New("give either a fraction of the words to mask or a number of slots, not both")
	case o.Mask.Count < 0:
		return fmt.Errorf("%d slots: choose at least 1", o.Mask.Count)
	case o.Mask.Count == 0 && !(o.Mask.Fraction > 0 && o.Mask.Fraction <= 1):
		return fmt.Errorf("mask fraction %v: choose a number above 0 and at most 1, such as 0.25", o.Mask.Fraction)
	}
	return nil
}

type Prompt struct {
	Corpus string `json:"corpus"`
	Line   int    `json:"line"`
	// Sentence is the index in Corpus.Sentences: a line may hold several.
	Sentence int `json:"sentence"`
	// Source is the sentence in the corpus, for references to leave out.
	Source string `json:"source"`
	// Text is Source with markers replaced and white space reduced to single spaces.
	Text string `json:"text"`
	// Template is Text with slots instead of the masked words.
	Template string `json:"template"`
	// Tokens are the masked white-space tokens in Text, from 0, ascending.
	Tokens []int `json:"tokens"`
	// Words are the masked words, in the order of the slots.
	Words []string `json:"words"`
}

type Selection struct {
	Corpus  string   `json:"corpus"`
	SHA256  string   `json:"sha256"` // of the corpus file
	Prompts []Prompt `json:"prompts"`
	// Considered is the number of examined sentences. Skipped counts the
	// sentences that were left out, by reason.
	Considered int    `json:"considered"`
	Skipped    []Skip `json:"skipped"`
	// Replaced counts the markers that were replaced in the prompts, by marker.
	Replaced map[string]int `json:"replaced"`
}

// These are the reasons why Select leaves out a sentence.
const (
	SkipShort     = "too short"
	SkipLong      = "too long"
	SkipDuplicate = "same as a sentence already taken"
	SkipFewWords  = "too few words to mask"
	SkipOnlySlots = "no word left beside the slots"
)

// Select examines sentences in a random order, and takes the first that pass
// all checks. The order depends on the seed, the corpus' name and its number of
// sentences. The masked words of a sentence depend only on the seed and the
// sentence. So another number of sentences, or other corpora, do not change the
// masks of a sentence. If too few sentences pass, the error says why.
func (c *Corpus) Select(o SelectOptions) (*Selection, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("corpus %s: %w", c.Name, err)
	}
	s := &Selection{Corpus: c.Name, SHA256: c.SHA256, Prompts: []Prompt{}, Replaced: map[string]int{}}
	skipped := skips{}
	taken := map[string]bool{}
	for _, k := range stream(o.Seed, "order", c.Name).Perm(len(c.Sentences)) {
		if len(s.Prompts) == o.Sentences {
			break
		}
		s.Considered++
		sentence := c.Sentences[k]
		tokens, replaced := o.Markers.apply(sentence.Raw)
		text := strings.Join(tokens, " ")
		prompt, reason := o.prompt(text, tokens)
		if taken[text] {
			reason = SkipDuplicate
		}
		if reason == "" && o.Check != nil {
			reason = o.Check(prompt.Template)
		}
		if reason != "" {
			skipped.add(reason, sentence.Line)
			continue
		}
		taken[text] = true
		prompt.Corpus = c.Name
		prompt.Line = sentence.Line
		prompt.Sentence = k
		prompt.Source = sentence.Raw
		s.Prompts = append(s.Prompts, prompt)
		for marker, count := range replaced {
			s.Replaced[marker] += count
		}
	}
	s.Skipped = skipped
	if len(s.Prompts) < o.Sentences {
		return nil, fmt.Errorf("corpus %s: %d of the %d sentences wanted are there (of %d: %s): ask for fewer, or "+
			"widen the bounds", c.Name, len(s.Prompts), o.Sentences, s.Considered, List(s.Skipped))
	}
	return s, nil
}

// prompt masks words of a sentence, or returns why it cannot be used.
func (o SelectOptions) prompt(text string, tokens []string) (Prompt, string) {
	special := func(token string) bool { return strings.Contains(text, token) }
	switch {
	case slices.ContainsFunc([]string{"[MASK", "[CLS]", "[SEP]", "[PAD]"}, special):
		return Prompt{}, SkipSpecial
	case len(tokens) < o.MinimumTokens:
		return Prompt{}, SkipShort
	case o.MaximumTokens > 0 && len(tokens) > o.MaximumTokens:
		return Prompt{}, SkipLong
	}
	var words []int // positions of all words, to which Fraction refers
	var free []int  // positions of the words that may be masked
	for k, token := range tokens {
		if o.Mask.Punctuation || token != "[UNK]" && strings.ContainsFunc(token, isWord) {
			words = append(words, k)
			from, to := o.Mask.part(token)
			inside := !o.Mask.Interior || k > 0 && k < len(tokens)-1
			if inside && (o.Word == nil || o.Word(token[from:to])) {
				free = append(free, k)
			}
		}
	}
	count := o.Mask.Count
	if count == 0 {
		count = max(1, int(math.Floor(o.Mask.Fraction*float64(len(words))+0.5)))
	}
	if count > len(free) {
		return Prompt{}, SkipFewWords
	}
	if count == len(tokens) {
		return Prompt{}, SkipOnlySlots
	}
	random := stream(o.Seed, "mask", text)
	random.Shuffle(len(free), func(a, b int) { free[a], free[b] = free[b], free[a] })
	p := Prompt{Text: text, Tokens: slices.Sorted(slices.Values(free[:count]))}
	masked := slices.Clone(tokens)
	for _, k := range p.Tokens {
		from, to := o.Mask.part(tokens[k])
		p.Words = append(p.Words, tokens[k][from:to])
		masked[k] = tokens[k][:from] + Slot + tokens[k][to:]
	}
	p.Template = strings.Join(masked, " ")
	return p, ""
}

// part returns the range of a white-space token that a slot replaces.
func (m Mask) part(token string) (from, to int) {
	if m.Whole {
		return 0, len(token)
	}
	return core(token)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// core returns the range of a token without the punctuation around it.
// Apostrophes stay, as in "'tis" and "the dogs'".
func core(token string) (from, to int) {
	if !strings.ContainsFunc(token, isWord) {
		return 0, len(token)
	}
	outside := func(r rune) bool { return strings.ContainsRune(".,;:!?()[]{}\"“”„«»…–—", r) }
	left := strings.TrimLeftFunc(token, outside)
	return len(token) - len(left), len(token) - len(left) + len(strings.TrimRightFunc(left, outside))
}

// apply returns the white-space tokens of a sentence with the markers replaced.
// replaced counts each replaced marker.
func (m Markers) apply(raw string) (tokens []string, replaced map[string]int) {
	replaced = make(map[string]int)
	for _, token := range strings.Fields(raw) {
		become := token
		switch token {
		case "@@UNKNOWN@@", "@@unknown@@", "<unk>":
			become = "[UNK]"
		case "@-@":
			become = "-"
		case "``", "''":
			become = `"`
			if m == DISCS {
				become = ""
			}
		}
		if become != token {
			replaced[token]++
		}
		if become != "" {
			tokens = append(tokens, become)
		}
	}
	return tokens, replaced
}

// stream returns a random stream that depends on the seed, a purpose and a text.
func stream(seed uint64, purpose, text string) *rand.Rand {
	sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), purpose+"\x00"+text...))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])))
}
