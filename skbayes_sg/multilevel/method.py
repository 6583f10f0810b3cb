"""Multilevel SGLD (Nagapetyan et al. 2017): expectations to a given accuracy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._base import streams
from .._base.threads import one_blas_thread
from .._base.typing import RandomState
from .._base.validation import Parameters, is_real
from ..dynamics import SGLD
from ..engine.run import Setup
from ..exceptions import SamplerDivergedError
from ..geometry.modes import find_modes
from ..geometry.preconditioning import DENSE_LIMIT
from ..gradients import ControlVariate, Full, Minibatch, Taylor
from ..recipe.choose import check_noise, frame_of
from ..recipe.tuning import FAR
from ..subsampling import AllRows, Uniform
from .adaptive_levels import EndedByCallback, Exhausted, LevelSampler, adapt, stopped, too_dear
from .confirmation import confirming
from .couplings import COUPLINGS, Common
from .hierarchy import Hierarchy
from .integrand import Integrand, Tolerance
from .paths import Diverged, Paths
from .result import Expectation
from .truncation import randomised

__all__ = ["MultilevelSGLD"]

GRADIENTS = {"taylor": Taylor, "control_variate": ControlVariate, "minibatch": Minibatch}
GRADIENTS["full"] = Full
# Largest automatic h₀: a Gaussian is unstable at 4, and curvature grows away from the mode.
LARGEST_STEP = 0.5
INSTANTS = 0.5  # approximate time between two instants that are averaged, in the units of h₀
HALVINGS = 4  # largest number of times that an automatic h₀ that proves too large is halved
# Largest share of the variance of level 0 that a small correction, level 1, has; else h₀ is too
# large.
SMALL_CORRECTION = 0.5


class MultilevelSGLD(BaseEstimator):
    r"""Posterior expectations to a stated accuracy, by multilevel stochastic gradient Langevin.

    SGLD with a step h has a bias of order h, and a chain of small steps is expensive. Here most
    samples have large steps; differences of *coupled* paths with the steps :math:`h_l = h_0 2^{-l}`
    and :math:`h_{l-1}` remove the bias. Few of these are needed because they are small:

    .. math::

        E\, g \approx E\, g_0 + \sum_{l=1}^{L} E (g_l - g_{l-1}) .

    Both paths of a difference are driven by the same Brownian motion, with the coarse noise
    :math:`(\xi_1 + \xi_2)/\sqrt{2}`, and by coupled batches, each with the law of its level; before
    that the fine path runs alone for the time :math:`T_l - T_{l-1}`. Giles' rule chooses levels and
    numbers of samples until the estimated variance and the square of the estimated bias are each at
    most half of the square of the tolerance
    (``tests/multilevel/test_multilevel.py::test_error_of_200_repetitions``). With variances of
    order h² (``tests/multilevel/test_multilevel_paths.py::test_orders_of_variances_and_means``) the
    error falls as cost\ :sup:`-1/2`, as with exact Markov chain Monte Carlo; a step reads
    :math:`N^{1/3}` of N rows.

    The posterior must have one mode and be nearly Gaussian, so that paths that begin at different
    times meet. This is measured, by the paths and by independent draws: times grow with the
    posterior's largest variance in units of the curvature at the mode, and there is a
    `CouplingError` instead of a result if this variance exceeds 9 (3 under Student's t priors), if
    there are several modes, if paths do not meet, or if the result is not the mean of the draws.

    Parameters
    ----------
    coupling : {"antithetic", "plain"}, default="antithetic"
        How the batch of a coarse step follows from those of two fine steps. "antithetic" (algorithm
        2): two coarse paths, each with one of the batches; variances fall as h². "plain" (algorithm
        1): one coarse path, with rows drawn from both without replacement; variances fall as h. It
        has no effect for ``gradient="full"``.
    gradient : {"taylor", "control_variate", "minibatch", "full"}, default="taylor"
        The estimator of the gradient: see `skbayes_sg.gradients`. "taylor" is that of section 3.4.
    batch_size : "auto", int or float, default="auto"
        Number of rows a step, drawn uniformly with replacement, or share of the rows in (0, 1].
        "auto" is :math:`\lceil N^{1/3} \rceil`, or all rows for ``gradient="full"``.
    step_size : "auto" or float, default="auto"
        :math:`h_0` in whitened coordinates: 1 is a step of one posterior standard deviation, and a
        Gaussian is unstable at 4. "auto" is 0.5, or less if the noise of the gradient is predicted
        to add more than a quarter to the variance; it is halved, up to four times, while paths
        diverge or level 1 is not a small correction of level 0.
    shift : float, default=6.0
        :math:`T_l - T_{l-1}` in units of the time in which the diffusion moves by a posterior
        standard deviation; the distance of paths falls by the factor :math:`e^{-3}` in this time
        if the posterior is Gaussian. It is rounded up to a multiple of :math:`h_0`.
    window : float, default=16.0
        The time at the end of a path over which positions are averaged (section 3.3), at instants
        half a unit apart that are the same on all levels. 0 uses only the last position.
    truncation : {"adaptive", "randomised"}, default="adaptive"
        "randomised" uses random levels instead of a finest level: the estimator has no bias
        (``tests/multilevel/test_multilevel.py::test_randomised_truncation_has_no_bias``) and a
        larger variance. Variances must fall faster than costs grow, which excludes "plain".
    max_level : int, default=12
        Finest level that is allowed; it has no effect for "randomised".
    max_cost : float, default=10000000000.0
        Number of rows that may be read.
    random_state : int, RandomState instance or None, default=None
        Seed. An int gives the same estimate at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Threads for paths and for passes over the data.

    Notes
    -----
    Up to 2000 parameters the posterior is preconditioned by the inverse Hessian at the mode, above
    that by its diagonal; ``gradient="taylor"`` needs the whole Hessian in any case. Paths begin at
    the mode. The step size in the paper is half of the one here.

    References
    ----------
    T. Nagapetyan, L. Szpruch, S. J. Vollmer, K. Zygalakis and M. Giles (2017). Multilevel Monte
    Carlo for scalable Bayesian computations. arXiv:1609.06144.

    M. B. Giles (2015). Multilevel Monte Carlo methods. Acta Numerica 24, 259-328.

    C.-H. Rhee and P. W. Glynn (2015). Unbiased estimation with square root convergence for SDE
    models. Operations Research 63, 1026-1043.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.multilevel import MultilevelSGLD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = rng.random(5000) < 1 / (1 + np.exp(X[:, 1] - X[:, 0]))
    >>> model = BayesianLogisticRegression(n_draws=100, random_state=0).fit(X, y)
    >>> method = MultilevelSGLD(random_state=0)
    >>> found = model.expect(lambda p: p["coef"][..., 0, :], atol=0.01, X=X, y=y, method=method)
    >>> found.value.round()
    array([ 1., -1.])
    >>> found.is_accurate
    True
    """

    def __init__(
        self,
        *,
        coupling: str = "antithetic",
        gradient: str = "taylor",
        batch_size: float | str = "auto",
        step_size: float | str = "auto",
        shift: float = 6.0,
        window: float = 16.0,
        truncation: str = "adaptive",
        max_level: int = 12,
        max_cost: float = 10000000000.0,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.coupling = coupling
        self.gradient = gradient
        self.batch_size = batch_size
        self.step_size = step_size
        self.shift = shift
        self.window = window
        self.truncation = truncation
        self.max_level = max_level
        self.max_cost = max_cost
        self.random_state = random_state
        self.n_jobs = n_jobs

    def expect(
        self,
        target: Any,
        func: Callable,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        watch: Callable | None = None,
    ) -> Expectation:
        """Posterior expectation of a function of the parameters.

        The method `expect` of the estimators calls this one and adds shapes and names.

        Parameters
        ----------
        target : skbayes_sg.engine.target.Target
            The posterior.
        func : callable
            ``func(theta)`` of an array (n_paths, n_draws, n_parameters) returns the values at all
            draws, (n_paths, n_draws, ...). The value at a draw may depend only on that draw.
        rtol, atol : float
            The requested root mean square error of each component, relative to the absolute value
            of the component or in its units. Exactly one of them must be given.
        watch : callable, optional
            ``watch(share)`` is called between chunks of work with the estimated share that is done,
            and returns whether to stop.

        Returns
        -------
        Expectation

        Raises
        ------
        InvalidParameterError
            A parameter of the constructor has a value that is not accepted.
        TypeError
            `func` is not callable.
        ValueError
            `func` returns values that are not finite or have another shape, a tolerance is not
            positive, or the posterior does not exist.
        CouplingError
            The posterior is far from Gaussian or has several modes, or paths do not meet.
        SamplerDivergedError
            A path leaves the region where the posterior can be, at all steps that were tried.
        AccuracyNotReachedError
            The tolerance needs more than `max_level` or `max_cost` allow, or `watch` stopped the
            run.

        Warns
        -----
        LongRunWarning
            The tolerance is predicted to take more than ten seconds.
        SamplerConvergenceWarning
            No reliable independent draws could be made to confirm the result.
        """
        tolerance, integrand = Tolerance(rtol, atol), Integrand(func)
        plan = _Plan(self, target)
        check_noise(target)
        kind = "hessian" if target.n_parameters <= DENSE_LIMIT else "diagonal"
        dense = kind == "hessian" or plan.gradient.uses_linear
        with one_blas_thread:
            modes = find_modes(frame_of(target, kind, dense, streams.of_recipe(plan.seed)))
            confirmation = confirming(modes, plan.seed)
            slowness = 1.0
            if confirmation is not None:
                slowness = confirmation.slowness
                integrand.spread = integrand.values(confirmation.theta[None])[0].var(axis=0)
            found = plan.run(modes.frame, slowness, integrand, tolerance, watch)
            if confirmation is not None:
                confirmation.check(found, integrand)
            return found


class _Plan:
    """The checked parameters of a method, for one posterior."""

    def __init__(self, method, target):
        p = self.check = Parameters(method)
        self.n_rows, self.n_parameters = target.n_rows, target.n_parameters
        self.gradient = GRADIENTS[p.choice("gradient", list(GRADIENTS))]()
        self.coupling = COUPLINGS[p.choice("coupling", list(COUPLINGS))]()
        self.full = isinstance(self.gradient, Full)
        if self.full:
            self.coupling = Common()
        self.n = self._batch_size(p.batch_size(target.n_rows))
        self.steps = self._steps(p.step_size((), float))
        self.shift, self.window = self._time("shift", False), self._time("window", True)
        self.unbiased = p.choice("truncation", ["adaptive", "randomised"]) == "randomised"
        if self.unbiased and self.coupling.order <= 1.0:
            p.fail(
                "truncation", "'adaptive' with coupling='plain', whose variances fall too slowly"
            )
        self.max_level, self.max_cost = p.integer("max_level", 2), self._time("max_cost", False)
        self.seed, self.n_jobs = p.seed(), p.n_jobs()

    def _batch_size(self, asked):
        N = self.n_rows
        if self.full and asked not in (None, N):
            self.check.fail("batch_size", "'auto' or all rows with gradient='full'")
        if self.full:
            return N
        return math.ceil(N ** (1.0 / 3.0) - 1e-9) if asked is None else asked

    def _steps(self, asked):
        """Return the step sizes h₀ to try, one after the other, the largest first."""
        if asked is not None:
            return [asked]
        N, n, D = self.n_rows, self.n, self.n_parameters
        noise = {Minibatch: N / n, ControlVariate: D / n, Taylor: D**2 / (n * N), Full: 0.0}
        h = min(LARGEST_STEP, 1.0 / max(noise[type(self.gradient)], 1e-300))
        h = 2.0 ** math.floor(math.log2(h))
        return [h / 2**k for k in range(HALVINGS + 1)]

    def _time(self, name, zero):
        value = getattr(self.check.estimator, name)
        if not (is_real(value) and np.isfinite(value) and (value > 0 or (zero and value == 0))):
            self.check.fail(
                name, f"a {'finite number of at least 0' if zero else 'positive finite number'}"
            )
        return float(value)

    def hierarchy(self, h0):
        """Return the `Hierarchy` of levels whose level 0 has the step size h₀."""
        stride = max(1, round(INSTANTS / h0))
        kept = 1 + round(self.window / (stride * h0))
        shift = math.ceil(self.shift / h0 - 1e-9)
        return Hierarchy(h0, shift, kept, stride, self.n, self.coupling.n_coarse)

    def paths(self, frame, h0):
        """Return the `Paths` of all levels, of which level 0 has the step size h₀."""
        problem, model = frame.problem(self.gradient), frame.target.model
        rows, bounds = AllRows() if self.full else Uniform(), self._bounds(frame)
        setup = Setup(problem, model, self.gradient, rows, SGLD(), self.n, bounds=bounds)
        return Paths(setup, self.coupling, self.hierarchy(h0), self.seed, self.n_jobs)

    @staticmethod
    def _bounds(frame):
        """Distance from the centre, for each parameter, beyond which a path has diverged."""
        R = frame.F if frame.whitened else None
        spread = np.ones(frame.target.n_parameters)
        if R is None:
            curvature = frame.curvature
            diagonal = np.diag(curvature) if curvature.ndim == 2 else curvature
            spread = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300))
        return FAR * np.maximum(spread, 1.0)

    def run(self, frame, slowness, *asked):
        """Return the estimate with the largest step that works; see `_attempt` for the arguments.

        All times are multiplied by `slowness`, the λ of `confirmation`.
        """
        self._scale(frame)
        self.shift, self.window = (slowness * time for time in (self.shift, self.window))
        return self._attempt(self.steps, frame, *asked)

    def _attempt(self, steps, frame, integrand, tolerance, watch, spent=0):
        """Return the estimate with the first of the steps h₀ that works.

        If paths diverge, or if level 1 is not a small correction of level 0, the next step is
        tried; the last step works unless paths diverge. `spent` is the number of rows that earlier
        attempts have read.
        """
        h0, *smaller = steps
        paths = self.paths(frame, h0)
        sampler = LevelSampler(paths, integrand, frame.theta, watch, spent, self.max_cost)
        try:
            if self._adds_small_correction(sampler) or not smaller:
                return self._finish(sampler, tolerance)
        except EndedByCallback:
            raise stopped(sampler, tolerance) from None
        except Exhausted:
            raise too_dear(sampler, tolerance) from None
        except Diverged as diverged:
            if not smaller:
                raise self._too_large(sampler, diverged) from None
        return self._attempt(smaller, frame, integrand, tolerance, watch, sampler.cost)

    def _scale(self, frame):
        """Adapt automatic steps and all times to the curvatures, unless coordinates are whitened.

        The largest curvature limits the steps, and the smallest one lengthens the times.
        """
        if not frame.whitened:
            least, most = frame.curvature_range
            if self.check.estimator.step_size == "auto":
                self.steps = [h / 2.0 ** math.ceil(math.log2(max(most, 1.0))) for h in self.steps]
            self.shift, self.window = (time / min(least, 1.0) for time in (self.shift, self.window))

    @staticmethod
    def _adds_small_correction(sampler):
        """Sample levels 0 and 1, and return whether level 1 is a small correction of level 0."""
        sampler.add_level()
        sampler.add_level()
        first, second = (level.variance for level in sampler.levels)
        return bool((second <= SMALL_CORRECTION * first).all())

    def _finish(self, sampler, tolerance):
        if self.unbiased:
            return randomised(sampler, tolerance, self.seed)
        return adapt(sampler, tolerance, self.max_level)

    def _too_large(self, sampler, diverged):
        h = sampler.paths.hierarchy.step_size(diverged.level)
        return SamplerDivergedError(
            f"MultilevelSGLD: a path of level {diverged.level} diverged with step size {h:.3g} and "
            f"batch_size={self.n}. Use more rows a step, a smaller step_size, or draws: "
            "posterior_.expectation(func) with sampler='hmc'."
        )
