"""Adaptive batches: how many rows, and that the estimate is unbiased for every number of them."""

import itertools
import math

import cases
import numpy as np
import probe
import pytest
from batch_laws import PATHS, N
from problems import binary, quick
from scenes import close, make_scene, pulled_back
from scipy import stats

from skbayes_sg.geometry import preconditioning
from skbayes_sg.recipe import stochastic
from skbayes_sg.subsampling import Adaptive, Uniform

EXACT = 1e-12
RUN = stochastic.Production
ADAPTIVE = ["adaptive", "adaptive_preferential"]
adaptive = pytest.mark.parametrize("scheme", ADAPTIVE)


def wanted(z, n, reach, least, most):
    """⌈n |z|²/reach⌉ within its limits."""
    return min(max(math.ceil(n * sum(x * x for x in z) / reach), least), most)


def law_at(case, n, z, **options):
    """{(rows, coefficients): chance} of the batches at a position."""
    subsample = case.scheme.state(N, n, case.chances(N), **options)
    most, found = case.uniforms(subsample._replace(batch_size=1))[0], {}
    n_rows = wanted(z, n, subsample.reach, subsample.least, subsample.most)
    assert len(most) ** n_rows <= PATHS
    for path in itertools.product(*[most] * n_rows):
        values, chances = zip(*path, strict=True)
        batch = probe.scripted_batch(case.scheme, subsample, values, np.array(z))
        found[batch] = found.get(batch, 0.0) + np.prod(chances)
    return found


@pytest.mark.slow_for("2")
@adaptive
@pytest.mark.parametrize("n", [1, 2])
def test_unbiased_at_every_position(scheme, n):
    # Given the position, which says how many rows: mean and covariance over all batches.
    case, scene, counts = cases.SUBSAMPLING[scheme], make_scene("logistic", "student_t"), set()
    frame, posterior = scene.frame(kind="hessian"), scene.posterior
    for radius in (0.2, 0.9, 1.2, 5.0):
        z = radius * np.array([0.6, 0.0, -0.8])
        theta = frame.theta(z)
        a = pulled_back(frame, cases.differences(posterior, theta, frame))
        expected = pulled_back(frame, posterior.gradient(theta))
        gradient = cases.GRADIENTS["control_variate"].gradient
        kernels = probe.Probe(
            frame, gradient, case.scheme, batch_size=n, chances=case.chances(N)
        )  # fmt: skip
        batches = law_at(case, n, z)
        (n_rows,) = {len(rows) for rows, _ in batches}
        chances = np.array(list(batches.values()))
        estimates = np.array([kernels.estimate(z, *batch) for batch in batches])
        mean = chances @ estimates
        covariance = (estimates - mean).T @ (chances[:, None] * (estimates - mean))
        close(mean, expected, EXACT, posterior.scale(theta))
        close(covariance, case.covariance(a, n_rows, case.chances(N)), EXACT, np.abs(a).sum() ** 2)
        counts.add(n_rows)
    assert counts == set(range(1, 2 * n + 1))


@pytest.mark.slow_for("7.3")
@adaptive
@pytest.mark.parametrize(("least", "most"), [(1, None), (3, None), (2, 5), (4, 4)])
@pytest.mark.parametrize("reach", [1.0, 7.3])
def test_number_of_rows(scheme, least, most, reach):
    preferential = cases.SUBSAMPLING[scheme].scheme.preferential
    piece = Adaptive(min_size=least, max_size=most, preferential=preferential)
    frame, rng = make_scene("gaussian", n_rows=29).frame(), np.random.default_rng(0)
    kernels = probe.Probe(frame, None, piece, batch_size=4, chances=cases.uneven(29))
    kernels.setup.reach = reach
    limit, found = 8 if most is None else most, set()
    positions = rng.normal(size=(200, 3)) * rng.exponential(1.5, (200, 1))
    for z in [*positions, np.zeros(3), np.array([np.sqrt(reach), 0.0, 0.0]), np.full(3, 1e200)]:
        rows, coefficients = kernels.batch(z, np.random.Generator(np.random.SFC64(1)))
        with np.errstate(over="ignore"):
            assert len(rows) == wanted(z, 4, reach, least, limit) if z[0] < 1e100 else limit
        p = cases.uneven(29)[rows] if preferential else 1.0 / 29.0
        np.testing.assert_allclose(coefficients, np.full(len(rows), 1.0 / len(rows)) / p, 1e-14)
        found.add(len(rows))
    assert found == set(range(least, limit + 1))


def test_never_more_than_all_rows():
    assert Adaptive().most_rows(29, 20) == 29
    assert Adaptive(max_size=100).most_rows(29, 20) == 29
    assert Adaptive().most_rows(1000, 20) == 40


@pytest.mark.slow
@adaptive
def test_rows_far_from_the_centre_have_the_law_of_a_row(scheme):
    case = cases.SUBSAMPLING[scheme]
    kernels = probe.Probe(
        make_scene("gaussian").frame(), None, case.scheme, batch_size=3, chances=case.chances(N)
    )
    rng, p = np.random.Generator(np.random.SFC64(0)), case.chances(N)
    rows = np.array([kernels.batch(np.full(3, 9.0), rng)[0] for _ in range(20_000)])
    assert rows.shape == (20_000, 6)
    p = np.full(N, 1.0 / N) if p is None else p
    for place in rows.T:
        counts = np.bincount(place, minlength=N)
        assert stats.chisquare(counts, p * counts.sum()).pvalue > 1e-6


def test_equal_limits_are_uniform_rows_path_by_path():
    frame, found = make_scene("logistic", n_rows=30).frame(kind="hessian"), []
    gradient, start = cases.GRADIENTS["taylor"].gradient, np.full((2, 3), 0.4)
    for scheme in (Uniform(), Adaptive(min_size=4, max_size=4)):
        kernels = probe.Probe(frame, gradient, scheme, batch_size=4)
        schedule = cases.schedules.Constant(0.2)
        found.append(kernels.sample(start, 3, 50, step_size=schedule)[0])
    np.testing.assert_array_equal(*found)


def test_equal_limits_are_preferential_rows_path_by_path():
    frame, found = make_scene("logistic", n_rows=30).frame(kind="hessian"), []
    gradient, p, start = cases.GRADIENTS["taylor"].gradient, cases.uneven(30), np.full((2, 3), 0.4)
    equal = Adaptive(min_size=4, max_size=4, preferential=True)
    for scheme in (cases.SUBSAMPLING["preferential"].scheme, equal):
        kernels = probe.Probe(frame, gradient, scheme, batch_size=4, chances=p)
        schedule = cases.schedules.Constant(0.2)
        found.append(kernels.sample(start, 3, 50, step_size=schedule)[0])
    np.testing.assert_array_equal(*found)


@adaptive
def test_rows_used_are_those_of_a_replayed_chain(scheme):
    # Positions of the chain itself, one a step, say how many rows each step used.
    case, n_draws = cases.SUBSAMPLING[scheme], 200
    frame = make_scene("logistic", n_rows=30).frame(kind="hessian")
    kernels = probe.Probe(
        frame, cases.GRADIENTS["taylor"].gradient, case.scheme, batch_size=4,
        chances=case.chances(30),
    )  # fmt: skip
    start, options = np.full((2, 3), 0.4), {"step_size": cases.schedules.Constant(0.5)}
    draws, chains = kernels.sample(start, 3, n_draws, reach=6.0, **options)
    for path, chain, first in zip(draws, chains, start, strict=True):
        before = [first, *path[:-1]]
        assert chain.used.tolist() == [wanted(z, 4, 6.0, 1, 8) for z in before]
        assert len(set(chain.used.tolist())) >= 6
    _, thinned = kernels.sample(start, 3, n_draws // 4, thin=4, reach=6.0, **options)
    for chain, thin in zip(chains, thinned, strict=True):
        np.testing.assert_array_equal(chain.used.reshape(-1, 4).sum(axis=1), thin.used)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_reported_batch_sizes_are_those_of_the_chains(monkeypatch):
    X, y, made = *binary(400, 3), []
    monkeypatch.setattr(stochastic, "Production", lambda *a, **k: made.append(a) or RUN(*a, **k))
    options = {"gradient": "taylor", "batch_size": 20, "step_size": 0.2, "thin": 1}
    fitted = quick(subsampling=Adaptive(min_size=3, max_size=30), **options).fit(X, y)
    sizes = fitted.batch_sizes_
    assert sizes.shape == (2, 25)
    assert (sizes == np.round(sizes)).all()
    assert sizes.min() >= 3
    assert sizes.max() <= 30
    assert len(np.unique(sizes)) > 5
    frame, setup = made[0][:2]
    theta = fitted.posterior_.flat.reshape(2, 25, 4)
    z = preconditioning.solve(frame.F, (theta - frame.centre.theta).reshape(-1, 4))
    expected = [wanted(x, 20, setup.reach, 3, 30) for x in z]
    np.testing.assert_array_equal(sizes[:, 1:], np.reshape(expected, (2, 25))[:, :-1])
    fixed = quick(subsampling="uniform", **options).fit(X, y)
    np.testing.assert_array_equal(fixed.batch_sizes_, np.full((2, 25), 20.0))
    exact = quick(sampler="hmc").fit(X, y)
    np.testing.assert_array_equal(exact.batch_sizes_, np.full((2, 25), 400.0))
