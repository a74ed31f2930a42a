#!/usr/bin/env python3
"""Writes phrases.txt: names of two to four words that a running English text writes with capitals, as New York, White House.

    python3 phrases.py names.txt TEXT... > phrases.txt

Counted are rows of capitalised words that follow a small word of their sentence. A row is listed when it stands there at least
40 times and its words, in whatever capitals, stand so 97 times of 100; not where names.txt gives each word its capital anyway.
The list in the repository was counted in 320 million characters of English Wikipedia.
"""
import collections, re, sys

names = {line.strip() for line in open(sys.argv[1], encoding="utf-8")}
row = re.compile(r"(?<=[a-z,] )[A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*){1,3}(?= [a-z(]|[,.;:)])")
capital = collections.Counter()
for path in sys.argv[2:]:
    for line in open(path, encoding="utf-8"):
        for name in row.findall(line):
            words = name.split()
            if not all(w in names for w in words) and all(len(w) > 1 for w in words):
                capital[name] += 1
common = {name: n for name, n in capital.items() if n >= 40}
firsts, small = collections.defaultdict(set), collections.Counter()
for name in common:
    words = tuple(name.lower().split())
    firsts[words[0]].add(words[1:])
word = re.compile(r"[A-Za-z]+")
for path in sys.argv[2:]:
    for line in open(path, encoding="utf-8"):
        words = word.findall(line)
        for i, w in enumerate(words):
            for rest in firsts.get(w.lower(), ()):
                seen = words[i + 1 : i + 1 + len(rest)]
                if len(seen) == len(rest) and any(a != a.capitalize() and a.islower() for a in [w] + seen) and tuple(a.lower() for a in seen) == rest:
                    small[(w.lower(),) + rest] += 1
written = {}
for name, n in sorted(common.items()):
    low = tuple(name.lower().split())
    if small[low] <= 0.03 * n and n > common.get(written.get(low), 0):
        written[low] = name
print("\n".join(sorted(written.values())))
