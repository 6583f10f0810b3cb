"""The base of the two estimators: parameters, the fit, and passes over draws for predictions."""

import contextlib
import time
import warnings
from itertools import islice

import numpy as np
import torch
from sklearn.utils.validation import _check_feature_names, check_is_fitted
from torch import nn

from .._base import streams
from .._base.validation import Parameters, check_weights, is_real
from ..diagnostics.judgements import warn_of
from ..dynamics import BAOAB, DYNAMICS, Dynamics
from ..estimators._saved import SavedEstimator
from ..estimators._store import all_or_nothing
from ..exceptions import (
    AlteredTargetWarning,
    InvalidParameterError,
    SamplerDivergedError,
    StepSizeWarning,
)
from ..gradients import GRADIENTS, SVRG, Full, Gradient, Minibatch
from ..recipe import price
from ..schedules import Constant, Schedule, draw_weights
from . import auto
from .device import computing_on, device_of, seeded
from .flat import FlatModule, copy_of, set_training
from .moves import MOVES
from .outputs import applied, checked_output
from .rows import TensorRows, as_inputs, is_dataset, looks_random, of_dataset
from .setup import ModuleRequest, prepare, run_chains
from .start import begin_alike
from .store import ModulePosterior, checked_store

__all__ = ["BayesianModule"]

SAMPLERS = {name: kind for name, kind in DYNAMICS.items() if kind in MOVES}
RULES = {name: GRADIENTS[name] for name in ("minibatch", "svrg", "full")}
BLOCK = 1000  # rows that are predicted together, at most
BLOCK_NUMBERS = 1 << 24  # numbers of predictions, of all draws together, that a block may hold
INNER_NUMBERS = 1 << 29  # numbers that layers may return for a block; most are not held for long
BATCH_NORMS = nn.modules.batchnorm._BatchNorm
ONE_ROW = "Expected more than 1 value per channel"  # torch's words for a batch of one row
DROPOUTS = nn.modules.dropout._DropoutNd
FIRST_ROWS = 8  # rows whose outputs are checked before a fit
# What each part changes in the law that chains sample, in the words of the warning.
ALTERS = {
    "dropout": "each step has the likelihood of another sub-network",
    "batch normalisation": "a row's likelihood depends on the rest of its batch",
    "data augmentation": "the likelihood is averaged over changes of the rows",
}


class BayesianModule(SavedEstimator):
    """Base of the estimators around a module.

    A subclass defines ``_read(X, y, sample_weight, device)``, which returns rows and a likelihood,
    and sets the attributes that it learns from y.
    """

    def __init__(
        self, module, *, prior="normal", sampler="auto", gradient="auto", batch_size="auto",
        step_size="auto", preconditioner="auto", temperature=1.0, n_draws=50, n_chains=4,
        n_warmup="auto", thin="auto", start_steps="auto", learning_rate=3e-3,
        initialisation="reset", training=True, keep="all", draws_dtype="float32",
        draws_folder=None, device="auto", data_on_device=False, random_state=None,
    ):  # fmt: skip
        self.module = module
        self.prior = prior
        self.sampler = sampler
        self.gradient = gradient
        self.batch_size = batch_size
        self.step_size = step_size
        self.preconditioner = preconditioner
        self.temperature = temperature
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.start_steps = start_steps
        self.learning_rate = learning_rate
        self.initialisation = initialisation
        self.training = training
        self.keep = keep
        self.draws_dtype = draws_dtype
        self.draws_folder = draws_folder
        self.device = device
        self.data_on_device = data_on_device
        self.random_state = random_state

    # -- parameters -----------------------------------------------------------------------------

    def _template(self):
        """Return the user's module, or a new one from the user's function."""
        if isinstance(self.module, nn.Module):
            return self.module
        try:
            with seeded(0, torch.device("cpu")):  # torch's global random numbers stay as they are
                made = self.module() if callable(self.module) else None
        except TypeError as error:
            raise InvalidParameterError(
                f"module={self.module!r} cannot be called without arguments ({error}). Give a "
                "torch.nn.Module, or a function without arguments that returns a new one."
            ) from error
        if not isinstance(made, nn.Module):
            raise InvalidParameterError(
                "module must be a torch.nn.Module, or a function without arguments that returns a "
                f"new one, got {self.module!r}."
            )
        return made

    def _fitted_template(self):
        """Return the module of the fit, which parameters that are set afterwards do not change."""
        found = vars(self).get("_module_of_fit")  # estimators of earlier versions have none
        return self._template() if found is None else found

    def _dtype(self):
        """Return the dtype of the first floating-point parameter of the module."""
        return _dtype_of(self._template())

    def _one_of(self, name, choices):
        value = getattr(self, name)
        if not (isinstance(value, str) or value is None) or value not in choices:
            Parameters(self).fail(name, f"one of {', '.join(map(repr, choices))}")
        return value

    def _positive(self, name):
        value = getattr(self, name)
        if not (is_real(value) and np.isfinite(value) and value > 0.0):
            Parameters(self).fail(name, "a positive number")
        return float(value)

    def _dynamics(self):
        found = Parameters(self).component("sampler", SAMPLERS, Dynamics) or BAOAB()
        if type(found) not in MOVES:
            Parameters(self).fail("sampler", f"one of {', '.join(map(repr, SAMPLERS))}")
        found.parameters()  # raises an error for parameters that cannot be used
        return found

    def _rule(self):
        found = Parameters(self).component("gradient", RULES, Gradient) or Minibatch()
        if not isinstance(found, (Minibatch, SVRG, Full)):
            Parameters(self).fail("gradient", f"one of {', '.join(map(repr, RULES))}")
        return found

    def _schedule(self):
        value = self.step_size
        if isinstance(value, Schedule):
            return value
        if isinstance(value, str) and value == "auto":
            return None
        return Constant(self._positive("step_size"))

    def _request(self, rows, likelihood, device):
        """Return the checked parameters as a `ModuleRequest`."""
        check = Parameters(self)
        rule, N = self._rule(), rows.n_rows
        cost = auto.cost_of_a_row(self._template(), rows.batch(np.arange(1))[0])
        # A Dataset takes long to read, so that its rows never count as cheap.
        of_a_row = cost.multiplications if isinstance(rows, TensorRows) else np.inf
        batch_size = check.batch_size(N) or auto.batch_size_for(N, of_a_row)
        if isinstance(rule, Full):
            self._warn_of_batch_size(batch_size, N)
            batch_size = N
        random_parts = self._random_parts(rows)
        is_noisy = batch_size < N or bool(random_parts)
        if isinstance(rule, SVRG):
            rule.check(N, batch_size)
        n_draws, n_chains = check.integer("n_draws", 1), check.integer("n_chains", 1)
        thin = check.integer("thin", 1, auto=True)
        n_warmup = check.integer("n_warmup", 0, auto=True)
        start_steps = check.integer("start_steps", 0, auto=True)
        schedule = self._schedule()
        may_go_on = thin is None and n_warmup is None and schedule is None and not is_noisy
        thin = thin or auto.thin_for(N, batch_size)
        is_auto = schedule is None and self.sampler == "auto"
        glides = is_auto and not is_noisy and thin >= auto.LEAST_THIN
        return ModuleRequest(
            self.module, likelihood, self.prior, rows,
            auto.gliding(thin) if glides else self._dynamics(), rule, batch_size,
            n_chains, n_draws, n_draws * thin // 2 if n_warmup is None else n_warmup, thin,
            auto.start_steps_for(N, batch_size) if start_steps is None else start_steps, schedule,
            self._preconditioner(batch_size == N),
            check.flag("training"), self._one_of("initialisation", ("reset", "given")),
            self._positive("temperature"), self._positive("learning_rate"), device,
            streams.seed_of(self.random_state), random_parts,
            self._doublings(n_chains * n_draws * thin, N, of_a_row) if may_go_on else 0,
            start_steps is None, glides, cost.numbers,
        )  # fmt: skip

    def _warn_of_batch_size(self, batch_size, n_rows):
        if self.batch_size != "auto" and batch_size < n_rows:
            warnings.warn(
                f"batch_size={self.batch_size!r} is not used: gradient='full' takes all rows.",
                UserWarning,
                stacklevel=5,
            )

    def _preconditioner(self, takes_all):
        asked = self._one_of("preconditioner", ("auto", "fisher", "rmsprop", None))
        found = {"auto": "fisher" if takes_all else "rmsprop", None: "none"}
        return found.get(asked, asked)

    @staticmethod
    def _doublings(n_steps, n_rows, of_a_row):
        """Return how often `thin` may be doubled within `auto.MOST_SECONDS` of predicted time."""
        k = np.arange(1, auto.DOUBLINGS + 1)
        return int(
            (auto.seconds_of_steps(n_steps * 2.0**k, n_rows, of_a_row) < auto.MOST_SECONDS).sum()
        )

    @staticmethod
    def _reject_with_dataset(y, sample_weight):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "A Dataset or a DataLoader has its targets in its items: leave out y and "
                "sample_weight."
            )

    def _set_input_shape(self, X):
        self.input_shape_ = tuple(X.shape[1:])
        vars(self).pop("n_features_in_", None)  # left by an earlier fit
        if X.ndim == 2:
            self.n_features_in_ = X.shape[1]

    def _weights(self, sample_weight, n_rows):
        """Return the weights of rows as a tensor; None if all rows count once."""
        if sample_weight is None:
            return None
        if isinstance(sample_weight, torch.Tensor):
            sample_weight = sample_weight.numpy(force=True)
        w = check_weights(sample_weight, np.empty((n_rows, 0)))
        return torch.from_numpy(w).to(self._dtype())

    @staticmethod
    def _with_weight(weight, *parts):
        """Return the weights, and the other arrays, without the rows of weight zero."""
        if weight is None or bool((weight > 0.0).all()):
            return weight, *parts
        kept = np.flatnonzero(weight.numpy(force=True))
        return weight[kept], *(part[kept] for part in parts)

    def _first_output(self, x):
        """Return the output of a new module for some rows x, after checks of its type and shape."""
        self._check_module()
        return checked_output(self._evaluating(x.device), x)

    def _check_module(self):
        """Raise an error for modules of TorchScript, and for parameters without a shape."""
        module = self._template()
        if isinstance(module, torch.jit.ScriptModule):
            raise InvalidParameterError(
                "A module of TorchScript cannot be copied: give its origin."
            )
        lazy = [n for n, p in module.named_parameters() if nn.parameter.is_lazy(p)]
        if lazy:
            raise InvalidParameterError(
                f"The parameter {lazy[0]} of the module has no shape yet. Apply the module to a "
                "few rows before, or use layers that are not lazy."
            )

    def _check_output(self, x, output):
        """Raise an error for outputs that the likelihood cannot take; a subclass may define it."""

    def _evaluating(self, device):
        """Return a new module on a device, in evaluation mode."""
        return copy_of(self._template()).to(device).eval()

    def _kept(self, n_draws):
        """Return how many draws of each chain are kept."""
        if isinstance(self.keep, str) and self.keep == "all":
            return n_draws
        return min(n_draws, Parameters(self).integer("keep", 1))

    # -- fit ------------------------------------------------------------------------------------

    def _fit(self, X, y, sample_weight):
        device = device_of(self.device)
        with all_or_nothing(self), computing_on(device):
            _check_feature_names(self, X, reset=True)
            rows, likelihood = self._read(X, y, sample_weight, device)
            first = rows.batch(np.arange(min(FIRST_ROWS, rows.n_rows)))[0]
            self._check_output(first, self._first_output(first))
            if Parameters(self).flag("data_on_device"):
                rows.to_device()
            request = self._request(rows, likelihood, device)
            try:
                return self._sample(request)
            except SamplerDivergedError as error:
                raise SamplerDivergedError(f"{type(self).__name__}: {error}") from None
            except ValueError as error:
                if ONE_ROW not in str(error):
                    raise
                raise InvalidParameterError(
                    "Batch normalisation has no variance within a single row: use more rows a "
                    f"step than batch_size={request.batch_size}, or training=False."
                ) from error

    def _sample(self, request):
        """Search for modes, measure there, run the chains, and set the fitted attributes."""
        altered = request.random_parts
        self._warn_of_altered(altered)
        self._warn_of_same_starts()
        schedule = request.schedule
        ends = request.n_warmup + request.thin * np.arange(1, request.n_draws + 1)
        weights = draw_weights(schedule, ends, request.thin)
        began = time.perf_counter()
        flat = FlatModule(self._template(), torch.device("cpu"), request.likelihood.n_extra)
        shape = request.n_chains, request.n_draws, self._kept(request.n_draws), flat.n_parameters
        dtype = self._one_of("draws_dtype", ("float32", "float16", "float64"))
        store = checked_store(*shape, dtype, self.draws_folder, weights)
        starts = [prepare(request, number) for number in range(request.n_chains)]
        searched = time.perf_counter() - began
        self._warn_of_time(searched, request, starts[0])
        outcome = run_chains(starts, request, store)
        kept = None if weights is None else weights[store.kept]
        self.posterior_ = ModulePosterior(
            store, flat.slices, flat.shapes, kept, request.temperature, outcome.diagnostics, altered
        )
        self._set_fitted(request, starts, outcome)
        seconds = time.perf_counter() - began
        self.seconds_ = {"search and survey": searched, "chains": seconds - searched}
        self._warn_of_evidence()
        return self

    def _set_fitted(self, request, starts, outcome):
        self.diagnostics_, self.step_size_ = outcome.diagnostics, outcome.step_size
        self.n_gradients_ = outcome.n_gradients
        self.sampler_ = {kind: name for name, kind in SAMPLERS.items()}[type(request.dynamics)]
        self.batch_size_, self.thin_ = request.batch_size, outcome.thin
        self.n_warmup_, self.start_steps_ = outcome.n_warmup, max(s.n_steps for s in starts)
        self.temperature_ = request.temperature
        self.preconditioner_ = request.preconditioner
        self.prior_groups_ = [(repr(g.prior), list(g.names)) for g in starts[0].target.groups]
        self.start_losses_ = np.array([s.loss for s in starts])
        self.potentials_ = np.stack([r.potential for r in outcome.records])
        self._likelihood, self._model = request.likelihood, None
        self._module_of_fit = copy_of(self._template())
        self._numbers_of_a_row = request.numbers_of_a_row

    @staticmethod
    def _warn_of_altered(random_parts):
        """Warn of each part that changes the law that is sampled."""
        for name in random_parts:
            remedy = "" if name == "data augmentation" else ", or training=False for chains in "
            remedy += "evaluation mode" if remedy else ""
            warnings.warn(
                f"{name.capitalize()} is active while chains run: {ALTERS[name]}. What is sampled "
                f"is not the posterior of the module as it predicts. Leave it out{remedy}.",
                AlteredTargetWarning,
                stacklevel=5,
            )

    def _random_parts(self, rows):
        """Return the names in `ALTERS` of what makes gradients differ from those of the rows."""
        layers = list(self._template().modules()) if self.training else []
        drops = any(isinstance(m, DROPOUTS) and m.p > 0.0 for m in layers)
        drops = drops or any(isinstance(m, nn.RNNBase) and m.dropout > 0.0 for m in layers)
        drops = drops or self._is_random(rows)
        normalises = any(isinstance(m, BATCH_NORMS) for m in layers)
        present = drops, normalises, looks_random(rows)
        return tuple(name for name, is_there in zip(ALTERS, present, strict=True) if is_there)

    def _is_random(self, rows):
        """Whether outputs depend on random numbers, for example by dropout as a function."""
        x, found = rows.batch(np.arange(min(FIRST_ROWS, rows.n_rows)))[0], []
        for seed in range(2):
            module = self._evaluating(x.device)
            set_training(module, Parameters(self).flag("training"))
            with seeded(seed, x.device), torch.no_grad(), contextlib.suppress(ValueError):
                found.append(module(x))  # a single row cannot be normalised
        return len(found) == 2 and not torch.allclose(*found, rtol=1e-3, atol=1e-6, equal_nan=True)

    def _warn_of_same_starts(self):
        if not isinstance(self.module, nn.Module) or self.initialisation != "reset":
            return
        names = begin_alike(self.module)
        if names:
            warnings.warn(
                f"All chains begin at the same values of {', '.join(names[:3])}"
                f"{' and others' * (len(names) > 3)}, which no reset_parameters draws anew: R-hat "
                "does not tell whether predictions depend on them. Give a function that returns a "
                "new module instead of a module.",
                UserWarning,
                stacklevel=5,
            )

    def _warn_of_time(self, searched, request, start):
        steps = request.n_chains * (request.n_warmup + request.n_draws * request.thin)
        one = start.plain.n_evaluated // request.batch_size
        dear = 3.0 if isinstance(request.gradient, SVRG) else 1.0
        seconds = dear * steps * searched / max(1, request.n_chains * one)
        what = f"{type(self).__name__}, which takes {steps} steps after the search for modes,"
        remedy = "Lower n_draws, thin or n_chains to take less time."
        price.warn_if_long(seconds, what, remedy, price.LONG_SECONDS)

    def _warn_of_evidence(self):
        steps = ("noise", StepSizeWarning), ("kinetic temperature", StepSizeWarning)
        warn_of(self.posterior_.check(), 5, steps)

    # -- predictions ----------------------------------------------------------------------------

    def __getstate__(self):
        state = super().__getstate__()
        return {**state, "_model": None}  # the module on its device is made again when it is needed

    def _module_for_draws(self):
        """Return a `FlatModule` on the device of predictions, the same one at every call."""
        device = device_of(self.device)
        made = getattr(self, "_model", None)
        if made is None or made.device != device:
            made = FlatModule(self._fitted_template(), device, self._likelihood.n_extra)
            made.module.eval()
            self._model = made
        return made

    def _draw_weights(self):
        """Return the weights of all kept draws, chain by chain, with sum 1."""
        check_is_fitted(self, "posterior_")
        p = self.posterior_
        w = np.ones(p.n_draws) if p.weights is None else p.weights
        return np.tile(w / w.sum() / p.n_chains, p.n_chains)

    def _rows_to_predict(self, X):
        check_is_fitted(self, "posterior_")
        device = device_of(self.device)
        if is_dataset(X):
            return of_dataset(X, device, needs_targets=False)
        _check_feature_names(self, X, reset=False)
        module = self._fitted_template()
        X = as_inputs(X, module, _dtype_of(module))
        if tuple(X.shape[1:]) != self.input_shape_:
            raise ValueError(
                f"X has rows of shape {tuple(X.shape[1:])}, but {type(self).__name__} was fitted "
                f"to rows of shape {self.input_shape_}."
            )
        return TensorRows(X, None, None, device)

    @torch.no_grad()
    def _outputs(self, x, choose=None, apply=nn.Module.__call__):
        """Yield (output, extra parameters) for inputs x under each draw, or those in `choose`."""
        flat, p = self._module_for_draws(), self.posterior_
        flat.module.eval()
        for number in range(p.n_chains * p.n_draws) if choose is None else choose:
            c, k = divmod(int(number), p.n_draws)
            flat.load(p.draws[c, k], p.others[c][k])
            yield apply(flat.module, x), flat.theta[flat.n_own :]

    def _over_blocks(self, X, reduce, n_held, y=None):
        """Return the results of ``reduce(outputs, y)`` for blocks of rows, joined by rows.

        Parameters
        ----------
        X : rows to predict
        reduce : callable
            It takes a function that returns an iterator over draws, and the targets of the block,
            and returns a tuple of arrays.
        n_held : int
            Number of outputs of a row that `reduce` holds at a time.
        y : array or None
        """
        rows, found = self._rows_to_predict(X), []
        if rows.n_rows == 0:
            raise ValueError("X has no rows.")
        if y is not None and len(y) != rows.n_rows:
            raise ValueError(f"X has {rows.n_rows} rows and y has {len(y)}.")
        with computing_on(rows.device):
            block = self._rows_of_a_block(rows, n_held)
            for start in range(0, rows.n_rows, block):
                index = np.arange(start, min(start + block, rows.n_rows))
                x, own, _ = rows.batch(index)
                own = own if y is None else y[index]
                found.append(reduce(lambda choose=None, x=x: self._outputs(x, choose), own))
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    def _rows_of_a_block(self, rows, n_held):
        first = rows.batch(np.arange(1))[0]
        size = max(o.numel() for o, _ in islice(self._outputs(first, apply=applied), 1))
        return min(
            auto.rows_at_a_time(size * n_held, BLOCK_NUMBERS, BLOCK),
            auto.rows_at_a_time(self._numbers_of_a_row, INNER_NUMBERS, BLOCK),
        )


def _dtype_of(module):
    """Return the dtype of the first floating-point parameter of a module."""
    found = [p.dtype for p in module.parameters() if p.dtype.is_floating_point]
    return found[0] if found else torch.float32
