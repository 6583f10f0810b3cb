"""Memory: X on disk stays there, X in memory is not copied, and nothing leaks."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from problems import STOCHASTIC, binary, quick
from scipy import sparse

from skbayes_sg._base import memmap as memory

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
        "ignore::skbayes_sg.exceptions.StepSizeWarning",
    ),
]
linux = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")

SUPPORT = Path(__file__).parents[1] / "support"
MEASURE = """
import gc, json, os, sys, threading, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
import numpy as np
from scipy import sparse
from problems import binary, quick, STOCHASTIC
from skbayes_sg import BayesianLogisticRegression

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

def growth(work):
    '''Peak of resident memory while working, beyond what there was before.'''
    gc.collect()
    with open("/proc/self/clear_refs", "w") as switch:
        switch.write("5")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before

def own_growth(work):
    '''The same, of memory that is no page of a file (which the system takes back when it likes).'''
    gc.collect()
    before, peak, done = status("RssAnon"), [0], threading.Event()

    def poll():
        while not done.wait(0.002):
            peak[0] = max(peak[0], status("RssAnon"))

    thread = threading.Thread(target=poll)
    thread.start()
    work()
    done.set()
    thread.join()
    return peak[0] - before

def make(n, d, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.empty((n, d), dtype)
    for first in range(0, n, 10_000):
        X[first : first + 10_000] = rng.standard_normal((len(X[first : first + 10_000]), d))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)

FAST = {{"batch_size": 20, "n_draws": 50, "n_chains": 2, "random_state": 0}}
BayesianLogisticRegression(**FAST).fit(*binary(3000, 5))  # imports and kernels
"""


def measure(source, **names):
    """Run a script that prints JSON."""
    head = MEASURE.format(tests=str(SUPPORT))
    result = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(source).format(**names)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
@linux
@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        ((400_000, 50), {"n_jobs": 2}),
        ((400_000, 50), {"batch_size": 100, "subsampling": "preferential"}),
        ((400_000, 50), {}),
        ((1_200_000, 20), {}),
    ],
)
def test_dense_data_in_memory(shape, parameters):
    """At most 1.2 copies of X beyond X itself."""
    found = measure(
        """
        X, y = make(*{shape})
        model = BayesianLogisticRegression(**{{**FAST, **{parameters}}})
        print(json.dumps({{"share": growth(lambda: model.fit(X, y)) / X.nbytes}}))
        """,
        shape=shape, parameters=parameters,
    )  # fmt: skip
    assert found["share"] < 1.2


MAPPED = """
n, d, dtype = {n}, {d}, np.dtype({dtype!r})
path = {path!r}
out = np.lib.format.open_memmap(path, "w+", dtype, (n, d))
rng, total = np.random.default_rng(0), []
for first in range(0, n, 10_000):
    block = rng.standard_normal((min(10_000, n - first), d)).astype(dtype)
    out[first : first + len(block)] = block
    total.append(block[:, 0])
out.flush()
del out
y = (np.concatenate(total) + rng.standard_normal(n) > 0).astype(int)
X = np.load(path, mmap_mode={mode!r})
model = BayesianLogisticRegression(**{{**FAST, **{parameters}}})
files = status("RssFile")
grown = own_growth(lambda: model.fit(X, y))
kept = status("RssFile") - files
size = os.path.getsize(path)
print(json.dumps({{"fit": grown / size, "kept": kept / size, "coef": float(model.coef_[0, 0])}}))
"""


@pytest.mark.slow
@linux
@pytest.mark.parametrize(("mode", "dtype"), [("r", "f8"), ("r", "f4"), ("r+", "f8")])
def test_mapped_data_stay_on_disk(tmp_path, mode, dtype):
    """240 MB (float32: 120 MB) on disk: a few columns' worth of memory, and panels in flight."""
    found = measure(
        MAPPED, n=300_000, d=100, dtype=dtype, mode=mode, path=str(tmp_path / "X.npy"),
        parameters={},
    )  # fmt: skip
    assert found["fit"] < (0.45 if dtype == "f8" else 0.9)  # O(N): weights, labels, facts
    assert found["kept"] < 0.4  # pages of the file that are still mapped
    assert found["coef"] > 0.5


@linux
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_gigabytes_on_disk(tmp_path):
    found = measure(
        MAPPED, n=4_000_000, d=100, dtype="f8", mode="r", path=str(tmp_path / "X.npy"),
        parameters={"n_jobs": 2},
    )  # fmt: skip
    assert found["fit"] < 0.2
    assert found["kept"] < 0.1


@pytest.mark.slow
def test_mapped_data_give_the_draws_of_data_in_memory(tmp_path):
    X, y = binary(3000, 5)
    for dtype in (np.float64, np.float32):
        np.save(tmp_path / "X.npy", X.astype(dtype))
        for mode in ("r", "r+", "c"):
            mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
            for parameters in ({}, STOCHASTIC):
                on_disk = quick(**parameters).fit(mapped, y).posterior_.flat
                in_memory = quick(**parameters).fit(X.astype(dtype), y).posterior_.flat
                assert np.array_equal(on_disk, in_memory)
        assert (np.load(tmp_path / "X.npy") == X.astype(dtype)).all()


def test_mapped_data_with_weights_of_zero(tmp_path):
    """Rows are kept where they are, and have no influence."""
    X, y = binary(3000, 5)
    np.save(tmp_path / "X.npy", X)
    weight = (np.arange(3000) % 4 > 0).astype(float)
    options = {**STOCHASTIC, "n_draws": 1000, "thin": 10, "n_chains": 4}
    mapped = quick(**options).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y, weight)
    dropped = quick(**options).fit(X[weight > 0], y[weight > 0])
    assert np.abs((mapped.coef_ - dropped.coef_) / dropped.coef_std_).max() < 0.12
    assert np.abs(mapped.coef_std_ / dropped.coef_std_ - 1.0).max() < 0.08


def test_the_map_behind_an_array(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((10, 3)))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert memory.mapped(mapped) is not None
    assert memory.mapped(np.asarray(mapped)[2:]) is not None
    assert memory.mapped(np.ones(3)) is None
    assert memory.mapped(np.load(tmp_path / "X.npy", mmap_mode="c")) is None  # may hold changes


def test_changes_of_a_writable_map_are_kept(tmp_path):
    """Letting go of pages must not lose what was written to them and not yet to the file."""
    X, y = binary(3000, 5)
    np.save(tmp_path / "X.npy", np.zeros_like(X))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r+")
    mapped[:] = X
    quick(**STOCHASTIC).fit(mapped, y)
    assert np.array_equal(mapped, X)
    mapped.flush()
    assert np.array_equal(np.load(tmp_path / "X.npy"), X)


@pytest.mark.slow
@linux
def test_sparse_data_are_not_made_dense():
    """1 % of 150 000 x 300: the dense matrix would be 360 MB."""
    found = measure(
        """
        S = sparse.random_array((150_000, 300), density=0.01, rng=np.random.default_rng(0)).tocsr()
        y = (np.random.default_rng(1).random(150_000) < 0.5).astype(int)
        model = BayesianLogisticRegression(**FAST)
        print(json.dumps({{"MB": growth(lambda: model.fit(S, y)) / 1e6}}))
        """
    )
    assert found["MB"] < 250


@pytest.mark.slow
def test_offsets_of_64_bits():
    X, y = binary(3000, 5)
    S = sparse.csr_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    long, short = (quick(**STOCHASTIC).fit(Z, y).posterior_.flat for Z in (S, sparse.csr_array(X)))
    assert np.array_equal(long, short)


@linux
@pytest.mark.slow
def test_two_hundred_fits():
    """After the twentieth, memory grows by less than 5 MB, and no file stays open."""
    found = measure(
        """
        X, y = binary(2000, 5)
        for k in range(200):
            for parameters in ({{}}, STOCHASTIC):
                quick(**parameters).fit(X, y)
            if k == 20:
                gc.collect()
                before, files = status("VmRSS"), len(os.listdir("/proc/self/fd"))
        gc.collect()
        print(json.dumps({{"MB": (status("VmRSS") - before) / 1e6,
                          "files": len(os.listdir("/proc/self/fd")) - files}}))
        """
    )
    assert found["MB"] < 5
    assert found["files"] == 0
