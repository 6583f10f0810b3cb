"""The layers of the package, and the imports of its files."""

import ast
from pathlib import Path

from skbayes_sg._base import jit

PACKAGE = Path(jit.__file__).parents[1]
STOREYS = """
demo torch
custom inspection model_selection
estimators
multilevel shards topics factorisation networks shrinkage groups densities
recipe
importance
geometry
engine
models gradients subsampling dynamics schedules
kernels
priors
posterior
plots
combine postprocess metrics datasets
diagnostics
_base
exceptions
"""
"""Of the package, from the top to the ground; names on one line do not know each other."""

HEIGHT = {name: -n for n, line in enumerate(STOREYS.split("\n")) for name in line.split()}
TOP = {"__init__", "__main__"}  # of the package: they may import everything


def module_of(path):
    """The dotted name of a file, relative to the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


FILES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(module, source=None):
    """(line, module) of the modules of the package that a file imports, in functions as well."""
    path = FILES[module]
    folder = path.relative_to(PACKAGE).parts[:-1]
    for node in ast.walk(ast.parse(source or path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        base = [*folder[: len(folder) + 1 - node.level], *(node.module or "").split(".")]
        for alias in node.names:
            name = ".".join(part for part in [*base, alias.name] if part)
            yield node.lineno, name if name in FILES else name.rpartition(".")[0] or "__init__"


def unit(module):
    """The folder, or the file beside the folders, that a module belongs to."""
    return module.partition(".")[0]


def upward(module, source=None):
    """Imports of a file that do not point down."""
    own = unit(module)
    return [
        f"{FILES[module]}:{line}: {own} imports {other}"
        for line, other in imported(module, source)
        if own not in TOP and unit(other) != own
        and HEIGHT.get(unit(other), 1) >= HEIGHT[own]
    ]  # fmt: skip
