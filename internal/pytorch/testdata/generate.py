"""Makes the files beside this one: weights as torch.save writes them, and what they hold.

  kinds.bin                     every element type, scalars, empty tensors, tensors that
                                share a storage, strides
  kinds.safetensors             the same tensors as torch.load gives them back, each
                                contiguous, written by the reference implementation
  module.bin                    the state dict of a module, with _metadata; a dict of
                                parameters in parameters.bin
  small.bin                     one tensor and little else
  script.bin, whole.bin         a TorchScript program, and a module pickled whole
  protocol4.bin                 torch.save with pickle_protocol=4
  bundle/                       a BERT that transformers itself wrote as pytorch_model.bin,
                                with its model.safetensors beside it, renamed expected.safetensors
  bundle-first/                 its weights under the names of the first checkpoints (gamma,
                                beta), with the decoder tied

Python and its packages are needed to make these files, never to run the tests:
  pip install torch==2.5.1 transformers==4.46.3 safetensors
  python generate.py
"""

import collections
import json
import pathlib
import shutil
import sys
import warnings

import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
warnings.filterwarnings("ignore")


def contiguous(state):
    return {k: v.detach().clone().contiguous() for k, v in state.items()}


def save(state, name, **options):
    torch.save(state, HERE / name, **options)


def kinds():
    g = torch.Generator().manual_seed(1)
    base = torch.randn(6, 4, generator=g)
    matrix = torch.randn(3, 5, generator=g)
    cube = torch.randn(2, 3, 4, generator=g).to(torch.float16)
    return collections.OrderedDict(
        float32=base,
        tied=base,
        row=base[2],
        column=base[:, 1],
        rest=base[3:],
        transposed=matrix.t(),
        steps=matrix[::2, 1::2],
        permuted=cube.permute(2, 0, 1),
        expanded=torch.arange(4).expand(2, 4),
        float16=cube,
        bfloat16=torch.randn(7, generator=g).to(torch.bfloat16),
        float64=torch.randn(2, 2, generator=g, dtype=torch.float64),
        int64=torch.arange(-3, 5).reshape(1, 8),
        int32=torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32),
        int16=torch.tensor([-5, 5], dtype=torch.int16),
        int8=torch.tensor([-128, 127], dtype=torch.int8),
        uint8=torch.tensor([0, 255], dtype=torch.uint8),
        bool=torch.tensor([True, False, True]),
        scalar=torch.tensor(2.5),
        empty=torch.zeros(0, 3),
        parameter=torch.nn.Parameter(torch.randn(4, generator=g)),
        special=torch.tensor([float("nan"), float("inf"), -0.0]),
    )


def vocabulary(n):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    words += letters + ["##" + c for c in letters]
    return words + [f"word{i}" for i in range(len(words), n)]


def bundles():
    torch.manual_seed(2)
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=24
    )
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():  # biases and norms begin as constants, which could be mixed up unnoticed
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    folders = [HERE / name for name in ("bundle", "bundle-first")]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder, safe_serialization=False)
        (folder / "vocab.txt").write_text("\n".join(vocabulary(64)) + "\n")
        (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')
        (folder / "generation_config.json").unlink(missing_ok=True)
    whole = HERE / "whole"
    model.save_pretrained(whole, safe_serialization=True)
    shutil.move(whole / "model.safetensors", folders[0] / "expected.safetensors")
    shutil.rmtree(whole)

    old = collections.OrderedDict()
    for name, tensor in model.state_dict().items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        if name != "cls.predictions.decoder.bias":
            old[name] = tensor
    old["bert.embeddings.position_ids"] = torch.arange(24).expand(1, -1)
    torch.save(old, folders[1] / "pytorch_model.bin")


def main():
    print(torch.__version__, transformers.__version__, sys.version.split()[0])
    state = kinds()
    save(state, "kinds.bin")
    save_file(contiguous(torch.load(HERE / "kinds.bin", weights_only=True)), HERE / "kinds.safetensors")

    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2), torch.nn.BatchNorm1d(2))
    save(module.state_dict(), "module.bin")
    save_file(contiguous(module.state_dict()), HERE / "module.safetensors")
    parameters = dict(module.named_parameters())
    save(parameters, "parameters.bin")
    save_file(contiguous(parameters), HERE / "parameters.safetensors")

    small = {"w": torch.tensor([1.0, 2.0])}
    save(small, "small.bin")
    save(small, "protocol4.bin", pickle_protocol=4)
    save(torch.nn.Linear(1, 1), "whole.bin")
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(HERE / "script.bin"))
    bundles()
    for path in sorted(HERE.rglob("*")):
        if path.is_file():
            print(path.relative_to(HERE), path.stat().st_size)


main()
