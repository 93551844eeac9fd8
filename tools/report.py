#!/usr/bin/env python3
"""report.py RUN [RUN …] [-o report.html]: reports the results of runs, in one HTML file that needs no internet access.

The script reads the files of the run and asks `finch show`, so it also works for a run in progress and for a copy of
its folder. If there are several runs, the progress figure shows all of them, and a table lists the differences of their
configurations. The figures of individuals then show only the best run. Needs h5py, numpy, pandas, plotly, Pillow,
PyYAML and scikit-learn (tools/install.sh --report installs them).
"""
import argparse
import os
import pathlib
import signal
import sys
import threading

try:
    from reporting.program import NoAnswer
    from reporting.run import NoRun, is_running, read_run
    from reporting.sections import build
except ModuleNotFoundError as error:
    sys.exit(f"report.py needs the Python package {error.name} (h5py, numpy, pandas, plotly, Pillow, PyYAML, scikit-learn are all that it needs; "
             f"on Debian tools/install.sh --report installs them for /usr/bin/python3; then start /usr/bin/python3 {sys.argv[0]})")


def is_replaceable(path):
    """False for a link, a device or a FIFO: the page is written into these."""
    return not path.is_symlink() and (path.is_file() or not path.exists())


def write(given, runs, reload_seconds=0):
    """Replaces the file, so that a browser never reads half of it. Returns the number of figures."""
    page = build(runs)
    text = page.text_of_page(given.plotly, reload_seconds)
    if not is_replaceable(given.output):
        given.output.write_text(text, encoding="utf-8")
        return page.figures
    part = given.output.with_name(f".{given.output.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(given.output)
    finally:
        part.unlink(missing_ok=True)
    return page.figures


def has_begun(path):
    """False if a run is in progress and has no archive yet."""
    return (path / "population.h5").is_file() or not path.is_dir() or not is_running(path)


def follow(given):
    """Writes the file every `interval` seconds until all runs have ended, or until SIGINT or SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    while True:
        if all(map(has_begun, given.runs)):
            runs = [read_run(path) for path in given.runs]
            if ended.is_set() or all(run.state != "running" for run in runs):
                return write(given, runs)
            write(given, runs, given.interval)
        if ended.wait(given.interval) and not all(map(has_begun, given.runs)):
            raise NoRun("stopped before the run had an archive")


def seconds(text):
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError("expected a number of seconds above 0")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path, metavar="RUN", help="a run's directory")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("report.html"))
    parser.add_argument("--plotly", choices=["inline", "cdn"], default="inline",
                        help="cdn: a small file that loads the plotting library from cdn.plot.ly when it is opened")
    parser.add_argument("--follow", action="store_true", help="rewrite the file until the run ends or Ctrl-C; the page reloads itself")
    parser.add_argument("--interval", type=seconds, default=60, metavar="SECONDS", help="time between two writes of --follow (default: 60)")
    given = parser.parse_args()
    try:
        count = follow(given) if given.follow else write(given, [read_run(path) for path in given.runs])
    except (NoRun, NoAnswer) as problem:
        sys.exit(str(problem))
    except OSError as problem:
        sys.exit(f"{given.output}: cannot be written ({problem.strerror})")
    size = f", {given.output.stat().st_size / 1e6:.1f} MB" if given.output.is_file() else ""
    print(f"{given.output}: {count} figures{size}", file=sys.stdout if is_replaceable(given.output) else sys.stderr)


if __name__ == "__main__":
    main()
