"""Checks the documents against the program: their configurations pass `finch plan`, and finch prints the messages that
the FAQ explains. tests/structure/pages.py checks their links and sentences."""
import re

from harness import SOURCE, TINY, Folder, check, passed

# Mistakes of a user: {part of the message: (command, change of the configuration)}.
MISTAKES = {
    "unknown key": (["evolve", "epoch.yaml"], lambda text: text.replace("epochs: 3", "epoch: 3")),
    "there is no such file; beside it:": (["evolve", "nofile.yaml"], lambda text: text),
    "no network of this configuration can exist for samples of": (["evolve", "kernel.yaml"], lambda text: text.replace("kernel: 2}", "kernel: 50}")),
    "tf32 needs GPUs (workers.device: cuda); write float32,": (["evolve", "tiny.yaml", "--set", "training.precision=tf32", "--set", "workers.device=cpu"], lambda text: text),
    "there is no such folder; tools/fetch_mnist.sh DIR fetches MNIST, finch data generate DIR draws digits": (
        ["evolve", "mnist.yaml"], lambda text: text.replace("kind: generated, samples: 600, size: 12", "kind: idx, path: data/mnist")),
    "workers.ranks: 4 ranks cannot be dealt into workers of 3; start 6 ranks, or set workers.ranks to 2 or 4": (
        ["evolve", "tiny.yaml", "--set", "workers.ranks=3"], lambda text: text),
    "this run was made with another configuration:": (["evolve", "tiny.yaml", "--set", "training.batch_size=32"], lambda text: text),
    "which is not there; make that folder, or remove the link": (["evolve", "tiny.yaml", "--run", "gone"], lambda text: text),
    "there is no run here (no population.h5)": (["show", "nowhere"], lambda text: text),
}


def words(text):
    return " ".join(text.replace("\n> ", " ").split())


def messages(folder):
    """Checks that finch prints each message that the FAQ explains, word for word."""
    faq = words((SOURCE / "docs" / "faq.md").read_text())
    folder.write("tiny.yaml", TINY)
    (folder.path / "gone").symlink_to("purged")
    folder.run(4, "evolve", "tiny.yaml", "--set", "search.budget.evaluations=2")
    for message, (command, change) in MISTAKES.items():
        check(message in faq, f"docs/faq.md does not explain: {message}")
        if command[1].endswith(".yaml") and command[1] not in ("nofile.yaml", "tiny.yaml"):
            folder.write(command[1], change(TINY))
        given = folder.run(4 if command[0] == "evolve" else 0, *command, expect=2)
        check(message in words(given), f"finch does not say '{message}', but\n{given}")
    source = "".join(path.read_text() for path in (SOURCE / "src").rglob("*.cpp"))
    joined = re.sub(r'"\s*\n\s*"', "", source)
    for message in ("MPI_Init did not end within {} s (FINCH_START_SECONDS): {} ranks were expected, and one of them never reached it",
                    "is in use by", "wait for it, or give this run another one with --run"):
        check(message in joined, f"no source says: {message}")
    passed(f"{len(MISTAKES)} mistakes get the messages that docs/faq.md explains")


def configurations(folder):
    (folder.path / "train.py").write_text("")
    blocks = re.findall(r"```yaml\n(.*?)```", (SOURCE / "docs" / "coming_from.md").read_text(), re.DOTALL)
    check(len(blocks) == 3, f"{len(blocks)} examples")
    for number, block in enumerate(blocks):
        folder.write(f"{number}.yaml", block)
        folder.run(0, "plan", f"{number}.yaml", "--nodes", 1, "--ranks-per-node", 4)
    passed("the examples of docs/coming_from.md are configurations")


def main():
    with Folder() as folder:
        configurations(folder)
        messages(folder)


if __name__ == "__main__":
    main()
