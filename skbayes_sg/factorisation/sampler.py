"""The base class of the samplers of factorisations."""

import math

from sklearn.base import BaseEstimator

__all__ = ["Sampler"]


class Sampler(BaseEstimator):
    """A way to move the state of a chain by one pass over the ratings.

    A subclass defines `sweep`. It may use ``chain.memory`` from pass to pass. All random numbers
    come from ``chain.rng``, in an order that does not depend on the number of threads.

    Attributes
    ----------
    has_means : bool
        Whether a pass sets ``chain.means`` to the conditional means of the rows of column 0.
    warmup : int
        Number of passes before the first draw, unless the user sets `n_warmup`.
    """

    has_means = False
    warmup = 10

    def check(self, problem, noise="known"):
        """Refuse invalid parameters, and warn of ratings for which the sampler is inexact.

        It is called before any draw is made; the default does nothing.

        Parameters
        ----------
        problem : skbayes_sg.factorisation.problem.RatingProblem
        noise : {"known", "common", "hierarchical"}
        """

    def begin(self, model, chain, n_jobs=None):
        """Prepare a chain at its random start for its first pass; the default does nothing.

        Parameters
        ----------
        model : skbayes_sg.factorisation.chains.RatingModel
        chain : skbayes_sg.factorisation.chains.FactorChain
        n_jobs : int, optional
            Threads.
        """

    def sweep(self, model, chain, n_jobs=None):
        """Make one pass, in place.

        Parameters
        ----------
        model : skbayes_sg.factorisation.chains.RatingModel
        chain : skbayes_sg.factorisation.chains.FactorChain
        n_jobs : int, optional
            Threads.
        """
        raise NotImplementedError

    def ratings_a_step(self, problem):
        """Average number of ratings of a step; the default is all ratings.

        Parameters
        ----------
        problem : skbayes_sg.factorisation.problem.RatingProblem

        Returns
        -------
        int
        """
        return problem.n_ratings

    @property
    def is_exact(self):
        """Whether the law of the draws converges to the posterior, without steps."""
        return math.isnan(self.time_of_a_pass())

    def time_of_a_pass(self):
        """The step size h, the time of a pass; NaN for exact samplers."""
        return float("nan")
