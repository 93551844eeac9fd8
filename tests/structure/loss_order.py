#!/usr/bin/env python3
"""loss_order.py SOURCE_FOLDER: finds comparisons of losses that do not use the common order of losses.

The order (include/finch/base/loss_order.hpp; better() in search/individual.hpp for individuals) ranks losses that are not finite last.
The standard library's min, max, sort and < give arbitrary results for NaN. This test reads the sources and fails on

- min, max, sort and similar functions, and <, >, <= and >=, for names that mean a loss, a metric, an accuracy or a fitness;
- propagators that read the loss of an individual without comparable_loss();
- Python tools that order losses with min, max, sorted or NumPy functions, which do not all rank NaN last.

    loss_order.py SOURCE_FOLDER    prints the comparisons that it finds; exit code 1 if there are any
    loss_order.py --self-test      writes such comparisons to a temporary folder and checks that each is found
"""
import pathlib
import re
import sys
import tempfile

LOSS = r"(?:\w*(?:loss(?:es)?|accurac(?:y|ies)|fitness|objective_value)|metrics?)_?"
ORDERED = r"\b(?:min|max|minmax|clamp|nth_element|(?:stable_|partial_)?sort|(?:min|max|minmax)_element)(?:<[^()]*>)?\s*\("
COMPARED = rf"(?:\b{LOSS}\b(?:\(\)|\))* (?:<|>|<=|>=) |[^<>] (?:<|>|<=|>=) \*?(?:[\w\[\]]+(?:\.|->))*{LOSS}\b)"
READ_BY_PROPAGATOR = r"\b(?:individual|parent|twin)\w*(?:\.|->)loss\b"
PYTHON = r"(?:(?<![\w.])(?:min|max|sorted)|\b(?:np|numpy)\.(?:min|max|amin|amax|sort|argmin|argmax|argsort|lexsort|minimum|maximum))\s*\("
COMPARABLE = rf"\b(?!is_better_loss){LOSS}\b(?!\.size)"

# file: (text of a line that is allowed, reason).
ALLOWED = {
    "include/finch/base/loss_order.hpp": [("", "the order itself")],
    "include/finch/search/individual.hpp": [("return a.loss < b.loss;", "better(): of two finite losses")],
    "src/search/individual.cpp": [("std::min(individual.loss, std::nextafter", "comparable_loss(): of a finite loss")],
    "tools/reporting/analysis.py": [("np.lexsort(losses", "front_of(): of complete individuals, whose losses are finite"),
                                    ("np.sort(losses[np.isfinite", "expected_best(): of finite losses")],
}


def argument(text, opening):
    """Returns the text between the parenthesis at `opening` and its closing parenthesis."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return text[opening + 1:place]
    return text[opening + 1:]


def compares(text, call):
    """Returns whether the arguments of a call contain losses but not is_better_loss. `call` matches the function name and "(".""" 
    inside = argument(text, call.end() - 1)
    return re.search(COMPARABLE, inside) and "is_better_loss" not in inside


def without_comments(text, is_python):
    """Replaces comments and string literals by spaces, so that all positions stay the same."""
    pattern = r'#[^\n]*|"""[\s\S]*?"""' if is_python else r'//[^\n]*|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def places(path, name):
    """Returns (line number, line) for each comparison of losses that does not use the common order."""
    is_python = path.suffix == ".py"
    original = path.read_text(encoding="utf-8")
    text = without_comments(original, is_python)
    found = []
    if "/propagators/" in name:
        found = [match.start() for match in re.finditer(READ_BY_PROPAGATOR, text)]
    elif is_python:
        found = [match.start() for match in re.finditer(PYTHON, text) if compares(text, match)]
    else:
        found = [match.start() for match in re.finditer(ORDERED, text) if compares(text, match)]
        found += [match.start() for match in re.finditer(COMPARED, text)]
    lines = original.splitlines()
    numbers = sorted({text.count("\n", 0, place) for place in found})
    allowed = [snippet for snippet, _ in ALLOWED.get(name, [])]
    return [(number + 1, lines[number].strip()) for number in numbers if not any(snippet in lines[number] for snippet in allowed)]


def check(root):
    """Returns one message per violation under `root`."""
    wrong = []
    files = [path for folder, pattern in (("include/finch", "*.hpp"), ("src", "*.?pp"), ("tools", "*.py"))
             for path in sorted((root / folder).rglob(pattern))]
    for path in files:
        name = path.relative_to(root).as_posix()
        if not name.startswith("src/backend/"):
            wrong += [f"{name}:{number}: compares losses past base/loss_order.hpp: {line}" for number, line in places(path, name)]
    return wrong


PLANTED = {
    "src/search/a.cpp": ["double x = *std::min_element(losses.begin(), losses.end());", "std::sort(losses.begin(), losses.end());",
                         "std::nth_element(losses.begin(), middle, losses.end());", "return a.loss < b.loss;", "if (best->loss <= target) {",
                         "if (epoch.validation_loss > limit) {", "const double least = std::min(least, one.validation_loss);",
                         "std::stable_sort(all.begin(), all.end(), [](const A& a, const A& b) {\n    return a.accuracy > b.accuracy; });",
                         "if (limit >= individual.loss) {"],
    "src/search/propagators/b.cpp": ["const double loss = individual.loss;"],
    "tools/c.py": ["best = min(losses)", "best = min(rows, key=lambda row: row['loss'])", "order = np.argsort(table.loss)"],
}
HARMLESS = {
    "src/search/a.cpp": ["std::optional<double> loss = find(x);", "const auto count = std::min(most, names.size());", "// loss < limit",
                         'text += fmt::format("loss < {}", limit);', "if (is_better_loss(a.loss, b.loss)) {", "std::vector<double> losses;"],
    "src/search/propagators/b.cpp": ["const double loss = comparable_loss(individual);", "if (loss < best_loss_) {"],
    "tools/c.py": ["best = table.loss.idxmin()", "widest = max(widths)", "best = np.nanmin(losses)"],
}


def self_test():
    def found_in(contents):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in contents.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text + "\n")
            return check(pathlib.Path(folder))
    for name, lines in PLANTED.items():
        for line in lines:
            if not found_in({name: line}):
                sys.exit(f"not found in {name}: {line}")
    for name, lines in HARMLESS.items():
        for line in lines:
            if found_in({name: line}):
                sys.exit(f"found in {name}: {line}")
    print(f"{sum(map(len, PLANTED.values()))} planted places found")


if sys.argv[1] == "--self-test":
    self_test()
else:
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "all losses are compared by their one order")
    sys.exit(1 if problems else 0)
