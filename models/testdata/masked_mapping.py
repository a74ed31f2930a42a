"""Writes masked_mapping.txt: the families of transformers' MODEL_FOR_MASKED_LM_MAPPING (5.23), one a line.

  pip install transformers
  python masked_mapping.py > masked_mapping.txt
"""

from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

print("\n".join(sorted(MODEL_FOR_MASKED_LM_MAPPING_NAMES)))
