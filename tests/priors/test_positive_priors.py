"""Priors of positive numbers, as functions of their logarithms: value, slope, bend, and the law."""

import re

import cases
import naive
import numpy as np
import pytest

from skbayes_sg import BayesianLinearRegression, BayesianRobustRegression
from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.kernels.many_draws import log_prior
from skbayes_sg.priors import Flat, Gamma, HalfNormal, HalfStudentT, InverseGamma, Normal, Units
from skbayes_sg.priors.families import resolve_positive, tail
from skbayes_sg.priors.table import prior_curvature, prior_gradient, prior_value

PLACES = np.array([-20.0, -2.0, -0.3, 0.0, 0.7, 3.0])
FLOOR = 1e-3
positive = pytest.mark.parametrize("name", cases.POSITIVE_PRIORS)


def value(table, s):
    return prior_value(table, np.array([s]))


def slope(table, s):
    g = np.zeros(1)
    prior_gradient(table, np.array([s]), g)
    return g[0]


@positive
@pytest.mark.parametrize("floor", [0.0, FLOOR])
def test_derivatives_against_the_formula(name, floor):
    case = cases.POSITIVE_PRIORS[name]
    table = case.prior._table((1,), units=Units(floor=floor))

    def log_density(s):
        return case.log_density(s) - 0.5 * (floor * np.exp(-s)) ** 2

    for s in PLACES:
        size = max(1.0, abs(log_density(s)))
        change = value(table, s) - value(table, 0.1)
        assert abs(change + log_density(s) - log_density(0.1)) <= 1e-12 * size
        expected = -naive.complex_step(lambda t: log_density(t[0]), [s])[0]
        assert abs(slope(table, s) - expected) <= 1e-12 * max(1.0, abs(expected))
        bend = naive.central_difference(lambda t: slope(table, t[0]), [s])[0]
        found = prior_curvature(table, np.array([s]))[0]
        assert found >= 0.0  # log-concave: one mode of log σ, and a metric
        assert abs(found - bend) <= 1e-6 * max(1.0, abs(expected))


@positive
def test_law_with_its_jacobian(name):
    # p(v) dv = p(e^s) e^s ds: a missing Jacobian moves log densities by s.
    case = cases.POSITIVE_PRIORS[name]
    if case.law is None:
        return
    table, power = case.prior._table((1,)), 2.0 if name == "inverse_gamma" else 1.0

    def expected(s):
        return case.law.logpdf(np.exp(power * s)) + power * s

    for s in PLACES[1:]:
        change = value(table, s) - value(table, 0.1)
        assert abs(change + expected(s) - expected(0.1)) < 1e-9 * max(1.0, abs(change))


def test_automatic_scales_are_in_units_of_the_response():
    units = Units(response=5.0)
    for prior in (HalfNormal(), HalfStudentT()):
        assert prior._table((1,), units=units)[0, 2] == 5.0
        assert (prior.set_params(scale=2.0)._table((2,), units=units)[:, 2] == 2.0).all()
    coefficients = Units(5.0, lambda: np.array([0.5, 10.0]))
    table = Normal(scale="auto")._table((2,), units=coefficients)
    assert np.allclose(table[:, 2], [2.5 * 5.0 / 0.5, 2.5 * 5.0 / 10.0])


def test_flat_is_flat_in_the_number_itself():
    assert type(resolve_positive(Flat())) is type(resolve_positive("flat"))


@pytest.mark.parametrize(
    "prior",
    [
        HalfNormal(scale=0.0), HalfNormal(scale="wide"), HalfStudentT(df=-1.0),
        InverseGamma(alpha=np.nan), InverseGamma(beta=0.0), Gamma(rate=True), Gamma(shape=0),
    ],
    ids=repr,
)  # fmt: skip
def test_parameters_that_are_not_positive(prior):
    with pytest.raises(InvalidParameterError, match="must be a positive finite number, got"):
        prior._table((1,))


@pytest.mark.parametrize(
    ("prior", "argument"),
    [
        (HalfNormal(scale=-1.0), "scale"), (HalfStudentT(df=-1.0), "df"),
        (Gamma(shape=-1.0), "shape"), (Gamma(rate=-1.0), "rate"),
        (InverseGamma(alpha=-1.0), "alpha"), (InverseGamma(beta=-1.0), "beta"),
    ],
    ids=repr,
)  # fmt: skip
def test_errors_name_the_parameter_of_the_estimator(prior, argument):
    X, y = np.arange(24.0).reshape(12, 2) % 7.0, np.arange(12.0) % 5.0
    fits = {
        "noise_prior": BayesianLinearRegression(noise_prior=prior),
        "df_prior": BayesianRobustRegression(df_prior=prior),
        "group_scale": BayesianLinearRegression(group_effects=[0], group_scale=prior),
        "prior__scale": BayesianLinearRegression(prior=Normal(scale=prior)),
    }
    for name, model in fits.items():
        said = re.escape(
            f"The {argument} of {name}={prior!r} must be a positive finite number, got "
        )
        with pytest.raises(InvalidParameterError, match=said):
            model.fit(X, y)


@pytest.mark.parametrize("value", ["normal", Normal(), 1.0, None])
def test_priors_of_other_numbers(value):
    with pytest.raises(InvalidParameterError, match="'noise_prior' parameter must be one of"):
        resolve_positive(value)


@positive
def test_log_densities_of_many_places(name):
    table = cases.POSITIVE_PRIORS[name].prior._table((1,), units=Units(floor=FLOOR))
    places = np.linspace(-3.0, 2.0, 12).reshape(3, 4)
    values = [[-value(table, place) for place in some] for some in places]
    np.testing.assert_array_equal(log_prior(table[0], places), values)
    assert log_prior(table[0], places[0, 0]) == values[0][0]


@positive
def test_tails_as_the_family_states_them(name):
    row = cases.POSITIVE_PRIORS[name].prior._table((1,))[0]
    slope = np.diff(log_prior(row, np.array([12.0, 12.5])))[0] / 0.5  # of log(p(v) v) in log v
    df = tail(row)
    assert slope == pytest.approx(-df, rel=1e-6) if np.isfinite(df) else slope < -1e3
