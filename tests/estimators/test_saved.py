"""Estimators of earlier versions load and predict as they did; others are refused by name."""

import pickle
import warnings

import estimators
import numpy as np
import pytest
import saved
from sklearn.base import clone

import skbayes_sg
from skbayes_sg.estimators import _saved
from skbayes_sg.exceptions import SavedVersionError, SavedVersionWarning

FILES = {path.stem: pickle.loads(path.read_bytes()) for path in saved.FOLDER.glob("*.pkl")}
SAVED = [pytest.param(v, case, id=f"{v}-{case}") for v, found in FILES.items() for case in found]


def test_there_is_a_file_of_the_first_version():
    assert set(FILES["0.1.0"]) <= set(saved.CASES)


def test_the_file_of_this_version_has_all_estimators_and_is_small():
    path = saved.FOLDER / f"{skbayes_sg.__version__}.pkl"
    assert set(FILES[path.stem]) == set(saved.CASES)
    assert path.stat().st_size < 150_000


@pytest.mark.parametrize(("version", "case"), SAVED)
def test_an_estimator_of_an_earlier_version_predicts_as_it_did(version, case):
    row = FILES[version][case]
    if _saved._number(version) < _saved._number(_saved.OLDEST_READ):
        with pytest.raises(SavedVersionError, match=f"saved by skbayes_sg {version}"):
            pickle.loads(row["pickle"])
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", SavedVersionWarning)
        model = pickle.loads(row["pickle"])
    assert vars(model).keys() & {_saved.STAMP} == set()
    found = saved.predictions(model, row["X"])
    assert set(found) == set(row["said"])
    for method, said in row["said"].items():
        assert np.allclose(found[method], said, rtol=1e-6, atol=1e-9), method
    if hasattr(model, "posterior_"):
        assert np.isfinite(model.posterior_.summary()["mean"]).all()
    clone(model).fit(*saved.made(type(model).__name__))


@pytest.mark.parametrize("name", estimators.ESTIMATORS)
def test_every_estimator_is_saved_with_the_version(name):
    assert estimators.CLASSES[name]().__getstate__()[_saved.STAMP] == skbayes_sg.__version__


def saved_by(version):
    model = skbayes_sg.BayesianLinearRegression()
    return model, model.__getstate__() | {_saved.STAMP: version}


@pytest.mark.parametrize("version", ["0.0.9", "0.0.12.dev0", "0"])
def test_what_cannot_be_read_is_refused(version):
    model, state = saved_by(version)
    with pytest.raises(SavedVersionError, match=f"saved by skbayes_sg {version}. Version"):
        model.__setstate__(state)


def test_state_without_a_version_is_refused():
    model, state = saved_by("0.1.0")
    del state[_saved.STAMP]
    with pytest.raises(SavedVersionError):
        model.__setstate__(state)


def test_what_is_newer_is_warned_of():
    model, state = saved_by("99.1")
    with pytest.warns(SavedVersionWarning, match=r"skbayes_sg 99\.1, which is newer"):
        model.__setstate__(state)


@pytest.mark.slow
def test_skops_keeps_a_fit():
    skops = pytest.importorskip("skops.io")
    X, y = estimators.made("BayesianLogisticRegression")
    model = estimators.quick("BayesianLogisticRegression").fit(X, y)
    data = skops.dumps(model)
    loaded = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert vars(loaded).keys() == vars(model).keys()
