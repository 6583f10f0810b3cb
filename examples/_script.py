"""What all scripts share: their options, the data sets, and where tables and figures are written.

Every script takes ``--quick``, a small share of its work that shows that it runs and no more than
that, and ``--output FOLDER``, without which it only prints.
"""

import argparse
import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("SKBAYES_SG_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Parser(argparse.ArgumentParser):
    """Options of a script: those of all, and its own.

    ``add_argument`` takes, beside ``default``, the value ``quick`` that stands for it under
    ``--quick``.
    """

    def __init__(self, doc):
        super().__init__(description=doc.splitlines()[0])
        self._quick = {}
        self.add_argument("--quick", action="store_true", help="a small share of the work")
        self.add_argument(
            "--output", type=Path, metavar="FOLDER", help="where to write tables and figures"
        )

    def add_argument(self, *names, quick=None, **how):
        action = super().add_argument(*names, **how)
        if quick is not None:
            self._quick[action.dest] = quick
        return action

    def parse_known_args(self, args=None, namespace=None):
        if "--quick" in (sys.argv[1:] if args is None else args):
            self.set_defaults(**self._quick)
        found, rest = super().parse_known_args(args, namespace)
        if found.output is not None:
            found.output.mkdir(parents=True, exist_ok=True)
        return found, rest


def data_file(name):
    """A data set as arrays by name; None where it is not at hand."""
    path = DATA / name
    return np.load(path) if path.exists() else None


def needed(name):
    """A data set, without which the script has nothing to do: it says so and ends."""
    data = data_file(name)
    if data is None:
        print(f"{DATA / name} is not there: set SKBAYES_SG_DATA to the folder of {name}.")
        raise SystemExit(0)
    return data


def has_torch():
    """Whether torch is there; it says how to install it where it is not."""
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed: pip install 'skbayes_sg[torch]'")
        return False
    return True


def some(n, *arrays, seed=0):
    """`n` rows of arrays, at random; all of them if there are no more."""
    n_rows = arrays[0].shape[0]
    rows = np.sort(np.random.default_rng(seed).permutation(n_rows)[:n])
    return [array[rows] for array in arrays]


def save_figure(folder, name, made):
    """Write a figure of matplotlib to ``<folder>/<name>.png``."""
    made.savefig(folder / f"{name}.png", dpi=80)
    print(f"written: {folder / name}.png")


# -- all scripts of a folder, one after the other ------------------------------------------------


def run(path, options, folder):
    """What a script prints, and the seconds of processor time that it took."""
    command = [sys.executable, str(path), *options]
    command += [] if folder is None else ["--output", str(folder)]
    before = os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8")
    after = os.times()
    spent = after.children_user + after.children_system
    seconds = spent - before.children_user - before.children_system
    lines = [line for line in done.stdout.splitlines() if not line.startswith("written:")]
    return "\n".join([*lines, ""]), seconds


def note(path, name, seconds):
    """Write the seconds of a script into the table of all scripts."""
    known = {}
    if path.exists():
        known = dict(list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:])
    known[name] = f"{seconds:.0f}"
    rows = [("script", "seconds"), *sorted(known.items())]
    path.write_text("".join(f"{a},{b}\n" for a, b in rows), encoding="utf-8")


def run_all(doc, scripts, results, arguments=None, left_out=()):
    """Run scripts, a dict of paths; without ``--quick`` and ``--output`` they write to `results`.

    What a script prints is in ``<folder>/NAME.txt``, and its seconds in ``<folder>/seconds.csv``.
    Without ``--quick`` a script gets its `arguments`, a dict of lists. The names `left_out` run
    only if they are asked for.
    """
    parser = Parser(doc)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scripts, by default all")
    options = parser.parse_args()
    folder = options.output or (None if options.quick else results)
    for name in options.names or [name for name in scripts if name not in left_out]:
        print(f"{name} ...", flush=True)
        own = ["--quick"] if options.quick else (arguments or {}).get(name, [])
        text, seconds = run(scripts[name], own, folder)
        print(f"{text}{name}: {seconds:.0f} seconds of processor time", flush=True)
        missing = "is not installed" in text or "is not there" in text
        if folder is not None and not missing:
            (folder / f"{name}.txt").write_text(text, encoding="utf-8")
            note(folder / "seconds.csv", name, seconds)
