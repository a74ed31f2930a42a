package tokenize

import (
	"unicode"
)

// cutter is a tokenization model, such as WordPiece. It cuts a word, which is
// never empty, and adds its tokens to e.
type cutter interface {
	cut(e *encoder, word letters)
}

type splitter func(piece letters, list []letters) []letters

// These are the ways in which splitAt can treat a match.
const (
	removed            = "Removed"
	isolated           = "Isolated"
	mergedWithPrevious = "MergedWithPrevious"
)

// splitAt returns a splitter that cuts at every match. length returns the
// length of a match at the start of rest, or 0.
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
			i += n
			if behavior != removed {
				add(i)
			}
			from = i
		}
		add(len(piece.runes))
		return list
	}
}

// These values say which pieces get a space before them.
const (
	prependAlways = "always"
	prependFirst  = "first" // only the first piece of the text
	prependNever  = "never"
)

// splitMetaspace writes spaces as ▁, and adds ▁ to pieces as prepend says. If
// split is set, ▁ starts a part.
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
// Go's regexp has no lookahead, so gpt2Length tries the alternatives by hand.
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

// kind returns the kind of a character in the pattern of GPT-2: white space
// (0), letter (1), number (2) or other (3).
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

// gpt2Length returns the number of characters that the pattern matches at the
// start of text, which is not empty.
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
	first := kind(text[start])
	end := start + 1
	for end < len(text) && kind(text[end]) == first {
		end++
	}
	if first == 0 && end > 1 && end < len(text) {
		end-- // the last space belongs to the next part
	}
	return end
}

// one returns a function that matches a character for which is returns true.
func one(is func(rune) bool) func(rest []rune) int {
	return func(rest []rune) int {
		if is(rest[0]) {
			return 1
		}
		return 0
	}
}
