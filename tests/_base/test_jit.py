"""Compilation changes nothing: not the numbers, not with other layouts, not without a cache."""

import ast
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import jit_runs
import numba
import numpy as np
import probe
import pytest
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from scenes import close, make_scene

import skbayes_sg
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg._base import jit as _jit
from skbayes_sg.exceptions import CacheWarning
from skbayes_sg.groups.kernels import GroupLikelihood
from skbayes_sg.kernels.layout import DERIVATIVE, LOSS
from skbayes_sg.models import Logistic

PACKAGE = Path(skbayes_sg.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def run(what, folder, **environment):
    """(results, [hits, misses] of the cache, its warnings) of `jit_runs.py` in a new process."""
    out = folder / "out.npz"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "SKBAYES_SG_"))}
    env["PYTHONWARNINGS"] = "always"
    env["PYTHONPATH"] = os.pathsep.join([str(PACKAGE.parent), env.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, jit_runs.__file__, what, str(out)],
        env=env | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if "CacheWarning:" in line]
    with np.load(out) as found:
        return dict(found), json.loads(done.stdout), warned


# -- numbers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["float64", pytest.param("csr", marks=pytest.mark.slow)])
def storage(request):
    """How rows are stored."""
    return request.param


@pytest.fixture(scope="module")
def python_draws(storage, tmp_path_factory):
    """Draws by the Python source of the kernels."""
    return run(storage, tmp_path_factory.mktemp("python"), NUMBA_DISABLE_JIT="1")[0]


@pytest.mark.slow
def test_compiled_kernels_are_their_source_bit_by_bit(storage, python_draws, tmp_path):
    # Without leave to reorder sums, compiled code does exactly what its Python source does.
    strict, _, _ = run(storage, tmp_path, SKBAYES_SG_STRICT_MATH="1")
    assert strict.keys() == python_draws.keys()
    for name, expected in python_draws.items():
        assert strict[name].tobytes() == expected.tobytes(), name
        assert np.isfinite(expected).all()


@pytest.mark.slow
def test_reordered_sums_change_only_rounding(storage, python_draws):
    found = jit_runs.draws(storage)
    assert found.keys() == python_draws.keys()
    for name, expected in python_draws.items():  # "long" has a thousand steps
        close(found[name], expected, 1e-10, np.abs(expected).max())


@pytest.mark.slow
def test_one_step_to_rounding(storage, python_draws):
    for name, kernels in jit_runs.combinations(storage):
        if not kernels.setup.is_metropolis:
            draws, _ = kernels.sample(
                np.zeros((2, kernels.dimension)), 5, 1,
                step_size=jit_runs.cases.SCHEDULES["polynomial"][0],
            )  # fmt: skip
            close(draws[:, 0], python_draws[name][:, 0], 1e-12)


# -- flags ----------------------------------------------------------------------------------------


def calls_and_names(tree):
    """Names and attributes that a source mentions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


def test_compiler_flags_are_set_in_one_place():
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        mentioned = set(calls_and_names(tree))
        assert "prange" not in mentioned, path
        if path.name != "jit.py":
            assert not mentioned & {"njit", "vectorize", "guvectorize", "jitclass"}, path
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword):
                literal = isinstance(node.value, ast.Constant) and node.value.value is True
                assert not (node.arg in ("fastmath", "parallel") and literal), path


def kernels_of(tree):
    """Functions under the package's own decorators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
            if decorators & {"jit", "entry", "inlined", "inner", "pointee"}:
                yield node


def test_kernels_do_not_ask_whether_sums_are_finite():
    # Under reassociation x - x is 0, by which Numba's isfinite and isinf are defined: of a sum
    # isfinite is then always true. Comparisons are safe, and so is isnan.
    counted = 0
    for path in SOURCES:
        for kernel in kernels_of(ast.parse(path.read_text(encoding="utf-8"))):
            counted += 1
            assert not set(calls_and_names(kernel)) & {"isfinite", "isinf"}, (path, kernel.name)
    assert counted > 40


@compiled
def test_isfinite_of_a_sum_is_why():
    @numba.njit(fastmath=_jit.FASTMATH, error_model="numpy")
    def comparison(a, b, c):
        change = a - (b + c)
        return abs(change) < np.inf

    for values in [(1.0, np.nan, 2.0), (np.nan, 1.0, 2.0), (np.inf, np.inf, 1.0), (1.0, np.inf, 1)]:
        assert not comparison(*values)
    assert comparison(1.0, 2.0, 3.0)


def dispatchers():
    """All compiled functions of the package."""
    found = {}
    for info in pkgutil.walk_packages([str(PACKAGE)], "skbayes_sg."):
        if info.name == "skbayes_sg.__main__" or info.name.startswith("skbayes_sg.torch"):
            continue  # nothing there is compiled, and torch may be missing
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, Dispatcher) and value.py_func.__module__.startswith("skbayes_sg"):
                found[f"{value.py_func.__module__}.{value.py_func.__name__}"] = value
    return found


@compiled
def test_every_kernel_has_the_same_flags():
    kernels = dispatchers()
    assert len(kernels) > 40
    for name, kernel in kernels.items():
        options = kernel.targetoptions
        assert options["nogil"] is True, name
        assert options["fastmath"] == _jit.FASTMATH, name
        assert not options.get("parallel", False), name
        assert not options.get("forceobj", False), name
    assert not _jit.FASTMATH & {"nnan", "ninf", "afn", "fast"}


# -- specialisations ------------------------------------------------------------------------------


def fit(X, y, **options):
    """A short fit."""
    parameters = {"n_draws": 50, "n_chains": 2, "random_state": 0}
    return BayesianLogisticRegression(**(parameters | options)).fit(X, y).posterior_.flat


def layouts(X, folder):
    """The same numbers in every layout an array can have."""
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(folder / "X.npy", X)
    wide = np.zeros((2 * len(X), 3 * X.shape[1]))
    wide[::2, 1::3] = X
    return {
        "read-only": read_only,
        "memory map": np.load(folder / "X.npy", mmap_mode="r"),
        "Fortran order": np.asfortranarray(X),
        "strided": wide[::2, 1::3],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "other byte order": X.astype(X.dtype.newbyteorder()),
        "list": X.tolist(),
    }


@pytest.mark.parametrize(
    "options",
    [
        {"n_draws": 10, "n_warmup": 100},
        pytest.param(
            {
                "gradient": "taylor",
                "subsampling": "preferential",
                "batch_size": 20,
                "step_size": 0.05,
            },
            marks=pytest.mark.slow,
        ),
    ],
    ids=["exact", "stochastic"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_specialisation_for_all_layouts(options, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    expected = fit(X, y, **options)
    before = {name: list(kernel.signatures) for name, kernel in dispatchers().items()}
    for name, same in layouts(X, tmp_path).items():
        np.testing.assert_array_equal(fit(same, y, **options), expected, err_msg=name)
    for labels in (y.astype(float), y.astype(np.int8), y.tolist(), y.astype(str)):
        np.testing.assert_array_equal(fit(X, labels, **options), expected)
    assert {name: list(kernel.signatures) for name, kernel in dispatchers().items()} == before


# -- cache ----------------------------------------------------------------------------------------


@pytest.mark.slow
@compiled
def test_cache_serves_a_new_process(tmp_path):
    (tmp_path / "cache").mkdir()
    first, (hits, misses), warned = run("values", tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (hits, warned) == (0, [])
    assert misses > 0
    again, (hits, misses), warned = run("values", tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (misses, warned) == (0, [])
    assert hits > 0
    # A damaged cache is compiled anew, and repaired.
    damaged = [p for p in (tmp_path / "cache").rglob("*") if p.suffix in (".nbi", ".nbc")]
    assert damaged
    for number, path in enumerate(damaged):
        path.write_bytes([b"", b"not a pickle", path.read_bytes()[:50]][number % 3])
    after, (hits, misses), _ = run("values", tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert misses > 0
    final, (hits, misses), _ = run("values", tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (hits > 0, misses) == (True, 0)
    for found in (again, after, final):
        for name, value in first.items():
            assert found[name].tobytes() == value.tobytes()


@pytest.mark.slow
@compiled
def test_no_folder_for_the_cache(tmp_path):
    # Folders cannot be made inside of a file, whoever asks.
    blocked = tmp_path / "file"
    blocked.write_text("")
    nowhere = {"NUMBA_CACHE_DIR": "a", "XDG_CACHE_HOME": "b", "HOME": "c"}
    nowhere = {name: str(blocked / folder) for name, folder in nowhere.items()}
    found, (hits, _), warned = run("values", tmp_path, **nowhere)
    assert hits == 0
    assert len(warned) == 1
    assert "NUMBA_CACHE_DIR" in warned[0]
    for name, value in jit_runs.values().items():
        assert found[name].tobytes() == np.asarray(value).tobytes()


@compiled
def test_a_full_disk_costs_a_warning_only(monkeypatch):
    def full(self, sig, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    monkeypatch.setattr(_jit, "_warned", False)

    def twice(x):
        return 2.0 * x

    kernel = _jit.jit(twice)
    kernel._cache.load_overload = lambda sig, context: None  # not yet on disk
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = kernel(1.5), kernel(2)  # two specialisations, one warning
    assert found == (3.0, 4.0)
    assert [w.category for w in caught] == [CacheWarning]
    assert "No space left" in str(caught[0].message)


# -- threads --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_fits_in_two_threads_at_once(n_jobs):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    jobs = [
        {"random_state": 1, "n_warmup": 100},
        {"random_state": 2, "gradient": "taylor", "batch_size": 20, "step_size": 0.05},
    ]
    expected = [fit(X, y, **options) for options in jobs]
    found = [None, None]

    def work(k):
        found[k] = fit(X, y, n_jobs=n_jobs, **jobs[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)


def test_chains_in_threads_are_those_of_one_thread():
    scene = make_scene("softmax", n_rows=40)
    kernels = probe.Probe(
        scene.frame(kind="hessian"), jit_runs.cases.GRADIENTS["control_variate"].gradient,
        jit_runs.cases.SUBSAMPLING["uniform_without_replacement"].scheme, batch_size=7,
    )  # fmt: skip
    start, options = np.zeros((5, 9)), {"step_size": jit_runs.cases.schedules.Constant(0.1)}
    one, _ = kernels.sample(start, 3, 200, n_jobs=1, **options)
    two, _ = kernels.sample(start, 3, 200, n_jobs=2, **options)
    np.testing.assert_array_equal(one, two)


def test_named_tuples_of_pointers_have_the_type_that_numba_builds():
    model = Logistic()
    kernels = _jit.pointer(model.loss, LOSS), _jit.pointer(model.derivative, DERIVATIVE)
    for n_extra in (0, 2):
        value = GroupLikelihood(*kernels, n_extra)
        built = numba.types.BaseTuple.from_types([numba.typeof(x) for x in value], GroupLikelihood)
        assert numba.typeof(value) == built
    swapped = GroupLikelihood(*kernels[::-1], 0)
    assert numba.typeof(swapped) != built
    assert numba.typeof(value) is numba.typeof(GroupLikelihood(*kernels, 1))
