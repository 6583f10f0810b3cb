"""Modes of a mixture's posterior that differ by more than labels, and jumps between them.

Gibbs sweeps move one row at a time, and may never get from one way of sharing the rows among the
components to another. The ends of short runs are therefore followed to the maxima near them, which
are different modes if they stay apart under every order of the labels. Each mode m gets a proposal,
a law of Student's t around it in the coordinates θ of `ComponentsPrior`,

    q_m(θ) = 1[labels of θ are those nearest to m] t_ν(θ; θ̂_m, R_m R_mᵀ),   Q = Σ_m s_m q_m,

which is at first Laplace's approximation, and then has the moments of importance draws. From time
to time a chain is offered points of Q, which it takes with probability

    min(1, π(θ') Q(θ) / (π(θ) Q(θ'))),

so that the posterior is left as it is, whatever the quality of Q: of a posterior that does not
depend on labels, only the order nearest to each mode needs to be looked at. How often points are
taken decides whether chains cross between modes, and that is judged from the draws.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.optimize import linear_sum_assignment
from scipy.special import log_softmax, softmax

from .._base import multivariate_t
from ..diagnostics.convergence import weight_efficiency
from ..geometry.modes import in_proportion
from ..priors.table import prior_value
from .around import DENSE, frame_around, log_laplace_evidence, mode_near
from .mixture import TIED, ComponentsPrior

__all__ = ["MixtureModes", "find_modes", "seconds_of_search"]

# Number of descents from the ends of short runs to modes: as many as take SECONDS by prediction,
# within these limits.
FEWEST, MOST = 2, 10
SECONDS = 4.0
MOST_STEPS = 200  # largest number of L-BFGS steps of a descent
# A short run has ended low if its log posterior is more than WINDOW nats, and the spread of log
# posteriors within a mode, below the best one.
WINDOW = 10.0
# Modes with a smaller share of the Laplace evidence than the largest one are left out; it is this
# small because that evidence is rough.
LEAST_SHARE = 1e-4
PROPOSED, ROUNDS = 600, 3  # importance draws of a round, and rounds, that improve the proposals
# Importance draws give the shares of the modes if their effective sample size is more than ENOUGH
# times the number of modes, and the moments of a mode if that of its own draws is more than ENOUGH
# times the number of parameters.
ENOUGH = 4.0
FLOOR = 0.1  # share of the points offered to chains that is divided equally among the modes
# Points of Q that are drawn together, and points that are offered to a chain in one jump.
OFFERED, ATTEMPTS = 400, 10


@dataclass(frozen=True)
class _Places:
    """Where modes are that differ by more than their labels, and how wide.

    Parameters
    ----------
    mixture : ComponentsPrior
    target : skbayes_sg.engine.target.Target
        The posterior in its coordinates.
    centres : array of shape (n_modes, n_parameters)
        The centres θ̂_m of the proposals.
    roots : array of shape (n_modes, n_parameters, n_parameters)
        The lower triangles R_m of the proposals.
    """

    mixture: ComponentsPrior
    target: Any
    centres: np.ndarray
    roots: np.ndarray

    def __len__(self):
        return len(self.centres)

    def distances(self, theta):
        """Return |R_m⁻¹(θ - θ̂_m)|², (S, n_modes), for θ (S, D) with the labels nearest to m."""
        away = self._nearest(theta) - self.centres
        whitened = self._inverse_roots @ away.transpose(1, 2, 0)
        return (whitened**2).sum(axis=1).T

    def _nearest(self, theta):
        """Return θ (S, D) with the labels nearest to each mode, (S, n_modes, D)."""
        return _permuted(self.mixture, theta, self._orders(theta))

    def _orders(self, theta):
        """Return which component of θ is nearest to each component of a mode, (S, n_modes, K).

        The assignment has the smallest sum of squared distances in units of the widths of the mode.
        Of (a - b)²/u² the term b²/u², with b of the mode, is the same for all assignments.
        """
        own, K = _by_component(self.mixture, theta)[0], self.mixture.K
        squares, products = self._weights_of_costs
        costs = own**2 @ squares - 2.0 * own @ products  # (S, components of θ, those of all modes)
        costs = costs.reshape(-1, K, len(self), K).transpose(0, 2, 3, 1)
        found = [linear_sum_assignment(cost)[1] for cost in costs.reshape(-1, K, K)]
        return np.array(found, dtype=int).reshape(-1, len(self), K)

    @cached_property
    def _inverse_roots(self):
        return np.array([linalg.inv(root) for root in self.roots])

    @cached_property
    def _weights_of_costs(self):
        """1/u² and b/u² of the components of all modes, (n, n_modes * K), as in `_orders`."""
        widths = np.sqrt((self.roots**2).sum(axis=2))
        b, u = (_by_component(self.mixture, v)[0] for v in (self.centres, widths))
        return tuple(v.reshape(-1, v.shape[2]).T for v in (u**-2.0, b * u**-2.0))


@dataclass(frozen=True)
class _FoundModes(_Places):
    """The modes that a search has found so far, in this order, with their log evidences."""

    log_evidences: np.ndarray  # (n_modes,): of Laplace's approximations


@dataclass(frozen=True)
class MixtureModes(_Places):
    """Modes that differ by more than their labels, the largest first.

    Parameters
    ----------
    mixture, target, centres, roots : see `_Places`
    shares : array of shape (n_modes,)
        Estimates of their shares of the posterior.
    reached : bool
        Whether the shares come from enough importance draws. Only then are chains of Gibbs sweeps
        offered points of Q.
    """

    shares: np.ndarray
    reached: bool = False

    def of_chains(self, n_chains):
        """Return the mode at which each chain begins: as many at each as its share asks for."""
        return in_proportion(self.shares, n_chains)

    def members(self, theta):
        """Return the mode to which each θ (S, D) belongs, whose part s_m q_m of Q is largest."""
        return self._log_parts(theta).argmax(axis=1)

    def jump(self, chain):
        """Offer `ATTEMPTS` points of Q to a chain of Gibbs sweeps, and move it if it takes one."""
        mixture, rng = self.mixture, chain.rng
        theta = mixture.pack(chain.log_w[None], chain.mu[None], chain.A[None])
        # Rows do not depend on Σ e^v: a draw of it from its prior is one from its posterior.
        total = mixture.K * mixture.alpha
        theta[:, : mixture.K] += np.log(rng.standard_gamma(total) / total)
        here, taken = self._log_weights(theta)[0], None
        if not chain.offers:  # many points are drawn together, which takes less time
            points, log_weights = self._propose(rng, OFFERED)
            chain.offers = list(zip(points, log_weights, strict=True))
        mine, chain.offers = chain.offers[:ATTEMPTS], chain.offers[ATTEMPTS:]
        for point, there in mine:
            if np.log1p(-rng.random()) < there - here:
                here, taken = there, point
        if taken is not None:
            self.place(chain, taken)

    def seconds_of_jump(self, n_rows):
        """Return the predicted seconds of `jump`, with constants as measured on one machine."""
        loss = n_rows * self.mixture.K * (30.0 + 0.8 * self.mixture.d**2)
        return (150e3 + 15e3 * len(self) + ATTEMPTS * loss) * 1e-9

    def place(self, chain, theta):
        """Set the state of a chain of Gibbs sweeps to that of θ, (D,)."""
        _, chain.mu[:], chain.A[:] = (part[0] for part in self.mixture.unpack(theta[None]))
        chain.log_w[:] = log_softmax(theta[: self.mixture.K])

    def described(self, m, units):
        """Return text with the weights and means of the components of a mode, the heaviest first.

        Means are in the `units` (centre, unit) of the columns before standardisation.
        """
        w, mu, _ = (part[0] for part in self.mixture.unpack(self.centres[[m]]))
        centre, unit = units
        order, means = np.argsort(-w), centre + unit * mu
        weights = ", ".join(f"{share:.2f}" for share in w[order])
        places = ", ".join(np.array2string(mean, precision=3, threshold=4) for mean in means[order])
        return f"weights {weights} at {places}"

    # -- the proposals ------------------------------------------------------------------------

    @property
    def _proposal_shares(self):
        """The share s_m of each mode in Q, (n_modes,)."""
        return (1.0 - FLOOR) * self.shares + FLOOR / len(self)

    def _propose(self, rng, n):
        """Draw n points of Q; return them, (n, D), and log π - log Q there, up to a constant.

        It is -∞ where the order of the labels is not the one nearest to the mode.
        """
        m = rng.choice(len(self), n, p=self._proposal_shares)
        z = multivariate_t.standard_draws(rng, n, self.centres.shape[1])
        theta = self.centres[m] + np.einsum("sij,sj->si", self.roots[m], z)
        own = self._orders(theta)[np.arange(n), m]
        right = (own == np.arange(self.mixture.K)).all(axis=1)
        log_weights = np.full(n, -np.inf)
        log_weights[right] = self._log_weights(theta[right])
        return theta, log_weights

    def _log_weights(self, theta):
        """Return log π - log Q at each θ (S, D), up to a constant."""
        target = self.target
        facts, rows, n = target.data.facts, np.arange(target.n_rows), target.n_rows
        U = [
            target.model.loss(facts, rows, 0, n, point[None]) + prior_value(target.prior, point)
            for point in theta
        ]
        return -np.array(U) - np.logaddexp.reduce(self._log_parts(theta), axis=1)

    def _log_parts(self, theta):
        """Return log(s_m q_m), (S, n_modes), at θ (S, D) with the labels nearest to each mode."""
        log_det = np.log(np.abs(np.einsum("mjj->mj", self.roots))).sum(axis=1)
        log_t = multivariate_t.log_density(self.distances(theta), theta.shape[1], log_det)
        return np.log(self._proposal_shares) + log_t


def _by_component(mixture, theta):
    """Return the coordinates in θ (S, D) of each component, (S, K, n), and those that all share."""
    S, K, d = len(theta), mixture.K, mixture.d
    parts, rest = [theta[:, :K, None], theta[:, K : K + K * d].reshape(S, K, d)], K + K * d
    if mixture.kind != TIED:
        parts, rest = [*parts, theta[:, rest:].reshape(S, K, mixture.size)], theta.shape[1]
    return np.concatenate(parts, axis=2), theta[:, rest:]


def _permuted(mixture, theta, orders):
    """Return θ (S, D) with its components in several orders, (S, n, D), for `orders` (S, n, K)."""
    (S, n, _), d = orders.shape, mixture.d
    blocks, rest = _by_component(mixture, theta)
    blocks = blocks[np.arange(S)[:, None, None], orders]
    parts = blocks[..., 0], blocks[..., 1 : 1 + d], blocks[..., 1 + d :]
    rest = np.broadcast_to(rest[:, None], (S, n, rest.shape[1]))
    return np.concatenate([*(part.reshape(S, n, -1) for part in parts), rest], axis=2)


# -- the search -----------------------------------------------------------------------------------


def find_modes(mixture, target, starts, values, rng):
    """Return the `MixtureModes` near some points, and which points are near a mode that matters.

    The former is None if only one mode matters, or if there is no search: for one component, or for
    more than `DENSE` parameters.

    Parameters
    ----------
    mixture : ComponentsPrior
    target : skbayes_sg.engine.target.Target
        The posterior in its coordinates.
    starts : array of shape (n_starts, n_parameters)
    values : array of shape (n_starts,)
        Log posteriors at the starts.
    rng : numpy.random.Generator
    """
    if not _has_search(mixture):
        return None, np.ones(len(starts), dtype=bool)
    order = np.argsort(-values)
    low = values < values.max() - WINDOW - 2.0 * np.sqrt(mixture.n_parameters)
    most = _most_descents(mixture, target.n_rows)
    found = _with_modes(None, mixture, target, starts[order[~low[order]]], most)
    n_high = len(found)
    found = _with_modes(found, mixture, target, starts[order[low[order]]], most)
    evidence = found.log_evidences
    kept = np.argsort(-evidence)
    kept = kept[evidence[kept] > evidence.max() + np.log(LEAST_SHARE)]
    near = np.isin(np.argmin(found.distances(starts), axis=1), kept)
    kept = kept[kept < n_high]  # jumps to modes found from low starts hardly ever succeed
    if len(kept) <= 1:
        return None, near
    own = found.centres[kept], found.roots[kept], softmax(evidence[kept])
    return _improved(MixtureModes(mixture, target, *own), rng), near


def _with_modes(found, mixture, target, starts, most):
    """Return the `_FoundModes` together with those near some points; `found` is None at first.

    Points within reach of a mode are passed over, and at most `most` of the others are followed.
    """
    tried = 0
    for start in starts:
        if tried == most:
            break
        if found is None or not _within(found, start, 1.0 + 4.0 / np.sqrt(len(start))):
            found, tried = _with_mode(found, mixture, target, start), tried + 1
    return found


def _has_search(mixture):
    """Whether modes are searched for: not for one component, nor for many parameters."""
    return mixture.K > 1 and mixture.n_parameters <= DENSE


def _seconds_of_descent(mixture, n_rows):
    """Return the predicted seconds of a descent, which passes over all rows for each step.

    At its end there is a Hessian. The constants are nanoseconds, as measured on one machine.
    """
    step = mixture.K * (90.0 + 0.5 * mixture.d**2)
    return 0.05 + n_rows * (MOST_STEPS * step + 0.12 * mixture.n_parameters**2) * 1e-9


def _most_descents(mixture, n_rows):
    """Return how many descents there are at most, which are the fewer the longer each takes."""
    return int(np.clip(SECONDS / _seconds_of_descent(mixture, n_rows), FEWEST, MOST))


def seconds_of_search(mixture, n_rows):
    """Return the predicted seconds of `find_modes`."""
    if not _has_search(mixture):
        return 0.0
    return _most_descents(mixture, n_rows) * _seconds_of_descent(mixture, n_rows)


def _within(found, theta, reach):
    """Whether the mean square of R_m⁻¹(θ - θ̂_m) is less than `reach` for some mode m."""
    return found.distances(theta[None]).min() < reach * len(theta)


def _with_mode(found, mixture, target, start):
    """Return the `_FoundModes` and the one near a point, if it is new."""
    frame = frame_around(target, mode_near(target, start, MOST_STEPS), "hessian")
    theta, root = frame.centre.theta, frame.laplace_root
    if len(root) == 1:
        root = np.diag(root[0])
    root = linalg.qr(root.T, mode="r")[0].T  # lower triangular
    own = [theta[None], root[None], np.array([log_laplace_evidence(frame)])]
    if found is None:
        return _FoundModes(mixture, target, *own)
    if _within(found, theta, 1.0):
        return found
    known = found.centres, found.roots, found.log_evidences
    return _FoundModes(mixture, target, *map(np.concatenate, zip(known, own, strict=True)))


def _improved(modes, rng):
    """Return the modes, largest first, with shares and moments estimated by importance draws.

    The shares, or the moments of a mode, stay as they are if there are too few effective draws.
    """
    for _ in range(ROUNDS):
        theta, log_weights = modes._propose(rng, PROPOSED)
        if np.isneginf(log_weights).all():
            break
        weights = softmax(log_weights)
        member = modes.members(theta)
        centres, roots = modes.centres.copy(), modes.roots.copy()
        for m in range(len(modes)):
            own = weights * (member == m)
            if own.any() and PROPOSED * weight_efficiency(own) > ENOUGH * theta.shape[1]:
                centres[m], roots[m] = _moments(modes._nearest(theta)[:, m], own)
        reached = PROPOSED * weight_efficiency(weights) > ENOUGH * len(modes)
        shares = modes.shares
        if reached:
            shares = np.bincount(member, weights, minlength=len(modes))
        known = {"centres": centres, "roots": roots, "shares": shares, "reached": reached}
        modes = replace(modes, **known)
    order = np.argsort(-modes.shares, kind="stable")
    known = {name: getattr(modes, name)[order] for name in ("centres", "roots", "shares")}
    return replace(modes, **known)


def _moments(theta, weights):
    """Return the mean of weighted draws, and the Cholesky factor of their covariance."""
    mean = np.average(theta, axis=0, weights=weights)
    return mean, linalg.cholesky(np.cov(theta.T, aweights=weights), lower=True)
