#!/usr/bin/env python3
"""first_export.py CKPT VOCAB OUT_DIR: writes a Hugging Face layout bundle (F16 safetensors, config, tokenizer files) of a first.py checkpoint."""
import json, os, struct, sys
import torch
ck, vocab, out = sys.argv[1:4]; os.makedirs(out, exist_ok=True)
z = torch.load(ck, map_location='cpu'); m, c = z['model'], z['cfg']; H, L = c['hidden'], c['layers']
ty = torch.zeros(2, H); ty[0] = m['type0']
t = {'bert.embeddings.word_embeddings.weight': m['word.weight'], 'bert.embeddings.position_embeddings.weight': m['pos.weight'], 'bert.embeddings.token_type_embeddings.weight': ty,
     'bert.embeddings.LayerNorm.weight': m['ln.weight'], 'bert.embeddings.LayerNorm.bias': m['ln.bias']}
for l in range(L):
    p, q = f'layers.{l}.', f'bert.encoder.layer.{l}.'
    for i, n in enumerate(('query', 'key', 'value')):
        t[q+f'attention.self.{n}.weight'] = m[p+'qkv.weight'][i*H:(i+1)*H]; t[q+f'attention.self.{n}.bias'] = m[p+'qkv.bias'][i*H:(i+1)*H]
    for a, b in (('o', 'attention.output.dense'), ('ln1', 'attention.output.LayerNorm'), ('f1', 'intermediate.dense'), ('f2', 'output.dense'), ('ln2', 'output.LayerNorm')):
        for s in ('weight', 'bias'): t[q+b+'.'+s] = m[p+a+'.'+s]
for a, b in (('t', 'cls.predictions.transform.dense'), ('tln', 'cls.predictions.transform.LayerNorm')):
    for s in ('weight', 'bias'): t[b+'.'+s] = m[a+'.'+s]
t['cls.predictions.bias'] = m['bias']
h, off, blobs = {'__metadata__': {'format': 'pt'}}, 0, []
for k in sorted(t):
    b = t[k].contiguous().half().numpy().tobytes(); h[k] = {'dtype': 'F16', 'shape': list(t[k].shape), 'data_offsets': [off, off+len(b)]}; off += len(b); blobs.append(b)
hb = json.dumps(h, separators=(',', ':')).encode(); hb += b' ' * (-len(hb) % 8)
with open(out+'/model.safetensors', 'wb') as f: f.write(struct.pack('<Q', len(hb))); f.write(hb); [f.write(b) for b in blobs]
V = [x.rstrip('\n') for x in open(vocab, encoding='utf-8')]; assert len(V) == m['word.weight'].shape[0]
open(out+'/vocab.txt', 'w', encoding='utf-8').write('\n'.join(V)+'\n')
json.dump({'architectures': ['BertForMaskedLM'], 'model_type': 'bert', 'vocab_size': len(V), 'hidden_size': H, 'num_hidden_layers': L, 'num_attention_heads': c['heads'], 'intermediate_size': 4*H,
           'hidden_act': 'gelu', 'max_position_embeddings': c['max_pos'], 'type_vocab_size': 2, 'layer_norm_eps': 1e-12, 'pad_token_id': 0, 'position_embedding_type': 'absolute', 'tie_word_embeddings': True, 'torch_dtype': 'float16'}, open(out+'/config.json', 'w'), indent=2)
json.dump({'do_lower_case': True, 'tokenizer_class': 'BertTokenizer', 'model_max_length': c['max_pos'], 'unk_token': '[UNK]', 'sep_token': '[SEP]', 'pad_token': '[PAD]', 'cls_token': '[CLS]', 'mask_token': '[MASK]'}, open(out+'/tokenizer_config.json', 'w'), indent=2)
sp = [('[PAD]', 0), ('[UNK]', 100), ('[CLS]', 101), ('[SEP]', 102), ('[MASK]', 103)]
one = [{'SpecialToken': {'id': '[CLS]', 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}, {'SpecialToken': {'id': '[SEP]', 'type_id': 0}}]
json.dump({'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': [{'id': i, 'content': s, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False, 'special': True} for s, i in sp],
           'normalizer': {'type': 'BertNormalizer', 'clean_text': True, 'handle_chinese_chars': True, 'strip_accents': None, 'lowercase': True}, 'pre_tokenizer': {'type': 'BertPreTokenizer'},
           'post_processor': {'type': 'TemplateProcessing', 'single': one, 'pair': one+[{'Sequence': {'id': 'B', 'type_id': 1}}, {'SpecialToken': {'id': '[SEP]', 'type_id': 1}}],
                              'special_tokens': {s: {'id': s, 'ids': [i], 'tokens': [s]} for s, i in sp if s in ('[CLS]', '[SEP]')}},
           'decoder': {'type': 'WordPiece', 'prefix': '##', 'cleanup': True},
           'model': {'type': 'WordPiece', 'unk_token': '[UNK]', 'continuing_subword_prefix': '##', 'max_input_chars_per_word': 100, 'vocab': {v: i for i, v in enumerate(V)}}}, open(out+'/tokenizer.json', 'w'), ensure_ascii=False, separators=(',', ':'))
print('wrote', out, 'tokens', z['tok'], 'step', z['step'])
