"""Makes the tokenizers and reference values beside this file.

Each NAME.tokenizer.json has the layout of a family's published tokenizer, with a
small vocabulary trained on the sentences below; its character map is compiled by
SentencePiece from the few rules below. texts.json holds texts (base64): the
sentences, the hard cases of ../golden, and random strings of hard pieces.
NAME.json holds, for each text, what Hugging Face's tokenizers gives:

  ids      with the tokens around the text
  offsets  in bytes, white space at either end left out; null where the text is
           rewritten before it is cut, which shifts the reference's offsets
  decoded  the ids decoded, special tokens skipped

Python and its packages are needed to make these files, never to run the tests:
  pip install tokenizers sentencepiece protobuf transformers
  python generate_reference.py [NAME...]

gemma.tokenizer.json has the layout of Gemma's and mmBERT's, gemma-metaspace its
parts in other places, over a vocabulary of characters with tokens for bytes. Their
texts are those of texts.json and then those of scripts.json; "random" has ids, tokens
of bytes among them, with the text that they are decoded to.
"""

import base64
import io
import json
import pathlib
import random
import sys

import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent

SENTENCES = """
The baker sold warm bread before the sun came up, and by noon the shelves were empty.
A small boat drifted past the old harbour wall while two gulls argued over a crust.
She wrote a letter to her brother, but she didn't send it; she couldn't find a stamp.
In 1969 the river froze for the first time in 200 years, and people walked across it.
They'll say that it's only a story, and I've heard it told in 14 different ways.
He had told me that the 7:45 train would be late, and I'd believed every word of it.
Nobody knew why the clock on the tower had stopped at half past three (or so we thought).
We walked home through the rain without a word, our shoes full of water and small stones.
"You're not listening," said the older girl, "and you haven't been listening all day!"
Was there anything left to do? Perhaps; but who would do it, and when, and for how much?
The museum opened its doors at nine o'clock, closed them at five, and lost money all year.
A good knife, a sharp eye and a steady hand: that is all the work needs, my uncle said.
Le garçon naïf a mangé une crêpe près du café, où il était déjà allé l'été dernier.
Der große Bär läuft über die Brücke, während die müden Kinder fröhlich grüßen.
El niño pequeño soñó con montañas, y su hermana le contó un cuento aún más extraño.
""".strip().splitlines()

# What a character map does: wide forms, odd blanks, invisible characters, ligatures, and pairs that combine.
RULES = {
    **{chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)},
    **dict.fromkeys("\t\n\r\u00a0\u2009\u202f\u3000", " "),
    **dict.fromkeys(["\u200b", "\ufeff", "\u00ad", "\x07", "\x00"], ""),
    "ﬁ": "fi", "½": "1⁄2", "①": "1", "…": "...", "e\u0301": "é", "か\u3099": "が", "\u1100\u1161": "가", "²": "2",
}

PIECES = [*"abcXYZ 0129  '.,!?-_\"()", "'s", "'re", "'ll", "'LL", " 's", "\t", "\n", "\n\n", "  ", "   ", "é", "e\u0301", "ñ", "İ", "ß", "ﬁ",
          "Ａ", "①", "½", "²", "\u00a0", "\u2009", "\u3000", "\u200b", "\ufeff", "\u00ad", "你好", "日本", "が", "か\u3099", "한국", "Ελλάδα",
          "привет", "ё", "🙂", "👩‍👩‍👧", "🇫🇷", "€", "…", "—", "“", "``", "''", "<mask>", "[MASK]", "<s>", "</s>", "[SEP]", "[CLS]", "<unk>", "[UNK]",
          "▁", "▁▁", "Ġ", "the", "ing", " the", "\x07", "\x85", "|||PHONE|||", "े", "क्षि", "\r\n", "\u1100\u1161"]


def texts():
    golden = (HERE / ".." / "golden" / "tokenizer.jsonl").read_text().splitlines()
    hard = [base64.b64decode(json.loads(line)["text_base64"]).decode("utf-8", "replace") for line in golden]
    rng = random.Random(7)
    fuzz = ["".join(rng.choice(PIECES) for _ in range(rng.randint(1, 12))) for _ in range(400)]
    return [*SENTENCES, *(h for h in hard if len(h) < 300), *fuzz]


def blank(c):
    return c.isspace() and c not in "\x1c\x1d\x1e\x1f"


def store(name, t, rewritten, more=()):
    t.save(str(HERE / f"{name}.tokenizer.json"), pretty=False)
    ids, offsets, decoded = [], [], []
    for text in [*texts(), *more]:
        e = t.encode(text)
        spans = []
        for start, end in e.offsets:
            while start < end and blank(text[start]):
                start += 1
            while start < end and blank(text[end - 1]):
                end -= 1
            spans.append([len(text[:start].encode()), len(text[:end].encode())])
        ids.append(e.ids)
        offsets.append(None if rewritten(text) else spans)
        decoded.append(t.decode(e.ids, skip_special_tokens=True))
    out = dict(made_by=f"tokenizers {tokenizers.__version__}", ids=ids, offsets=offsets, decoded=decoded)
    (HERE / f"{name}.json").write_text(json.dumps(out, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(name, t.get_vocab_size(), "tokens")


def added(content, lstrip=False, normalized=False):
    return tokenizers.AddedToken(content, lstrip=lstrip, normalized=normalized, special=True)


def byte_level(name, normalizer, special, rewritten):
    t = Tokenizer(models.BPE())
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(SENTENCES, trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    if special:
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    else:
        t.add_tokens([tokenizers.AddedToken(" " * n, normalized=True) for n in range(8, 1, -1)])
        t.add_tokens([tokenizers.AddedToken("|||PHONE|||", normalized=True)])
        t.add_special_tokens([added("[UNK]"), added("[CLS]"), added("[SEP]"), added("[PAD]"), added("[MASK]", True)])
        t.post_processor = around(t, "[CLS]", "[SEP]")
    store(name, t, rewritten)


def around(t, first, last):
    return processors.TemplateProcessing(single=f"{first} $A {last}", special_tokens=[(x, t.token_to_id(x)) for x in (first, last)])


def unigram():
    """The pieces and the character map of a SentencePiece model."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    rules = HERE / "rules.tsv"
    rules.write_text("".join(
        f"{' '.join(f'{ord(c):X}' for c in k)}\t{' '.join(f'{ord(c):X}' for c in v)}\n" for k, v in sorted(RULES.items()) if "\x00" not in k))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=260, model_type="unigram", minloglevel=2,
        normalization_rule_tsv=str(rules), hard_vocab_limit=False)
    rules.unlink()
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return [(p.piece, round(p.score, 4)) for p in proto.pieces[3:]], normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)


def metaspace(name, vocabulary, unknown, normalizer, pre_tokenizer, special, mask, first, last):
    t = Tokenizer(models.Unigram(vocabulary, unknown))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre_tokenizer, decoders.Metaspace()
    t.add_special_tokens([*map(added, special), added(mask, True)])
    t.post_processor = around(t, first, last)
    plain = set(" !\"'(),-.:;?_" + "".join(map(chr, [*range(48, 58), *range(65, 91), *range(97, 123)])))
    store(name, t, lambda text: not set(text) <= plain or "''" in text or "  " in text)


SCRIPTS = """
Þórður æfði sig á íslensku, și apoi în română; Łódź też.
Η γάτα κοιμάται πάνω στο χαλί.
Съешь же ещё этих мягких французских булок.
Բարև ձեզ, ինչպե՞ս եք։
שלום עולם, מה שלומך?
مرحبا بالعالم، كيف حالك؟
नमस्ते दुनिया, आप कैसे हैं?
ওহে বিশ্ব, তুমি কেমন আছ?
ਸਤ ਸ੍ਰੀ ਅਕਾਲ ਦੁਨੀਆ
નમસ્તે દુનિયા
வணக்கம் உலகமே
హలో ప్రపంచం
ಹಲೋ ವಿಶ್ವ
ഹലോ വേൾഡ്
สวัสดีชาวโลก วันนี้อากาศดีมาก
ສະບາຍດີຊາວໂລກ
བཀྲ་ཤིས་བདེ་ལེགས།
გამარჯობა მსოფლიო
ሰላም ዓለም
ជំរាបសួរពិភពលោក
မင်္ဂလာပါကမ္ဘာလောက
안녕하세요 세계, 잘 지내세요?
こんにちは世界。今日はとても良い天気ですね。
我喜欢苹果,他喜欢看书。今天天气很好。
ᎣᏏᏲ ᎡᎶᎯ
ᠰᠠᠶᠢᠨ ᠪᠠᠶᠢᠨ᠎ᠠ ᠤᠤ
👩‍👩‍👧‍👦 🏳️‍🌈 🇫🇷🇩🇪 👍🏽 ☺️ 🫠
\ue000\U000f0000\uffff\ufdd0\U0010ffff
\u0301\u0301a\u200d\u200e\u2066 ﷽ 𝒳𝔜 𐍈 𒀀
<0x41><0x0A> <0xZZ> 0x41 ▁▁ ▁a a▁ <table><unused0>
\ta\t\tb  c   d\n\n\ne\r\n
""".strip().splitlines()

ASIAN = "我喜欢苹果 他喜欢看书 今天天气很好 我们去学校 他们喜欢我们 今日はとても良い天気です 私は本を読みます 天気が良いです สวัสดี วันนี้ อากาศดีมาก ดีมาก".split()


def scripts():
    rng = random.Random(9)
    parts = [c for text in SCRIPTS for c in text if c != " "] + [" ", "  ", "\n"] * 20
    return [*SCRIPTS,
            *("".join(rng.choice(parts) for _ in range(rng.randint(1, 20))) for _ in range(150))]


def character_pairs(name, pre_tokenizer, decoder):
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trained.train_from_iterator([*SENTENCES, *ASIAN, " ".join(ASIAN)], trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>"], show_progress=False))
    learnt = json.loads(trained.to_str())["model"]
    first = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<unused0>", "\n", "\n\n", "▁▁", "▁▁▁", "<table>", *(f"<0x{b:02X}>" for b in range(256))]
    words = [w for w in sorted(learnt["vocab"], key=learnt["vocab"].get) if w not in first]
    vocabulary = {w: i for i, w in enumerate([*first, *words])}
    merges = [("▁", "▁"), ("▁▁", "▁"), ("\n", "\n"), *map(tuple, learnt["merges"])]
    t = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.Replace(" ", "▁"), pre_tokenizer, decoders.Sequence(decoder)
    t.add_special_tokens([added(w) for w in ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")])
    t.add_tokens([tokenizers.AddedToken(w, normalized=False) for w in ("<unused0>", "\n\n", "▁▁", "▁▁▁", "<table>")])
    t.post_processor = around(t, "<bos>", "<eos>")
    rng = random.Random(10)
    made = [[rng.randrange(5, len(vocabulary)) if rng.random() < 0.4 else vocabulary[f"<0x{b:02X}>"] for b in "".join(
        rng.choice(["é", "漢", "🙂", "a", "\x80"]) for _ in range(4)).encode("latin1" if rng.random() < 0.1 else "utf-8", "ignore")] for _ in range(100)]
    store(name, t, lambda text: not set(text) <= set(vocabulary) | {" "} or "\n\n" in text, scripts())
    path = HERE / f"{name}.json"
    stored = json.loads(path.read_text())
    stored["random"] = dict(ids=made, decoded=[t.decode(ids, skip_special_tokens=True) for ids in made])
    path.write_text(json.dumps(stored, separators=(",", ":"), ensure_ascii=False) + "\n")


def gemma():
    spell = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    (HERE / "scripts.json").write_text(json.dumps([base64.b64encode(t.encode()).decode() for t in scripts()]) + "\n")
    character_pairs("gemma", pre_tokenizers.Split(" ", "merged_with_previous"), spell)
    character_pairs("gemma-metaspace", pre_tokenizers.Metaspace(prepend_scheme="first"), [*spell, decoders.Strip(" ", 1, 0)])


def main():
    if sys.argv[1:]:
        return [dict(gemma=gemma)[name]() for name in sys.argv[1:]]
    (HERE / "texts.json").write_text(json.dumps([base64.b64encode(t.encode()).decode() for t in texts()]) + "\n")
    nfc = normalizers.NFC()
    byte_level("roberta", None, [*(added(x, normalized=True) for x in ("<s>", "<pad>", "</s>", "<unk>")), added("<mask>", True)], lambda t: False)
    byte_level("modernbert", nfc, [], lambda t: nfc.normalize_str(t) != t or "  " in t)
    pieces, characters = unigram()
    squeeze = normalizers.Replace(Regex(" {2,}"), " ")
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    fairseq = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces, ("<mask>", 0.0)]
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    metaspace("xlm-roberta", fairseq, 3, characters, words, special, "<mask>", "<s>", "</s>")
    metaspace("xlm-roberta-5", fairseq, 3, normalizers.Sequence([normalizers.Strip(False, True), characters, normalizers.Replace(Regex(" {2,}"), "▁")]),
              pre_tokenizers.Metaspace(prepend_scheme="always"), special, "<mask>", "<s>", "</s>")
    metaspace("first", fairseq, 3, characters, pre_tokenizers.Metaspace(prepend_scheme="first"), special, "<mask>", "<s>", "</s>")
    deberta = [("[PAD]", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[UNK]", 0.0), *pieces, ("[MASK]", 0.0)]
    metaspace("deberta-v2", deberta, 3, normalizers.Sequence([normalizers.Strip(), characters, squeeze]),
              pre_tokenizers.Sequence([pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Metaspace(prepend_scheme="always")]),
              ["[PAD]", "[CLS]", "[SEP]", "[UNK]"], "[MASK]", "[CLS]", "[SEP]")
    albert = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0), *pieces]
    metaspace("albert", albert, 1, normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
        characters, squeeze]), words, ["<pad>", "<unk>", "[CLS]", "[SEP]"], "[MASK]", "[CLS]", "[SEP]")
    gemma()


main()
