"""Makes the tokenizer files and reference values in this folder.

Each folder holds a tokenizer as a model without tokenizer.json publishes it:
vocab.json and merges.txt, with config.json and whatever says which special tokens there are. The vocabularies are trained on the sentences
of ../families. reference.json of each folder holds what transformers'
AutoTokenizer, which converts those files into a fast tokenizer, makes of the texts
in ../families/texts.json and of those below, in that order (every third of them
where the folder is a variant of another):

  tokens    the number of ids
  special   ids of the first, the last, the mask, padding and the unknown token
  ids       with the tokens around the text
  offsets   in bytes, white space at either end left out; null where the text is
            rewritten before it is cut, which shifts the reference's offsets
  decoded   the ids decoded by the fast tokenizer, special tokens skipped

The last release of transformers before version 5 is needed: from version 5 on
the classes no longer convert these files by the rules of convert_slow_tokenizer.py.
Python and its packages are needed to make these files, never to run the tests:
  pip install transformers==4.57.6 tokenizers==0.22.2
  python generate_reference.py
"""

import base64
import json
import pathlib
import shutil
import sys

import tokenizers
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
FAMILIES = HERE / ".." / "families"

TEXTS = ["", " ", "a <mask>", "a<mask>b", "the  <mask> , and\t<mask>.", "a [MASK]", "a[MASK]b", "the  [MASK] , and\t[MASK].", "a.b-c (d) £5 - €7",
         "well-known (so it was said) - in 3.5 ways", "14,000 people, 7,45", "9,", "<s>NOTUSED a </s>NOTUSED b <unk>NOTUSED c", "[UNK] and <unk>",
         "the <pad> and [PAD]", "THE <MASK> [mask] [Mask]", "<0x0A> <0xE6>", "▁the ▁▁ the", "zażółć gęślą jaźń", "\u0415\u0308 e\u0323\u0301 ﬃ",
         "@user replied <url> <USER> said <url>x", "x<special>y <special> z", " leading and trailing ", "``quoted'' and ''again``"]


def training():
    """The sentences of the script in ../families, which makes its files when it is run."""
    source = (FAMILIES / "generate_reference.py").read_text()
    names = {}
    exec(compile(source[source.index("SENTENCES ="):source.index("PIECES =")], "families", "exec"), names)
    return names["SENTENCES"]


SENTENCES = training()


def texts():
    return [*(base64.b64decode(t).decode() for t in json.loads((FAMILIES / "texts.json").read_text())), *TEXTS]


def folder(name, **files):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    write(path, **files)
    return path


def write(path, **files):
    """JSON files, whose names have no ending here."""
    for file, content in files.items():
        (path / f"{file}.json").write_text(json.dumps(content, ensure_ascii=False) + "\n")


def byte_level(path):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(SENTENCES, trainers.BpeTrainer(
        vocab_size=480, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(["<mask>"])
    t.model.save(str(path))
    vocabulary = json.loads((path / "vocab.json").read_text())
    vocabulary["<mask>"] = len(vocabulary)
    (path / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False) + "\n")


def blank(c):
    return c.isspace() and c not in "\x1c\x1d\x1e\x1f"


def store(path, rewritten, step=1):
    t = transformers.AutoTokenizer.from_pretrained(str(path))
    assert t.is_fast
    ids, offsets, decoded = [], [], []
    for text in texts()[::step]:
        e = t.backend_tokenizer.encode(text)
        spans = []
        for start, end in e.offsets:
            while start < end and blank(text[start]):
                start += 1
            while start < end and blank(text[end - 1]):
                end -= 1
            spans.append([len(text[:start].encode()), len(text[:end].encode())])
        ids.append(e.ids)
        offsets.append(None if rewritten(text) else spans)
        decoded.append(t.backend_tokenizer.decode(e.ids, skip_special_tokens=True))
    (path / "reference.json").write_text(json.dumps(dict(
        made_by=f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, {type(t).__name__}", step=step, tokens=len(t),
        special=[t.cls_token_id, t.sep_token_id, t.mask_token_id, t.pad_token_id, t.unk_token_id],
        ids=ids, offsets=offsets, decoded=decoded), separators=(",", ":"), ensure_ascii=False) + "\n")
    print(path.name, type(t).__name__, len(t), "tokens")
    return t


def bundles():
    """Each folder, the texts whose offsets are the reference's own affair, and which texts it is held against."""
    never = lambda text: False

    path = folder("roberta", config=dict(model_type="roberta"))
    byte_level(path)
    yield path, never, 1


def main():
    for path, rewritten, step in bundles():
        t = store(path, rewritten, step)
        if len(sys.argv) > 1:  # a folder for the converted tokenizers, to look at
            t.backend_tokenizer.save(f"{sys.argv[1]}/{path.name}.json", pretty=True)


if __name__ == "__main__":
    main()
