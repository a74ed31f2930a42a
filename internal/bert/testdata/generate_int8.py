"""Writes int8.json into the folders beside this file, with what each of the tiny
models computes in int8: transformers in double precision, with the inputs and
weights of its matrices in whole numbers.

A row of a matrix is scaled so that its largest element is 127 or -127, and a row
of an input likewise. An input that follows an activation is at least -0.17 or so:
of its 255 steps, 32 are below zero. The small matrix of the head stays as it is.

Before, the channels of an input of attention are multiplied by powers of two, and
the columns of its matrices divided by them. The largest value of a channel in a text
says which.

An element just between two steps could be rounded to either side in single
precision. So texts are drawn until no element is nearer to a half than 1e-4.

Python and its packages are needed to make these files, never to run the tests:
  pip install torch transformers
  python generate_int8.py [FOLDER...]
"""

import json
import pathlib
import sys
import zlib

import torch
import transformers

HERE = pathlib.Path(__file__).parent
HEAD = ("predictions.transform.dense", "vocab_transform", "predictions.dense", "lm_head.dense", "head.dense")
DOWN = ("output.dense", "ffn.lin2", "ffn_output")
SPREAD = ("query", "key", "value", "query_proj", "key_proj", "value_proj", "q_lin", "k_lin", "v_lin", "Wqkv")
LEAST = {"gelu": 0.17, "gelu_new": 0.1701, "relu": 0}
TINY = 1e-10

torch.set_num_threads(1)
nearest = 1.0  # to a half of a step


def whole(x):
    global nearest
    nearest = min(nearest, ((x - x.floor()) - 0.5).abs().min().item())
    return x.round()


def both_sides(x):
    size = x.abs().amax(-1, keepdim=True).clamp(min=127 * TINY) / 127
    return whole(x / size) * size


def above(least):
    def steps(x):
        size = (x.amax(-1, keepdim=True) / 223).clamp(min=max(least / 32, TINY))
        return whole(x / size).clamp(-32, 223) * size
    return steps


def matrix(w):
    size = (w.float().abs().amax(1, keepdim=True) / 127).double()
    return (w / size).round() * size


def spreads(model, text):
    """The factors of the input of each matrix that has some. Matrices that read one tensor have equal ones."""
    parts = {part for name, part in model.named_modules()
             if isinstance(part, torch.nn.Linear) and name.rpartition(".")[2] in SPREAD}
    groups, inputs = {part: {part} for part in parts}, []

    def note(part, x):
        for other, y in inputs:
            if other is part or y is x[0]:
                groups[part] |= groups[other]
                for member in groups[part]:
                    groups[member] = groups[part]
        inputs.append((part, x[0]))

    hooks = [part.register_forward_pre_hook(note) for part in parts]
    with torch.no_grad():
        model(input_ids=torch.tensor([text]), attention_mask=torch.ones(1, len(text)))
    for hook in hooks:
        hook.remove()

    def exponent(list):
        largest = torch.stack(list).amax(0)
        return largest.clamp(min=1e-3 * largest.max()).log2()

    factors = {}
    for part, group in groups.items():
        x = exponent([y.reshape(-1, y.shape[-1]).abs().amax(0) for other, y in inputs if other in group])
        w = exponent([other.weight.data.abs().amax(0) for other in group])
        factors[part] = torch.exp2(whole(0.3 * w - 0.7 * x))
    return factors


def quantize(model, factors):
    activation = getattr(model.config, "hidden_act", getattr(model.config, "activation", "gelu"))
    words = model.get_input_embeddings().weight
    words.data = matrix(words.data)
    for name, part in model.named_modules():
        if name.endswith("lm_predictions.lm_head.LayerNorm"):  # multiplied by the words without a module
            part.register_forward_hook(lambda _, x, y: both_sides(y))
        if not isinstance(part, torch.nn.Linear) or name.endswith(HEAD):
            continue
        factor = factors.get(part, torch.tensor(1.0, dtype=torch.float64))
        if part.weight is not words:
            part.weight.data = matrix(part.weight.data / factor)
        down = name.endswith(DOWN) and not name.endswith("attention.output.dense")
        steps = above(LEAST[activation]) if down else both_sides
        part.register_forward_pre_hook(lambda _, x, steps=steps, factor=factor: (steps(x[0] * factor),))


def main():
    deberta = transformers.models.deberta_v2.modeling_deberta_v2
    deberta.scaled_size_sqrt = lambda query, factor: torch.tensor(query.size(-1) * factor, dtype=torch.float64).sqrt()
    torch.Tensor.float, single = torch.Tensor.double, torch.Tensor.float
    for folder in sorted(HERE.glob("*/reference.json")):
        name, reference = folder.parent.name, json.loads(folder.read_text())
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        architecture = json.loads((folder.parent / "config.json").read_text())["architectures"][0]
        model = getattr(transformers, architecture).from_pretrained(
            folder.parent, attn_implementation="eager" if "deberta" in name else "sdpa", dtype=torch.float64).eval()
        first = reference["cases"][0]["ids"]
        global nearest
        nearest = 1.0
        factors = spreads(model, first)
        kinds = {f.item() for factor in factors.values() for f in factor}
        print(f"{name}: factors {sorted(kinds)}, nearest {nearest:.1e}")
        torch.Tensor.float = single
        quantize(model, factors)
        torch.Tensor.float = torch.Tensor.double
        random, cases = torch.Generator().manual_seed(zlib.crc32(name.encode())), []
        for _ in range(3):
            draws = 0
            while True:
                length, slots = 6 + draws % 4, (1 + draws % 5 % 4,)
                between = torch.randint(5, model.config.vocab_size, (length - 2,), generator=random).tolist()
                ids, values = [first[0], *between, first[-1]], []
                draws += 1
                nearest = 1.0
                with torch.no_grad():
                    for i in slots:
                        row = torch.tensor([ids])
                        row[0, i] = reference["mask"]
                        logits = model(input_ids=row, attention_mask=torch.ones_like(row)).logits
                        values.append([float(f"{v:.10g}") for v in torch.log_softmax(logits[0, i], -1).tolist()])
                if nearest > 1e-4:
                    break
            cases.append(dict(ids=ids, slots=slots, log_probability=values))
            print(f"{name}: {draws} draws, nearest {nearest:.1e}", flush=True)
        made_by = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, float64"
        (folder.parent / "int8.json").write_text(json.dumps(dict(made_by=made_by, mask=reference["mask"], spread_by=first, cases=cases)) + "\n")


main()
