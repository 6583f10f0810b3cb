"""Blocked Gibbs sampling of all columns in turn."""

from .._base.validation import Parameters, is_real
from .gibbs_updates import sweep
from .sampler import Sampler
from .start import warm_start

__all__ = ["Gibbs"]

# Number of ratings above which a start on a share of the users was measured to save time.
MANY = 500_000


class Gibbs(Sampler):
    """Exact blocked Gibbs sampling (BPMF).

    A pass draws the rows of each column, beginning with the last one, and after each column its
    (μ, Λ); then it draws the noise. Column 0 comes last, so that a draw contains the conditional
    means of its rows given all else. The rows are drawn from their law given all others
    (``tests/factorisation/test_factorisation.py::test_joint_law_of_ratings_and_rows``), so that the
    law of the draws converges to the posterior. For each
    column a pass over N ratings of rank K needs of the order of N K² multiplications.

    Parameters
    ----------
    share : "auto" or float in (0, 1], default="auto"
        The chain starts on the ratings of this share of the categories of column 0, and continues
        with four times as many before it uses all. The stationary law is the same; with many
        ratings the chain reaches it sooner. "auto" is 1 up to half a million ratings; above that
        it is the share with 50,000 ratings, but at least 0.02.

    References
    ----------
    R. Salakhutdinov and A. Mnih (2008). Bayesian probabilistic matrix factorization using Markov
    chain Monte Carlo. ICML.

    Examples
    --------
    >>> from skbayes_sg import BayesianPMF
    >>> from skbayes_sg.factorisation import Gibbs
    >>> X = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "beer"]]
    >>> model = BayesianPMF(rank=2, sampler=Gibbs(), random_state=0).fit(X, [5, 3, 4, 1])
    >>> model.sampler_
    'gibbs'
    """

    has_means = True
    warmup = 50

    def __init__(self, share="auto"):
        self.share = share

    def begin(self, model, chain, n_jobs=None):
        """Move the chain towards the posterior with the ratings of a share of the users.

        Nothing is done if `share` is 1, or if it is "auto" and there are few ratings.
        """
        share = self.share
        if isinstance(share, str) and share == "auto":
            if model.problem.n_ratings > MANY:
                warm_start(model, chain, n_jobs)
            return
        if not is_real(share) or not 0.0 < share <= 1.0:
            Parameters(self).fail("share", "'auto' or a number in (0, 1]")
        if share < 1.0:
            warm_start(model, chain, n_jobs, float(share))

    def sweep(self, model, chain, n_jobs=None):
        """Draw the rows and (μ, Λ) of all columns, beginning with the last one, and the noise."""
        sweep(model, chain, n_jobs)
