#!/usr/bin/env bash
# Creates the run directory of an interrupted job: tests/compatibility/make.sh FINCH FOLDER
# The run has two starts with 2 workers. The first start is stopped by a signal and writes models/best.h5. The second is
# killed. It leaves journals with records that no archive contains, and the snapshot of an unfinished training. Each file
# format has a run directory of this kind, format-N. tests/compatibility/resume.py shows, resumes and replays all of them.
set -euo pipefail
finch=$(realpath "$1")
. "$(dirname "$0")/../../tools/mpi_settings.sh"
mkdir -p "$2"
cd "$2"
cat >tiny.yaml <<'YAML'
name: tiny
seed: 3
data: {kind: generated, samples: 3000, size: 16, validation_samples: 303, normalize: {mean: 0.13, deviation: 0.31}}
model:
  - conv: {channels: 4, kernel: 3, activation: $activation, repeat: $layers}
  - max_pool: {kernel: 2}
  - flatten
  - linear: {units: classes}
training: {epochs: 30, batch_size: 16, optimizer: adadelta, learning_rate: $lr}
search:
  space:
    layers: {int: [1, 3]}
    activation: {choice: [relu, sigmoid, tanh]}
    lr: {real: [0.001, 0.01], scale: log}
  objective: validation_loss
  propagator: {genetic: {population: 4}}
  budget: {evaluations: 20}
workers: {ranks: 1, islands: 2, threads: 1, watts: 20}
checkpoint: {archive_seconds: 1000, training_seconds: 0.2}
YAML

finished() { "$finch" status run 2>/dev/null | sed -n 's/.*run, \([0-9]*\) of.*/\1/p' || true; }
ranks() { pgrep --parent "$1"; }

start_until() {  # COUNT SIGNAL: starts the run and sends SIGNAL to its ranks once COUNT individuals are finished
    mpirun -n 2 "$finch" evolve tiny.yaml --run run >/dev/null 2>&1 &
    local launcher=$! now
    until now=$(finished) && [ "${now:-0}" -ge "$1" ]; do sleep 0.05; done
    if [ "$2" = KILL ]; then
        until compgen -G 'run/state/training-*.h5' >/dev/null; do sleep 0.01; done
    fi
    # shellcheck disable=SC2046
    kill -"$2" $(ranks $launcher)
    wait $launcher || true
}

start_until 3 USR2
start_until 7 KILL
rm run/lock run/summary.txt run/*.previous run/*/*.previous  # a resume does not need these files
"$finch" show run --csv >show.csv
"$finch" --version >version.txt
