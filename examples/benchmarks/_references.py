"""Reference posteriors of logistic regressions that share no code with the package's samplers."""

import numpy as np
from arviz_stats.base import array_stats
from scipy import stats
from scipy.special import log_expit, log_softmax

PILOT = 50_000  # draws of a round that fits the proposal
ESS = 50_000  # that the last round aims at
LARGEST_K = 0.7  # tail index of the weights, above which their mean cannot be trusted
LARGEST_SIZE = 2_000_000
LAW = {
    "Normal": lambda prior: stats.norm(scale=prior.scale),
    "Laplace": lambda prior: stats.laplace(scale=prior.scale),
    "StudentT": lambda prior: stats.t(prior.df, scale=prior.scale),
}


def log_posterior(X, y, prior):
    """The function (m, d) -> m that is log p(theta | X, y) up to a constant.

    A row of theta holds the coefficients, class by class, then the intercepts, whose prior is
    N(0, 10^2).
    """
    A, classes = np.column_stack([X, np.ones(len(X))]), np.unique(y)
    K = 1 if len(classes) == 2 else len(classes)
    sign, column = np.where(y == classes[1], 1.0, -1.0), np.searchsorted(classes, y)
    on_coef, on_intercept = LAW[type(prior).__name__](prior), stats.norm(scale=10.0)

    def value(theta):
        coef, intercept = np.split(theta, [K * X.shape[1]], axis=1)
        matrix = np.concatenate([coef.reshape(len(theta), K, -1), intercept[:, :, None]], axis=2)
        eta = matrix @ A.T
        if K == 1:
            likelihood = log_expit(eta[:, 0] * sign).sum(axis=1)
        else:
            chosen = log_softmax(eta, axis=1)[:, column, np.arange(len(A))]
            likelihood = chosen.sum(axis=1)
        coef_prior = on_coef.logpdf(coef.reshape(len(theta), K, -1)).sum(axis=(1, 2))
        return likelihood + coef_prior + on_intercept.logpdf(intercept).sum(axis=1)

    return value


def weighted(log_p, mean, cov, size, rng, block=100):
    """Moments and effective size of draws of a t_10, Pareto-smoothed weights; tail index k."""
    sd = np.sqrt(np.diag(cov))
    law = stats.multivariate_t(shape=0.8 * cov / np.outer(sd, sd), df=10, seed=rng)
    z = law.rvs(size)
    thetas = mean + sd * z
    values = [log_p(part) for part in np.array_split(thetas, max(1, size // block))]
    inverse = law.logpdf(z) - np.concatenate(values)  # up to a constant
    log_weights, k = array_stats.psislw(inverse)
    w = np.exp(log_weights)
    return w @ thetas, np.cov(thetas.T, aweights=w), 1.0 / (w**2).sum(), k


def importance_sampling(X, y, prior, mean, cov, rounds=2, seed=0):
    """(mean, sd, effective size), or None where draws of one t distribution cannot carry it.

    Draws of a t distribution of the mean and covariance of a pilot, whose errors the weights undo,
    fitted to its own weighted draws `rounds` times. The weights are Pareto-smoothed (Vehtari et al.
    2024), and refused where their tail is too heavy or their effective size too small.
    """
    rng = np.random.default_rng(seed)
    log_p = log_posterior(X, y, prior)
    for _ in range(rounds):
        mean, cov, ess, k = weighted(log_p, mean, cov, PILOT, rng)
    size = int(PILOT * ESS / ess)
    if k > LARGEST_K or size > LARGEST_SIZE:
        return None
    mean, cov, ess, k = weighted(log_p, mean, cov, size, rng)
    return None if k > LARGEST_K else (mean, np.sqrt(np.diag(cov)), ess)
