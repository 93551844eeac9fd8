"""The man page: every verb and option that --help has, and roff without a warning."""
import re

from installed import BUILD, Installed, check, passed, run, skip_without, verbs_by_help

groff = skip_without("groff", "groff-base")
with Installed() as installed:
    page = installed.prefix / "share/man/man1/finch.1"
    warnings = run(groff, "-k", "-man", "-ww", "-z", "-Tutf8", page)
    check(not warnings, warnings)
    passed("groff has no warning")
    text = run(groff, "-k", "-man", "-Tascii", "-P-c", "-P-b", "-P-u", "-rLL=400n", page)
    check(run(BUILD / "finch", "--version").removeprefix("Finch ").strip() in page.read_text().replace("\\-", "-"), "another version")
    # Headings of verbs are indented by 3, their text by 7.
    parts = re.split(r"^   (?=finch )", text, flags=re.MULTILINE)
    sections = {re.match(r"finch ((?:[a-z]+ ?)+)", part)[1].strip(): part for part in parts[1:]}
    known = verbs_by_help(installed.prefix / "bin/finch")
    leaves = {" ".join(verb): options for verb, options in known.items() if not any(len(other) > len(verb) and other[:len(verb)] == verb for other in known)}
    check(set(sections) == set(leaves), f"verbs of the page: {sorted(sections)}; of the help: {sorted(leaves)}")
    for verb, options in leaves.items():
        heads = re.findall(r"^       ((?:--?[a-z][a-z-]*(?:, )?)+)", sections[verb], re.MULTILINE)
        there = {name for head in heads for name in head.split(", ")}
        wanted = set(options) - {"-h", "--help"}
        check(there == wanted, f"finch {verb}: the page has {sorted(there)}, the help {sorted(wanted)}")
    passed(f"{len(leaves)} verbs with all their options")
    check("75 stopped early" in text and "evolve.sbatch" in text, "exit status and files")
    man = skip_without("man", "man-db")
    check("finch evolve" in run(man, "-l", page, MANWIDTH="100", PAGER="cat"), "man -l")
    found = run(man, "-w", "finch", PATH=f"{installed.prefix}/bin:/usr/bin:/bin", without=["MANPATH"])
    check(found.strip() == str(page), f"man finds {found}")
    passed("man finds the page by the PATH")
