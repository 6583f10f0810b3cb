"""Logistic regressions to measure on: easy and awkward, small and large, made and real.

Each is a function that returns ``(X, y, prior)``, or None where its data are not at hand.
"""

import numpy as np
from _tables import data_file
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from skbayes_sg.priors import Laplace, Normal, StudentT


def _standard(X):
    return StandardScaler().fit_transform(np.asarray(X, dtype=float))


def breast_cancer(scale=1.0):
    X, y = load_breast_cancer(return_X_y=True)
    return _standard(X), y, Normal(scale=scale)


def breast_cancer_wide():
    return breast_cancer(10.0)


def breast_cancer_laplace():
    X, y, _ = breast_cancer()
    return X, y, Laplace()


def breast_cancer_student():
    X, y, _ = breast_cancer()
    return X, y, StudentT(df=3)


def digits_3_8():
    X, y = load_digits(return_X_y=True)
    keep = np.isin(y, (3, 8))
    X = X[keep][:, X[keep].std(axis=0) > 0]
    return _standard(X), y[keep], Normal()


def wine():
    X, y = load_wine(return_X_y=True)
    return _standard(X), y, Normal()


def pima():
    z = data_file("pima.npz")
    return None if z is None else (_standard(z["X"]), z["y"], Normal())


def imbalanced(n=10_000):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 4))
    return X, (rng.random(n) < expit(X @ [1.0, -0.5, 0.5, 0.0] - 6.5)).astype(int), Normal(scale=10)


def separable():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((200, 5))
    return X, (X[:, 0] > 0).astype(int), Normal()


def more_columns_than_rows():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 200))
    return X, (rng.random(80) < expit(2 * X[:, 0])).astype(int), Normal()


def collinear():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((3000, 8))
    X[:, 1] = X[:, 0] + 1e-3 * X[:, 1]
    X = X * np.logspace(-3, 3, 8)
    eta = X @ (np.array([1, 0, -1, 0.5, 0, 0, 0.3, 0]) / np.logspace(-3, 3, 8))
    return X, (rng.random(3000) < expit(eta)).astype(int), Normal(scale=np.logspace(3, -3, 8))


def _rare_levels(n=5000):
    rng = np.random.default_rng(9)
    p = np.r_[np.full(10, 0.08), np.full(10, 0.018), np.full(10, 0.0019), np.full(5, 0.0002)]
    level = rng.choice(len(p), n, p=p / p.sum())
    X = np.c_[rng.standard_normal((n, 5)), np.eye(len(p))[level]]
    effect = rng.normal(size=len(p))
    effect[-15::3] = 6.0  # some rare levels have one class only
    y = rng.random(n) < expit(X[:, 0] - 0.5 * X[:, 1] + effect[level] - 1)
    return X[:, X.std(axis=0) > 0], y.astype(int)


def rare_levels():
    return *_rare_levels(), Normal()


def rare_levels_standardised():
    X, y = _rare_levels()
    return _standard(X), y, Normal()


def sparse_laplace():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((2000, 50))
    eta = X[:, :5] @ [1.5, -1.0, 0.8, 0.5, -0.3]
    return X, (rng.random(2000) < expit(eta)).astype(int), Laplace()


def covertype_2_4():
    """Real: 286,048 rows of which 0.96 % are of the second class."""
    z = data_file("covtype_2v4_286k.npz")
    return None if z is None else (_standard(z["X"]), z["y"].astype(int), Normal())


def well_conditioned(n=435_000, d=55):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    beta = 0.3 * rng.standard_normal(d)
    return X, (rng.random(n) < expit(X @ beta)).astype(int), Normal()


def covertype_shaped(n=435_000):
    """Rows made between real ones of one wilderness area and soil type; rare one-hot columns."""
    z = data_file("covtype_sample10k.npz")
    if z is None:
        return None
    X, y = z["X"].astype(float), (z["y"] == 2).astype(float)
    rng = np.random.default_rng(0)
    _, cell = np.unique(X[:, 10:] @ 2.0 ** np.arange(44), return_inverse=True)
    members = np.argsort(cell, kind="stable")
    counts = np.bincount(cell)
    first = np.r_[0, np.cumsum(counts)[:-1]]
    a = rng.integers(0, len(X), n)
    b = members[first[cell[a]] + (rng.random(n) * counts[cell[a]]).astype(int)]
    t = rng.random(n)
    made = X[a]
    made[:, :10] += t[:, None] * (X[b, :10] - X[a, :10])
    label = np.where(rng.random(n) < t, y[b], y[a]).astype(int)
    return _standard(made[:, made.std(axis=0) > 0]), label, Normal()


EASY = [breast_cancer, breast_cancer_wide, breast_cancer_laplace, breast_cancer_student, wine, pima]
AWKWARD = [imbalanced, separable, more_columns_than_rows, collinear, digits_3_8, sparse_laplace]
SMALL = [*EASY, *AWKWARD, rare_levels, rare_levels_standardised]
LARGE = [well_conditioned, covertype_2_4, covertype_shaped]
