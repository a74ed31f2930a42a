"""Makes reference.json: what NLTK and nyu-dl/bert-gen's definitions give on the small texts beside this file.

Run with Python 3.11 or later and nltk (python -m pip install nltk):

    python generate_reference.py

BLEU comes from nltk.translate.bleu_score. The unique n-grams and the tokenisations are written again here from their definitions,
with Python's own containers, and share no code with the Go package.
"""

import json
import random
import warnings
from collections import Counter
from pathlib import Path

import nltk
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu
from nltk.util import ngrams

warnings.simplefilter("ignore")  # NLTK warns of every zero precision
here = Path(__file__).parent

SMOOTHINGS = {
    "none": SmoothingFunction().method0,
    "epsilon": SmoothingFunction(epsilon=0.1).method1,
    "epsilon=0.03": SmoothingFunction(epsilon=0.03).method1,
    "add-k": SmoothingFunction().method2,
    "exp": SmoothingFunction().method3,
}


def bleu_table(references, hypotheses):
    """Percent, for every smoothing, by longest n-gram 1..5."""
    return {
        name: [
            100 * corpus_bleu(references, hypotheses, weights=[1 / n] * n, smoothing_function=function)
            for n in range(1, 6)
        ]
        for name, function in SMOOTHINGS.items()
    }


def others(sentences):
    return [[t for j, t in enumerate(sentences) if j != i] for i in range(len(sentences))]


def ratio(part, whole):
    return 100 * part / whole if whole else None


def self_unique(sentences, n):
    counts = Counter(gram for sentence in sentences for gram in ngrams(sentence, n))
    return ratio(sum(1 for count in counts.values() if count == 1), sum(counts.values()))


def reference_unique(sentences, references, n):
    ours = [gram for sentence in sentences for gram in ngrams(sentence, n)]
    theirs = {gram for sentence in references for gram in ngrams(sentence, n)}
    return ratio(len(set(ours) - theirs), len(ours))


def weighted(weights, sentences):
    """A sample as the Go package defines it: copies count as hypotheses and are nobody's second reference."""
    drawn = [i for i, w in enumerate(weights) if w]
    hypotheses, references = [], []
    for i in drawn:
        for _ in range(weights[i]):
            hypotheses.append(sentences[i])
            references.append([sentences[j] for j in drawn if j != i])
    return 100 * corpus_bleu(references, hypotheses) if len(drawn) > 1 else None


def white_space(text):
    return text.split()


def bert_gen(text):
    markers = {"@@unknown@@": "[UNK]", "[unk]": "[UNK]", "``": '"', "''": '"'}
    return [markers.get(token, token) for token in (token.lower() for token in text.split())]


def discs_hypothesis(text):
    for old, new in [(" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"),
                     (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")]:
        text = text.replace(old, new)
    return text.split()


TOKENISATIONS = {
    "whitespace": (white_space, white_space),
    "bert-gen": (bert_gen, bert_gen),
    "discs": (discs_hypothesis, bert_gen),
}


def lines(name):
    return (here / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def random_sentences(source, count, words, longest):
    return [[random_word(source, words) for _ in range(source.randint(0, longest))] for _ in range(count)]


def random_word(source, words):
    return "abcdefghijklmnop"[min(int(source.expovariate(3 / words)), words - 1)]


def texts():
    """Every tokenisation of the text files, all scores."""
    hypothesis_lines = lines("hypotheses.txt")
    for name, (hypothesis, reference) in TOKENISATIONS.items():
        hypotheses = [hypothesis(line) for line in hypothesis_lines]
        sets = {corpus: [reference(line) for line in lines(corpus + ".txt")] for corpus in ("harbour", "garden")}
        sets["all"] = sets["harbour"] + sets["garden"]
        yield {
            "tokenisation": name,
            "self_bleu": bleu_table(others(hypotheses), hypotheses),
            "corpus_bleu": {k: bleu_table([v] * len(hypotheses), hypotheses) for k, v in sets.items()},
            "unique_ngrams": {
                "self": [self_unique(hypotheses, n) for n in range(1, 5)],
                **{k: [reference_unique(hypotheses, v, n) for n in range(1, 5)] for k, v in sets.items()},
            },
            "distinct_ngrams": [reference_unique(hypotheses, [], n) for n in range(1, 5)],
            "repeated_sentences": 100 * (1 - len({tuple(h) for h in hypotheses}) / len(hypotheses)),
            "first_five": {  # bert-gen's union of the first lines of each corpus
                "bleu": 100 * corpus_bleu([sets["harbour"][:5] + sets["garden"][:5]] * len(hypotheses), hypotheses),
                "unique": [reference_unique(hypotheses, sets["harbour"][:5] + sets["garden"][:5], n) for n in range(1, 5)],
            },
            "without_source": 100 * corpus_bleu([[s for s in sets["harbour"] if s != reference(hypothesis_lines[0])]] * len(hypotheses), hypotheses),
        }


def degenerate():
    """Cases at the edges, and random ones with many repeats, ties of length and empty sentences. Every hypothesis has its own references."""
    a = "a b c d e f".split()
    cases = {
        "equal": ([a], [[a]]),
        "one short": ([["a"]], [[["a"]]]),
        "shorter than n": ([["a", "b"]], [[a]]),
        "empty hypothesis": ([[]], [[a]]),
        "empty hypothesis among others": ([[], a], [[a], [a]]),
        "all empty": ([[], []], [[[]], [[]]]),
        "empty reference": ([a], [[[]]]),
        "empty reference among others": ([["a"]], [[[], a]]),
        "no common word": ([a], [["u v w x y z".split()]]),
        "no common bigram": (["b a c a".split()], [["a b c d".split()]]),
        "clipping": (["a a a a a a a".split()], [["a b a c d e".split(), "a x y z".split()]]),
        "clipping over references": (["a a b b".split()], [["a a".split(), "b b b".split(), "a b".split()]]),
        "tie of lengths, shorter wins": ([a], [["a b c d".split(), "a b c d e f g h".split()]]),
        "tie of lengths, other order": ([a], [["a b c d e f g h".split(), "a b c d".split()]]),
        "longer than every reference": ([a + a], [[a]]),
        "brevity": (["a b c".split()], [[a, a + ["g"]]]),
        "different numbers of references": ([a, a[:4], a[2:]], [[a[:5]], [a, a[1:]], [a[:3], a[3:], ["z"]]]),
    }
    for name, (hypotheses, references) in cases.items():
        yield {"name": name, "hypotheses": hypotheses, "references": references, "bleu": bleu_table(references, hypotheses)}
    source = random.Random(20240517)
    for k in range(40):
        hypotheses = random_sentences(source, source.randint(1, 6), source.choice([2, 4, 16]), source.choice([3, 8, 20]))
        references = [random_sentences(source, source.randint(1, 5), 8, 12) for _ in hypotheses]
        yield {"name": f"random {k}", "hypotheses": hypotheses, "references": references, "bleu": bleu_table(references, hypotheses)}


def self_bleus():
    a = "a b c d e f".split()
    cases = {
        "two equal": [a, a],
        "all equal": [a, a, a, a],
        "two different": [a, "u v w x".split()],
        "with an empty one": [a, [], a[:3]],
        "all empty": [[], []],
        "second largest count": ["a a a b".split(), "a a c".split(), "a d".split()],
        "equal largest counts": ["a a b".split(), "a a c".split(), "d e".split()],
        "lengths all different": [a[:1], a[:2], a[:4], a[:5]],
        "tie of lengths": [a[:3], a[:5], a[:1]],
    }
    source = random.Random(3)
    for k in range(40):
        cases[f"random {k}"] = random_sentences(source, source.randint(2, 9), source.choice([2, 5, 16]), source.choice([4, 9]))
    for name, sentences in cases.items():
        weights = [[source.choice([0, 0, 1, 1, 2, 3]) for _ in sentences] for _ in range(3)]
        yield {
            "name": name,
            "sentences": sentences,
            "bleu": bleu_table(others(sentences), sentences),
            "self_unique": [self_unique(sentences, n) for n in range(1, 5)],
            "distinct": [reference_unique(sentences, [], n) for n in range(1, 5)],
            "weights": weights,
            "weighted_bleu": [weighted(w, sentences) for w in weights],
        }


TOKENISATION_TEXTS = [
    "plain words stay",
    "  blanks \t tabs\u00a0no-break\u2003em\u3000ideographic ",
    "separators\x1cfile\x1dgroup\x1erecord\x1funit",
    "line\u2028and\u2029paragraph\x85next\x0bvertical\x0cform",
    "zero\u200bwidth is no space",
    "It 's LATE , `` he '' said , is n't it ?",
    "The @@UNKNOWN@@ is a well @-@ known [UNK] @,@ @unknown@",
    "\u0130stanbul \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u039f\u0394\u039f\u03a3 STRA\u1e9eE \u01c5",
    "end . end ! end ? we 're , we 've , I 'm ' quoted ' .",
    "",
]


result = {
    "nltk": nltk.__version__,
    "tokens": [
        {"text": text, **{name: {"hypothesis": h(text), "reference": r(text)} for name, (h, r) in TOKENISATIONS.items()}}
        for text in TOKENISATION_TEXTS
    ],
    "texts": list(texts()),
    "corpus_bleu": list(degenerate()),
    "self_bleu": list(self_bleus()),
}
# One case a line keeps differences readable.
sections = [
    f"{json.dumps(key)}: " + (json.dumps(value) if isinstance(value, str) else "[\n" + ",\n".join(json.dumps(case, allow_nan=False) for case in value) + "\n]")
    for key, value in result.items()
]
(here / "reference.json").write_text("{\n" + ",\n".join(sections) + "\n}\n", encoding="ascii")
