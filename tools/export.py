#!/usr/bin/env python3
"""export.py RUN --format FORMAT [-o OUTPUT]: exports a run for other programs.

pytorch  the best network as a folder with model.py, its weights (model.pt, model.safetensors) and example.py. Needs
         only h5py, numpy and the program finch
onnx     the same, and model.onnx. Needs PyTorch
trace    Chrome's trace events (JSON), for Perfetto and chrome://tracing. Each worker is a process, each of its slots
         is a lane. Each evaluation is a slice that contains slices for its epochs. A separate process shows the starts
         and the events of the run
graphml  the ancestry of the individuals, for networkx, Gephi and yEd. Each individual is a node. Edges come from the
         parents (`parent`), from the individual that passed on its weights (`weights`), and from the individual that
         was retried (`retry`)
optuna   a study in an Optuna journal, for optuna.load_study and optuna-dashboard. Each individual is a trial

trace, graphml and optuna read only population.h5, so they also work for a run in progress and for a copy of its folder.
They need h5py, numpy, pandas and PyYAML (tools/install.sh --report installs them); graphml also needs networkx, and
optuna needs optuna 4 or later. For tables in spreadsheets and pandas, use `finch export`.
"""
import argparse
import pathlib
import sys

NETWORKS = ("pytorch", "onnx")
INDIVIDUALS = ("trace", "graphml", "optuna")


def export_network(given):
    from exporting import network
    from reporting.program import NoAnswer

    try:
        return network.write(given.run, given.output, with_onnx=given.format == "onnx")
    except (network.NoNetwork, NoAnswer) as problem:
        sys.exit(str(problem))


def export_individuals(given):
    from exporting import individuals
    from reporting.run import NoRun, read_run

    try:
        run = read_run(given.run)
        getattr(individuals, f"write_{given.format}")(run, given.output)
    except NoRun as problem:
        sys.exit(str(problem))
    except OSError as problem:
        sys.exit(f"{given.output}: cannot be written ({problem.strerror})")
    return f"{given.output}: {len(run.individuals)} individuals"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, metavar="RUN", help="a run's directory")
    parser.add_argument("--format", choices=NETWORKS + INDIVIDUALS, required=True)
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="OUTPUT",
                        help="a file, which is replaced; of a network a new folder (default: NAME-pytorch, NAME as in runs/NAME)")
    given = parser.parse_args()
    if given.format in INDIVIDUALS and given.output is None:
        parser.error(f"--format {given.format} needs -o FILE")
    try:
        print(export_network(given) if given.format in NETWORKS else export_individuals(given))
    except ModuleNotFoundError as error:
        sys.exit(f"export.py --format {given.format} needs the Python package {error.name}: pip install {error.name}; on Debian tools/install.sh --report "
                 f"installs most packages for /usr/bin/python3; then start /usr/bin/python3 {sys.argv[0]}")


if __name__ == "__main__":
    main()
