// Writes the files beside it: a small vocabulary with capitals and accents, four tokenizers over it, and what the
// reference, the npm package `tokenizers`, makes of hard texts with each. Needed only to change the cases:
//
//   npm install tokenizers@0.23.2 && node generate.mjs
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const { Tokenizer } = createRequire(path.join(process.cwd(), "package.json"))("tokenizers");
const folder = path.dirname(fileURLToPath(import.meta.url));

// The special tokens stand at other ids than in BERT, so that no test passes by knowing 101.
const specials = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const letters = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789éÉñİıßΣσςäöüÄ日本語の가"];
const marks = [..."!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~€…—“”‘’¿¡。？"];
const words = `
the The THE a A i I he He had me Me she She was not and And of in In to it It is Is ferry Ferry left Left harbour Harbour
before dawn Dawn cafe Cafe café Café naive naïve Zurich Zürich zurich resume Résumé new New York Berlin Paris January Mr
high way mask Mask MASK UNK un ##un ##way ##ways ##ing ##ed ##s ##ly ##able ##believ ##er ##é ##ürich ##aïve ##mark Den
don Don can Mac ##Donald O ##Brien iPhone ##Phone NASA ##ASA 19 ##97 ##99 20 ##24 3 ##rd wife husband`.split(/\s+/).filter(Boolean);
const vocabulary = [...new Set([...specials, ...marks, ...letters, ...letters.map((l) => "##" + l), "##\u0301", "i\u0307", ...words])];
const id = Object.fromEntries(vocabulary.map((token, i) => [token, i]));
fs.writeFileSync(path.join(folder, "vocab.txt"), vocabulary.map((token) => token + "\n").join(""));

const texts = [
  "The ferry left the harbour before dawn.", "the ferry left the harbour before dawn .", "THE FERRY LEFT",
  "Mr O'Brien had not left Zürich in January 1997.", "Z\u0075\u0308rich and Zürich", "MacDonald's iPhone 3rd, NASA!",
  "Café naïve Résumé", "CAFÉ NAÏVE", "cafe\u0301 e\u0301 \u0301a", "É é E\u0301", "ß ẞ Straße", "İstanbul ısı I i", "ΣΑΣ Σ ς",
  "ñandú Ñ n\u0303", "Ä ä A\u0308", "日本語のテスト", "a日b", "가나 각", "が か\u3099", "\uf900\u3400\u4e00", "𠀀x𫠠y𫤠z",
  "un-believ-able", "unbelievable", "highways", "Highway", "unUN", "he had [MASK] me", "[MASK]", "[MASK][MASK]", "[MASK] [MASK].",
  "high[MASK]", "[MASK]ing", "The [MASK],the[MASK]The", "[mask] [Mask] [MASK", "[MASK:3] [MASK=x]", "[UNK] [SEP][CLS] a [PAD]b", "[unused0] [unused1]",
  "", " ", "\t\n\r", "a\tb\nc\rd", "a\u00a0b\u2009c\u3000d\u2028e", "a\u0085b\u000bc\u000cd", "\u0000a\u0001b\u001bc\u007f", "\ufeffThe\u200b ferry\u00ad", "a\ufffdb",
  "\ue000a\u{f0000}", "👍 a👩\u200d🚀b", "don't can't", "“Don’t,” she — he … ¿a? ¡b!", "a.b,c;d:e!f?g", "$5 €5 19% #20 @a", "x^y`z~|w", "26½°①",
  "a".repeat(100), "a".repeat(101), "é".repeat(100), "é".repeat(101), "e\u0301".repeat(60), "日".repeat(120), "##ing ##s #", "\u037ea\u0387b\u1fefc",
  "ﬁ ǅ ǆ Ⱥ", "क्षि ो ไทย", "עִבְרִית عَرَبِيّ", "𝔗𝔥𝔢", "a\u0301\u0327b", "ệ Ệ", "...", "--", "(the) [The] {THE}", "it is, is it?", "  The   ferry  ",
].map((text) => Buffer.from(text));
for (const bytes of [[0xff], [0x61, 0xff, 0x62], [0x54, 0x68, 0x65, 0x20, 0xc3, 0x20, 0x61], [0x80, 0x81, 0x5b, 0x4d, 0x41, 0x53, 0x4b, 0x5d]]) texts.push(Buffer.from(bytes));

const special = (content) => ({ id: id[content], content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true });
for (const [name, normalizer] of Object.entries({
  "cased": { lowercase: false, strip_accents: null, clean_text: true, handle_chinese_chars: true },
  "cased-stripped": { lowercase: false, strip_accents: true, clean_text: true, handle_chinese_chars: true },
  "uncased-accents": { lowercase: true, strip_accents: false, clean_text: true, handle_chinese_chars: true },
  "uncased-raw": { lowercase: true, strip_accents: null, clean_text: false, handle_chinese_chars: false },
})) {
  const tokenizer = {
    version: "1.0", truncation: null, padding: null,
    added_tokens: ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(special),
    normalizer: { type: "BertNormalizer", ...normalizer },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: { type: "BertProcessing", sep: ["[SEP]", id["[SEP]"]], cls: ["[CLS]", id["[CLS]"]] },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: { type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##", max_input_chars_per_word: 100, vocab: id },
  };
  const content = JSON.stringify(tokenizer);
  fs.writeFileSync(path.join(folder, name + ".tokenizer.json"), content + "\n");
  const reference = Tokenizer.fromString(content);
  let lines = "";
  for (const [i, text] of texts.entries()) {
    const encoding = await reference.encode(text.toString("utf8"));
    lines += JSON.stringify({
      name: `${name}-${i}`,
      text_base64: text.toString("base64"),
      ids: encoding.getIds(),
      tokens: encoding.getTokens(),
      offsets: encoding.getOffsets(),
      words: encoding.getWordIds().map((word) => word ?? -1),
      decoded: await reference.decode(encoding.getIds(), true),
    }) + "\n";
  }
  fs.writeFileSync(path.join(folder, name + ".jsonl"), lines);
}
