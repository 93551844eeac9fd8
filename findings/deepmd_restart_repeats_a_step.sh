#!/usr/bin/env bash
# deepmd-kit 3.2.0, PyTorch 2.11.0 (CPU): `dp --pt train --restart` trains the step of its checkpoint again.
#
# model.ckpt-4.pt holds the weights and the optimizer after 4 steps, but records step 3. The restart begins with step
# index 3, so 6 steps with a restart after step 4 make 7 updates of the weights, and step 4 is twice in lcurve.out.
#
# Seen:
#   updates of Adam in model.ckpt-4.pt: 4, recorded step: 3
#   updates of Adam in model.ckpt-6.pt after a restart: 7, recorded step: 5
#   steps in lcurve.out: 1 2 3 4 5 6 4 5 6
# (The first part trains 6 steps; the second restarts from its checkpoint of step 4.)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-cache-dir 'deepmd-kit[torch]==3.2.0' torch==2.11.0
cd "$folder"
cat >data.py <<'PYTHON'
import pathlib
import numpy as np
system = pathlib.Path("system/set.000")
system.mkdir(parents=True)
(system.parent / "type.raw").write_text("0\n0\n0\n")
(system.parent / "nopbc").write_text("")
places = np.random.default_rng(1).normal(0, 0.1, (8, 3, 3)) + [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
for name, array in {"coord": places, "energy": places.sum((1, 2)), "force": -places, "box": np.tile(9 * np.eye(3), (8, 1, 1))}.items():
    np.save(system / f"{name}.npy", array.reshape(8, -1))
PYTHON
cat >input.json <<'JSON'
{"model": {"type_map": ["H"], "descriptor": {"type": "se_e2_a", "sel": [4], "rcut": 4.0, "rcut_smth": 1.0, "neuron": [4], "axis_neuron": 2},
           "fitting_net": {"neuron": [4]}},
 "learning_rate": {"type": "exp", "start_lr": 0.001, "stop_lr": 1e-5, "decay_steps": 2}, "loss": {"type": "ener"},
 "training": {"training_data": {"systems": ["system"], "batch_size": 1}, "numb_steps": 6, "disp_freq": 1, "save_freq": 2, "seed": 1}}
JSON
cat >look.py <<'PYTHON'
import sys
import torch
saved = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
updates = {int(state["step"]) for state in saved["optimizer"]["state"].values()}
print("updates of Adam", *updates, "recorded step", saved["model"]["_extra_state"]["train_infos"]["step"])
PYTHON
export OMP_NUM_THREADS=1 DP_INTRA_OP_PARALLELISM_THREADS=1 DP_INTER_OP_PARALLELISM_THREADS=1 PATH="$folder/venv/bin:$PATH"
unset LOCAL_RANK
python data.py
{
    dp --pt train input.json >&2
    python look.py model.ckpt-4.pt
    dp --pt train input.json --restart model.ckpt-4.pt >&2
    python look.py model.ckpt-6.pt
    grep -v '#' lcurve.out | awk '{print $1}' | paste -sd ' '
} 2>log >found || { cat log; exit 1; }
cat found
diff - found <<'END'
updates of Adam 4 recorded step 3
updates of Adam 7 recorded step 5
1 2 3 4 5 6 4 5 6
END
