"""Docstrings say what is so: their examples run, and they name every parameter and attribute."""

import doctest
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest

import skbayes_sg
from skbayes_sg import BayesianLogisticRegression

PUBLIC_MODULES = [
    "skbayes_sg",
    "skbayes_sg.combine",
    "skbayes_sg.inspection.calibration",
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
MODULES = [
    info.name
    for info in pkgutil.walk_packages(skbayes_sg.__path__, "skbayes_sg.")
    if not info.name.endswith("__main__")
]
UNDERLINE = re.compile(r"^-{3,}$")


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


def test_fitted_attributes_are_the_documented_ones():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    model = BayesianLogisticRegression(n_draws=10, n_chains=2, thin=1, n_warmup=100, random_state=0)
    with pytest.warns(skbayes_sg.exceptions.SamplerConvergenceWarning):
        model.fit(X, rng.integers(0, 2, 60))
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert public == set(entries(type(model).__doc__, "Attributes"))


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
