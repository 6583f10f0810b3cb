"""The pieces that the page "Extending" adds, made part of the package for a test.

As a plugin of pytest (``-p documented``) it also adds their rows to `cases`, so that the generic
tests run over them.
"""

import importlib.util
import re
import sys
import textwrap
from pathlib import Path

from skbayes_sg import dynamics, gradients, models, subsampling

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.rst"
BLOCK = re.compile(r"^\.\. code-block:: python\n   :caption: (.+)\n\n((?:   .*\n|\n)+)", re.M)
REGISTRIES = {
    "dynamics": (dynamics, dynamics.DYNAMICS),
    "gradients": (gradients, gradients.GRADIENTS),
    "subsampling": (subsampling, subsampling.SUBSAMPLING),
    "models": (models, {}),
}


def blocks(page=PAGE):
    """(caption, code) of the code blocks of a page."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(caption, textwrap.dedent(code)) for caption, code in found]


def load_modules(folder):
    """Import the modules of the page as the parts of the package that they are meant to be."""
    names = []
    for caption, code in blocks():
        if caption.startswith("tests/"):
            continue
        name = caption.removesuffix(".py").replace("/", ".")
        path = Path(folder) / f"{name}.py"
        path.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        names.append(name)
    return names


def register(names):
    """What the page says to do in the folders' ``__init__``."""
    for name in names:
        _, folder, file = name.split(".")
        if folder in REGISTRIES:
            package, registry = REGISTRIES[folder]
            (kind,) = sys.modules[name].__all__
            setattr(package, kind, getattr(sys.modules[name], kind))
            package.__all__.append(kind)
            registry[file] = getattr(package, kind)


def add_rows():
    """Add the page's rows to the lists of all pieces."""
    import cases

    lists = {
        cases.DynamicsCase: [cases.DYNAMICS, cases.LANGEVIN],
        cases.GradientCase: [cases.GRADIENTS],
        cases.SubsamplingCase: [cases.SUBSAMPLING],
        cases.ModelCase: [cases.MODELS],
    }
    for caption, code in blocks():
        if caption == "tests/support/cases.py":
            row = eval("{" + code + "}", vars(cases))
            for rows in lists[type(*row.values())]:
                rows |= row


def pytest_addoption(parser):
    """Where the modules are written to."""
    parser.addoption("--documented", metavar="FOLDER")


def pytest_configure(config):
    """Make the pieces part of the package before tests are collected."""
    sys.path.insert(0, str(Path(__file__).parent))
    register(load_modules(config.getoption("--documented")))
    add_rows()
