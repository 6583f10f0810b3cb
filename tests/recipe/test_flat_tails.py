"""Flat tails of a posterior, where likelihoods have a plateau: they are looked for, and reached."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

from skbayes_sg.custom import CustomRegressor
from skbayes_sg.importance import flat_tails
from skbayes_sg.importance.warps import unwarped
from skbayes_sg.priors import Normal
from skbayes_sg.recipe import independent

N_ROWS = 40


def zero_inflated(e, y):
    """Counts with rate exp(e[1]), of which a share with the logit e[0] is zero in any case."""
    rate = np.exp(e[1])
    if y == 0.0:
        return np.log(np.exp(e[0]) + np.exp(-rate)) - np.log1p(np.exp(e[0]))
    return -np.log1p(np.exp(e[0])) + y * e[1] - rate


def counts(e, y):
    """Counts with rate exp(e[1]), and a bowl for the predictor that they do not need."""
    return y * e[1] - np.exp(e[1]) - 0.5 * e[0] ** 2


def table(seed=16):
    """A column, and counts with a share of zeros so small that there may be none."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N_ROWS)
    return x[:, None], np.where(rng.random(N_ROWS) < 0.3, 0, rng.poisson(np.exp(0.5 + 0.5 * x)))


def fitted(law, **parameters):
    """The law fitted to the table; without a plateau nothing limits the intercept but its prior."""
    model = CustomRegressor(
        log_likelihood=law, n_predictors=2, prior=Normal(scale=2.0), random_state=0,
        intercept_prior=Normal(scale=5.0), **parameters,
    )  # fmt: skip
    return model.fit(*table())


@pytest.mark.slow
def test_plateaus_are_left_to_chains_and_bowls_are_not(monkeypatch):
    seen = []

    def looked_for(proposal):
        reach = flat_tails.reach_of_tails(proposal)
        seen.append(reach is not None)
        return reach

    monkeypatch.setattr(independent, "reach_of_tails", looked_for)
    monkeypatch.setattr(independent, "may_grow", lambda *_: False)
    assert fitted(zero_inflated, n_draws=100).sampler_ == "hmc"
    assert fitted(counts, n_draws=100).sampler_ == "importance"
    assert seen == [True, False]


@pytest.mark.slow
def test_flat_tails_are_not_looked_for_where_chains_are_dear(monkeypatch):
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: 11.0)
    monkeypatch.setattr(independent, "reach_of_tails", lambda _: pytest.fail("was asked for"))
    assert fitted(zero_inflated, n_draws=100).sampler_ == "importance"


def contaminated(share, width, n_rows=1, **parameters):
    """A mean of rows at zero, of which a share may come from a law that is far wider."""

    def law(eta, y):
        z = eta - y
        wide = share / width * np.exp(-0.5 * (z / width) ** 2)
        return np.log((1.0 - share) * np.exp(-0.5 * z * z) + wide + 1e-300)

    options = {"fit_intercept": False, "prior": Normal(scale=1000.0), "random_state": 0}
    model = CustomRegressor(log_likelihood=law, **options | parameters)
    draws = model.fit(np.ones((n_rows, 1)), np.zeros(n_rows)).posterior_["coef"].ravel()
    x = np.sinh(np.linspace(-12.0, 12.0, 400_001))
    with np.errstate(under="ignore"):
        p = np.array([law(x, 0.0)]).sum(axis=0) * n_rows - 0.5 * (x / 1000.0) ** 2
        p = np.exp(p - p.max()) * np.cosh(np.linspace(-12.0, 12.0, 400_001))
    p /= p.sum()
    return draws, p @ (np.abs(x) > 6.0), np.sqrt(p @ x**2)


@pytest.mark.parametrize(("share", "width"), [(0.1, 100.0), (0.02, 100.0), (0.1, 30.0)])
@pytest.mark.slow_for("0.1-30.0")
def test_wide_plateaus_that_are_low_are_in_the_draws(share, width):
    """A plateau 7 or 8 nats below the mode has a tenth or a fiftieth of the mass."""
    draws, far, sd = contaminated(share, width, n_draws=5000)
    assert far > 0.018
    error = np.sqrt(far / (len(draws) / 2.0))
    assert abs((np.abs(draws) > 6.0).mean() - far) < 4.0 * error
    assert abs(draws.std() / sd - 1.0) < 4.0 * np.sqrt(1.0 / far / len(draws))


def test_importance_sampling_that_is_asked_for_is_obeyed():
    assert fitted(zero_inflated, n_draws=100, sampler="importance").sampler_ == "importance"


def reference(n=1_000_000):
    """Draws of the four parameters, and their weights: the prior, but for the rate a normal law."""
    rng, (X, y) = np.random.default_rng(1), table()
    x = X[:, 0]
    centre, width = np.array([0.0, 0.6, 0.0, 0.5]), np.array([2.0, 0.3, 5.0, 0.3])
    theta = centre + width * rng.standard_normal((n, 4))  # slopes of both, intercepts of both
    logit = theta[:, 2] + np.multiply.outer(x, theta[:, 0])
    log_rate = theta[:, 3] + np.multiply.outer(x, theta[:, 1])
    zero = np.logaddexp(logit, -np.exp(log_rate))
    some = y[:, None] * log_rate - np.exp(log_rate)
    log_p = np.where(y[:, None] == 0, zero, some).sum(axis=0)
    log_p -= np.logaddexp(0.0, logit).sum(axis=0)
    log_p -= np.square(theta[:, 1]) / 8.0 + np.square(theta[:, 3]) / 50.0
    log_p += np.square((theta - centre) / width)[:, [1, 3]].sum(axis=1) / 2.0
    return theta[:, 2], special.softmax(log_p)


@pytest.mark.slow
def test_tails_of_a_plateau_are_in_the_draws():
    """Independent draws, which are wrong here, lack a seventh of the standard deviation."""
    intercept, weights = reference()
    mean = weights @ intercept
    sd = np.sqrt(weights @ np.square(intercept - mean))
    for sampler, is_right in (("auto", True), ("importance", False)):
        model = fitted(zero_inflated, n_draws=20_000, sampler=sampler)
        ratio = model.posterior_["intercept"][..., 0].std() / sd
        assert (abs(ratio - 1.0) < 0.08) == is_right, (sampler, ratio)


def test_a_far_peak_of_any_height_matters_without_warnings():
    """Far from a centre that is no mode, U may be lower by more than exp can tell."""
    target = SimpleNamespace(model=SimpleNamespace(convex=False), n_rows=10, n_parameters=2)
    frame = SimpleNamespace(F=np.eye(2), target=target)

    def values(phi):
        return 0.5 * np.square(phi).sum(axis=1) - 20.0 * np.abs(phi[:, 0]) ** 1.9

    exact = SimpleNamespace(values=values)
    proposal = SimpleNamespace(frame=frame, exact=exact, warps=unwarped(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reach = flat_tails.reach_of_tails(proposal)
    assert reach[0] >= 16.0
    assert reach[1] == 0.0
