#!/usr/bin/env python3
"""Writes words.txt.gz, a list of English words: one a line, in small letters without accents, ascending, with a tab
and how often each stands in a text, rounded down to a power of two.

    python3 words.py TEXT... > words.txt.gz

A TEXT is plain or .xz. Listed are the 200,000 most frequent words of two letters or more; of equals the first in the alphabet.
The list in the repository was counted in 101 million words of English Wikipedia and of books in the public domain, where its
rarest words stand four times.
"""
import collections, gzip, lzma, re, sys, unicodedata

count = collections.Counter()
for path in sys.argv[1:]:
    for line in (lzma.open if path.endswith(".xz") else open)(path, "rt", encoding="utf-8"):
        count.update(re.findall(r"[^\W\d_]+", line.lower()))
plain = collections.Counter()
for word, n in count.items():
    word = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    if len(word) > 1 and word.isascii():
        plain[word] += n
words = sorted(plain, key=lambda w: (-plain[w], w))[:200000]
lines = (f"{w}\t{1 << plain[w].bit_length() - 1}\n" for w in sorted(words))
sys.stdout.buffer.write(gzip.compress("".join(lines).encode(), 9, mtime=0))
