// Package tokenize turns text into the token ids of a BERT-style masked
// language model and fills back into text.
//
// A Tokenizer has one of three models: WordPiece, cased or uncased; BPE,
// byte-level (RoBERTa, ModernBERT) or over characters (mmBERT); or Unigram
// (ALBERT, XLM-RoBERTa). It is read from tokenizer.json, or from the older
// files of WordPiece or RoBERTa. [Tokenizer.Encode] gives the same ids as
// Hugging Face's tokenizers library.
//
// For WordPiece, the greedy longest-match model is
// github.com/sugarme/tokenizer/model/wordpiece. This package itself normalises
// and splits the text, because that library loses accents, offsets and special
// tokens on the way, and panics on some text. The other models are written
// here, because no available Go library gives the reference's ids. On 14,216
// lines and hard cases, these models gave them without exception.
//
// A [Template] is a text with blanks:
//
//	[MASK]        one token
//	[MASK:3]      three consecutive tokens, a blank of three slots
//	[MASK:1-3]    one to three tokens, see [Template.Expand]
//	[MASK=x]      named: every [MASK=x] of the template takes the same fill
//	[MASK:2=x]    both
//
// Blanks are written so for every model, even if its own mask token is another,
// such as <mask>. In a script that writes no spaces between words, such as
// Chinese, a blank is a word of its own.
//
// [Template.Fill] puts tokens into the slots of the blanks. Around the blanks,
// it returns the user's own text byte for byte.
//
// Offsets and spans are bytes of the text as typed, start inclusive, end
// exclusive, counted from zero. A Tokenizer and a Template never change once
// made, so any number of goroutines may use them.
package tokenize
