"""Modules, data and laws that the tests of torch share."""

import numpy as np
import pytest
import torch
from torch import nn

from skbayes_sg.torch.flat import FlatModule
from skbayes_sg.torch.minibatch import MinibatchGradient
from skbayes_sg.torch.priors import groups_of
from skbayes_sg.torch.rows import TensorRows
from skbayes_sg.torch.target import ClassLikelihood, ModuleTarget, NormalLikelihood

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def on_a_gpu(function):
    """Marks of a test that needs a GPU."""
    skip = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    return pytest.mark.cuda(skip(function))


def network(n_in=3, n_out=2, width=4, seed=0):
    """One hidden layer in double precision."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, n_out)).double()


def rows_of(y, n_in=3, weight=None, seed=0):
    """Standard normal columns with given targets."""
    X = np.random.default_rng(seed).standard_normal((len(y), n_in))
    weight = None if weight is None else torch.as_tensor(weight, dtype=torch.float64)
    return TensorRows(torch.from_numpy(X), torch.as_tensor(y), weight, CPU)


def law(kind="classes", prior="normal", temperature=1.0, weight=None, n_rows=6):
    """A target of a small network."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, n_rows) if kind == "classes" else rng.normal(size=(n_rows, 2))
    likelihood = ClassLikelihood(2) if kind == "classes" else NormalLikelihood("infer")
    flat = FlatModule(network(), CPU, likelihood.n_extra)
    if likelihood.n_extra:
        flat.theta[-1] = -0.3
    rows = rows_of(y, weight=weight)
    return ModuleTarget(flat, likelihood, groups_of(prior, flat), rows, temperature)


def linear_law(n_rows=8, d=2, noise=0.5, scale=0.7, seed=0):
    """A linear module with known noise: X, y, and the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, d)) * np.linspace(0.5, 2.0, d)
    y = X @ np.linspace(-1.0, 1.0, d) + noise * rng.standard_normal(n_rows)
    flat = FlatModule(nn.Linear(d, 1, bias=False).double(), CPU)
    rows = TensorRows(torch.from_numpy(X), torch.from_numpy(y), None, CPU)
    from skbayes_sg.priors import Normal

    groups = groups_of(Normal(scale=scale), flat)
    return X, y, ModuleTarget(flat, NormalLikelihood(np.log(noise)), groups, rows)


def all_rows_gradient(target):
    """The gradient from all rows of every step."""
    return MinibatchGradient(target, target.rows.n_rows, np.random.default_rng(0))
