"""Templates a second of `infill run` and of the fill-mask pipeline of transformers, on the same weights, texts and cores, in turns.

    python compare.py INFILL BUNDLE [TEXTS] [ROUNDS] > compare.txt

INFILL is the program, BUNDLE the folder of the model (that of `infill setup`). One blank a text; the pipeline gives the five likeliest
tokens with their probabilities, and so does infill. Its time has the start of the process in it, that of the pipeline has not, which fills the
first quarter of the texts, being slower. Beside the time on the clock stands processor time, which other work on the machine changes less.
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


def main():
    program, bundle = sys.argv[1:3]
    count, rounds = (int(a) for a in (sys.argv[3:] + ["2000", "5"])[:2])
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    transformers.logging.set_verbosity_error()
    lines = list(texts(count))
    model = transformers.BertForMaskedLM.from_pretrained(bundle, dtype=torch.float32).eval()
    pipe = transformers.pipeline("fill-mask", model=model, tokenizer=transformers.AutoTokenizer.from_pretrained(bundle), top_k=5, device="cpu")
    names, few = [*BATCHES, "infill"], lines[: count // 4]
    filled = {n: len(few) for n in BATCHES} | {"infill": count}
    clock, processor = {n: [] for n in names}, {n: [] for n in names}
    alike = 0
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "texts.txt"), os.path.join(folder, "fills.jsonl")
        with open(source, "w") as file:
            file.write("\n".join(lines) + "\n")
        for _ in range(rounds):
            for name in names:
                start, used = time.perf_counter(), spent()
                if name == "infill":
                    subprocess.run([program, "run", source, "-o", out, "-m", bundle, "--overwrite", "-q", "--device", "cpu"], check=True)
                else:
                    with torch.inference_mode():
                        answers = pipe(few, batch_size=name)
                clock[name].append((time.perf_counter() - start) / filled[name])
                processor[name].append((spent() - used) / filled[name])
        with open(out) as file:
            for answer, line in zip(answers, file):
                alike += answer[0]["token_str"] == json.loads(line)["fills"][0]["values"][0].lower()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {cores} cores, {count} texts, {rounds} rounds in turns")
    print(f"likeliest fill alike: {alike} of {len(few)}")
    for what, seconds in {"on the clock": clock, "of processor time": processor}.items():
        best = min(BATCHES, key=lambda b: mean(seconds[b]))
        for name in names:
            rate = [1 / s for s in seconds[name]]
            ratio = [b / s for b, s in zip(seconds[best], seconds[name])]
            print(f"{name if name == 'infill' else f'pipeline, batch {name}'}: {mean(rate):.1f} ± {stdev(rate) / rounds**0.5:.1f} templates a second {what},"
                  f" {mean(ratio):.2f} ± {stdev(ratio) / rounds**0.5:.2f} × the pipeline's best")
    busy = [p / c / cores for p, c in zip(processor["infill"], clock["infill"])]
    print(f"infill keeps {100 * mean(busy):.0f} ± {100 * stdev(busy) / rounds**0.5:.0f} % of the cores busy, its start included")


main()
