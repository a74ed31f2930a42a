package tokenize_test

import (
	"errors"
	"fmt"
	"os"

	"infill/tokenize"
)

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
