package lines

import "unicode/utf8"

// Characters turns ranges of bytes of a text, in about ascending order, into ranges of
// characters (code points), and Bytes turns them back. Every result has characters.
func Characters(text string, spans [][2]int) [][2]int {
	at, characters := 0, 0
	return turned(spans, func(to int) int {
		if to < at {
			characters -= utf8.RuneCountInString(text[to:at])
		} else {
			characters += utf8.RuneCountInString(text[at:to])
		}
		at = to
		return characters
	})
}

// Bytes turns ranges of characters of a text into ranges of bytes.
func Bytes(text string, spans [][2]int) [][2]int {
	at, characters := 0, 0
	return turned(spans, func(to int) int {
		for ; characters < to; characters++ {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
		}
		for ; characters > to; characters-- {
			_, size := utf8.DecodeLastRuneInString(text[:at])
			at -= size
		}
		return at
	})
}

func turned(spans [][2]int, turn func(place int) int) [][2]int {
	list := make([][2]int, len(spans))
	for i, span := range spans {
		list[i] = [2]int{turn(span[0]), turn(span[1])}
	}
	return list
}
