"""Compilation and loading: the first fit of a new process, cold and with a warm kernel cache.

    python examples/benchmarks/startup.py [--repeats 5] [--quick]

Seconds beyond ``import sklearn.linear_model`` for importing skbayes_sg and fitting the default to
the breast cancer data, to 50 000 rows, and to three classes. The byte code of Python exists, as it
does after an installation: only the cache of the kernels is cold. The seconds of ``import
sklearn.linear_model`` itself are there to compare machines, and those of the processor, of all
threads, for machines that are busy.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
from _tables import Parser, save, show

SCRIPT = """
import time
started = time.perf_counter()
import sklearn.linear_model
sklearn_imported = time.perf_counter()
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import scale
import numpy as np
began, busy = time.perf_counter(), time.process_time()
from skbayes_sg import BayesianLogisticRegression
imported = time.perf_counter()
rng = np.random.default_rng(0)
{data}
BayesianLogisticRegression(random_state=0).fit(X, y)
seconds = imported - began, time.perf_counter() - began, sklearn_imported - started
print(*seconds, time.process_time() - busy)
"""
BREAST_CANCER = "X, y = load_breast_cancer(return_X_y=True); X = scale(X)"
MADE = "X = rng.standard_normal((50_000, 10)); y = X[:, 0] + rng.logistic(size=50_000) > 0"
WINE = "X, y = load_wine(return_X_y=True); X = scale(X)"
CASES = {
    "breast cancer": BREAST_CANCER,
    "50 000 rows": MADE,
    "wine, three classes": WINE,
}


def first_fit(case, cache, bytecode):
    script = SCRIPT.format(data=CASES[case])
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return [float(value) for value in run.stdout.split()]


def row(case, repeats, bytecode):
    with tempfile.TemporaryDirectory() as cache:
        first_fit(case, cache, bytecode)
    with tempfile.TemporaryDirectory() as cache:
        cold = first_fit(case, cache, bytecode)
        warm = np.array([first_fit(case, cache, bytecode) for _ in range(repeats)])
    imports, total, of_sklearn, busy = np.median(warm, axis=0)
    found = {"first fit": case, "cold s": cold[1], "of the processor": cold[3], "warm s": total}
    found |= {"of it import s": imports, "of the processor ": busy}
    return found | {"import sklearn.linear_model s": of_sklearn}


def main():
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5, quick=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as bytecode:
        cases = list(CASES)[: 1 if options.quick else None]
        rows = [row(case, options.repeats, bytecode) for case in cases]
    show(rows)
    save(options.output, "startup", rows)


if __name__ == "__main__":
    main()
