"""Tables on the terminal, the same rows as JSON, and the machine they were measured on."""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _measured import RESULTS, filled
from _script import Parser, data_file, needed, run_all, save_figure, some

__all__ = [
    "RESULTS",
    "Parser",
    "data_file",
    "filled",
    "machine",
    "needed",
    "run_all",
    "save",
    "save_figure",
    "show",
]
__all__ += ["some"]

PACKAGES = ("skbayes_sg", "numpy", "scipy", "scikit-learn", "numba")


def machine():
    """What the figures depend on."""
    import joblib

    found = {"cores": joblib.cpu_count(), "python": platform.python_version()}
    found["processor"] = platform.processor() or platform.machine()
    return found | {name: version(name) for name in PACKAGES}


def _cell(value):
    if isinstance(value, (float, np.floating)):
        return f"{value:.3g}" if abs(value) < 1e4 else f"{value:.0f}"
    return str(value)


def show(rows):
    """Print rows (dicts with the same keys) as a table."""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def save(folder, name, rows):
    """Write rows and machine to ``<folder>/<name>.json``, if there is a folder."""
    if folder is not None:
        text = json.dumps({"machine": machine(), "rows": rows}, indent=1, default=float)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"written: {folder / name}.json")
