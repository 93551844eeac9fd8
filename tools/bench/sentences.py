#!/usr/bin/env python3
"""sentences.py [COUNT] [SEED]: prints random sentences of the comments, README.md and docs.

A reader who does not know the code counts the sentences that need a second reading. STYLE allows at most one in twenty.
"""
import pathlib
import random
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WORDS = range(5, 80)  # the number of words of a sentence; shorter texts are labels


def comments(text):
    """Yields each block of // comments as one text. Comments behind code on the same line are ignored."""
    block = []
    for line in [*text.splitlines(), ""]:
        found = re.match(r"\s*//[/<]*\s?(.*)", line)
        if found:
            block.append(found[1])
        elif block:
            yield " ".join(block)
            block = []


def paragraphs(text):
    """Yields the paragraphs of a Markdown text, without code, tables and headings."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for part in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text):
        if not re.match(r"\s*([|#>!]|<)", part):
            yield " ".join(part.split())


def sentences():
    for path in sorted([*SOURCE.glob("include/**/*.hpp"), *SOURCE.glob("src/**/*.[ch]*"), SOURCE / "README.md", *SOURCE.glob("docs/*.md")]):
        parts = paragraphs if path.suffix == ".md" else comments
        for part in parts(path.read_text(encoding="utf-8")) if path.is_file() else ():
            for sentence in re.split(r"(?<=[.;!?])\s+(?=[A-Z`\"])", part):
                if len(sentence.split()) in WORDS:
                    yield path.relative_to(SOURCE), sentence.strip()


def main():
    count, seed = (int(word) for word in [*sys.argv[1:], "40", "1"][:2]) if len(sys.argv) != 2 else (int(sys.argv[1]), 1)
    for place, sentence in random.Random(seed).sample(list(sentences()), count):
        print(f"{place}: {sentence}\n")


if __name__ == "__main__":
    main()
