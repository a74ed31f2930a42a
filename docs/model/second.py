#!/usr/bin/env python3
"""second.py: trains small-uncased (BERT, 6 x 384, post-norm, tied decoder) as a masked language model on a processor or a GPU.

usage: second.py --data DIR --init BUNDLE_OR_NPZ --out DIR --seconds S [--muon] [--compile] [--lr 1e-3] [--mask 0.2] [--mask-to 0.2] [--whole] [--keep 0.1] [--random 0.1] [--late 1.0] [--late-mask 0.15] [--resume] [--single-precision]
DIR holds wikipedia*.bin and fiction*.bin (uint16 ids, 0xFFFF ends a sentence, 0xFFFE a document), v.wt103.bin, v.tbc.bin, vocab.txt.
Files that are moved there later are read then, and a number in OUT/seconds replaces --seconds.
All text lies on the device. A batch holds single sentences, all of one length, or pieces of documents of 62, 126, 254 or 510 tokens,
so that no row has padding. Writes OUT/model.pt (single precision: weights, their average over the last steps, state of the optimisers) and
OUT/log.txt, and saves every four minutes. Of the masked tokens, --keep stay and --random become others.
--late masks --late-mask of the tokens, word pieces alone, from that part of the time on. --resume goes on from OUT/model.pt; --single-precision is for processors without bf16.
"""
import argparse, ctypes, glob, json, math, os, sys, time
import numpy as np, torch, torch.nn.functional as F
ap = argparse.ArgumentParser()
ap.add_argument('--data'); ap.add_argument('--init'); ap.add_argument('--out'); ap.add_argument('--seconds', type=float); ap.add_argument('--steps', type=int, default=0)
ap.add_argument('--lr', type=float, default=1e-3); ap.add_argument('--wd', type=float, default=0.01); ap.add_argument('--warm', type=int, default=200)
ap.add_argument('--mask', type=float, default=0.2); ap.add_argument('--mask-to', type=float, default=0.0); ap.add_argument('--whole', action='store_true')
ap.add_argument('--muon', action='store_true'); ap.add_argument('--micro', type=int, default=32768); ap.add_argument('--accum', type=int, default=4)
ap.add_argument('--flat', type=float, default=0.0); ap.add_argument('--compile', action='store_true'); ap.add_argument('--seed', type=int, default=0)
ap.add_argument('--threads', type=int, default=0); ap.add_argument('--eval-step', type=int, default=1); ap.add_argument('--eval-every', type=float, default=60); ap.add_argument('--single', type=float, default=0.65); ap.add_argument('--keep', type=float, default=0.1); ap.add_argument('--random', type=float, default=0.1); ap.add_argument('--wiki', type=float, default=0.55)
ap.add_argument('--late', type=float, default=1.0); ap.add_argument('--late-mask', type=float, default=0.15)
ap.add_argument('--single-precision', action='store_true'); ap.add_argument('--average', type=int, default=150); ap.add_argument('--resume', action='store_true')
a = ap.parse_args()
dev = 'cuda' if torch.cuda.is_available() else 'cpu'; torch.manual_seed(a.seed); a.threads and torch.set_num_threads(a.threads); torch.set_float32_matmul_precision('high')
PAD, UNK, CLS, SEP, MASK = 0, 100, 101, 102, 103
H, L, NH, V, P = 384, 6, 12, 30522, 512
os.makedirs(a.out, exist_ok=True); logf = open(a.out+'/log.txt', 'a')
def log(*x):
    m = ' '.join(str(y) for y in x); print(m, flush=True); logf.write(m+'\n'); logf.flush()
log('args', json.dumps(vars(a)))
vocab = [x.rstrip('\n') for x in open(a.data+'/vocab.txt', encoding='utf-8')]
cont = torch.tensor([w.startswith('##') for w in vocab], device=dev)
punct = torch.tensor([w in '.!?' and w != '' for w in vocab], device=dev)
g = torch.Generator(device=dev); g.manual_seed(a.seed)
def ri(n, k): return torch.randint(n, (k,), device=dev, generator=g)

class Text:
    """A corpus on the device: tokens without marks, and where sentences and documents begin and end."""
    def __init__(s, paths):
        x = torch.from_numpy(np.concatenate([np.fromfile(p, dtype=np.uint16) for p in paths]).astype(np.int32)).to(dev)
        word = x < 0xFFFE; before = word.long().cumsum(0)
        s.tok = x[word].to(torch.int32).contiguous()
        ends = before[x == 0xFFFF]; docs = torch.cat([before[x == 0xFFFE], before[-1:]]).unique()
        st = torch.cat([ends.new_zeros(1), ends[:-1]]); ln = ends-st; de = docs[torch.searchsorted(docs, st, right=True).clamp(max=len(docs)-1)]
        s.long = {T: st[(de-st) >= T-2] for T in (64, 128, 256, 512)}
        ok = (ln >= 4) & (ln <= 126); st, ln = st[ok], ln[ok]; o = ln.argsort(); s.st = st[o]; cnt = torch.bincount(ln, minlength=127); s.cnt = cnt.cpu().numpy(); s.off = np.concatenate([[0], s.cnt.cumsum()[:-1]])
        p = s.cnt*np.arange(127); s.p = p/p.sum()
    def rows(s, st, n):
        r = s.tok[st[:, None]+torch.arange(n, device=dev)].long(); k = len(st)
        return torch.cat([torch.full((k, 1), CLS, device=dev), r, torch.full((k, 1), SEP, device=dev)], 1)
    def single(s, n, k): return s.rows(s.st[int(s.off[n])+ri(int(s.cnt[n]), k)], n)
    def piece(s, T, k): return s.rows(s.long[T][ri(len(s.long[T]), k)], T-2)

def files(name): return sorted(glob.glob(f'{a.data}/{name}*.bin'))
def read():
    global wiki, fic, have
    t0 = time.time(); have = files('wikipedia'), files('fiction'); wiki, fic = map(Text, have)
    log('tokens', len(wiki.tok), len(fic.tok), 'sentences', len(wiki.st), len(fic.st), 'pieces', {T: (len(wiki.long[T]), len(fic.long[T])) for T in wiki.long}, '%.1fs' % (time.time()-t0))
read()
rng = np.random.default_rng(a.seed)
def batch():
    t = wiki if rng.random() < a.wiki else fic
    if rng.random() < a.single:
        n = int(rng.choice(127, p=t.p)); x = t.single(n, min(a.micro//(n+2), 4*int(t.cnt[n])))
        # Users leave the full stop out; so do a fifth of the single sentences.
        if rng.random() < 0.2 and n > 5: x = x[:, :-1].clone(); x[:, -1] = SEP
        return x
    T = int(rng.choice([64, 128, 256, 512], p=[.4, .4, .15, .05])); return t.piece(T, a.micro//T)
def mask(x):
    r = a.mask if a.mask_to == 0 else a.mask+(a.mask_to-a.mask)*torch.rand(x.shape[0], 1, device=dev, generator=g)
    u = torch.rand(x.shape, device=dev, generator=g); ok = x > MASK
    if a.whole:
        w = (~cont[x]).long().cumsum(1); u = u.gather(1, w.clamp(max=x.shape[1]-1))
    m = (u < r) & ok
    idx = m.view(-1).nonzero().squeeze(1); lab = x.view(-1)[idx]; y = x.clone().view(-1)
    v = torch.rand(len(idx), device=dev, generator=g); new = torch.where(v < 1-a.keep-a.random, MASK, torch.where(v < 1-a.random, lab, torch.randint(MASK+1, V, (len(idx),), device=dev, generator=g)))
    y[idx] = new; return y.view(x.shape), idx, lab

shapes = {'word': (V, H), 'pos': (P, H), 'type0': (H,), 'ln.w': (H,), 'ln.b': (H,), 't.w': (H, H), 't.b': (H,), 'tln.w': (H,), 'tln.b': (H,), 'bias': (V,)}
for l in range(L):
    for n in ('q', 'k', 'v', 'o'): shapes[f'{l}.{n}.w'] = (H, H); shapes[f'{l}.{n}.b'] = (H,)
    shapes.update({f'{l}.f1.w': (4*H, H), f'{l}.f1.b': (4*H,), f'{l}.f2.w': (H, 4*H), f'{l}.f2.b': (H,)})
    for n in ('ln1', 'ln2'): shapes[f'{l}.{n}.w'] = (H,); shapes[f'{l}.{n}.b'] = (H,)
def names():
    """Our names, and those of the published layout."""
    z = {'word': 'embeddings.word_embeddings.weight', 'pos': 'embeddings.position_embeddings.weight', 'ln.w': 'embeddings.LayerNorm.weight', 'ln.b': 'embeddings.LayerNorm.bias',
         't.w': 'cls.predictions.transform.dense.weight', 't.b': 'cls.predictions.transform.dense.bias', 'tln.w': 'cls.predictions.transform.LayerNorm.weight', 'tln.b': 'cls.predictions.transform.LayerNorm.bias', 'bias': 'cls.predictions.bias'}
    for l in range(L):
        q = f'encoder.layer.{l}.'
        for s, t in (('q', 'attention.self.query'), ('k', 'attention.self.key'), ('v', 'attention.self.value'), ('o', 'attention.output.dense'), ('f1', 'intermediate.dense'), ('f2', 'output.dense'), ('ln1', 'attention.output.LayerNorm'), ('ln2', 'output.LayerNorm')):
            z[f'{l}.{s}.w'] = q+t+'.weight'; z[f'{l}.{s}.b'] = q+t+'.bias'
    return z
def load(path):
    if path.endswith('.pt'): return {k: v.float() for k, v in torch.load(path, map_location='cpu')['w'].items()}
    if path.endswith('.npz'):
        q = np.load(path); z = {k.removesuffix('|q'): torch.from_numpy(q[k]).float()*(torch.from_numpy(q[k[:-2]+'|s']) if k.endswith('|q') else 1) for k in q.files if not k.endswith('|s')}
    else:
        from safetensors.torch import load_file
        z = load_file(path)
    z = {k.removeprefix('bert.'): v.float() for k, v in z.items()}; w = {k: z[n] for k, n in names().items()}; w['type0'] = z['embeddings.token_type_embeddings.weight'][0]; return w
W = {k: torch.nn.Parameter(v.to(dev).contiguous()) for k, v in load(a.init).items()}
for k, s in shapes.items(): assert tuple(W[k].shape) == s, (k, W[k].shape)
log('parameters %.2fM' % (sum(p.numel() for p in W.values())/1e6))

bf = torch.float32 if a.single_precision else torch.bfloat16
def attend(x, T, w, b):
    """Attention over rows of T tokens; x is [rows * T, H]."""
    q, k, v = F.linear(x, w, b).view(-1, T, 3, NH, H//NH).permute(2, 0, 3, 1, 4)
    # By hand on a CPU, where the backward pass of the fused attention is slow.
    y = F.scaled_dot_product_attention(q, k, v) if x.is_cuda else (q@k.mT*(H//NH)**-0.5).softmax(-1)@v
    return y.transpose(1, 2).reshape(-1, H)
def feed(x, y, ow, ob, l1w, l1b, f1w, f1b, f2w, f2b, l2w, l2b):
    x = F.layer_norm(x+F.linear(y, ow, ob), (H,), l1w, l1b, 1e-12)
    return F.layer_norm(x+F.linear(F.gelu(F.linear(x, f1w, f1b)), f2w, f2b), (H,), l2w, l2b, 1e-12)
class Take(torch.autograd.Function):
    """Rows idx of x, all different."""
    @staticmethod
    def forward(ctx, x, idx): ctx.save_for_backward(idx); ctx.n = len(x); return x[idx]
    @staticmethod
    def backward(ctx, g):
        z = g.new_zeros(ctx.n, H); z[ctx.saved_tensors[0]] = g; return z, None
cols = torch.arange(V+6, device=dev)
def slope(z, l):
    """The sum of the losses of logits z, and their gradient."""
    z = z.float(); s = z.logsumexp(1, keepdim=True); return (s-z.gather(1, l)).sum(), ((z-s).exp()-(cols == l).float()).to(bf)
class Loss(torch.autograd.Function):
    """Mean cross entropy of [N, H] against N labels. The backward pass is done at once, over 256 rows a time on a processor, so that the logits stay in its cache."""
    @staticmethod
    def forward(ctx, h, word, bias, lab):
        n = len(lab); c = 65536 if h.is_cuda else 256; tot = 0.0; ds = []; dh = torch.empty_like(h)
        for i in range(0, n, c):
            l, d = slope(F.linear(h[i:i+c], word, bias), lab[i:i+c, None]); tot = tot+l; dh[i:i+c] = d@word/n; ds.append(d)
        d = ds[0] if len(ds) == 1 else torch.cat(ds)
        ctx.save_for_backward(dh, d.mT@h/n, d.sum(0, dtype=torch.float32)/n); return tot/n
    @staticmethod
    def backward(ctx, g):
        dh, dw, db = ctx.saved_tensors; return g.to(dh.dtype)*dh, g.to(dw.dtype)*dw, (g*db).to(dw.dtype), None
def head(h, tw, tb, lw, lb, word, bias, lab):
    h = F.layer_norm(F.gelu(F.linear(h, tw, tb)), (H,), lw, lb, 1e-12)
    return Loss.apply(h, word, bias, lab)
eager = feed
if a.compile: feed, slope = torch.compile(feed, dynamic=True), torch.compile(slope, dynamic=True)
# Another backend would plan anew for each shape.
torch.backends.cuda.enable_cudnn_sdp(False)
def half(): return {k: v.to(bf) for k, v in W.items()}
def body(C, x, idx):
    h = F.embedding(x, C['word'])+(C['pos'][:x.shape[1]]+C['type0']); h = F.layer_norm(h, (H,), C['ln.w'], C['ln.b'], 1e-12).view(-1, H)
    after = feed if torch.is_grad_enabled() else eager
    for l in range(L):
        y = attend(h, x.shape[1], C[f'{l}.qkv.w'], C[f'{l}.qkv.b'])
        # The head looks at the masked positions alone: after the last attention the others are not needed.
        if l == L-1: h, y = Take.apply(h, idx), Take.apply(y, idx)
        h = after(h, y, *[C[f'{l}.{n}'] for n in ('o.w', 'o.b', 'ln1.w', 'ln1.b', 'f1.w', 'f1.b', 'f2.w', 'f2.b', 'ln2.w', 'ln2.b')])
    return h
def cast():
    C = half()
    # A multiple of 64 words, since a GPU multiplies other widths slowly.
    C['word'], C['bias'] = F.pad(C['word'], (0, 0, 0, 6)), F.pad(C['bias'], (0, 6), value=-1e4)
    for l in range(L):
        for e in 'wb': C[f'{l}.qkv.{e}'] = torch.cat([C[f'{l}.{n}.{e}'] for n in 'qkv'])
    return C
def loss_of(C, x, idx, lab):
    return head(body(C, x, idx), C['t.w'], C['t.b'], C['tln.w'], C['tln.b'], C['word'], C['bias'], lab)

# Optimisers: Muon (orthogonalised momentum) for the matrices of the layers, AdamW for the rest.
mats = [k for k in W if k[0].isdigit() and k.endswith('.w') and W[k].dim() == 2] if a.muon else []
rest = [k for k in W if k not in mats]
adam = torch.optim.AdamW([{'params': [W[k] for k in rest if W[k].dim() == 2], 'weight_decay': a.wd}, {'params': [W[k] for k in rest if W[k].dim() < 2], 'weight_decay': 0.0}], lr=a.lr, betas=(0.9, 0.98), eps=1e-8, fused=True)
groups = {}
for k in mats: groups.setdefault(tuple(W[k].shape), []).append(k)
mom = {s: torch.zeros((len(ks),)+s, device=dev) for s, ks in groups.items()}
@torch.no_grad()
def muon(lr):
    for s, ks in groups.items():
        G = torch.stack([W[k].grad for k in ks]); m = mom[s]; m.mul_(0.95).add_(G); X = (G+0.95*m).to(bf)
        tr = s[0] > s[1]
        if tr: X = X.mT
        X = X/(X.norm(dim=(-2, -1), keepdim=True)+1e-7)
        for _ in range(5):
            A = X@X.mT; X = 3.4445*X+(-4.7750*A+2.0315*A@A)@X
        if tr: X = X.mT
        X = X.float()*(0.2*math.sqrt(max(s)))
        for k, u in zip(ks, X): W[k].mul_(1-lr*0.01).sub_(u, alpha=lr)

def evaluate():
    """Held-out nats and accuracy: a fifth of the tokens masked (as in earlier runs), one token, and two neighbours."""
    out = {}
    with torch.no_grad():
        C = cast()
        for name in ('wt103', 'tbc'):
            t = valid[name]; r = {}
            for kind, bs in t.items():
                l = n = c = 0
                for x, idx, lab in bs:
                    h = body(C, x, idx); h = F.layer_norm(F.gelu(F.linear(h, C['t.w'], C['t.b'])), (H,), C['tln.w'], C['tln.b'], 1e-12); lg = (F.linear(h, C['word'])+C['bias']).float()
                    l += F.cross_entropy(lg, lab, reduction='sum').item(); c += (lg.argmax(-1) == lab).sum().item(); n += len(lab)
                r[kind] = (round(l/n, 4), round(c/n, 4))
            out[name] = r
    return out
def make_valid():
    global g; keep = g; g = torch.Generator(device=dev); g.manual_seed(77); out = {}; saved = a.mask, a.mask_to, a.whole, a.keep, a.random; a.mask, a.mask_to, a.whole, a.keep, a.random = .2, 0.0, False, .1, .1
    for name in ('wt103', 'tbc'):
        t = Text([f'{a.data}/v.{name}.bin']); fifth, one, two = [], [], []
        for n in range(6, 60, a.eval_step):
            if t.cnt[n] < 8: continue
            k = int(min(t.cnt[n], 64)); x = t.rows(t.st[int(t.off[n]):int(t.off[n])+k], n); fifth.append(mask(x))
            for lst, w in ((one, 1), (two, 2)):
                p = 1+torch.randint(n-w, (k,), device=dev, generator=g); y = x.clone(); idx = (torch.arange(k, device=dev)*(n+2)+p)[:, None]+torch.arange(w, device=dev); idx = idx.view(-1); lab = x.view(-1)[idx]; y.view(-1)[idx] = MASK; lst.append((y, idx, lab))
        out[name] = {'fifth': fifth, 'one': one, 'two': two}
    g = keep; a.mask, a.mask_to, a.whole, a.keep, a.random = saved; return out
step = tok = 0; avg = {k: v.detach().clone() for k, v in W.items()}
if a.resume and os.path.exists(a.out+'/model.pt'):
    z = torch.load(a.out+'/model.pt', map_location='cpu'); tok = z['tok']
    for k, v in z['w'].items(): W[k].data.copy_(v)
    adam.load_state_dict(z['adam']); mom = {tuple(s): m.to(dev) for s, m in z['mom']}; g.set_state(z['g']); rng.bit_generator.state = z['rng']
    for k, v in z['avg'].items(): avg[k].copy_(v)
    log('goes on', tok)
@torch.no_grad()
def average(n):
    """The mean of the last steps' weights, with a horizon of `average` steps (less at the start)."""
    torch._foreach_lerp_(list(avg.values()), [W[k].detach() for k in avg], 1/min(n, a.average))
def evaluate_average():
    global W
    keep = W; W = avg; r = evaluate(); W = keep; return r
def save():
    torch.save({'w': {k: v.detach().cpu() for k, v in W.items()}, 'adam': adam.state_dict(), 'mom': [(s, m.cpu()) for s, m in mom.items()], 'g': g.get_state(), 'rng': rng.bit_generator.state, 'avg': avg, 'tok': tok}, a.out+'/model.tmp'); os.replace(a.out+'/model.tmp', a.out+'/model.pt')
valid = make_valid(); log('eval before', evaluate())

try: purge = ctypes.CDLL(None).mallctl
except AttributeError: purge = None
start = last = last_eval = last_save = time.time(); ema = None; lt = tok0 = tok
while True:
    now = time.time(); f = (now-start)/a.seconds if not a.steps else step/a.steps
    if f >= 1: break
    if f >= a.late: a.mask, a.whole = a.late_mask, False
    lr = a.lr*min(1, (step+1)/a.warm)*(1.0 if f < a.flat else (1-f)/(1-a.flat))
    for p in adam.param_groups: p['lr'] = lr
    tot = 0.0; C = cast()
    leaves = {k: v.detach().requires_grad_() for k, v in C.items() if not (k[0].isdigit() and k.split('.')[1] in 'qkv' and len(k.split('.')[1]) == 1)}
    for _ in range(a.accum):
        x = batch(); tok += x.numel(); y, idx, lab = mask(x); l = loss_of(leaves, y, idx, lab)/a.accum; l.backward(); tot = tot+l.detach()
    for k, v in leaves.items():
        gr = v.grad.float()
        if k in ('word', 'bias'): gr = gr[:V]
        if '.qkv.' in k:
            i, _, e = k.split('.')
            for n, part in zip('qkv', gr.chunk(3)): W[f'{i}.{n}.{e}'].grad = part
        else: W[k].grad = gr
    torch.nn.utils.clip_grad_norm_([W[k] for k in rest], 1.0)
    if a.muon: muon(lr)
    adam.step(); step += 1; average(step+(tok0 > 0)*a.average)
    if step % 50 == 0 or step % 10 == 0 and step < 50:
        li = float(tot); ema = li if ema is None else .7*ema+.3*li; now = time.time()
        gib = int(open('/proc/self/statm').read().split()[1])/2**18 if os.path.exists('/proc/self/statm') else 0
        log(f'step {step} {now-start:.0f}s tok {tok/1e6:.1f}M lr {lr:.2e} loss {ema:.3f} {(tok-lt)/(now-last):.0f} tok/s {gib:.1f} GiB'); last, lt = now, tok
        assert math.isfinite(ema)
        # With jemalloc, batches of other lengths leave freed memory behind: return it to the system.
        if purge and gib > 12: purge(b'arena.4096.purge', None, None, None, 0)
        if now-last_save > 240: save(); last_save = now
        if (files('wikipedia'), files('fiction')) != have: read()
        if os.path.exists(a.out+'/seconds'): a.seconds = float(open(a.out+'/seconds').read())
        if os.path.exists(a.out+'/threads'): torch.set_num_threads(int(open(a.out+'/threads').read()))
    if time.time()-last_eval > a.eval_every: log('eval', step, f'{tok/1e6:.1f}M', 'average', evaluate_average()); last_eval = time.time()
save(); log('final', step, f'{tok/1e6:.1f}M', evaluate(), 'average', evaluate_average())
