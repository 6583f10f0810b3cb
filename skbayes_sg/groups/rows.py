"""Effects in the predictors of new rows: draws for known levels, their prior law for unknown ones.

Under one draw of the parameters, a level that was not in the data has the effect u ~ N(0, v), with
v = τ², or Σ τ_k² over all columns whose level is unknown. Predictive laws are mixtures over draws.
For rows with an unknown level each draw is replaced by several components, u = √v x_q with weights
φ(x_q), by the trapezoidal rule. Its nodes are shifted from draw to draw, so that distribution
functions of the mixture are smooth however narrow the noise is. Densities are not, and are
integrated about their peaks (`alone`). Nothing is random, and no row depends on others.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .alone import Alone

__all__ = ["AS_DRAWN", "Components", "Exposures", "GroupRows"]

SPACING, REACH = 0.75, 8.0  # spacing of the nodes x of N(0, 1), and about the largest |x|
# The golden ratio less one: its multiples, modulo 1, shift the nodes of the draws evenly.
GOLDEN = 0.6180339887498949


def nodes_of(n_draws):
    """Nodes and weights of N(0, 1) for each draw, (n_draws, n_nodes); weights add up to 1."""
    last = int(REACH / SPACING)
    shift = np.modf(GOLDEN * np.arange(n_draws))[0] - 0.5
    x = SPACING * (np.arange(-last, last + 1) + shift[:, None])
    weight = np.exp(-0.5 * np.square(x))
    return x, weight / weight.sum(axis=1, keepdims=True)


class Components(NamedTuple):
    """The components of a mixture over draws: the draws themselves, or several of each."""

    share: Any = None  # (n_draws, n_nodes), the weight of each component within its draw

    def weights(self, weights):
        """Weights of the components, given those of draws (None: all the same)."""
        if self.share is None:
            return weights
        return (self.share if weights is None else weights[:, None] * self.share).ravel()

    def values(self, values):
        """A parameter of the components, given that of draws."""
        return values if self.share is None else np.repeat(values, self.share.shape[1])

    def log_likelihood(self, of_predictors, eta):
        """Log-likelihoods (rows, draws): logs of means over the components of each draw."""
        log_density = of_predictors(eta, self)
        if self.share is None:
            return log_density
        terms = log_density.reshape(len(log_density), *self.share.shape)
        top = terms.max(axis=2, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return top[..., 0] + np.log((self.share * np.exp(terms - top)).sum(axis=2))

    def removed(self, of_predictors, eta, log_likelihood, powers):
        """What rows take with them that are left out with these powers (rows,), as logarithms."""
        del of_predictors, eta
        return log_likelihood if (powers == 1.0).all() else powers[:, None] * log_likelihood


AS_DRAWN = Components()  # a single component for each draw


@dataclass(frozen=True)
class Exposures:
    """Log exposures of rows, which are added to their predictors."""

    log_exposure: np.ndarray
    kinds = None
    integrates = False

    def added(self, eta, rows, draws):
        """Predictors (rows, draws, 1) with the log exposures of the rows, and `AS_DRAWN`."""
        del draws
        eta += self.log_exposure[rows, None, None]  # in place: a copy takes as long as the product
        return eta, AS_DRAWN


@dataclass(frozen=True)
class GroupRows:
    """The groups of rows, for predictions.

    Parameters
    ----------
    effects : skbayes_sg.groups.effects.FittedEffects
    codes, new : ndarray of shape (n_rows, n_factors)
        See `skbayes_sg.groups.columns.Levels.encode`.
    columns : list of ndarray of shape (n_rows, width)
        For each factor a one and the columns whose slopes vary.
    log_exposure : ndarray of shape (n_rows,), optional
    fresh : list of ndarray of shape (n_new, width, n_samples), optional
        Effects of new levels in each sample, where they are drawn.
    alone : ndarray of bool, shape (n_rows, n_factors), optional
        For likelihoods: which levels have no other row. Their effects, and those of unknown levels,
        are integrated out by `Alone`.
    one_peak : bool
        Whether likelihoods are known to be log-concave in an effect.
    """

    effects: Any
    codes: np.ndarray
    new: np.ndarray
    columns: list
    log_exposure: Any = None
    fresh: Any = None
    alone: Any = None
    one_peak: bool = True

    @property
    def kinds(self):
        """What is integrated out for each row: 0 nothing, 1 unknown levels, 2 levels of one row.

        None if the effects of new levels are drawn.
        """
        if self.fresh is not None:
            return None
        of_one_row = 0 if self.alone is None else 2 * self.alone.any(axis=1)
        return np.where((self.codes < 0).any(axis=1), 1, of_one_row)

    @property
    def integrates(self):
        """Whether some of these rows have likelihoods with effects that `Alone` integrates out."""
        return self.alone is not None and bool(self.kinds.any())

    def take(self, rows):
        """Some of the rows."""
        exposure = None if self.log_exposure is None else self.log_exposure[rows]
        columns = [own[rows] for own in self.columns]
        alone = None if self.alone is None else self.alone[rows]
        return replace(
            self, codes=self.codes[rows], new=self.new[rows], columns=columns,
            log_exposure=exposure, alone=alone,
        )  # fmt: skip

    def with_single_rows_integrated(self, weight, one_peak):
        """Return the rows, with the effects of levels integrated out that only one row informs.

        The rows must be all those of the fit, with its `weight`. Rows of weight zero inform no
        level, and one of weight 3 is three rows.
        """
        alone = np.zeros(self.codes.shape, dtype=bool)
        for own, codes in zip(alone.T, self.codes.T, strict=True):
            informs = (codes >= 0) & (weight > 0.0)
            count = np.bincount(codes[informs], minlength=codes.max(initial=-1) + 1)
            own[informs] = (count[codes[informs]] == 1) & (weight[informs] <= 1.0)
        return replace(self, alone=alone, one_peak=one_peak)

    def for_likelihoods(self):
        """Return the rows, with the effects of unknown levels integrated out of likelihoods."""
        return replace(self, alone=np.zeros(self.codes.shape, dtype=bool))

    def with_exposure(self, log_exposure):
        """Return the same rows with these log exposures."""
        return replace(self, log_exposure=log_exposure)

    def drawn(self, rng, draws=slice(None)):
        """Return the rows with a draw of each unknown effect under each of the parameters `draws`.

        Rows of the same new level share its effect; each missing level has one of its own. A draw
        of the parameters that occurs several times has other effects each time.
        """
        new = self.new.copy()
        for k in range(new.shape[1]):
            missing = np.flatnonzero((self.codes[:, k] < 0) & (new[:, k] < 0))
            new[missing, k] = new[:, k].max(initial=-1) + 1 + np.arange(len(missing))
        fresh = []
        for k, all_factors in enumerate(self.effects.factors):
            factor = all_factors[draws]
            number = new[:, k].max(initial=-1) + 1
            noise = rng.standard_normal((number, len(factor), factor.shape[1]))
            fresh.append(np.einsum("sij,lsj->lis", factor, noise))
        return replace(self, new=new, fresh=fresh)

    def added(self, eta, rows, draws):
        """Predictors (rows, draws, 1) with the effects of the rows; and `Components` or `Alone`."""
        if self.log_exposure is not None:
            eta = eta + self.log_exposure[rows, None, None]
        unknown, own = self.codes[rows] < 0, 0.0
        alone = np.zeros_like(unknown) if self.alone is None else self.alone[rows]
        for k in range(self.codes.shape[1]):
            known = self._known(k, rows, draws)
            eta[:, :, 0] += known
            if alone[:, k].any():
                own = own + np.where(alone[:, k, None], known, 0.0)
            if self.fresh is not None:
                eta[:, :, 0] += self._fresh(k, rows)
        if self.fresh is not None or not (unknown.any() or alone.any()):
            return eta, AS_DRAWN
        if self.alone is not None:
            variance = self._variance(alone | unknown, rows, draws)
            is_drawn = self.one_peak and not unknown.any()
            return eta, Alone(eta[:, :, 0] - own, variance, is_drawn)
        x, share = nodes_of(eta.shape[1])
        root = np.sqrt(self._variance(unknown, rows, draws))
        eta = eta + root[:, :, None] * x
        return eta.reshape(len(eta), -1, 1), Components(share)

    def _known(self, k, rows, draws):
        """What the effects of known levels of factor k add to predictors, (rows, draws)."""
        codes, Z = self.codes[rows, k], self.columns[k][rows]
        table = self.effects.draws[k].reshape(len(self.effects.draws[k]), -1)
        total, width = 0.0, Z.shape[1]
        for j in range(width):
            own = table[codes * width + j][:, draws]
            total = total + np.where(codes < 0, 0.0, Z[:, j])[:, None] * own
        return total

    def _fresh(self, k, rows):
        """What drawn effects of unknown levels of factor k add to predictors, (rows, draws)."""
        codes, new, Z = self.codes[rows, k], self.new[rows, k], self.columns[k][rows]
        out, unknown = np.zeros((len(codes), 1)), codes < 0
        if not unknown.any():
            return out
        own = np.einsum("nj,njs->ns", Z[unknown], self.fresh[k][new[unknown]])
        out = np.zeros((len(codes), own.shape[1]))
        out[unknown] = own
        return out

    def _variance(self, which, rows, draws):
        """Prior variance, under each draw, of the sum of the effects in the mask, (rows, draws)."""
        total = 0.0
        for k, factor in enumerate(self.effects.factors):
            spread = np.einsum("ni,sij->nsj", self.columns[k][rows], factor[draws])
            total = total + np.where(which[:, k, None], np.square(spread).sum(axis=2), 0.0)
        return total
