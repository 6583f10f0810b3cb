"""What the docstrings of public objects say, read as numpydoc has them."""

import importlib
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

PUBLIC_MODULES = [
    "skbayes_sg",
    "skbayes_sg.combine",
    "skbayes_sg.custom",
    "skbayes_sg.diagnostics",
    "skbayes_sg.datasets",
    "skbayes_sg.diagnostics.convergence",
    "skbayes_sg.inspection.full_scores",
    "skbayes_sg.inspection.gradient_noise",
    "skbayes_sg.dynamics",
    "skbayes_sg.exceptions",
    "skbayes_sg.factorisation",
    "skbayes_sg.gradients",
    "skbayes_sg.metrics",
    "skbayes_sg.model_selection",
    "skbayes_sg.models",
    "skbayes_sg.inspection.known_posteriors",
    "skbayes_sg.multilevel",
    "skbayes_sg.plots",
    "skbayes_sg.posterior",
    "skbayes_sg.postprocess",
    "skbayes_sg.priors",
    "skbayes_sg.schedules",
    "skbayes_sg.subsampling",
    "skbayes_sg.topics",
]
UNDERLINE = re.compile(r"^-{3,}$")
NAMED = re.compile(r"``?((?:tests|examples)/[a-z_0-9/]+\.py)(?:::(test_\w+))?``?")


def sections(docstring):
    """The lines of each section, by its title."""
    found, title, lines = {}, "", inspect.cleandoc(docstring).splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if UNDERLINE.match(below) and len(below) == len(line):
            title = line
        elif not UNDERLINE.match(line):
            found.setdefault(title, []).append(line)
    return found


def entries(docstring, title):
    """The names of a section such as "Parameters", and the type of each as it is written."""
    lines = "\n".join(sections(docstring).get(title, [])).replace("\\\n", "").splitlines()
    items = [line.partition(" : ") for line in lines if line and not line[0].isspace()]
    return {name: kind for names, _, kind in items for name in names.split(", ")}


def public_objects(kind):
    """(name, object) of all that public modules export, without duplicates."""
    found = {}
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        for member in module.__all__:
            value = getattr(module, member)
            if kind(value) and value.__module__.startswith("skbayes_sg"):
                found[f"{value.__module__}.{member}"] = value
    return found.items()


def own_methods(cls):
    """Public methods and properties that the class itself defines."""
    for name, value in vars(cls).items():
        function = value.fget if isinstance(value, property) else value
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def missing(text):
    """Tests and scripts that a text names although there are none."""
    return [
        (file, name)
        for file, name in NAMED.findall(text)
        if not (ROOT / file).is_file()
        or (name and f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8"))
    ]
