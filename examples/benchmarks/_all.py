"""All benchmarks, one after the other: tables, what they print, seconds of processor time.

    python examples/benchmarks/_all.py [--quick] [--output FOLDER] [NAME ...]

Without names all scripts run but the gauntlet, which `make gauntlet` runs, and those that need
torch. README and documentation show what lies in examples/benchmarks/results: that is where the
output of a run without ``--quick`` goes, unless ``--output`` says otherwise. What a script prints
is in NAME.txt, its table in NAME.json, and its time of the processor in seconds.csv.
"""

from pathlib import Path

from _tables import run_all

HERE = Path(__file__).parent
LEFT_OUT = {"gauntlet", "gradient_noise", "torch_step", "torch_uncertainty"}
SCRIPTS = {path.stem: path for path in sorted(HERE.glob("[!_]*.py")) if path.stem not in LEFT_OUT}

if __name__ == "__main__":
    run_all(__doc__, SCRIPTS, HERE / "results")
