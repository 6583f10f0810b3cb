"""What an estimator of the gradient is: a rule for the terms of the rows of a batch."""

from typing import Any

from sklearn.base import BaseEstimator

from ..kernels.gradient import gradient

__all__ = ["Gradient"]


class Gradient(BaseEstimator):
    """An estimator of the gradient of the negative log-likelihood from a batch of rows.

    The estimate is ``exact(θ) + Σ_k c_k w_k J_kᵀ t_k``: rows k with coefficients c_k from a
    `skbayes_sg.subsampling.Subsampling`, sample weights w_k, terms t_k, and J_k = ∂η_k/∂θ, which is
    the row itself. A subclass says by attributes what `exact` is, and gives the kernel
    ``terms(facts, derivative, curvature, rows, start, stop, bracket, eta, extra_out, terms_out)``,
    so that the whole is unbiased: ``exact(θ) + Σ_i w_i J_iᵀ t_i`` over *all* rows must be the
    gradient. It holds for any centre: what is exact refers to the point that was reached, mode or
    not. The arguments of the kernel, for the rows ``rows[start:stop]`` with K predictors each, are

    ``facts`` : array of shape (N, n_facts), read-only
        What is known of each row: label, weight, predictors and terms at the centre; columns in
        `skbayes_sg.kernels.layout`. Row k of the batch has ``facts[rows[start + k]]``.
    ``derivative``, ``curvature`` : functions
        Of the model: see `skbayes_sg.models.Model`.
    ``bracket`` : array of shape (n_groups, 3)
        Where each group of rows is in its table; used by `Tabulated` alone.
    ``eta``, ``extra_out`` : arrays of shape (n, K), n at least stop - start
        Predictors η_k at θ, and working memory; both are free to be overwritten.
    ``terms_out`` : array of shape (n, K), to be written
        The terms t_k.

    Attributes
    ----------
    uses_constant : bool
        `exact` holds G, the gradient of the likelihood at the centre.
    uses_linear : bool
        `exact` holds H (θ - centre), H the Hessian of the likelihood at the centre.
    uses_tables : bool
        Some rows are compared with themselves along an axis, and `exact` is tabulated there.
    uses_centre : bool
        The noise grows with the distance from the centre, and vanishes there.
    kernel : compiled function
        How terms become a gradient: `skbayes_sg.engine.chain.gradient`, or for estimators that
        remember what past steps have seen, a kernel of their own with the same arguments.
    """

    terms: Any = None
    kernel = staticmethod(gradient)
    uses_constant = False
    uses_linear = False
    uses_tables = False
    uses_centre = False

    def measured(self, n_rows, batch_size):
        """Estimators whose noise adds up to that of this one, each with a factor.

        What "auto" measures on pilot draws, for one row, and divides by the rows of a step.
        Estimators that remember have no noise of their own at a point: it depends on where the
        chain was.

        Parameters
        ----------
        n_rows, batch_size : int

        Returns
        -------
        list of (Gradient, float)
        """
        del n_rows, batch_size
        return [(self, 1.0)]

    def fixed_noise(self, n_rows):
        """Noise that more rows a step do not lower, as a multiple of that of a plain single row.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        float
        """
        del n_rows
        return 0.0

    def settling_steps(self, n_rows, batch_size):
        """Steps at the start of a chain in which the noise is larger than later.

        Parameters
        ----------
        n_rows, batch_size : int

        Returns
        -------
        int
        """
        del n_rows, batch_size
        return 0

    def memory(self, setup, rng):
        """What a chain of this estimator remembers at first: None, or a `layout.GradientMemory`.

        Parameters
        ----------
        setup : skbayes_sg.engine.run.Setup
        rng : numpy.random.Generator
            The chain's stream of row numbers.
        """
        del setup, rng

    def prepare(self, setup, chain, estimator, scratch):
        """Fill the memory of a chain that has just begun.

        Parameters
        ----------
        setup : skbayes_sg.engine.run.Setup
        chain : skbayes_sg.engine.run.Chain
        estimator : skbayes_sg.kernels.layout.Estimator
        scratch : skbayes_sg.kernels.layout.Scratch
        """

    def most_rows(self, n_rows):
        """Rows a step at most, where "auto" chooses them.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        int
        """
        return n_rows

    def check(self, n_rows, batch_size):
        """`ValueError` for a number of rows, or rows a step, that the estimator cannot serve.

        Parameters
        ----------
        n_rows, batch_size : int
        """
