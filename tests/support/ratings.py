"""Small tables of ratings, and the model of ratings stated naively."""

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from naive import complex_step

from skbayes_sg.factorisation.chains import FactorChain, Noise, RatingModel
from skbayes_sg.factorisation.hyperpriors import FixedNormal
from skbayes_sg.factorisation.problem import make_problem

DATA = Path(os.environ.get("SKBAYES_SG_DATA", Path(__file__).parents[3] / "shared" / "data"))


def movielens():
    """(X, y) of ml-100k; skips the test where it is not at hand."""
    path = DATA / "ml-100k.npz"
    if not path.exists():
        pytest.skip("ml-100k.npz is not at hand: set SKBAYES_SG_DATA to its folder")
    with np.load(path) as data:
        return np.column_stack([data["user"], data["item"]]), data["rating"].astype(float)


def made_problem(sizes=(6, 5), n=25, rank=3, seed=0):
    """Ratings of random combinations, all different; every category has some unless n is small."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(np.prod(sizes))[:n]
    offsets = np.cumsum([0, *sizes])
    codes = np.stack(np.unravel_index(cells, sizes), axis=1) + offsets[:-1]
    return make_problem(codes.astype(np.int32), rng.standard_normal(n), offsets, rank)


def made_chain(problem, seed=0, alpha=1.7):
    """A chain at a random state, nothing of which is special."""
    rng = np.random.default_rng(seed)
    C, D = problem.n_columns, problem.width
    F = 0.7 * rng.standard_normal((problem.n_rows, D))
    hyper = []
    for _ in range(C):
        A = rng.standard_normal((D, D))
        hyper.append((0.5 * rng.standard_normal(D), A @ A.T + np.eye(D)))
    noise = Noise(alpha, rng.uniform(0.5, 2.0, problem.n_rows), np.full(C, 4.0))
    rng = np.random.default_rng(seed + 1)
    return FactorChain(0, F, F[problem.rows(0)].copy(), noise, hyper, rng)


def made_model(problem, noise="hierarchical", hyperprior=None):
    return RatingModel(problem, hyperprior or FixedNormal(), noise)


def expected(F, codes):
    """f of the ratings, as the formula says."""
    K = F.shape[1] - 1
    f = sum(F[codes[:, c], K] for c in range(codes.shape[1]))
    for c, d in combinations(range(codes.shape[1]), 2):
        f = f + (F[codes[:, c], :K] * F[codes[:, d], :K]).sum(axis=1)
    return f


def precision_of_ratings(problem, noise):
    return noise.alpha * noise.w[problem.codes].prod(axis=1)


def log_density(F, problem, chain):
    """log p(y, F | noise, μ, Λ), up to a constant; complex-safe."""
    omega = precision_of_ratings(problem, chain.noise)
    total = -0.5 * (omega * (problem.y - expected(F, problem.codes)) ** 2).sum()
    for c, (mean, precision) in enumerate(chain.hyper):
        x = F[problem.rows(c)] - mean
        total = total - 0.5 * np.einsum("ni,ij,nj->", x, precision, x)
    return total


def gradient(F, problem, chain):
    """∇_F log p by complex step."""

    def f(flat):
        return log_density(flat.reshape(F.shape), problem, chain)

    return complex_step(f, F.ravel()).reshape(F.shape)
