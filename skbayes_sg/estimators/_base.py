"""What all estimators share: parameters, the way into the engine, fitted attributes."""

import contextlib
import os
import warnings

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from .._callbacks import CallbackSupportMixin, Progress
from .._validation import Parameters
from ..auto import sample_posterior
from ..dynamics import DYNAMICS, Dynamics, Metropolis
from ..engine.target import Target, one_blas_thread
from ..exceptions import DrawStoreWarning, InvalidParameterError, SamplerDivergedError
from ..gradients import GRADIENTS, Gradient
from ..posterior import Posterior
from ..priors import Normal, resolve
from ..request import Request
from ..schedules import Constant, Schedule
from ..subsampling import SUBSAMPLING, AllRows, Subsampling

__all__ = ["BayesianGLM"]

# Tables are made for groups of rows that only "auto" looks for.
ASKABLE_GRADIENTS = {name: kind for name, kind in GRADIENTS.items() if not kind.uses_tables}


@contextlib.contextmanager
def all_or_nothing(estimator):
    """On any error, Ctrl-C included, the estimator is left as it was before."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        for name in [n for n in vars(estimator) if n not in before and not n.startswith("_")]:
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


def _free_bytes():
    """Memory that a new array may take; None where the system does not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo") as lines:
            line = next(line for line in lines if line.startswith("MemAvailable"))
        return int(line.split()[1]) * 1024
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_draw_store(n_chains, n_draws, n_parameters):
    """`MemoryError` for draws that do not fit, `DrawStoreWarning` for many, before any sampling."""
    size = 8 * n_chains * n_draws * n_parameters
    asked = f"{n_chains} chains x {n_draws} draws x {n_parameters} parameters = {size:,} bytes"
    remedy = "Thin more and lower n_draws, use fewer chains, or fewer features."
    free = _free_bytes()
    if free is not None and size > free:
        raise MemoryError(f"The posterior draws do not fit into free memory: {asked}. {remedy}")
    if size > sklearn.get_config()["working_memory"] * 2**20:
        warnings.warn(
            f"The posterior draws exceed scikit-learn's working_memory: {asked}. {remedy}",
            DrawStoreWarning,
            stacklevel=2,
        )


def _label(component, choices):
    """The string that stands for a component."""
    names = {kind: name for name, kind in choices.items()}
    return names.get(type(component), type(component).__name__)


class BayesianGLM(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators whose likelihood is a row model (`skbayes_sg.models`).

    A subclass defines the constructor and `fit`. The constructor stores, under these names, the
    parameters that are read here: `prior`, `fit_intercept`, `intercept_prior`, `sampler`,
    `gradient`, `subsampling`, `batch_size`, `step_size`, `preconditioner`, `n_draws`, `n_chains`,
    `n_warmup`, `thin`, `random_state`, `n_jobs` (see `BayesianLogisticRegression`). `fit` validates
    the data and returns ``self._sample(X, y, weight, model, coef_shape, labels)``, inside of
    ``with all_or_nothing(self)``:

    ``X, y, weight``
        Rows as `skbayes_sg._validation.check_data` returns them, what the model's kernels take for
        labels, and the weights of the rows.
    ``model``
        A `skbayes_sg.models.Model` without extra parameters.
    ``coef_shape`` : tuple
        Shape of `coef_`, with ``n_linear * n_features`` entries.
    ``labels`` : list of str
        One label a parameter: coefficients in the order of `coef_`, then intercepts.
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = "https://skbayes-sg.readthedocs.io/stable/api/{estimator_name}.html"

    def _request(self, n_rows):
        """The constructor's parameters, checked."""
        p = Parameters(self)
        if isinstance(self.gradient, Gradient) and self.gradient.uses_tables:
            p.fail("gradient", f"'auto' or one of {sorted(ASKABLE_GRADIENTS)}")
        return Request(
            sampler=p.component("sampler", DYNAMICS, (Dynamics, Metropolis)),
            gradient=p.component("gradient", ASKABLE_GRADIENTS, Gradient),
            subsampling=p.component("subsampling", SUBSAMPLING, Subsampling),
            batch_size=p.batch_size(n_rows),
            schedule=p.step_size(Schedule, Constant),
            preconditioner=p.choice("preconditioner", ["auto", "hessian", "diagonal", None]),
            n_draws=p.integer("n_draws", 1),
            n_chains=p.integer("n_chains", 1),
            n_warmup=p.integer("n_warmup", 0, auto=True),
            thin=p.integer("thin", 1, auto=True),
            seed=p.seed(),
            n_jobs=p.n_jobs(),
        )

    def _prior_table(self, coef_shape, n_intercepts):
        """One row a parameter: coefficients, then intercepts."""
        asked = [(self.prior, coef_shape, "prior")]
        if self.fit_intercept:
            prior = Normal(scale=10.0) if self.intercept_prior is None else self.intercept_prior
            asked.append((prior, (n_intercepts,), "intercept_prior"))
        try:
            return np.concatenate(
                [resolve(p, name)._table(shape, name) for p, shape, name in asked]
            )
        except InvalidParameterError as error:
            raise InvalidParameterError(f"{type(self).__name__}: {error}") from None

    def _sample(self, X, y, weight, model, coef_shape, labels):
        """Draw from the posterior and set the fitted attributes: see the class."""
        request = self._request(X.shape[0])
        n_intercepts = model.n_linear if self.fit_intercept else 0
        prior = self._prior_table(coef_shape, n_intercepts)
        check_draw_store(request.n_chains, request.n_draws, len(prior))
        request.names = labels
        target = Target(
            X, y, weight, model, prior, intercept=self.fit_intercept, n_jobs=request.n_jobs
        )
        shapes = {"coef": coef_shape}
        if self.fit_intercept:
            shapes["intercept"] = (n_intercepts,)

        def attributes(draws, weights, origin=None):
            return self._attributes(Posterior(draws, shapes, labels, origin, weights))

        progress = Progress(self, attributes, X=X, y=y)
        try:
            with one_blas_thread:
                outcome = sample_posterior(target, request, progress)
        except SamplerDivergedError as error:
            raise SamplerDivergedError(f"{type(self).__name__}: {error}") from None
        fitted = attributes(outcome.draws, outcome.weights, self._origin(outcome.chosen))
        vars(self).update(fitted, **self._choices(outcome))
        progress.finish(fitted)
        return self

    def _attributes(self, posterior):
        """Posterior and its means and standard deviations, in scikit-learn's shapes."""
        fitted = {"posterior_": posterior}
        for name in ("coef", "intercept"):
            if name in posterior:
                fitted[f"{name}_"], fitted[f"{name}_std_"] = (
                    posterior.mean(name),
                    posterior.std(name),
                )
            else:
                zeros = np.zeros(posterior.shapes["coef"][:-1])
                fitted[f"{name}_"], fitted[f"{name}_std_"] = zeros, zeros
        return fitted

    @property
    def _pooled_weights(self):
        """Weights of the draws of all chains, one chain after the other; None if all the same."""
        weights = self.posterior_.weights
        return None if weights is None else np.tile(weights, self.posterior_.n_chains)

    def _origin(self, chosen):
        return {
            "sampler": _label(chosen["sampler"], DYNAMICS),
            "gradient": _label(chosen["gradient"], GRADIENTS),
            "batch_size": chosen["batch_size"],
            "step_size": float(f"{chosen['step_size']:.4g}"),
            "thin": chosen["thin"],
        }

    def _choices(self, outcome):
        """What every "auto" became, and what was measured."""
        chosen = outcome.chosen
        return {
            "sampler_": _label(chosen["sampler"], DYNAMICS),
            "gradient_": _label(chosen["gradient"], GRADIENTS),
            "subsampling_": _label(chosen["subsampling"], SUBSAMPLING | {"all_rows": AllRows}),
            "preconditioner_": chosen["preconditioner"],
            "batch_size_": int(chosen["batch_size"]),
            "batch_sizes_": np.array(outcome.batch_sizes),
            "step_size_": float(chosen["step_size"]),
            "thin_": int(chosen["thin"]),
            "n_warmup_": int(chosen["n_warmup"]),
            "n_steps_": int(chosen["n_warmup"] + chosen["thin"] * outcome.draws.shape[1]),
            "diagnostics_": {name: float(v) for name, v in outcome.diagnostics.items()},
        }
