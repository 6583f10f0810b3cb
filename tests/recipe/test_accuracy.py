"""Every gradient and every way to draw rows, through the estimator: the posterior by quadrature.

Two parameters, few events: a posterior that is skewed, and steps on few rows. What "auto" allows
step and noise to add to a variance is 2 %, so 1 % of a standard deviation; the rest of the limits
is five Monte Carlo standard errors.
"""

from functools import cache

import numba
import numpy as np
import pytest

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics import convergence
from skbayes_sg.gradients import GRADIENTS, SAGA, SVRG
from skbayes_sg.subsampling import SUBSAMPLING, Adaptive, Preferential

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="too slow uncompiled")
N, SCALES = 120, (1.0, 10.0)  # rows, and standard deviations of the priors
BIAS = 0.01  # of a standard deviation, by step and noise

PIECES = [{"gradient": name} for name in GRADIENTS if name != "full"]
PIECES += [{"gradient": SAGA(table="online")}, {"gradient": SVRG(refresh=20)}]
PIECES += [{"gradient": "control_variate", "subsampling": name} for name in SUBSAMPLING]
PIECES += [
    {"gradient": "control_variate", "subsampling": scheme}
    for scheme in (Preferential(weights="hessian"), Adaptive(preferential=True))
]
PIECES += [{"subsampling": name} for name in SUBSAMPLING]


@cache
def rows():
    """One column, and some sixteen events."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(N)
    return x[:, None], rng.random(N) < 1.0 / (1.0 + np.exp(2.0 - 0.7 * x))


@cache
def by_quadrature():
    """Means and standard deviations of coefficient and intercept, on a grid."""
    X, y = rows()
    b, a = np.meshgrid(np.linspace(-2.5, 4.0, 261), np.linspace(-7.0, 0.5, 251), indexing="ij")
    log_p = -0.5 * ((b / SCALES[0]) ** 2 + (a / SCALES[1]) ** 2)
    for x, event in zip(X[:, 0], y, strict=True):
        eta = b * x + a
        log_p += event * eta - np.logaddexp(0.0, eta)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    assert max(p[0].max(), p[-1].max(), p[:, 0].max(), p[:, -1].max()) < 1e-8 * p.max()
    mean = np.array([(p * b).sum(), (p * a).sum()])
    return mean, np.sqrt([(p * (b - mean[0]) ** 2).sum(), (p * (a - mean[1]) ** 2).sum()])


def errors(model):
    """Errors of means, and of standard deviations, as shares of what is allowed."""
    mean, sd = by_quadrature()
    draws = model.posterior_.flat
    shift = (draws.mean(axis=(0, 1)) - mean) / sd
    spread = draws.std(axis=(0, 1)) / sd - 1.0
    of_mean, of_sd = (5.0 * f(draws) / sd for f in (convergence.mcse_mean, convergence.mcse_sd))
    assert max(of_mean.max(), of_sd.max()) < 0.15  # the draws can tell
    return np.abs(shift / of_mean).max(), np.abs(spread / (BIAS + of_sd)).max()


@pytest.mark.slow_for("minibatch")
@pytest.mark.parametrize("pieces", PIECES, ids=lambda p: " ".join(map(str, p.values())))
def test_means_and_standard_deviations(pieces):
    X, y = rows()
    model = BayesianLogisticRegression(random_state=1, **pieces).fit(X, y)
    assert model.batch_sizes_.max() < N  # no step has seen all rows
    assert model.batch_size_ <= N // 4
    assert max(errors(model)) < 1.0


@pytest.mark.slow
def test_an_anchor_of_some_rows():  # for which steps are tiny
    X, y = rows()
    anchored = SVRG(anchor_size=80, refresh=20)
    model = BayesianLogisticRegression(random_state=1, gradient=anchored).fit(X, y)
    assert max(errors(model)) < 1.0


@pytest.mark.parametrize(
    "pieces",
    [{"gradient": "taylor"}, pytest.param({"gradient": "saga"}, marks=pytest.mark.slow)],
    ids=str,
)
def test_wrong_sums_of_rows_are_seen(pieces):
    # A sum that is half too large makes the posterior narrow; one that favours events moves it.
    X, y = rows()
    for which, weight in [(1, np.full(N, 1.5)), (0, np.where(y, 1.5, 1.0))]:
        wrong = BayesianLogisticRegression(random_state=1, **pieces).fit(X, y, weight)
        assert errors(wrong)[which] > 1.5
