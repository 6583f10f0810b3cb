"""The parts of docstrings that the two estimators share."""

import re
import textwrap

__all__ = ["documented"]

PARTS = {
    "parameters": r"""
    module : torch.nn.Module or callable
        A module, or a function without arguments that returns a new module. The layers of a module
        are initialised anew for every chain by their methods `reset_parameters`. The module takes
        one tensor and returns one tensor; the first axis of both is that of the rows, and the
        output for a row depends on that row only: recurrent and attention layers need
        ``batch_first=True``. Parameters that require no gradient keep their values, and so do
        vectors that an embedding uses for padding. Predictions use the module of the fit, also
        after another one has been set.
    prior : str, Prior or dict, default="normal"
        Prior of every parameter; parameters are independent. "normal" is N(0, 1) for all
        parameters, including biases; "fan_in" is N(0, 2/m) for weights of units with m inputs, and
        N(0, 1) for parameters that are vectors; "laplace", "student_t" and "flat" stand for objects
        of `skbayes_sg.priors`, and objects `Normal`, `Laplace`, `StudentT` and `Flat` can be given.
        No parameter has a flat prior unless that is asked for: with "normal", "fan_in" or a
        `Normal`, factors of normalisation layers such as BatchNorm have a normal prior of mean 1,
        for under a flat prior their posterior would be improper. A dict maps patterns of parameter
        names to priors, and the first pattern that fits counts:
        ``{"head.*": Normal(scale=0.5), "*": "normal"}``.
    sampler : str or Dynamics, default="auto"
        "sgld", "sghmc", "sgnht", "baoab", or an object of `skbayes_sg.dynamics`. "auto" is "baoab"
        with a friction of 1, or with the lower friction (20/thin)³, but at least 0.01, if gradients
        have no noise (all steps take all rows, and nothing in the module is random), `step_size` is
        "auto", and draws lie at least 20 steps apart: with less friction, chains cross directions
        of low curvature faster.
    gradient : str or Gradient, default="auto"
        "minibatch", "svrg", "full", or an object of `skbayes_sg.gradients`.
        ``SVRG(refresh=m, anchor_size=n1)`` is vrSG-MCMC [1]_, whose n2 is `batch_size`; with all
        rows as n1 it is SVRG-LD. "auto" is "minibatch".
    batch_size : "auto", int or float, default="auto"
        Number of rows that each step uses, or their share of all rows in (0, 1]. "auto" is all rows
        if there are at most 100, or if a pass of all rows through the module takes at most ten
        million multiplications (26 000 rows of ten columns with 32 units); otherwise, and for a
        Dataset, it is 100. All rows are preferred where they cost little, because the noise of
        batches would make steps many times shorter.
    step_size : "auto", float or Schedule, default="auto"
        The step size h of :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`, with
        :math:`U = -\log \pi` a sum over all rows; samplers with velocities take time steps of
        :math:`\sqrt h`. With a preconditioner h is dimensionless: h = 1 is a step of one posterior
        standard deviation in the direction of the largest curvature, SGLD is unstable from h = 4
        on, and h = 0.1 moves like gradient descent with a learning rate of 0.05 divided by the
        largest curvature. Without preconditioner h has the units of a squared parameter, and
        h = 0.1 moves like gradient descent on the *mean* loss of N rows with a learning rate of
        0.05 N. "auto" is the largest step that is at most a fortieth of the limit of stability, and
        at which the gradient's noise is predicted to increase variances of predictions by at most a
        tenth. `Cyclical` and `TwoPhase` of `skbayes_sg.schedules` are steps that vary.
    preconditioner : {"auto", "fisher", "rmsprop"} or None, default="auto"
        The matrix P, which is diagonal. It is measured where the search for a mode has ended,
        scaled so that the largest curvature is 1, and fixed from then on; None is the identity.
        "fisher": one over the sum over all rows of the squared entries of their gradients, plus the
        precision of the prior, which compensates for columns in different units. "rmsprop": one
        over the root mean square of each entry of the gradient of a step (of a tenth of the rows,
        if steps take all rows). "auto" is "fisher" if steps take all rows, and "rmsprop" with
        batches.
    temperature : float, default=1.0
        The temperature T. Other values than 1 sample not the posterior but its power 1/T, which
        `posterior_` states.
    n_draws : int, default=50
        Number of draws that each chain makes.
    n_chains : int, default=4
        Number of chains, each with its own initialisation.
    n_warmup : "auto" or int, default="auto"
        Number of steps of each chain between the search for a mode and the first draw. "auto" is
        half as many steps as follow; if `thin` is doubled, all steps made before that count as
        warm-up as well.
    thin : "auto" or int, default="auto"
        Number of steps from one draw to the next. "auto" is one pass over the rows, but at least 20
        steps. If gradients have no noise, and `n_warmup` and `step_size` are "auto" as well, `thin`
        is doubled up to four times: as long as R-hat of predictions is above 1.05 and above what as
        few independent draws would reach by chance, and as long as the additional steps are
        predicted to take less than a minute.
    start_steps : "auto" or int, default="auto"
        Number of steps of the optimiser Adam in the search for a mode, before a chain begins.
        "auto" is 20 passes over the rows, but at least 500 steps. It then continues as long as the
        posterior density grows: with L-BFGS if steps take all rows, otherwise with Adam, up to four
        times as many steps.
    learning_rate : float, default=0.003
        The step of Adam at the beginning of the search. It falls to zero along a cosine, and is at
        this value again each time the search continues.
    initialisation : {"reset", "given"}, default="reset"
        "reset": each chain begins at its own initialisation. "given": all chains begin at the
        parameters that the module has, such as those of a trained module.
    training : bool, default=True
        Whether chains run in training mode, in which dropout and batch normalisation are active and
        change the law that is sampled (see Notes). Predictions use evaluation mode.
    keep : "all" or int, default="all"
        How many draws of each chain are kept for predictions, evenly spaced. Means and standard
        deviations of parameters refer to all draws. Kept draws take 4 bytes for each parameter and
        draw in float32; before chains run, a warning says how much memory this takes if it is much.
    draws_dtype : {"float32", "float16", "float64"}, default="float32"
        The type in which draws are kept. "float16" takes half the memory of "float32", and rounds
        each parameter by at most 0.05 %.
    draws_folder : str or Path, default=None
        A folder for a file of the draws, which predictions then read from disk. Every fit makes a
        new file, and the files of earlier fits stay. None keeps draws in memory.
    device : str or torch.device, default="auto"
        Where chains and predictions run. "auto" is a CUDA GPU if there is one, else the CPU. On a
        GPU the operations of a step are recorded once and replayed, unless the module does more in
        Python than to call its layers. Draws are kept in the memory of the host, so that a saved
        estimator can predict on any device.
    data_on_device : bool, default=False
        Whether all rows are copied to the device before chains run. Otherwise each step copies the
        rows that it uses.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. An int gives the same batches of rows on any device, and the
        same normal random numbers on devices of the same kind.
    """,
    "attributes": r"""
    posterior_ : ModulePosterior
        The draws. ``posterior_.check()`` is a verdict on the predictions.
    diagnostics_ : dict of str to float
        ``rhat_of_predictions``, an R-hat that 95 % of the predictions for 64 rows of the fit do not
        exceed (if there are no more rows than columns, also for as many rows in which the order of
        each column is changed); ``max_rhat``, the largest R-hat of these predictions;
        ``rhat_by_chance``, an R-hat that as few independent draws would hardly exceed;
        ``between_chains``, the share of the variance of predictions that is between chains;
        ``noise_inflation``, the predicted relative increase of variances of predictions by the
        gradient's noise; ``temperature`` and ``temperature_of_predictions``, the mean square of
        velocities over all parameters and along predictions, both of which should be 1, and
        ``temperature_error``, the standard error of the latter (NaN for "sgld"); ``n_chains``.
    prior_groups_ : list of (str, list of str)
        Groups of parameters with the same prior: the prior, and the names of the parameters.
    sampler_, preconditioner_ : str
        The choices made for "auto", or those given.
    step_size_, temperature_ : float
        The step size h, or the first one of a schedule; the temperature T.
    batch_size_, thin_, n_warmup_, start_steps_ : int
        The numbers chosen for "auto", or those given. `thin_` and `n_warmup_` are those after all
        doublings, `start_steps_` is that of the longest search.
    n_gradients_ : int
        Number of gradients of single rows that all chains and their searches have computed.
    start_losses_ : ndarray of shape (n_chains,)
        Negative log posterior per row at the point where each search has ended.
    potentials_ : ndarray of shape (n_chains, n_draws)
        Estimate of the negative log likelihood at each draw, from the rows of its last step.
    seconds_ : dict of str to float
        Wall time of the two parts of the fit in seconds: ``search and survey``, and ``chains``.
    input_shape_ : tuple
        The shape of one row.
    n_features_in_ : int
        Number of columns, if rows are vectors.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of a data frame, against which predictions check new data.
    """,
    "raises": r"""
    InvalidParameterError
        By `fit`, for a parameter that cannot be used.
    SamplerDivergedError
        By `fit`, if a chain or the search for a mode becomes infinite or NaN, if a chain moves with
        a hundred times the energy that it should have, or if it does not move at all. The estimator
        is then as before the call.
    MemoryError
        By `fit`, if the draws do not fit into free memory. If they need much memory, there is a
        `DrawStoreWarning`.
    """,
    "notes": r"""
    **What is sampled.** Chains sample the posterior of the module given all rows, up to the errors
    of the step and of the gradient that `diagnostics_` states. Three things change the law that is
    sampled, and each of them issues an `AlteredTargetWarning`. Under *dropout* each step has the
    likelihood of a random sub-network: the law is that of the averaged log likelihood, which is
    wider. With *batch normalisation* the likelihood of a row depends on its batch. Under *data
    augmentation* the log likelihood of a row is the average over its variants, counted once. With
    ``training=False`` dropout and batch normalisation are switched off while chains run, as they
    are for predictions.

    **No verdict on weights.** Units of a network can be exchanged without a change of predictions,
    so that chains can only be expected to agree on predictions. Deep networks have many modes: if
    R-hat of predictions stays large, the average over chains is that of an ensemble of local
    posteriors.

    **Texts and other sequences.** Rows are treated as independent: cut a long text into windows,
    each of which is a row.
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
