#!/usr/bin/env python3
"""Energies, and energies with gradients, of the same fills by infill and by what else a user could take: one run, in turn.

    python3 testdata/peers/peers.py [--rounds 7] [--venv DIR] [--model FOLDER] [--part model|base|start]

makes a virtual environment (unless DIR is one already), compiles infill's side (go test -c ./lm), and prints a table in
Markdown. An energy is U = sum over 5 slots of log p(token | the text with that slot masked), of fills of a text of 24 tokens;
its gradient is that by the slots' embeddings, times the embeddings of 250 candidates. Peers are written as a user of each
would: rows in batches of the best size, no gradients of weights, the vocabulary's head at the masked positions alone.
The third part is the time from the start of a process to the first fill of "he had [MASK] me".
"""
import argparse, os, re, resource, statistics, subprocess, sys, time

TOKENS, SLOTS, CANDIDATES, MASK = 24, [5, 9, 13, 17, 21], 250, 103


def worker(folder, kind, chains, batch):
    """A peer: answers each line with the seconds that it took."""
    import numpy as np
    rng = np.random.default_rng(1)
    threads = len(os.sched_getaffinity(0))
    ids = rng.integers(200, 20000, (chains, TOKENS))
    candidates = np.arange(100, 100 + CANDIDATES)

    def fresh():
        for s in SLOTS:
            ids[:, s] = rng.integers(100, 100 + CANDIDATES, chains)

    if kind in ("torch eager", "torch compile"):
        import torch, transformers
        torch.set_num_threads(threads)
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval().requires_grad_(False)
        encoder, head = model.base_model, model.cls.predictions
        if "compile" in kind:
            encoder = torch.compile(encoder, dynamic=False)
        table = model.get_input_embeddings().weight
        version = f"torch {torch.__version__}, transformers {transformers.__version__}"

        def rows():
            t = torch.from_numpy(np.repeat(ids, len(SLOTS), 0))
            at = torch.tensor(SLOTS * chains)
            wanted = t[torch.arange(len(t)), at]
            t = t.clone()
            t[torch.arange(len(t)), at] = MASK
            return t, at, wanted

        def energy():
            t, at, wanted = rows()
            out = []
            with torch.inference_mode():
                for k in range(0, len(t), batch):
                    states = encoder(t[k:k + batch]).last_hidden_state
                    logits = head(states[torch.arange(len(states)), at[k:k + batch]]).float()
                    out.append(torch.log_softmax(logits, -1)[torch.arange(len(states)), wanted[k:k + batch]])
            return torch.cat(out).reshape(chains, -1).sum(1)

        def gradient():
            t, at, wanted = rows()
            grads = []
            for k in range(0, len(t), batch):
                words = table[t[k:k + batch]].detach().requires_grad_(True)
                states = encoder(inputs_embeds=words).last_hidden_state
                logits = head(states[torch.arange(len(states)), at[k:k + batch]]).float()
                torch.log_softmax(logits, -1)[torch.arange(len(states)), wanted[k:k + batch]].sum().backward()
                grads.append(words.grad[:, SLOTS])
            through = torch.cat(grads).reshape(chains, len(SLOTS), len(SLOTS), -1).sum(1)
            return through @ table[torch.from_numpy(candidates)].T
    else:
        import onnxruntime, torch, transformers

        class Rows(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")

            def forward(self, ids, at):
                states = self.model.base_model(ids).last_hidden_state
                return torch.log_softmax(self.model.cls.predictions(states[torch.arange(ids.shape[0]), at]), -1)

        path = os.path.join(folder, "torch.onnx")
        torch.onnx.export(Rows().eval(), (torch.from_numpy(ids), torch.tensor([SLOTS[0]] * chains)), path, input_names=["ids", "at"],
                          output_names=["scores"], dynamic_axes={"ids": {0: "rows"}, "at": {0: "rows"}}, dynamo=False)
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        version = f"onnxruntime {onnxruntime.__version__}, torch {torch.__version__}"
        gradient = None  # an export has none

        def energy():
            at = np.array(SLOTS * chains)
            rows, all = np.repeat(ids, len(SLOTS), 0), np.arange(len(at))
            wanted = rows[all, at].copy()
            rows[all, at] = MASK
            scores = [session.run(None, {"ids": rows[k:k + batch], "at": at[k:k + batch]})[0] for k in range(0, len(at), batch)]
            return np.concatenate(scores)[all, wanted].reshape(chains, -1).sum(1)
    print("\npeer: ready", version, flush=True)
    for line in sys.stdin:
        run = gradient if line.strip() == "gradient" else energy
        fresh()
        start = time.perf_counter()
        if run:
            run()
        print(f"peer: {time.perf_counter() - start:.6f}" if run else "peer: none", flush=True)


def starts(folder, infill, python, rounds):
    """From the start of a process to its end, with one fill: seconds on the clock and of processor time."""
    pipeline = "import sys; from transformers import pipeline; print(pipeline('fill-mask', model=sys.argv[1])('he had [MASK] me')[0]['token_str'])"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    commands = {"infill": [infill, "--format", "json", "he had [MASK] me"], "transformers' pipeline": [python, "-c", pipeline, folder]}
    taken = {name: [] for name in commands}
    for i in range(rounds + 1):
        for name, command in commands.items():
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            if i:
                taken[name].append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    print(f"\nStart to first fill, {rounds} rounds in turn\n\n| | seconds | processor seconds |\n| --- | ---: | ---: |")
    spread = lambda x: f"{statistics.median(x):.2f} ({min(x):.2f}–{max(x):.2f})"
    for name, t in taken.items():
        print(f"| {name} | {spread([a for a, _ in t])} | {spread([b for _, b in t])} |")
    ours, theirs = taken.values()
    print(f"| ratio | {spread([b[0] / a[0] for a, b in zip(ours, theirs)])} | {spread([b[1] / a[1] for a, b in zip(ours, theirs)])} |", flush=True)


def roofline(folder, chains):
    """The bare products of an energy's rows, by torch's own library, GFLOP/s."""
    import json, torch
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    c = json.load(open(os.path.join(folder, "config.json")))
    h, f, v, rows = c["hidden_size"], c["intermediate_size"], c["vocab_size"], chains * len(SLOTS)
    for m, k, n in [(rows * TOKENS, h, h), (rows * TOKENS, h, f), (rows * TOKENS, f, h), (rows, h, v)]:
        a, b, seconds = torch.randn(m, k), torch.randn(k, n), []
        for _ in range(8):
            start = time.perf_counter()
            a @ b
            seconds.append(time.perf_counter() - start)
        print(f"| {m} × {k} · {k} × {n} | {2e-9 * m * k * n / statistics.median(seconds[1:]):.0f} (best {2e-9 * m * k * n / min(seconds[1:]):.0f}) |", flush=True)


class Peer:
    def __init__(self, name, command, env=None):
        self.name, self.seconds, started = name, {"energy": [], "gradient": []}, time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **(env or {})})
        answer = self.read()
        self.version = answer.removeprefix("ready ") if answer else None
        self.ask("energy", None)
        self.start = time.perf_counter() - started

    def read(self):
        for line in self.process.stdout:
            if line.startswith("peer: "):
                return line[6:].strip()

    def ask(self, what, keep):
        if self.version is None:
            return
        try:
            print(what, file=self.process.stdin, flush=True)
            answer = self.read()
        except BrokenPipeError:
            answer = None
        if answer is None:
            self.version = None
        elif answer != "none" and keep is not None:
            keep.append(float(answer))

    def memory(self):
        """Peak resident memory in MiB."""
        try:
            return int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{self.process.pid}/status").read())[1]) / 1024
        except (OSError, TypeError):
            return float("nan")


def rate(rows, seconds):
    if not seconds:
        return "–"
    rates = sorted(rows / s for s in seconds)
    n = len(rates)
    return f"{statistics.median(rates):.0f} ({rates[n // 4]:.0f}–{rates[3 * n // 4]:.0f})"


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--rounds", type=int, default=7)
    a.add_argument("--chains", type=int, default=25, help="fills of an evaluation; two fifths of them for BERT-base's shape")
    a.add_argument("--venv", default=os.path.join(os.path.expanduser("~"), ".cache", "infill", "peers"))
    a.add_argument("--model", default="models/small-uncased")
    a.add_argument("--part", choices=["model", "base", "start"], help="one part alone")
    a.add_argument("--skip", default="", help="peers to leave out, with commas")
    a.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    o = a.parse_args()
    if o.worker and o.worker[1] == "roofline":
        return roofline(o.worker[0], int(o.worker[2]))
    if o.worker:
        return worker(o.worker[0], o.worker[1], int(o.worker[2]), int(o.worker[3]))
    python = os.path.join(o.venv, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", o.venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "torch", "transformers", "onnx", "onnxruntime"], check=True)
    work = os.path.join(o.venv, "work")
    os.makedirs(work, exist_ok=True)
    subprocess.run(["go", "test", "-c", "-o", os.path.join(work, "lm.test"), "./lm"], check=True)
    subprocess.run(["go", "build", "-o", os.path.join(work, "infill"), "./cmd/infill"], check=True)
    base = os.path.join(work, "base")
    if not os.path.exists(base):
        os.makedirs(base)
        subprocess.run([os.path.join(work, "lm.test"), "-test.run", "^TestPeer$"], check=True, env={**os.environ, "INFILL_PEER": base + " shape"}, cwd="lm")
    import shutil
    if o.part in (None, "start"):
        starts(os.path.abspath(o.model), os.path.join(work, "infill"), python, max(o.rounds, 10))
    for part, name, source, chains in [("model", os.path.basename(o.model), o.model, o.chains), ("base", "BERT-base's shape", base, o.chains * 2 // 5)]:
        if o.part not in (None, part):
            continue
        folder = os.path.join(work, "model-" + re.sub(r"\W", "-", name))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        peers = [Peer("infill", [os.path.join(work, "lm.test"), "-test.run", "^TestPeer$"], {"INFILL_PEER": f"{folder} cpu {chains}"})]
        eager = 125
        for kind in ["torch eager", "torch compile", "torch's ONNX export"]:
            if kind in o.skip.split(","):
                continue
            best = None
            for batch in [125, 25] if "compile" not in kind else [eager]:  # compiling takes long: the batch that was best without it
                # the better of two batch sizes, by the fastest of three evaluations after the first
                p = Peer(kind, [python, os.path.abspath(__file__), "--worker", folder, kind, str(chains), str(min(batch, chains * len(SLOTS)))])
                trial = []
                for _ in range(3):
                    p.ask("energy", trial)
                if p.version and (best is None or min(trial) < best[0]):
                    if best:
                        best[1].process.kill()
                    best = (min(trial), p, batch)
                else:
                    p.process.kill()
                if chains * len(SLOTS) <= 50:
                    break
            if best:
                peers.append(best[1])
                if kind == "torch eager":
                    eager = best[2]
        for what in ["energy", "gradient"]:
            for i in range(o.rounds + 1):
                for p in peers:
                    p.ask(what, p.seconds[what] if i else None)
        rows = chains * len(SLOTS)
        print(f"\n{name}, {chains} fills ({rows} rows), {o.rounds} rounds in turn\n")
        print("| | version | rows/s, energies | × infill | rows/s, with gradient | × infill | start to first result, s | peak memory, MiB |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        ratio = lambda p, what: "–" if not p.seconds[what] else f"{statistics.median([x / y for x, y in zip(peers[0].seconds[what], p.seconds[what])]):.2f}"
        for p in peers:
            if p.version is None:
                print(f"| {p.name} | did not run | | | | | | |")
                continue
            print(f"| {p.name} | {p.version} | {rate(rows, p.seconds['energy'])} | {ratio(p, 'energy')} | {rate(rows, p.seconds['gradient'])} | {ratio(p, 'gradient')} | {p.start:.1f} | {p.memory():.0f} |", flush=True)
        for p in peers:
            p.process.kill()
        print("\n| bare product | GFLOP/s |\n| --- | ---: |", flush=True)
        subprocess.run([python, os.path.abspath(__file__), "--worker", folder, "roofline", str(chains), "0"], check=True)


if __name__ == "__main__":
    main()
