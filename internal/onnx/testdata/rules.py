"""Writes rules.json: what torch computes for every case of TestRules, in double precision.

A case is a function of some inputs. Its line in rules.json has the inputs, in row-major order; the function's output and
its shape; a seed for each element of the output; and by torch.autograd the gradient of the sum of seed * output with
respect to every input. Inputs and seeds have three decimals, rounded to single precision.

Python and torch are needed to make the file, never to run the tests:
  pip install torch
  python rules.py
"""

import json
import pathlib
import zlib

import torch
from torch.nn import functional as F

ROWS, ONE, N = 3, 1, 3  # the symbols of the test
SCALE, BIAS = torch.tensor([1.0, -2, 0.5, 3], dtype=torch.float64), torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)


def normalized(x, bias=None):
    return F.layer_norm(x, (4,), SCALE, bias, 1e-3)


def product_rule(x, w):
    h = torch.tanh(x @ w)
    return (h + x) * torch.softmax(h, -1)


def split(x):
    _, b, c = x.split([2, 3, 1], 1)
    return b.exp() * c


def decomposed_norm(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / ((centred**2).mean(-1, keepdim=True) + 1e-3).sqrt()


POSITIVE = {"div", "log", "sqrt", "powers, broadcast both ways", "reciprocal"}  # inputs lie between 1/2 and 2
CHOSEN = torch.tensor([[True, False, False], [True, False, True]])

CASES = {
    "add": ([(ROWS, 4), (ROWS, 4)], lambda a, b: a + b),
    "add broadcast": ([(ROWS, 4), (4,)], lambda a, b: a + b),
    "add to itself": ([(ROWS, 4)], lambda a: a + a),
    "sub": ([(2, ROWS, 1), (ROWS, 4)], lambda a, b: a - b),
    "mul": ([(2, ROWS, 4), (4,)], lambda a, b: a * b),
    "square": ([(5,)], lambda a: a * a),
    "div": ([(ROWS, 4), (1, 4)], lambda a, b: a / b),
    "neg": ([(5,)], lambda a: -a),
    "exp": ([(5,)], torch.exp),
    "log": ([(5,)], torch.log),
    "sqrt": ([(5,)], torch.sqrt),
    "erf": ([(5,)], torch.erf),
    "cos": ([(5,)], torch.cos),
    "sin": ([(5,)], torch.sin),
    "tanh": ([(5,)], torch.tanh),
    "sigmoid": ([(5,)], torch.sigmoid),
    "relu": ([(9,)], torch.relu),
    "gelu": ([(9,)], F.gelu),
    "gelu tanh": ([(9,)], lambda a: F.gelu(a, approximate="tanh")),
    "identity": ([(5,)], lambda a: a.clone()),
    "reshape": ([(ROWS, 4)], lambda a: a.reshape(2, 2 * ROWS)),
    "softmax": ([(ROWS, 4)], lambda a: a.softmax(-1)),
    "log softmax": ([(2, ROWS, 4)], lambda a: a.log_softmax(-1)),
    "matmul": ([(2, ROWS, 4), (2, 4, 5)], torch.matmul),
    "matmul by a matrix": ([(2, ROWS, 4), (4, 5)], torch.matmul),
    "matmul of a matrix by many": ([(ROWS, 4), (2, 4, 5)], torch.matmul),
    "gemm": ([(ROWS, 4), (4, 5), (5,)], lambda a, b, c: 0.5 * (a @ b) + 2 * c),
    "gemm transposed b": ([(ROWS, 4), (5, 4), (1, 5)], lambda a, b, c: a @ b.T + c),
    "gemm transposed a": ([(4, ROWS), (4, 5)], lambda a, b: 3 * (a.T @ b)),
    "gemm both transposed": ([(4, ROWS), (5, 4)], lambda a, b: a.T @ b.T),
    "transpose": ([(2, ROWS, 4)], lambda a: a.permute(2, 0, 1)),
    "gather with repeats": ([(4, 5)], lambda a: a[torch.tensor([[3, 0], [3, 1]])]),
    "gather elements": ([(3, 5)], lambda a: a.gather(1, torch.tensor([[0, 0], [1, 4], [2, 0]]))),
    "layer normalization": ([(2, ROWS, 4)], lambda a: normalized(a, BIAS)),
    "reduce sum": ([(2, ROWS, 4)], lambda a: a.sum((0, 2))),
    "reduce mean": ([(2, ROWS, 4)], lambda a: a.mean(2, keepdim=True)),
    "reduce mean over a symbol": ([(2, ROWS, 4)], lambda a: a.mean(1)),
    "product rule through shared values": ([(ROWS, 4), (4, 4)], product_rule),
    # What exporters write.
    "cast to double and back": ([(ROWS, 4)], lambda a: a.exp() * a),
    "power of two": ([(ROWS, 4)], lambda a: a**2),
    "powers, broadcast both ways": ([(ROWS, 1)], lambda a: a ** torch.tensor([3, -1, 0.5])),
    "where": ([(ROWS, 4), (4,)], lambda a, b: torch.where(a > 0, a.exp(), b)),
    "maximum": ([(ROWS, 4), (4,)], torch.maximum),
    "minimum": ([(ROWS, 4), (1, 1)], torch.minimum),
    "expand": ([(ROWS, 1)], lambda a: a.expand(2, ROWS, 4)),
    "unsqueeze": ([(ROWS, 4)], lambda a: a.exp()[:, None, :, None]),
    "squeeze": ([(1, ROWS, 1, 4)], lambda a: a.exp()[0, :, 0]),
    "squeeze of all": ([(1, 3, 1, 4)], lambda a: a.exp().squeeze()),
    "flatten": ([(2, ROWS, 4)], lambda a: a.exp().reshape(2 * ROWS, 4)),
    "reshape by shape arithmetic": ([(ROWS, 4)], lambda a: a.exp().reshape(2 * ROWS, -1)),
    "reciprocal": ([(5,)], torch.reciprocal),
    "absolute value": ([(9,)], torch.abs),
    "slice": ([(ROWS, 6)], lambda a: a[:, 1:-1]),
    "slices of two axes with steps": ([(ROWS, 6, 5)], lambda a: a[:, 0:5:2][:, :, [4, 2]]),
    "slice of a symbol": ([(ROWS, 4)], lambda a: a[1:]),
    "pads and crops with a constant": ([(ROWS, 4)], lambda a: F.pad(a, (-1, 2, 1, 0), value=3).exp()),
    "pads that are computed": ([(ROWS, 2)], lambda a: F.pad(a, (0, 2, 1, 0)).exp()),
    "where a mask says, taken element by element": ([(2, 3)], lambda a: torch.where(CHOSEN, a.exp(), a)),
    "concat": ([(ROWS, 2), (ROWS, 3)], lambda a, b: torch.cat([a, b.exp(), a], -1)),
    "concat of symbols": ([(ROWS, 2), (4, 2)], lambda a, b: torch.cat([a, b]).exp()),
    "split": ([(ROWS, 6)], split),
    "even split": ([(4, ROWS)], lambda a: a[:2] * a[2:].exp()),
    "gather along the middle": ([(ROWS, 5, 2)], lambda a: a[:, torch.tensor([[3, 0], [3, -1]])]),
    "gather of one": ([(ROWS, 5, 2)], lambda a: a[:, 2]),
    "transpose without an order": ([(2, ROWS, 4)], lambda a: a.exp().permute(2, 1, 0)),
    "softmax as exporters write it": ([(2, ROWS, 4)], lambda a: a.softmax(2)),
    "log softmax as exporters write it": ([(ROWS, 4)], lambda a: a.log_softmax(1)),
    "layer normalization with its mean": ([(2, ROWS, 4)], normalized),
    "decomposed layer normalisation": ([(2, ROWS, 4)], decomposed_norm),
    "decomposed GELU": ([(ROWS, 4)], F.gelu),
    # Sizes that only a run knows.
    "add, repeated or not": ([(N, 4), (ONE, 4)], lambda a, b: (a + b).exp()),
    "add, the other one repeated": ([(2, ONE, 4), (N, ONE)], lambda a, b: (a + b).exp()),
    "product of equal but uncertain sizes": ([(N, 4), (ROWS, 4)], lambda a, b: a * b),
    "uncertain against a size": ([(5, 4), (ONE, 4)], lambda a, b: a / b.exp()),
    "matmul with uncertain batches": ([(N, 2, 4), (ONE, 4, 2)], torch.matmul),
    "expand to an uncertain size": ([(ONE, 4), (N, 1)], lambda a, b: a.expand(N, 4) * b),
    "where with uncertain sizes": ([(N, 4), (ONE, 1)], lambda a, b: torch.where(a < b, a, b.exp())),
    "reshape of what is not known": ([(N, 4)], lambda a: a.exp().reshape(2, -1)),
}


def numbers(x, digits=8):
    return [float(f"{v:.{digits}g}") for v in x.flatten().tolist()]


def rounded(x):
    return x.mul(1000).round().div(1000).float().double()


def case(name, shapes, function):
    random = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    inputs = []
    for shape in shapes:
        x = torch.randn(shape, generator=random, dtype=torch.float64)
        if name in POSITIVE:
            x = 0.5 + 1.5 * torch.rand(shape, generator=random, dtype=torch.float64)
        inputs.append(rounded(x).requires_grad_())
    y = function(*inputs)
    seed = rounded(torch.randn(y.shape, generator=random, dtype=torch.float64))
    gradients = torch.autograd.grad((seed * y).sum(), inputs)
    return dict(inputs=[numbers(x, 4) for x in inputs], shape=list(y.shape), output=numbers(y), seed=numbers(seed, 4),
                gradients=list(map(numbers, gradients)))


lines = [json.dumps(name) + ": " + json.dumps(case(name, *c), separators=(",", ":")) for name, c in CASES.items()]
(pathlib.Path(__file__).parent / "rules.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
