"""Row densities in the engine: every estimator of the gradient over all batches, and gradients."""

import numpy as np
import probe
import pytest
from batch_laws import N, moments
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from skbayes_sg.densities import fit, mixture_derivatives
from skbayes_sg.densities import mixture as mixtures
from skbayes_sg.densities.around import frame_around, likelihood_hessian, with_row_terms
from skbayes_sg.densities.density import density_target, row_gradients
from skbayes_sg.densities.ica import LogisticSources
from skbayes_sg.densities.mixture_density import MixtureDensity, rows_of
from skbayes_sg.dynamics import HMC
from skbayes_sg.engine import metropolis
from skbayes_sg.engine.run import Setup, new_chains, sample
from skbayes_sg.gradients import SAGA, SVRG, ControlVariate, Full, Minibatch
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import AllRows, Uniform, UniformWithoutReplacement

RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2)) * [1.0, 2.0] + [0.5, -1.0]
WEIGHT = np.linspace(0.5, 2.0, N)


def prior_of(kind, K=2, d=2):
    return mixtures.ComponentsPrior(kind, K, d, 1.3, np.linspace(1.0, 2.0, d), d + 2.5)


def mixture_target(kind):
    own = prior_of(kind)
    return density_target(MixtureDensity(own), rows_of(X, own), WEIGHT, own.table)


def sources_target():
    return density_target(LogisticSources(4), X, WEIGHT, Normal(scale=1.5)._table((4,)))


TARGETS = {name: (lambda k=k: mixture_target(k)) for k, name in enumerate(mixtures.KINDS)}
TARGETS["sources"] = sources_target
every = pytest.mark.parametrize("name", TARGETS)


def log_of_sources(theta):
    W = theta.reshape(2, 2)
    Y = X @ W.T
    det = W[0, 0] * W[1, 1] - W[0, 1] * W[1, 0]
    return 0.5 * np.log(det * det) - (Y + 2.0 * np.log(0.5 * (1.0 + np.exp(-Y)))).sum(axis=1)


def log_of_mixture(theta, kind, own):
    """The formula of `mixture`, for complex numbers."""
    K, d = own.K, own.d
    v, mu = theta[:K], theta[K : K + K * d].reshape(K, d)
    parts = theta[K + K * d :].reshape(own.n_precisions, -1)
    logs = []
    for k in range(K):
        part = parts[k % own.n_precisions]
        T = np.zeros((d, d), dtype=theta.dtype)
        if kind in (mixtures.DIAG, mixtures.SPHERICAL):
            T[range(d), range(d)] = np.exp(0.5 * part)
        else:
            T[0, 0], T[1, 0], T[1, 1] = np.exp(0.5 * part[0]), part[1], np.exp(0.5 * part[2])
        A = T / np.sqrt(own.c)
        y = (X - mu[k]) @ A
        logs.append(v[k] + np.log(np.diag(A)).sum() - 0.5 * (y * y).sum(axis=1))
    return np.log(sum(np.exp(part) for part in logs)) - np.log(np.exp(v).sum())


def formula(name):
    if name == "sources":
        return log_of_sources
    kind = mixtures.KINDS.index(name)
    return lambda theta: log_of_mixture(theta, kind, prior_of(kind))


def place(target, seed=1):
    return 0.5 * np.random.default_rng(seed).standard_normal(target.n_parameters)


@every
def test_values_and_gradients_of_rows(name):
    target = TARGETS[name]()
    theta = place(target)
    log_p = formula(name)
    steps = [log_p(theta + 1e-30j * unit).imag / 1e-30 for unit in np.eye(len(theta))]
    wanted = -WEIGHT[:, None] * np.stack(steps, axis=1)
    assert np.allclose(row_gradients(target, theta, np.arange(N)), wanted, rtol=1e-12, atol=1e-13)
    value, g = target.likelihood(theta)
    assert np.allclose(g, wanted.sum(axis=0), rtol=1e-12, atol=1e-12)
    other = target.likelihood(np.zeros(len(theta)) + 0.7 * theta)[0]
    constant = log_p(theta) - log_p(0.7 * theta)
    assert np.isclose(value - other, -WEIGHT @ constant.real, rtol=1e-11)


@pytest.mark.parametrize("kind", range(4), ids=mixtures.KINDS)
def test_products_of_matrices_and_kernels_agree(kind, monkeypatch):
    """Three components in three columns, blocks of rows, the last of them smaller."""
    monkeypatch.setattr(mixture_derivatives, "BLOCK_BYTES", 1)
    rng, own = np.random.default_rng(kind), prior_of(kind, 3, 3)
    rows = rows_of(rng.standard_normal((150, 3)), own)
    target = density_target(MixtureDensity(own), rows, rng.uniform(0.2, 3.0, 150), own.table)
    theta = place(target)
    value, g = target.likelihood(theta)
    of_rows = row_gradients(target, theta, np.arange(150))
    np.testing.assert_allclose(g, of_rows.sum(axis=0), rtol=1e-12, atol=1e-11)
    loss = target.model.loss(target.data.facts, np.arange(150), 0, 150, theta[None])
    assert value == pytest.approx(loss, rel=1e-13)
    h, H = 1e-5, likelihood_hessian(target, theta, None)
    wanted = [
        (target.likelihood(theta + h * e)[1] - target.likelihood(theta - h * e)[1]) / (2 * h)
        for e in np.eye(len(theta))
    ]
    np.testing.assert_allclose(H, wanted, rtol=1e-7, atol=1e-7 * np.abs(H).max())
    assert np.array_equal(H, H.T)


@pytest.mark.parametrize(("n", "d"), [(3, 1), (5000, 2), (300, 20)])
def test_sums_and_kernels_of_rows_agree(n, d):
    """Blocks of 2048 and of 204 rows, the last of them smaller."""
    rng = np.random.default_rng(d)
    table = Normal()._table((d * d,))
    target = density_target(
        LogisticSources(d * d), rng.standard_normal((n, d)), rng.uniform(0.2, 3.0, n), table
    )
    theta = place(target)
    value, g = target.likelihood(theta)
    terms = row_gradients(target, theta, np.arange(n))
    np.testing.assert_allclose(g, terms.sum(axis=0), rtol=1e-11, atol=1e-10 * n)
    loss = target.model.loss(target.data.facts, np.arange(n), 0, n, theta[None])
    assert value == pytest.approx(loss, rel=1e-12)
    again = np.ones(d * d)
    assert target.model.sums(target.data.facts, theta, False, again) == 0.0
    np.testing.assert_allclose(again, g + 1.0, rtol=1e-12)


def test_chains_by_sums_are_those_by_rows(monkeypatch):
    """Short runs of the same random numbers, since differences of rounding grow exponentially."""
    frame = frame_around(sources_target(), np.array([1.2, 0.3, -0.2, 0.9]), "diagonal")
    made = []
    for sums in (vars(LogisticSources)["sums"], None):
        monkeypatch.setattr(LogisticSources, "sums", sums)
        pieces = frame.target.model, Full(), AllRows(), HMC()
        setup = Setup(frame.problem(Full()), *pieces, N, step_size=Constant(0.04))
        draws, chains = sample(setup, new_chains(setup, np.zeros((2, 4)), 0), 5, 1)
        made.append((draws, [chain.record[metropolis.POTENTIAL] for chain in chains]))
    assert np.ptp(made[0][0], axis=1).min() > 0.0
    np.testing.assert_allclose(made[0][0], made[1][0], rtol=1e-9)
    np.testing.assert_allclose(made[0][1], made[1][1], rtol=1e-12)


@every
def test_hessian_by_differences(name):
    target = TARGETS[name]()
    theta, h = place(target), 1e-5
    found = likelihood_hessian(target, theta, np.full(len(theta), 0.01))
    wanted = [
        (target.likelihood(theta + h * e)[1] - target.likelihood(theta - h * e)[1]) / (2 * h)
        for e in np.eye(len(theta))
    ]
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4)


GRADIENTS = [Minibatch(), ControlVariate(), SVRG(refresh=7), SAGA()]


@every
@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize("scheme", [Uniform(), UniformWithoutReplacement()], ids=str)
def test_mean_and_covariance_over_all_batches(name, gradient, scheme):
    """All pairs of rows: the estimate is unbiased, and has the covariance of the formula."""
    target, n = TARGETS[name](), 2
    centre, theta = place(target, 2), place(target, 3)
    frame = frame_around(target, centre, "diagonal")
    if gradient.uses_constant:
        frame = with_row_terms(frame)
    kernels = probe.Probe(frame, gradient, scheme, batch_size=n)
    z = (theta - centre) / frame.F[0]
    pairs = [(i, j) for i in range(N) for j in range(N)]
    if isinstance(scheme, UniformWithoutReplacement):
        pairs = [(i, j) for i, j in pairs if i != j]
    estimates = []
    for pair in pairs:
        memory = kernels.memory_at(np.zeros(len(theta))) if needs_memory(gradient) else None
        rows, coefficients = np.array(pair), np.full(n, N / n)
        estimates.append(kernels.estimate(z, rows, coefficients, memory=memory))
    mean, covariance = moments(np.array(estimates), np.full(len(pairs), 1.0 / len(pairs)))
    full = target.value_and_gradient(theta)[1] * frame.F[0]
    own = row_gradients(target, theta, np.arange(N))
    if not isinstance(gradient, Minibatch):
        known = row_gradients(target, centre, np.arange(N))
        own = own - (known / WEIGHT[:, None]).astype(rounding(gradient)) * WEIGHT[:, None]
    terms = np.array([(N / n) * own[list(pair)].sum(axis=0) for pair in pairs]) * frame.F[0]
    wanted = moments(terms, np.full(len(pairs), 1.0 / len(pairs)))[1]
    tolerance = 1e-12 * max(1.0, np.abs(full).max())
    assert np.allclose(mean, full, rtol=1e-12, atol=tolerance)
    assert np.allclose(covariance, wanted, rtol=1e-11, atol=1e-12 * np.abs(wanted).max())


def rounding(gradient):
    return np.float32 if isinstance(gradient, SAGA) else np.float64


def needs_memory(gradient):
    return isinstance(gradient, (SAGA, SVRG))


def test_noise_of_an_anchor_of_some_rows_counts_as_often_as_steps_share_it():
    """The noise of 5 of N rows, without replacement, times the 3 steps up to the next refresh."""
    target = TARGETS["sources"]()
    frame = frame_around(target, place(target, 2), "diagonal")
    points = 0.3 * np.random.default_rng(3).standard_normal((4, target.n_parameters))

    def size(gradient, n):
        return fit._expected_noise(frame, gradient, n, points, 0).size

    of_differences, plain = size(SVRG(refresh=3), 2), size(Minibatch(), 1)
    anchored = size(SVRG(refresh=3, anchor_size=5), 2)
    assert np.isclose(anchored, of_differences + 3 * (1 / 5 - 1 / N) * plain, rtol=1e-12)
    assert size(Minibatch(), N) == 0.0
    only_anchor = size(SVRG(refresh=3, anchor_size=5), N)  # all rows a step, but not at the anchor
    assert np.isclose(only_anchor, 3 * (1 / 5 - 1 / N) * plain, rtol=1e-12)


def test_the_density_of_a_mixture_is_that_of_its_components():
    """Weights, means and covariances of `unpack` in scipy's density."""
    for kind in range(4):
        own, target = prior_of(kind), mixture_target(kind)
        theta = place(target)
        w, mu, A = own.unpack(theta[None])
        S = own.covariances(A)[0]
        logs = [np.log(w[0, k]) + multivariate_normal(mu[0, k], S[k]).logpdf(X) for k in range(2)]
        wanted = logsumexp(logs, axis=0) + np.log(2.0 * np.pi)
        assert np.allclose(formula(mixtures.KINDS[kind])(theta), wanted)
        packed = own.pack(np.log(w), mu, np.array(A))
        assert np.allclose(np.diff(packed[0, :2]), np.diff(theta[:2]))
        assert np.allclose(packed[0, 2:], theta[2:])
