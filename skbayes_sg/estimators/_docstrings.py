"""Parts of docstrings that several estimators have in common, each written once.

A line ``{name}`` in a docstring stands for the part of that name.
"""

import re
import textwrap
from typing import Any

__all__ = ["SharedDocstring"]

PARTS = {
    "subposteriors_to_keep": r"""
    n_subposteriors : int, default=1
        Number of random shards of equal weight into which the rows are divided, at most as many as
        there are rows; each shard should have many more rows than there are parameters. Every shard
        is sampled by its own worker with its share of the prior, :math:`p^{1/S}` for S shards, and
        the draws of all shards are combined. The result is approximate. Shards are meant for
        several processors, or for rows that lie on several machines. A callback cannot end such a
        fit before all shards are done.
    combine : str or Combiner, default="consensus"
        How the draws of the shards are combined: "consensus", "parametric", "nonparametric",
        "semiparametric", "weierstrass", or an object of `skbayes_sg.combine`. Parameters are
        combined in unconstrained form, positive ones as logarithms. "consensus" and "parametric"
        are correct if the posteriors of the shards are nearly Gaussian, which is checked.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Number of threads for chains and for passes over the data: None is 1, -1 is all processors.
    keep : {"all", "moments"} or int, default="all"
        Which draws are kept. "all" keeps every draw. An int is the number of draws to keep of each
        chain, evenly spaced: predictions, intervals and diagnostics then use these, means and
        standard deviations still refer to all draws, and memory does not grow with `n_draws`.
        "moments" keeps no draws, only means and standard deviations.
    warm_start : bool, default=False
        Whether the next call of `fit` on this object begins its search for the posterior mode at
        the mode that the previous fit has found. This saves passes over the rows if the prior or
        the rows have changed little, and the posterior is the same. Clones, such as those that grid
        searches make, begin their search anew.
    """,
    "subsampling_to_preconditioner": r"""
    subsampling : str or Subsampling, default="auto"
        Which rows each step uses.
    batch_size : "auto", int or float, default="auto"
        Number of rows that each step uses, or their share of all rows in (0, 1].
    step_size : "auto", float or Schedule, default="auto"
        The step size h. With a preconditioner it is dimensionless: h = 1 is a step of one posterior
        standard deviation.
    preconditioner : {"auto", "hessian", "diagonal"} or None, default="auto"
        The matrix by which steps are scaled: the inverse Hessian at the centre of the posterior
        ("hessian"), the inverse of the Hessian's diagonal ("diagonal"), or the identity (None).
    """,
    "draws_and_chains": r"""
    n_draws : int, default=1000
        Number of draws that each chain makes.
    n_chains : int, default=4
        Number of independent chains.
    """,
    "warmup_and_thin": r"""
    n_warmup : "auto" or int, default="auto"
        Number of steps of each chain before the first draw.
    thin : "auto" or int, default="auto"
        Number of steps from one draw to the next.
    """,
    "groups": r"""
    group_effects : list of str or int, default=None
        Columns of X, by name or position, whose levels have effects of their own, such as stores,
        customers or products; levels can be of any type, and there can be up to 100 000 of them.
        Level l of column k adds :math:`u_{kl} \sim N(0, \tau_k^2)` to the linear predictor, and the
        scale :math:`\tau_k` is inferred, so that the effects of levels with few rows are pulled
        towards zero (partial pooling). Do not one-hot encode these columns. Predictions integrate
        over the effects of levels that are new or missing. `effects_` is the table of all effects,
        and ``posterior_["group_std"]`` has the draws of the scales. Fits with group effects have
        samplers of their own.
    group_scale : str, PositivePrior or list of these, default=None
        Prior of each :math:`\tau_k`: one prior for all columns, or a list with one for each column.
        None is ``HalfNormal()``, whose scale is then the standard deviation of a numeric y (for
        `CustomRegressor` at least 1), and 1 for classes and counts.
    group_slopes : dict, default=None
        Columns whose slopes vary with the level of a group column as well, as in
        ``{"store": ["price"]}``. The standard deviations of slopes have the prior of their group
        column; where its scale is "auto", it is divided by the standard deviation of the column
        whose slopes vary. The effect of a level is that where this column is zero, or, if its mean
        is more than three standard deviations from zero, as in years, that at the mean of the
        column (not with ``fit_intercept=False``). `effects_` says which.
    """,
    "group_attributes": r"""
    effects_ : Summary
        Only with `group_effects`: a table with one row for each level, which has the total weight
        of the level's rows, and the mean, standard deviation and 90 % interval of its effect.
        ``effects_.to_frame()`` converts it to pandas.
    group_levels_ : dict of str to ndarray
        Only with `group_effects`: the levels of each group column.
    group_std_ : ndarray
        Only with `group_effects`: posterior means of the scales :math:`\tau_k`.
    """,
    "means_and_deviations": r"""
    coef_ : ndarray of shape (n_features,)
        Posterior means of the coefficients.
    intercept_ : float
        Posterior mean of the intercept; zero if ``fit_intercept=False``.
    coef_std_ : ndarray of shape (n_features,)
        Posterior standard deviations of the coefficients.
    intercept_std_ : float
        Posterior standard deviation of the intercept.
    """,
    "prior_scale": r"""
    prior_scale_ : float or ndarray of shape (n_scales,)
        Only if the scales of the coefficients' prior are learned: posterior means of these scales.
        Their draws are the variable "prior_scale" of `posterior_`.
    m_eff_ : float
        Only with the horseshoe prior, and with priors in which each column has a scale that is
        learned: posterior mean of the effective number of coefficients that are not zero. Its draws
        are the variable "m_eff" of `posterior_`.
    """,
    "features": r"""
    intercept_prior_ : Prior or None
        The prior of the intercepts that was used. If the default is a normal prior of scale
        :math:`s_0`, it is widened for columns far from zero. For the intercept is the predictor
        where all columns are zero, which may be far from all rows, and a narrow prior of it would
        hold back the coefficients. The variance of the default is therefore
        :math:`s_0^2 + \sum_j (5 m_j \min(u_j, s_0/s_j))^2`, with a sum over the columns whose mean
        :math:`m_j` is more than 1.5 standard deviations :math:`s_j` from zero; :math:`u_j` is the
        scale of a normal prior of the column's coefficient, and infinite for other priors and for
        scales that are learned. This default does not hold back the predictor at the rows, and
        hardly the coefficients.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if all names in X were strings.
    """,
    "choices_and_steps": r"""
    sampler_, gradient_, subsampling_, preconditioner_ : str
        The choices made for "auto", or those given. Some samplers cannot be asked for, and are only
        chosen by "auto": "scale_mixture_gibbs" for few rows, "horseshoe_gibbs" for the horseshoe
        prior, and "collapsed_gibbs", "collapsed_hmc" and "independence_mh" for group effects.
    step_size_ : float
        The step size h, or the first one of a schedule; NaN if draws are independent.
    batch_size_, thin_, n_warmup_ : int
        The numbers chosen for "auto", or those given.
    batch_sizes_ : ndarray of shape (n_chains, n_draws)
        For each draw, the average number of rows in the steps that led to it.
    n_steps_ : int
        Number of steps of each chain, including the warm-up.
    """,
    "shards": r"""
    subposteriors_ : list of Posterior
        The posterior of each shard; ``[posterior_]`` if the rows were not divided into shards.
    combine_check_ : dict of str to float
        What `skbayes_sg.combine.agreement` returns for the shards, and measurements of how they
        were combined; empty if the rows were not divided into shards.
    """,
    "invalid_parameter": r"""
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted. It is both a `ValueError` and a
        `TypeError`.
    """,
    "errors_and_warnings": r"""
    SamplerDivergedError
        By `fit`, if a chain leaves the region in which the posterior can have its mass.
    MemoryError
        By `fit`, before sampling, if the requested draws do not fit into free memory.

    Warns
    -----
    StepSizeWarning
        The step size or the batch size is beyond what was measured to be safe.
    UnusedParameterWarning
        A parameter has no effect: `gradient` or `subsampling` if every step uses all rows, `thin`
        or `n_warmup` if draws are independent, `intercept_prior` without an intercept,
        `noise_prior` with a known noise, `combine` without subposteriors.
    SamplerConvergenceWarning
        A parameter has an R-hat above 1.05, or an effective sample size below a tenth of the number
        of draws.
    MultimodalPosteriorWarning
        The posterior has several modes, and the shares of the draws near each may differ from the
        modes' posterior probabilities.
    PriorConflictWarning
        The default prior of an intercept has moved the intercept by more than one posterior
        standard deviation; that of a coefficient keeps it near zero, because its column varies too
        little; or a half-normal prior holds a positive parameter back.
    WidePriorWarning
        The default prior leaves the coefficients to so few rows that predictions of new rows may be
        worse than without any column.
    LongRunWarning
        The run is predicted to take more than ten seconds.
    SubposteriorWarning
        Before sampling, if shards have fewer rows than there are parameters; after sampling, if the
        posteriors of the shards are not Gaussian enough, or too far apart, to be averaged.
    DrawStoreWarning
        The draws need more memory than scikit-learn's ``working_memory``.
    """,
    "network_steps": r"""
    sampler : str or object, default="auto"
        "auto", "sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", "hmc", or an object of
        `skbayes_sg.dynamics`. "hmc" is a reference for small data: it uses all rows and corrects
        every move by a Metropolis test, so that its only error is that of Monte Carlo
        (``tests/networks/test_network_laws.py::test_samplers_of_users_find_the_law_of_one_unit``).
        The other samplers, if they are asked for, take plain steps, without the two things that
        "auto" adds: the guard against jumps of the energy, and the friction that corrects for the
        noise of the gradient.
    gradient : str or Gradient, default="auto"
        How rows become a gradient: "auto", "full", "minibatch", "control_variate" (whose centre is
        the point where the chain starts), "svrg", or an object such as
        ``SVRG(refresh=10, anchor_size=100)``, which is vrSG-MCMC [4]_. "taylor" and "saga" do not
        exist for networks.
    batch_size : "auto", int or float, default="auto"
        Number of rows that each step uses, or their share of all rows in (0, 1]. If `sampler` and
        `gradient` are both "auto", "auto" is all rows for up to 50 000 rows (and up to 17 million
        entries of X), and 500 rows for more. If one of them is given, it is 100 rows. "hmc" and
        "full" always use all rows.
    step_size : "auto" or float, default="auto"
        The step size h of :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`;
        samplers with momentum take time steps of :math:`\sqrt h`. For sampler "hmc", and for
        sampler "auto" on all rows, "auto" adapts the step during the warm-up. Otherwise it computes
        the step from the noise of the gradient, which may add a tenth to a variance under samplers
        without correction for this noise. A number is the step of every chain; but where steps of
        sampler "auto" make the energy jump, or make a chain diverge, the chain is moved back and
        its step reduced by a tenth or a fifth, with a warning and `step_size_` below the number.
    preconditioner : {"auto"} or None, default="auto"
        The matrix P. For "auto" it is the inverse of the curvature, with one number for all weights
        and one for all biases of each layer; for None it is the identity.
    n_draws : int, default=100
        Number of networks that each chain keeps.
    n_chains : int, default=4
        Number of independent chains.
    n_warmup : "auto" or int, default="auto"
        Number of steps of each chain (for "hmc", trajectories) before the first draw; a third as
        many steps of the optimiser Adam come before these (for "hmc", as many steps as there are
        trajectories). With sampler "auto" on all rows, "auto" is 1500, and half as many more if the
        noise is an output of the network; for "hmc" it is 250. Otherwise it is as many steps as
        simulate a time of 300, where a step simulates :math:`\sqrt h` (:math:`h/2` without
        momentum), and Adam takes 20 passes over the rows, or 30 if the noise is an output of the
        network.
    thin : "auto" or int, default="auto"
        Number of steps (for "hmc", trajectories) from one draw to the next. With sampler "auto" on
        all rows, "auto" is 60; for "hmc" it is 10. Otherwise it is such that the draws of a chain
        span a time of 800.
    max_doublings : int, default=1
        How often, at most, a run whose chains disagree is continued. Each time the draws so far are
        discarded, and new ones are made over as many steps as all earlier draws took together, so
        that each continuation takes twice as long as the one before.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Number of threads that run chains: None is 1, -1 is all processors.
    """,
    "network_findings": r"""
    function_rhat_ : float
        R-hat of the predictions at some rows of the fit: nine in ten of these predictions have at
        most this value. R-hat does not notice the noise of the gradient, which makes all chains too
        wide alike.
    noise_inflation_ : float
        Relative increase of a weight's variance that the noise of the gradient is predicted to
        cause; 0 if all rows are used. Sampler "auto" takes this noise out by a friction. If an
        anchor has been computed from some of the rows, its noise counts as often as there are steps
        that share the anchor.
    kinetic_temperature_ : float
        Mean square of the velocities over all weights and steps, which should be 1; NaN for
        samplers without momentum.
    prior_scale_ : ndarray of shape (n_scales,)
        Posterior means of the scales :math:`\tau_l` of the prior, layer by layer.
    column_scale_ : ndarray of shape (n_features,) or None
        Posterior means of the scales :math:`\lambda_j` of the columns, which are small for columns
        without influence. None if `prior_scale` is a number, or if the first hidden layer has fewer
        than eight units.
    step_size_ : float
        The step size h: the square of the mean time step of the chains.
    n_returns_ : int
        How often a chain was moved back to an earlier state, after a jump of its energy or after it
        had diverged.
    sampler_, gradient_ : str
        The choices made for "auto", or those given.
    batch_size_, thin_ : int
        The numbers chosen for "auto", or those given. `thin_` is that of the first chain, where
        chains differ.
    n_steps_ : int
        Number of steps, or trajectories, over which the first chain has made its draws.
    centre_, spread_ : ndarray of shape (n_features,)
        Weighted mean and standard deviation of each column.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.
    diagnostics_ : dict of str to float
        ``function_rhat``, as above, and ``function_rhat_median``, the median of R-hat over the
        predictions; ``kinetic_temperature`` and ``noise_inflation``, as above; ``n_returns``, the
        number of moves back in the ``n_steps`` steps of all chains. On all rows also
        ``energy_error``, the mean over steps of e²/P, with the energy error e of a step and the
        number P of parameters; on batches ``size_of_kicks``; for "hmc" ``acceptance``, the mean
        acceptance rate.

    Raises
    ------
    InvalidParameterError
        By `fit`, for parameters that cannot be used, alone or in combination.
    ValueError
        By `fit`, for data that cannot be used.
    SamplerDivergedError
        By `fit`, if a sampler that the user has chosen diverges.

    Warns
    -----
    SamplerConvergenceWarning
        The chains disagree about more than one in ten predictions.
    StepSizeWarning
        The noise of the gradient or the step size makes the spread of the draws too large; or
        chains have taken smaller steps than the given `step_size`.
    LongRunWarning
        The run is predicted to take more than a minute; the warning comes before it.
    """,
    "network_notes": r"""
    Columns of X, also those of sparse X, and a numeric response are standardised internally.
    Products are computed in single precision (for "hmc" in double precision), and sums in double
    precision. If there are at most 50 000 rows, equal rows are merged into one row with their total
    weight. An error or Ctrl-C during `fit` leaves the estimator as it was before the call.
    """,
    "network_references": r"""
    .. [1] R. M. Neal (1996). Bayesian Learning for Neural Networks. Springer. (The model.)
    .. [2] B. Leimkuhler and C. Matthews (2013). Rational construction of stochastic numerical
       methods for molecular sampling. Applied Mathematics Research eXpress 2013, 34-56. (BAOAB.)
    .. [3] P. Izmailov, S. Vikram, M. D. Hoffman and A. G. Wilson (2021). What are Bayesian neural
       network posteriors really like? ICML. (Convergence in function space.)
    .. [4] C. Chen, W. Wang, Y. Zhang, Q. Su and L. Carin (2019). A convergence analysis for a class
       of practical variance-reduction stochastic gradient MCMC. Science China Information Sciences.
       (Gradient ``SVRG`` with `anchor_size`.)
    """,
}


def fill(docstring):
    """The docstring with the part of that name, equally indented, for each line ``{name}``."""

    def part(line):
        return textwrap.indent(textwrap.dedent(PARTS[line[2]]).strip("\n"), line[1])

    return re.sub(r"^( *)\{(\w+)\}$", part, docstring, flags=re.MULTILINE)


class SharedDocstring:
    """Base of estimators whose docstrings have parts in common."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:  # ``python -OO`` has removed docstrings
            cls.__doc__ = fill(cls.__doc__)
