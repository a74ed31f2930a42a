package tokenize

import (
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// bytePairs is the BPE model (Sennrich et al. 2016). A piece starts as its
// characters, or as its bytes (Radford et al. 2019). Of all neighbours that
// have a merge rule, cut merges those whose rule comes first in the file; for
// equal rules, the leftmost. It repeats this until no rule applies.
type bytePairs struct {
	characters map[rune]int // token of each character; nil if a piece starts as its bytes
	bytes      [256]int     // token of each byte, or -1; beside characters, for those without a token
	unknown    int          // token of a character that has neither a token nor tokens of bytes
	fuse       bool         // whether neighbouring unknown characters become one token
	merges     map[[2]int]merge
}

// merge is a rule, at place rank in the file, that makes token of two.
type merge struct{ rank, token int }

var _ cutter = (*bytePairs)(nil)

// byteSymbols returns the character that stands for each byte. Bytes of
// printable characters stand for themselves. The other bytes get the characters
// from U+0100 on, in order, so that a space is Ġ.
var byteSymbols = sync.OnceValue(func() (symbols [256]rune) {
	next := rune(256)
	for b := range 256 {
		switch {
		case '!' <= b && b <= '~', '¡' <= b && b <= '¬', '®' <= b && b <= 'ÿ':
			symbols[b] = rune(b)
		default:
			symbols[b] = next
			next++
		}
	}
	return symbols
})

// symbolBytes returns the inverse of byteSymbols.
var symbolBytes = sync.OnceValue(func() map[rune]byte {
	inverse := make(map[rune]byte, 256)
	for b, r := range byteSymbols() {
		inverse[r] = byte(b)
	}
	return inverse
})

// decodeBytes returns the bytes that a token spells. Characters that stand for
// no byte, as in an added token, stay.
func decodeBytes(token string) string {
	symbols := symbolBytes()
	var text strings.Builder
	for _, r := range token {
		b, ok := symbols[r]
		if ok {
			text.WriteByte(b)
		} else {
			text.WriteRune(r)
		}
	}
	return text.String()
}

// byteOf returns the byte that a token of a vocabulary of characters stands
// for, or -1 if the token stands for no byte.
func byteOf(token string) int {
	if len(token) == len("<0x00>") && strings.HasPrefix(token, "<0x") && token[5] == '>' {
		b, err := strconv.ParseUint(token[3:5], 16, 8)
		if err == nil {
			return int(b)
		}
	}
	return -1
}

// newBytePairs makes a model whose pieces start as bytes.
func newBytePairs(vocabulary map[string]int, file *pipelineModel) (*bytePairs, error) {
	m := &bytePairs{}
	for b, r := range byteSymbols() {
		id, ok := vocabulary[string(r)]
		// Text in UTF-8 never has these, and the vocabulary of GPT-NeoX, which
		// ModernBERT took over, lacks them.
		never := b == 0xc0 || b == 0xc1 || b > 0xf4
		if !ok && !never {
			return nil, fmt.Errorf("the vocabulary has no token for the byte 0x%02x, which a text can have", b)
		}
		m.bytes[b] = id
	}
	return m, m.setMerges(vocabulary, file.Merges)
}

// newCharacterPairs makes a model whose pieces start as characters.
func newCharacterPairs(vocabulary map[string]int, file *pipelineModel) (*bytePairs, error) {
	m := &bytePairs{characters: map[rune]int{}, fuse: file.FuseUnknown}
	var ok bool
	m.unknown, ok = vocabulary[file.UnknownToken]
	if !ok {
		return nil, fmt.Errorf("unk_token %q is not in the vocabulary", file.UnknownToken)
	}
	for token, id := range vocabulary {
		r, size := utf8.DecodeRuneInString(token)
		if size == len(token) {
			m.characters[r] = id
		}
	}
	for b := range m.bytes {
		id, ok := vocabulary[fmt.Sprintf("<0x%02X>", b)]
		m.bytes[b] = id
		if !ok {
			m.bytes[b] = -1
		}
	}
	return m, m.setMerges(vocabulary, file.Merges)
}

// setMerges reads the merge rules in order. It returns an error if the
// vocabulary lacks a token of a rule.
func (m *bytePairs) setMerges(vocabulary map[string]int, rules []mergeRule) error {
	m.merges = make(map[[2]int]merge, len(rules))
	for rank, rule := range rules {
		left, leftOK := vocabulary[rule[0]]
		right, rightOK := vocabulary[rule[1]]
		token, ok := vocabulary[rule[0]+rule[1]]
		if !leftOK || !rightOK || !ok {
			return fmt.Errorf("merge %d of %q and %q: the vocabulary lacks one of them or what they make", rank,
				rule[0], rule[1])
		}
		m.merges[[2]int{left, right}] = merge{rank, token}
	}
	return nil
}

// start returns the tokens of a piece before any merge.
func (m *bytePairs) start(piece letters) []link {
	links := make([]link, 0, 2*len(piece.runes))
	add := func(token int, source [2]int) {
		last := len(links) - 1
		if m.fuse && token == m.unknown && last >= 0 && links[last].token == token {
			links[last].source[1] = source[1]
			return
		}
		links = append(links, link{token, len(links) - 1, len(links) + 1, source})
	}
	var buffer [utf8.UTFMax]byte
	for i, r := range piece.runes {
		id, ok := m.characters[r]
		if ok {
			add(id, piece.source[i])
			continue
		}
		spelled := buffer[:utf8.EncodeRune(buffer[:], r)]
		if slices.ContainsFunc(spelled, func(b byte) bool { return m.bytes[b] < 0 }) {
			add(m.unknown, piece.source[i])
			continue
		}
		for _, b := range spelled {
			add(m.bytes[b], piece.source[i])
		}
	}
	return links
}

// link is a token of a piece during merging, in a linked list. previous and
// next are indices of links; -1 marks an end.
type link struct {
	token, previous, next int
	source                [2]int
}

// candidate is two neighbours that a rule can merge. pair holds their tokens at
// the time when the candidate was found.
type candidate struct {
	rule merge
	left int
	pair [2]int
}

// candidates is a heap: the earliest rule on top, then the leftmost.
type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c candidates) Less(i, j int) bool {
	return c[i].rule.rank < c[j].rule.rank || c[i].rule.rank == c[j].rule.rank && c[i].left < c[j].left
}
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

var _ heap.Interface = (*candidates)(nil)

// cut merges neighbouring tokens of a piece while a rule does, the rule of the
// lowest rank first and of equals the leftmost. The queue keeps pairs that a
// merge has changed: they are passed over.
func (m *bytePairs) cut(e *encoder, piece letters) {
	links := m.start(piece)
	links[len(links)-1].next = -1
	var queue candidates
	offer := func(left int) {
		if left < 0 || links[left].next < 0 {
			return
		}
		pair := [2]int{links[left].token, links[links[left].next].token}
		rule, ok := m.merges[pair]
		if ok {
			heap.Push(&queue, candidate{rule, left, pair})
		}
	}
	for i := range links {
		offer(i)
	}
	for queue.Len() > 0 {
		c := heap.Pop(&queue).(candidate)
		left := &links[c.left]
		if left.token != c.pair[0] || left.next < 0 || links[left.next].token != c.pair[1] {
			continue // a merge has changed one of the two tokens since
		}
		right := &links[left.next]
		left.token = c.rule.token
		left.next = right.next
		left.source[1] = right.source[1]
		right.token = -1
		if left.next >= 0 {
			links[left.next].previous = c.left
		}
		offer(left.previous)
		offer(c.left)
	}
	for i := 0; i >= 0; i = links[i].next {
		e.addPiece(links[i].token, links[i].source)
	}
}
