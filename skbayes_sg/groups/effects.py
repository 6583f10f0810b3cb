"""The effects of all levels after a fit: their draws, their moments, and a table of both."""

from dataclasses import dataclass

import numpy as np

from .._base import weights as weighting
from ..posterior.summary import Summary

__all__ = ["FittedEffects"]

BLOCK = 1 << 22  # most numbers that are sorted together
# A scale is not told from zero if more than `SHARE` of its draws are below `NEAR_ZERO` times their
# median.
NEAR_ZERO, SHARE = 0.25, 0.05
MASS = 0.9  # posterior mass of the intervals of the table


@dataclass
class FittedEffects:
    """The levels, effects and scales of all factors, as they were fitted.

    Parameters
    ----------
    levels : list of skbayes_sg.groups.columns.Levels
    slope_names : list of list of str
        For each factor the columns whose slopes vary.
    centres : list of ndarray of shape (n_slopes,)
        For each factor the places of these columns at which the effects of its levels are.
    weight : list of ndarray of shape (n_levels,)
        Total weight of the rows of each level.
    draws : list of ndarray of float32, shape (n_levels * width, n_chains, n_kept)
        Effects that are kept: of each level the intercept, then its slopes.
    moments : list of ndarray of shape (2, n_levels * width)
        Mean and standard deviation of all draws.
    factors : list of ndarray of shape (n_chains * n_kept, width, width)
        Triangular factors of the covariance of the effects of a level; τ where there is no slope.
    """

    levels: list
    slope_names: list
    centres: list
    weight: list
    draws: list
    moments: list
    factors: list

    def __setstate__(self, state):
        """Restore effects that were saved; those of earlier versions are at zero of all columns."""
        at_zero = [np.zeros(len(names)) for names in state["slope_names"]]
        vars(self).update({"centres": at_zero} | state)

    @property
    def names(self):
        """Names of the group columns."""
        return [own.name for own in self.levels]

    def table(self):
        """A `Summary` with a row for each effect."""
        labels, columns = [], {"rows": [], "mean": [], "sd": []}
        for own, slopes, weight, moments in zip(
            self.levels, self.slope_names, self.weight, self.moments, strict=True
        ):
            ends = ["", *(f":{slope}" for slope in slopes)]
            labels += [f"{own.name}[{level}]{end}" for level in own.labels for end in ends]
            columns["rows"].append(np.repeat(weight, len(ends)))
            for name, values in zip(("mean", "sd"), moments, strict=True):
                columns[name].append(values)
        if self.draws[0].shape[2]:
            names = f"{50 - 50 * MASS:g}%", f"{50 + 50 * MASS:g}%"
            ends = np.concatenate([intervals(draws) for draws in self.draws], axis=1)
            columns |= {name: [values] for name, values in zip(names, ends, strict=True)}
        joined = {name: np.concatenate(values) for name, values in columns.items()}
        return Summary(labels, joined, self.heading())

    def heading(self):
        """One line: how large the effects of each column are, and whether there may be none."""
        return "; ".join(
            f"{own.name}{self._said_of_centres(k)}: {len(own.known)} levels, "
            f"{self._said_of_scale(k)}"
            for k, own in enumerate(self.levels)
        )

    def _said_of_centres(self, k):
        """Where the effects of factor k are, if that is not at zero of all columns with slopes."""
        pairs = zip(self.slope_names[k], self.centres[k], strict=True)
        places = [f"{name} = {centre:.6g}" for name, centre in pairs if centre != 0.0]
        return f" at {', '.join(places)}" if places else ""

    def _said_of_scale(self, k):
        """What `heading` says of the scale τ of factor k."""
        tau = self.factors[k][:, 0, 0]
        if len(tau) == 0:
            return "no draws kept"
        low, middle, high = np.quantile(tau, [0.05, 0.5, 0.95])
        said = f"sd {middle:.3g} (90 % interval {low:.3g} to {high:.3g})"
        if np.mean(tau < NEAR_ZERO * middle) > SHARE:
            said += ", which is not told from zero"
        return said


def intervals(draws):
    """Ends of the central intervals of mass `MASS` of each effect, (2, n_effects)."""
    flat = draws.reshape(len(draws), -1)
    step = max(1, BLOCK // flat.shape[1])
    q = [0.5 - MASS / 2, 0.5 + MASS / 2]
    starts = range(0, len(flat), step)
    parts = [weighting.quantile(flat[k : k + step], q, None, axis=1) for k in starts]
    return np.concatenate(parts, axis=1)
