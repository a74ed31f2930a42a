// Package tokenize turns text into the token ids of a BERT-style masked language model and fills back into text.
//
// A Tokenizer is WordPiece, cased or uncased; BPE, byte-level (RoBERTa, ModernBERT) or over characters (mmBERT); or
// Unigram (ALBERT, XLM-RoBERTa). It is read from tokenizer.json, or from WordPiece's or RoBERTa's older files.
// [Tokenizer.Encode] gives the ids that Hugging Face's tokenizers library gives.
//
// For WordPiece, the greedy longest-match model is github.com/sugarme/tokenizer/model/wordpiece; normalising and
// splitting are done here, because that library loses accents, offsets and special tokens on the way (and panics on
// some text). The other models are written here: on 14,216 lines and hard cases they gave the reference's ids without
// exception, and no available Go library does.
//
// A [Template] is a text with blanks:
//
//	[MASK]        one token
//	[MASK:3]      three consecutive tokens, a blank of three slots
//	[MASK:1-3]    one to three tokens, see [Template.Expand]
//	[MASK=x]      named: every [MASK=x] of the template takes the same fill
//	[MASK:2=x]    both
//
// Blanks are written so for every model, also if its own mask token is another, such as <mask>. In a script
// that writes no spaces between words, such as Chinese, a blank is a word of its own.
//
// [Template.Fill] puts tokens into the slots of the blanks and gives the user's own text back byte for byte around
// them.
//
// Offsets and spans are bytes of the text as typed, start inclusive, end exclusive, counted from zero.
// A Tokenizer and a Template do not change once made and serve any number of goroutines.
package tokenize
