"""A start near the posterior: Gibbs sampling on the ratings of a few rows of column 0.

The ratings of a share f of the users, and then of a share 4 f, teach the chain the rows of the
other columns, their (μ, Λ) and the noise; a pass over a share f has the share f of the cost of a
pass. The start ends with a draw of all rows of column 0, so that rows that were not updated do not
disturb the others.
"""

from dataclasses import replace

import numpy as np

from .gibbs_updates import draw_column, draw_hyper, sweep
from .problem import make_problem

__all__ = ["narrowed", "warm_start"]

FEW, LEAST = 50_000, 0.02  # smallest number of ratings and smallest value of the share f
SWEEPS, MORE = 12, 5  # passes over the share f, and over the share 4 f


def narrowed(problem, users):
    """Return the problem restricted to some rows of column 0, and the rows of F that it uses.

    Parameters
    ----------
    users : ndarray of int, shape (m,), sorted

    Returns
    -------
    problem : RatingProblem
    rows : ndarray of int
        ``F[rows]`` are the rows of the narrowed problem.
    """
    n = int(problem.offsets[1])
    rows = np.concatenate([users, np.arange(n, problem.n_rows)])
    place = np.full(problem.n_rows, -1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    chosen = place[problem.codes[:, 0]] >= 0
    offsets = problem.offsets - (n - len(users))
    offsets[0] = 0
    codes = place[problem.codes[chosen]]
    return make_problem(codes, problem.y[chosen], offsets, problem.rank), rows


def _on_a_share(model, chain, users, n_sweeps, n_jobs):
    """Make passes over the ratings of some users, and write the results into the chain."""
    problem, rows = narrowed(model.problem, users)
    if not problem.n_ratings:
        return
    noise = replace(chain.noise, w=chain.noise.w[rows])
    own = replace(chain, F=chain.F[rows], noise=noise, hyper=list(chain.hyper))
    narrow = replace(model, problem=problem)
    draw_column(narrow, own, 0, n_jobs)
    for _ in range(n_sweeps):
        sweep(narrow, own, n_jobs)
    chain.F[rows], chain.noise.w[rows], chain.hyper = own.F, own.noise.w, own.hyper
    chain.noise.alpha, chain.noise.shapes = own.noise.alpha, own.noise.shapes


def warm_start(model, chain, n_jobs=None, share="auto"):
    """Move a chain from its random start to near the posterior, in place.

    Parameters
    ----------
    share : "auto" or float
        The share f. "auto" is the share with `FEW` ratings, but at least `LEAST`.
    """
    problem = model.problem
    n = int(problem.offsets[1])
    share = max(LEAST, FEW / problem.n_ratings) if share == "auto" else share
    order = chain.rng.permutation(n)
    if share > 0.5:
        for _ in range(SWEEPS):
            sweep(model, chain, n_jobs)
    else:
        for part, n_sweeps in ((share, SWEEPS), (4.0 * share, MORE)):
            if part <= 0.5:
                users = np.sort(order[: max(1, int(part * n))])
                _on_a_share(model, chain, users, n_sweeps, n_jobs)
    draw_column(model, chain, 0, n_jobs)
    draw_hyper(model, chain, 0)
