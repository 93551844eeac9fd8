"""Writes the configuration of a run's best individual: that of the run with every gene frozen at its value."""
import re

import yaml


def child(node, key):
    """Returns the value of `key` in a node of a mapping; None if there is none."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def source(text, node):
    return text[node.start_mark.index:node.end_mark.index].strip()


def value_text(text, node, gene, value):
    """Returns a value as YAML. An option keeps the text of the configuration: 3.10, "007"."""
    if gene.kind == "choice":
        options = child(node, "choice").value
        return next(source(text, option) for option in options if option.value == str(value))
    # YAML 1.1 reads 1e-07 as a word, and 1.0e-07 as a number.
    return str(int(value)) if gene.kind == "int" else re.sub(r"^(-?\d+)e", r"\1.0e", repr(float(value)))


def config_of_best(run):
    """Returns the YAML text; None if the configuration does not hold the genes, as for a built-in function."""
    if run.complete.empty:
        return None
    text, best = run.config, run.ranked.iloc[0]
    search = child(yaml.compose(text), "search")
    space = child(search, "space")
    changes = []  # (node, its new text)
    for gene in run.genes:
        node = child(space, gene.name)
        if node is None:
            return None
        if isinstance(node, yaml.MappingNode) and child(node, "value") is None:
            changes.append((node, f"{flow(text, node)[:-1]}, value: {value_text(text, node, gene, best[gene.name])}}}\n"))
    first = child(search, "first")
    if first is not None and not isinstance(first, yaml.ScalarNode):
        changes.append((first, "none\n"))
    for node, new in sorted(changes, key=lambda change: -change[0].start_mark.index):
        before = text[:node.start_mark.index].rstrip()  # a block begins on a line of its own
        text = f"{before} {new}" + indentation_of_next(text, node) + text[node.end_mark.index:].lstrip("\n")
    return f"# {best.name}, the best of {run.name}: every gene has its value. Train it again with `finch train FILE`.\n{text}"


def indentation_of_next(text, node):
    """Returns the spaces that a block node has consumed of the line behind it."""
    line_start = text.rfind("\n", 0, node.end_mark.index) + 1
    return "" if text[line_start:node.end_mark.index].strip() else text[line_start:node.end_mark.index]


def flow(text, node):
    """Returns a node in YAML's flow style, with the scalars as they are written."""
    if isinstance(node, yaml.MappingNode):
        return "{" + ", ".join(f"{source(text, name)}: {flow(text, value)}" for name, value in node.value) + "}"
    if isinstance(node, yaml.SequenceNode):
        return "[" + ", ".join(flow(text, value) for value in node.value) + "]"
    return source(text, node)
