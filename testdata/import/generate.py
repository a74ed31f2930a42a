"""Writes the fixtures of the import tests: one tiny random BERT, exported in the ways that common exporters do, and what it
computes in double precision.

    pip install torch==2.5.1 transformers==4.46.3 onnx==1.23.2 onnxscript==0.7.2
    python generate.py

The references are the model's own: transformers.BertForMaskedLM in float64, its logits at the queried positions, and the
derivative of the sum of the targets' log-probabilities with respect to the word embeddings, by torch.autograd.
"""

import json
import os
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import torch
from transformers import BertConfig, BertForMaskedLM

warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))

VOCABULARY, HIDDEN, POSITIONS = 64, 16, 24
letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters]
words += [f"word{i}" for i in range(len(words), VOCABULARY)]
MASK = words.index("[MASK]")


def model(attention):
    torch.manual_seed(1)
    m = BertForMaskedLM(
        BertConfig(
            vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=POSITIONS, initializer_range=0.3, attn_implementation=attention,
        )
    ).eval()
    for p in m.parameters():  # biases and norms would be 0 and 1
        if p.dim() == 1:
            p.data += 0.1 * torch.randn_like(p)
    return m


class Logits(torch.nn.Module):
    def __init__(self, m, names):
        super().__init__()
        self.m, self.names = m, names

    def forward(self, *inputs):
        return self.m(**dict(zip(self.names, inputs))).logits


def export(file, attention, opset, names=("input_ids", "attention_mask", "token_type_ids"), dynamic=True):
    m = model(attention)
    rows, tokens = (3, 7) if dynamic else (1, 8)
    ids = torch.randint(5, VOCABULARY, (rows, tokens))
    every = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    axes = {n: {0: "batch_size", 1: "sequence_length"} for n in list(names) + ["logits"]}
    torch.onnx.export(
        Logits(m, names), tuple(every[n] for n in names), os.path.join(here, file), input_names=list(names),
        output_names=["logits"], dynamic_axes=axes if dynamic else None, opset_version=opset, do_constant_folding=True,
        dynamo=False,
    )


def shorten(m):
    """Leaves out names and notes that nothing refers to, to keep the fixtures small."""
    del m.graph.value_info[:]
    del m.graph.metadata_props[:]
    for n in m.graph.node:
        n.name = n.doc_string = ""
        del n.metadata_props[:]


def dynamo(file):
    """The newer exporter of torch, which traces with torch.export; its dimensions are symbols."""
    m = model("sdpa")
    ids = torch.randint(5, VOCABULARY, (3, 7))
    every = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    rows, tokens = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("tokens", min=2, max=POSITIONS - 1)
    program = torch.onnx.export(
        Logits(m, list(every)), tuple(every.values()), dynamo=True, input_names=list(every), output_names=["logits"],
        dynamic_shapes={"inputs": tuple({0: rows, 1: tokens} for _ in every)}, opset_version=18,
    )
    program.save(os.path.join(here, file))
    m = onnx.load(os.path.join(here, file))
    shorten(m)
    onnx.save(m, os.path.join(here, file))


def half(source, file):
    """Converts weights and arithmetic to float16 and leaves inputs and outputs, as the usual converters do."""
    m = onnx.load(os.path.join(here, source))
    g = m.graph
    for t in g.initializer:
        if t.data_type == onnx.TensorProto.FLOAT:
            t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t).astype(np.float16), t.name))
    for n in g.node:
        for a in n.attribute:
            if n.op_type == "Cast" and a.name == "to" and a.i == onnx.TensorProto.FLOAT:
                a.i = onnx.TensorProto.FLOAT16
            if a.type == onnx.AttributeProto.TENSOR and a.t.data_type == onnx.TensorProto.FLOAT:
                # -3.4e38, which closes positions to attention, is -65504 in float16
                value = np.clip(onnx.numpy_helper.to_array(a.t), -65504, 65504).astype(np.float16)
                a.t.CopyFrom(onnx.numpy_helper.from_array(value))
    for n in g.node:
        for i, name in enumerate(n.output):
            if name == "logits":
                n.output[i] = "logits_float16"
    g.node.append(onnx.helper.make_node("Cast", ["logits_float16"], ["logits"], to=onnx.TensorProto.FLOAT))
    shorten(m)
    onnx.save(m, os.path.join(here, file))


def external(source, file):
    m = onnx.load(os.path.join(here, source))
    shorten(m)
    if os.path.exists(os.path.join(here, file + "_data")):  # onnx does not write over it
        os.remove(os.path.join(here, file + "_data"))
    onnx.save_model(m, os.path.join(here, file), save_as_external_data=True, all_tensors_to_one_file=True,
                    location=file + "_data", size_threshold=64)


def references():
    with open(os.path.join(here, "reference.json"), "w") as f:
        json.dump({"energy": energy(model("eager").double())}, f, separators=(",", ":"))
        f.write("\n")


def energy(m):
    """U of a fill of three slots, each masked in turn, and its derivative with respect to one-hot fills."""
    template, slots, fill = [2, 7, MASK, 11, MASK, MASK, 3], [2, 4, 5], [33, 17, 60]
    rows = torch.tensor([template] * len(slots))
    for i in range(len(slots)):
        for j, s in enumerate(slots):
            rows[i, s] = MASK if i == j else fill[j]
    table = m.bert.embeddings.word_embeddings.weight.detach()
    words = table[rows].requires_grad_(True)
    logits = m(inputs_embeds=words, attention_mask=torch.ones_like(rows), token_type_ids=torch.zeros_like(rows)).logits
    logp = torch.log_softmax(logits[range(len(slots)), slots], -1)
    terms = logp[range(len(slots)), fill]
    terms.sum().backward()
    gradient = []
    for j, s in enumerate(slots):
        others = [i for i in range(len(slots)) if i != j]
        gradient.append((logp[j] + words.grad[others, s].sum(0) @ table.T).tolist())
    return {"template": template, "slots": slots, "fill": fill, "energy": terms.sum().item(), "gradient": gradient}


os.makedirs(os.path.join(here, "tokenizer"), exist_ok=True)
with open(os.path.join(here, "tokenizer", "vocab.txt"), "w") as f:
    f.write("\n".join(words) + "\n")
with open(os.path.join(here, "tokenizer", "tokenizer_config.json"), "w") as f:
    f.write('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}\n')
export("eager-11.onnx", "eager", 11)
export("sdpa-14.onnx", "sdpa", 14)
export("eager-17.onnx", "eager", 17, names=("input_ids", "attention_mask"))
export("ids-18.onnx", "eager", 18, names=("input_ids",))
dynamo("dynamo-18.onnx")
for file in ("eager-11.onnx", "sdpa-14.onnx", "eager-17.onnx", "ids-18.onnx"):
    found = onnx.load(os.path.join(here, file))
    shorten(found)
    onnx.save(found, os.path.join(here, file))
half("eager-11.onnx", "float16-11.onnx")
external("sdpa-14.onnx", "external-14.onnx")
references()
