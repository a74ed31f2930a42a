#!/usr/bin/env python3
"""generate.py BUNDLE OUT.json [CASES.json]: golden values of a BERT masked language model, in double precision.

The model is transformers' BertForMaskedLM with the bundle's F16 weights widened to F64; gradients are PyTorch's, over one-hot
slots that are multiplied by the embedding matrix. The chain rule's log P reads token ids. Written with
torch 2.11 and transformers 5. README.md tells the fields.
CASES.json gives templates and fills; without it the cases below are taken.
"""
import json, re, sys
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForMaskedLM

CASES = [
    ('he had [MASK] me', [['told'], ['never']]),
    ('the [MASK] crossed the [MASK] before the [MASK] came .', [['men', 'river', 'rain'], ['old', 'street', 'night'], ['queen', 'valley', 'soldiers']]),
    ('in [MASK] the company [MASK] its first factory in the north of [MASK] , and sold it ten years later .', [['1912', 'built', 'england'], ['august', 'opened', 'scotland']]),
    ('"[MASK] !" she [MASK] , and [MASK] the letter [MASK] the fire .', [['no', 'cried', 'threw', 'into'], ['stop', 'said', 'dropped', 'near']]),
    ('they [MASK] in [MASK:2] for ten years .', [['lived', 'new', 'york'], ['worked', 'los', 'angeles'], ['met', 'hong', 'kong']]),
    ('the [MASK=who] asked the other [MASK=who] about the [MASK] .', [['man', 'man', 'money'], ['girl', 'girl', 'house'], ['soldier', 'soldier', 'war']]),
]
# By the number of blanks, an order of the chain rule besides left to right and right to left.
PERMUTATIONS = {1: [], 2: ['2,1'], 3: ['2,3,1'], 4: ['3,1,4,2']}
BLANK = r'\[MASK(?::(\d+))?(?:=\w+)?\]'
AT = [105, 1000, 2500, 6000, 11000]
bundle, out = sys.argv[1:3]
cases = [(c['template'], c['fills']) for c in json.load(open(sys.argv[3]))] if len(sys.argv) > 3 else CASES
if len(sys.argv) > 3: AT = json.load(open(sys.argv[3]))[0]['pll']['gradient_at']['ids']
torch.set_default_dtype(torch.float64)
config = BertConfig.from_json_file(bundle+'/config.json'); config._attn_implementation = 'eager'
model = BertForMaskedLM(config).double().eval()
weights = {k: v.double() for k, v in load_file(bundle+'/model.safetensors').items()}
weights['cls.predictions.decoder.weight'], weights['cls.predictions.decoder.bias'] = weights['bert.embeddings.word_embeddings.weight'], weights['cls.predictions.bias']
missing, unexpected = model.load_state_dict(weights, strict=False)
assert not unexpected and not [m for m in missing if 'position_ids' not in m and 'pooler' not in m], (missing, unexpected)
E = model.bert.embeddings.word_embeddings.weight.detach()
words = {w.rstrip('\n'): i for i, w in enumerate(open(bundle+'/vocab.txt', encoding='utf-8'))}
MASK = words['[MASK]']

def text_ids(text):
    """Plain words and punctuation, each one token: all that the cases hold. [MASK:2] is two tokens, and [MASK=name] one."""
    text = re.sub(BLANK, lambda blank: ' [MASK]'*int(blank[1] or 1)+' ', text)
    return [words['[CLS]']]+[words[t] for t in re.findall(r'\[MASK\]|\w+|[^\w\s]', text)]+[words['[SEP]']]
def orders(text):
    """The orders of the chain rule by their names: for each, the indices of the slots. The pieces of a blank stay side by
    side; r2l takes the last piece of a blank first, a permutation the first."""
    blanks, slots = [], 0
    for blank in re.finditer(BLANK, text):
        blanks.append(range(slots, slots+int(blank[1] or 1))); slots = blanks[-1].stop
    named = {'l2r': range(slots), 'r2l': range(slots-1, -1, -1)}
    for permutation in PERMUTATIONS[len(blanks)]: named[permutation] = [j for n in permutation.split(',') for j in blanks[int(n)-1]]
    return named
def top(x, k=5):
    v, i = x.sort(descending=True, stable=True); return i[:k].tolist(), [round(y, 9) for y in v[:k].tolist()]

result = []
for template, fills in cases:
    ids = text_ids(template); slots = [i for i, t in enumerate(ids) if t == MASK]; filled = []
    for f in fills:
        x = list(ids)
        for s, w in zip(slots, f): x[s] = words[w]
        filled.append(x)
    case = {'template': template, 'fills': fills, 'slots': slots, 'ids': filled}
    for energy in ('pll', 'filled'):
        r = {'energy': [], 'gradient_top': {'ids': [], 'values': []}, 'gradient_at': {'ids': AT, 'values': []}, 'gradient_sum': [], 'gradient_square_sum': [], 'log_prob_top': {'ids': [], 'values': []}}
        for x in filled:
            onehot = torch.zeros(len(slots), E.shape[0]); onehot[range(len(slots)), [x[s] for s in slots]] = 1; onehot.requires_grad_()
            base = E[torch.tensor(x)]
            def embedded(masked):
                rows = list(base)
                for j, s in enumerate(slots): rows[s] = E[MASK] if s == masked else onehot[j]@E
                return torch.stack(rows)[None]
            if energy == 'pll': logp = [model(inputs_embeds=embedded(s)).logits[0, s].log_softmax(-1) for s in slots]
            else:
                l = model(inputs_embeds=embedded(None)).logits[0].log_softmax(-1); logp = [l[s] for s in slots]
            # θ enters as the one that is scored, too.
            u = sum((onehot[j]*logp[j]).sum() for j in range(len(slots))); u.backward(); g = onehot.grad
            r['energy'].append(round(u.item(), 9))
            for name, rows in (('gradient_top', g), ('log_prob_top', [p.detach() for p in logp])):
                t = [top(y) for y in rows]; r[name]['ids'].append([y[0] for y in t]); r[name]['values'].append([y[1] for y in t])
            r['gradient_at']['values'].append([[round(v, 9) for v in y[AT].tolist()] for y in g])
            r['gradient_sum'].append([round(y.sum().item(), 9) for y in g]); r['gradient_square_sum'].append([round((y*y).sum().item(), 9) for y in g])
        case[energy] = r
    case['chain'] = {}
    for name, order in orders(template).items():
        case['chain'][name] = []
        for x in filled:
            y = list(ids); logp = 0.0
            for j in order:
                with torch.no_grad(): row = model(input_ids=torch.tensor([y])).logits[0, slots[j]].log_softmax(-1)
                logp += row[x[slots[j]]].item(); y[slots[j]] = x[slots[j]]
            case['chain'][name].append(round(logp, 9))
    result.append(case)
with open(out, 'w') as f: f.write('[\n'+',\n'.join(json.dumps(c, ensure_ascii=False) for c in result)+'\n]\n')
