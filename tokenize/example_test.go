package tokenize_test

import (
	"errors"
	"fmt"
	"os"

	"infill/tokenize"
)

// A template keeps the text around its blanks byte for byte. A fill gets the
// capitals that the text asks for.
func Example() {
	tokenizer, err := tokenize.Load(os.DirFS("../testdata/mini-uncased"))
	if err != nil {
		panic(err)
	}
	template, err := tokenizer.Template("The ferry [MASK] before dawn. [MASK] waved.")
	if err != nil {
		panic(err)
	}
	// A model would choose these.
	left, _ := tokenizer.ID("left")
	nobody, _ := tokenizer.ID("nobody")
	filled := template.Fill([]int{left, nobody})
	fmt.Println(filled.Text)
	fmt.Println(filled.Fills, filled.Spans)
	// Output:
	// The ferry left before dawn. Nobody waved.
	// [left Nobody] [[10 14] [28 34]]
}

// Encode gives the ids of Hugging Face's tokenizers, with the place of each
// token in the text.
func ExampleTokenizer_Encode() {
	tokenizer, err := tokenize.Load(os.DirFS("../testdata/mini-uncased"))
	if err != nil {
		panic(err)
	}
	text := "The café's [MASK]"
	encoding, err := tokenizer.Encode(text)
	if err != nil {
		panic(err)
	}
	for i, token := range encoding.Tokens {
		fmt.Printf("%q is %s, word %d\n", text[encoding.Offsets[i][0]:encoding.Offsets[i][1]], token, encoding.Words[i])
	}
	// Output:
	// "" is [CLS], word -1
	// "The" is the, word 0
	// "café" is cafe, word 1
	// "'" is ', word 2
	// "s" is s, word 3
	// "[MASK]" is [MASK], word 4
	// "" is [SEP], word -1
}

// Errors are for the person who wrote the text: what is wrong, where, and what
// to write instead. Programs ask with errors.Is.
func ExampleTokenizer_Template() {
	tokenizer, err := tokenize.Load(os.DirFS("../testdata/mini-uncased"))
	if err != nil {
		panic(err)
	}
	_, err = tokenizer.Template("The ferry [mask] before dawn.")
	fmt.Println(err)
	fmt.Println(errors.Is(err, tokenize.ErrNoBlank))
	// Output:
	// no blank in the template: "[mask]" at byte offset 10 is not one; write [MASK] or ___ where a word is wanted
	// true
}

// A blank of several lengths becomes a template for each of them, because a
// model reads a mask for each token.
func ExampleTemplate_Expand() {
	tokenizer, err := tokenize.Load(os.DirFS("../testdata/mini-uncased"))
	if err != nil {
		panic(err)
	}
	template, err := tokenizer.Shortest("it was [MASK:1-3] cold", "")
	if err != nil {
		panic(err)
	}
	templates, err := template.Expand(nil)
	if err != nil {
		panic(err)
	}
	for _, template := range templates {
		fmt.Println(len(template.Slots), "slots at", template.Slots)
	}
	pieces, _ := tokenizer.Candidate("unbelievably")
	fmt.Println(templates[len(pieces)-1].Fill(pieces).Text)
	// Output:
	// 1 slots at [3]
	// 2 slots at [3 4]
	// 3 slots at [3 4 5]
	// it was unbelievably cold
}

// A longer text is refused: give one chapter at a time.
func ExampleMaxText() {
	fmt.Println(tokenize.MaxText, "bytes")
	// Output:
	// 1048576 bytes
}

// A word that the vocabulary lacks is several tokens, and so needs a blank of
// as many slots.
func ExampleTokenizer_Candidate() {
	tokenizer, err := tokenize.Load(os.DirFS("../testdata/mini-uncased"))
	if err != nil {
		panic(err)
	}
	ids, err := tokenizer.Candidate("unbelievably")
	if err != nil {
		panic(err)
	}
	for _, id := range ids {
		fmt.Println(tokenizer.Token(id), tokenizer.Continues(id))
	}
	fmt.Println(tokenizer.Decode(ids))
	// Output:
	// unbelie false
	// ##va true
	// ##bly true
	// unbelievably
}

// Blanks of one name hold the same, and are one group.
func ExampleTemplate() {
	tokenizer, err := tokenize.Load(os.DirFS("../testdata/mini-uncased"))
	if err != nil {
		panic(err)
	}
	template, err := tokenizer.Template("[MASK=who] said that [MASK=who] saw [MASK:2].")
	if err != nil {
		panic(err)
	}
	for _, blank := range template.Blanks {
		fmt.Printf("%s: %d slots\n", template.Text[blank.Start:blank.End], blank.Slots)
	}
	fmt.Println(template.Groups)
	// Output:
	// [MASK=who]: 1 slots
	// [MASK=who]: 1 slots
	// [MASK:2]: 2 slots
	// [[0 1] [2]]
}

// An error's Offset lets an editor put its mark at the fault.
func ExampleInputError() {
	tokenizer, err := tokenize.Load(os.DirFS("../testdata/mini-uncased"))
	if err != nil {
		panic(err)
	}
	_, err = tokenizer.Plain("the [MASK] left")
	var fault *tokenize.InputError
	fmt.Println(errors.As(err, &fault), fault.Fault, fault.Offset)
	// Output:
	// true blank in a whole text 4
}
