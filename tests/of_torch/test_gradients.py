"""Gradients of modules: exact ones against autograd, stochastic ones over all batches."""

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import made
import torch
from torch import nn
from torch.func import functional_call

from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.priors import Flat, Laplace, Normal, StudentT
from skbayes_sg.torch.flat import FlatModule
from skbayes_sg.torch.minibatch import MinibatchGradient, batches
from skbayes_sg.torch.priors import groups_of
from skbayes_sg.torch.svrg import SVRGGradient
from skbayes_sg.torch.target import block_for

float64 = torch.float64
EXACT = {"rtol": 1e-12, "atol": 1e-12}
RNG = np.random.default_rng(0)


def naive_potential(target, theta):
    """U from its definition, by another way through the module."""
    flat, (X, y, w) = target.flat, target.rows.parts
    named = {n: theta[p].view(flat.shapes[n]) for n, p in flat.slices.items()}
    f = functional_call(flat.module, named, X)
    if target.likelihood.n_extra:
        s = theta[-1]
        rows = (0.5 * ((y - f) / s.exp()) ** 2 + s + 0.5 * math.log(2 * math.pi)).sum(dim=1)
        nu = 3.0
        prior_of_noise = 0.5 * (nu + 1) * torch.log1p((2 * s).exp() / nu) - s
    else:
        rows, prior_of_noise = -torch.log_softmax(f, 1)[range(len(y)), y], 0.0
    own = theta[: flat.n_own]
    total = rows.sum() if w is None else (w * rows).sum()
    return (total + 0.5 * (own**2).sum() + prior_of_noise) / target.temperature


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("temperature", [1.0, 0.1])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.0, 0.5, 3.0, 1.0]])
def test_the_potential_and_its_gradient(kind, temperature, weight):
    target = made.law(kind, temperature=temperature, weight=weight)
    theta = target.flat.theta.clone().requires_grad_()
    expected = naive_potential(target, theta)
    (slope,) = torch.autograd.grad(expected, theta)
    value = target.potential()
    torch.testing.assert_close(value, expected.detach(), **EXACT)
    torch.testing.assert_close(target.flat.gradient, slope, **EXACT)


@pytest.mark.parametrize(
    "prior", [Normal(loc=0.3, scale=2.0), Laplace(scale=0.5), StudentT(df=3.0, loc=-0.2), Flat()]
)
def test_slopes_of_priors_are_those_of_their_densities(prior):
    from skbayes_sg.torch import priors

    flat = FlatModule(made.network(), made.CPU)
    groups = groups_of(prior, flat)
    theta = flat.theta.clone().requires_grad_()
    value = priors.negative_log_density(groups, theta)
    expected = torch.zeros_like(theta)
    if not isinstance(prior, Flat):
        (expected,) = torch.autograd.grad(value, theta)
    found = torch.zeros_like(theta)
    priors.add_gradient(groups, theta.detach(), found)
    torch.testing.assert_close(found, expected, **EXACT)


def test_priors_have_the_densities_of_the_package():
    from scipy import stats

    from skbayes_sg.torch import priors

    flat = FlatModule(nn.Linear(1, 1, bias=False).double(), made.CPU)
    laws = {
        Normal(loc=0.5, scale=2.0): stats.norm(0.5, 2.0),
        Laplace(loc=0.5, scale=2.0): stats.laplace(0.5, 2.0),
        StudentT(df=3.0, loc=0.5, scale=2.0): stats.t(3.0, 0.5, 2.0),
    }
    for prior, law in laws.items():
        groups = groups_of(prior, flat)
        a, b = torch.tensor([1.7], dtype=float64), torch.tensor([-0.4], dtype=float64)
        found = priors.negative_log_density(groups, a) - priors.negative_log_density(groups, b)
        assert float(found) == pytest.approx(float(law.logpdf(-0.4) - law.logpdf(1.7)), rel=1e-12)


def test_groups_are_chosen_by_patterns_of_names():
    flat = FlatModule(made.network(), made.CPU)
    table = {"0.*": Normal(scale=0.1), "2.bias": "flat", "*": "fan_in"}
    found = {name: g.prior for g in groups_of(table, flat) for name in g.names}
    assert found["0.weight"].scale == found["0.bias"].scale == 0.1
    assert isinstance(found["2.bias"], Flat)
    assert found["2.weight"].scale == pytest.approx(math.sqrt(2.0 / 4.0))
    with pytest.raises(InvalidParameterError, match=r"No pattern .* fits the parameter '0.weight'"):
        groups_of({"2.*": "normal"}, flat)
    with pytest.raises(InvalidParameterError, match="must be one of"):
        groups_of("cauchy", flat)


def test_factors_of_normalisation_layers_have_a_prior_around_one():
    flat = FlatModule(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), made.CPU)
    found = {name: g.prior for g in groups_of("normal", flat) for name in g.names}
    assert found["1.weight"].loc == 1.0
    assert found["1.bias"].loc == found["0.weight"].loc == 0.0


def estimates(gradient, indices):
    """The estimates of a gradient from given batches."""
    target = gradient.target
    found = []
    for index in indices:
        gradient.of_batch(target.rows.batch(np.array(index)))
        found.append(target.flat.gradient.numpy().copy())
    return np.array(found)


def row_gradients(target):
    """∇ℓ_i of each row, and the gradient of the prior."""
    every = []
    for i in range(target.rows.n_rows):
        target.flat.gradient.zero_()
        target.add_rows(target.rows.batch(np.array([i])), torch.ones(1, dtype=torch.float64))
        every.append(target.flat.gradient.numpy().copy())
    target.flat.gradient.zero_()
    target.add_prior(1.0)
    return np.array(every), target.flat.gradient.numpy().copy()


def sample_covariance(g):
    return np.cov(g, rowvar=False)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_minibatches_over_all_batches(n):
    target, N = made.law(), 6
    g, prior = row_gradients(target)
    gradient = MinibatchGradient(target, n, RNG)
    found = estimates(gradient, itertools.combinations(range(N), n))
    np.testing.assert_allclose(found.mean(axis=0), g.sum(axis=0) + prior, **EXACT)
    expected = N**2 * (1 - n / N) * sample_covariance(g) / n
    np.testing.assert_allclose(np.cov(found, rowvar=False, bias=True), expected, atol=1e-11)


def moved(target, step=0.3):
    """Another θ, the same at each call."""
    D = target.flat.n_parameters
    target.flat.theta.add_(step * torch.from_numpy(np.random.default_rng(5).normal(size=D)))


@pytest.mark.parametrize("anchor_size", [6, 4])
def test_differences_to_an_anchor_over_all_batches(anchor_size):
    target, N, n = made.law(), 6, 2
    g_there, _ = row_gradients(target)
    gradient = SVRGGradient(target, n, RNG, target.twin(), 10**6, anchor_size)
    anchors = list(itertools.combinations(range(N), anchor_size))
    there, means, covariances = target.flat.theta.clone(), [], []
    for anchor in anchors:
        target.flat.theta.copy_(there)
        gradient.move_anchor(np.array(anchor))
        moved(target)
        found = estimates(gradient, itertools.combinations(range(N), n))
        means.append(found.mean(axis=0))
        covariances.append(np.cov(found, rowvar=False, bias=True))
        share = N / anchor_size * g_there[list(anchor)].sum(axis=0)
        g, prior = row_gradients(target)
        expected = share + (g - g_there).sum(axis=0) + prior  # the anchor's error is the bias
        np.testing.assert_allclose(means[-1], expected, **EXACT)
    np.testing.assert_allclose(np.mean(means, axis=0), g.sum(axis=0) + prior, **EXACT)
    expected = N**2 * (1 - n / N) * sample_covariance(g - g_there) / n
    np.testing.assert_allclose(covariances[0], expected, atol=1e-11)
    if anchor_size < N:
        of_anchor = N**2 * (1 - anchor_size / N) * sample_covariance(g_there) / anchor_size
        np.testing.assert_allclose(np.cov(np.array(means).T, bias=True), of_anchor, atol=1e-11)


def test_the_anchor_moves_after_so_many_steps():
    target = made.law()
    gradient = SVRGGradient(target, 2, np.random.default_rng(0), target.twin(), 3, 6)
    anchors = []
    for _ in range(7):
        gradient()
        anchors.append(gradient.twin.flat.theta.clone())
        moved(target, 0.1)
    same = [bool(torch.equal(a, b)) for a, b in itertools.pairwise(anchors)]
    assert same == [True, True, False, True, True, False]
    assert gradient.n_evaluated == 7 * 2 * 2 + 3 * 6
    # of all rows there is no noise at the anchor itself
    target.flat.theta.copy_(gradient.twin.flat.theta)
    gradient.left = 1
    gradient.of_batch(target.rows.batch(np.array([0, 1])))
    own = target.flat.gradient.clone()
    target.potential()
    torch.testing.assert_close(own, target.flat.gradient, **EXACT)


def test_batches_have_no_repeats_and_reach_every_row():
    stream = batches(np.random.default_rng(0), 5, 3)
    found = np.array([next(stream) for _ in range(2000)])
    assert all(len(set(batch)) == 3 for batch in found)
    counts = np.bincount(found.ravel(), minlength=5)
    assert np.abs(counts / 2000 - 0.6).max() < 5 * np.sqrt(0.6 * 0.4 / 2000)


def test_sums_are_the_same_in_blocks(monkeypatch):
    target, sizes = made.law("numbers"), []
    target.potential()
    whole, batch = target.flat.gradient.clone(), target.rows.batch
    monkeypatch.setattr(target.rows, "batch", lambda i: sizes.append(len(i)) or batch(i))
    target.block = 5
    target.potential()
    torch.testing.assert_close(target.flat.gradient, whole, **EXACT)
    assert sizes == [3, 3]  # batch normalisation has no variance of the one that 5 would leave


@pytest.mark.parametrize(
    ("numbers", "batch_size", "expected"),
    [(1e3, 100, 500), (1e6, 100, 134), (1e7, 100, 100), (1e7, 2000, 500), (1e9, 1, 1)],
)
def test_blocks_hold_half_a_gigabyte_or_a_batch(numbers, batch_size, expected):
    assert block_for(numbers, batch_size) == expected


def test_tied_and_fixed_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(3, 3)
            self.two = nn.Linear(3, 3)
            self.two.weight = self.one.weight
            self.one.bias.requires_grad_(False)

        def forward(self, x):
            return self.two(self.one(x))

    flat = FlatModule(Tied(), made.CPU)
    assert list(flat.slices) == ["one.weight", "two.bias"]
    flat.gradient.zero_()
    flat.module(torch.ones(2, 3)).sum().backward()
    assert flat.gradient.abs().sum() > 0.0
    flat.theta.zero_()
    assert not flat.module.two.weight.any()
    assert set(flat.others({})) == {"one.bias"}


def test_a_module_without_parameters_is_refused():
    with pytest.raises(InvalidParameterError, match="no parameter that requires a gradient"):
        FlatModule(nn.ReLU(), made.CPU)
