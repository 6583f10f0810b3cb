"""The score of the rows of F at the state of a chain, from all ratings.

Row a of column c, with the precision Λ_c and the mean μ_c of its column, has the score

    ∇_a log p(F | y, μ, Λ, noise) = Σ_n ω_n (y_n - f_n) ∂f_n/∂F_a - Λ_c (F_a - μ_c).

Its posterior mean given μ, Λ and the noise is zero, and so is its mean over the whole posterior:
scores are control variates of chains of any sampler (`skbayes_sg.postprocess.zero_variance`).
"""

import numpy as np

from .sparse import likelihood_gradient

__all__ = ["scores"]


def scores(model, chain):
    """The scores of all rows, (n_rows, D).

    Parameters
    ----------
    model : skbayes_sg.factorisation.chains.RatingModel
    chain : skbayes_sg.factorisation.chains.FactorChain
    """
    problem, noise, found = model.problem, chain.noise, np.zeros_like(chain.F)
    likelihood_gradient(problem.codes, problem.y, chain.F, noise.w, float(noise.alpha), 1.0, found)
    for column, (mean, precision) in enumerate(chain.hyper):
        rows = problem.rows(column)
        found[rows] -= (chain.F[rows] - mean) @ precision
    return found
