"""The pieces that the page "Extending" adds, made part of the package for a test.

Either their modules are loaded beside those of the package, as any module with a piece may be; or
they are registered in a copy of the package and of the tests, as the page says.
"""

import importlib.util
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.rst"
BLOCK = re.compile(r"^\.\. code-block:: python\n   :caption: (.+)\n\n((?:   .*\n|\n)+)", re.M)
LISTS = {  # rows of each kind belong to a list of `cases.py`
    "DynamicsCase": "DYNAMICS",
    "GradientCase": "GRADIENTS",
    "SubsamplingCase": "SUBSAMPLING",
    "ModelCase": "MODELS",
    "PriorCase": "PRIORS",
}
STRINGS = {"dynamics": "DYNAMICS", "gradients": "GRADIENTS", "subsampling": "SUBSAMPLING"}


def blocks(page=PAGE):
    """(caption, code) of the code blocks of a page."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(caption, textwrap.dedent(code)) for caption, code in found]


def modules():
    """(path, code) of the modules of the page."""
    return [block for block in blocks() if not block[0].startswith("tests/")]


def load_modules(folder):
    """Import the modules of the page, but for the prior, as the parts of the package they are."""
    names = []
    for caption, code in modules():
        name = caption.removesuffix(".py").replace("/", ".")
        if ".priors." in name:
            continue  # priors are compiled into one kernel, from the table of families
        path = Path(folder) / f"{name}.py"
        path.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        names.append(name)
    return names


def register_all(folder):
    """Do in a copy of package and tests what the page says."""
    for caption, code in modules():
        (folder / caption).write_text(code, encoding="utf-8")
        kind = re.search(r'__all__ = \["(\w+)"\]', code)[1]
        _, group, name = caption.removesuffix(".py").split("/")
        if group != "estimators":
            line = f'from .{name} import {kind}\n\n__all__ += ["{kind}"]\n'
            if group in STRINGS:
                line += f'{STRINGS[group]}["{name}"] = {kind}\n'
            _append(folder / "skbayes_sg" / group / "__init__.py", line)
        if group == "priors":
            _insert(folder, "priors/families.py", "PRIORS = {", f"from .{name} import {kind}\n\n")
            _insert(folder, "priors/families.py", '"normal": Normal', f'"{name}": {kind}, ')
    path = folder / "tests" / "support" / "cases.py"
    for caption, code in blocks():
        if caption == "tests/support/cases.py":
            kind = next(kind for kind in LISTS if f"{kind}(" in code)
            rows = f"{LISTS[kind]} = {{\n"
            text = path.read_text(encoding="utf-8")
            assert text.count(f"\n{rows}") == 1
            path.write_text(text.replace(f"\n{rows}", f"\n{rows}{code}"), encoding="utf-8")


def _append(path, line):
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}")


def _insert(folder, file, place, text):
    path = folder / "skbayes_sg" / file
    before, found, after = path.read_text(encoding="utf-8").partition(place)
    assert found, f"{file} has no {place!r}"
    path.write_text(before + text + found + after, encoding="utf-8")
