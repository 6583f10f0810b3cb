"""Writes sklearn.inv, the names of scikit-learn that pages can refer to, from what is installed.

    python docs/_inventories/make.py

scikit-learn's own inventory is on its site only; this one lets the documentation be built offline.
"""

import zlib
from pathlib import Path

import sklearn
from sklearn.utils.discovery import all_displays, all_estimators, all_functions

HEADER = f"""# Sphinx inventory version 2
# Project: scikit-learn
# Version: {sklearn.__version__}
# The remainder of this file is compressed using zlib.
"""


def public(module):
    """The module without its private parts, as users import it."""
    return ".".join(part for part in module.split(".") if not part.startswith("_"))


def lines():
    for kind, found in (
        ("class", [*all_estimators(), *all_displays()]),
        ("function", all_functions()),
    ):
        for name, what in found:
            full = f"{public(what.__module__)}.{name}"
            yield f"{full} py:{kind} 1 modules/generated/{full}.html -\n"


if __name__ == "__main__":
    body = zlib.compress("".join(sorted(set(lines()))).encode(), 9)
    (Path(__file__).parent / "sklearn.inv").write_bytes(HEADER.encode() + body)
