"""Moves of effects of one factor against those of another: exact, and unseen by the rows."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from group_tables import Constant, problem_of
from scipy import stats

from skbayes_sg import BayesianLinearRegression
from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.groups.chains import judged_effects, run_chains
from skbayes_sg.groups.collapsed import CollapsedRows
from skbayes_sg.groups.collapsed_hmc import CollapsedHMC
from skbayes_sg.groups.covariance import Covariance, n_scales
from skbayes_sg.groups.linear_crossed import CrossedGibbs
from skbayes_sg.groups.translation_kernels import shifted_log_density
from skbayes_sg.groups.translations import Translation, translations_of
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import LinearKnownNoise, Logistic
from skbayes_sg.priors import HalfNormal, Normal
from skbayes_sg.priors.table import prior_value
from skbayes_sg.recipe.request import Request

OUTER = 4


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


def nested(kind=LinearKnownNoise, n=160, slopes=None, **options):
    """Eight levels nested in four, and a level without rows."""
    rng = np.random.default_rng(3)
    outer = rng.integers(0, OUTER, n)
    inner = 2 * outer + rng.integers(0, 2, n)
    problem = problem_of(kind, n=n, d=1, sizes=(OUTER, 2 * OUTER + 1), slopes=slopes, **options)
    return replace(problem, codes=np.column_stack([outer, inner]).astype(np.int32))


def places(problem, seed=0):
    """Effects, and scales, at random."""
    rng = np.random.default_rng(seed)
    u = [rng.standard_normal((L, q)) for L, q in zip(problem.sizes, problem.widths, strict=True)]
    return u, [0.3 * rng.standard_normal(n_scales(q)) for q in problem.widths]


def log_density(u, psi):
    """Of the effects of all levels, under their priors."""
    found = 0.0
    for own, p in zip(u, psi, strict=True):
        C = Covariance(p, own.shape[1]).C
        found += stats.multivariate_normal(cov=C @ C.T).logpdf(own).sum()
    return found


SCALE = HalfNormal()._table((1,), "scale")


def scales(u):
    """Priors of the standard deviations of all effects."""
    return [np.repeat(SCALE, own.shape[1], axis=0) for own in u]


def log_prior(psi):
    """Of all scales, and of uniform correlations."""
    found = 0.0
    for p in psi:
        q = 1 + (len(p) > 1)
        found += Covariance(p, q).log_p - prior_value(np.repeat(SCALE, q, axis=0), p[:q])
    return found


def move_only(translation, u, psi, rng):
    """δ without the walks of the scales."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translation, "_walked", lambda self, sums, *psi_unit_rng: psi_unit_rng[:2])
        translation.move(u, psi, scales(u), 0.0, rng)


@pytest.mark.parametrize("slopes", [[[], []], [[0], [0]], [[], [0]]])
def test_rows_do_not_see_them_and_priors_are_their_law(slopes):
    problem = nested(Logistic, slopes=slopes)
    rows, (u, psi) = CollapsedRows(problem), places(problem)
    theta = np.ones(problem.target.n_parameters)
    before, found = rows.predictors(theta, u), translations_of(rows.problem)
    assert [t.effect for t in found] == [(0, 0), (1, 1)][: 1 + (slopes == [[0], [0]])]
    for translation in found:
        ends = []
        for noise in (0.0, 1.0):  # the mean of the law, and one standard deviation from it
            ends.append([own.copy() for own in u])
            move_only(translation, ends[-1], psi, Constant(noise))
            np.testing.assert_allclose(rows.predictors(theta, ends[-1]), before, atol=1e-12)
        step = [b - a for a, b in zip(*ends, strict=True)]
        assert (step[1][-1] == 0.0).all()  # of the level without rows
        for c in range(OUTER):  # from a mean, each component adds (δ/sd)²/2 for any δ
            own = [
                s * (np.arange(len(s)) // w == c)[:, None]
                for s, w in zip(step, (1, 2), strict=True)
            ]
            pairs = list(zip(ends[0], own, strict=True))
            at = [log_density([e + x * s for e, s in pairs], psi) for x in (-2, 0, 1)]
            np.testing.assert_allclose(at[1] - np.array(at), [2.0, 0.0, 0.5], atol=1e-9)


def test_crossed_factors_have_one_component_and_nested_ones_several():
    crossed = problem_of(Logistic, n=200, sizes=(5, 6))
    [translation] = translations_of(crossed)
    with_rows = [np.unique(codes) for codes in crossed.codes.T]
    for own, seen in zip(translation.component, with_rows, strict=True):
        assert len(set(own[seen])) == 1
    [translation] = translations_of(nested())
    np.testing.assert_array_equal(translation.component[1][:8], np.arange(8) // 2)
    three = replace(crossed, codes=crossed.codes[:, [0, 1, 0]], sizes=(5, 6, 5), slopes=[[]] * 3)
    assert [t.pair for t in translations_of(three)] == [(0, 1), (0, 2), (1, 2)]
    assert translations_of(problem_of(Logistic)) == []


def by_quadrature(translation, u, psi):
    """The log density of the effects with δ of each component integrated out."""
    before, d = log_density(u, psi), np.linspace(-12.0, 12.0, 201)

    def at(delta, c):
        moved = [own.copy() for own in u]
        for f, e, own, _, sign in translation._sides():
            moved[f][own == c, e] += sign * delta
        return np.exp(log_density(moved, psi) - before)

    free = np.flatnonzero(translation.free)
    return before + sum(np.log(np.trapezoid([at(x, c) for x in d], d)) for c in free)


@pytest.mark.parametrize("slopes", [[[], []], pytest.param([[0], [0]], marks=pytest.mark.slow)])
def test_scales_walk_in_the_law_with_all_shifts_integrated_out(slopes):
    """Against quadrature over δ of each component, one at a time."""
    problem = nested(Logistic, slopes=slopes)
    u, psi = places(problem)
    other = [own + 0.4 for own in psi]
    for translation in translations_of(problem):
        sums = translation.sums(u, scales(u))
        out = np.empty((2, len(translation.free)))
        ours = [shifted_log_density(*sums, *p, 0.0, *out) for p in (psi, other)]
        exact = [by_quadrature(translation, u, p) + log_prior(p) for p in (psi, other)]
        np.testing.assert_allclose(ours[1] - ours[0], exact[1] - exact[0], rtol=1e-8)


def test_scales_beyond_floats_are_left_alone():
    problem = nested()
    [translation] = translations_of(problem)
    u, psi = places(problem)
    before = [own.copy() for own in u]
    with np.errstate(all="ignore"):
        move_only(translation, u, [psi[0], np.full(1, -400.0)], np.random.default_rng(0))
    np.testing.assert_array_equal(np.concatenate(u), np.concatenate(before))


def _one_hot(problem):
    return [np.eye(L)[c] for L, c in zip(problem.sizes, problem.codes.T, strict=True)]


def by_grid(problem):
    """Mean and sd of (β, u) and of log τ of both factors, by a grid of both scales."""
    target, D = problem.target, problem.n_coefficients
    A = np.hstack([problem.design, *_one_hot(problem)])
    y, log_tau = target.data.facts[:, FACT_Y], np.linspace(-5.0, 2.5, 61)
    prior, (first, second) = target.prior[:D], problem.sizes
    value, means, squares = [], [], []
    for s, t in np.stack(np.meshgrid(log_tau, log_tau, indexing="ij"), axis=-1).reshape(-1, 2):
        scale = np.r_[prior[:, 2], np.full(first, np.exp(s)), np.full(second, np.exp(t))]
        loc = np.r_[prior[:, 1], np.zeros(first + second)]
        C = np.linalg.inv((A.T * target.weight) @ A + np.diag(scale**-2.0))
        m = C @ (A.T @ (target.weight * y) + loc * scale**-2.0)
        v = -0.5 * (target.weight * (y - A @ m)) @ (y - A @ m) - np.log(scale).sum()
        v -= 0.5 * np.square((m - loc) / scale).sum() - 0.5 * np.linalg.slogdet(C)[1]
        value.append(v + sum(stats.halfnorm.logpdf(np.exp(x)) + x for x in (s, t)))
        means.append(np.r_[m, s, t])
        squares.append(np.r_[m**2 + np.diag(C), s**2, t**2])
    p = np.exp(np.array(value) - max(value))
    mean, square = (p @ np.array(x) / p.sum() for x in (means, squares))
    return mean, np.sqrt(square - mean**2)


@pytest.mark.parametrize(
    "sampler", [CrossedGibbs, pytest.param(CollapsedHMC, marks=pytest.mark.slow)]
)
def test_nested_factors_have_their_law(sampler):
    """Which alternating draws of the factors do not reach: the twin has effects too narrow."""
    problem = nested(intercept=Normal(scale=2.0), weight=np.full(160, 60.0), tau=0.5)
    mean, sd = by_grid(problem)
    found = run_chains(problem, Request(seed=0, n_draws=1000, n_chains=4), sampler)
    D, K = problem.n_coefficients, sum(problem.sizes)
    moments = np.hstack(found.moments)
    ess = found.diagnostics["effects_min_ess"]
    assert ess > 300
    error = 5.0 * sd[D : D + K] / np.sqrt(ess)
    assert (np.abs(moments[0] - mean[D : D + K]) < error).all()
    np.testing.assert_allclose(moments[1], sd[D : D + K], rtol=5.0 / np.sqrt(ess))
    draws = found.draws[..., -2:]
    error = 5.0 * sd[-2:] / np.sqrt(found.diagnostics["min_ess"])
    assert (np.abs(draws.mean(axis=(0, 1)) - mean[-2:]) < error).all()


@pytest.mark.slow
def test_without_them_effects_are_slow_which_is_told(monkeypatch):
    problem = nested(intercept=Normal(scale=2.0), weight=np.full(160, 60.0), tau=0.5)
    monkeypatch.setattr("skbayes_sg.groups.linear_crossed.translations_of", lambda problem: [])
    names = ["x", "intercept", "a", "b"]
    with pytest.warns(SamplerConvergenceWarning, match=r"of effects is \d+ of 2000 draws \("):
        run_chains(problem, Request(n_draws=500, thin=1, names=names), CrossedGibbs)


@pytest.mark.parametrize(("rho", "told"), [(0.5, False), (0.97, True)])
def test_effects_are_judged_like_parameters(rho, told):
    noise = np.random.default_rng(0).standard_normal((3, 4, 1000))
    for t in range(1, 1000):
        noise[2, :, t] = rho * noise[2, :, t - 1] + np.sqrt(1.0 - rho**2) * noise[2, :, t]
    request = Request(names=["x", "first", "second"])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ess, evidence = judged_effects([noise[:2], noise[2:]], request, 1)
    assert len(said) == told
    assert (ess < 400) == told
    np.testing.assert_allclose(evidence["effects_slow"], 4000.0 / ess)
    if told:
        assert "(second)" in str(said[0].message)
    assert judged_effects([noise[..., :20]], request, 1)[1] == {}


@pytest.mark.slow
def test_schools_in_districts():
    """As users write it; the spread of a district is what its schools leave of it."""
    rng = np.random.default_rng(0)
    district = rng.integers(0, 6, 400)
    school = 5 * district + rng.integers(0, 5, 400)
    y = rng.normal(size=6)[district] + rng.normal(size=30)[school] + 0.1 * rng.normal(size=400)
    X = pd.DataFrame({"district": district, "school": school})
    model = BayesianLinearRegression(
        group_effects=["district", "school"], n_draws=300, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.posterior_.check()
    assert "group effects" in str(model.posterior_.check())
    # A district is known only as well as the mean effect of its five schools, about 1/√5.
    sd = model.effects_["sd"]
    assert sd[:6].min() > 0.25
