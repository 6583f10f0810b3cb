"""The parts of docstrings that the two estimators share."""

import re
import textwrap

__all__ = ["documented"]

PARTS = {
    "parameters": r"""
    module : torch.nn.Module or callable
        A module, whose layers are initialised anew for every chain by their `reset_parameters`; or
        a function without arguments that returns a new module. It takes one tensor, whose first
        axis is that of the rows, as in what it returns. Parameters that require no gradient keep
        their values, and so do vectors that an embedding uses for padding.
    prior : str, Prior or dict, default="normal"
        Prior of every parameter, independent: "normal" is N(0, 1) for all of them, biases included;
        "fan_in" is N(0, 2/m) for weights of units with m inputs and N(0, 1) for vectors; "laplace",
        "student_t", "flat", or an object `Normal`, `Laplace`, `StudentT` or `Flat` of
        `skbayes_sg.priors`. No parameter is without a prior unless it is asked for: factors of
        normalisation layers such as BatchNorm have N(1, 1), for under a flat prior they would have
        no posterior. A dict has patterns of names, of which the first that fits counts:
        ``{"head.*": Normal(scale=0.5), "*": "normal"}``.
    sampler : str or Dynamics, default="auto"
        "sgld", "sghmc", "sgnht", "baoab", or an object of `skbayes_sg.dynamics`. "auto" is "baoab".
        Its friction is 1, but where steps of "auto" take all rows, nothing in the module is random
        and draws lie at least 20 steps apart it is (20/thin)³, at least 0.01: without noise, chains
        that glide cross soft directions faster.
    gradient : str or Gradient, default="auto"
        "minibatch", "svrg", "full", or an object of `skbayes_sg.gradients`:
        ``SVRG(refresh=m, anchor_size=n1)`` is vrSG-MCMC with `batch_size` as n2, and all rows as n1
        are SVRG-LD. "auto" is "minibatch".
    batch_size : "auto", int or float, default="auto"
        Number of rows of a step, or share of the rows in (0, 1]. "auto" is all rows if there are
        100 at most, or if a pass of all of them through the module takes no more than ten million
        multiplications (26 000 rows of ten columns with 32 units), and 100 otherwise, as for a
        Dataset. The noise of batches would make steps many times as short.
    step_size : "auto", float or Schedule, default="auto"
        The step size h of :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`, with
        :math:`U = -\log \pi` a sum over all rows; samplers with velocities take time steps of
        :math:`\sqrt h`. With a preconditioner h has no unit: 1 is a step of one posterior standard
        deviation in the direction of the largest curvature, and 4 is where SGLD explodes; h = 0.1
        moves like gradient descent with a learning rate of 0.05 over the largest curvature.
        Without preconditioner h is a squared parameter, and h = 0.1 moves like gradient descent on
        the *mean* loss of N rows with a learning rate of 0.05 N. "auto" is the largest step that is
        a fortieth of the limit of stability, and with which the gradient's noise is predicted to
        widen variances of predictions by a tenth at most. `Cyclical` and `TwoPhase` of
        `skbayes_sg.schedules` vary it.
    preconditioner : {"auto", "fisher", "rmsprop"} or None, default="auto"
        P, measured where the search for a mode has ended, scaled to a largest curvature of 1, and
        fixed from then on; or the identity. "fisher" is one over the sum over rows of the squares
        of each entry of their gradients, plus that of the prior: it makes up for columns in
        different units. "rmsprop" is one over the root mean square of each entry of the gradient of
        a step (of a tenth of the rows where a step takes all). "auto" is "fisher" where a step
        takes all rows, and "rmsprop" with batches.
    temperature : float, default=1.0
        T. Anything but 1 is not the posterior but its power 1/T; `posterior_` says so.
    n_draws : int, default=50
        Number of draws of each chain.
    n_chains : int, default=4
        Number of chains, each from an initialisation of its own.
    n_warmup : "auto" or int, default="auto"
        Steps of a chain after the search for a mode and before the first draw. "auto" is half as
        many as follow, and all that are made before `thin` is doubled.
    thin : "auto" or int, default="auto"
        Steps from one draw to the next. "auto" is one pass over the rows, at least 20 steps. Where
        "auto" takes all rows at every step, it is doubled, four times at most, while R-hat of
        predictions is above 1.05, and above what so few independent draws would not exceed, and
        that is predicted to take less than a minute.
    start_steps : "auto" or int, default="auto"
        Steps of Adam that look for a mode before a chain begins. "auto" is 20 passes over the rows,
        at least 500 steps, and goes on from there as long as the posterior density grows: with
        L-BFGS where steps take all rows, otherwise with Adam, for four times as many steps at most.
    learning_rate : float, default=0.003
        The first step of Adam; it falls to zero along a cosine, and begins anew where the search
        goes on.
    initialisation : {"reset", "given"}, default="reset"
        Whether chains begin at initialisations of their own, or all at the parameters that the
        module has, such as those of a trained one.
    training : bool, default=True
        Whether chains run in training mode, in which dropout and batch normalisation are active.
        They change the law that is sampled (see Notes); predictions use evaluation mode.
    keep : "all" or int, default="all"
        How many draws of each chain are kept for predictions, evenly spaced. Means and standard
        deviations of parameters refer to all draws. Kept draws take 4 bytes for each parameter and
        draw, which is stated before chains run if it is much.
    draws_dtype : {"float32", "float16", "float64"}, default="float32"
        The type of kept draws. "float16" takes half the memory and rounds each parameter by 0.05 %
        at most.
    draws_folder : str or Path, default=None
        A folder for a file of draws, which are then read from disk. Every fit makes one, and the
        files of earlier fits stay. None keeps draws in memory.
    device : str or torch.device, default="auto"
        Where chains and predictions run. "auto" is a GPU of CUDA if there is one. There steps are
        recorded and replayed, unless the module does more in Python than to call its layers. Draws
        are kept in the memory of the host, so that a saved estimator predicts on any device.
    data_on_device : bool, default=False
        Whether all rows are copied to the device before chains run. Otherwise a step copies its own
        rows alone.
    random_state : int, RandomState instance or None, default=None
        Seed. The rows of the steps follow from it on any device, the normals on one kind of it.
    """,
    "attributes": r"""
    posterior_ : ModulePosterior
        The draws. ``posterior_.check()`` is the verdict on predictions.
    diagnostics_ : dict of str to float
        ``rhat_of_predictions``, which 95 % of the predictions for 64 rows of the fit do not exceed
        (beside as many with each column in another order if there are no more rows than columns),
        and ``max_rhat``; ``rhat_by_chance``, which so few independent draws would hardly exceed;
        ``between_chains``, the share of the variance of predictions that is
        between chains; ``noise_inflation``, the predicted relative increase of variances of
        predictions by the gradient's noise; ``temperature`` and ``temperature_of_predictions``, the
        mean square of velocities over all parameters and along predictions, which should be 1, and
        ``temperature_error``, the standard error of the latter (NaN for "sgld"); ``n_chains``.
    prior_groups_ : list of (str, list of str)
        The prior of each group of parameters, and their names.
    sampler_, preconditioner_ : str
        What "auto" became.
    step_size_, temperature_ : float
        The step size h, the first one of a schedule; T.
    batch_size_, thin_, n_warmup_, start_steps_ : int
        What "auto" became in the end; of searches, the longest one.
    n_gradients_ : int
        Gradients of single rows that were computed, by all chains and their searches.
    start_losses_ : ndarray of shape (n_chains,)
        Negative log posterior per row where each search has ended.
    potentials_ : ndarray of shape (n_chains, n_draws)
        Estimate of the negative log likelihood at each draw, from the rows of its last step.
    seconds_ : dict of str to float
        Wall time of the two parts of the fit.
    input_shape_ : tuple
        The shape of a row.
    n_features_in_ : int
        Number of columns, of rows that are vectors.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of a data frame, which predictions check.
    """,
    "raises": r"""
    InvalidParameterError
        By `fit`, for a parameter that cannot be used.
    SamplerDivergedError
        By `fit`, if a chain or the search for a mode leaves the finite numbers, moves with a
        hundred times the energy that it should have, or does not move at all. The estimator is as
        before.
    MemoryError
        By `fit`, for draws that do not fit into free memory (a `DrawStoreWarning` tells of many).
    """,
    "notes": r"""
    **What is sampled.** The posterior is that of the module at all rows, with the noise of the step
    and of the gradient that `diagnostics_` states. Three things change the law, each of them with
    an `AlteredTargetWarning`. Under *dropout* each step has the likelihood of a random sub-network:
    the law is that of the averaged log likelihood, which is wider. With *batch normalisation* a
    row's likelihood depends on its batch. Under *data augmentation* the log likelihood of a row is
    the average over its variants, counted once. With ``training=False`` the first two are switched
    off while chains run, as they are for predictions.

    **No verdict on weights.** Units of a network can be exchanged without a change of predictions,
    so chains agree on predictions, if at all. Deep networks have many modes: where R-hat of
    predictions stays large, the average over chains is that of an ensemble of local posteriors.

    **Texts and other sequences.** Rows are taken as independent: cut a long text into windows.
    """,
    "references": r"""
    .. [1] C. Chen, W. Wang, Y. Zhang, Q. Su and L. Carin (2019). A convergence analysis for a class
       of practical variance-reduction stochastic gradient MCMC. Science China Information Sciences.
    .. [2] C. Li, C. Chen, D. Carlson and L. Carin (2016). Preconditioned stochastic gradient
       Langevin dynamics for deep neural networks. AAAI.
    .. [3] R. Zhang, C. Li, J. Zhang, C. Chen and A. G. Wilson (2020). Cyclical stochastic gradient
       MCMC for Bayesian deep learning. ICLR.
    """,
}


def documented(cls):
    """Class decorator: replace lines such as ``{parameters}`` in the docstring by those parts."""

    def part(line):
        return textwrap.indent(textwrap.dedent(PARTS[line[2]]).strip("\n"), line[1])

    if cls.__doc__:  # removed by ``python -OO``
        cls.__doc__ = re.sub(r"^( *)\{(\w+)\}$", part, cls.__doc__, flags=re.MULTILINE)
    return cls
