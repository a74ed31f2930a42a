"""Writes fill_mask.json: what transformers.pipeline says with the built-in model.

    python fill_mask.py ../../models/small-uncased > fill_mask.json      (torch and transformers)
"""

import json
import sys

from transformers import pipeline

INPUTS = [
    ("he had [MASK] me", {"top_k": 5}),
    ("The [MASK] of France is Paris.", {"top_k": 10}),
    ("she [MASK] the door and [MASK] to bed.", {"top_k": 3}),
    (["a [MASK] day", "it was [MASK] ."], {"top_k": 2}),
    ("a [MASK] house", {"targets": ["red", "green", "old"]}),
]
fill = pipeline("fill-mask", model=sys.argv[1], device="cpu", dtype="float32")
json.dump([{"inputs": i, "parameters": p, "answer": fill(i, **p)} for i, p in INPUTS], sys.stdout, indent=1)
print()
