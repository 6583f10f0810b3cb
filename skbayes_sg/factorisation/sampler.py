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
        Whether after `complete` ``chain.means`` are the conditional means of the rows of column 0.
    """

    has_means = False

    def sweep(self, model, chain, n_jobs=None):
        """One pass, in place.

        Parameters
        ----------
        model : skbayes_sg.factorisation.chains.Model
        chain : skbayes_sg.factorisation.chains.Chain
        n_jobs : int, optional
            Threads.
        """
        raise NotImplementedError

    def complete(self, model, chain, n_jobs=None):
        """Make what a draw needs beyond the state after a pass: by default nothing.

        Parameters
        ----------
        model : skbayes_sg.factorisation.chains.Model
        chain : skbayes_sg.factorisation.chains.Chain
        n_jobs : int, optional
            Threads.
        """
