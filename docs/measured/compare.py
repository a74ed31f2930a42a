"""Texts a second of `infill run` and of Python, on the same weights, texts and cores, in turns.

    pip install torch transformers
    taskset -c 0 python compare.py INFILL BUNDLE [TEXTS] [ROUNDS] > compare.txt

INFILL is the program, BUNDLE the folder of the model (`infill models list --format json` tells it after the first fill). taskset pins all of them to
one core. One blank a text; each gives the five likeliest tokens with their probabilities. Python has three ways: transformers' fill-mask pipeline
in batches, and a loop written by hand, which sorts the texts by length and asks the head of the model at the blanks only, in float32 and in bf16.
The time of infill has the start of its process in it, that of the others has not. A way that takes long fills the first quarter of the texts.
Beside the time on the clock stands processor time, which other work on the machine changes less.
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


def main():
    program, bundle = sys.argv[1:3]
    count, rounds = (int(a) for a in (sys.argv[3:] + ["2000", "5"])[:2])
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    transformers.logging.set_verbosity_error()
    lines = list(texts(count))
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundle)
    models = {t: transformers.BertForMaskedLM.from_pretrained(bundle, torch_dtype=t).eval() for t in BY_HAND.values()}
    pipe = transformers.pipeline("fill-mask", model=models[torch.float32], tokenizer=tokenizer, top_k=5, device="cpu")
    few = lines[: count // 4]
    ways = {f"pipeline, batch {b}": (few, lambda b=b: pipe(few, batch_size=b)) for b in BATCHES}
    ways |= {n: (lines, lambda t=t: by_hand(models[t], tokenizer, lines)) for n, t in BY_HAND.items()}
    clock, processor = {n: [] for n in [*ways, "infill"]}, {n: [] for n in [*ways, "infill"]}
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "texts.txt"), os.path.join(folder, "fills.jsonl")
        with open(source, "w") as file:
            file.write("\n".join(lines) + "\n")
        command = [program, "run", source, "-o", out, "-m", bundle, "--overwrite", "-q", "--device", "cpu", "--threads", str(cores)]
        ways["infill"] = lines, lambda: subprocess.run(command, check=True)
        for _ in range(rounds):
            for name, (asked, way) in ways.items():
                start, used = time.perf_counter(), spent()
                with torch.inference_mode():
                    answers[name] = way()
                clock[name].append((time.perf_counter() - start) / len(asked))
                processor[name].append((spent() - used) / len(asked))
        with open(out) as file:
            first = [json.loads(line)["fills"][0]["values"][0].lower() for line in file]
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {cores} cores, {count} texts, {rounds} rounds in turns; ± is one standard error")
    for name in BY_HAND:
        print(f"likeliest fill of infill and {name} alike: {sum(a == b[0][0] for a, b in zip(first, answers[name]))} of {count}")
    for what, seconds in {"on the clock": clock, "of processor time": processor}.items():
        for name in ways:
            rate = [1 / s for s in seconds[name]]
            ratio = [i / s for i, s in zip(seconds["infill"], seconds[name])]
            print(f"{name}: {mean(rate):.1f} ± {stdev(rate) / rounds**0.5:.1f} texts a second {what}, {mean(ratio):.2f} ± {stdev(ratio) / rounds**0.5:.2f} × infill")


main()
