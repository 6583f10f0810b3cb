"""What holds for every estimator that the package exports."""

import copy
import pickle

import estimators
import joblib
import numpy as np
import pandas as pd
import pytest
from docstrings import entries
from interrupts import functions_of, pressed_in
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import skbayes_sg

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)
every = pytest.mark.parametrize("name", estimators.ESTIMATORS)
# Attributes that only fits with group effects, or with learned scales, have.
UNLESS_ASKED = {"effects_", "group_levels_", "group_std_", "m_eff_", "prior_scale_"}


def results(model, prefix=""):
    """All numbers of what a fit has found, by name, down to the bytes; not how long it took."""
    found = {}
    for name, value in sorted(vars(model).items()):
        if name.endswith("_") and not name.startswith("_") and name != "seconds_":
            value = value.flat if hasattr(value, "labels") else value
            found[name] = value.tobytes() if isinstance(value, np.ndarray) else repr(value)
    return found


def test_the_list_is_complete():
    assert set(estimators.ESTIMATORS) == set(estimators.CLASSES)
    exported = {name for name in dir(skbayes_sg.estimators) if name.startswith("Bayesian")}
    assert exported | set(skbayes_sg.estimators.LATER) == set(estimators.CLASSES)


@every
def test_fitted_attributes_are_the_documented_ones(name):
    X, y = estimators.made(name)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = estimators.quick(name).fit(frame, y)
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    documented = set(entries(type(model).__doc__, "Attributes"))
    assert documented - UNLESS_ASKED <= public <= documented


@every
def test_the_seed_decides_and_the_number_of_threads_does_not(name):
    X, y = estimators.made(name)
    first = results(estimators.quick(name).fit(X, y))
    assert results(estimators.quick(name, n_jobs=2).fit(X, y)) == first
    assert results(estimators.quick(name, random_state=1).fit(X, y)) != first


@pytest.mark.slow_for("BayesianRobustRegression")
@every
def test_processes_change_nothing(name):
    """Joblib maps arrays above `max_nbytes` into the memory of workers, which write to some."""
    X, y = estimators.made(name)
    first = results(estimators.quick(name).fit(X, y))
    with joblib.parallel_config("loky", n_jobs=2, max_nbytes=500):
        assert results(estimators.quick(name, n_jobs=2).fit(X, y)) == first


@pytest.mark.slow_for(
    "BayesianPMF",
    "BayesianMLPRegressor",
    "BayesianGaussianMixture",
    "BayesianRobustRegression",
    "BayesianNegativeBinomialRegressor",
)
@every
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_the_same(name, duplicate):
    X, y = estimators.made(name)
    model = estimators.quick(name).fit(X, y)
    other = duplicate(model)
    assert results(other) == results(model)
    assert results(other.fit(X, y)) == results(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(model))


@every
def test_data_and_parameters_are_left_as_they_are(name):
    X, y = estimators.made(name)
    before, model = pickle.dumps((X, y)), estimators.quick(name)
    parameters = repr(model.get_params())
    model.fit(X, y)
    assert pickle.dumps((X, y)) == before
    assert repr(model.get_params()) == parameters


@every
def test_a_failed_refit_changes_nothing(name):
    X, y = estimators.made(name)
    model = estimators.quick(name).fit(X, y)
    before, wrong = results(model), np.array(X, dtype=float)
    wrong[1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(wrong, y)
    assert results(model) == before


@pytest.mark.slow_except(
    "BayesianLDA",
    "BayesianLinearRegression",
    "BayesianPoissonRegressor",
    "BayesianLogisticRegression",
)
@every
def test_an_interrupted_fit_changes_nothing(name):
    X, y = estimators.made(name)
    model = estimators.quick(name).fit(X, y)
    before = results(model)
    X, y = estimators.made(name, seed=1)
    other = clone(model)
    found = functions_of(lambda: other.fit(X, y))
    for code in found[:: max(1, len(found) // 20)]:
        with pressed_in(code.__eq__), pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert results(model) == before, code
    assert results(model.fit(X, y)) != before
