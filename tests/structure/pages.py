#!/usr/bin/env python3
"""pages.py SOURCE_FOLDER: finds pages of the manual that are hard to read, and links that lead nowhere.

The pages are README.md, docs/*.md and the .md files of configs. This test fails on

- a page of more than 300 lines. A generated part, between `<!-- NAME: written by … -->` and `<!-- end of NAME -->`, does not count;
- a sentence of more than 35 words. A list of words in backquotes counts as one word, and the target of a link as none. An item
  of a list and a part of a table's cell end a sentence. Code blocks and quoted messages (`> finch: …`) are not read;
- a link or an image whose file is not in the source folder, or whose anchor is no heading of its page;
- a page that docs/README.md does not link to.

    pages.py SOURCE_FOLDER    prints the mistakes; exit code 1 if there are any
    pages.py --self-test      writes pages with mistakes to a temporary folder and checks that each is found
"""
import pathlib
import re
import sys
import tempfile

LINES = 300
WORDS = 35
GENERATED = r"<!-- (\w+): written by [^\n]*-->\n.*?<!-- end of \1 -->\n"
CODE_BLOCK = r"^ *```.*?^ *```[^\n]*$"
CODE = r"`[^`]+`"
LINK = r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]*)\)"
END_OF_SENTENCE = r"(?<!et al\.)(?<!\b[A-Z]\.)(?<=[.!?])[)\"*]*\s+"


def prose(text):
    """Replaces code blocks and HTML comments by empty lines, so that line numbers stay the same."""
    return re.sub(rf"{CODE_BLOCK}|<!--.*?-->", lambda found: "\n" * found.group().count("\n"), text, flags=re.DOTALL | re.MULTILINE)


def blocks(text):
    """Yields (line number, text) of each paragraph, item of a list, heading, and item in a cell of a table."""
    number, lines = 0, []
    for at, line in enumerate([*prose(text).splitlines(), ""], 1):
        is_row = line.startswith("|")
        if lines and (not line.strip() or is_row or re.match(r" *(?:[-*>]|\d+\.|#+) ", line)):
            yield number, " ".join(lines)
            lines = []
        if is_row:
            for cell in re.split(r"(?<!\\)\|", line):
                yield from ((at, item) for item in re.split(r"; | · |<br>", cell))
        elif line.strip():
            number = number if lines else at
            lines.append(re.sub(r"^ *(?:[-*>]|\d+\.|#+) ", "", line.strip()))


def sentences(text):
    """Yields (line number, sentence) without code and targets of links."""
    for number, block in blocks(text):
        if block.startswith("finch: "):
            continue
        plain = re.sub(rf"{CODE}(?:,? (?:and |or )?{CODE})*", "CODE", re.sub(LINK, r"\1", block))
        yield from ((number, sentence.strip()) for sentence in re.split(END_OF_SENTENCE, plain))


def anchors(text):
    """Returns the anchors that GitHub gives to the headings of a page: a repeated heading gets a number."""
    found = []
    for title in re.findall(r"^#+ (.*)", prose(text), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", re.sub(LINK, r"\1", title).strip().lower()).replace(" ", "-")
        repeated = sum(re.fullmatch(rf"{re.escape(anchor)}(?:-\d+)?", other) is not None for other in found)
        found.append(f"{anchor}-{repeated}" if repeated else anchor)
    return found


def links(text):
    """Yields (line number, target) of each link and image that is not an address of the web."""
    without_code = re.sub(CODE, lambda found: "\n" * found.group().count("\n"), prose(text))
    for found in re.finditer(LINK, without_code):
        if not re.match(r"https?:|mailto:", found[2]):
            yield without_code.count("\n", 0, found.start()) + 1, found[2]


def check(root):
    """Returns one message per mistake in the pages under `root`."""
    wrong = []
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    others = sorted((root / "configs").glob("**/*.md"))
    linked = set()
    for page in [*pages, *others]:
        name, text = page.relative_to(root).as_posix(), page.read_text(encoding="utf-8")
        count = re.sub(GENERATED, "", text, flags=re.DOTALL).count("\n")
        if count > LINES:
            wrong.append(f"{name}: {count} lines; at most {LINES}: split the page")
        for number, sentence in sentences(text):
            words = len(re.findall(r"\S*\w\S*", sentence))
            if words > WORDS:
                wrong.append(f"{name}:{number}: a sentence of {words} words; at most {WORDS}: {sentence}")
        for number, target in links(text):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if name == "docs/README.md":
                linked.add(file)
            if not file.exists():
                wrong.append(f"{name}:{number}: the link {target} leads to no file")
            elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
                wrong.append(f"{name}:{number}: the link {target} leads to no heading")
    index = root / "docs" / "README.md"
    wrong += [f"docs/README.md: no link to {page.name}" for page in pages[1:] if page != index and page.resolve() not in linked]
    return wrong


LONG = "one two three four five six seven"
# (file, its text, a part of the message; "" if nothing may be found). docs/README.md links to docs/a.md.
PLANTED = [
    ("docs/a.md", "line.\n" * 301, "301 lines"),
    ("docs/a.md", f"It is {LONG}\n{LONG} {LONG} {LONG} {LONG}.", "docs/a.md:1: a sentence of 37 words"),
    ("docs/a.md", f"Short. ({LONG} {LONG} {LONG} {LONG} {LONG} [and](README.md) more.)", "of 37 words"),
    ("docs/a.md", f"| a | {LONG} {LONG} {LONG} {LONG} {LONG} more |", "of 36 words"),
    ("docs/a.md", "See [this](b.md).", "docs/a.md:1: the link b.md leads to no file"),
    ("docs/a.md", "![a picture](b.png)", "leads to no file"),
    ("docs/a.md", "See\n[this](README.md#none).", "docs/a.md:2: the link README.md#none leads to no heading"),
    ("docs/a.md", "# One\n```sh\n# two\n```\n[this](#two)", "leads to no heading"),
    ("docs/b.md", "A page.", "docs/README.md: no link to b.md"),
    ("docs/a.md", f"# Two `words`, and more\n# One\n# One\n[this](#two-words-and-more) [that](#one-1)", ""),
    ("docs/a.md", "<!-- table: written by a test -->\n" + "line.\n" * 301 + "<!-- end of table -->\n", ""),
    ("docs/a.md", f"- {LONG} {LONG} {LONG}\n- {LONG} {LONG} {LONG}", ""),
    ("docs/a.md", f"| {LONG} {LONG} {LONG}; {LONG} {LONG} {LONG} |", ""),
    ("docs/a.md", f"```\n{LONG} {LONG} {LONG} {LONG} {LONG} more\n```\n> finch: {LONG} {LONG} {LONG} {LONG} {LONG} more", ""),
    ("docs/a.md", "These: " + ", ".join(["`word`"] * 40) + " and `[none](none.md)`.", ""),
]


def self_test():
    for name, text, message in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            for page, content in {"README.md": "", "docs/README.md": "[a](a.md)", "docs/a.md": "", name: text}.items():
                (root / page).write_text(content)
            found = check(root)
        if (len(found) != 1 or message not in found[0]) if message else found:
            sys.exit(f"expected '{message}' in {name}, found {found}:\n{text}")
    print(f"{len(PLANTED)} pages checked as expected")


if sys.argv[1] == "--self-test":
    self_test()
else:
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "all pages are short, and all links lead somewhere")
    sys.exit(1 if problems else 0)
