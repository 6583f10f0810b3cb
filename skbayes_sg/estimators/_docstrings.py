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
        there are rows; each should have many more rows than parameters. Each is sampled by
        its own worker with its share of the prior, :math:`p^{1/S}`, and the draws are combined. The
        result is approximate. It is for several processors, or rows on several machines. A callback
        cannot end such a fit before all shards are done.
    combine : str or Combiner, default="consensus"
        How draws of subposteriors are combined: "consensus", "parametric", "nonparametric",
        "semiparametric", "weierstrass", or an object of `skbayes_sg.combine`. Parameters are
        combined in unconstrained form. "consensus" and "parametric" are correct if the shards are
        nearly Gaussian, which is checked.
    random_state : int, RandomState instance or None, default=None
        Seed. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Number of threads for chains and for passes over the data: None is 1, -1 is all processors.
    keep : {"all", "moments"} or int, default="all"
        Draws that are kept. An int is the number of draws kept of each chain, evenly spaced, for
        predictions, intervals and diagnostics; means and standard deviations still refer to all
        draws, and the memory does not grow with `n_draws`. "moments" keeps no draws, only means and
        standard deviations.
    warm_start : bool, default=False
        Whether the next fit of this object begins to look for the mode at that of the fit before,
        which saves passes over the rows where prior or rows have changed little. The posterior is
        the same. Clones, as those of searches, begin anew.
    """,
    "subsampling_to_preconditioner": r"""
    subsampling : str or Subsampling, default="auto"
        Which rows a step uses.
    batch_size : "auto", int or float, default="auto"
        Number of rows of a step, or share of the rows in (0, 1].
    step_size : "auto", float or Schedule, default="auto"
        The step size h. With a preconditioner it has no unit: 1 is a step of one posterior standard
        deviation.
    preconditioner : {"auto", "hessian", "diagonal"} or None, default="auto"
        The inverse Hessian at the centre, the inverse of its diagonal, or the identity.
    """,
    "draws_and_chains": r"""
    n_draws : int, default=1000
        Number of draws of each chain.
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
        Columns of X, by name or position, whose levels have effects of their own: stores,
        customers, products, of any type and with up to 100 000 levels. Level l of column k adds
        :math:`u_{kl} \sim N(0, \tau_k^2)` to the predictor, and the scale :math:`\tau_k` is
        inferred, so that levels with few rows are pulled towards zero (partial pooling). The
        columns are not one-hot encoded, and levels that are new or missing in predictions are
        integrated over. `effects_` is the table of all effects, and ``posterior_["group_std"]``
        has the draws of the scales. The fit has samplers of its own.
    group_scale : str, PositivePrior or list of these, default=None
        Prior of each :math:`\tau_k`, one for all or one for each column. None is ``HalfNormal()``,
        whose scale is 1, or the standard deviation of y where y is a number.
    group_slopes : dict, default=None
        Columns whose slopes vary with the level, too, as in ``{"store": ["price"]}``.
    """,
    "group_attributes": r"""
    effects_ : Summary
        With `group_effects` only: one row for each level, with the weight of its rows, mean,
        standard deviation and 90 % interval of its effect; ``effects_.to_frame()`` for pandas.
    group_levels_ : dict of str to ndarray
        With `group_effects` only: the levels of each column.
    group_std_ : ndarray
        With `group_effects` only: posterior means of the scales :math:`\tau_k`.
    """,
    "means_and_deviations": r"""
    coef_ : ndarray of shape (n_features,)
        Posterior means of the coefficients.
    intercept_ : float
        Posterior mean of the intercept; zero if ``fit_intercept=False``.
    coef_std_ : ndarray of shape (n_features,)
        Posterior standard deviations.
    intercept_std_ : float
        Posterior standard deviation.
    """,
    "prior_scale": r"""
    prior_scale_ : float or ndarray of shape (n_scales,)
        Posterior means of the scales of the coefficients' prior, if they are learned; their draws
        are the variable "prior_scale" of `posterior_`.
    m_eff_ : float
        Posterior mean of the effective number of coefficients that are not zero, the variable
        "m_eff"; under the horseshoe prior, and where each column has a scale that is learned.
    """,
    "features": r"""
    intercept_prior_ : Prior or None
        The prior of the intercepts. The default one of scale :math:`s_0`, where there is one, is
        that of the predictor where all columns are zero. So its variance is :math:`s_0^2 + \sum_j
        (5 m_j \min(u_j, s_0/s_j))^2`, over the columns whose mean :math:`m_j` is more than 1.5
        standard deviations :math:`s_j` from zero, with the scale :math:`u_j` of a normal prior of
        the coefficient (infinite for other priors, and for scales that are learned): amid the rows
        it holds back nothing, and next to nothing of the coefficients.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names that are strings.
    """,
    "choices_and_steps": r"""
    sampler_, gradient_, subsampling_, preconditioner_ : str
        What "auto" became. Only "auto" takes the samplers "scale_mixture_gibbs" (few rows),
        "horseshoe_gibbs" (that prior), and "collapsed_gibbs", "collapsed_hmc" and
        "independence_mh" (group effects).
    step_size_ : float
        The step size h, the first one of a schedule; NaN for independent draws.
    batch_size_, thin_, n_warmup_ : int
        What "auto" became.
    batch_sizes_ : ndarray of shape (n_chains, n_draws)
        Average number of rows of the steps that led to each draw.
    n_steps_ : int
        Number of steps of each chain, warm-up included.
    """,
    "shards": r"""
    subposteriors_ : list of Posterior
        The posteriors of the shards; ``[posterior_]`` without shards.
    combine_check_ : dict of str to float
        The result of `skbayes_sg.combine.agreement` for the shards, and measurements of their
        combination; empty without shards.
    """,
    "invalid_parameter": r"""
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted; a `ValueError` and a
        `TypeError`.
    """,
    "errors_and_warnings": r"""
    SamplerDivergedError
        By `fit`, if a chain leaves the region where the posterior can be.
    MemoryError
        By `fit`, before sampling, if the requested draws do not fit into free memory.

    Warns
    -----
    StepSizeWarning
        The step size or the batch size exceeds what was measured to be safe.
    UnusedParameterWarning
        A gradient or a subsampling scheme was given, and the batch size is that of all rows; or
        `thin` or `n_warmup`, and the draws are independent.
    SamplerConvergenceWarning
        R-hat above 1.05, or an effective sample size below a tenth of the draws.
    MultimodalPosteriorWarning
        The posterior has several modes, and the draws may not tell how much each weighs.
    PriorConflictWarning
        The default prior of an intercept moves it by more than a posterior standard deviation.
    SubposteriorWarning
        Before the shards are sampled, if they have fewer rows than parameters; after it, if they
        are not Gaussian enough, or too far apart, to be averaged.
    DrawStoreWarning
        The draws need more memory than scikit-learn's ``working_memory``.
    """,
    "network_steps": r"""
    sampler : str or object, default="auto"
        "auto", "sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", "hmc", or an object of
        `skbayes_sg.dynamics`. "hmc" uses all rows, has a Metropolis test and so no error but that
        of Monte Carlo
        (``tests/networks/test_network_laws.py::test_samplers_of_users_find_the_law_of_one_unit``),
        and is a reference for small data. The others take steps as they are defined, without guard
        and without correction.
    gradient : str or Gradient, default="auto"
        How rows become a gradient: "auto", "full", "minibatch", "control_variate" (with the start
        of the chain as its centre), "svrg", or an object such as ``SVRG(refresh=10,
        anchor_size=100)``, which is vrSG-MCMC. "taylor" and "saga" do not exist for networks.
    batch_size : "auto", int or float, default="auto"
        Number of rows of a step, or share of the rows in (0, 1]. "auto" is 100, and for sampler
        and gradient "auto" all rows up to 50 000 (and 17 million numbers of X) and 500 above.
    step_size : "auto" or float, default="auto"
        The step size h of :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`; the
        samplers with momentum take time steps of :math:`\sqrt h`. "auto" adapts it where all rows
        are used; with batches it follows from the noise of the gradient, which for samplers
        without correction may add a fifth to a variance.
    preconditioner : {"auto"} or None, default="auto"
        P: the inverse of the curvature, one number for the weights and one for the biases of each
        layer, or the identity.
    n_draws : int, default=100
        Number of networks that each chain keeps.
    n_chains : int, default=4
        Number of independent chains.
    n_warmup : "auto" or int, default="auto"
        Steps of each chain (trajectories, for "hmc") before the first draw, after a third as many
        steps of Adam. "auto" is 1500 on all rows, half as many more where the noise is an output of
        the network, and 250 for "hmc"; with batches it is a time of 300, in units of the posterior,
        after 20 passes of Adam, or 30 for such noise.
    thin : "auto" or int, default="auto"
        Steps (trajectories) from one draw to the next. "auto" is 60, and 10 for "hmc"; with batches
        the draws of a chain span a time of 800.
    max_doublings : int, default=1
        How often a run is doubled whose chains disagree: what was drawn is discarded, and as many
        draws are made over as many steps as all before, so that each doubling takes twice as long.
    random_state : int, RandomState instance or None, default=None
        Seed. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Number of threads for chains. None is 1, -1 is all processors.
    """,
    "network_findings": r"""
    function_rhat_ : float
        R-hat of predictions at rows of the fit: nine in ten have at most this. It is blind to
        gradient noise.
    noise_inflation_ : float
        Share that the noise of the gradient is predicted to add to a variance of a weight; "auto"
        takes it out by a friction. 0 if all rows are used. The rows of an anchor of some rows
        count as often as steps share them.
    kinetic_temperature_ : float
        Mean of v² over the steps, which is 1 at the right temperature; NaN without momentum.
    prior_scale_ : ndarray of shape (n_scales,)
        Posterior means of the scales of the prior, layer by layer.
    column_scale_ : ndarray of shape (n_features,) or None
        Posterior means of the scales of the columns: small where a column tells nothing. None if
        ``prior_scale`` is given, or the first hidden layer has fewer than eight units.
    step_size_ : float
        The step size h, its mean over chains.
    n_returns_ : int
        How often a chain was moved back after an energy jump.
    sampler_, gradient_ : str
        What "auto" became.
    batch_size_, thin_ : int
        What "auto" became; with several chains, `thin_` is that of the first.
    n_steps_ : int
        Number of steps, or trajectories, over which the draws of a chain were made.
    centre_, spread_ : ndarray of shape (n_features,)
        Mean and standard deviation of the columns, by weight.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.
    diagnostics_ : dict of str to float
        ``function_rhat`` and its median over predictions, ``kinetic_temperature``,
        ``noise_inflation``, ``n_returns`` in ``n_steps`` of all chains; ``energy_error``, the mean
        of e²/P of the energy error e of a step, on all rows; ``size_of_kicks``, on batches;
        ``acceptance``, for "hmc".

    Raises
    ------
    InvalidParameterError
        By `fit`, for parameters that cannot be used, alone or together.
    ValueError
        By `fit`, for data that cannot be used.
    SamplerDivergedError
        By `fit`, if a sampler of the user's choice diverges.

    Warns
    -----
    SamplerConvergenceWarning
        If the chains disagree about more than one in ten predictions.
    StepSizeWarning
        If gradient noise or the step size makes the draws too wide.
    LongRunWarning
        Before a run that is predicted to take more than a minute.
    """,
    "network_notes": r"""
    Columns are standardised inside, also those of sparse X, and so is a numeric response. Products
    are in single precision (for "hmc" in double precision), sums in double precision. Of up to
    50 000 rows equal ones are merged. An error or Ctrl-C during `fit` leaves the estimator as it
    was.
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
