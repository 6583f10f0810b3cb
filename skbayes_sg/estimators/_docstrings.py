"""Parts of docstrings that are the same for several estimators, each written once.

A line ``{name}`` in a docstring stands for the part of that name.
"""

import re
import textwrap

__all__ = ["fill"]

PARTS = {
    "subposteriors_to_keep": r"""
    n_subposteriors : int, default=1
        Number of random shards of equal weight into which the rows are divided. Each is sampled by
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
        Columns whose slopes vary with the level, too, as in ``{"store": ["price"]}``: for linear
        regression with one column in `group_effects`.
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
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names that are strings.
    """,
    "choices_and_steps": r"""
    sampler_, gradient_, subsampling_, preconditioner_ : str
        What "auto" became.
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
        A gradient or a subsampling scheme was given, and the batch size is that of all rows.
    SamplerConvergenceWarning
        R-hat above 1.05, or an effective sample size below a tenth of the draws.
    MultimodalPosteriorWarning
        The posterior has several modes, and the draws may not tell how much each weighs.
    SubposteriorWarning
        The shards are not Gaussian enough, or too far apart, to be averaged.
    DrawStoreWarning
        The draws need more memory than scikit-learn's ``working_memory``.
    """,
}


def fill(docstring):
    """The docstring with the parts in place of their names, indented as these."""

    def part(line):
        return textwrap.indent(textwrap.dedent(PARTS[line[2]]).strip("\n"), line[1])

    return re.sub(r"^( *)\{(\w+)\}$", part, docstring, flags=re.MULTILINE)
