package tokenize

import (
	"unicode"
)

// cutter is a model. It cuts a word, which is never empty, and adds its tokens to an encoding.
type cutter interface {
	cut(e *encoder, word letters)
}

// splitter appends the parts of a piece to list.
type splitter func(piece letters, list []letters) []letters

// The ways in which splitAt treats a match.
const (
	removed            = "Removed"
	isolated           = "Isolated"
	mergedWithPrevious = "MergedWithPrevious"
)

// splitAt cuts at every match; length returns the length of the match at the start of rest, 0 for none.
func splitAt(length func(rest []rune) int, behavior string) splitter {
	return func(piece letters, list []letters) []letters {
		from := 0
		add := func(to int) {
			if to > from {
				list = append(list, piece.part(from, to))
			}
			from = to
		}
		for i := 0; i < len(piece.runes); {
			n := length(piece.runes[i:])
			if n == 0 {
				i++
				continue
			}
			if behavior != mergedWithPrevious {
				add(i)
			}
			if i += n; behavior != removed {
				add(i)
			}
			from = i
		}
		add(len(piece.runes))
		return list
	}
}

// The pieces that get a space before them.
const (
	prependAlways = "always"
	prependFirst  = "first" // only the first piece of the text
	prependNever  = "never"
)

// splitMetaspace writes spaces as ▁, puts one before the pieces that prepend names, and if split starts a part at each.
func splitMetaspace(prepend string, split bool) splitter {
	return func(piece letters, list []letters) []letters {
		words := letters{make([]rune, len(piece.runes)), piece.source, piece.first}
		for i, r := range piece.runes {
			if r == ' ' {
				r = metaspace
			}
			words.runes[i] = r
		}
		if words.runes[0] != metaspace && (prepend == prependAlways || prepend == prependFirst && piece.first) {
			words = words.prepend(metaspace)
		}
		if !split {
			return append(list, words)
		}
		from := 0
		for i, r := range words.runes {
			if r == metaspace && i > from {
				list = append(list, words.part(from, i))
				from = i
			}
		}
		return append(list, words.part(from, len(words.runes)))
	}
}

// splitGPT2 cuts as the pattern of GPT-2 does:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Go's regexp has no lookahead, so the alternatives are tried by hand.
func splitGPT2(prependSpace bool) splitter {
	return func(piece letters, list []letters) []letters {
		if prependSpace && piece.runes[0] != ' ' {
			piece = piece.prepend(' ')
			piece.source[0][1] = piece.source[0][0] // a token that is only this space stands for no text
		}
		for from := 0; from < len(piece.runes); {
			to := from + gpt2Length(piece.runes[from:])
			list = append(list, piece.part(from, to))
			from = to
		}
		return list
	}
}

// kind returns the kind of a character for the pattern: white space, letter, number or other.
func kind(r rune) int {
	switch {
	case unicode.IsSpace(r):
		return 0
	case unicode.IsLetter(r):
		return 1
	case unicode.Is(unicode.N, r):
		return 2
	}
	return 3
}

// gpt2Length is the number of characters that the pattern takes at the start of text, which is not empty.
func gpt2Length(text []rune) int {
	if text[0] == '\'' && len(text) > 1 {
		switch text[1] {
		case 's', 't', 'm', 'd':
			return 2
		case 'r', 'v', 'l':
			second := map[rune]rune{'r': 'e', 'v': 'e', 'l': 'l'}[text[1]]
			if len(text) > 2 && text[2] == second {
				return 3
			}
		}
	}
	start := 0
	if text[0] == ' ' && len(text) > 1 && kind(text[1]) != 0 {
		start = 1
	}
	first, end := kind(text[start]), start+1
	for end < len(text) && kind(text[end]) == first {
		end++
	}
	if first == 0 && end > 1 && end < len(text) {
		end-- // the last space belongs to the next part
	}
	return end
}
