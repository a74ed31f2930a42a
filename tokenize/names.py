#!/usr/bin/env python3
"""Writes names.txt: words of BERT's English vocabulary that a running English text writes with a capital.

    python3 names.py VOCAB.txt TEXT... > names.txt

Counted is each word that follows another word of its sentence. A word is listed when it stands there at least 20 times, and with
a capital first letter 97 times of 100, in the form that it has most often, NASA or McDonald. The list in the repository was
counted in 42.7 million words of English Wikipedia and of books in the public domain, the forms in 120 million characters of
Wikipedia (10 times at least; else the first letter is the capital).
"""
import collections, re, sys

vocabulary = {w for w in open(sys.argv[1], encoding="utf-8").read().split("\n") if w.isalpha() and w.isascii()}
total, capital, forms = collections.Counter(), collections.Counter(), collections.defaultdict(collections.Counter)
pair = re.compile(r"(?<=[A-Za-z] )[A-Za-z]+(?=[ ,.;])")
for path in sys.argv[2:]:
    for line in open(path, encoding="utf-8"):
        for word in pair.findall(line):
            low = word.lower()
            if low in vocabulary:
                total[low] += 1
                capital[low] += word[0].isupper()
                forms[low][word] += word[0].isupper()
for word in sorted(total):
    if total[word] >= 20 and capital[word] >= 0.97 * total[word]:
        print(forms[word].most_common(1)[0][0])
