#!/usr/bin/env bash
# PyYAML 6.0.2 (YAML 1.1) reads 1e-07 as a string, although C, Python's repr and JSON write floats like this: its floats
# need a point, and a sign in the exponent. Python's argparse (3.8.18, 3.11.7, 3.12.1, 3.13.0) takes the value -1.0e-07
# of an option for another option, since its pattern of negative numbers has no exponent; --x=-1.0e-07 works.
# Seen: 1e-07 is a str, 1.0e-07 a float, 1e+20 a str, 1.0e+20 a float; "argument --x: expected one argument".
# Exit code 1 if one of these changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyyaml==6.0.2
"$folder/venv/bin/python" - <<'PYTHON'
import argparse
import contextlib
import io
import sys

import yaml

read = {text: type(yaml.safe_load(text)).__name__ for text in ("1e-07", "1.0e-07", "1e+20", "1.0e+20", "1.0e20", "0.00001")}
print(yaml.__version__, read)
expected = {"1e-07": "str", "1.0e-07": "float", "1e+20": "str", "1.0e+20": "float", "1.0e20": "str", "0.00001": "float"}
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
said = io.StringIO()
try:
    with contextlib.redirect_stderr(said):
        parser.parse_args(["--x", "-1.0e-07"])
except SystemExit:
    pass
print(sys.version.split()[0], said.getvalue().strip().splitlines()[-1:])
is_refused = "expected one argument" in said.getvalue()
is_right = parser.parse_args(["--x=-1.0e-07"]).x == -1e-07 and (is_refused or sys.version_info > (3, 13, 1))
sys.exit(0 if read == expected and is_right else 1)
PYTHON
