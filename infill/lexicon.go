package infill

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/klauspost/compress/gzip"

	"infill/internal/regular"
	"infill/tokenize"
)

// The English words, as readLexicon reads them; words.py wrote them.
//
//go:embed words.txt.gz
var englishList []byte

// wordWeights are the weights of words of two pieces, three, ..., relative to words of one piece.
type wordWeights struct{ Existing, Invented []float64 }

// usualWords are the weights for a lexicon that a model has none for: those of the built-in model.
var usualWords = wordWeights{Existing: []float64{0.026, 0.011}, Invented: []float64{0.1, 0.04}}

// Values of [OpenOptions.Lexicon] that are no files: "none" takes no word for invented.
const (
	english = "english"
	noWords = "none"
)

const (
	wordPieces   = 3 // that the word of an only blank has at most
	listedPieces = 8 // that a word of a lexicon has at most
)

// A lexicon is the words that exist, as a vocabulary cuts them into pieces.
type lexicon struct {
	sha256 string
	// The words of each number of pieces, from the first piece on, and from the last on.
	forward, backward [listedPieces + 1]cutWords
}

// cutWords are words of so many pieces, in one direction.
type cutWords struct {
	words []cutWord // ascending
	// heads are, by a word's first piece, how often words that begin with it have so many pieces, of all, in nats.
	heads []float32
}

// A cutWord is a word of at most listedPieces pieces, or the beginning of one, padded with -1: before its words.
type cutWord [listedPieces]int32

func newCutWord(pieces []int) (w cutWord) {
	for place := range w {
		if w[place] = -1; place < len(pieces) {
			w[place] = int32(pieces[place])
		}
	}
	return w
}

func compareCut(a, b cutWord) int {
	for i, piece := range a {
		if piece != b[i] {
			return cmp.Compare(piece, b[i])
		}
	}
	return 0
}

// englishLexicon reads the list of the program.
func (v *vocabulary) englishLexicon() *lexicon {
	r, err := gzip.NewReader(bytes.NewReader(englishList))
	if err == nil {
		var list *lexicon
		if list, err = v.readLexicon(r); err == nil {
			return list
		}
	}
	panic(err) // a bug in the program
}

// openLexicon reads a file.
func (v *vocabulary) openLexicon(name string) (*lexicon, error) {
	file, err := regular.Open(name) // a pipe that nobody writes into would hold the program
	if err != nil {
		return nil, err
	}
	defer file.Close()
	list, err := v.readLexicon(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// maxLexicon bounds a lexicon, in bytes.
const maxLexicon = 256 << 20

// readLexicon reads a list of words, one a line, each with a tab and how often it stands in a text, or without.
func (v *vocabulary) readLexicon(r io.Reader) (*lexicon, error) {
	list, err := io.ReadAll(io.LimitReader(r, maxLexicon+1))
	if err != nil {
		return nil, err
	}
	if len(list) > maxLexicon {
		return nil, fmt.Errorf("more than %d MiB: a lexicon is a list of one word a line", maxLexicon>>20)
	}
	sum := sha256.Sum256(list)
	l := &lexicon{sha256: hex.EncodeToString(sum[:])}
	first, last := newTally(v.tokenizer.VocabularySize()), newTally(v.tokenizer.VocabularySize())
	cut := v.cutter()
	lines := 0
	for line := range strings.Lines(string(list)) {
		word, times, counted := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		lines++
		count := 1.0
		if counted {
			if count, err = strconv.ParseFloat(times, 64); err != nil || !(count > 0) || math.IsInf(count, 0) {
				return nil, fmt.Errorf("line %d: %.40q is not how often a word stands in a text: "+
					"write a number above 0, or the word alone", lines, times)
			}
		}
		if word = strings.TrimSpace(word); strings.ContainsFunc(word, inNoWord) {
			return nil, fmt.Errorf("line %d: %.40q is not a word: a lexicon is a list of one word a line, in UTF-8",
				lines, word)
		}
		pieces := cut(word)
		if len(pieces) == 0 {
			continue
		}
		first.add(&l.forward, pieces, count)
		slices.Reverse(pieces)
		last.add(&l.backward, pieces, count)
	}
	if !slices.ContainsFunc(l.forward[:], func(c cutWords) bool { return len(c.words) > 0 }) {
		return nil, fmt.Errorf("none of its %d lines is a word of up to %d pieces of the model's vocabulary: "+
			"give a lexicon of the model's language, or none", lines, listedPieces)
	}
	first.finish(&l.forward)
	last.finish(&l.backward)
	return l, nil
}

// A tally counts words by their first piece.
type tally struct {
	all   []float64
	heads [listedPieces + 1][]float64
}

func newTally(tokens int) *tally {
	t := &tally{all: make([]float64, tokens)}
	for n := range t.heads {
		t.heads[n] = make([]float64, tokens)
	}
	return t
}

func (t *tally) add(list *[listedPieces + 1]cutWords, pieces []int, count float64) {
	t.all[pieces[0]] += count
	if n := len(pieces); n <= listedPieces {
		t.heads[n][pieces[0]] += count
		list[n].words = append(list[n].words, newCutWord(pieces))
	}
}

func (t *tally) finish(list *[listedPieces + 1]cutWords) {
	for n := 2; n <= listedPieces; n++ {
		c := &list[n]
		slices.SortFunc(c.words, compareCut)
		c.words, c.heads = slices.Compact(c.words), make([]float32, len(t.all))
		for piece, count := range t.heads[n] {
			c.heads[piece] = float32(math.Log(count / (t.all[piece] + 1)))
		}
	}
}

// inNoWord reports whether a character stands in no word.
func inNoWord(r rune) bool { return unicode.IsSpace(r) || r == unicode.ReplacementChar || r == 0 }

// cutter cuts words of a list into the pieces that the tokenizer cuts them into, nil for a word that it cannot write.
// For pieces marked by ## it looks for the longest by itself, ten times as fast.
func (v *vocabulary) cutter() func(word string) []int {
	begin, going := map[string]int{}, v.continuations()
	for _, id := range v.fillable {
		if token := v.tokenizer.Token(id); !v.tokenizer.Continues(id) {
			begin[token] = id
		} else if !strings.HasPrefix(token, "##") {
			going = nil
			break
		}
	}
	var pieces []int
	return func(word string) []int {
		if pieces = pieces[:0]; len(going) == 0 || v.tokenizer.Cased() || !plain(word) {
			ids, err := v.tokenizer.Candidate(word)
			begins := func(id int) bool { return !v.tokenizer.Continues(id) && !v.tokenizer.Unspaced(id) }
			if err != nil || slices.ContainsFunc(ids[min(1, len(ids)):], begins) {
				return nil
			}
			return ids
		}
		for list, rest := begin, word; rest != ""; list = going {
			end := len(rest)
			for end > 0 {
				if id, ok := list[rest[:end]]; ok {
					pieces = append(pieces, id)
					break
				}
				end--
			}
			if rest = rest[end:]; end == 0 {
				return nil
			}
		}
		return pieces
	}
}

// plain reports whether a word has small letters from a to z alone.
func plain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' })
}

// has reports whether a word of several pieces exists.
func (l *lexicon) has(pieces []int) bool {
	_, found := slices.BinarySearchFunc(l.forward[len(pieces)].words, newCutWord(pieces), compareCut)
	return found
}

// narrow makes of what the model says of the next piece of a word what it says of it among the words of n pieces that
// exist and begin with the given ones, written into row; a first piece counts by how often it begins such words.
func (c *cutWords) narrow(begin []int, logp, row []float32) {
	infinite := float32(math.Inf(-1))
	for i := range row {
		row[i] = infinite
	}
	if len(begin) == 0 {
		for piece, head := range c.heads {
			row[piece] = logp[piece] + head
		}
	} else {
		n, from := len(begin), newCutWord(begin)
		at, _ := slices.BinarySearchFunc(c.words, from, compareCut)
		for ; at < len(c.words) && slices.Equal(c.words[at][:n], from[:n]); at++ {
			row[c.words[at][n]] = logp[c.words[at][n]]
		}
	}
	highest, sum := slices.Max(row), 0.0
	if highest == infinite {
		return
	}
	for _, l := range row {
		if l != infinite {
			sum += math.Exp(float64(l - highest))
		}
	}
	total := highest + float32(math.Log(sum))
	for i := range row {
		row[i] -= total
	}
}

// judges reports whether the word of a blank can be looked up.
func judges(b tokenize.Blank) bool {
	return b.Slots > 1 && b.Slots <= listedPieces && !b.TouchesLeft && !b.TouchesRight
}
