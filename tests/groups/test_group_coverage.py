"""Intervals over made tables whose parameters are drawn from the prior: they cover as they say."""

import numpy as np
import pytest

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.priors import HalfNormal, Normal

N, LEVELS = 40, 9  # some levels have a row or two, and the last one has none


def made(seed, binary):
    rng = np.random.default_rng(seed)
    x, b, beta = rng.normal(size=N + 20), rng.normal(), rng.normal()
    share = rng.gamma(0.5, size=LEVELS - 1) + 0.02
    code = np.r_[rng.choice(LEVELS - 1, N + 10, p=share / share.sum()), np.full(10, LEVELS - 1)]
    u = abs(rng.normal()) * rng.normal(size=LEVELS)
    eta = b + beta * x + u[code]
    y = (rng.logistic(size=len(eta)) < eta) if binary else eta + rng.normal(size=len(eta))
    return np.column_stack([x, code]), y.astype(float), eta, u


def covered(seed, binary):
    """Which 90 % intervals hold the truth: effects, rows of known levels, rows of a new level."""
    X, y, eta, u = made(seed, binary)
    options = {"group_effects": [1], "group_scale": HalfNormal(1.0), "prior": Normal(scale=1.0)}
    options |= {"intercept_prior": Normal(scale=1.0), "random_state": seed, "n_chains": 1}
    if len(set(y[:N])) < 2:
        return None
    if binary:
        model = BayesianLogisticRegression(n_draws=400, **options).fit(X[:N], y[:N])
        lower, upper = model.predict_proba_interval(X[N:])
        p = 1.0 / (1.0 + np.exp(-eta[N:]))
        rows = (lower[:, 1] <= p) & (p <= upper[:, 1])
    else:
        model = BayesianLinearRegression(n_draws=1000, noise=1.0, **options).fit(X[:N], y[:N])
        lower, upper = model.predict_interval(X[N:])
        rows = (lower <= y[N:]) & (y[N:] <= upper)
    known = model.group_levels_["x1"].astype(int)
    table = model.effects_
    inside = (table["5%"] <= u[known]) & (u[known] <= table["95%"])
    few = inside[np.asarray(table["rows"]) <= 2.0]
    return [inside.mean(), few.mean() if len(few) else np.nan, rows[:10].mean(), rows[10:].mean()]


@pytest.mark.slow
@pytest.mark.parametrize(("binary", "n_tables"), [(False, 500), (True, 500)])
@pytest.mark.filterwarnings("ignore")
def test_intervals_cover_as_they_say(binary, n_tables):
    found = [covered(seed, binary) for seed in range(n_tables)]
    found = np.array([one for one in found if one is not None])
    share = np.nanmean(found, axis=0)
    error = np.nanstd(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(share - 0.9) < np.maximum(0.02, 3.5 * error)).all(), share
