"""Modes of independent components: minima other than that near FastICA's answer are found."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from skbayes_sg import BayesianICA
from skbayes_sg.densities import ica_modes
from skbayes_sg.densities.around import mode_near
from skbayes_sg.densities.density import density_target
from skbayes_sg.densities.ica import LOGISTIC_SD, LogisticSources, aligned
from skbayes_sg.densities.ica_modes import maxima_of_sources
from skbayes_sg.estimators import ica as estimator
from skbayes_sg.exceptions import LongRunWarning, MultimodalPosteriorWarning
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.request import Request

DRAWS = {"n_draws": 50, "n_chains": 4, "random_state": 0}


def whitened(X):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.linalg.svd(X, full_matrices=False)[0] * np.sqrt(len(X))


def target_of(Z):
    d = Z.shape[1]
    return density_target(LogisticSources(d * d), Z, np.ones(len(Z)), Normal()._table((d * d,)))


def rotation(d, seed):
    return LOGISTIC_SD * np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0].ravel()


def U(target, theta):
    return target.value_and_gradient(theta)[0]


@pytest.fixture(scope="module")
def diabetes():
    """A table with several minima, and ends of descents from rotations, the lowest first."""
    target = target_of(whitened(load_diabetes().data))
    ends = [mode_near(target, rotation(10, seed)) for seed in range(12)]
    return target, sorted(ends, key=lambda theta: U(target, theta))


@pytest.fixture
def star():
    """Rows and the same rows turned by 45 degrees: two minima of about the same height."""
    Z = whitened(np.random.default_rng(0).laplace(size=(2000, 2)) ** 3)
    return np.vstack([Z, Z @ np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)])


def test_the_lowest_minimum_is_found_from_another_one(diabetes):
    target, ends = diabetes
    lowest, highest = U(target, ends[0]), U(target, ends[-1])
    assert highest > lowest + 0.5
    for seed in range(3):
        found = maxima_of_sources(target, ends[-1][None], Request(seed=seed))
        assert U(target, found[0]) < lowest + 0.1
        assert (np.diff([U(target, theta) for theta in found]) >= 0.0).all()


def test_minima_are_aligned_and_no_two_are_the_same(diabetes):
    target, ends = diabetes
    found = maxima_of_sources(target, ends[-1][None], Request(seed=0))
    found = np.array(found).reshape(-1, 10, 10)
    assert len(found) > 1
    assert np.array_equal(aligned(found, found[0]), found)
    unit = found / np.linalg.norm(found, axis=2, keepdims=True)
    for k in range(1, len(found)):
        assert (unit[:k] * unit[k]).sum(axis=2).min(axis=1).max() < 0.99


def test_one_minimum_takes_the_fewest_descents(monkeypatch):
    calls = []
    monkeypatch.setattr(ica_modes, "mode_near", lambda *a: calls.append(0) or mode_near(*a))
    target = target_of(whitened(np.random.default_rng(1).laplace(size=(500, 3))))
    assert len(maxima_of_sources(target, rotation(3, 0)[None], Request(seed=0))) == 1
    assert len(calls) == ica_modes.FEWEST
    maxima_of_sources(target_of(np.ones((5, 1))), np.ones((1, 1)), Request(seed=0))
    assert len(calls) == ica_modes.FEWEST + 1  # a single source has no other minimum


def test_long_searches_are_told(monkeypatch):
    monkeypatch.setattr(ica_modes, "TOLD_SECONDS", 1e-9)
    target = target_of(whitened(np.random.default_rng(1).laplace(size=(500, 3))))
    with pytest.warns(LongRunWarning, match="in up to 20 descents.*n_components"):
        maxima_of_sources(target, rotation(3, 0)[None], Request(seed=0))


def test_a_fit_does_not_depend_on_where_it_starts(diabetes, monkeypatch):
    """Before, all draws were made around the minimum near the start."""
    _, ends = diabetes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = whitened(load_diabetes().data)
        usual = BayesianICA(**DRAWS).fit(X)
        monkeypatch.setattr(estimator, "_start", lambda Z, seed: ends[-1])
        other = BayesianICA(**DRAWS).fit(X)
    assert min(ica.diagnostics_["n_modes"] for ica in (usual, other)) > 1
    assert other.diagnostics_["mode_share_0"] > 0.1


def test_modes_between_which_chains_do_not_cross_are_told(star):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ica = BayesianICA(sampler="hmc", **DRAWS).fit(star)
    told = [str(w.message) for w in seen if w.category is MultimodalPosteriorWarning]
    assert len(told) == 1
    assert "has 2 modes" in told[0]
    assert "fewer components" in told[0]
    assert ica.diagnostics_["n_modes"] == 2.0
    assert 0.0 < ica.diagnostics_["mode_share_1"] < 0.5
    assert not ica.posterior_.check().trustworthy


def test_independent_draws_weigh_modes_between_which_chains_do_not_cross(star):
    """Shares beside integrals over both modes, by importance sampling that shares no code."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ica = BayesianICA(**DRAWS | {"n_draws": 500}).fit(star)
    assert ica.sampler_ == "importance"
    assert ica.posterior_.check().trustworthy
    Z = (star - ica.mean_) @ ica.whitening_.T
    modes = maxima_of_sources(target_of(Z), rotation(2, 0)[None], Request(seed=1))
    log_masses = [log_mass(Z, theta) for theta in modes]
    wanted = 1.0 / (1.0 + np.exp(log_masses[1] - log_masses[0]))
    assert ica.diagnostics_["mode_share_0"] == pytest.approx(wanted, abs=0.05)


def log_mass(Z, theta, n=4000):
    """log ∫ p around a mode, by weighted draws of a wide normal law."""
    rng, h = np.random.default_rng(0), 1e-4

    def log_p(W):
        Y = np.abs(Z @ W.transpose(0, 2, 1))
        value = len(Z) * np.linalg.slogdet(W)[1] - (Y + 2.0 * np.log1p(np.exp(-Y))).sum(axis=(1, 2))
        return value - 0.5 * np.square(W).sum(axis=(1, 2))

    at = log_p(theta.reshape(1, 2, 2))[0]
    units = h * np.eye(4)
    H = np.array([[log_p((theta + a * u + b * v).reshape(1, 2, 2))[0] for u in units for v in units]
                  for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))])  # fmt: skip
    H = -(H[0] - H[1] - H[2] + H[3]).reshape(4, 4) / (4.0 * h * h)
    root = 1.2 * np.linalg.cholesky(np.linalg.inv(H))
    z = rng.standard_normal((n, 4))
    log_w = log_p((theta + z @ root.T).reshape(-1, 2, 2)) - at + 0.5 * np.square(z).sum(axis=1)
    return at + np.log(np.mean(np.exp(log_w))) + np.log(np.diag(root)).sum()


def test_one_mode_of_one_half_is_not_told(star):
    ica = BayesianICA(**DRAWS).fit(star[:2000])
    assert "n_modes" not in ica.diagnostics_
    assert ica.posterior_.check().trustworthy
