"""Rows that lie in parts: arrays and files, and what is known of all of them."""

import subprocess
import sys
import textwrap
from pathlib import Path

import estimators
import numpy as np
import pandas as pd
import pytest
from problems import binary, multinomial, quick
from scipy import sparse
from sklearn.base import clone

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg._base.columns import merged, weighted_moments
from skbayes_sg.combine import COMBINERS
from skbayes_sg.estimators._shards import ShardSummary, describe
from skbayes_sg.exceptions import InvalidParameterError, SamplerDivergedError

pytestmark = [
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SubposteriorWarning"),
]
X, y = binary(150)
Y = X @ [1.0, -1.0, 0.5] + np.random.default_rng(0).normal(size=150)
FEW = {"n_draws": 25, "n_chains": 2, "n_warmup": 50, "random_state": 0}


def parts_of(*arrays, n_parts=3):
    return [tuple(array[k::n_parts] for array in arrays) for k in range(n_parts)]


def saved(folder, parts):
    """The files of a folder."""
    for k, part in enumerate(parts):
        for name, array in zip(("X", "y", "weight"), part, strict=False):
            np.save(folder / f"{name}_{k}.npy", array)
    return folder


# -- fits ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_are_the_arrays_in_them(tmp_path):
    w = np.random.default_rng(0).uniform(0.5, 2.0, 150)
    parts = parts_of(X, y, w)
    wanted = quick().fit_shards(parts)
    folder = saved(tmp_path, parts)
    paths = [(folder / f"X_{k}.npy", str(folder / f"y_{k}.npy"), parts[k][2]) for k in range(3)]
    for shards in (folder, str(folder), paths, iter(parts)):
        found = quick(n_jobs=2).fit_shards(shards)
        np.testing.assert_array_equal(found.posterior_.flat, wanted.posterior_.flat)
    assert len(wanted.subposteriors_) == 3
    assert wanted.n_features_in_ == 3
    unweighted = quick().fit_shards(parts_of(X, y))
    assert (unweighted.coef_ != wanted.coef_).all()


@pytest.mark.slow
def test_files_of_sparse_rows(tmp_path):
    for k, (Z, labels) in enumerate(parts_of(X, y)):
        sparse.save_npz(tmp_path / f"X{k}.npz", sparse.csr_array(Z))
        np.save(tmp_path / f"y{k}.npy", labels)
    found = quick().fit_shards(tmp_path)
    np.testing.assert_array_equal(found.coef_, quick().fit_shards(parts_of(X, y)).coef_)


@pytest.mark.slow_except("nonparametric")
@pytest.mark.parametrize("name", COMBINERS)
def test_shards_are_combined_as_asked(name):
    found = quick(combine=name, n_subposteriors=3).fit_shards(parts_of(X, y))
    again = quick(combine=name).fit_shards(parts_of(X, y))
    np.testing.assert_array_equal(found.posterior_.flat, again.posterior_.flat)
    assert np.isfinite(found.coef_).all()


@pytest.mark.slow_for("BayesianRobustRegression-{}", "BayesianNegativeBinomialRegressor-{}")
@pytest.mark.parametrize(
    ("name", "options"),
    [*[(name, {}) for name in estimators.REGRESSORS], ("BayesianLinearRegression", {"noise": 1.0})],
    ids=str,
)
def test_regressors(name, options):
    rng = np.random.default_rng(0)
    response = estimators.ESTIMATORS[name].response(X @ [0.5, -0.5, 0.25], rng)
    model = estimators.CLASSES[name](**FEW, **options)
    found, whole = clone(model).fit_shards(parts_of(X, response)), clone(model).fit(X, response)
    error = np.abs(found.coef_ - whole.coef_) / whole.coef_std_
    assert error.max() < 1.5  # 50 draws of three small shards
    assert {k for k in vars(found) if k.endswith("_")} == {
        k for k in vars(whole) if k.endswith("_")
    }
    assert found.predict(X).shape == (150,)


@pytest.mark.slow
def test_several_classes_and_their_weights():
    Z, labels = multinomial(300)
    names = np.array(["b", "a", "c"])[labels]
    for class_weight in (None, "balanced", {"a": 2.0, "b": 1.0, "c": 0.5}):
        model = quick(class_weight=class_weight, n_draws=200)
        found, whole = clone(model).fit_shards(parts_of(Z, names)), model.fit(Z, names)
        assert found.classes_.tolist() == ["a", "b", "c"]
        error = np.abs(found.coef_ - whole.coef_) / whole.coef_std_
        assert error.max() < 0.8


def test_names_of_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    found = quick().fit_shards(parts_of(frame, y))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert "coef[b]" in found.posterior_.labels
    other = [(frame, y), (frame[["b", "a", "c"]], y)]
    with pytest.raises(ValueError, match=r"shard 1 of 2 has the columns \['b', 'a', 'c'\]"):
        quick().fit_shards(other)


def test_one_shard_is_a_posterior():
    found = quick().fit_shards([(X, y)])
    assert found.combine_check_ == {}
    assert found.subposteriors_ == [found.posterior_]


# -- what is known of all parts --------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_moments_of_parts(kind):
    rng = np.random.default_rng(0)
    Z, w = rng.normal(2.0, 3.0, (90, 4)), rng.uniform(0.0, 2.0, 90)
    found = merged([weighted_moments(kind(Z[k::4]), w[k::4]) for k in range(4)])
    mean = np.average(Z, axis=0, weights=w)
    np.testing.assert_allclose(found[0], w.sum(), rtol=1e-12)
    np.testing.assert_allclose(found[1], mean, rtol=1e-12)
    np.testing.assert_allclose(found[2], np.average((Z - mean) ** 2, axis=0, weights=w), rtol=1e-12)


def test_scales_of_priors_are_those_of_all_rows():
    model = BayesianLinearRegression()
    Z = X * [1.0, 100.0, 1e-3] + [0.0, 5.0, 1.0]
    parts = [
        describe(model, False, (*part, None), s) for s, part in enumerate(parts_of(Z, 3.0 * Y))
    ]
    summary = ShardSummary(parts)
    model.n_features_in_ = 3
    plan = model._plan(summary)
    found = model._prior_of(summary.stand_in(plan, True), plan.coef_shape, plan.extras)
    wanted = model._target(Z, 3.0 * Y, np.ones(150), plan).prior
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shards", "text"),
    [
        ([], "at least one shard"),
        ([(X,)], r"Shard 0 must be \(X, y\) or \(X, y, sample_weight\), got 1 items"),
        ([(X, y), (X[:, :2], y)], "shard 1 of 2 has 2 columns, and shard 0 has 3"),
        ([(X, y), (X, np.zeros(150, int))], r"shard 1 of 2 has no row of class .*1.*Shuffle"),
        ([(X, np.zeros(150, int))] * 2, "at least 2 classes"),
        ([(X, y), (np.where(X > 2.0, np.nan, X), y)], "shard 1 of 2: Input X contains NaN"),
        ([(X, y), (X, y[:-1])], "shard 1 of 2: .*inconsistent numbers of samples"),
    ],
    ids=["none", "items", "columns", "class", "classes", "nan", "rows"],
)
def test_shards_that_cannot_be_used(shards, text):
    model = quick()
    with pytest.raises(ValueError, match=text):
        model.fit_shards(shards)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(ValueError, match=r"has no files X\*\.npy"):
        quick().fit_shards(tmp_path)
    saved(tmp_path, parts_of(X, y))
    (tmp_path / "y_1.npy").unlink()
    with pytest.raises(ValueError, match=r"has X_1\.npy, but not y_1\.npy"):
        quick().fit_shards(tmp_path)


def test_parameters_that_do_not_go_with_shards():
    with pytest.raises(InvalidParameterError, match="1 or the number of shards, 3"):
        quick(n_subposteriors=2).fit_shards(parts_of(X, y))
    with pytest.raises(SamplerDivergedError, match=r"BayesianLogisticRegression: shard \d of 3: "):
        quick(sampler="sgld", gradient="minibatch", step_size=1e4, batch_size=10).fit_shards(
            parts_of(X, y)
        )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_is_bounded_by_one_shard_of_each_worker(tmp_path):
    rows, columns, S = 200_000, 40, 6  # 64 MB a shard
    rng = np.random.default_rng(0)
    for k in range(S):
        Z = rng.standard_normal((rows, columns))
        np.save(tmp_path / f"X{k}.npy", Z)
        np.save(tmp_path / f"y{k}.npy", (Z[:, 0] + rng.logistic(size=rows) > 0).astype(int))
    code = f"""
        import re, sys
        import numpy as np
        from skbayes_sg import BayesianLogisticRegression
        def memory(what):
            text = open("/proc/self/status").read()
            return int(re.search(what + r":\\s+(\\d+) kB", text)[1]) / 1024
        rng = np.random.default_rng(0)
        Z = rng.standard_normal((3000, {columns}))
        model = BayesianLogisticRegression(n_draws=100, random_state=0)
        model.fit(Z, Z[:, 0] + rng.logistic(size=3000) > 0)  # compiles
        before = memory("VmRSS")
        model.fit_shards({str(tmp_path)!r})
        print(memory("VmHWM") - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout.split()[-1]) < 2.0 * 64  # of 384 MB in all


def test_a_step_that_is_too_large_for_the_shards_is_not_trusted():
    """Parts have no scores of all rows, so that nothing but the shards' own measurements tells."""
    model = quick(sampler="sgld", step_size=2.0).fit_shards(parts_of(X, y))
    found = {finding.name for finding in model.posterior_.check().findings}
    assert "step and noise" in found
    assert not any(shard.check() for shard in model.subposteriors_)


@pytest.mark.slow
def test_shards_that_may_be_wrong_by_chance_are_noted():
    """Sorted rows of three classes: no shard is like the others, and no scores judge the result."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(600, 3))
    labels = np.argmax(Z @ rng.normal(size=(3, 3)) + rng.gumbel(size=(600, 3)), axis=1)
    parts = [(Z[own], labels[own]) for own in np.array_split(np.argsort(Z[:, 0]), 4)]
    model = BayesianLogisticRegression(n_draws=250, random_state=0).fit_shards(parts)
    shift, evidence = model.combine_check_["mean_shift"], model.posterior_.evidence
    told = evidence["shards_disagree"][0] or (evidence["shards_shift"][0] == shift > 0.2)
    assert shift > 0.2
    assert told
    assert [f.name for f in model.posterior_.check().findings] == ["shards"]
