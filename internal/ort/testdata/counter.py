"""Writes counter.onnx, which adds 1 to x as often as the input "times" says: a run that lasts as long as a test wants.

Python is needed to make the file, never to run the tests:
  pip install onnx
  python counter.py
"""

import pathlib

from onnx import TensorProto, helper

value = helper.make_tensor_value_info
body = helper.make_graph(
    [helper.make_node("Identity", ["go"], ["goes"]), helper.make_node("Add", ["v", "one"], ["w"])],
    "body",
    [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, [1])],
    [value("goes", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [1])],
    [helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])],
)
graph = helper.make_graph(
    [helper.make_node("Loop", ["times", "", "x"], ["y"], body=body)],
    "counter",
    [value("times", TensorProto.INT64, [1]), value("x", TensorProto.FLOAT, [1])],
    [value("y", TensorProto.FLOAT, [1])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
(pathlib.Path(__file__).parent / "counter.onnx").write_bytes(model.SerializeToString())
