#!/usr/bin/env python3
"""second_export.py model.pt START_BUNDLE OUT [avg]: writes a checkpoint of second.py as a bundle: START_BUNDLE's configuration and tokenizer, F16 weights."""
import json, os, shutil, struct, sys
import torch
pt, start, out = sys.argv[1:4]; which = (sys.argv+['w'])[4] # avg: the average of the last steps' weights
os.makedirs(out, exist_ok=True)
w = torch.load(pt, map_location='cpu')[which]; L = 1+max(int(k.split('.')[0]) for k in w if k[0].isdigit())
ty = torch.zeros(2, w['type0'].shape[0]); ty[0] = w['type0']
t = {'bert.embeddings.word_embeddings.weight': w['word'], 'bert.embeddings.position_embeddings.weight': w['pos'], 'bert.embeddings.token_type_embeddings.weight': ty, 'cls.predictions.bias': w['bias']}
def put(name, key):
    for long, short in (('weight', 'w'), ('bias', 'b')): t[f'{name}.{long}'] = w[f'{key}.{short}']
put('bert.embeddings.LayerNorm', 'ln'); put('cls.predictions.transform.dense', 't'); put('cls.predictions.transform.LayerNorm', 'tln')
for l in range(L):
    for key, name in (('q', 'attention.self.query'), ('k', 'attention.self.key'), ('v', 'attention.self.value'), ('o', 'attention.output.dense'), ('ln1', 'attention.output.LayerNorm'), ('f1', 'intermediate.dense'), ('f2', 'output.dense'), ('ln2', 'output.LayerNorm')):
        put(f'bert.encoder.layer.{l}.{name}', f'{l}.{key}')
h, off, blobs = {'__metadata__': {'format': 'pt'}}, 0, []
for k in sorted(t):
    x = t[k].contiguous().half(); assert torch.isfinite(x).all(), k
    b = x.numpy().tobytes(); h[k] = {'dtype': 'F16', 'shape': list(x.shape), 'data_offsets': [off, off+len(b)]}; off += len(b); blobs.append(b)
hb = json.dumps(h, separators=(',', ':')).encode(); hb += b' '*(-len(hb) % 8)
with open(out+'/model.safetensors', 'wb') as f:
    f.write(struct.pack('<Q', len(hb))+hb)
    for b in blobs: f.write(b)
for n in ('config.json', 'tokenizer.json', 'tokenizer_config.json', 'vocab.txt'): shutil.copy(start+'/'+n, out+'/'+n)
