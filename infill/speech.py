#!/usr/bin/env python3
"""Writes speech.txt.gz: the parts of speech of English words, from WordNet 3.0 (Debian's package wordnet-base).

    python3 speech.py /usr/share/wordnet WORDS VOCAB.txt > speech.txt.gz

A line is a word in small letters and the parts that it can be: n, v, a (adjective), r (adverb). Listed are the words of WORDS (one a line,
perhaps .gz; the file in the repository took the 200,000 most frequent of English Wikipedia and of books in the public domain)
and of BERT's vocabulary that WordNet has, and their inflections, by its own rules (morphy) and lists of exceptions. WordNet has no
pronouns, articles, prepositions and conjunctions, but rare nouns that look like them (a, he, in, me): words of closed classes are
left out, and a part that fewer than one in fifty of a word's tagged uses have.
"""
import collections, gzip, os, sys

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
RULES = {  # what an ending becomes
    "n": [("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}
CLOSED = set("""
a an the this that these those some any no every each either neither both all such what which whose who whom
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one ones
myself ourselves yourself yourselves himself herself itself themselves oneself someone somebody anyone anybody everyone everybody
nobody none something anything everything nothing another other others
about above across after against along amid among around as at before behind below beneath beside besides between beyond but by despite down
during except for from in inside into like near of off on onto out outside over past per since than through throughout till to toward towards
under underneath until unto up upon via with within without
and or nor so yet if because although though while whereas unless lest whether when where why how
am are is was were be been being do does did have has had having can could may might must shall should will would ought
not there then here d ll m re s t ve
""".split())
AUXILIARY = set("am are is was were be been being do does did have has had having".split())

folder, words, vocabulary = sys.argv[1:]
lemmas, exceptions = collections.defaultdict(set), collections.defaultdict(set)
for name, part in PARTS.items():
    for line in open(os.path.join(folder, "index." + name), encoding="ascii"):
        if not line.startswith(" "):
            lemmas[part].add(line.split()[0])
    for line in open(os.path.join(folder, name + ".exc"), encoding="ascii"):
        form, *of = line.split()
        exceptions[part, form].update(of)
uses = collections.Counter()
for line in open(os.path.join(folder, "cntlist.rev"), encoding="ascii"):
    key, _, count = line.split()
    lemma, kind = key.split("%")
    uses[lemma, " nvara"[int(kind[0])]] += int(count)


def bases(form, part):
    """The entries of WordNet that a form can be one of."""
    found = {b for b in exceptions[part, form] if b in lemmas[part]}
    if form in lemmas[part]:
        found.add(form)
    for ending, becomes in RULES[part]:
        if form.endswith(ending) and len(form) - len(ending) + len(becomes) > 2:
            base = form[:len(form) - len(ending)] + becomes
            if base in lemmas[part] and not (part == "n" and form.endswith("ss")):
                found.add(base)
    return found


known = set((gzip.open if words.endswith(".gz") else open)(words, "rt", encoding="utf-8").read().split())
known |= {w for w in open(vocabulary, encoding="utf-8").read().split("\n") if w.isascii() and w.isalpha()}
lines = []
for form in sorted(known):
    if form in CLOSED:
        if form in AUXILIARY:
            lines.append(form + " v")
        continue
    count = {part: sum(uses[b, part] for b in found) for part in "nvar" if (found := bases(form, part))}
    parts = "".join(p for p in "nvar" if p in count and count[p] * 50 >= sum(count.values()))
    if parts and len(form) > 1:
        lines.append(form + " " + parts)
sys.stdout.buffer.write(gzip.compress("".join(line + "\n" for line in lines).encode(), 9, mtime=0))
