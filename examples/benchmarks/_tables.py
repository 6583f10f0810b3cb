"""Tables on the terminal, the same rows as JSON, and the machine they were measured on."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np

PACKAGES = ("skbayes_sg", "numpy", "scipy", "scikit-learn", "numba")


def machine():
    """What the figures depend on."""
    import joblib

    return {
        "cores": joblib.cpu_count(), "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(), **{name: version(name) for name in PACKAGES},
    }  # fmt: skip


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


def save(name, rows):
    """Write rows and machine to ``<name>.json`` in the current folder."""
    Path(f"{name}.json").write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    print(f"written: {name}.json")
