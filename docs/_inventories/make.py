"""Writes sklearn.inv, the names of scikit-learn that pages can refer to, from what is installed.

    python docs/_inventories/make.py

scikit-learn's own inventory is on its site only; this one lets the documentation be built offline.
"""

import importlib
import inspect
import zlib
from pathlib import Path

import sklearn

HEADER = f"""# Sphinx inventory version 2
# Project: scikit-learn
# Version: {sklearn.__version__}
# The remainder of this file is compressed using zlib.
"""
NESTED = ["base", "feature_extraction.image", "feature_extraction.text", "metrics.pairwise"]


def public():
    """(name as users import it, object) of all classes and functions."""
    modules = ["sklearn", *(f"sklearn.{name}" for name in [*sklearn.__all__, *NESTED])]
    for path in modules:
        try:
            module = importlib.import_module(path)
        except ImportError:  # a function of scikit-learn itself
            continue
        for name in getattr(module, "__all__", [n for n in dir(module) if not n.startswith("_")]):
            found = vars(module).get(name)  # without what asks for experimental imports
            home = getattr(found, "__module__", "")
            if home.startswith("sklearn") and (hasattr(module, "__all__") or home == path):
                yield f"{path}.{name}", found


def lines():
    for name, found in public():
        kind = "class" if inspect.isclass(found) else "function"
        if callable(found):
            yield f"{name} py:{kind} 1 modules/generated/{name}.html -\n"


if __name__ == "__main__":
    body = zlib.compress("".join(sorted(set(lines()))).encode(), 9)
    (Path(__file__).parent / "sklearn.inv").write_bytes(HEADER.encode() + body)
