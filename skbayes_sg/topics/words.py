"""The most probable words of topics, and the uncertainty of their probabilities."""

import numpy as np
from scipy.special import betainc

from ..posterior import Summary

__all__ = ["beta_mixture_quantile", "most_probable", "word_summary"]

BISECTIONS = 50  # number of times that the interval of a quantile in [0, 1] is halved


def most_probable(components, n):
    """Places of the n most probable words of each topic, (K, n); ties are in vocabulary order."""
    return np.argsort(-components, axis=1, kind="stable")[:, :n]


def word_summary(fitted, n, names, ends):
    """Return a table with a row for each of the n most probable words of each topic.

    Parameters
    ----------
    fitted : BayesianLDA
    n : int
    names : list of str
        The vocabulary.
    ends : tuple of float
        Probabilities below the ends of the intervals.

    Returns
    -------
    Summary
    """
    components, masses = fitted.components_, fitted.topic_masses_
    top = most_probable(components, n)
    topics, words = np.repeat(np.arange(len(top)), top.shape[1]), top.ravel()
    means = fitted.predictive_components_.reshape(-1, *components.shape)[:, topics, words]
    masses = masses.reshape(-1, len(components))[:, topics]
    table = {
        "mean": components[topics, words],
        "sd": fitted.components_std_[topics, words],
    }
    table |= {f"{100 * q:g}%": beta_mixture_quantile(means, masses, q) for q in ends}
    labels = [f"{k}: {names[w]}" for k, w in zip(topics, words, strict=True)]
    summary = Summary(labels, table, f"{n} most probable words of each topic")
    summary.max_rows = len(labels)
    return summary


def beta_mixture_quantile(means, masses, q):
    """Return the quantile q of mixtures of beta laws with equal shares, (n_mixtures,).

    `means` and `masses`, of shape (n_laws, n_mixtures), are the mean of each law and the sum of its
    two parameters. The method is bisection.
    """
    a, b = means * masses, (1.0 - means) * masses
    lower, upper = np.zeros(means.shape[1]), np.ones(means.shape[1])
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + upper)
        below = betainc(a, b, middle).mean(axis=0) < q
        lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
    return 0.5 * (lower + upper)
