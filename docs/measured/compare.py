"""`infill` beside Python, on the same weights, texts and cores, in turns: the tables of speed.md.

    pip install torch 'transformers<5' minicons
    taskset -c 0 python compare.py fills INFILL BUNDLE [TEXTS] [ROUNDS]
    taskset -c 0 python compare.py scores INFILL BUNDLE [TEXTS] [ROUNDS]
    taskset -c 0 python compare.py together INFILL BUNDLE [TEXTS] [ROUNDS]
    taskset -c 0 python compare.py int8 INFILL BUNDLE [TEXTS] [ROUNDS]
    taskset -c 0 python compare.py openvino INFILL BUNDLE [TEXTS] [ROUNDS]
    python compare.py cores INFILL BUNDLE [TEXTS] [ROUNDS]

INFILL is the program, BUNDLE the folder of the model (`infill models list --format json` tells it after the first fill). taskset pins all of them to
one core. Beside the time on the clock stands processor time, which other work on the machine changes less. The time of infill has the start of its
process in it, that of Python has not.

fills: one blank a text; each gives the five likeliest tokens with their probabilities. Python has three ways: transformers' fill-mask pipeline in
batches, which fills the first quarter of the texts, and a loop written by hand, in float32 and in bf16. The loop sorts the texts by length and asks
the head of the model at the blanks only.
scores: the pseudo-log-likelihood of each text (within_word_l2r), by minicons in batches of the best size.
int8: `infill run` with the model, and with its copy small-uncased-int8, which `infill models quantize small-uncased` makes; and the loop in bf16.
openvino: the loop by hand in OpenVINO (pip install openvino nncf), in float32, in bf16 and in int8 (quantized with the texts), with the five likeliest
chosen in its graph; without its start. Beside them the model and its copy in int8.
cores: `infill run` on one pinned core and on all, in float32 and in int8; it needs all cores idle.
together: `infill run` with many texts at once, and one after the other (--jobs 1).
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from statistics import mean, stdev

import torch
import transformers

BATCHES = [1, 8, 32, 128]
BY_HAND = {"by hand, float32": torch.float32, "by hand, bf16": torch.bfloat16}


def spent():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def texts(count):
    who = "the old baker,my sister,a tall stranger,the captain of the ship,our neighbour from the north".split(",")
    what = "opened the window,carried a heavy basket up the hill,looked at the sea,told a long story about the war,lost the key".split(",")
    when = "before the rain,in the evening,on a cold day,without a word,when the bell rang and the children ran home".split(",")
    for i in range(count):
        words = f"{who[i % 5]} {what[i // 5 % 5]} {when[i // 25 % 5]} , {i} times .".split()
        words[1 + i % 3] = "[MASK]"
        yield " ".join(words)


def by_hand(model, tokenizer, lines, batch=64):
    """Give the five likeliest tokens of each text's blank, with their probabilities."""
    encoded = tokenizer(lines)["input_ids"]
    order = sorted(range(len(lines)), key=lambda i: len(encoded[i]))
    answers = [None] * len(lines)
    for at in range(0, len(order), batch):
        chosen = order[at : at + batch]
        ids = tokenizer.pad({"input_ids": [encoded[i] for i in chosen]}, return_tensors="pt")
        hidden = model.bert(**ids).last_hidden_state[ids["input_ids"] == tokenizer.mask_token_id]
        top = torch.topk(torch.softmax(model.cls(hidden).float(), dim=-1), 5)
        words = tokenizer.convert_ids_to_tokens(top.indices.flatten().tolist())
        for n, i in enumerate(chosen):
            answers[i] = list(zip(words[5 * n : 5 * n + 5], top.values[n].tolist()))
    return answers


def measured(ways, rounds, sizes):
    """Run each way in turn, and print its rates and their ratios to infill's. A size is a number of texts."""
    clock, processor = {n: [] for n in ways}, {n: [] for n in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start, used = time.perf_counter(), spent()
            with torch.inference_mode():
                way()
            clock[name].append((time.perf_counter() - start) / sizes[name])
            processor[name].append((spent() - used) / sizes[name])
    for what, seconds in {"on the clock": clock, "of processor time": processor}.items():
        for name in ways:
            rate = [1 / s for s in seconds[name]]
            ratio = [i / s for i, s in zip(seconds["infill"], seconds[name])]
            print(f"{name}: {mean(rate):.4g} ± {stdev(rate) / rounds**0.5:.2g} a second {what}, {mean(ratio):.2f} ± {stdev(ratio) / rounds**0.5:.2f} × infill")


def runs(program, bundle, folder, lines, *options):
    """Return a function that fills the lines by `infill run`."""
    source = os.path.join(folder, "texts.txt")
    with open(source, "w") as file:
        file.write("\n".join(lines) + "\n")
    threads = str(len(os.sched_getaffinity(0)))
    command = [program, "run", source, "-o", os.path.join(folder, "fills.jsonl"), "-m", bundle, "--overwrite", "-q", "--device", "cpu"]
    return lambda: subprocess.run([*command, "--threads", threads, *options], check=True)


def fills(program, bundle, folder, count, rounds):
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundle)
    models = {t: transformers.BertForMaskedLM.from_pretrained(bundle, torch_dtype=t).eval() for t in BY_HAND.values()}
    pipe = transformers.pipeline("fill-mask", model=models[torch.float32], tokenizer=tokenizer, top_k=5, device="cpu")
    lines, answers = list(texts(count)), {}
    few = lines[: count // 4]
    ways = {f"pipeline, batch {b}": lambda b=b: pipe(few, batch_size=b) for b in BATCHES}
    sizes = {n: len(few) for n in ways}
    for name, kind in BY_HAND.items():
        ways[name] = lambda name=name, kind=kind: answers.update({name: by_hand(models[kind], tokenizer, lines)})
    ways["infill"] = runs(program, bundle, folder, lines)
    measured(ways, rounds, {n: sizes.get(n, count) for n in ways})
    with open(os.path.join(folder, "fills.jsonl")) as file:
        first = [json.loads(line)["fills"][0]["values"][0].lower() for line in file]
    for name in BY_HAND:
        print(f"likeliest fill of infill and {name} alike: {sum(a == b[0][0] for a, b in zip(first, answers[name]))} of {count}")


def scores(program, bundle, folder, count, rounds):
    from minicons import scorer

    model = scorer.MaskedLMScorer(bundle, "cpu")
    lines = [t.replace("[MASK]", "one") for t in texts(count)]
    source = os.path.join(folder, "texts.txt")
    with open(source, "w") as file:
        file.write("\n".join(lines) + "\n")

    def batched(size):
        return [s for at in range(0, count, size) for s in model.token_score(lines[at : at + size], PLL_metric="within_word_l2r")]

    ways = {f"minicons, batch {b}": lambda b=b: batched(b) for b in (1, 8, 32)}
    command = [program, "score", source, "-m", bundle, "-q", "--device", "cpu", "--threads", str(len(os.sched_getaffinity(0))), "--format", "csv"]
    ways["infill"] = lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    measured(ways, rounds, {n: count for n in ways})


def together(program, bundle, folder, count, rounds):
    lines = list(texts(count))
    ways = {"one after the other": runs(program, bundle, folder, lines, "--jobs", "1"), "infill": runs(program, bundle, folder, lines)}
    measured(ways, rounds, {n: count for n in ways})


def int8(program, bundle, folder, count, rounds):
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundle)
    model = transformers.BertForMaskedLM.from_pretrained(bundle, torch_dtype=torch.bfloat16).eval()
    lines = list(texts(count))
    ways = {"by hand, bf16": lambda: by_hand(model, tokenizer, lines), "infill, int8": runs(program, "small-uncased-int8", folder, lines),
            "infill": runs(program, "small-uncased", folder, lines)}
    measured(ways, rounds, {n: count for n in ways})


class Likeliest(torch.nn.Module):
    """The five likeliest tokens of the blank of each text, chosen in the graph."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask, at):
        hidden = self.model.bert(input_ids=ids, attention_mask=mask)[0]
        chosen = hidden[torch.arange(ids.shape[0]), at]
        return torch.topk(torch.softmax(self.model.cls(chosen).float(), dim=-1), 5)


def openvino(program, bundle, folder, count, rounds):
    import nncf
    import numpy
    import openvino as ov

    tokenizer = transformers.AutoTokenizer.from_pretrained(bundle)
    model = transformers.BertForMaskedLM.from_pretrained(bundle, attn_implementation="eager").eval()
    example = {"ids": torch.ones((2, 8), dtype=torch.long), "mask": torch.ones((2, 8), dtype=torch.long), "at": torch.tensor([1, 2])}
    graph = ov.convert_model(Likeliest(model), example_input=example)
    lines = list(texts(count))

    def batches(size):
        encoded = tokenizer(lines)["input_ids"]
        order = sorted(range(len(lines)), key=lambda i: len(encoded[i]))
        for at in range(0, len(order), size):
            chosen = order[at : at + size]
            ids = tokenizer.pad({"input_ids": [encoded[i] for i in chosen]}, return_tensors="np")
            where = numpy.argmax(ids["input_ids"] == tokenizer.mask_token_id, axis=1)
            yield chosen, [ids["input_ids"], ids["attention_mask"], where]

    def loop(compiled):
        answers = [None] * len(lines)
        for chosen, rows in batches(64):
            top = compiled(rows)
            words = tokenizer.convert_ids_to_tokens(top[1].flatten().tolist())
            for n, i in enumerate(chosen):
                answers[i] = list(zip(words[5 * n : 5 * n + 5], top[0][n].tolist()))
        return answers

    quantized = nncf.quantize(graph, nncf.Dataset([rows for _, rows in batches(4)]), model_type=nncf.ModelType.TRANSFORMER)
    ways, answers = {}, {}
    for name, (which, precision) in {"f32": (graph, "f32"), "bf16": (graph, "bf16"), "int8": (quantized, "f32")}.items():
        options = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0))}
        compiled = ov.Core().compile_model(which, "CPU", options)
        name = f"OpenVINO, {name}"
        ways[name] = lambda name=name, compiled=compiled: answers.update({name: loop(compiled)})
    ways["infill, int8"] = runs(program, "small-uncased-int8", folder, lines)
    ways["infill"] = runs(program, bundle, folder, lines)
    measured(ways, rounds, {n: count for n in ways})
    with open(os.path.join(folder, "fills.jsonl")) as file:
        first = [json.loads(line)["fills"][0]["values"][0].lower() for line in file]
    for name, answer in answers.items():
        print(f"likeliest fill of infill and {name} alike: {sum(a == b[0][0] for a, b in zip(first, answer))} of {count}")
    print(f"OpenVINO {ov.__version__}, nncf {nncf.__version__}")


def on_cores(program, bundle, folder, count, rounds):
    lines = list(texts(count))
    source = os.path.join(folder, "texts.txt")
    with open(source, "w") as file:
        file.write("\n".join(lines) + "\n")
    own = sorted(os.sched_getaffinity(0))

    def on(model, which):
        command = [program, "run", source, "-o", os.path.join(folder, "fills.jsonl"), "-m", model, "--overwrite", "-q", "--device", "cpu",
                   "--threads", str(len(which))]
        return lambda: subprocess.run(command, check=True, preexec_fn=lambda: os.sched_setaffinity(0, which))

    ways = {}
    for name, model in {"float32": "small-uncased", "int8": "small-uncased-int8"}.items():
        ways[f"{name}, one core"] = on(model, own[-1:])
        ways[f"{name}, all"] = on(model, own)
    ways["infill"] = ways.pop("float32, one core")
    measured(ways, rounds, {n: count for n in ways})


def processor():
    """Return the name of the processor, and those of its instructions that choose kernels."""
    with open("/proc/cpuinfo") as file:
        said = dict(line.split(":", 1) for line in file if ":" in line)
    said = {name.strip(): value.strip() for name, value in said.items()}
    kernels = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile")
    return f"{said['model name']} ({' '.join(k for k in kernels if k in said['flags'].split())})"


def main():
    part, program, bundle = sys.argv[1:4]
    numbers = [int(a) for a in sys.argv[4:]]
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    transformers.logging.set_verbosity_error()
    defaults = {"fills": (fills, [2000, 5]), "scores": (scores, [200, 5]), "together": (together, [300, 5]), "int8": (int8, [1000, 5]),
                "openvino": (openvino, [800, 5]), "cores": (on_cores, [6000, 5])}
    do, usual = defaults[part]
    numbers += usual[len(numbers) :]
    print(processor())
    print(f"{part}: transformers {transformers.__version__}, torch {torch.__version__}, {cores} cores, {numbers}; ± is one standard error of the rounds")
    with tempfile.TemporaryDirectory() as folder:
        do(program, bundle, folder, *numbers)


main()
