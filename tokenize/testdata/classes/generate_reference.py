"""Makes cases.json beside this file: what transformers' AutoTokenizer makes of
folders whose files say different things, or are silent.

Each case is a tokenizer.json of ../families or ../reference ("base") with some
values set ("set": paths and values), or the older files of ../reference or
../unconverted, beside other files ("files"). It has the ids
of some texts by AutoTokenizer, and "differs", which says whether tokenizer.json
alone gives others. A folder that transformers refuses is no case.

Python and its packages are needed to make this file, never to run the tests:
  pip install transformers==5.24.0
  python generate_reference.py
"""

import itertools
import json
import pathlib
import shutil
import tempfile

import tokenizers
import transformers

HERE = pathlib.Path(__file__).parent
BASES = {"wordpiece": "../reference/cased", **{n: f"../families/{n}" for n in ("roberta", "modernbert", "xlm-roberta", "albert", "deberta-v2")}}
OLDER = {"vocab.txt": ["../reference/vocab.txt"], "vocab.json": ["../unconverted/roberta/vocab.json", "../unconverted/roberta/merges.txt"]}
TEXTS = ["The CAFÉ, a 日本 naïve!", " a\u00a0b  the\tend ", "it was <mask> or [MASK] here", "un<url>known <user>the [UNK] <unk>"]
ABSENT = object()


def both(**settings):
    """All combinations of settings, of which some may be absent."""
    for values in itertools.product(*settings.values()):
        yield {k: v for k, v in zip(settings, values) if v is not ABSENT}


def token(content, **flags):
    return dict(content=content, lstrip=False, rstrip=False, normalized=False, single_word=False, special=True) | flags


def named(content, **flags):
    return {"__type": "AddedToken"} | {k: v for k, v in token(content, **flags).items() if k != "special"}


def cases():
    """Base, values that are set in it, config.json, tokenizer_config.json, other files."""
    truth = [ABSENT, True, False]
    lower, strip, chinese = (["normalizer", n] for n in ("lowercase", "strip_accents", "handle_chinese_chars"))
    for file in itertools.product([True, False], [None, True, False], [True, False]):
        change = list(zip((lower, strip, chinese), file))
        for c in both(do_lower_case=truth, strip_accents=[None, *truth], tokenize_chinese_chars=truth):
            yield "wordpiece", change, dict(model_type="bert"), c, {}
        for model, c in [("bert", None), ("distilbert", None), ("electra", None), ("ernie", {}), ("modernbert", {}),
                         ("distilbert", dict(tokenizer_class="DistilBertTokenizer")),
                         ("electra", dict(tokenizer_class="ElectraTokenizerFast", strip_accents=True)),
                         ("roberta", dict(tokenizer_class="BertTokenizer")),
                         ("bert", dict(tokenizer_class="PreTrainedTokenizerFast", do_lower_case=True)),
                         ("bert", dict(tokenizer_class="TokenizersBackend"))]:
            yield "wordpiece", change, dict(model_type=model), c, {}
        yield "wordpiece", change, None, dict(tokenizer_class="BertTokenizerFast"), {}
        yield "wordpiece", change, dict(model_type="bert", tokenizer_class="BertTokenizerFast"), None, {}
    yield "wordpiece", [(["normalizer", "clean_text"], False)], dict(model_type="bert"), {}, {}
    yield "wordpiece", [(["model", "max_input_chars_per_word"], 4)], dict(model_type="bert"), {}, {}
    yield "wordpiece", [(["normalizer"], None)], dict(model_type="bert"), {}, {}
    yield "wordpiece", [(["normalizer"], dict(type="NFC"))], dict(model_type="bert"), dict(tokenizer_class="PreTrainedTokenizerFast"), {}
    yield "wordpiece", [(["normalizer"], None)], dict(model_type="bert"), dict(tokenizer_class="PreTrainedTokenizerFast"), {}
    yield "wordpiece", [(["post_processor"], None)], dict(model_type="bert"), {}, {}

    prefix = ["pre_tokenizer", "add_prefix_space"]
    for file in [True, False]:
        for c in [None, *both(add_prefix_space=[ABSENT, True, False],
                              tokenizer_class=[ABSENT, "RobertaTokenizer", "BartTokenizerFast", "PreTrainedTokenizerFast"])]:
            yield "roberta", [(prefix, file)], dict(model_type="roberta"), c, {}
    yield "roberta", [(["post_processor"], dict(type="ByteLevel", add_prefix_space=True, trim_offsets=False, use_regex=True))], dict(model_type="roberta"), {}, {}
    yield "roberta", [(["normalizer"], dict(type="Lowercase"))], dict(model_type="roberta"), {}, {}

    for base, model in [("xlm-roberta", "xlm-roberta"), ("xlm-roberta", "camembert"), ("albert", "albert"), ("deberta-v2", "deberta-v2")]:
        yield base, [], dict(model_type=model), None, {}
        yield base, [], dict(model_type=model), dict(tokenizer_class="PreTrainedTokenizerFast", do_lower_case=True), {}
        for c in both(add_prefix_space=[ABSENT, True, False], do_lower_case=[ABSENT, True, False]):
            yield base, [], dict(model_type=model), c, {}
        yield base, [(["normalizer"], None)], dict(model_type=model), {}, {}
        yield base, [(["pre_tokenizer"], dict(type="Metaspace", replacement="▁", prepend_scheme="always", split=True))], dict(model_type=model), {}, {}
    for c in both(keep_accents=[ABSENT, True, False], do_lower_case=[ABSENT, True, False]):
        yield "albert", [], dict(model_type="albert"), c, {}
    for c in both(split_by_punct=[ABSENT, True, False], do_lower_case=[ABSENT, True, False]):
        yield "deberta-v2", [], dict(model_type="deberta-v2"), c, {}
    # What transformers 5.0 saved for CamemBERT.
    gaps = dict(type="Replace", pattern=dict(Regex=r"\s{2,}|[\n\r\t]"), content=" ")
    yield ("xlm-roberta", [(["normalizer"], dict(type="Sequence", normalizers=[gaps, dict(type="Strip", strip_left=False, strip_right=True)])),
                           (["pre_tokenizer"], dict(type="Metaspace", replacement="▁", prepend_scheme="always", split=True))],
           dict(model_type="camembert"), dict(tokenizer_class="CamembertTokenizer"), {})

    # The mask, in three files.
    ids = {"roberta": ("<mask>", 4), "wordpiece": ("[MASK]", 6), "albert": ("[MASK]", 4), "deberta-v2": ("[MASK]", 219)}
    models = {"roberta": "roberta", "wordpiece": "bert", "albert": "albert", "deberta-v2": "deberta-v2"}
    for base, (mask, id) in ids.items():
        place = ["added_tokens", 4, "lstrip"]
        for file in [True, False]:
            for by in [None, True, False]:
                for where in ["listed", "named", "map"]:
                    for kind in [ABSENT, "PreTrainedTokenizerFast"]:
                        c = dict(mask_token=mask) | ({} if kind is ABSENT else dict(tokenizer_class=kind))
                        other = {}
                        if by is not None and where == "listed":
                            c["added_tokens_decoder"] = {str(id): token(mask, lstrip=by)}
                        elif by is not None and where == "named":
                            c["mask_token"] = named(mask, lstrip=by)
                        elif by is not None:
                            other = {"special_tokens_map": dict(mask_token={k: v for k, v in named(mask, lstrip=by).items() if k != "__type"})}
                        elif where != "listed":
                            continue
                        yield base, [(place, file)], dict(model_type=models[base]), c, other

    # Tokens that only one file has.
    for base in ids:
        model = dict(model_type=models[base])
        for kind in [{}, dict(tokenizer_class="PreTrainedTokenizerFast")]:
            yield base, [], model, kind | dict(added_tokens_decoder={"700": token("<url>", special=False, normalized=True)}), {}
            yield base, [], model, kind | dict(added_tokens_decoder={"700": token("<url>"), "701": token("<user>"), "702": token("the", special=False)}), {}
            yield base, [], model, kind | dict(additional_special_tokens=["<url>", "the"]), {}
            yield base, [], model, kind | dict(extra_special_tokens=["<user>"], additional_special_tokens=["<url>"]), {}
            yield base, [], model, kind | dict(extra_special_tokens=dict(user_token="<user>", url_token="<url>")), {}
            yield base, [], model, kind, {"added_tokens": {"<user>": 700, "<url>": 701}}
            yield base, [], model, kind, {"added_tokens": {"<user>": 700}, "special_tokens_map": dict(additional_special_tokens=["<user>", "the"])}
            yield base, [], model, kind | dict(added_tokens_decoder={}), {"added_tokens": {"<user>": 700}}

    # A mask of another name, and older files.
    yield "wordpiece", [(["model", "vocab", "<mask>"], 298)], dict(model_type="bert"), dict(mask_token="<mask>"), {}
    yield "vocab.txt", [], dict(model_type="bert"), dict(), {}
    yield "vocab.txt", [], dict(model_type="bert"), dict(do_lower_case=False), {}
    yield "vocab.txt", [], dict(model_type="electra"), dict(do_lower_case=False, strip_accents=True, tokenize_chinese_chars=False), {}
    yield "vocab.txt", [], dict(model_type="bert"), dict(added_tokens_decoder={"6": token("[MASK]", lstrip=True)}), {}
    for base, model in [("vocab.txt", dict(model_type="bert")), ("vocab.json", dict(model_type="roberta"))]:
        kind = dict(mask_token=named("<mask>", lstrip=True, normalized=True)) if base == "vocab.json" else {}
        listed = {"4": token("<mask>", lstrip=True)} if base == "vocab.json" else {}
        yield base, [], model, kind, {}
        yield base, [], model, kind | dict(additional_special_tokens=["<url>", "the"]), {}
        yield base, [], model, kind | dict(extra_special_tokens=dict(user_token="<user>")), {}
        yield base, [], model, kind | dict(added_tokens_decoder=listed | {"700": token("<url>", special=False, normalized=True)}), {}
        yield base, [], model, kind, {"added_tokens": {"<user>": 700}, "special_tokens_map": dict(additional_special_tokens=["<user>", "the"])}
        yield base, [], model, kind, {"added_tokens": {"<url>": 700}}
    # A token of white space in vocab.txt.
    yield "wordpiece", [(["model", "vocab", ""], 298)], dict(model_type="bert"), {}, {}
    # A class of another model than the file's.
    yield "xlm-roberta", [], dict(model_type="modernbert"), {}, {}


def change(content, path, value):
    for key in path[:-1]:
        content = content[key]
    content[path[-1]] = value


def main():
    list_of, seen, refused = [], set(), 0
    for base, changes, model, configuration, others in cases():
        files = dict(others)
        if model is not None:
            files["config"] = model
        if configuration is not None:
            files["tokenizer_config"] = configuration
        case = dict(base=base, set=changes, files=files)
        key = json.dumps(case)
        if key in seen:
            continue
        seen.add(key)
        with tempfile.TemporaryDirectory() as folder:
            written = dict(files)
            for name in OLDER.get(base, []):
                shutil.copy(HERE / name, folder)
            if base in BASES:
                written["tokenizer"] = json.loads((HERE / f"{BASES[base]}.tokenizer.json").read_text())
                for path, value in changes:
                    change(written["tokenizer"], path, value)
            for name, text in written.items():
                (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(text))
            try:
                t = transformers.AutoTokenizer.from_pretrained(folder)
            except Exception:
                refused += 1
                continue
            alone = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json") if base in BASES else t.backend_tokenizer
        texts = TEXTS[:1] if base == "wordpiece" and len(changes) == 3 else TEXTS
        case["ids"] = [t(x)["input_ids"] for x in texts]
        case["differs"] = [alone.encode(x).ids for x in texts] != case["ids"]
        list_of.append(case)
    lines = ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in list_of)
    made_by = f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}"
    (HERE / "cases.json").write_text('{"made_by":%s,"texts":%s,"cases":[\n%s\n]}\n' % (json.dumps(made_by), json.dumps(TEXTS, ensure_ascii=False), lines))
    print(len(list_of), "cases,", refused, "refused,", sum(c["differs"] for c in list_of), "differ from tokenizer.json")


if __name__ == "__main__":
    main()
