"""Docstrings of the modules that import torch: their examples run, and name every parameter."""

import doctest
import importlib
import inspect
import pkgutil
import runpy
import sys
from pathlib import Path

import pytest
from docstrings import entries, own_methods

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import skbayes_sg.torch as package

MODULES = [info.name for info in pkgutil.iter_modules(package.__path__, "skbayes_sg.torch.")]
CLASSES = [getattr(package, name) for name in package.__all__]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


def test_examples_of_the_page_run():
    page = Path(__file__).parents[2] / "docs" / "networks_in_torch.rst"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert (found.failed, found.attempted > 10) == (0, True)


@pytest.mark.parametrize("cls", CLASSES)
def test_classes_document_their_parameters_and_defaults(cls):
    signature = inspect.signature(cls).parameters
    documented = entries(cls.__doc__, "Parameters")
    assert set(documented) == set(signature)
    for name, kind in documented.items():
        _, said, default = kind.partition("default=")
        if said:
            assert default.strip('"') == str(signature[name].default), name


@pytest.mark.parametrize("cls", CLASSES)
def test_methods_document_their_parameters(cls):
    for name, method in own_methods(cls):
        named = [p for p in inspect.signature(method).parameters if p != "self"]
        assert list(entries(method.__doc__, "Parameters")) == named, name


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
def test_classes_have_the_attributes_that_they_document():
    from sklearn.datasets import load_iris
    from torch import nn

    X, y = load_iris(return_X_y=True, as_frame=True)  # which has names
    options = {"n_draws": 4, "n_chains": 1, "start_steps": 5, "n_warmup": 1, "thin": 1}
    options |= {"random_state": 0}
    for cls, module in zip(CLASSES[:2], (nn.Linear(4, 3), nn.Linear(4, 1)), strict=True):
        model = cls(module, **options).fit(X, y)
        for names in entries(cls.__doc__, "Attributes"):
            assert hasattr(model, names), names


def test_the_example_of_the_gallery_runs_with_torch(monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    script = Path(__file__).parents[2] / "examples/gallery/models/network_in_torch.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--quick"])
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    areas = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[1:]]
    assert min(areas) > 0.9
