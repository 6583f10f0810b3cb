"""Fits of rows that lie in parts, called shards: files, or partitions on other machines."""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier

from .._base import memmap
from .._base.callbacks import with_callbacks
from .._base.columns import merged, weighted_moments
from .._base.validation import Parameters
from ..combine import Consensus
from ..engine.target import Target
from ..exceptions import SubposteriorWarning
from ..models.extras import positive_extras, scores_of_positive
from ..posterior.classes import common_shift, differences, without_shift
from ..priors import Flat
from ..priors.table import powered
from ..shards.local import LocalParts
from ..shards.sample import combine_shards, equal_draws, sample_shard, threads_of_a_shard
from ._centring import check_near, uncentred
from ._store import all_or_nothing, check_draw_store, copies_of
from ._warm_start import start_of

__all__ = ["FromShards", "Plan", "ShardSummary", "check_rows_of_shards", "described"]
__all__ += ["first_label", "pooled", "warn_of_small_shards", "watched"]

NAMES = "feature_names_in_", "n_features_in_", "_has_exposure"  # attributes that all parts share


@dataclass
class Plan:
    """The model, the parameters and their names, as soon as classes and columns are known.

    Parameters
    ----------
    model : skbayes_sg.models.Model
    coef_shape : tuple
        Shape of `coef_`, with ``n_linear * n_features`` entries.
    labels : list of str
        One label a parameter: coefficients in the order of `coef_`, then intercepts, then extras.
    extras : dict of str to str
        For each extra parameter of the model the name of its variable in the posterior, and of the
        constructor's parameter with its prior. Extras are sampled as logarithms.
    code : callable
        ``code(y, weight)`` returns labels and weights as the model takes them, for those read.
    centre : array of shape (n_features,), optional
        Means that were subtracted from the columns: see `skbayes_sg.estimators._centring`.
    classes : list, optional
        The labels of a classifier.
    scales : tuple of str, default=()
        One label for each learned scale of the prior, and for each quantity sampled with these,
        such as ``prior_scale[person]``: the name of a variable, and of an entry if there are
        several. They are sampled as logarithms, and come after all parameters.
    origin : float, default=0.0
        The number that is subtracted from the response during sampling.
    """

    model: Any
    coef_shape: tuple
    labels: list
    extras: dict
    code: Callable
    centre: Any = None
    classes: Any = None
    scales: tuple = ()
    origin: float = 0.0

    def coded(self, y, weight):
        """Labels and weights from `code`, with the origin subtracted from the response."""
        y, weight = self.code(y, weight)
        return (y - self.origin if self.origin else y), weight

    def _counted_from(self, origin, theta):
        """θ with the intercept of a response from which `origin` is subtracted."""
        if origin:
            theta = np.array(theta)
            theta[..., np.prod(self.coef_shape)] -= origin
        return theta

    def shapes(self, intercept):
        """Variables of the posterior, with their shapes."""
        shapes = {"coef": self.coef_shape}
        if intercept:
            shapes["intercept"] = self.coef_shape[:-1]
        shapes |= dict.fromkeys(self.extras, ())
        sizes = Counter(label.partition("[")[0] for label in self.scales)
        return shapes | {name: (n,) if n > 1 else () for name, n in sizes.items()}

    @property
    def _has_shift(self):
        """Whether there are three or more classes, whose coefficients have a common shift."""
        return self.classes is not None and len(self.classes) > 2

    @property
    def _of_classes(self):
        """The number of classes, and whether there are intercepts."""
        return len(self.classes), len(self.labels) > np.prod(self.coef_shape)

    def _of_target(self, theta):
        """θ without the learned scales of its prior, which come last."""
        return theta[..., : len(self.labels)]

    def identified(self, theta):
        """θ without the common shift of three or more classes, which the data do not determine."""
        return without_shift(theta, *self._of_classes) if self._has_shift else theta

    def contrasts(self, theta):
        """θ with the differences to the first class in the place of three or more classes."""
        if not self._has_shift:
            return theta
        K, intercept = self._of_classes
        return differences(theta, K, intercept, [(k, 0) for k in range(1, K)])

    def shift(self, theta):
        """The common shift of the coefficients of three or more classes; None for others."""
        own = self._of_target(theta)
        return common_shift(own, *self._of_classes) if self._has_shift else None

    def parameters(self, theta):
        """Parameters in the order and the units of the labels, from the sampled θ.

        Classes sum to zero, rows are no longer centred, and logarithms become positive numbers.
        """
        own = self.identified(self._of_target(theta))
        own = positive_extras(uncentred(own, self.centre, self.model.n_linear), len(self.extras))
        own = self._counted_from(-self.origin, own)
        if not self.scales:
            return own
        return np.concatenate([own, np.exp(theta[..., len(self.labels) :])], axis=-1)

    def theta(self, parameters, centre):
        """The sampled θ of rows with a centre, from parameters in the order of the labels.

        The coefficients of classes must include their common shift.
        """
        extras = len(self.extras)
        theta = self._counted_from(self.origin, np.array(parameters))
        theta[..., theta.shape[-1] - extras :] = np.log(theta[..., theta.shape[-1] - extras :])
        return uncentred(theta, None if centre is None else -centre, self.model.n_linear)

    def scores(self, theta, scores):
        """Scores of the parameters from those of θ; None for centred rows, where digits cancel."""
        if self.centre is not None:
            return None
        return scores_of_positive(theta, scores, len(self.extras))


def watched(progress, n_shards):
    """Return ``watch(outcomes)``, which shows callbacks the combination of the shards done."""

    def watch(done):
        def so_far():
            draws = np.stack([equal_draws(outcome) for outcome in done])
            return Consensus(diagonal=True)._combine(draws, None)[0], None

        progress(so_far, len(done) / n_shards)

    return watch


def check_rows_of_shards(owner, X, weight, n_shards):
    """`ValueError` if there are fewer rows than shards, where a row of weight two counts as two.

    What counts is the larger of the number of rows and their total weight, so that weights below
    one do not lower it. Rows on disk are not cut into pieces, and only their number counts.
    """
    n_rows, total = X.shape[0], float(weight.sum())
    if n_shards > (n_rows if memmap.mapped(X) is not None else max(n_rows, total)):
        rows = f"{n_rows} rows" if n_rows > 1 else "one sample"  # as scikit-learn's checks want
        raise ValueError(
            f"{type(owner).__name__}: n_subposteriors={n_shards} is more than the {rows} of "
            f"positive weight, whose weights sum to {total:.6g}. A shard needs rows, and more of "
            "them than there are parameters: use fewer subposteriors, or n_subposteriors=1."
        )


def warn_of_small_shards(owner, n_shards, rows, n_parameters, remedy):
    """`SubposteriorWarning` before sampling, for shards with fewer rows than parameters."""
    if n_shards > 1 and rows < n_parameters:
        warnings.warn(
            f"{type(owner).__name__}: of {n_shards} shards, one has about {rows:.3g} rows for "
            f"{n_parameters} parameters. The prior shapes the posteriors of such shards, which may "
            "be far from Gaussian, and their combination may be far from the posterior of all "
            f"rows. {remedy}",
            SubposteriorWarning,
            stacklevel=2,
        )


def first_label(y):
    """The response of each row, (n_rows,), without further labels such as an exposure."""
    return y if y.ndim == 1 else y[:, 0]


# -- sums over parts ------------------------------------------------------------------------------


def surveyed(parts, reader, n_jobs):
    """Those of the parts that have rows, and the `ShardSummary` of them."""
    found = parts.map(partial(describe, reader, parts.may_be_empty), n_jobs=n_jobs)
    kept = [one is not None for one in found]
    if not any(kept):
        raise ValueError(f"X has no rows in any of its {len(kept)} partitions.")
    parts = parts if all(kept) else parts.those(kept)
    return parts, ShardSummary([one for one in found if one is not None])


def describe(reader, may_be_empty, part, s):
    """Read a part of the rows, and return its summary as `described` makes it.

    It is None for a part without rows, if it `may_be_empty`.
    """
    del s
    if may_be_empty and part[0].shape[0] == 0:
        return None
    reader = clone(reader)
    return described(reader, *reader._read(*part))


def described(reader, X, y, weight):
    """A summary of rows that a reader has read, which must be known of all parts before sampling.

    It has the names of columns, the number of rows, the weighted moments of the columns, and for a
    classifier the classes and their total weights, else moments and largest size of the response.
    """
    names = {k: v for k, v in vars(reader).items() if k in NAMES}
    found = {"names": names, "n_rows": X.shape[0], "columns": weighted_moments(X, weight)}
    if is_classifier(reader):
        classes, codes = np.unique(y, return_inverse=True)
        return found | {"classes": classes, "class_totals": np.bincount(codes, weight)}
    y = first_label(y)
    response = weighted_moments(y[:, None], weight)
    return found | {"response": response, "size": float(np.abs(y).max())}


def pooled(found):
    """The summary of the rows of several parts together, from those that `described` made."""
    together = found[-1] | {"n_rows": sum(one["n_rows"] for one in found)}
    together["columns"] = merged([one["columns"] for one in found])
    if "classes" in together:
        together["classes"] = np.unique(np.concatenate([one["classes"] for one in found]))
    if "response" in together:
        together["response"] = merged([one["response"] for one in found])
        together["size"] = max(one["size"] for one in found)
    return together


class ShardSummary:
    """The summaries of all parts by `describe`, checked against each other.

    Parameters
    ----------
    found : list of dict
        The summary of each part.
    """

    def __init__(self, found):
        self.found = found
        self.names = found[0]["names"]
        self.rows_of_a_shard = -(-sum(one["n_rows"] for one in found) // len(found))
        self.n_features = self.names["n_features_in_"]
        for s, one in enumerate(found):
            self._check_columns(one["names"], s)

    def _check_columns(self, names, s):
        """`ValueError` if shard s has other columns than shard 0, or one of them has exposures."""
        where = f"shard {s} of {len(self.found)}"
        if names["n_features_in_"] != self.n_features:
            raise ValueError(
                f"{where} has {names['n_features_in_']} columns, and shard 0 has {self.n_features}."
            )
        own, first = (list(n.get("feature_names_in_", [])) for n in (names, self.names))
        if own != first:
            raise ValueError(f"{where} has the columns {own}, and shard 0 has {first}.")
        if names.get("_has_exposure") != self.names.get("_has_exposure"):
            raise ValueError(f"Of {where} and shard 0, one has an exposure and the other has none.")

    def classes(self):
        """(classes, total weight of each); `ValueError` if a shard lacks one of the classes."""
        classes = np.unique(np.concatenate([one["classes"] for one in self.found]))
        totals = np.zeros(len(classes))
        for s, one in enumerate(self.found):
            missing = np.setdiff1d(classes, one["classes"])
            if len(missing):
                raise ValueError(
                    f"shard {s} of {len(self.found)} has no row of class "
                    f"{missing.tolist()[0]!r}. Shuffle the rows over the shards, or use fewer and "
                    "larger ones."
                )
            totals[np.searchsorted(classes, one["classes"])] += one["class_totals"]
        return classes, totals

    @property
    def fewest_rows(self):
        """The number of rows of the smallest shard, counting the weight of rows if that is more."""
        return min(max(one["n_rows"], float(one["columns"][0])) for one in self.found)

    @property
    def moments(self):
        """(Σ w, mean, variance) of the columns over all shards."""
        return merged([one["columns"] for one in self.found])

    def stand_in(self, plan, intercept):
        """A small `Target` from which scales of priors follow as from all rows.

        It has two rows with the moments of all rows, and a third one of weight zero with the
        largest response.
        """
        total, mean, variance = self.moments
        sd, y = np.sqrt(variance), np.zeros(3)
        if "response" in self.found[0]:
            _, (centre,), (spread,) = merged([one["response"] for one in self.found])
            largest = max(one["size"] for one in self.found)
            y = np.array([centre - np.sqrt(spread), centre + np.sqrt(spread), largest])
        X = np.stack([mean - sd, mean + sd, mean])
        flat = Flat()._table((len(plan.labels),))
        weight = np.array([0.5, 0.5, 0.0]) * total
        return Target(X, y, weight, plan.model, flat, intercept=intercept)


def sample_part(reader, plan, prior, request, part, s):
    """Read and sample part s of the rows under its share `prior` of the prior."""
    X, y, weight = clone(reader)._read(*part)
    y, weight = plan.code(y, weight)
    target = Target(X, y, weight, plan.model, prior, intercept=bool(reader.fit_intercept))
    reader._check_bounded(target)
    return sample_shard(request, target, s)


# -- the methods of estimators --------------------------------------------------------------------


class FromShards:
    """`fit_shards`, and `fit` of Dask's collections, for a `BayesianGLM`.

    The estimator defines ``_read(X, y, sample_weight)``, which checks the rows of a part, and
    ``_plan(summary)``, which returns the `Plan`, given the `ShardSummary` of all parts. The items
    of a part are named in ``_row_items``.
    """

    _row_items: tuple[str, ...] = "X", "y", "sample_weight"
    _refuse_groups: Callable

    def _check_bounded(self, target):
        """Do nothing: the likelihoods of the package are bounded where they need be."""

    @with_callbacks
    def fit_shards(self, shards: Any) -> Self:
        """Fit to rows that lie in separate shards, each of which is sampled on its own.

        Each shard is sampled with its share of the prior, and the draws are combined as with
        `n_subposteriors`. A shard is read by the worker that samples it, and only sums and draws
        leave the worker: memory is bounded by one shard for each worker, or by less, because
        ``.npy`` files are mapped into memory and not read as a whole. Shards should be random parts
        of the rows; a shard in which a class is missing is an error.

        Parameters
        ----------
        shards : sequence of tuples, or path of a folder
            One tuple ``(X, y)`` or ``(X, y, sample_weight)`` for each shard, whose items are arrays
            or paths of ``.npy`` files (for sparse X, of ``.npz`` files that `scipy.sparse.save_npz`
            has written). For counts it may also be ``(X, y, sample_weight, exposure)``, with None
            for no weights. The path of a folder stands for all its files ``X*.npy`` or ``X*.npz``,
            together with the files ``y*.npy`` of the same endings, and ``weight*.npy`` and
            ``exposure*.npy`` if there are any.

        Returns
        -------
        self : estimator
            The estimator, with the attributes of the class docstring; `subposteriors_` is in the
            order of the shards.
        """
        with all_or_nothing(self):
            self._refuse_groups()
            return self._fit_parts(LocalParts(shards, self._row_items))

    def _fit_parts(self, parts):
        """Sample the shards of `parts` (see `skbayes_sg.shards.local`), each where it lies."""
        self._refuse_learned_scales("a fit of shards")
        _, combiner = self._division(len(parts))
        asked = self._request(1 << 60)
        reader = clone(self).set_params(random_state=None)
        parts, summary = surveyed(parts, reader, asked.n_jobs)
        S = len(parts)
        vars(self).update(summary.names)
        plan = self._plan(summary)
        self._forget(None, None)
        kept = self._kept(asked, 2)  # all draws are kept, to be combined
        check_draw_store(asked.n_chains * (S + 1), kept, len(plan.labels), copies=copies_of(S))
        check_near(self, *summary.moments[1:])
        remedy = "Use fewer and larger shards."
        warn_of_small_shards(self, S, summary.fewest_rows, len(plan.labels), remedy)
        whole = summary.stand_in(plan, bool(self.fit_intercept))
        prior = self._prior_of(whole, plan.coef_shape, plan.extras)
        batch_size = Parameters(self).batch_size(summary.rows_of_a_shard)
        n_jobs = threads_of_a_shard(asked.n_jobs, S)
        own = replace(asked, names=plan.labels, n_jobs=n_jobs, batch_size=batch_size)
        own.start = start_of(self, plan, prior)
        work = partial(sample_part, reader, plan, powered(prior, 1.0 / S), own)

        def draw(progress):
            outcomes = parts.map(work, n_jobs=asked.n_jobs, watch=watched(progress, S))
            if S == 1:
                return outcomes[0], [], {}
            outcome, check = combine_shards(outcomes, combiner, asked.seed, plan.contrasts)
            return outcome, outcomes, check

        return self._conclude(draw, plan, prior, S, X=None, y=None)
