"""Draws whose tails are so heavy that standard deviations depend on the farthest few."""

import numpy as np
import pytest
from scipy import signal, stats

from skbayes_sg import BayesianRobustRegression
from skbayes_sg.diagnostics import check_draws
from skbayes_sg.diagnostics.convergence import FOURTH_MOMENT, mcse_sd, tail_shape

LIGHT = {  # laws of posteriors that are not heavy, though some are skewed
    "normal": stats.norm(),
    "logarithm of few events": stats.loggamma(1.5),
    "few events": stats.gamma(1.5),
    "exponential": stats.expon(),
    "laplace": stats.laplace(),
    "t with 30": stats.t(30),
    "skewed scale": stats.lognorm(0.3),
}


def dependent(law, rho, seed, d):
    """Draws (4, 1000, d) of a law, whose normal scores are an autoregression."""
    noise = np.random.default_rng(seed).standard_normal((4, 1200, d))
    z = signal.lfilter([np.sqrt(1.0 - rho**2)], [1.0, -rho], noise, axis=1)[:, 200:]
    return law.ppf(stats.norm.cdf(z))


@pytest.mark.parametrize("rho", [0.0, 0.7])
@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.slow
def test_light_tails_hardly_ever_count_as_heavy(name, rho):
    draws = dependent(LIGHT[name], rho, 0, 400)
    assert (tail_shape(draws) > FOURTH_MOMENT).mean() < 0.005


@pytest.mark.parametrize(
    ("df", "least"),
    [
        pytest.param(1.5, 0.99, marks=pytest.mark.slow),
        (2.0, 0.9),
        pytest.param(2.5, 0.6, marks=pytest.mark.slow),
    ],
)
def test_heavy_tails_are_seen(df, least):
    draws = dependent(stats.t(df), 0.5, 1, 50)
    is_heavy = tail_shape(draws) > FOURTH_MOMENT
    assert is_heavy.mean() >= least
    assert np.isnan(mcse_sd(draws))[is_heavy].all()
    assert np.isfinite(mcse_sd(draws))[~is_heavy].all()


def test_shapes_have_the_shape_of_parameters_and_do_not_depend_on_their_unit():
    draws = dependent(stats.t(2.0), 0.0, 2, 6)
    found = tail_shape(draws.reshape(4, 1000, 2, 3))
    assert found.shape == (2, 3)
    assert found.ravel() == pytest.approx(tail_shape(1e-100 * draws + 1e-98), rel=1e-6)
    assert tail_shape(np.ones((4, 100))) == 0.0
    assert tail_shape(np.full((2, 100), np.inf)) == 0.0


def test_repeated_draws_tell_less():
    draws = dependent(stats.t(2.0), 0.0, 3, 10)
    assert (tail_shape(draws, share=0.2) < tail_shape(draws)).all()
    ratio = mcse_sd(draws[..., :1] * 0.0 + dependent(stats.norm(), 0.0, 3, 1), share=0.25)
    assert ratio == pytest.approx(2.0 * mcse_sd(dependent(stats.norm(), 0.0, 3, 1)))


def test_verdicts_note_them_and_trust_the_draws():
    draws = dependent(stats.t(2.0), 0.0, 4, 2)
    verdict = check_draws(draws)
    (finding,) = verdict.findings
    assert (finding.name, finding.is_note, bool(verdict)) == ("tails of the draws", True, True)
    assert "report quantiles" in str(verdict)
    assert not check_draws(dependent(stats.norm(), 0.0, 4, 50)).findings


@pytest.mark.slow
def test_six_rows_leave_heavy_tails():
    """Standard deviations of such fits vary by a fifth, and none said so."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, 2.0] + 0.3 * rng.normal(size=40)
    posterior = BayesianRobustRegression(random_state=0).fit(X[:6], y[:6]).posterior_
    assert [f.name for f in posterior.check().findings] == ["tails of the draws"]
    summary = posterior.summary()
    assert np.isnan(summary["mcse_sd"]).any()
    assert "report quantiles" in str(summary)
    posterior = BayesianRobustRegression(random_state=0).fit(X, y).posterior_
    assert not posterior.check().findings
    assert "quantiles" not in str(posterior.summary())
