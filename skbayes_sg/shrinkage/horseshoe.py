r"""Gibbs sampling under the regularised horseshoe prior, all chains at once.

A sweep updates the coefficients, and then the scales given them (`local_scales`). How coefficients
are updated depends on the model:

* **linear regression**: the rows are normal, so that the coefficients can be integrated out. The
  scales and the noise make a trajectory under their marginal law (`collapsed_scales`), and the
  coefficients are drawn given both (`normal_rows`);
* **all other models**: normal rows approximate the likelihood, and what is drawn under them is a
  proposal, which is accepted or not (`approximated`);
* **logistic and robust regression with few rows**, or where proposals are hardly ever accepted:
  rows are normal given latent variables, which are drawn in each sweep (`augmented`).

In some sweeps of these a trajectory of all parameters given the scales comes first
(`horseshoe_hmc`).

log τ mixes slowly: draws are thinned until enough of them are effective.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from .._base import streams
from ..kernels.layout import FACT_Y
from ..models import Linear, Logistic, Softmax
from ..priors import HalfCauchy, Units
from ..priors.columns import SCALE
from ..recipe import gibbs
from ..recipe.closed_form import triangle
from .approximated import ApproximatedCoefficients, can_approximate
from .augmented import AugmentedCoefficients, can_augment
from .collapsed_scales import CollapsedScales, seconds_of_update
from .effective import log_effective_number
from .horseshoe_hmc import acceptance_of
from .local_scales import LocalScales
from .normal_rows import NormalRows, intercept_prior, marginal_of
from .reference import frame_and_collapse, reference_of

__all__ = ["run_horseshoe", "tau_zero"]

MOST_THIN = 40  # most sweeps from one draw to the next
MOST_SECONDS = 180.0  # predicted seconds from which there are not twice as many sweeps
AIM = 0.15  # share of effective draws, of every parameter, up to which draws are thinned


def tau_zero(target, scales):
    """τ₀, the scale of the prior of τ: the ratio k/(p - k), kept in `scales`, times σ̃/√n."""
    model, y = target.model, target.data.facts[:, FACT_Y]
    noise = 2.0 if isinstance(model, (Logistic, Softmax)) else 1.0
    if model.discrete:
        noise = 1.0 / np.sqrt(max(np.average(y, weights=target.weight), 1e-3))
    return scales.table[0, SCALE] * noise / np.sqrt(target.total_weight)


class LinearCoefficients:
    """Parameters of linear regression; the scales and the noise move before the coefficients."""

    thin, warmup = 1, 400  # sweeps from one draw to the next, at first, and of the warm-up
    suits = True  # whether the warm-up has not shown that another update is needed

    def __init__(self, target, scales, n_chains, n_warmup, rng):
        n, R = len(scales.group), triangle(target)
        self.n, self.rng, self.unit = n, rng, scales.unit
        R = R[np.any(R != 0.0, axis=1)]
        A, z = R[:, :n] * scales.unit, R[:, -1]
        own = [NormalRows(A, z)]
        if target.intercept:
            one = R[:, n]
            means = one @ A / (one @ one)
            own = [NormalRows(A - np.outer(one, means), z, one, means, intercept_prior(target, n))]
        total = target.total_weight - bool(target.intercept)
        self.rows = marginal_of(own, total)
        self.scales = CollapsedScales(n, target.prior[-1], total, n_warmup, rng)
        start = 0.5 * np.log(max(float(R[:, -1] @ R[:, -1]) / target.total_weight, 1e-300))
        self.log_sigma = np.full(n_chains, start)
        self.beta = np.zeros((n_chains, n))
        self.seconds = n_chains * seconds_of_update(*own[0].A.shape)

    def update(self, local, warming_up):
        """Move the scales and σ, and then draw the coefficients given them."""
        self.scales.update(self.rows, self.curvature(), local, self.log_sigma, warming_up)
        self.beta = self.rows.draws(local.precision, self.variance, self.rng)

    @property
    def variance(self):
        """σ² of all chains, (n_chains,)."""
        return np.exp(2.0 * self.log_sigma)

    def draws(self):
        """The parameters of the target in all chains, (n_chains, n_parameters)."""
        intercepts = self.rows.intercepts(self.beta, self.variance, self.rng)
        return np.column_stack([self.beta * self.unit, intercepts, self.log_sigma])

    def curvature(self):
        """Curvature of the likelihood along each β_j, the intercept integrated out."""
        return self.rows.curvature(self.variance)

    @property
    def told(self):
        """Diagnostics: see `acceptance_of`."""
        return acceptance_of(self.scales.accepted)


def run_horseshoe(target, scales, request, watch=None):
    """Sample the parameters, log τ and log m_eff by chains that move together: an `Outcome`."""
    rng, p = streams.of_proposal(request.seed), len(scales.group)
    source = _source(target, scales, request)
    for kind in _kinds(target, p):
        local = LocalScales(request.n_chains, p, tau_zero(target, scales), scales.slab, rng)
        n_warmup = kind.warmup if request.n_warmup is None else request.n_warmup
        own = kind(source, scales, request.n_chains, n_warmup, rng)
        tell = _price(own, n_warmup, target, request)
        tell(request.thin or own.thin)
        for _ in range(n_warmup):
            _sweep(local, own, True)
        if own.suits:
            break
    sweep, current = partial(_sweep, local, own), partial(_current, local, own)
    thinning = own.thin, _most_thin(own, request), AIM
    draws, thin = gibbs.thinned(sweep, current, request, thinning, tell, watch)
    names = [*request.names, "prior_scale", "m_eff"]
    report = "under the horseshoe prior", names, thin, n_warmup, target, request
    return gibbs.outcome(draws, "horseshoe_gibbs", *report, own.told)


def _kinds(target, p):
    """Updates of p coefficients in the order in which they are tried; the last one is kept."""
    if isinstance(target.model, Linear):
        return [LinearCoefficients]
    approximated = [ApproximatedCoefficients] if can_approximate(target, p) else []
    augmented = [AugmentedCoefficients] if can_augment(target) else []
    return approximated + augmented or [ApproximatedCoefficients]


def _source(target, scales, request):
    """What updates of coefficients begin with: the target, or the frame at a mode of it."""
    if isinstance(target.model, Linear):
        return target
    ridge = replace(scales, slab=None, table=HalfCauchy(1.0)._table((1,), "prior", Units()))
    search = streams.of_recipe(request.seed)
    s, theta = reference_of(target, ridge, search)
    return frame_and_collapse(target, ridge, s, search, theta)[0]


def _most_thin(own, request):
    """Sweeps from one draw to the next from which they are not doubled."""
    affordable = int(MOST_SECONDS / (own.seconds * request.n_draws))
    return max(own.thin, min(MOST_THIN, affordable) // 2 + 1)


def _price(own, n_warmup, target, request):
    """A function that tells the price of draws, given the sweeps from one draw to the next."""
    what = f"Sampling under the horseshoe prior with {target.counted}"
    remedy = "Use a normal prior with a learned scale, fewer rows or columns, or make fewer draws."
    return gibbs.price_of(own.seconds, n_warmup, request.n_draws, what, remedy)


def _sweep(local, own, warming_up=False):
    """Update the coefficients given the scales, and then the scales given the coefficients."""
    with np.errstate(over="ignore"):  # an infinite energy is rejected
        own.update(local, warming_up)
        local.update(own.beta)


def _current(local, own):
    """Parameters, log τ and log m_eff of all chains as they are: (n_chains, n_parameters + 2)."""
    with np.errstate(over="ignore"):  # an infinite precision leaves nothing of a coefficient
        m_eff = log_effective_number(own.curvature(), local.precision)
    return np.column_stack([own.draws(), local.log_tau, m_eff])
