package infill

import (
	"bytes"
	_ "embed"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"infill/samplers"
	"infill/tokenize"
)

//go:embed speech.txt.gz
var speechFile []byte

// speech maps English words in lower case to their parts of speech, one letter
// for each. speech.py writes speechFile.
var speech = sync.OnceValue(func() map[string]string {
	reader, err := gzip.NewReader(bytes.NewReader(speechFile))
	if err != nil {
		panic(err) // only a broken build has another file
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		panic(err)
	}
	words := make(map[string]string, bytes.Count(text, []byte{'\n'}))
	for line := range strings.Lines(string(text)) {
		word, parts, _ := strings.Cut(strings.TrimSpace(line), " ")
		words[word] = parts
	}
	return words
})

// A part is the parts of speech that a blank may take, and the letters that
// touch the blank in the template.
type part struct {
	codes       string // one letter for each part of speech, as in speech
	left, right string // in lower case
}

func letterOf(name string) byte { return "nvar"[slices.Index(partsOfSpeech, name)] }

// newPart returns the part of a blank; parts are the values of pos for it.
func newPart(t *tokenize.Template, b tokenize.Blank, parts []string) *part {
	p := &part{}
	for _, name := range parts {
		p.codes += string(letterOf(name))
	}
	left, right := t.Beside(b)
	if b.TouchesLeft {
		p.left = strings.ToLower(left)
	}
	if b.TouchesRight {
		p.right = strings.ToLower(right)
	}
	return p
}

// takes reports whether a word, with the letters beside the blank, can be one of
// the parts of speech. Letters alone may be another word.
func (p *part) takes(word string) bool {
	return word != "" && strings.ContainsAny(speech()[p.left+strings.ToLower(word)+p.right], p.codes)
}

// words returns what is left of the words of the part of speech without the
// letters beside the blank, in lower case and sorted.
func (p *part) words() []string {
	var list []string
	for word, codes := range speech() {
		if !strings.ContainsAny(codes, p.codes) || len(word) <= len(p.left)+len(p.right) {
			continue
		}
		if strings.HasPrefix(word, p.left) && strings.HasSuffix(word, p.right) {
			list = append(list, word[len(p.left):len(word)-len(p.right)])
		}
	}
	slices.Sort(list)
	return list
}

// A lexicon has words, and the tokens that spell them.
type lexicon struct {
	reads []string // text of each token in lower case, [vocabulary]
	words []string // sorted
	// backward has the words sorted from their ends.
	backward func() []string
	// first and later have the tokens of the first and of other pieces, by text.
	first, later map[string][]int
	known        map[string]uint32 // cache of cuts
}

// newLexicon returns a lexicon of words, and of the tokens that are allowed as
// the first piece and as each later one.
func newLexicon(words, reads []string, first, later []int) *lexicon {
	byText := func(tokens []int) map[string][]int {
		texts := map[string][]int{}
		for _, token := range tokens {
			text := reads[token]
			if text != "" {
				texts[text] = append(texts[text], token)
			}
		}
		return texts
	}
	x := &lexicon{reads: reads, words: words, first: byText(first), later: byText(later), known: map[string]uint32{}}
	x.backward = sync.OnceValue(func() []string {
		return slices.SortedFunc(slices.Values(words), compareEnds)
	})
	return x
}

// compareEnds compares two words by their last bytes, then by those before.
func compareEnds(a, b string) int {
	for i := range min(len(a), len(b)) {
		order := int(a[len(a)-1-i]) - int(b[len(b)-1-i])
		if order != 0 {
			return order
		}
	}
	return len(a) - len(b)
}

// tokens returns the tokens of a text as the first piece, or as a later one.
func (x *lexicon) tokens(text string, piece int) []int {
	if piece == 0 {
		return x.first[text]
	}
	return x.later[text]
}

// cuts has bit n set if a text can be cut into n later pieces.
func (x *lexicon) cuts(text string) uint32 {
	if text == "" {
		return 1
	}
	known, ok := x.known[text]
	if ok {
		return known
	}
	var bits uint32
	for end := 1; end <= len(text); end++ {
		if x.later[text[:end]] != nil {
			bits |= x.cuts(text[end:]) << 1
		}
	}
	x.known[text] = bits
	return bits
}

// cuttable reports whether a text can be cut into pieces from up to before to.
func (x *lexicon) cuttable(text string, from, to int) bool {
	if from > 0 || to == 0 {
		return x.cuts(text)&(1<<(to-from)) != 0
	}
	for end := 1; end <= len(text); end++ {
		if x.first[text[:end]] != nil && x.cuts(text[end:])&(1<<(to-1)) != 0 {
			return true
		}
	}
	return false
}

// A gap is the pieces of a blank that are open, and the letters around them.
type gap struct {
	from, to    int // the open pieces
	front, back string
}

// gap returns the open pieces between the known ones.
func (x *lexicon) gap(known []int) gap {
	g := gap{to: len(known)}
	for g.from < len(known) && known[g.from] != samplers.Open {
		g.front += x.reads[known[g.from]]
		g.from++
	}
	for g.to > g.from && known[g.to-1] != samplers.Open {
		g.to--
		g.back = x.reads[known[g.to]] + g.back
	}
	return g
}

// around returns the words with the front of a gap or, without, with its back.
func (x *lexicon) around(g gap) []string {
	if g.front == "" && g.back != "" {
		return neighbours(x.backward(), func(word string) int {
			return compareEnds(word[max(0, len(word)-len(g.back)):], g.back)
		})
	}
	return neighbours(x.words, func(word string) int {
		return strings.Compare(word[:min(len(word), len(g.front))], g.front)
	})
}

// letters returns the letters that a word has in the gap. ok is false if the word
// does not have those around it.
func (g gap) letters(word string) (letters string, ok bool) {
	rest, begins := strings.CutPrefix(word, g.front)
	letters, ends := strings.CutSuffix(rest, g.back)
	return letters, begins && ends
}

func (x *lexicon) next(known []int, piece int) iter.Seq[int] {
	g := x.gap(known)
	return func(yield func(int) bool) {
		found := map[int]bool{}
		once := func(token int) bool {
			if found[token] {
				return true
			}
			found[token] = true
			return yield(token)
		}
		for _, word := range x.around(g) {
			letters, ok := g.letters(word)
			if ok && !x.cut(letters, g, piece, once) {
				return
			}
		}
	}
}

// cut yields the tokens that a piece has where letters are cut into the open
// pieces, and reports whether yield wants more.
func (x *lexicon) cut(letters string, g gap, piece int, yield func(token int) bool) bool {
	for from := 0; from < len(letters) && (from == 0 || piece > g.from); from++ {
		if !x.cuttable(letters[:from], g.from, piece) {
			continue
		}
		for to := from + 1; to <= len(letters); to++ {
			tokens := x.tokens(letters[from:to], piece)
			if tokens == nil || !x.cuttable(letters[to:], piece+1, g.to) {
				continue
			}
			for _, token := range tokens {
				if !yield(token) {
					return false
				}
			}
		}
	}
	return true
}

func (x *lexicon) has(known []int) bool {
	word := ""
	for piece, token := range known {
		text := x.reads[token]
		if !slices.Contains(x.tokens(text, piece), token) {
			return false
		}
		word += text
	}
	_, ok := slices.BinarySearch(x.words, word)
	return ok
}
