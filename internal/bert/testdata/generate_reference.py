"""Makes the bundles and reference values beside this file: one folder per family.

Each bundle is a tiny random model that Hugging Face's transformers itself wrote
(config.json, model.safetensors), with a tokenizer of the family's kind trained
on the sentences below. reference.json holds what transformers computes from the
stored 32-bit weights in double precision, for rows in which one slot is masked:

  log_probability[i]  log-softmax over the vocabulary at slot i, slot i masked
  gradient[i][j]      its entry at slot i's token, differentiated by the word
                      embedding that enters at slot j (zeros for j = i)

Three things make the reference compute in double precision throughout: a model
in float64, with attention by scaled_dot_product_attention where it has that;
Tensor.float, with which ModernBERT's code rounds its rotary positions, replaced
by Tensor.double; and the square root that scales DeBERTa's attention taken in
double precision. The largest difference that the second makes is printed.

Python and its packages are needed to make these files, never to run the tests:
  pip install torch transformers tokenizers safetensors
  python generate_reference.py [FOLDER...]
"""

import json
import pathlib
import shutil
import sys
import zlib

import tokenizers
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent

SENTENCES = """
the baker sold warm bread before the sun came up
a small boat drifted past the old harbour wall
she wrote a letter to her brother and kept it
the river was low and the stones were dry
two dogs slept under the kitchen table all morning
he had told me that the train would be late
nobody knew why the clock on the tower had stopped
we walked home through the rain without a word
""".strip().splitlines()


def word_piece(folder):
    letters = sorted(set("".join(SENTENCES)) - {" "})
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters)]
    for word in ["the", "had", "he", "me", "told", "sun", "dogs", "river", "##ed", "was", "a", "and", "to", "boat"]:
        if word not in words:
            words.append(word)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return {w: i for i, w in enumerate(words)}, "[CLS]", "[SEP]", "[MASK]", "[PAD]"


def save(folder, tokenizer, cls, sep, mask, pad, template=None):
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", special_tokens=[(t, tokenizer.token_to_id(t)) for t in (cls, sep)])
    if template:
        tokenizer.post_processor = template(tokenizer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer.get_vocab(), cls, sep, mask, pad


def added(content, lstrip=False):
    return tokenizers.AddedToken(content, lstrip=lstrip, normalized=False, special=True)


def roberta_bpe(folder):
    """The layout of FacebookAI/roberta-base's tokenizer.json."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True)
    t.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", added("<mask>", lstrip=True)]
    t.train_from_iterator(SENTENCES, trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return save(folder, t, "<s>", "</s>", "<mask>", "<pad>", lambda t: processors.RobertaProcessing(
        ("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), trim_offsets=True, add_prefix_space=False))


def modern_bpe(folder):
    """The layout of answerdotai/ModernBERT-base's tokenizer.json."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(SENTENCES, trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_tokens([tokenizers.AddedToken("  ", normalized=True), tokenizers.AddedToken("   ", normalized=True)])
    t.add_special_tokens([added("[UNK]"), added("[CLS]"), added("[SEP]"), added("[PAD]"), added("[MASK]", lstrip=True)])
    return save(folder, t, "[CLS]", "[SEP]", "[MASK]", "[PAD]")


ASIAN = "我喜欢苹果 他喜欢看书 今天天气很好 我们喜欢书 今日は天気が良いです 私は本を読みます".split()


def gemma_bpe(folder):
    """The layout of Gemma's tokenizer.json, which mmBERT has."""
    blanks = normalizers.Replace(" ", "▁")
    learnt = Tokenizer(models.BPE(unk_token="<unk>"))
    learnt.normalizer, learnt.pre_tokenizer = blanks, pre_tokenizers.Metaspace(prepend_scheme="never")
    learnt.train_from_iterator([*SENTENCES, *(" " + s for s in SENTENCES), *ASIAN], trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False))
    model = json.loads(learnt.to_str())["model"]
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    words = [*special, *(f"<0x{b:02X}>" for b in range(256)), *(w for w in sorted(model["vocab"], key=model["vocab"].get) if w != "<unk>")]
    t = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, list(map(tuple, model["merges"])), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer, t.pre_tokenizer = blanks, pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_special_tokens([added(w) for w in special])
    return save(folder, t, "<bos>", "<eos>", "<mask>", "<pad>")


def xlmr_unigram(folder):
    """The layout of FacebookAI/xlm-roberta-base's tokenizer.json, without its character map."""
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    t.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    t.train_from_iterator(SENTENCES, trainers.UnigramTrainer(
        vocab_size=90, special_tokens=special, unk_token="<unk>", show_progress=False))
    t.add_special_tokens([added("<mask>", lstrip=True)])
    return save(folder, t, "<s>", "</s>", "<mask>", "<pad>")


def albert_unigram(folder):
    """The layout of albert/albert-base-v2's tokenizer.json, without its character map."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    t.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", added("[MASK]", lstrip=True)]
    t.train_from_iterator(SENTENCES, trainers.UnigramTrainer(
        vocab_size=90, special_tokens=special, unk_token="<unk>", show_progress=False))
    return save(folder, t, "[CLS]", "[SEP]", "[MASK]", "<pad>")


SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=20)

# folder: (tokenizer, model class, configuration, embeddings beyond the tokenizer's vocabulary)
FAMILIES = {
    "bert": (word_piece, "BertForMaskedLM", transformers.BertConfig, SIZES, 0),
    "bert-untied": (word_piece, "BertForMaskedLM", transformers.BertConfig, dict(SIZES, tie_word_embeddings=False, hidden_act="gelu_new"), 3),
    "distilbert": (word_piece, "DistilBertForMaskedLM", transformers.DistilBertConfig,
                   dict(dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=20), 0),
    "electra": (word_piece, "ElectraForMaskedLM", transformers.ElectraConfig, dict(SIZES, embedding_size=12, hidden_act="relu"), 0),
    "electra-unprojected": (word_piece, "ElectraForMaskedLM", transformers.ElectraConfig, dict(SIZES, embedding_size=16), 0),
    "roberta": (roberta_bpe, "RobertaForMaskedLM", transformers.RobertaConfig,
                dict(SIZES, max_position_embeddings=22, type_vocab_size=1, layer_norm_eps=1e-5), 0),
    "xlm-roberta": (xlmr_unigram, "XLMRobertaForMaskedLM", transformers.XLMRobertaConfig,
                    dict(SIZES, max_position_embeddings=22, type_vocab_size=1, layer_norm_eps=1e-5), 0),
    "albert": (albert_unigram, "AlbertForMaskedLM", transformers.AlbertConfig, dict(SIZES, embedding_size=12), 0),
    "albert-groups": (albert_unigram, "AlbertForMaskedLM", transformers.AlbertConfig,
                      dict(SIZES, embedding_size=12, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2, hidden_act="gelu"), 0),
    "deberta-v2": (albert_unigram, "DebertaV2ForMaskedLM", transformers.DebertaV2Config,
                   dict(SIZES, relative_attention=True, position_buckets=4, max_relative_positions=20, pos_att_type=["p2c", "c2p"],
                        share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0,
                        conv_kernel_size=3, conv_act="gelu", legacy=False), 4),
    "deberta-v2-legacy": (albert_unigram, "DebertaV2ForMaskedLM", transformers.DebertaV2Config,
                          dict(SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"], position_biased_input=True, type_vocab_size=2), 0),
    "data2vec-text": (roberta_bpe, "Data2VecTextForMaskedLM", transformers.Data2VecTextConfig,
                      dict(SIZES, max_position_embeddings=22, type_vocab_size=1, layer_norm_eps=1e-5), 0),
    "ernie": (word_piece, "ErnieForMaskedLM", transformers.ErnieConfig, dict(SIZES, use_task_id=True, task_type_vocab_size=3), 0),
    # One layer is the first and the last at once.
    "deberta-v2-one-layer": (word_piece, "DebertaV2ForMaskedLM", transformers.DebertaV2Config,
                             dict(SIZES, num_hidden_layers=1, relative_attention=True, position_buckets=6, pos_att_type=["c2p"],
                                  norm_rel_ebd="layer_norm", conv_kernel_size=5, conv_act="tanh", tie_word_embeddings=False), 0),
    "modernbert-one-layer": (word_piece, "ModernBertForMaskedLM", transformers.ModernBertConfig,
                             dict(SIZES, num_hidden_layers=1, local_attention=4, layer_types=["sliding_attention"]), 0),
    "modernbert": (modern_bpe, "ModernBertForMaskedLM", transformers.ModernBertConfig,
                   dict(SIZES, num_hidden_layers=4, local_attention=4), 8),
    "mmbert": (gemma_bpe, "ModernBertForMaskedLM", transformers.ModernBertConfig,
               dict(SIZES, num_hidden_layers=3, local_attention=6, rope_parameters={
                   kind: dict(rope_type="default", rope_theta=160000.0) for kind in ("full_attention", "sliding_attention")}), 5),
    "modernbert-biased": (modern_bpe, "ModernBertForMaskedLM", transformers.ModernBertConfig,
                          dict(SIZES, num_hidden_layers=3, local_attention=6, norm_bias=True, attention_bias=True, mlp_bias=True,
                               classifier_bias=True, tie_word_embeddings=False,
                               layer_types=["sliding_attention", "full_attention", "sliding_attention"]), 8),
}


def randomise(model, random):
    """Weights of a spread that makes every part matter."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = torch.randn(p.shape, generator=random, dtype=torch.float64)
            one = "norm" in name.lower() and name.endswith("weight")
            p.copy_(1 + 0.2 * draw if one else 0.35 * draw)


def numbers(x):
    """A vector, to twelve digits."""
    return [float(f"{v:.12g}") for v in x.tolist()]


def rows(model, ids, slots, mask):
    """The log-probabilities and gradients of the rows that mask one slot each."""
    values, gradients = [], []
    embeddings = model.get_input_embeddings()
    for i in slots:
        row = list(ids)
        row[i] = mask
        row = torch.tensor([row])
        x = embeddings(row).detach().requires_grad_()
        with torch.nn.modules.module.register_module_forward_hook(lambda m, _, y: x if m is embeddings else y):
            logits = model(input_ids=row, attention_mask=torch.ones_like(row)).logits
        p = torch.log_softmax(logits[0, i], -1)
        (g,) = torch.autograd.grad(p[ids[i]], x)
        values.append(numbers(p))
        gradients.append([numbers(0 * g[0, j] if j == i else g[0, j]) for j in slots])
    return values, gradients


def main():
    deberta = transformers.models.deberta_v2.modeling_deberta_v2
    deberta.scaled_size_sqrt = lambda query, factor: torch.tensor(query.size(-1) * factor, dtype=torch.float64).sqrt()
    # DeBERTa's rows of distances −511 to 511, for the published 256 buckets, a few, and none.
    buckets = {}
    for count, most in ((256, 512), (6, 64), (0, 16)):
        d = torch.arange(-511, 512)
        if count:
            d = deberta.make_log_bucket_position(d, count, most).long()
        span = count or most
        buckets[f"{count} {most}"] = torch.clamp(d + span, 0, 2 * span - 1).tolist()
    (HERE / "distances.json").write_text(json.dumps(buckets) + "\n")
    single, double = torch.Tensor.float, torch.Tensor.double
    for name in sys.argv[1:] or FAMILIES:
        tokenizer, architecture, config, options, extra = FAMILIES[name]
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        vocabulary, cls, sep, mask, pad = tokenizer(folder)
        random = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        size = max(vocabulary.values()) + 1
        special = dict(pad_token_id=vocabulary[pad], bos_token_id=vocabulary[cls], eos_token_id=vocabulary[sep])
        if "Modern" in architecture:
            special |= dict(cls_token_id=vocabulary[cls], sep_token_id=vocabulary[sep])
        made = getattr(transformers, architecture)(config(vocab_size=size + extra, **special, **options))
        randomise(made, random)
        made.save_pretrained(folder)
        model = getattr(transformers, architecture).from_pretrained(
            folder, attn_implementation="eager" if "deberta" in name else "sdpa", dtype=torch.float64).eval()
        cases = []
        shapes = [(12, (2, 5, 6)), (7, (1, 3))]
        for length, slots in shapes:
            ids = torch.randint(5, size, (length,), generator=random).tolist()
            ids[0], ids[-1] = vocabulary[cls], vocabulary[sep]
            torch.Tensor.float = double
            values, gradients = rows(model, ids, slots, vocabulary[mask])
            torch.Tensor.float = single
            plain, _ = rows(model, ids, slots, vocabulary[mask])
            difference = (torch.tensor(values) - torch.tensor(plain)).abs().max().item()
            cases.append(dict(ids=ids, slots=slots, log_probability=values, gradient=gradients))
        made_by = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, float64"
        (folder / "reference.json").write_text(json.dumps(dict(made_by=made_by, mask=vocabulary[mask], cases=cases)) + "\n")
        for unwanted in ("generation_config.json",):
            (folder / unwanted).unlink(missing_ok=True)
        print(f"{name}: {size} tokens, {sum(p.numel() for p in model.parameters())} weights, single-precision positions differ by {difference:.1g}")


main()
