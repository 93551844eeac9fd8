"""An objective of 8 epochs on all ranks of a worker: rank 0 saves each, reports it, and leaves a trail; USR2 ends all of them between two epochs."""
import os
import pathlib
import signal
import sys
import time

rate, rank = float(sys.argv[1]), int(os.environ["RANK"])
saved = pathlib.Path(os.environ["FINCH_CHECKPOINT_DIR"], "epoch")
trail = pathlib.Path(os.environ["FINCH_RUN"] + ".trails", os.environ["FINCH_ID"])
stop = []
signal.signal(signal.SIGUSR2, lambda *_: stop.append(True))
done = int(saved.read_text()) if saved.exists() else 0
if rank == 0:
    trail.parent.mkdir(exist_ok=True)
    with trail.open("a") as file:
        print("goes on" if os.environ.get("FINCH_RESUME") else "begins", "after", done, "as one of", os.environ["WORLD_SIZE"], file=file)
for epoch in range(done + 1, 9):
    time.sleep(0.25)
    if rank == 0:
        new = saved.with_suffix(".new")
        new.write_text(str(epoch))
        new.rename(saved)
        with trail.open("a") as file:
            print(epoch, file=file)
        print(f"finch loss={rate / epoch} epoch={epoch}", flush=True)
    if stop:
        sys.exit(0)
