// Package tokenize turns text into the token ids of a BERT-style masked language model and fills back into text.
//
// A [Tokenizer] is WordPiece over a vocabulary, cased or uncased. [Tokenizer.Encode] gives the ids that Hugging Face's
// tokenizers library gives for a BertNormalizer, a BertPreTokenizer and a WordPiece model. The greedy longest-match
// model is github.com/sugarme/tokenizer/model/wordpiece; normalising and splitting are done here, because that
// library loses accents, offsets and special tokens on the way (and panics on some text).
//
// A [Template] is a text with slots:
//
//	[MASK]        one token
//	[MASK:3]      three consecutive tokens, a blank of three slots
//	[MASK:1-3]    one to three tokens, see [Tokenizer.Expand]
//	[MASK=x]      named: every [MASK=x] of the template takes the same fill
//	[MASK:2=x]    both
//
// [Template.Fill] puts tokens into the slots and gives the user's own text back byte for byte around them.
//
// Offsets and spans are bytes of the text as typed, start inclusive, end exclusive, counted from zero.
// A Tokenizer and a Template do not change once made and serve any number of goroutines.
package tokenize
