"""Functions and names that users give and that must be refused, although most rows accept them."""

import functools

import numpy as np
import pytest
from numba import njit

from skbayes_sg.custom import CustomDensity, CustomRegressor
from skbayes_sg.custom.density import _telling
from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.priors import Normal

FEW = {"n_draws": 50, "n_chains": 2, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 2))
y = X[:, 0] + RNG.standard_normal(300)
TABLE = np.array([0.0, 1.0, 2.0])


def normal(eta, y):
    return -0.5 * (y - eta) ** 2


def normal_with_scale(eta, y, scale):
    return -0.5 * ((y - eta) / scale) ** 2 - np.log(scale)


def location(theta, row):
    return -0.5 * (row[0] - theta[0]) ** 2


# -- what is read beyond the arguments --------------------------------------------------------


@pytest.mark.parametrize("order", ["as they are", "sorted", "backwards"])
def test_indices_beyond_theta_are_found_in_any_row(order):
    def beyond(theta, row):
        k = 0 if row[0] < 2.5 else 7  # of one row
        return -0.5 * (row[0] - theta[k]) ** 2

    rows = np.r_[RNG.uniform(-1.0, 1.0, 500), 3.0, RNG.uniform(-1.0, 1.0, 500)]
    rows = {"sorted": np.sort(rows), "backwards": -np.sort(-rows)}.get(order, rows)
    model = CustomDensity(beyond, {"a": ("normal", 2)}, **FEW)
    with pytest.raises(InvalidParameterError, match=r"log_density of .* beyond its arguments: "):
        model.fit(rows[:, None])


def test_indices_beyond_a_row_are_found():
    def beyond(theta, row):
        return -0.5 * (row[int(row[1])] - theta[0]) ** 2

    rows = np.column_stack([RNG.standard_normal(500), np.repeat([0, 1, 2, 1, 0], 100)])
    with pytest.raises(InvalidParameterError, match="beyond its arguments: index 2"):
        CustomDensity(beyond, {"a": "normal"}, **FEW).fit(rows)


def test_indices_of_a_derivative_are_found():
    def slope(theta, row):
        return ((row[0] if row[1] < 1.0 else row[2]) - theta[0],)

    rows = np.column_stack([RNG.standard_normal(500), np.repeat([0.0, 2.0, 0.0], [300, 1, 199])])
    model = CustomDensity(location, {"a": "normal"}, derivative=slope, **FEW)
    with pytest.raises(InvalidParameterError, match=r"of Custom\w+ reads beyond its arguments"):
        model.fit(rows)


@pytest.mark.parametrize(
    "f",
    [
        lambda eta, y: -0.5 * (y - eta) ** 2 + TABLE[0 if y < 2.5 else 9],
        lambda eta, y: -0.5 * (y - eta) ** 2 + TABLE[0 if eta < 4.0 else 9],
        njit(lambda eta, y: -0.5 * (y - eta) ** 2 + TABLE[0 if eta > -2.5 else 9]),
    ],
    ids=["a response", "a predictor", "compiled"],
)
def test_indices_of_a_likelihood_are_found(f):
    responses = np.r_[y[np.abs(y) < 2.0], 3.0, 0.0]
    model = CustomRegressor(log_likelihood=f, **FEW)
    with pytest.raises(InvalidParameterError, match=r"log_likelihood of .* arguments: index 9"):
        model.fit(X[: len(responses)], responses)


def test_indices_of_the_derivative_of_a_likelihood_are_found():
    def slope(eta, y):
        return y - eta + 0.0 * TABLE[0 if y < 2.5 else 9]

    responses = np.r_[y[np.abs(y) < 2.0], 3.0, 0.0]
    model = CustomRegressor(log_likelihood=normal, derivative=slope, **FEW)
    with pytest.raises(InvalidParameterError, match=r"of Custom\w+ reads beyond its arguments"):
        model.fit(X[: len(responses)], responses)


def test_functions_are_called_for_some_tens_of_rows():
    rows = RNG.standard_normal((10_000, 300))
    rows[77, 0], rows[78, 299], rows[79, 299] = 9.0, 9.0, -9.0
    found = _telling(rows)
    assert len(found) == len(np.unique(found, axis=0)) <= 50
    for i in (0, 77, 78, 79, 9999):
        assert (found == rows[i]).all(axis=1).any()
    assert np.array_equal(_telling(rows[:1]), rows[:1])


# -- what is no function of the arguments -------------------------------------------------------


def floored(theta, row):
    theta[0] = max(theta[0], 0.5)
    return -0.5 * (row[0] - theta[0]) ** 2


def residual(theta, row):
    row[0] -= theta[0]
    return -0.5 * row[0] ** 2


def noisy(theta, row):
    return -0.5 * (row[0] - theta[0] + np.random.normal()) ** 2  # noqa: NPY002, as Numba knows it


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (floored, r"changes its argument number 1 in place: \[.*\] becomes \[0.5\]"),
        (residual, "changes its argument number 2 in place"),
        (noisy, r"same number whenever .* got -\S+ and then -\S+\. Random numbers"),
    ],
)
def test_functions_that_change_with_each_call_are_refused(f, said):
    rows = X[:50].copy()
    with pytest.raises(InvalidParameterError, match=said):
        CustomDensity(f, {"a": Normal(loc=-1.0)}, **FEW).fit(rows)
    np.testing.assert_array_equal(rows, X[:50])


def test_numbers_of_other_libraries_are_told_from_numbers():
    class Array:
        pass

    Array.__module__ = "jaxlib._jax"
    model = CustomDensity(lambda theta, row: Array(), {"a": "normal"}, **FEW)
    with pytest.raises(InvalidParameterError, match=r"CustomDensity\(backend='jax'\)"):
        model.fit(X)


def test_rows_without_a_density_are_named():
    rows = np.r_[np.ones(20), -1.0, np.ones(10)][:, None]
    model = CustomDensity(
        lambda theta, row: -0.5 * (np.log(row[0]) - theta[0]) ** 2, {"a": "normal"}, **FEW
    )
    with pytest.raises(ValueError, match=r"is nan for 1 of 31 rows .* row 20, \[-1\.\]"):
        model.fit(rows)


def test_unknown_parameters_are_those_of_the_estimator():
    with pytest.raises(TypeError, match=r"CustomRegressor.__init__\(\) .* argument 'backend'"):
        CustomRegressor(log_likelihood=normal, backend="jax")


# -- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "posterior", "diagnostics", "sampler", "coef", "coef_std", "intercept", "n_features_in",
        "combine_check", "effects", "update_error", "derivatives",
    ],
)  # fmt: skip
def test_extras_with_names_of_results_are_refused(name):
    model = CustomRegressor(log_likelihood=normal_with_scale, extras={name: "half_normal"}, **FEW)
    with pytest.raises(InvalidParameterError, match=f"'extras' .* name '{name}', and {name}_ is"):
        model.fit(X, y)


@pytest.mark.parametrize("name", ["", "a b", "1st", 3, None])
def test_names_that_are_no_identifiers_are_refused(name):
    with pytest.raises(InvalidParameterError, match=r"'parameters' .* must be identifiers"):
        CustomDensity(location, {name: "normal"}, **FEW).fit(X)
    model = CustomRegressor(log_likelihood=normal_with_scale, extras={name: "half_normal"}, **FEW)
    with pytest.raises(InvalidParameterError, match=r"'extras' .* must be identifiers"):
        model.fit(X, y)


def results_of(model, own):
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    return fitted - {f"{name}_" for name in own}


@pytest.mark.slow
def test_all_results_of_a_fit_are_refused_as_names():
    """The names come from docstrings: a fit must not set attributes that these do not list."""
    priors = {"prior": Normal(scale=2.0), "intercept_prior": Normal()}
    model = CustomRegressor(
        log_likelihood=normal_with_scale, extras={"scale": "half_normal"}, **priors, **FEW
    ).fit(X, y)
    model.partial_fit(X, y)
    for name in results_of(model, ["scale"]):
        with pytest.raises(InvalidParameterError, match="is another attribute"):
            model.set_params(extras={name[:-1]: "half_normal"}).fit(X, y)


def test_parameters_of_densities_are_no_attributes():
    model = CustomDensity(location, {"posterior": "normal"}, **FEW).fit(X)
    assert model.posterior_["posterior"].shape == (FEW["n_chains"], FEW["n_draws"])


# -- what Numba cannot compile --------------------------------------------------------------------


class Callable:
    def __call__(self, a, b):
        return -0.5 * (a - b) ** 2

    method = __call__


@pytest.mark.parametrize(
    "f",
    [functools.partial(normal_with_scale, scale=1.0), Callable(), Callable().method, np.hypot],
    ids=["partial", "object", "method", "ufunc"],
)
def test_callables_that_are_no_functions_are_refused(f):
    said = "'{}' parameter of {} must be .*, written with def or lambda.*write a def that reads"
    for parameters in ({"log_likelihood": f}, {"log_likelihood": normal, "derivative": f}):
        name = list(parameters)[-1]
        with pytest.raises(InvalidParameterError, match=said.format(name, "CustomRegressor")):
            CustomRegressor(**parameters, **FEW).fit(X, y)
    for parameters in ({"log_density": f}, {"log_density": location, "derivative": f}):
        name = list(parameters)[-1]
        with pytest.raises(InvalidParameterError, match=said.format(name, "CustomDensity")):
            CustomDensity(**parameters, parameters={"a": "normal"}, **FEW).fit(X)
