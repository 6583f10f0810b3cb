"""Likelihoods of survival times, in years, days or seconds: the unit moves the intercept alone."""

import numpy as np
import pytest
from scipy import integrate

from skbayes_sg.custom import CustomDensity, CustomRegressor
from skbayes_sg.custom.derivatives import compiled, guarded, steps_of
from skbayes_sg.custom.law import law_of
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry.first_place import first_place
from skbayes_sg.models import Logistic
from skbayes_sg.priors import HalfNormal, Normal
from skbayes_sg.priors.table import starting_point

DAYS, SECONDS = 365.0, 3.15e7


def weibull(eta, y, shape):
    """Times are negative where they are censored."""
    z = shape * (np.log(abs(y)) - eta)
    if y > 0:
        return np.log(shape) + z - np.log(y) - np.exp(z)
    return -np.exp(z)


def gompertz(eta, y, ageing):
    return eta + ageing * y - np.exp(eta) * (np.exp(ageing * y) - 1.0) / ageing


def inverse_gaussian(eta, y, precision):
    m = np.exp(eta)
    return 0.5 * np.log(precision) - 1.5 * np.log(y) - precision * (y - m) ** 2 / (2 * m * m * y)


def times(n=120, seed=0):
    """Columns, times, and times of which some are censored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    t = np.exp(X @ [0.4, -0.3]) * rng.weibull(1.5, n)
    c = rng.exponential(2.0, n)
    return X, t, np.where(t < c, t, -c)


def fitted(f, name, X, y, unit):
    own = CustomRegressor(log_likelihood=f, extras={name: "half_normal"}, n_draws=500)
    return own.set_params(random_state=0).fit(X, unit * y)


@pytest.mark.parametrize(
    ("f", "name", "power", "sign"),
    [
        (weibull, "shape", 0.0, 1.0),
        pytest.param(gompertz, "ageing", -1.0, -1.0, marks=pytest.mark.slow),
        (inverse_gaussian, "precision", 1.0, 1.0),
    ],
    ids=["weibull", "gompertz", "inverse gaussian"],
)
def test_the_unit_of_time_moves_the_intercept_alone(f, name, power, sign):
    """And the extra, if it has a unit; the Gompertz predictor is that of a rate."""
    X, t, censored = times()
    y = censored if f is weibull else t
    years = fitted(f, name, X, y, 1.0)
    for unit in (DAYS, SECONDS):
        other = fitted(f, name, X, y, unit)
        assert other.posterior_.check()
        sd = years.coef_std_
        assert (np.abs(other.coef_ - years.coef_) < 0.3 * sd).all()
        moved = other.intercept_ - sign * np.log(unit)
        assert abs(moved - years.intercept_) < 0.3 * years.intercept_std_
        extra, known = (own.posterior_[name].mean() for own in (other, years))
        assert abs(extra / unit**power / known - 1.0) < 0.1


def target_of(f, X, y, scale):
    law = law_of(f, None, 1, 1)
    rows = [Normal(scale=10.0)._table((X.shape[1] + 1,)), HalfNormal(scale=scale)._table((1,))]
    return Target(X, y, np.ones(len(y)), law, np.concatenate(rows))


def test_searches_begin_at_the_lowest_of_several_places():
    X, _, y = times()
    target = target_of(weibull, X, DAYS * y, scale=300.0)
    middle, place = starting_point(target.prior), first_place(target)
    with np.errstate(all="ignore"):
        assert not np.isfinite(target.value_and_gradient(middle)[0])
    value = target.value_and_gradient(place)[0]
    assert np.isfinite(value)
    for intercept in (0.0, np.median(DAYS * y), np.log(np.median(np.abs(DAYS * y)))):
        for size in (300.0, 30.0, 3.0, 1.0, 0.1):
            there = np.r_[np.zeros(X.shape[1]), intercept, np.log(size)]
            with np.errstate(all="ignore"):
                assert not target.value_and_gradient(there)[0] < value


def test_searches_of_known_likelihoods_begin_in_the_middle_of_the_prior():
    X, t, _ = times()
    prior = Normal(loc=0.5)._table((3,))
    target = Target(X, (t > 1.0).astype(float), np.ones(len(t)), Logistic(), prior)
    np.testing.assert_array_equal(first_place(target), starting_point(prior))


def test_derivatives_are_not_a_number_where_complex_numbers_divide_by_zero():
    """e^-2η is infinite at η = -800; there real numbers raise nothing, and complex ones do."""
    slopes = guarded(steps_of(compiled(lambda z, y: -y * y / (np.exp(z[0]) * np.exp(z[0])))))
    found, z = np.empty((3, 1)), np.array([[0.5], [-800.0], [0.0]])
    slopes(z, np.ones(3), np.ones(1), found)
    assert np.isnan(found[1, 0])
    np.testing.assert_allclose(found[[0, 2], 0], 2.0 * np.exp([-1.0, 0.0]))
    X, t, _ = times()
    assert fitted(inverse_gaussian, "precision", X, t, 1.0).derivatives_ == "complex step"


def test_a_density_that_ends_at_its_mode_is_sampled():
    """There is no curvature to begin with: it is negative where the square root begins."""
    y = 0.1 + np.random.default_rng(0).normal(size=30)

    def log_density(theta, row):
        return -0.5 * (row[0] - np.sqrt(theta[0])) ** 2

    model = CustomDensity(log_density, {"t": "normal"}, random_state=0).fit(y[:, None])
    assert model.posterior_["t"].min() > 0.0

    def density(t, power=0):
        return t**power * np.exp(np.sqrt(t) * y.sum() - 0.5 * len(y) * t - 0.5 * t * t)

    moments = [integrate.quad(density, 0.0, 6.0, (k,))[0] for k in (0, 1, 2)]
    mean = moments[1] / moments[0]
    sd = np.sqrt(moments[2] / moments[0] - mean**2)
    ess = min(model.diagnostics_["min_ess"], 4000)
    assert abs(model.posterior_.mean("t") - mean) < 5.0 * sd / np.sqrt(ess)
    assert 0.8 < model.posterior_.std("t") / sd < 1.2
