"""The parameters of estimators with a row model: constructor, checks, the table of the prior."""

from collections.abc import Sequence
from types import NoneType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from .._base.typing import RandomState
from .._base.validation import Parameters
from ..combine import COMBINERS, Combiner
from ..dynamics import DYNAMICS, Dynamics, Importance, Metropolis
from ..exceptions import InvalidParameterError
from ..gradients import GRADIENTS, Gradient
from ..priors import HalfNormal, Normal, PositivePrior, Prior, Units
from ..priors.columns import SCALE
from ..priors.families import of_family, resolve, resolve_positive
from ..recipe.request import Request
from ..schedules import Constant, Schedule
from ..subsampling import SUBSAMPLING, Subsampling
from ._centring import giving_way
from ._docstrings import SharedDocstring
from ._saved import SavedEstimator
from ._signature import with_parameters_of

__all__ = ["GLMParameters", "with_shared_parameters"]


class GLMParameters(SharedDocstring, SavedEstimator):
    """The parameters that all estimators with a row model have, their checks, and their priors.

    A class with parameters of its own says ``def __init__(self, *, own=..., **shared)`` under the
    decorator `with_shared_parameters`, and passes the shared ones on. A line ``{name}`` in its
    docstring stands for a part of `_docstrings`.
    """

    _samplers: ClassVar[dict] = DYNAMICS | {"importance": Importance}  # accepted names of samplers
    _auto_scale = False  # whether names such as prior="normal" mean priors with scale="auto"
    # The priors that stand in place of None, by the names of the constructor's parameters.
    _default_priors: ClassVar[dict] = {"intercept_prior": Normal(scale=10.0)}

    def __init__(
        self,
        *,
        prior: Prior | str = "normal",
        fit_intercept: bool = True,
        intercept_prior: Prior | str | None = None,
        group_effects: Sequence[str | int] | None = None,
        group_scale: PositivePrior | str | Sequence[PositivePrior | str] | None = None,
        group_slopes: dict | None = None,
        sampler: Any = "auto",
        gradient: Gradient | str = "auto",
        subsampling: Subsampling | str = "auto",
        batch_size: float | str = "auto",
        step_size: Schedule | float | str = "auto",
        preconditioner: str | None = "auto",
        n_draws: int = 1000,
        n_chains: int = 4,
        n_warmup: int | str = "auto",
        thin: int | str = "auto",
        n_subposteriors: int = 1,
        combine: Combiner | str = "consensus",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        keep: int | str = "all",
        warm_start: bool = False,
    ) -> None:
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.group_effects = group_effects
        self.group_scale = group_scale
        self.group_slopes = group_slopes
        self.sampler = sampler
        self.gradient = gradient
        self.subsampling = subsampling
        self.batch_size = batch_size
        self.step_size = step_size
        self.preconditioner = preconditioner
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_subposteriors = n_subposteriors
        self.combine = combine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.keep = keep
        self.warm_start = warm_start

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including those of components, as in ``set_params(prior__scale=2.0)``.

        If a component was given by its name, it becomes the object for which the name stands, so
        that a grid search over ``prior__scale`` works with the default ``prior="normal"``.

        Parameters
        ----------
        **params : dict
            Parameters by name, with ``component__parameter`` for those of components.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            For parameters that do not exist, and for those of a component that is "auto".
        """
        nested = {key.partition("__")[0]: key for key in params if "__" in key}
        for name, key in nested.items():
            value = params.get(name, getattr(self, name, None))
            if name in self._get_param_names() and isinstance(value, (str, NoneType)):
                params[name] = self._named(name, value, key)
        return super().set_params(**params)

    def _named(self, name, value, key):
        """The object that a parameter `name` stands for if its value is a string or None.

        `key` is the nested parameter that was set, for the error if there is no such object.
        """
        components = {
            "sampler": self._samplers,
            "gradient": GRADIENTS,
            "subsampling": SUBSAMPLING,
            "combine": COMBINERS,
        }
        if value is None and name in self._default_priors:
            return clone(self._default_priors[name])
        if name == "group_scale":
            return HalfNormal() if value is None else resolve_positive(value, name)
        if name in ("prior", "intercept_prior"):
            return resolve(value, name, auto=self._auto_scale and name == "prior")
        if name.endswith("_prior"):
            return resolve_positive(value, name)
        if value in components.get(name, ()):
            return components[name][value]()
        raise ValueError(
            f"{key} is a parameter of the {name}, and {name}={value!r} names none. Set both, as in "
            f"set_params({name}={next(iter(components.get(name, {'...': 0})))!r}, {key}=...)."
        )

    def _request(self, n_rows):
        """The checked parameters of the constructor, as a `Request` for data of `n_rows` rows."""
        p = Parameters(self)
        return Request(
            sampler=p.component("sampler", self._samplers, self._sampler_kinds),
            gradient=p.component("gradient", GRADIENTS, Gradient),
            subsampling=p.component("subsampling", SUBSAMPLING, Subsampling),
            batch_size=p.batch_size(n_rows),
            step_size=p.step_size(Schedule, Constant),
            preconditioner=p.choice("preconditioner", ["auto", "hessian", "diagonal", None]),
            n_draws=p.integer("n_draws", 1),
            n_chains=p.integer("n_chains", 1),
            n_warmup=p.integer("n_warmup", 0, auto=True),
            thin=p.integer("thin", 1, auto=True),
            seed=p.seed(),
            n_jobs=p.n_jobs(),
            keep=p.keep(),
        )

    @property
    def _sampler_kinds(self):
        """The classes of objects that are accepted as `sampler`."""
        return (Dynamics, Importance, Metropolis)

    def _prior_table(self, units, coef_shape, of_intercepts, n_intercepts, extras):
        """The table of the prior, one row a parameter: coefficients, then intercepts, then extras.

        `of_intercepts` is the prior of the `n_intercepts` intercepts, and `extras` maps the names
        of extra parameters to the constructor's parameters with their priors.
        """
        asked = []
        if n_intercepts:
            name = "intercept_prior"
            asked.append((resolve(of_intercepts, name), (n_intercepts,), name))
        for name in extras.values():
            asked.append((resolve_positive(self._given(name), name), (1,), name))
        own = {name: self._units_of_extra(name, units) for name in extras.values()}
        tables = [p._table(shape, name, own.get(name, units)) for p, shape, name in asked]
        prior, scales = self._coefficient_prior, self._learned_scales(units, coef_shape)
        for argument in ("loc", "scale", "scale_groups"):
            value = getattr(prior, argument, None)
            self._check_labels(f"The {argument} of the prior", value, coef_shape[-1])
        first = prior._table(coef_shape, "prior", units) if scales is None else scales.rows()
        return np.concatenate([first, *tables])

    def _check_labels(self, what, value, d):
        """`InvalidParameterError` for a Series or frame without the labels of the d columns.

        Values are used by their position, so that the order of the labels counts.
        """
        if not hasattr(value, "iloc"):
            return
        labels = list(getattr(value, "columns", getattr(value, "index", None)))
        if labels == list(range(d)):
            return
        names = [str(n) for n in getattr(self, "feature_names_in_", ())]
        if len(names) > d:  # names include those of columns with groups
            groups = getattr(self, "group_effects", None) or ()
            own = [g if isinstance(g, str) else names[g] for g in groups]
            names = [n for n in names if n not in own]
        if [str(label) for label in labels] != names:
            raise InvalidParameterError(
                f"{what} has the labels {labels}, and the columns of X are "
                f"{names or 'without names'}: give one value for each column, in their order, such "
                "as values[X.columns] or values.to_numpy()."
            )

    def _units_of_extra(self, name, units):
        """The `Units` of an "auto" scale of an extra parameter.

        Only the noise is measured in the unit of the response; other parameters have none.
        """
        return units if name == "noise_prior" else Units()

    @property
    def _coefficient_prior(self):
        """The prior of the coefficients, as an object."""
        return resolve(self.prior, auto=self._auto_scale)

    def _learned_scales(self, units, coef_shape):
        """The `LearnedScales` of the coefficients; None for a prior of fixed scales."""
        prior = self._coefficient_prior
        if not prior.is_learned:
            return None
        return prior._learned(coef_shape, units, getattr(self, "feature_names_in_", None))

    def _refuse_learned_scales(self, what, remedy="Fit the rows in memory with n_subposteriors=1"):
        """`InvalidParameterError` if scales of the prior are learned; `what` needs fixed scales."""
        if self._coefficient_prior.is_learned:
            raise InvalidParameterError(
                f"{type(self).__name__}: {what} needs a prior of fixed scales, and in "
                f"prior={self.prior!r} they are learned. {remedy}, or fix the scale, such as "
                "Normal(scale=1.0)."
            )

    def _kept(self, request, n_subposteriors):
        """Number of draws of each chain that are kept."""
        if request.keep is None:
            return request.n_draws
        if n_subposteriors > 1:
            Parameters(self).fail(
                "keep", "'all' with n_subposteriors > 1, whose draws are combined"
            )
        return request.keep

    def _given(self, name):
        """The value of a constructor's parameter, or its default prior in place of None."""
        value = getattr(self, name)
        return self._default_priors.get(name) if value is None else value

    def _units(self, target):
        """The `Units` in which "auto" scales of priors are measured, given a target's data."""
        return Units(columns=target.column_spreads)

    def _prior_of(self, target, coef_shape, extras):
        """The table of the prior, in the units of a target's data."""
        K = target.model.n_linear if self.fit_intercept else 0
        is_default = self.intercept_prior is None
        b = self._default_intercept_prior(target) if is_default else self.intercept_prior
        table = self._table_in(self._units(target), coef_shape, b, K, extras)
        if is_default and K and isinstance(b, Normal):
            return giving_way(table, target, self._coefficient_prior.is_learned)
        return table

    def _table_in(self, *args):
        """What `_prior_table` returns; its errors name the estimator."""
        try:
            return self._prior_table(*args)
        except InvalidParameterError as error:
            raise InvalidParameterError(f"{type(self).__name__}: {error}") from None

    def _default_intercept_prior(self, target):
        """The prior of intercepts in place of None, before it is widened for columns far from 0."""
        del target
        return self._default_priors["intercept_prior"]

    def _used_intercept_prior(self, prior, labels):
        """The prior of the intercepts as an object; None without intercepts.

        Only the table `prior` has the scale to which the default prior was widened.
        """
        if not self.fit_intercept:
            return None
        own = prior[: len(labels)][[label.startswith("intercept") for label in labels]]
        if self.intercept_prior is not None or not of_family(own, Normal).all():
            return resolve(self._given("intercept_prior"), "intercept_prior")
        scales = own[:, SCALE]
        return Normal(scale=float(scales[0]) if np.ptp(scales) == 0.0 else scales)

    def _division(self, n_parts=None):
        """The number of subposteriors, and the combiner of their draws.

        With data that lie in `n_parts` parts there are as many subposteriors.
        """
        p = Parameters(self)
        S, combiner = p.integer("n_subposteriors", 1), p.combiner(COMBINERS, Combiner)
        if n_parts is not None and S not in (1, n_parts):
            p.fail("n_subposteriors", f"1 or the number of shards, {n_parts}")
        return n_parts or S, combiner


with_shared_parameters = with_parameters_of(GLMParameters)
