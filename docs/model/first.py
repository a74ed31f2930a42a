#!/usr/bin/env python3
"""Train a BERT masked language model (post-LN, tied decoder) on CPU or GPU, from nothing or from a published encoder.

usage: first.py --data a.bin[:weight] b.bin --valid v.bin... --out DIR --minutes M [--init DIR] [--lr 5e-4]
  --init DIR: config.json and model.safetensors of a BERT encoder (names with or without 'bert.'); its masked-LM head is used if it has one, else a new one is trained.
Data: uint16 ids, 0xFFFF ends a sentence, 0xFFFE a document. Resumes from OUT/ckpt.pt. Writes OUT/ckpt.pt, OUT/log.txt.
"""
import argparse, json, os, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
ap = argparse.ArgumentParser()
ap.add_argument('--data', nargs='+'); ap.add_argument('--valid', nargs='*', default=[]); ap.add_argument('--out'); ap.add_argument('--init')
ap.add_argument('--layers', type=int, default=6); ap.add_argument('--hidden', type=int, default=384); ap.add_argument('--heads', type=int, default=12); ap.add_argument('--max-pos', type=int, default=512)
ap.add_argument('--tokens', type=int, default=8192, help='tokens per step'); ap.add_argument('--minutes', type=float, default=100, help='schedule length'); ap.add_argument('--warm', type=int, default=150)
ap.add_argument('--lr', type=float, default=5e-4); ap.add_argument('--wd', type=float, default=0.01); ap.add_argument('--threads', type=int, default=2); ap.add_argument('--seed', type=int, default=0)
ap.add_argument('--mask', type=float, default=0.2); ap.add_argument('--bench', type=int, default=0); ap.add_argument('--flat', type=float, default=0.0, help='share of the schedule at the peak rate')
ap.add_argument('--stop', type=float, default=0, help='stop after this many minutes of the schedule'); ap.add_argument('--compile', action='store_true')
a = ap.parse_args()
torch.set_num_threads(a.threads); torch.manual_seed(a.seed); rng = np.random.default_rng(int(time.time()) if not a.bench else 5)
dev = 'cuda' if torch.cuda.is_available() else 'cpu'
PAD, UNK, CLS, SEP, MASK = 0, 100, 101, 102, 103
init = {}
if a.init:
    from safetensors.torch import load_file
    c = json.load(open(a.init+'/config.json')); a.layers, a.hidden, a.heads, a.max_pos = c['num_hidden_layers'], c['hidden_size'], c['num_attention_heads'], c['max_position_embeddings']
    init = {k.removeprefix('bert.'): v.float() for k, v in load_file(a.init+'/model.safetensors').items()}
V, H, L, NH = 30522, a.hidden, a.layers, a.heads

class Layer(nn.Module):
    def __init__(s):
        super().__init__()
        s.qkv = nn.Linear(H, 3*H); s.o = nn.Linear(H, H); s.ln1 = nn.LayerNorm(H, eps=1e-12)
        s.f1 = nn.Linear(H, 4*H); s.f2 = nn.Linear(4*H, H); s.ln2 = nn.LayerNorm(H, eps=1e-12)
    def forward(s, x, bias):
        B, T, _ = x.shape
        q, k, v = s.qkv(x).view(B, T, 3, NH, H//NH).permute(2, 0, 3, 1, 4)
        att = torch.matmul(q, k.transpose(-1, -2)) * (H//NH)**-0.5
        if bias is not None: att = att + bias
        x = s.ln1(x + s.o(torch.matmul(att.softmax(-1).to(v.dtype), v).transpose(1, 2).reshape(B, T, H)))
        return s.ln2(x + s.f2(F.gelu(s.f1(x))))

class MLM(nn.Module):
    def __init__(s):
        super().__init__()
        s.word = nn.Embedding(V, H); s.pos = nn.Embedding(a.max_pos, H); s.type0 = nn.Parameter(torch.zeros(H)); s.ln = nn.LayerNorm(H, eps=1e-12)
        s.layers = nn.ModuleList([Layer() for _ in range(L)])
        s.t = nn.Linear(H, H); s.tln = nn.LayerNorm(H, eps=1e-12); s.bias = nn.Parameter(torch.zeros(V))
        for p in s.parameters():
            if p.dim() == 2: nn.init.normal_(p, std=0.02)
        if init: s.load(init)
    def load(s, z):
        def put(m, n):
            with torch.no_grad(): m.weight.copy_(z[n+'.weight']); m.bias.copy_(z[n+'.bias'])
        with torch.no_grad():
            s.word.weight.copy_(z['embeddings.word_embeddings.weight']); s.pos.weight.copy_(z['embeddings.position_embeddings.weight']); s.type0.copy_(z['embeddings.token_type_embeddings.weight'][0])
            put(s.ln, 'embeddings.LayerNorm')
            for i, l in enumerate(s.layers):
                q = f'encoder.layer.{i}.'
                for j, n in enumerate(('query', 'key', 'value')):
                    l.qkv.weight[j*H:(j+1)*H] = z[q+f'attention.self.{n}.weight']; l.qkv.bias[j*H:(j+1)*H] = z[q+f'attention.self.{n}.bias']
                put(l.o, q+'attention.output.dense'); put(l.ln1, q+'attention.output.LayerNorm'); put(l.f1, q+'intermediate.dense'); put(l.f2, q+'output.dense'); put(l.ln2, q+'output.LayerNorm')
            if 'cls.predictions.transform.dense.weight' in z:
                put(s.t, 'cls.predictions.transform.dense'); put(s.tln, 'cls.predictions.transform.LayerNorm'); s.bias.copy_(z['cls.predictions.bias'])
            else:
                s.t.weight.copy_(torch.eye(H) + 0.02*torch.randn(H, H)); s.tln.weight.fill_(1.0)
    def forward(s, ids, sel):
        B, T = ids.shape
        x = s.ln(s.word(ids) + (s.pos.weight[:T] + s.type0))
        padm = ids.eq(PAD)
        bias = (padm.to(x.dtype) * -10000.0)[:, None, None, :].to(torch.bfloat16) if bool(padm.any()) else None
        x = x.to(torch.bfloat16)
        for l in s.layers: x = l(x, bias)
        h = x.reshape(B*T, H)[sel]
        h = s.tln(F.gelu(s.t(h)).float())
        return F.linear(h, s.word.weight, s.bias)

class Data:
    def __init__(s, spec):
        p, _, w = spec.partition(':'); s.a = np.memmap(p, dtype=np.uint16, mode='r'); s.w = float(w or 1); s.n = len(s.a); s.ends = np.flatnonzero(s.a >= 0xFFFE)
    def rows(s, n, T):
        """n rows of T: [CLS] whole sentences (cut at T) [SEP], from a random sentence start, inside one document."""
        out = np.zeros((n, T), np.int64); st = rng.integers(0, len(s.ends)-2, n)
        for r in range(n):
            i = int(s.ends[st[r]])+1; seg = np.asarray(s.a[i:i+T-2+40]); d = np.flatnonzero(seg == 0xFFFE)
            if len(d): seg = seg[:d[0]]
            keep = seg[seg < 0xFFFE]
            if len(keep) > T-2:
                ends = np.flatnonzero(seg == 0xFFFF); cnt = ends - np.arange(len(ends)); fit = cnt[cnt <= T-2]
                keep = keep[:fit[-1]] if len(fit) and fit[-1] >= (T-2)//2 else keep[:T-2]
            out[r, 0] = CLS; out[r, 1:1+len(keep)] = keep; out[r, 1+len(keep)] = SEP
        return out

datas = [Data(x) for x in a.data]; W = np.array([d.w*d.n for d in datas]); W = W/W.sum()
print('data', [(x, '%.1fM' % (d.n/1e6), '%.2f' % w) for x, d, w in zip(a.data, datas, W)], flush=True)
def batch(T):
    n = a.tokens//T; cs = rng.multinomial(n, W); return np.concatenate([d.rows(c, T) for d, c in zip(datas, cs) if c])
def mask(ids, r=rng):
    m = (r.random(ids.shape) < a.mask) & (ids > MASK); lab = ids[m]; x = ids.copy(); u = r.random(ids.shape)
    x[m & (u < .8)] = MASK; rp = m & (u >= .9); x[rp] = r.integers(MASK+1, V, rp.sum())
    return torch.from_numpy(x), torch.from_numpy(np.flatnonzero(m.reshape(-1))), torch.from_numpy(lab)
model = MLM().to(dev)
dec = [p for p in model.parameters() if p.dim() == 2]; nod = [p for p in model.parameters() if p.dim() < 2]
opt = torch.optim.AdamW([{'params': dec, 'weight_decay': a.wd}, {'params': nod, 'weight_decay': 0.0}], lr=a.lr, betas=(0.9, 0.98), eps=1e-8, fused=True)
step, spent, tok = 0, 0.0, 0
ck = os.path.join(a.out, 'ckpt.pt'); os.makedirs(a.out, exist_ok=True)
if os.path.exists(ck):
    z = torch.load(ck, map_location=dev); model.load_state_dict(z['model']); opt.load_state_dict(z['opt']); step, spent, tok = z['step'], z['spent'], z['tok']
print('params %.2fM' % (sum(p.numel() for p in model.parameters())/1e6), 'step', step, flush=True)
fwd = torch.compile(model, dynamic=True) if a.compile else model
valid = {}
for v in a.valid:
    keep, rng = rng, np.random.default_rng(7); valid[os.path.basename(v)] = [mask(Data(v).rows(64, 64), np.random.default_rng(9+i)) for i in range(6)]; rng = keep
def evaluate():
    model.eval(); o = {}
    with torch.no_grad(), torch.autocast(dev, dtype=torch.bfloat16):
        for k, bs in valid.items():
            l = n = acc = 0
            for x, s, y in bs:
                lg = model(x.to(dev), s.to(dev)).float(); y = y.to(dev); l += F.cross_entropy(lg, y, reduction='sum').item(); n += len(y); acc += (lg.argmax(-1) == y).sum().item()
            o[k] = (round(l/n, 4), round(acc/n, 4))
    model.train(); return o
def save():
    torch.save({'model': model.state_dict(), 'opt': opt.state_dict(), 'step': step, 'spent': spent, 'tok': tok, 'cfg': vars(a)}, ck+'.tmp'); os.replace(ck+'.tmp', ck)
from concurrent.futures import ThreadPoolExecutor
Ts, Tp = [32, 64, 128, 256], [.3, .4, .22, .08]
def prep():
    T = int(rng.choice(Ts, p=Tp)); return mask(batch(T))
ex = ThreadPoolExecutor(1); nxt = ex.submit(prep); t_last = time.time(); ema = None; tl = time.time(); tl_tok = tok; last_eval = last_save = spent
logf = open(os.path.join(a.out, 'log.txt'), 'a'); end = (a.stop or a.minutes)*60
while spent < end:
    x, s, y = nxt.result(); nxt = ex.submit(prep)
    f = spent/(a.minutes*60); w = min(1.0, (step+1)/a.warm); lr = a.lr*w*(1.0 if f < a.flat else max(0.01, 1-(f-a.flat)/(1-a.flat)))
    for g in opt.param_groups: g['lr'] = lr
    with torch.autocast(dev, dtype=torch.bfloat16):
        lg = fwd(x.to(dev), s.to(dev))
        loss = F.cross_entropy(lg.float(), y.to(dev))
    opt.zero_grad(set_to_none=True); loss.backward(); nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step()
    step += 1; tok += int((x != 0).sum()); now = time.time(); dt = now-t_last; spent += min(dt, 10); t_last = now; li = loss.item(); ema = li if ema is None else .98*ema+.02*li
    if step % 50 == 0 or (a.bench and step % 10 == 0):
        m = f'step {step} spent {spent/60:.1f}m tok {tok/1e6:.1f}M lr {lr:.2e} loss {ema:.3f} {(tok-tl_tok)/(now-tl):.0f} tok/s'; tl, tl_tok = now, tok
        print(m, flush=True); logf.write(m+'\n'); logf.flush()
    if a.bench and step >= a.bench: break
    if valid and spent-last_eval > 300: last_eval = spent; m = f'eval {evaluate()}'; print(m, flush=True); logf.write(m+'\n'); logf.flush(); t_last = time.time()
    if not a.bench and spent-last_save > 240: last_save = spent; save(); t_last = time.time()
if not a.bench: save()
m = f'final {evaluate()} step {step} tok {tok/1e6:.1f}M'; print(m, flush=True); logf.write(m+'\n')
