"""The checked parameters of estimators with networks, and the sampler that follows from them."""

import numpy as np

from .._base.validation import Parameters, is_real, is_whole
from ..dynamics import BAOAB, DYNAMICS, HMC, Dynamics
from ..exceptions import InvalidParameterError
from ..gradients import GRADIENTS, SVRG, ControlVariate, Full, Gradient, Minibatch
from .activations import ACTIVATIONS
from .guard import GuardedBAOAB
from .hmc import NetworkHMC
from .minibatches import MinibatchSampler, corrected

__all__ = ["NetworkRequest"]

FEW_ROWS, FEW_NUMBERS = 50_000, 1 << 24  # rows and entries of X up to which "auto" uses all rows
# Default rows of a batch, where a sampler or gradient is given, and where both are "auto".
BATCH, LARGE_BATCH = 100, 500
THIN = 60  # default steps from one draw to the next, for "auto" on all rows
TRAJECTORIES, THIN_TRAJECTORIES = 250, 10  # defaults of HMC: for warm-up, and between draws
SAMPLERS = {name: kind for name, kind in DYNAMICS.items() if name != "mala"}


class NetworkRequest:
    """The checked parameters of an estimator; `InvalidParameterError` where one cannot be used."""

    def __init__(self, estimator):
        p = self._p = Parameters(estimator)
        self.hidden = _hidden(p)
        self.activation = p.choice("activation", list(ACTIVATIONS))
        self.prior_scale = _prior_scale(p)
        self.sampler = p.component("sampler", SAMPLERS, (Dynamics, HMC))
        self.gradient = p.component("gradient", GRADIENTS, Gradient)
        self.step_size = _step_size(p)
        self.preconditioned = p.choice("preconditioner", ["auto", None]) == "auto"
        self.n_draws, self.n_chains = p.integer("n_draws", 1), p.integer("n_chains", 1)
        self.n_warmup, self.thin = p.integer("n_warmup", 0, auto=True), p.integer("thin", 1, True)
        self.max_doublings = p.integer("max_doublings", 0)
        self.seed, self.n_jobs = p.seed(), p.n_jobs()

    @property
    def is_exact(self):
        """Whether a Metropolis test corrects every move."""
        return isinstance(self.sampler, HMC)

    @property
    def takes_noise_out(self):
        """Whether "auto" chooses the dynamics: friction takes noise out, or there is none."""
        return self.sampler is None and not isinstance(self.gradient, (SVRG, ControlVariate))

    def made(self, n_rows, n_columns):
        """Return the sampler for a fit of this size, and attributes that say what "auto" chose."""
        few = n_rows <= FEW_ROWS and n_rows * n_columns <= FEW_NUMBERS
        n = self._p.batch_size(n_rows)
        self._check_gradient(n_rows, n)
        all_rows = self.is_exact or isinstance(self.gradient, Full) or n == n_rows
        plain = self.sampler is None and self.gradient is None
        all_rows = all_rows or (plain and n is None and few)
        n = n_rows if all_rows else min(n or (LARGE_BATCH if plain else BATCH), n_rows)
        made = self._sampler(n, all_rows)
        names = {kind: name for name, kind in (SAMPLERS | GRADIENTS).items()}
        kinds = self.sampler or BAOAB(), self.gradient or (Full() if all_rows else Minibatch())
        sampler, gradient = (names.get(type(one), type(one).__name__) for one in kinds)
        return made, {"sampler_": sampler, "gradient_": gradient, "batch_size_": int(n)}

    def _sampler(self, n, all_rows):
        settings = {"preconditioned": self.preconditioned}
        if self.is_exact or (self.sampler is None and all_rows):
            longest = (TRAJECTORIES, THIN_TRAJECTORIES) if self.is_exact else (None, THIN)
            settings["step"] = None if self.step_size is None else float(np.sqrt(self.step_size))
            settings["n_warmup"] = _or(self.n_warmup, longest[0])
            settings["thin"] = _or(self.thin, longest[1])
            return (NetworkHMC if self.is_exact else GuardedBAOAB)(**settings)
        settings |= {"h": self.step_size, "n_warmup": self.n_warmup}
        settings |= {"thin": self.thin, "n_draws": self.n_draws}
        if self.takes_noise_out:
            return corrected(n, **settings)
        gradient = self.gradient or Minibatch()
        return MinibatchSampler(self.sampler or BAOAB(), n, gradient=gradient, **settings)

    def _check_gradient(self, n_rows, batch_size):
        """Raise an error for gradients that networks do not have, and for settings in conflict."""
        kind = type(self.gradient)
        if self.gradient is not None and kind not in (Full, Minibatch, ControlVariate, SVRG):
            self._p.fail(
                "gradient",
                "'auto', 'full', 'minibatch', 'control_variate' or 'svrg' for networks: 'taylor' "
                "needs the Hessian at a single mode, and 'saga' would need a gradient of all "
                "weights for each row, as the predictors of a network are not linear",
            )
        exact_with_some = self.is_exact and (
            kind not in (type(None), Full) or batch_size not in (None, n_rows)
        )
        if exact_with_some or (kind is Full and batch_size not in (None, n_rows)):
            raise InvalidParameterError(
                f"{self._p.owner}: sampler={self._p.estimator.sampler!r} with gradient="
                f"{self._p.estimator.gradient!r} uses all rows at every step. Leave batch_size, "
                "and for 'hmc' also gradient, at 'auto'."
            )
        if kind is SVRG:
            self.gradient.check(n_rows, batch_size or min(BATCH, n_rows))


def _or(value, default):
    return default if value is None else value


def _hidden(p):
    """Return the number of units of each hidden layer, a tuple of int."""
    value = p.estimator.hidden_layer_sizes
    sizes = [value] if is_whole(value) else value
    try:
        sizes = list(sizes)
    except TypeError:
        sizes = [None]
    if not all(is_whole(units) and units >= 1 for units in sizes):
        p.fail("hidden_layer_sizes", "an int of at least 1, or a sequence of them")
    return tuple(int(units) for units in sizes)


def _prior_scale(p):
    """Return the scale τ of the prior; None if it is inferred."""
    value = p.estimator.prior_scale
    if isinstance(value, str) and value == "infer":
        return None
    if not (is_real(value) and 0.0 < value < np.inf):
        p.fail("prior_scale", "'infer' or a positive finite number")
    return float(value)


def _step_size(p):
    """Return the step size h; None for "auto"."""
    value = p.estimator.step_size
    if isinstance(value, str) and value == "auto":
        return None
    if not (is_real(value) and 0.0 < value < np.inf):
        p.fail("step_size", "'auto' or a positive finite number")
    return float(value)
