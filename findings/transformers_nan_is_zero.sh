#!/usr/bin/env bash
# transformers 5.24.0, accelerate 1.15.0, PyTorch 2.15.0 (CPU): a training whose losses are all NaN logs losses of 0.
#
# The default logging_nan_inf_filter=True replaces a loss that is NaN or infinite by the mean of the losses before it,
# which is 0 at the beginning. Likewise, `eval_loss` is the mean over the evaluation's finite losses. So in a search
# that minimises the losses of Trainer's log, a model that diverged has the smallest loss.
#
# Seen, with a loss of sqrt(w x), 4 training samples x = -1, and an evaluation of x = 4, -1, -1, -1 before the training:
#   default: training [0.0, 0.0, 0.0, 0.0], eval_loss 2.0
#   without filter: training [nan, nan, nan, nan], eval_loss nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-cache-dir transformers==5.24.0 accelerate==1.15.0 torch==2.15.0 numpy==2.4.6
cat >"$folder/try.py" <<'PYTHON'
import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.0))

    def forward(self, x, labels=None):
        return {"loss": (self.weight * x).sqrt().mean(), "logits": x}  # NaN for x < 0


data = lambda *values: [{"x": torch.tensor(value), "labels": torch.tensor(0.0)} for value in values]
for name, filtered in (("default", {}), ("without filter", {"logging_nan_inf_filter": False})):
    arguments = TrainingArguments("out", max_steps=4, logging_steps=1, learning_rate=0.0, per_device_train_batch_size=1, per_device_eval_batch_size=1,
                                  save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, **filtered)
    trainer = Trainer(Model(), arguments, train_dataset=data(-1.0, -1.0, -1.0, -1.0), eval_dataset=data(4.0, -1.0, -1.0, -1.0))
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    print(f"{name}: training {losses}, eval_loss {before}")
PYTHON
export OMP_NUM_THREADS=1
(cd "$folder" && venv/bin/python try.py) >"$folder/log"
grep -E '^(default|without filter):' "$folder/log" | tee "$folder/found"
diff - "$folder/found" <<'END'
default: training [0.0, 0.0, 0.0, 0.0], eval_loss 2.0
without filter: training [nan, nan, nan, nan], eval_loss nan
END
