"""The order in which the recipe tries its methods, and who is asked for what."""

from types import SimpleNamespace

import numpy as np
import pytest
from scenes import make_scene

from skbayes_sg.dynamics import BAOAB, HMC, Exact, Importance
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.geometry import preconditioning
from skbayes_sg.geometry.modes import Modes
from skbayes_sg.gradients import Taylor
from skbayes_sg.models import Linear, Logistic, NegativeBinomial, Poisson, Robust
from skbayes_sg.priors import Flat, HalfNormal, HalfStudentT, InverseGamma, Laplace, Normal
from skbayes_sg.priors.families import resolve_positive
from skbayes_sg.priors.table import prior_value
from skbayes_sg.recipe import choose, full_data, independent
from skbayes_sg.recipe.closed_form import conditional_of
from skbayes_sg.recipe.request import Outcome, Request
from skbayes_sg.recipe.tuning import Refused, coordinates_of
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import Blocks, Uniform


@pytest.fixture
def order(monkeypatch):
    """The methods that are tried, in order, for results that are given."""

    def order(target, fails=(), seconds=99.0, diverges=False, **asked):
        tried = []

        def method(name, failure):
            def run(*_):
                tried.append(name)
                if name in fails:
                    return failure()
                return Outcome(np.zeros((4, 2, 3)), {"method": name})

            return run

        def refuse():
            raise SamplerDivergedError("too far") if diverges else Refused

        monkeypatch.setattr(choose, "run_independent", method("independent", lambda: None))
        monkeypatch.setattr(choose, "run_exact", method("all rows", None))
        monkeypatch.setattr(choose, "run_stochastic", method("few rows", refuse))
        monkeypatch.setattr(choose.closed_form, "run_closed_form", method("closed form", None))
        monkeypatch.setattr(choose, "seconds_of_chains", lambda *_: seconds)
        found = choose.sample_posterior(target, Request(**asked))
        assert found.chosen["method"] == tried[-1]
        return tried

    return order


def logistic(n_rows=1200, prior=None, d=2):
    """A posterior of more rows than are few."""
    rng = np.random.default_rng(0)
    table = np.concatenate([(prior or Normal())._table((d,)), Normal()._table((1,))])
    return Target(rng.normal(size=(n_rows, d)), np.arange(n_rows) % 2.0, np.ones(n_rows),
        Logistic(), table)  # fmt: skip


def linear(prior=None, n_rows=40):
    """Linear regression with unknown noise."""
    rng = np.random.default_rng(0)
    table = [(prior or Normal())._table((2,)), Normal()._table((1,)), HalfNormal()._table((1,))]
    return Target(rng.normal(size=(n_rows, 2)), rng.normal(size=n_rows), np.ones(n_rows), Linear(),
        np.concatenate(table))  # fmt: skip


NO = "independent"
ORDERS = [
    ({}, {}, ["independent"]),
    ({"fails": [NO]}, {}, ["independent", "few rows"]),
    ({"fails": [NO], "seconds": 10.0}, {}, ["independent", "all rows"]),
    ({"fails": [NO], "seconds": 10.1}, {}, ["independent", "few rows"]),
    ({"fails": [NO, "few rows"], "seconds": 11.0}, {}, ["independent", "few rows", "all rows"]),
    ({}, {"sampler": Importance()}, ["independent"]),
    ({}, {"sampler": HMC()}, ["all rows"]),
    ({"seconds": 0.0}, {"sampler": BAOAB()}, ["few rows"]),
    ({"seconds": 0.0}, {"gradient": Taylor()}, ["few rows"]),
    ({"seconds": 0.0}, {"subsampling": Uniform()}, ["few rows"]),
    ({"seconds": 0.0}, {"batch_size": 30}, ["few rows"]),
    ({"seconds": 0.0}, {"batch_size": 1200}, ["all rows"]),
    ({"seconds": 0.0}, {"step_size": Constant(0.1)}, ["few rows"]),
]


@pytest.mark.parametrize(("results", "asked", "expected"), ORDERS, ids=str)
def test_order(order, results, asked, expected):
    assert order(logistic(), **results, **asked) == expected


def test_a_chain_that_diverges_calls_for_all_rows_where_the_choice_is_open(order):
    failed = {"fails": [NO, "few rows"], "seconds": 11.0, "diverges": True}
    assert order(logistic(), **failed) == ["independent", "few rows", "all rows"]
    with pytest.raises(SamplerDivergedError):
        order(logistic(), **failed, gradient=Taylor())


def test_few_rows_are_all_used(order):
    assert order(logistic(1000), fails=[NO]) == ["independent", "all rows"]
    assert order(logistic(1000), step_size=Constant(0.1)) == ["all rows"]
    assert order(logistic(1000), gradient=Taylor()) == ["few rows"]


def test_linear_regression_in_closed_form(order):
    assert order(linear()) == ["closed form"]
    assert order(linear(), sampler=Exact()) == ["closed form"]
    assert order(linear(), sampler=HMC()) == ["all rows"]
    assert order(linear(), gradient=Taylor()) == ["few rows"]
    assert order(linear(Laplace())) == ["independent"]
    with pytest.raises(ValueError, match="is for linear regression with normal or flat priors"):
        order(linear(Laplace()), sampler=Exact())
    with pytest.raises(ValueError, match="is for linear regression"):
        order(logistic(), sampler=Exact())


def test_other_priors_get_the_rows_of_the_triangle(monkeypatch):
    seen, made = [], Outcome(np.zeros((4, 2, 3)), {})
    monkeypatch.setattr(choose, "_sample", lambda target, *_: seen.append(target.n_rows) or made)
    for asked in ({}, {"sampler": HMC()}, {"gradient": Taylor()}):
        choose.sample_posterior(linear(Laplace()), Request(**asked))
    assert seen == [4, 4, 40]


def test_preconditioners(monkeypatch):
    target = logistic()
    for limit, kind in [(3, "hessian"), (2, "diagonal")]:
        monkeypatch.setattr(preconditioning, "DENSE_LIMIT", limit)
        assert coordinates_of(target, Request()) == kind
    assert coordinates_of(target, Request(preconditioner="hessian")) == "hessian"
    assert coordinates_of(target, Request(preconditioner=None)) == "none"


def test_only_blocks_have_rows_in_random_order():
    target, rng = logistic(), np.random.default_rng(1)
    for scheme in (None, Uniform(), Blocks(shuffle=False)):
        assert choose._in_order(target, Request(subsampling=scheme), rng) is target
    mixed = choose._in_order(target, Request(subsampling=Blocks()), rng)
    rows = np.column_stack([target.X, target.data.facts[:, 0]])
    other = np.column_stack([mixed.X, mixed.data.facts[:, 0]])
    assert not np.array_equal(rows, other)
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(other, axis=0))


def test_a_flat_prior_of_the_noise_needs_rows():
    for n_rows, n_flat, proper in [(5, 3, True), (4, 3, False), (2, 0, True), (1, 0, False)]:
        coefficients = [Flat() if k < n_flat else Normal() for k in range(3)]
        table = [prior._table((1,)) for prior in [*coefficients, resolve_positive("flat")]]
        target = Target(np.ones((n_rows, 3)), np.ones(n_rows), np.ones(n_rows), Linear(),
            np.concatenate(table), intercept=False)  # fmt: skip
        if proper:
            choose.check_noise(target)
        else:
            with pytest.raises(ValueError, match="rows must outnumber the coefficients"):
                choose.check_noise(target)


# -- independent draws ----------------------------------------------------------------------------


def one_mode(frame):
    return Modes((frame,), np.zeros(1))


def test_independent_draws_need_whitened_coordinates_and_few_parameters(monkeypatch):
    modes = one_mode(make_scene("logistic").frame(kind="hessian"))
    assert independent.is_possible(modes)
    assert not independent.is_possible(one_mode(make_scene("logistic").frame(kind="diagonal")))
    monkeypatch.setattr(independent, "DENSE_LIMIT", 2)
    assert not independent.is_possible(modes)
    assert choose._independent(modes, Request(), None) is None
    with pytest.raises(ValueError, match="needs a Hessian"):
        choose._independent(modes, Request(sampler=Importance()), None)


# -- all rows -------------------------------------------------------------------------------------


def test_warm_up_refines_the_coordinates_once(monkeypatch):
    # From the draws between the first and the third fifth: S = (m cov + (d + 5) I)/(m + d + 5).
    frame, calls = make_scene("logistic").frame(kind="hessian"), []
    draws = np.random.default_rng(0).standard_normal((4, 100, 3)) * [1.0, 2.0, 0.5]

    def sample(setup, chains, n_draws, thin, **_):
        calls.append((n_draws, setup.problem.coordinates[1].copy()))
        return draws, chains

    monkeypatch.setattr(full_data, "sample", sample)
    monkeypatch.setattr(full_data, "Production", lambda frame, setup, *_, **__: SimpleNamespace(
        run=lambda chains, watch: (setup, chains)))  # fmt: skip
    monkeypatch.setattr(full_data, "outcome_of", lambda made, frame: (made, frame))
    setup, refined = full_data.run_exact(one_mode(frame), Request())
    assert [n for n, _ in calls] == [full_data.KNOWN, 40, 100, 50, 50]
    pooled = draws.reshape(-1, 3)
    S = (400 * np.cov(pooled.T, ddof=0) + 8 * np.eye(3)) / 408
    np.testing.assert_allclose(refined.F @ refined.F.T, frame.F @ S @ frame.F.T)
    np.testing.assert_array_equal(calls[2][1], frame.F)
    np.testing.assert_array_equal(calls[3][1], refined.F)
    assert not setup.adapt
    calls.clear()
    _, same = full_data.run_exact(one_mode(frame), Request(step_size=Constant(0.3), n_warmup=10))
    assert [n for n, _ in calls] == [2, 4, 2, 2]
    assert same is frame


def test_chains_begin_where_there_is_a_step():
    """Half a standard deviation from the mode of a wide prior the mean of a count is e¹⁰⁰."""
    rng = np.random.default_rng(0)
    X, table = rng.normal(size=(10, 30)), Normal(scale=100.0)._table((30,))
    target = Target(X, np.arange(10.0), np.ones(10), Poisson(), table, intercept=False)
    frame = choose.frame_of(target, "hessian", True, rng)
    modes, away = one_mode(frame), 0.5 * frame.guess(rng.standard_normal((4, 30)))

    def rise(positions):
        U = [target.value_and_gradient(theta)[0] for theta in frame.theta(positions)]
        return np.array(U) - target.value_and_gradient(frame.centre.theta)[0]

    with np.errstate(over="ignore"):
        assert rise(modes.begun(away)).max() > 1e9
    starts = full_data._within_reach(modes, away)
    assert (rise(starts) < 130.0).all()
    ratio = starts / away
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(30))
    halvings = np.log2(ratio[:, 0])
    np.testing.assert_allclose(halvings, halvings.round(), atol=1e-9)
    near = modes.begun(starts / 2.0**20)  # none is moved that need not be
    np.testing.assert_array_equal(full_data._within_reach(modes, near), near)


@pytest.mark.parametrize(
    ("model", "noise", "weight", "proper"),
    [
        # Half-t with df = 3 and three flat coefficients: W + 3 > 3 at every weight.
        (Linear(), HalfStudentT(df=3.0), 1e-30, True),
        (Linear(), HalfStudentT(df=2.0), 1.01, True),
        (Linear(), HalfStudentT(df=2.0), 0.99, False),
        (Linear(), InverseGamma(alpha=1.0), 1.01, True),  # p(σ) ~ σ^(-3), df = 2
        (Linear(), InverseGamma(alpha=1.0), 0.99, False),
        (Linear(), HalfNormal(), 1e-30, True),
        (Linear(), resolve_positive("flat"), 4.01, True),
        (Linear(), resolve_positive("flat"), 3.99, False),
        (NegativeBinomial(), HalfStudentT(df=2.0), 2.02, True),  # half of the counts are positive
        (NegativeBinomial(), HalfStudentT(df=2.0), 1.98, False),
        (Robust(), HalfNormal(), 3.01, True),
        (Robust(), HalfNormal(), 2.99, False),
        (Linear(), HalfStudentT(df=2.0), 1.0 + 1e-15, False),  # weights add up within rounding
        (Robust(), HalfNormal(), 3.0 - 1e-15, True),
    ],
)
def test_few_or_light_rows_leave_flat_coefficients_without_a_posterior(
    model, noise, weight, proper
):
    n_rows, extras = 8, [noise, HalfNormal()][: model.n_extra]
    table = np.concatenate([prior._table((1,)) for prior in [Flat(), Flat(), Flat(), *extras]])
    y, w = np.arange(n_rows) % 2.0, np.full(n_rows, weight / n_rows)
    target = Target(np.ones((n_rows, 3)), y, w, model, table, intercept=False)
    if proper:
        choose.check_noise(target)
    else:
        with pytest.raises(ValueError, match="Improper posterior"):
            choose.check_noise(target)


def test_the_noise_of_few_light_rows_has_the_tail_that_is_stated():
    """The density of log σ, coefficients integrated out, falls as σ^(p - W - df)."""
    rng = np.random.default_rng(3)
    X, y, total, df = rng.normal(size=(9, 3)), rng.normal(size=9), 1.7, 2.0
    table = [prior._table((1,)) for prior in [Flat(), Flat(), Flat(), HalfStudentT(df=df, scale=1)]]
    target = Target(X, y, np.full(9, total / 9), Linear(), np.concatenate(table), intercept=False)
    conditional, s = conditional_of(target), np.array([20.0, 21.0])
    log_prior = [-prior_value(target.prior[-1:], np.array([place])) for place in s]
    slope = np.diff(conditional.log_likelihood(s) + log_prior)
    np.testing.assert_allclose(slope, 3.0 - total - df, rtol=1e-9)
