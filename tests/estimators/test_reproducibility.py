"""The same seed gives the same draws, whatever else differs."""

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from problems import STOCHASTIC, binary, quick
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg._base import validation as _validation
from skbayes_sg.engine import rounds, run
from skbayes_sg.engine.target import Target
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Normal

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)
AUTO = {"n_draws": 50, "n_chains": 2, "random_state": 0}
PATHS = {
    "exact": (quick(n_chains=3), (200, 4)),
    "stochastic": (quick(n_chains=3, **STOCHASTIC), (3000, 4)),
    "automatic": (BayesianLogisticRegression(**AUTO, batch_size=20), (22_000, 3)),
}


def draws(model, X, y, **parameters):
    return model.set_params(**parameters).fit(X, y).posterior_.flat


@pytest.fixture(scope="module", params=PATHS)
def path(request):
    model, shape = PATHS[request.param]
    X, y = binary(*shape)
    return model, X, y, draws(model, X, y, n_jobs=None)


def test_the_automatic_path_draws_rows():
    model, shape = PATHS["automatic"]
    model.fit(*binary(*shape))
    assert (model.sampler_, model.gradient_, model.batch_size_) == ("baoab", "taylor", 20)


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_n_jobs(path, n_jobs):
    model, X, y, expected = path
    assert np.array_equal(draws(model, X, y, n_jobs=n_jobs), expected)


@pytest.mark.parametrize(
    "backend",
    [
        "threading",
        *[pytest.param(name, marks=pytest.mark.slow) for name in ("loky", "multiprocessing")],
    ],
)
def test_joblib_backends(path, backend):
    model, X, y, expected = path
    with joblib.parallel_config(backend, n_jobs=2):
        assert np.array_equal(draws(model, X, y, n_jobs=2), expected)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_blas_threads(path, n_threads):
    model, X, y, expected = path
    with threadpool_limits(n_threads, user_api="blas"):
        before = threadpool_info()
        assert np.array_equal(draws(model, X, y, n_jobs=None), expected)
        assert threadpool_info() == before


def test_global_state_is_left_alone(path):
    model, X, y, _ = path
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = np.random.get_state(), random.getstate(), np.geterr(), dict(os.environ)  # noqa: NPY002
    first = draws(model, X, y, n_jobs=2)
    after = np.random.get_state(), random.getstate(), np.geterr(), dict(os.environ)  # noqa: NPY002
    assert pickle.dumps(before) == pickle.dumps(after)
    np.random.seed(4)  # noqa: NPY002
    random.seed(4)
    assert np.array_equal(draws(model, X, y), first)


@pytest.mark.slow
def test_another_process(path):
    model, X, y, expected = path
    source = (
        "import pickle, sys; model, X, y = pickle.load(sys.stdin.buffer);"
        "sys.stdout.buffer.write(model.fit(X, y).posterior_.flat.tobytes())"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source], input=pickle.dumps((model, X, y)),
        capture_output=True, check=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "5", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
    )  # fmt: skip
    assert result.stdout == expected.tobytes()


@pytest.mark.slow_except("exact")
@pytest.mark.parametrize("first_work", [1.0, pytest.param(3e4, marks=pytest.mark.slow)])
def test_length_of_the_calls_of_kernels(path, first_work, monkeypatch):
    """It does not matter where one call ends and the next begins."""
    model, X, y, expected = path
    distance = model.fit(X, y).diagnostics_.get("coupled_distance")
    monkeypatch.setattr(run, "FIRST_WORK", first_work)
    monkeypatch.setattr(rounds, "CHUNK_SECONDS", 1e-3)
    assert np.array_equal(draws(model, X, y), expected)
    assert distance is None or abs(model.diagnostics_["coupled_distance"] / distance - 1.0) < 0.2


def test_chains_are_their_own(path):
    """A chain depends on the seed and its number alone; chains differ."""
    model, X, y, expected = path
    for other in range(1, len(expected)):
        assert not np.isclose(expected[0], expected[other]).any()
    assert not np.array_equal(draws(model, X, y, random_state=1), expected)
    model.set_params(random_state=0)


def test_more_chains_leave_the_first_ones():
    X, y = binary(3000, 4)
    few, many = (draws(quick(**STOCHASTIC), X, y, n_chains=n) for n in (2, 4))
    assert np.array_equal(few, many[:2])


# -- inputs -----------------------------------------------------------------------------------


def big_endian(X):
    return X.astype(">f8")


def negative_strides(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def misaligned(X):
    """As an array lies in a message from another process."""
    out = np.frombuffer(bytearray(b"-" + X.tobytes()), X.dtype, offset=1).reshape(X.shape)
    assert not out.flags.aligned
    return out


LAYOUTS = {
    "Fortran": np.asfortranarray, "strided": strided, "negative strides": negative_strides,
    "read-only": read_only, "misaligned": misaligned, "big-endian": big_endian,
    "list": np.ndarray.tolist,
    "frame": lambda X: pd.DataFrame(X), "object": lambda X: X.astype(object),
    "long double": lambda X: X.astype(np.longdouble),
    "extension": lambda X: pd.DataFrame(X).convert_dtypes(),
}  # fmt: skip


@pytest.mark.slow_for("automatic")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(path, layout):
    model, X, y, expected = path
    if layout in ("list", "object", "extension") and len(X) > 5000:
        pytest.skip("slow conversions are the same on fewer rows")
    assert np.array_equal(draws(model, LAYOUTS[layout](X), y), expected)


def test_rows_that_are_sent_to_another_process():
    X, y = misaligned(np.random.default_rng(0).normal(size=(500, 4))), np.arange(500.0) % 2.0
    target = Target(X, y, np.ones(500), Logistic(), Normal()._table((4,)), intercept=False)
    buffers = []
    sent = pickle.dumps(target, protocol=5, buffer_callback=buffers.append)
    assert sum(buffer.raw().nbytes for buffer in buffers) < 1.7 * X.nbytes  # X once, and the facts
    message = [bytearray(b"-" + buffer.raw().tobytes()) for buffer in buffers]
    got = pickle.loads(sent, buffers=[memoryview(part)[1:] for part in message])
    assert all(a.flags.aligned for a in (got.X, got.data.X, got.data.facts))
    assert np.array_equal(got.data.X, X)
    assert np.array_equal(got.data.facts, target.data.facts)


@pytest.mark.slow_for("automatic")
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint16, np.int64, bool])
def test_types(path, dtype):
    model, X, y, _ = path
    narrow = (np.round(2.0 * X) if dtype is not bool else X > 0).clip(0, 100).astype(dtype)
    if np.dtype(dtype).kind == "f":
        narrow = X.astype(dtype)
    assert np.array_equal(draws(model, narrow, y), draws(model, narrow.astype(np.float64), y))


@pytest.fixture
def no_widening(monkeypatch):
    """Small X stays as it came, so that the kernels for large X are seen at work."""
    monkeypatch.setattr(_validation, "SMALL", 0)


@pytest.mark.usefixtures("no_widening")
def test_single_precision_is_widened_row_by_row(path):
    model, X, y, _ = path
    narrow = X.astype(np.float32)
    single, double = draws(model, narrow, y), draws(model, narrow.astype(np.float64), y)
    assert np.abs(single - double).max() < 1e-6 * np.abs(double).max()


@pytest.mark.parametrize("kind", [list, tuple, pd.Series, np.int8])
def test_labels_of_any_container(path, kind):
    model, X, y, expected = path
    assert np.array_equal(draws(model, X, kind(y)), expected)


def unsorted(X):
    S = sparse.csr_array(X)
    for i in range(S.shape[0]):
        row = slice(S.indptr[i], S.indptr[i + 1])
        S.indices[row], S.data[row] = S.indices[row][::-1].copy(), S.data[row][::-1].copy()
    S.has_sorted_indices = False
    return S


def duplicates(X):
    """CSR with every entry stored as a quarter and three quarters of it."""
    n, d = X.shape
    data = np.repeat(X.ravel(), 2) * np.tile([0.25, 0.75], n * d)
    indices = np.tile(np.repeat(np.arange(d), 2), n)
    return sparse.csr_array((data, indices, 2 * d * np.arange(n + 1)), shape=X.shape)


def explicit_zeros(X):
    n, d = X.shape
    data = np.concatenate([X, np.zeros((n, 1))], axis=1).ravel()
    indices = np.tile(np.r_[np.arange(d), 0], n)
    return sparse.csr_array((data, indices, (d + 1) * np.arange(n + 1)), shape=X.shape)


def long_indices(X):
    S = sparse.csr_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


SPARSE = {
    **{name: getattr(sparse, name) for name in (
        "csr_array", "csr_matrix", "csc_array", "csc_matrix", "coo_array", "coo_matrix",
        "lil_array", "dok_array", "bsr_array", "dia_array",
    )},
    "unsorted": unsorted, "duplicates": duplicates, "explicit zeros": explicit_zeros,
    "long indices": long_indices,
}  # fmt: skip


def holes(X):
    """Half of the entries zero, the first rows empty; sums of duplicates are exact."""
    X = np.round(64.0 * X) / 64.0
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    X[:3] = 0.0
    return X


SAMPLERS = {
    "hmc": {},
    "sgld": {"sampler": "sgld", "step_size": 0.1, "n_warmup": 20, "thin": 2},
    "leimkuhler_matthews": {"sampler": "leimkuhler_matthews", "step_size": 0.3, "n_warmup": 20},
    "baoab": STOCHASTIC,
}


MOST_IN_LONG_TESTS = [
    pytest.param(name, marks=pytest.mark.slow) if k > 0 else name for k, name in enumerate(SAMPLERS)
]


@pytest.fixture(scope="module")
def dense_runs():
    X, y = binary(400, 5)
    X = holes(X)
    return X, y, {name: draws(quick(**p), X, y) for name, p in SAMPLERS.items()}


@pytest.mark.usefixtures("no_widening")
@pytest.mark.parametrize("form", SPARSE)
@pytest.mark.parametrize("sampler", MOST_IN_LONG_TESTS)
def test_sparse_forms(dense_runs, form, sampler):
    """Chains under the same noise contract, so that they forget how sums were rounded."""
    X, y, expected = dense_runs
    S = SPARSE[form](X)
    parts = [name for name in ("data", "indices", "indptr") if hasattr(S, name)]
    before = [np.array(getattr(S, name)) for name in parts]
    found = draws(quick(**SAMPLERS[sampler]), S, y)
    assert np.abs(found - expected[sampler]).max() < 1e-10
    for name, array in zip(parts, before, strict=True):
        assert np.array_equal(getattr(S, name), array)


@pytest.mark.slow_for(
    "csr_matrix", "csc_matrix", "coo_matrix", "lil_array", "bsr_array", "dia_array"
)
@pytest.mark.parametrize("form", SPARSE)
def test_small_sparse_forms_are_the_dense_run(dense_runs, form):
    X, y, expected = dense_runs
    for name in ("hmc", "baoab"):
        assert np.array_equal(draws(quick(**SAMPLERS[name]), SPARSE[form](X), y), expected[name])


@pytest.mark.slow
def test_columns_of_many_levels_are_sparse_in_every_layout():
    """Rows of two one-hot columns: dense ones are held like sparse ones, and repeated ones once."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 150, 400), 150 + rng.integers(0, 150, 400)])
    rows = sparse.csr_array((np.ones(800), codes.ravel(), np.arange(0, 801, 2)), shape=(400, 300))
    y = rng.integers(0, 2, 400)
    short = {"n_draws": 10, "n_warmup": 20, "thin": 1, "random_state": 0}
    model = BayesianLogisticRegression(sampler="hmc", **short)
    dense = model.fit(rows.toarray(), y).posterior_.flat
    _, target = model._posterior_of(rows.toarray(), y, None)
    assert target.keeps_sparse
    assert target.X.nnz == 800
    for form in (rows, sparse.coo_array(rows), pd.DataFrame(rows.toarray())):
        assert (clone(model).fit(form, y).posterior_.flat == dense).all()
    doubled = clone(model).fit(rows, y, sample_weight=np.full(400, 2.0)).posterior_.flat
    twice = clone(model).fit(sparse.vstack([rows, rows]), np.append(y, y)).posterior_.flat
    assert (twice == doubled).all()
    assert not model._posterior_of(rows.toarray() + 0.1, y, None)[1].keeps_sparse
    few = clone(model).fit(rows[:, :90], y)
    assert not few._posterior_of(rows[:, :90], y, None)[1].keeps_sparse


def test_inputs_are_left_alone(path):
    model, X, y, _ = path
    weight = np.random.default_rng(0).random(len(X))
    arrays = X.copy(), y.copy(), weight.copy()
    bytes_before = [a.tobytes() for a in arrays]
    model.fit(arrays[0], arrays[1], sample_weight=arrays[2])
    model.predict_proba_interval(arrays[0])
    assert [a.tobytes() for a in arrays] == bytes_before
    assert all(a.flags.writeable for a in arrays)


# -- orders and steps -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", ["sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", "mala", "hmc"]
)
def test_order_of_rows_with_full_gradients(sampler):
    X, y = binary(150, 4)
    order = np.random.default_rng(0).permutation(150)
    model = quick(sampler=sampler, step_size=0.1, thin=2)
    one, other = draws(model, X, y), draws(model, X[order], y[order])
    assert np.abs(one - other).max() < 1e-10


@pytest.mark.parametrize("thin", [2, 5])
@pytest.mark.parametrize("name", ["exact", "stochastic"])
def test_thinned_draws_are_some_of_all_draws(name, thin):
    model, shape = PATHS[name]
    model, (X, y) = clone(model), binary(*shape)
    if name == "exact":
        model.set_params(sampler="hmc")  # independent draws are not thinned
    every = draws(model, X, y, thin=1, n_draws=20 * thin)
    some = draws(model, X, y, thin=thin, n_draws=20)
    assert np.array_equal(some, every[:, thin - 1 :: thin])
    model.set_params(n_draws=25, thin=STOCHASTIC["thin"] if name == "stochastic" else "auto")


def test_prediction_is_row_by_row(path):
    model, X, y, _ = path
    model.fit(X, y)
    rows = np.random.default_rng(0).permutation(len(X))[:50]
    for method in ("predict_proba", "decision_function", "predict_log_proba"):
        whole = getattr(model, method)(X[:500])
        part = rows[rows < 500]
        assert np.abs(getattr(model, method)(X[part]) - whole[part]).max(initial=0.0) < 1e-12
    assert np.array_equal(model.predict_proba(X[:500]), model.predict_proba(X[:500]))
