"""Predicted costs: the formulas with numbers, and what is told or refused because of them."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from problems import binary
from scipy import sparse
from sklearn.base import clone

from skbayes_sg import BayesianLogisticRegression, BayesianPoissonRegressor
from skbayes_sg.custom import CustomDensity
from skbayes_sg.dynamics import HMC, MALA
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import (
    LongRunWarning,
    SamplerConvergenceWarning,
    SamplerDivergedError,
)
from skbayes_sg.geometry.modes import find_modes
from skbayes_sg.models import Logistic, Poisson, Robust, Softmax
from skbayes_sg.priors import Normal
from skbayes_sg.recipe import choose, full_data, price, stochastic, tuning
from skbayes_sg.recipe.choose import frame_of
from skbayes_sg.recipe.final_run import Production
from skbayes_sg.recipe.request import Request
from skbayes_sg.recipe.tuning import Refused, Tuner
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import Preferential, Uniform


def target(n=2000, d=4):
    X, y = binary(n, d)
    prior = Normal(scale=2.0)._table((d + 1,))
    return Target(X, y.astype(float), np.ones(n), Logistic(), prior)


def test_prices_are_the_formulas():
    posterior, request = target(1000, 10), Request(n_draws=500, n_chains=4)
    row = 1000 * (20 + 0.8 * 10) + 11**2
    assert np.isclose(price.seconds_of_steps(posterior, 7, 1000), 7 * row * 1e-9)
    assert np.isclose(price.seconds_of_chains(posterior, request), 9000 * (row + 1000) * 1e-9)
    of_rows = (50 * (4 + 0.08 * 10) + 0.2 * 11**2) * 1e-9
    assert np.isclose(price.seconds_of_rows(posterior, 50), of_rows)
    of_warps = 7 * (120 + 0.3 * 11) * 1e-9
    assert np.isclose(price.seconds_of_rows(posterior, 50, 7), of_rows + of_warps)
    assert price.slowdown_of_batches(posterior, 999) == price.RANDOM_ROWS
    assert price.slowdown_of_batches(posterior, 1000) == 1.0
    assert price.slowdown_of_batches(posterior, 1000, Preferential()) == 1.0
    assert price.slowdown_of_batches(posterior, 999, Uniform()) == price.RANDOM_ROWS
    dear = 1.0 + price.PREFERRED_ROW / (20 + 0.8 * 10)
    assert price.slowdown_of_batches(posterior, 999, Preferential()) == dear > price.RANDOM_ROWS
    wide = target(200, 90)  # where reading a row takes longer than drawing it
    assert price.slowdown_of_batches(wide, 100, Preferential()) == price.RANDOM_ROWS
    posterior.model.cost = 2.0  # that of functions of users
    row = 1000 * (40 + 0.8 * 10) + 11**2
    assert np.isclose(price.seconds_of_steps(posterior, 7, 1000), 7 * row * 1e-9)


def test_every_predictor_has_its_price():
    X, y = binary(50, 10)
    table = Normal(scale=2.0)._table((33,))
    three = Target(X, y.astype(float), np.ones(50), Softmax(3), table)
    row = 3 * 50 * (20 + 0.8 * 10) + 33**2
    assert np.isclose(price.seconds_of_steps(three, 1, 50), row * 1e-9)


def test_sparse_rows_cost_what_they_store_and_diagonal_coordinates_next_to_nothing():
    X = sparse.random_array((60, 3000), density=0.01, rng=np.random.default_rng(0)).tocsr()
    y = (np.arange(60) % 2).astype(float)
    text = Target(X, y, np.ones(60), Logistic(), Normal(scale=1.0)._table((3001,)))
    row = 60 * (20 + 6.4 * X.nnz / 60) + 3001
    assert np.isclose(price.seconds_of_steps(text, 1, 60), row * 1e-9)
    of_rows = (60 * (4 + 1.2 * X.nnz / 60) + 0.2 * 3001) * 1e-9
    assert np.isclose(price.seconds_of_rows(text, 60), of_rows)


@pytest.mark.parametrize(
    ("model", "is_sparse", "d", "said"),
    [
        (Logistic(), False, 4, r"group_effects, or use a prior that is less wide\.$"),
        (Logistic(), False, 300, r"group_effects, .*: one whose scale is learned, .*HalfCauchy"),
        (Logistic(), True, 4, r"\(n_draws\), or use a prior that is less wide\.$"),
        (Softmax(3), False, 4, r"\(n_draws\), or use a prior that is less wide\.$"),
        (Softmax(3), True, 300, r"TruncatedSVD\), or use a prior .*: one whose scale is learned"),
        (Softmax(9), True, 300, r"TruncatedSVD\), or use a prior that is less wide\.$"),
        (Robust(), False, 300, r"group_effects, or use a prior that is less wide\.$"),
    ],
)
def test_remedies_are_those_that_the_model_accepts(model, is_sparse, d, said):
    """Groups need dense rows and one predictor; learned scales at most 2000 parameters."""
    X, y = binary(50, d)
    X = sparse.csr_array(X) if is_sparse else X
    n = (d + 1) * model.n_linear + model.n_extra
    made = Target(X, y.astype(float), np.ones(50), model, Normal()._table((n,)))
    found = full_data._remedy(made)
    assert found.startswith("Make fewer draws")
    assert re.search(said, found)


def test_a_minute_comes_with_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        price.warn_if_long(59.0, "It", "Do less.", least=60.0)
        price.warn_if_long(9.0, "It", "Do less.", least=10.0)
    with pytest.warns(LongRunWarning, match="It is predicted to take 5 minutes or more. Do less."):
        price.warn_if_long(300.0, "It", "Do less.", least=60.0)
    with pytest.warns(LongRunWarning, match="It is predicted to take 1 minute or more"):
        price.warn_if_long(61.0, "It", "Do less.", least=60.0)
    with pytest.warns(LongRunWarning, match="It is predicted to take 11 seconds or more"):
        price.warn_if_long(11.0, "It", "Do less.", least=10.0)


def test_the_price_of_all_rows_is_told_before_they_are_used(monkeypatch):
    monkeypatch.setattr(full_data, "seconds_of_chains", lambda *arguments: 600.0)
    model = BayesianLogisticRegression(sampler="hmc", n_draws=20, n_chains=2, random_state=0)
    with pytest.warns(LongRunWarning, match="HMC on all 300 rows is predicted to take 10 minutes"):
        model.fit(*binary(300))


@pytest.mark.filterwarnings("error::skbayes_sg.exceptions.LongRunWarning")
@pytest.mark.parametrize(("seconds", "before"), [(1.0, [10, 40]), (10.0, [10])])
def test_the_price_of_small_steps_is_told_early(monkeypatch, seconds, before):
    parts = []
    sample = full_data.sample
    monkeypatch.setattr(full_data, "sample", lambda *a, **k: parts.append(a[2]) or sample(*a, **k))
    monkeypatch.setattr(full_data, "_seconds_of_a_draw", lambda *arguments: seconds)
    model = BayesianLogisticRegression(sampler="hmc", n_draws=110, n_chains=2, random_state=0)
    with pytest.raises(LongRunWarning):
        model.fit(*binary(300))
    assert parts == before


def test_coupled_chains_are_in_the_price_of_steps(monkeypatch):
    asked = []
    monkeypatch.setattr(stochastic, "seconds_of_steps", lambda _, n, rows: asked.append(n) or 0.0)
    frame = frame_of(target(), "hessian", True, np.random.default_rng(0))
    tuner = Tuner(frame, Request(n_draws=100, n_chains=3), np.random.default_rng(0))
    monkeypatch.setattr(tuner, "relaxation", lambda: 14.0)
    stochastic._tell_price(tuner, 20, 50)
    assert asked == [3 * (50 + 20 * 100) + 3 * stochastic.COUPLED_DRAWS * 7]


@pytest.mark.slow
def test_the_price_of_steps_is_told_or_refused(monkeypatch):
    monkeypatch.setattr(stochastic, "seconds_of_steps", lambda *arguments: 600.0)
    model = BayesianLogisticRegression(sampler="baoab", n_draws=20, n_chains=2, random_state=0)
    with pytest.warns(LongRunWarning, match="steps with 10 rows each is predicted to take 20 min"):
        model.fit(*binary(3000))
    with pytest.warns(LongRunWarning, match="Fewer rows a step would not help.*gradient='auto'"):
        clone(model).set_params(gradient="minibatch").fit(*binary(3000))
    modes = find_modes(frame_of(target(), "hessian", True, np.random.default_rng(0)))
    with pytest.raises(Refused):
        stochastic.run_stochastic(modes, Request(n_draws=20), np.random.default_rng(0))


def test_pilots_that_take_long_are_refused_if_nobody_asked_for_them(monkeypatch):
    frame = frame_of(target(), "hessian", True, np.random.default_rng(0))
    monkeypatch.setattr(tuning, "seconds_of_steps", lambda *arguments: 21.0)
    tuner = Tuner(frame, Request(), np.random.default_rng(0))
    asked = Tuner(frame, Request(batch_size=20), np.random.default_rng(0))
    tuner.h = asked.h = 0.1
    with pytest.raises(Refused):
        tuner._pilot(first=True)
    assert asked._pilot(first=True) is not None


@pytest.mark.parametrize(("seconds", "most"), [(1e-9, 8), (1.0, 1)])
def test_runs_are_not_made_longer_than_a_minute_if_nobody_asked(monkeypatch, seconds, most):
    monkeypatch.setattr(choose, "_independent", lambda *arguments: None)
    monkeypatch.setattr(full_data, "_seconds_of_a_draw", lambda *arguments: seconds)
    monkeypatch.setattr(Production, "_too_little", lambda *arguments: True)
    model = BayesianLogisticRegression(n_draws=50, n_chains=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.fit(*binary(300)).thin_ == most


def test_all_rows_take_over_where_steps_are_refused(monkeypatch):
    def refused(*arguments):
        raise Refused

    monkeypatch.setattr(choose, "_independent", lambda *arguments: None)
    monkeypatch.setattr(choose, "_wants_exact", lambda *arguments: False)
    monkeypatch.setattr(choose, "run_stochastic", refused)
    model = BayesianLogisticRegression(n_draws=50, n_chains=2, random_state=0).fit(*binary(300))
    assert model.sampler_ == "hmc"


def test_the_price_follows_the_step_that_the_warm_up_has_found():
    posterior, request = target(1000, 10), Request(n_draws=500, n_chains=4)
    for dynamics, h, leapfrogs in ((HMC(), 0.01, 15), (HMC(), 1e-12, 1024), (MALA(), 0.01, 1)):
        setup = SimpleNamespace(step_size=Constant(h), dynamics=dynamics)
        expected = price.seconds_of_steps(posterior, 4 * leapfrogs, 1000) + 4e-6 * leapfrogs
        assert np.isclose(full_data._seconds_of_a_draw(setup, posterior, request), expected)


def test_a_price_is_told_again_where_it_is_much_more(recwarn):
    told = price.Price("The run", "Do less.")
    told.tell(9.0)
    told.tell(500.0, least=200.0)
    assert not recwarn
    with pytest.warns(LongRunWarning, match=r"The run is predicted to take 2 minutes .* Do less."):
        told.tell(120.0)
    told.tell(350.0)
    assert not recwarn
    with pytest.warns(LongRunWarning, match="take 6.2 minutes or more"):
        told.tell(370.0)


def test_wide_tables_are_advised_of_levels_and_learned_scales():
    known = {"n_rows": 300, "n_features": 200, "n_parameters": 201}
    wide = SimpleNamespace(model=Poisson(), X=np.zeros((300, 200)), **known)
    said = full_data._remedy(wide)
    assert all(part in said for part in ("n_draws", "group_effects", "scale=HalfCauchy(1.0)"))


@pytest.mark.parametrize(
    ("seconds", "pace"), [(30.0, 60.0), (1.4, 1.0), (0.09, 1.0)], ids=["slow", "busy", "short"]
)
def test_slow_functions_are_told_by_the_time_of_the_warm_up(seconds, pace):
    """Trajectories that are expected to take half a second, or a thousandth."""
    assert price.pace_of(seconds, 1e-3 if seconds < 0.1 else 0.5) == pace


@pytest.mark.slow
def test_functions_of_users_that_are_slow_are_told(monkeypatch):
    def slow(theta, row):
        total = 0.0
        for k in range(2000):
            total -= 0.5 * (theta[0] - row[0]) ** 2 / (1.0 + k) ** 2
        return total

    monkeypatch.setattr(price, "TOLD_SECONDS", 0.5)
    model = CustomDensity(slow, {"m": Normal(scale=3.0)}, n_draws=200, random_state=0)
    with pytest.warns(LongRunWarning, match="all 30 rows is predicted"):
        model.fit(np.linspace(-1.0, 1.0, 30)[:, None])


def test_a_warm_up_that_was_too_short_is_blamed():
    rng = np.random.default_rng(0)
    y, X = rng.poisson(1, 300), (rng.random((300, 1)) < 0.05).astype(float)
    model = BayesianPoissonRegressor(sampler="mala", n_warmup=1, random_state=0)
    with (
        pytest.warns(SamplerConvergenceWarning),
        pytest.raises(SamplerDivergedError, match="n_warmup=1 is too short to find a step size"),
    ):
        model.fit(X, y)
