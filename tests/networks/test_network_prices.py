"""The prices of networks: before a run, and before chains that do not agree go on."""

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from skbayes_sg import BayesianMLPRegressor
from skbayes_sg.exceptions import LongRunWarning
from skbayes_sg.networks import price, run

X = np.random.default_rng(0).standard_normal((60, 3))
Y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(60)
FEW = {"hidden_layer_sizes": (4,), "n_chains": 2, "n_warmup": 3, "n_draws": 6, "random_state": 0}


def told_of(**options):
    """The `LongRunWarning` of a fit, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BayesianMLPRegressor(**FEW | options).fit(X, Y)
    return [str(one.message) for one in caught if one.category is LongRunWarning]


@pytest.mark.parametrize("batch_size", ["auto", 20])
def test_chains_that_go_on_tell_the_time_by_what_they_have_taken(monkeypatch, batch_size):
    clock = itertools.count(0.0, 40.0)
    monkeypatch.setattr(run, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(run, "LIMIT", 0.0)  # chains never agree
    first, second = told_of(thin=2, max_doublings=2, batch_size=batch_size)
    # A round takes from 40 to 80 seconds, and from 120 to 160; the third one is twice as long.
    assert "thin=2. The whole run is predicted to take 2 minutes or more" in first
    assert "thin=4. The whole run is predicted to take 4 minutes or more" in second


def test_chains_that_go_on_for_a_short_time_tell_nothing(monkeypatch):
    clock = itertools.count(0.0, 1.0)
    monkeypatch.setattr(run, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(run, "LIMIT", 0.0)
    assert not told_of(thin=2, max_doublings=2)


def test_steps_on_batches_have_a_price_of_their_own(monkeypatch):
    told = []
    monkeypatch.setattr(price, "warn_if_long", lambda seconds, *_: told.append(seconds))
    network = SimpleNamespace(sizes=np.array([20, 50, 1]))
    for n_rows in (500, 501):
        problem = SimpleNamespace(n_parameters=1101, n_rows=n_rows, network=network)
        price.tell_price(problem, 2, 1000, 500)
    whole, batch = told
    assert whole == pytest.approx(2000 * (1101 * 6e-9 + 500 * (1101 * 0.07e-9 + 51 * 1.7e-9)))
    row = 1101 * 0.07e-9 + 51 * 7.5e-9 + 20 * 6e-9
    assert batch == pytest.approx(2000 * (5e-5 + 1101 * 6e-9 + 500 * row))
