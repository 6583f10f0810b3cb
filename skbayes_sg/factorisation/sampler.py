"""What a sampler of factorisations is."""

from sklearn.base import BaseEstimator

__all__ = ["Sampler"]


class Sampler(BaseEstimator):
    """A way to move the state of a chain by one pass over the ratings.

    A subclass gives `sweep`. What it remembers from pass to pass is ``chain.memory``. All random
    numbers come from ``chain.rng``, in an order that does not depend on the number of threads.

    Attributes
    ----------
    has_means : bool
        Whether after a pass ``chain.means`` are the conditional means of the rows of column 0.
    warmup : int
        Passes before the first draw, unless the user gives `n_warmup`.
    """

    has_means = False
    warmup = 10

    def begin(self, model, chain, n_jobs=None):
        """Prepare a chain at its random start for its first pass. By default, do nothing.

        Parameters
        ----------
        model : skbayes_sg.factorisation.chains.RatingModel
        chain : skbayes_sg.factorisation.chains.FactorChain
        n_jobs : int, optional
            Threads.
        """

    def sweep(self, model, chain, n_jobs=None):
        """One pass, in place.

        Parameters
        ----------
        model : skbayes_sg.factorisation.chains.RatingModel
        chain : skbayes_sg.factorisation.chains.FactorChain
        n_jobs : int, optional
            Threads.
        """
        raise NotImplementedError

    def ratings_a_step(self, problem):
        """Ratings that a step uses, on average; by default all.

        Parameters
        ----------
        problem : skbayes_sg.factorisation.problem.RatingProblem

        Returns
        -------
        int
        """
        return problem.n_ratings

    def time_of_a_pass(self):
        """The step size h, of which a step has its share; NaN for exact samplers."""
        return float("nan")
