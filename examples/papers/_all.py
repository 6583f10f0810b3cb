"""All scripts on the papers, one after the other: figures, tables, what they print, CPU seconds.

    python examples/papers/_all.py [--quick] [--output FOLDER] [NAME ...]

Without names all scripts run. The pages in docs/papers show what lies in examples/papers/results:
that is where the output of a run without ``--quick`` goes, unless ``--output`` says otherwise. What
a script prints is in NAME.txt, and its time of the processor in seconds.csv.
"""

from pathlib import Path

from _papers import run_all

HERE = Path(__file__).parent
SCRIPTS = {path.stem: path for path in sorted(HERE.glob("[!_]*.py"))}
SCRIPTS["gradient_noise"] = HERE.parent / "benchmarks" / "gradient_noise.py"  # a figure of Putcha's

if __name__ == "__main__":
    run_all(__doc__, SCRIPTS, HERE / "results")
