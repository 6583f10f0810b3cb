"""What a fit is worth: right, warned, refused by name, or a bug.

Gates, in posterior standard deviations of the reference: means within 0.1, 5 % and 95 % quantiles
within 0.15, standard deviations within 7 %. Each is widened by z Monte Carlo standard errors of fit
and reference together, with z such that a fit at the very gate fails in one of `CHANCE` cases,
however many parameters it has. The fit's errors are those of its own effective sample size, but not
more than a tenth of its draws allow: fewer than that the package promises to report.

The error of a standard deviation follows from the kurtosis of the reference. One sample of a heavy
tail may lack what another has: beyond the kurtosis of an exponential law (9) that of the fit counts
too, if it is larger, up to 50. Excursions of draws from a law with light tails excuse nothing.
Where the reference has very heavy tails (kurtosis beyond 50) moments are no measure: then the
quantiles alone are compared, in units of the width of the central 90 %.
"""

from dataclasses import dataclass, replace

import numpy as np
from arviz_stats.base import array_stats
from scipy import stats

from .density import Density

MEAN, SD, QUANTILE = 0.1, 0.07, 0.15
CHANCE = 1000
LEVELS = (0.05, 0.95)
HEAVY = 50.0
EXPONENTIAL = 9.0  # the kurtosis of an exponential law
SOME_DF = 0.5  # degrees of freedom that a prior of them allows
NO_NOISE = 1e-9  # of the spread of the response
FARTHEST = 1e9  # in widths of a parameter, beyond which points of a reference are moved there
PROMISED = 0.1  # effective draws, as a share of all, below which the package warns
RHAT = 1.1  # of chains, beyond which it does


@dataclass
class Comparison:
    """The worst excess over a gate: above 1 the fit is wrong there."""

    excess: float
    text: str
    close: bool = True  # whether within the gates as they are, moments of heavy tails included


def weighted_quantile(points, weights, levels):
    order = np.argsort(points, axis=0)
    out = []
    for j in range(points.shape[1]):
        x, w = points[order[:, j], j], weights[order[:, j]]
        out.append(np.interp(levels, np.cumsum(w) - 0.5 * w, x))
    return np.array(out).T


def summary(points, weights):
    """Mean, sd, the quantiles and the kurtosis of every parameter."""
    mean = weights @ points
    centred = points - mean
    sd = np.sqrt(weights @ centred**2)
    sd = np.where(sd > 0.0, sd, 1e-300)
    kurtosis = weights @ np.minimum(np.abs(centred / sd), 1e30) ** 4
    return mean, sd, weighted_quantile(points, weights, LEVELS), kurtosis


def sizes(draws):
    """Effective draws for means, squares and quantiles, by arviz-stats, of (chains, draws, D)."""
    by_parameter = np.moveaxis(draws, 2, 0)
    asked = [("mean", None), ("sd", None), *[("quantile", level) for level in LEVELS]]
    found = [array_stats.ess(by_parameter, method=method, prob=prob) for method, prob in asked]
    return np.nan_to_num(np.array(found, dtype=float), nan=1.0)


def multiplicity(draws):
    """How often a draw comes on average, if draws were resampled."""
    flat = draws.reshape(-1, draws.shape[-1])
    _, times = np.unique(flat[:, 0], return_counts=True)
    return float((times**2).sum() / times.sum())


def effective(fit):
    """As `sizes`, also of draws that were resampled."""
    return sizes(fit["draws"]) / (multiplicity(fit["draws"]) if fit["independent"] else 1.0)


def compare(fit, reference):
    """The `Comparison` of draws (chains, draws, D) with a reference."""
    middle = weighted_quantile(reference.points, reference.weights, [0.5])[0]
    points = reference.points - middle  # which far from zero have more digits
    size = weighted_quantile(np.abs(points), reference.weights, [0.5])[0]
    size = np.where(size > 0.0, size, np.maximum(np.abs(middle), 1e-300))  # no square overflows
    flat = (fit["draws"].reshape(-1, fit["draws"].shape[-1]) - middle) / size
    total = len(flat)
    n_fit = np.maximum(effective(fit), PROMISED * total)
    n_ref = np.full_like(n_fit, reference.ess)
    if reference.chains is not None:
        n_ref = sizes(reference.chains)
    mean, sd, q, kurtosis = summary(np.clip(points / size, -FARTHEST, FARTHEST), reference.weights)
    own_mean, own_sd, own_q, own_kurtosis = summary(flat, np.full(total, 1.0 / total))
    z = stats.norm.isf(0.5 / (CHANCE * 4 * flat.shape[1]))
    heavy = kurtosis > HEAVY
    unit = np.where(heavy, (q[1] - q[0]) / 3.29, sd)
    unit = np.where(unit > 0.0, unit, 1e-300)
    noise = 1.0 / n_fit + 1.0 / n_ref  # of the mean, in sd squared
    own_kurtosis = np.where(kurtosis > EXPONENTIAL, np.minimum(own_kurtosis, HEAVY), 3.0)
    larger = np.maximum(kurtosis, own_kurtosis)
    factors = np.stack([np.ones_like(sd), (larger - 1.0) / 4.0])
    tails = [_quantile_factor(reference, LEVELS[k], unit * size) for k in range(2)]
    se = np.sqrt(noise * np.concatenate([factors, np.stack(tails)]))
    gaps = np.abs([(own_mean - mean) / unit, own_sd / sd - 1.0, *((own_q - q) / unit)])
    allowed = np.array([MEAN, SD, QUANTILE, QUANTILE])[:, None] + z * se
    excess = gaps / allowed
    close = bool((gaps <= np.array([MEAN, SD, QUANTILE, QUANTILE])[:, None]).all())
    excess[:2, heavy] = 0.0
    excess = np.nan_to_num(excess, nan=np.inf)
    row, j = np.unravel_index(np.argmax(excess), excess.shape)
    what = ["mean", "sd", "5 % quantile", "95 % quantile"][row]
    origin = 0.0 if row == 1 else middle[j]
    own = origin + [own_mean, own_sd, own_q[0], own_q[1]][row][j] * size[j]
    true = origin + [mean, sd, q[0], q[1]][row][j] * size[j]
    text = f"{what} of {fit['labels'][j]} {own:.5g}, {reference.kind} {true:.5g}"
    text += f" (sd {sd[j] * size[j]:.3g})"
    return Comparison(float(excess[row, j]), text, close and not heavy.any())


def identities(fit, density, size=2000):
    """The `Comparison` of draws with E ∇U = 0 and E (φ - m)·∇U = 1, for want of a reference.

    C E ∇U, with C the covariance of the draws, is about the error of their means, and the second
    identity is about the ratio of a variance to the right one. Likewise for predictors η:
    E (η - m) Cov(φ, η)·∇U = Var η.
    """
    flat = fit["draws"].reshape(-1, fit["draws"].shape[-1])
    rng = np.random.default_rng(0)
    order = rng.permutation(len(flat))
    half = min(size, len(flat) // 2)
    some, others = flat[order[:half]], flat[order[half:]]  # a covariance of some has their errors
    phi, phi_all = density.phi(some), density.phi(flat)
    g, mean = density(phi)[1], phi_all.mean(axis=0)
    sd, centred = phi_all.std(axis=0), phi_all - mean
    moved = g @ (centred.T @ centred / len(centred)) / sd
    ratio = (phi - mean) * g
    if type(density) is Density:
        eta = density.predictors(others)[0]
        centre, own = eta.mean(axis=0), eta.std(axis=0)
        pushed = g @ (centred[order[half:]].T @ (eta - centre) / len(eta)) / own
        moved = np.column_stack([moved, pushed])
        ratio = np.column_stack([ratio, (density.predictors(some)[0] - centre) / own * pushed])
    n = 1.0 / (1.0 / len(some) + 1.0 / (PROMISED * len(flat)))
    z = stats.norm.isf(0.5 / (CHANCE * 2 * moved.shape[1])) / np.sqrt(n)
    gaps = np.abs([moved.mean(axis=0), ratio.mean(axis=0) - 1.0])
    allowed = np.array([[2.0 * MEAN], [3.0 * SD]]) + z * np.array(
        [moved.std(axis=0), ratio.std(axis=0)]
    )
    excess = np.nan_to_num(gaps / allowed, nan=np.inf)
    row, j = np.unravel_index(np.argmax(excess), excess.shape)
    close = bool((gaps <= np.array([[2.0 * MEAN], [3.0 * SD]])).all())
    text = f"by identities: {['mean', 'variance'][row]} of coordinate {j} off by {gaps[row, j]:.2g}"
    return Comparison(float(excess[row, j]), text, close)


def identified(values, labels):
    """Coefficients of three or more classes less their mean over classes, which is not reported.

    The data say nothing of what is common to all classes.
    """
    values, shared = np.array(values), {}
    for j, label in enumerate(labels):
        name, _, rest = label.partition("[")
        shared.setdefault((name, rest.partition(", ")[2]), []).append(j)
    for own in shared.values():
        values[..., own] -= values[..., own].mean(axis=-1, keepdims=True)
    return values


def reported(fit, density=None):
    """The fit with its draws as they are reported, and with predictors, if a density has some."""
    draws, labels = with_predictors(fit["draws"], fit["labels"], density)
    draws = identified(draws, labels) if fit["classes"] else draws
    return fit | {"draws": draws, "labels": labels}


def as_reported(reference, fit, density=None):
    """A reference in the parameters of `reported`."""

    def own(points):
        if points is None:
            return None
        points, _ = with_predictors(points, [], density)
        return identified(points, fit["labels"]) if fit["classes"] else points

    return replace(reference, points=own(reference.points), chains=own(reference.chains))


def with_predictors(draws, labels, density):
    """Draws (..., D) and labels of parameters, and of the predictors of a few rows beside them.

    Where rows are fewer than columns each parameter keeps to its prior, and only sums of many, as
    predictors are, show that draws are wrong.
    """
    if type(density) is not Density:
        return draws, labels
    eta, more = density.predictors(draws.reshape(-1, draws.shape[-1]))
    return np.concatenate([draws, eta.reshape(*draws.shape[:-1], -1)], axis=-1), [*labels, *more]


def agree(fit, first, second):
    """Whether two references of a fit are within the gates of each other."""
    share = first.weights / first.weights.sum()
    chosen = np.random.default_rng(0).choice(len(share), 4000, p=share)
    draws = first.points[chosen].reshape(4, 1000, -1)
    own = fit | {"draws": draws, "independent": True}
    return compare(own, second).excess <= 1.0


def is_poor(fit):
    """Whether draws are right by luck, if at all: few are effective, or chains are apart."""
    draws = fit["draws"]
    apart = np.nan_to_num(array_stats.rhat(np.moveaxis(draws, 2, 0)), nan=1.0).max() > RHAT
    return bool(effective(fit).min() < PROMISED * draws.shape[0] * draws.shape[1] or apart)


def without_noise(fit, y):
    """Whether the noise of a regression is the rounding error of its response, by right draws."""
    noise = [j for j, label in enumerate(fit["labels"]) if label == "noise_std"]
    if not noise:
        return False
    constant = np.abs(y).max() or 1.0  # whose spread is rounding
    size = np.std(y) if np.ptp(y) else constant
    return bool(np.median(fit["draws"][..., noise[0]]) < NO_NOISE * size)


def ends_in_ties(fit, y):
    """Whether the density has no finite integral near a fit of the m rows of the commonest value.

    With noise σ and ν degrees of freedom, p coefficients and N rows, it is σ^(p - m + (N - m) ν)
    there: for ν that the prior allows and m > p it grows without end.
    """
    p = sum(label.startswith(("coef", "intercept")) for label in fit["labels"])
    m = np.unique(y, return_counts=True)[1].max()
    return "df" in fit["labels"] and m - p > SOME_DF * (len(y) - m)


def alarm(comparison, fit, y):
    """The verdict on draws within the gates, of a fit that has warned."""
    improper = without_noise(fit, y) or ends_in_ties(fit, y)
    deserved = not comparison.close or improper or is_poor(fit)
    return "warned" if deserved else "false alarm"


def _quantile_factor(reference, level, unit):
    """n times the variance of a sample quantile: p(1 - p)/f², by a difference of quantiles."""
    width = 0.04
    ends = weighted_quantile(reference.points, reference.weights, (level - width, level + width))
    density = 2.0 * width / np.maximum(ends[1] - ends[0], 1e-300) * unit
    return level * (1.0 - level) / density**2
