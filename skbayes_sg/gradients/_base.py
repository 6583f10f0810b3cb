"""The base class of gradient estimators: rules for the terms of the rows of a batch."""

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels.gradient import gradient

__all__ = ["Gradient"]


class Gradient(BaseEstimator):
    """An estimator of the gradient of the negative log-likelihood from a batch of rows.

    The estimate is ``exact(θ) + Σ_k c_k w_k J_kᵀ t_k``: rows k with coefficients c_k from a
    `skbayes_sg.subsampling.Subsampling`, sample weights w_k, terms t_k, and J_k = ∂η_k/∂θ, which is
    the row itself. A subclass says by attributes what `exact` is, and defines the kernel
    ``terms(facts, derivative, curvature, rows, start, stop, eta, extra_out, terms_out)``,
    so that the estimate is unbiased: ``exact(θ) + Σ_i w_i J_iᵀ t_i`` over *all* rows must be the
    gradient, for any centre, because the search for the mode may end before it
    (``tests/gradients/test_gradient_estimators.py::test_mean_and_covariance_over_all_batches``
    enumerates all batches of every estimator). The arguments of
    the kernel, for the rows ``rows[start:stop]`` with K predictors each, are

    ``facts`` : array of shape (N, n_facts), read-only
        Label, weight, and predictors and terms at the centre of each row; the columns are listed
        in `skbayes_sg.kernels.layout`. Row k of the batch has ``facts[rows[start + k]]``.
    ``derivative``, ``curvature`` : functions
        Kernels of the model: see `skbayes_sg.models.Model`.
    ``eta``, ``extra_out`` : arrays of shape (n, K), n at least stop - start
        Predictors η_k at θ, and working memory; the kernel may overwrite both.
    ``terms_out`` : array of shape (n, K), to be written
        The terms t_k.

    Attributes
    ----------
    uses_constant : bool
        Whether `exact` contains G, the gradient of the likelihood at the centre.
    uses_linear : bool
        Whether `exact` contains H (θ - centre), with H the Hessian of the likelihood at the centre.
    uses_centre : bool
        Whether the noise vanishes at the centre and grows with the distance from it.
    exact_share : float
        Factor by which `exact` is multiplied, for interpolations between estimators.
    reads : float
        Rows that are read for each row of a batch, for predictions of the time of a step.
    kernel : compiled function
        The kernel that turns terms into a gradient: `skbayes_sg.kernels.gradient.gradient`, or
        another one with the same arguments for estimators that remember past steps.
    """

    terms: Any = None
    kernel = staticmethod(gradient)
    uses_constant = False
    uses_linear = False
    exact_share = 1.0
    uses_centre = False
    reads = 1.0

    def measured(self, n_rows, batch_size):
        """Return estimators whose noise, each times a factor, adds up to that of this one.

        "auto" measures their noise for one row at pilot draws, and divides it by the rows of a
        step. An estimator that remembers has no noise of its own at a point, because its noise
        depends on the path of the chain.

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
        """Return the noise that more rows a step do not reduce, in units of that of one plain row.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        float
        """
        del n_rows
        return 0.0

    def lasting_noise(self, n_rows, batch_size):
        """Return the noise that several steps share, which does not depend on the rows of a step.

        Parameters
        ----------
        n_rows, batch_size : int

        Returns
        -------
        (float, int)
            Its covariance, as a multiple of that of a gradient from one uniform row, and the number
            of steps that share it.
        """
        return 0.0, 1

    def shared_noise(self, n_rows, batch_size, relaxation=math.inf):
        """Return `lasting_noise` as an equivalent noise that is drawn anew at every step.

        Noise ξ that m steps share adds, where a chain forgets by a factor ρ a step, as much to a
        variance as noise of covariance ``Var ξ [1 + 2 Σ_{k<m} (1 - k/m) ρᵏ]`` that is new in each:
        m times as much at most.

        Parameters
        ----------
        n_rows, batch_size : int
        relaxation : float, default=inf
            Steps in which a chain forgets, ρ = exp(-1/relaxation).

        Returns
        -------
        float
            In units of the noise of a gradient from one uniform row.
        """
        level, m = self.lasting_noise(n_rows, batch_size)
        k = np.arange(1, m)
        return level * (1.0 + 2.0 * float(((1.0 - k / m) * np.exp(-k / relaxation)).sum()))

    def settling_steps(self, n_rows, batch_size):
        """Return how many steps at the start of a chain have larger noise than later ones.

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
        """Return the initial memory of a chain: None, or a `layout.GradientMemory`.

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
        """Return the largest number of rows a step that "auto" may choose.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        int
        """
        return n_rows

    def check(self, n_rows, batch_size):
        """Raise `ValueError` for a number of rows, or of rows a step, that does not work.

        Parameters
        ----------
        n_rows, batch_size : int
        """
