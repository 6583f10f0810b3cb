"""Made tables with groups, for the samplers and for dense linear algebra."""

import numpy as np
from scipy import stats
from scipy.special import gammaln

from skbayes_sg.engine.target import Target
from skbayes_sg.groups.problem import GroupProblem
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Linear, LinearKnownNoise, Logistic, NegativeBinomial, Poisson, Robust
from skbayes_sg.priors import Flat, Gamma, HalfNormal, HalfStudentT, Normal

EXTRAS = {
    Linear: [HalfStudentT(scale=1.0)],
    LinearKnownNoise: [],
    Logistic: [],
    Poisson: [],
    NegativeBinomial: [HalfStudentT(scale=1.0)],
    Robust: [HalfStudentT(scale=1.0), Gamma()],
}


class Constant:
    """Instead of a generator: normals that are all the same."""

    def __init__(self, value):
        self.value = value

    def standard_normal(self, size, dtype=np.float64):
        return np.full(size, self.value, dtype=dtype)


def response(kind, eta, rng):
    if kind is Logistic:
        return (rng.logistic(size=len(eta)) < eta).astype(float)
    if kind is Poisson:
        return rng.poisson(np.exp(eta)).astype(float)
    if kind is NegativeBinomial:
        return rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, len(eta))).astype(float)
    if kind is Robust:
        return eta + 0.5 * rng.standard_t(4.0, len(eta))
    return eta + 0.5 * rng.standard_normal(len(eta))


def problem_of(
    kind, n=60, d=2, sizes=(7,), seed=0, tau=0.8, intercept=None, scale=1.0, weight=None,
    slopes=None, offset=0.0, centre=0.0,
):  # fmt: skip
    """A `GroupProblem` with uneven levels; the last level of each factor may be empty."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + offset
    shares = [rng.gamma(1.0, size=L) + 0.1 for L in sizes]
    codes = np.stack([rng.choice(len(s), n, p=s / s.sum()) for s in shares], axis=1)
    effects = [tau * rng.standard_normal(L) for L in sizes]
    eta = (X - offset) @ np.linspace(-0.5, 0.5, d) + 0.3
    eta = eta + sum(u[codes[:, k]] for k, u in enumerate(effects))
    tables = [Normal(scale=2.0)._table((d,)), (intercept or Flat())._table((1,))]
    prior = np.concatenate([*tables, *(p._table((1,), "extra") for p in EXTRAS[kind])])
    weight = rng.uniform(0.5, 2.0, n) if weight is None else weight
    target = Target(X, response(kind, eta, rng), weight, kind(), prior)
    slopes = slopes or [[] for _ in sizes]
    centres = [np.full(len(own), centre) for own in slopes]
    scales = [HalfNormal(scale)._table((1 + len(own),), "scale") for own in slopes]
    return GroupProblem(target, codes.astype(np.int32), tuple(sizes), scales, slopes, centres)


def log_likelihood(kind, eta, y):
    if kind is Logistic:
        return y * eta - np.logaddexp(0.0, eta)
    return y * eta - np.exp(eta) - gammaln(y + 1.0)


def quadrature(problem, kind):
    """Means and standard deviations of (b, τ) for rows without columns, by nested quadrature."""
    codes, y = problem.codes[:, 0], problem.target.data.facts[:, FACT_Y]
    b, log_tau = np.meshgrid(np.linspace(-4, 4, 81), np.linspace(-7, 1.6, 87), indexing="ij")
    u = np.linspace(-8.0, 8.0, 321)[:, None, None]  # in units of τ
    log_p = stats.norm.logpdf(b, 0.0, 2.5) + stats.halfnorm.logpdf(np.exp(log_tau)) + log_tau
    for level in range(problem.sizes[0]):
        eta, own = b + np.exp(log_tau) * u, y[codes == level]
        inside = sum(log_likelihood(kind, eta, value) for value in own) - 0.5 * u**2
        top = inside.max(axis=0)
        log_p = log_p + top + np.log(np.exp(inside - top).sum(axis=0))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    values = np.stack([b, np.exp(log_tau)])
    mean = (p * values).sum(axis=(1, 2))
    return mean, np.sqrt((p * np.square(values)).sum(axis=(1, 2)) - mean**2)
