"""program.py RATE: an objective of 8 epochs on all ranks of a worker. The ranks first connect to each other, as
torchrun ranks do. Rank 0 saves and reports each epoch, and writes it to a trail file. USR2 ends all ranks between two
epochs. The individuals in HELD_INDIVIDUALS wait for this signal after epoch 3."""
import os
import pathlib
import signal
import socket
import sys
import time

rate, rank, size = float(sys.argv[1]), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def nodes_that_meet():
    """Collects the host names of all ranks on rank 0, over MASTER_PORT. Returns them on rank 0, and an empty set
    elsewhere."""
    port, end = int(os.environ["MASTER_PORT"]), time.monotonic() + 60
    if rank == 0:
        nodes = {socket.gethostname()}
        with socket.create_server(("", port), backlog=size) as server:
            server.settimeout(60)
            for _ in range(size - 1):
                peer, _ = server.accept()
                nodes.add(peer.makefile().readline().strip())
        return nodes
    while True:
        try:
            with socket.create_connection((os.environ["MASTER_ADDR"], port), timeout=60) as to_rank_zero:
                to_rank_zero.sendall(f"{socket.gethostname()}\n".encode())
            return set()
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def check_place():
    """Exits with an error if a framework would compute another rank or size than RANK and WORLD_SIZE of torchrun."""
    e = os.environ
    per_node = int(e["LOCAL_WORLD_SIZE"])
    ranks = {"Lightning": int(e.get("NODE_RANK", e["GROUP_RANK"])) * per_node + int(e.get("LOCAL_RANK", 0)),
             "Lightning on Slurm": int(e["SLURM_NODEID"]) * int(e["SLURM_NTASKS_PER_NODE"]) + int(e["SLURM_LOCALID"]),
             "jax": int(e["SLURM_PROCID"]), "ignite": int(e["SLURM_PROCID"])}
    sizes = {"Lightning": int(e["GROUP_WORLD_SIZE"]) * per_node, "jax": int(e["SLURM_NTASKS"]),
             "ignite": int(e["SLURM_JOB_NUM_NODES"]) * int(e["SLURM_NTASKS_PER_NODE"])}
    if set(ranks.values()) != {rank} or set(sizes.values()) != {size}:
        sys.exit(f"rank {rank} of {size}: {ranks}, {sizes}")
    if e["SLURMD_NODENAME"] != e["SLURM_STEP_NODELIST"].split(",")[int(e["SLURM_NODEID"])]:
        sys.exit(f"{e['SLURMD_NODENAME']} is not at its place in {e['SLURM_STEP_NODELIST']}")


saved = pathlib.Path(os.environ["FINCH_CHECKPOINT_DIR"], "epoch")
trail = pathlib.Path(os.environ["FINCH_RUN"] + ".trails", os.environ["FINCH_ID"])
stop = []
signal.signal(signal.SIGUSR2, lambda *_: stop.append(True))
check_place()
nodes = nodes_that_meet()
goes_on = bool(os.environ.get("FINCH_RESUME"))
held = os.environ["FINCH_ID"] in os.environ.get("HELD_INDIVIDUALS", "").split() and not goes_on
done = int(saved.read_text()) if saved.exists() else 0
if rank == 0:
    trail.parent.mkdir(exist_ok=True)
    with trail.open("a") as file:
        print("goes on" if goes_on else "begins", "after", done, "as one of", size, "on", len(nodes), file=file)
for epoch in range(done + 1, 9):
    time.sleep(0.25)
    if rank == 0:
        new = saved.with_suffix(".new")
        new.write_text(str(epoch))
        new.rename(saved)
        with trail.open("a") as file:
            print(epoch, file=file)
        print(f"finch loss={rate / epoch} epoch={epoch}", flush=True)
    while epoch == 3 and held and not stop:
        time.sleep(0.05)
    if stop:
        sys.exit(0)
