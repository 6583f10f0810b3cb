"""All benchmarks, one after the other: tables, what they print, seconds of processor time.

    python examples/benchmarks/_all.py [--quick] [--output FOLDER] [NAME ...]

Without names all scripts run but the gauntlet, which `make gauntlet` runs, those that need torch or
NumPyro, those that compare with references and whose numbers no page shows, and that of networks,
which takes more than an hour. README and documentation show what lies in
examples/benchmarks/results: that is where the output of a run without ``--quick`` goes, unless
``--output`` says otherwise. What a script prints is in NAME.txt, its table in NAME.json, and its
time of the processor in seconds.csv.
"""

from pathlib import Path

from _tables import RESULTS, filled, run_all

HERE = Path(__file__).parent
ARGUMENTS = {  # where the defaults of a script take longer than a table needs
    "hard_table": ["--seeds", "1"],
    "regression": ["--repeats", "2"],
    "speed": ["--repeats", "3", "--no-reference"],
    "topics": ["--topics", "20", "50"],
}
SCRIPTS = {path.stem: path for path in sorted(HERE.glob("[!_]*.py"))}
LEFT_OUT = {
    *("gauntlet", "gradient_noise", "networks", "torch_device", "torch_step", "torch_uncertainty"),
    *("crossed_levels", "horseshoe_references", "linear_references", "networks_and_hmc"),
    "reference_posteriors",
}

if __name__ == "__main__":
    run_all(__doc__, SCRIPTS, RESULTS, ARGUMENTS, LEFT_OUT)
    page = HERE.parents[1] / "README.md"  # shows some of them
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
