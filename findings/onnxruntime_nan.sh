#!/usr/bin/env bash
# onnx 1.23.2, onnxruntime 1.32.0 (CPU), numpy 2.4.6: whether a NaN survives a maximum depends on its place.
#
# NumPy and PyTorch return NaN for a maximum over values with a NaN, and the index of the NaN for argmax. ONNX Runtime
# does so for ReduceMax and ArgMax only if the NaN comes first, and a one-dimensional MaxPool turns a window of NaN into
# the smallest float. So an exported network that diverged can return finite numbers and a class. onnx's own
# ReferenceEvaluator follows NumPy for ReduceMax and ArgMax, ignores NaN in MaxPool, and fails for a window of NaN.
#
# Seen:
#   ReduceMax  nan,1,3  onnxruntime nan  reference nan
#   ReduceMax  1,nan,3  onnxruntime 3.0  reference nan
#   ArgMax     nan,1,3  onnxruntime 0    reference 0
#   ArgMax     1,nan,3  onnxruntime 2    reference 1
#   MaxPool    nan,1,3  onnxruntime 3.0  reference 3.0
#   MaxPool    1,3,nan  onnxruntime 3.0  reference 3.0
#   MaxPool    nan,nan,nan  onnxruntime -3.4028234663852886e+38  reference ValueError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat >"$folder/try.py" <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def run(operator, values):
    shape, attributes = {"ReduceMax": ([1, 3], {"axes": [1], "keepdims": 0}), "ArgMax": ([1, 3], {"axis": 1, "keepdims": 0}),
                         "MaxPool": ([1, 1, 3], {"kernel_shape": [3]})}[operator]
    kind = TensorProto.INT64 if operator == "ArgMax" else TensorProto.FLOAT
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **attributes)], "graph",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", kind, [1] * (len(shape) if operator == "MaxPool" else 1))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = {"x": np.array(values, np.float32).reshape(shape)}
    found = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, x)[0].item()
    try:
        reference = ReferenceEvaluator(model).run(None, x)[0].item()
    except ValueError:
        reference = "ValueError"
    print(f"{operator} {','.join(f'{value:g}' for value in values)} {found} {reference}")


nan = float("nan")
for operator, values in (("ReduceMax", [nan, 1, 3]), ("ReduceMax", [1, nan, 3]), ("ArgMax", [nan, 1, 3]), ("ArgMax", [1, nan, 3]),
                         ("MaxPool", [nan, 1, 3]), ("MaxPool", [1, 3, nan]), ("MaxPool", [nan, nan, nan])):
    run(operator, values)
PYTHON
"$folder/venv/bin/python" "$folder/try.py" 2>/dev/null | tee "$folder/found"
diff - "$folder/found" <<'END'
ReduceMax nan,1,3 nan nan
ReduceMax 1,nan,3 3.0 nan
ArgMax nan,1,3 0 0
ArgMax 1,nan,3 2 1
MaxPool nan,1,3 3.0 3.0
MaxPool 1,3,nan 3.0 3.0
MaxPool nan,nan,nan -3.4028234663852886e+38 ValueError
END
