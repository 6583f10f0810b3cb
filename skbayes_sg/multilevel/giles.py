"""The adaptive rule of multilevel Monte Carlo (Giles 2008, Acta Numerica 2015, sec. 3).

The mean square error of ``Σ_l (1/N_l) Σ_i Δ_l^(i)`` is ``Σ V_l/N_l + bias²``. Each term may be half
of ε². The cheapest numbers of samples for a variance of ε²/2 are

    N_l = (2/ε²) √(V_l/C_l) Σ_k √(V_k C_k),

and the bias, the sum of the means beyond the finest level L, if they fall as h^α, is at most
``max(|m_L|, |m_{L-1}| 2^-α, ...) / (2^α - 1)``.
"""

import numpy as np

__all__ = ["ALPHA", "optimal_numbers", "regularised", "remaining_bias", "seen", "variance_order"]

ALPHA = 1.0  # weak order of the Euler step, with or without gradient noise
LOOK_BACK = 3  # levels from which order and bias are estimated
ROUNDING = 1e-24  # share of a variance below which it consists of rounding errors


def optimal_numbers(variances, costs, budget):
    """Numbers of samples of the levels for a variance of at most `budget` in every component.

    Parameters
    ----------
    variances : array of shape (n_levels, n_components)
    costs : array of shape (n_levels,)
    budget : array of shape (n_components,)

    Returns
    -------
    array of float of shape (n_levels,)
    """
    C = np.asarray(costs, dtype=float)[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        N = np.sqrt(variances / C) * np.sqrt(variances * C).sum(axis=0) / budget
    return np.where(variances > 0.0, N, 0.0).max(axis=1)


def seen(variances, numbers, spread=0.0):
    """Bound variances of levels of which all samples agree, as they do before a rare event is seen.

    One more sample could have differed by as much as the samples of level 0 do among each other:
    the bound is V_0 / N_l. For level 0 it is `spread`, the variance of the function over draws of
    the posterior, or 0 if it is not known.
    """
    V, numbers = np.array(variances, dtype=float), np.asarray(numbers, dtype=float)[:, None]
    V[0] = np.where(V[0] > 0.0, V[0], spread)
    V[1:] = np.where(V[1:] > ROUNDING * V[0], V[1:], V[0] / numbers[1:])
    return V


def regularised(variances, order):
    """Raise variances to at least half of what the previous level and the order β predict.

    A few samples of a level may agree by chance, and no claim of accuracy must depend on that.
    """
    V = np.array(variances)
    for level in range(2, len(V)):
        V[level] = np.maximum(V[level], 0.5 * V[level - 1] / 2.0**order)
    return V


def remaining_bias(means, errors):
    """Estimate Σ_{l > L} |m_l|, for means that fall as h^α, from the last levels (not level 0).

    The standard errors of the means are added, so that the bias is not claimed to be smaller than
    what can be measured.
    """
    size = np.abs(means[1:]) + errors[1:]
    back = np.arange(len(size))[::-1][:, None]
    expected = (size * 2.0 ** (-ALPHA * back))[-LOOK_BACK:]
    return expected.max(axis=0) / (2.0**ALPHA - 1.0)


def variance_order(levels):
    """Estimate β and its standard error from the slope of -log₂ V_l over the last levels above 0.

    V_l is the mean over the components, each in units of its variance on level 0. β is infinite if
    level 0 or one of the last levels has no variance, or if there is only one level above level 0.
    """
    unit = levels[0].variance
    told = unit > 0.0
    if not told.any():
        return np.inf, 0.0
    used = list(range(1, len(levels)))[-LOOK_BACK:]
    share = np.array([levels[k].variance[told] / unit[told] for k in used])
    error = [
        np.sqrt((levels[k].kurtosis[told][v.argmax()] - 1.0) / levels[k].n)
        for k, v in zip(used, share, strict=True)
    ]
    size = share.mean(axis=1)
    if len(used) < 2 or (size <= ROUNDING).any():
        return np.inf, 0.0
    x = np.array(used) - np.mean(used)
    weights = -x / (x @ x)
    return float(weights @ np.log2(size)), float(np.sqrt((weights**2) @ np.square(error))) / np.log(
        2.0
    )
