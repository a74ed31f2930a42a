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
    (["it was a [MASK] day"], {"top_k": 2}),
    (["she [MASK] the door and [MASK] to bed."], {"top_k": 1}),
    ("a [MASK] house", {"top_k": 0}),
    (["a [MASK] house", "a [MASK] day"], {"top_k": 0}),
    ("she [MASK] the door and [MASK] to bed.", {"top_k": 0}),
    ("a [MASK] house", {"targets": []}),
    ("a [MASK] house", {"targets": "red"}),
    ("a [MASK] house", {"targets": ["red", "old", "red"], "top_k": 1}),
    ("a [MASK] house", {"targets": ["red", "old"], "top_k": 0}),
    (["a [MASK] day", "it was [MASK] ."], {"top_k": 2, "batch_size": 2, "num_workers": 0}),
    ("it was a [MASK] day", {"top_k": 2, "tokenizer_kwargs": {"truncation": True}}),
]


def answers(inputs, parameters):
    try:
        return fill(inputs, **parameters)
    except ValueError as error:
        return {"error": type(error).__name__}


fill = pipeline("fill-mask", model=sys.argv[1], device="cpu", dtype="float32")
json.dump([{"inputs": i, "parameters": p, "answer": answers(i, p)} for i, p in INPUTS], sys.stdout, indent=1)
print()
