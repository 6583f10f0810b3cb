"""R-hat, effective sample size and Monte Carlo errors of draws, computed by ArviZ.

A thin module: it puts axes in order, splits single chains, and, where only the worst parameter
matters, looks for it among the few that mix slowest. The definitions are those of Vehtari, Gelman,
Simpson, Carpenter and Bürkner (2021). All functions take draws (n_chains, n_draws, ...) and
return an array of the remaining shape: NaN for less than four draws a chain. A single chain is cut
into two halves, which are compared.
"""

import sys
import warnings

import numpy as np

__all__ = ["ess_bulk", "ess_tail", "mcse_mean", "mcse_sd", "rhat", "worst"]

CANDIDATES = 8


def _stats():
    from arviz_stats.base import array_stats, stats_utils  # 0.2 s: only when it is needed

    if sys.flags.optimize > 1:  # it extends docstrings, which ``python -OO`` has removed
        stats_utils.update_docstring = lambda *_: None
    return array_stats


def _apply(name, draws, **options):
    draws = np.asarray(draws, dtype=np.float64)
    if len(draws) == 1:  # a single chain is compared with itself
        half = draws.shape[1] // 2
        draws = np.stack([draws[0, :half], draws[0, draws.shape[1] - half :]])
    if draws.shape[1] < 4:
        return np.full(draws.shape[2:], np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        function = getattr(_stats(), name)
        return np.asarray(function(draws, chain_axis=0, draw_axis=1, **options))


def rhat(draws):
    """Rank-normalised split R-hat: 1 when the chains agree.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics.convergence import rhat
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> print(rhat(draws).round(1), rhat(draws + np.arange(4)[:, None]) > 1.3)
    1.0 True
    """
    return _apply("rhat", draws)


def ess_bulk(draws):
    """Effective sample size for the centre of the distribution.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)

    Returns
    -------
    array
    """
    return _apply("ess", draws, method="bulk")


def ess_tail(draws):
    """Effective sample size for the tails: the smaller one of the 5 % and 95 % quantiles.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)

    Returns
    -------
    array
    """
    return _apply("ess", draws, method="tail", prob=(0.05, 0.95))


def mcse_mean(draws):
    """Monte Carlo standard error of the mean.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)

    Returns
    -------
    array
    """
    return _apply("mcse", draws, method="mean")


def mcse_sd(draws):
    """Monte Carlo standard error of the standard deviation.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)

    Returns
    -------
    array
    """
    return _apply("mcse", draws, method="sd")


def slowest(draws, count=CANDIDATES):
    """Numbers of the parameters that mix slowest, by lag-one autocorrelation and split R-hat."""
    x = draws.reshape(draws.shape[0], draws.shape[1], -1)
    centred = x - x.mean(axis=(0, 1))
    variance = np.maximum((centred**2).mean(axis=(0, 1)), np.finfo(float).tiny)
    lag_one = (centred[:, 1:] * centred[:, :-1]).mean(axis=(0, 1)) / variance
    return np.argsort(-lag_one, kind="stable")[:count]


def worst(draws):
    """Smallest bulk ESS and largest R-hat, sought among the parameters that mix slowest.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, n_parameters)

    Returns
    -------
    ess, slowest, ratio, apart : float, int, float, int
        Smallest ESS and the number of its parameter, largest R-hat and the number of its.
    """
    candidates = slowest(draws)
    sizes, ratios = ess_bulk(draws[..., candidates]), rhat(draws[..., candidates])
    if not np.isfinite(sizes).any():
        return np.nan, 0, np.nan, 0
    i, j = np.nanargmin(sizes), np.nanargmax(np.where(np.isfinite(ratios), ratios, -np.inf))
    return float(sizes[i]), int(candidates[i]), float(ratios[j]), int(candidates[j])
