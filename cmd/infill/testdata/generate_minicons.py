"""Write minicons.json: what minicons says of some texts by the built-in model.

    pip install minicons==0.3.39 'transformers<5'
    python generate_minicons.py FOLDER_OF_THE_MODEL > minicons.json

`infill models list --format json` tells the folder, after the first fill.
"""

import json
import sys

from minicons import scorer

TEXTS = [
    "The old man had never seen the sea.",
    "He didn't see the unbelievable cafes.",
    "Homarus gammarus, the European lobster, is clawed.",
    "It rained.",
]

model = scorer.MaskedLMScorer(sys.argv[1], "cpu")
rows = []
for metric in ("within_word_l2r", "original"):
    tokens = model.token_score(TEXTS, PLL_metric=metric)
    sums = model.sequence_score(TEXTS, reduction=lambda x: x.sum().item(), PLL_metric=metric)
    for text, scores, total in zip(TEXTS, tokens, sums):
        rows.append(
            {
                "text": text,
                "metric": metric,
                "tokens": [[token, round(float(score), 6)] for token, score in scores],
                "sum": round(float(total), 6),
            }
        )
json.dump(rows, sys.stdout, indent=1)
print()
