"""All scripts on the papers, one after the other: figures, tables, what they print, CPU seconds.

    python examples/papers/_all.py [--quick] [--output FOLDER] [NAME ...]

Without names all scripts run. The pages in docs/papers show what lies in examples/papers/results:
that is where the output of a run without ``--quick`` goes, unless ``--output`` says otherwise. What
a script prints is in NAME.txt, and its time of the processor in seconds.csv.
"""

import csv
import os
import subprocess
import sys
from pathlib import Path

from _papers import Parser

HERE = Path(__file__).parent
SCRIPTS = {path.stem: path for path in sorted(HERE.glob("[!_]*.py"))}
SCRIPTS["gradient_noise"] = HERE.parent / "benchmarks" / "gradient_noise.py"  # a figure of Putcha's


def run(name, quick, folder):
    """What a script prints, and the seconds of processor time that it took."""
    command = [sys.executable, str(SCRIPTS[name]), *["--quick"] * quick]
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


def main():
    parser = Parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scripts, by default all")
    options = parser.parse_args()
    folder = options.output or (None if options.quick else HERE / "results")
    for name in options.names or SCRIPTS:
        print(f"{name} ...", flush=True)
        text, seconds = run(name, options.quick, folder)
        print(f"{text}{name}: {seconds:.0f} seconds of processor time", flush=True)
        missing = "is not installed" in text or "is not there" in text
        if folder is not None and not missing:
            (folder / f"{name}.txt").write_text(text, encoding="utf-8")
            note(folder / "seconds.csv", name, seconds)


if __name__ == "__main__":
    main()
