"""Docstrings say what is so: their examples run, and they name every parameter and attribute."""

import doctest
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest
from docstrings import NAMED, ROOT, entries, missing, own_methods, public_objects, sections

import skbayes_sg

LONG = {
    f"skbayes_sg.{name}"
    for name in (
        "estimators.mlp",
        "factorisation.sparse",
        "metrics.scores",
        "networks.posterior",
    )
}
MODULES = [
    pytest.param(info.name, marks=[pytest.mark.slow] if info.name in LONG else [])
    for info in pkgutil.walk_packages(skbayes_sg.__path__, "skbayes_sg.")
    if not info.name.endswith("__main__") and not info.name.startswith("skbayes_sg.torch.")
]  # those of torch are in tests/of_torch


CLASSES = [pytest.param(value, id=name) for name, value in public_objects(inspect.isclass)]
FUNCTIONS = [pytest.param(value, id=name) for name, value in public_objects(inspect.isfunction)]
METHODS = [
    pytest.param(function, cls, id=f"{name}.{method}")
    for name, cls in public_objects(inspect.isclass)
    for method, function in own_methods(cls)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    with np.printoptions():  # what one example sets is not for the next
        assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


@pytest.mark.parametrize("cls", CLASSES)
def test_classes_document_their_parameters_and_no_others(cls):
    signature = inspect.signature(cls.__init__).parameters.values()
    named = {p.name: p for p in signature if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    del named["self"]
    assert list(entries(cls.__doc__, "Parameters")) == list(named)


@pytest.mark.parametrize("cls", CLASSES)
def test_documented_defaults_are_the_defaults(cls):
    for name, kind in entries(cls.__doc__, "Parameters").items():
        _, said, default = kind.partition("default=")
        if said:
            assert default.strip('"') == str(inspect.signature(cls).parameters[name].default)


def undocumented(function):
    """What the section on parameters has too little or too much; None if they agree."""
    named = [name for name in inspect.signature(function).parameters if name != "self"]
    documented = list(entries(function.__doc__, "Parameters"))
    return None if documented == named else (named, documented)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_document_their_parameters(function):
    assert undocumented(function) is None


@pytest.mark.parametrize(("method", "cls"), METHODS)
def test_methods_document_their_parameters(method, cls):
    above = [vars(base).get(method.__name__) for base in cls.__mro__[1:]]
    above = [base for base in above if callable(base) and base.__doc__]  # kernels have none
    if any(undocumented(base) is None for base in above):
        assert method.__doc__  # what an overridden method is given stands in the base
    else:
        assert undocumented(method) is None


@pytest.mark.parametrize("cls", CLASSES)
def test_classes_that_users_make_have_an_example(cls):
    abstract = {
        "Combiner",
        "Dynamics",
        "Gradient",
        "Hyperprior",
        "Metropolis",
        "Model",
        "PositivePrior",
        "Prior",
        "Sampler",
        "Schedule",
        "Subsampling",
    }
    if not issubclass(cls, Exception) and cls.__name__ not in abstract:
        assert "Examples" in sections(cls.__doc__)


OTHER_FORM = re.compile(r"\b(?:tests|examples)/\S*(?: \S+)?\.py|\w+\.py\s*::")


def test_tests_and_scripts_that_the_package_names_exist():
    n_named = 0
    for path in (ROOT / "skbayes_sg").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert missing(text) == [], path.name
        assert OTHER_FORM.search(NAMED.sub("", text)) is None, path.name
        n_named += len(NAMED.findall(text))
    assert n_named > 80


CLAIM = re.compile(
    r"unbiased for|\bexact (?:for|on|at|up to)\b|\d % too (?:large|small)|\bno bias\b|times faster"
)


@pytest.mark.parametrize("public", CLASSES + FUNCTIONS)
def test_claims_name_what_backs_them(public):
    parts = sections(public.__doc__)
    text = " ".join(" ".join(parts[title]) for title in parts if title != "Examples")
    assert NAMED.search(text) or not CLAIM.search(re.sub(r"\s+", " ", text))


def test_names_that_do_not_exist_are_seen():
    file = "tests/test_docstrings.py"
    assert missing(f"``{file}::test_examples_run`` and ``{file}``") == []
    assert missing(f"``{file}::test_examples``") == [(file, "test_examples")]
    assert missing("``examples/none.py``") == [("examples/none.py", "")]


def test_the_sections_are_read_as_they_are_meant():
    text = """One line.

    Parameters
    ----------
    a, b : int, \\
            default=1
        Text : with a colon.
    c : {"x", "y"}, default="x"

    Returns
    -------
    float
    """
    assert list(entries(text, "Parameters")) == ["a", "b", "c"]
    assert entries(text, "Parameters")["b"].split("default=")[1] == "1"
    assert entries(text, "Attributes") == {}


KERNEL_SIDE = ("dynamics", "factorisation", "gradients", "kernels", "models", "subsampling")
UNTYPED = tuple(f"skbayes_sg.{name}" for name in (*KERNEL_SIDE, "topics", "inspection.known"))
CONSTRUCTORS = [
    pytest.param(cls.__init__, id=name)
    for name, cls in public_objects(inspect.isclass)
    if "__init__" in vars(cls) and not issubclass(cls, Exception)
]
TYPED = [
    row
    for row in CONSTRUCTORS + FUNCTIONS + [pytest.param(m.values[0], id=m.id) for m in METHODS]
    if not row.id.startswith(UNTYPED) and not row.id.startswith("skbayes_sg.priors")
]


@pytest.mark.parametrize("function", TYPED)
def test_signatures_that_users_see_are_typed(function):
    signature = inspect.signature(inspect.unwrap(function))
    lacking = {
        name
        for name, p in signature.parameters.items()
        if p.annotation is p.empty and name not in ("self", "cls")
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }  # fmt: skip
    assert lacking == set()
    if function.__name__ != "__init__":
        assert signature.return_annotation is not signature.empty


PREDICTING = [row for row in CLASSES if hasattr(row.values[0], "predict")]


@pytest.mark.parametrize("cls", PREDICTING)
def test_standard_deviations_are_returned_only_where_they_are_asked_for(cls):
    signature = inspect.signature(inspect.unwrap(cls.predict))
    both = np.ndarray | tuple[np.ndarray, np.ndarray]
    wanted = both if "return_std" in signature.parameters else np.ndarray
    assert signature.return_annotation == wanted
