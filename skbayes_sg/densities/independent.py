"""Draws of a row density by importance sampling, where the posterior is nearly normal.

Laplace's approximation at the mode is the proposal, or those at all modes that matter. Its draws
are weighted by the density of all rows, and judged and resampled as those of models with linear
predictors are (`skbayes_sg.importance.sample` and `mixture`). Where the weights of a single mode
cannot be trusted, many chains in lockstep take their place, in the same coordinates and with
gradients of all rows. Where those of several modes cannot, and parameters are few, a mixture grows.
"""

from functools import cached_property
from itertools import chain

import numpy as np

from .._base import streams
from .._base.threads import in_threads
from ..dynamics import Importance
from ..geometry import preconditioning
from ..importance.certificate import certified
from ..importance.growing import grown_draws
from ..importance.lockstep import UNLIMITED, Budget
from ..importance.mixture import mixed_draws
from ..importance.sample import certified_draws
from ..importance.warps import unwarped
from ..recipe.independent import FINITE, POOR, may_grow, warn_of_weights, with_ess_in_theta
from ..recipe.price import (
    EXACT_SECONDS,
    TOLD_SECONDS,
    leapfrogs_of_chains,
    seconds_of_chains,
    seconds_of_rows,
    warn_if_long,
    warn_of_lockstep,
)
from ..recipe.request import Outcome, chosen_without_steps

__all__ = ["run_independent"]

AT_ONCE = 16  # draws that a thread weighs before it takes others
# Draws that are tried first, and their least effective share where chains on all rows are dear.
TRIED, HOPELESS = 100, 0.02
REMEDY = "Make fewer draws (n_draws)."


class _AllRows:
    """U at draws φ of a frame, exact in all rows, with the interface of a `Potential`."""

    order = 2  # as of a `Potential` that is exact in all rows

    def __init__(self, frame):
        self.frame, self.target = frame, frame.target
        self.n_exact = self.target.n_rows
        self.at_centre = self.target.value_and_gradient(frame.centre.theta)[0]

    @property
    def work(self):
        """About the number of multiplications in a gradient at one draw."""
        return float(self.n_exact * self.target.n_parameters)

    def values(self, phi):
        """U - U(θ̂) at the rows of `phi`, (n_draws,)."""
        return self._both(phi)[0]

    def gradients(self, phi):
        """∇_φ U at the rows of `phi`, (n_draws, n_parameters)."""
        return preconditioning.pull_back(self.frame.F, self._both(phi)[1].T).T

    def _both(self, phi):
        """Values as above, and gradients in θ, at the rows of `phi`."""

        def work(places):
            with np.errstate(all="ignore"):  # threads have settings of their own
                return [self.target.value_and_gradient(place) for place in places]

        chunks = np.array_split(self.frame.theta(phi), -(-len(phi) // AT_ONCE))
        found = in_threads(work, chunks, self.target.n_jobs)
        values, g = zip(*chain.from_iterable(found), strict=True)
        return np.array(values) - self.at_centre, np.array(g)


class _Laplace:
    """Laplace's approximation, with the interface of a `Proposal`: no row is kept to an order."""

    other_motion = None

    def __init__(self, frame):
        self.frame, self.n_parameters = frame, frame.target.n_parameters
        self.warps = unwarped(self.n_parameters)

    @cached_property
    def exact(self):
        """The potential of all rows."""
        return _AllRows(self.frame)

    @property
    def surrogate(self):
        """The potential of chains in lockstep: that of all rows."""
        return self.exact

    def warps_of_draws(self, _):
        """None: there are no directions of rows."""
        return None

    def potentials(self, left, phi):
        """Return no cheaper potentials than that of all rows."""
        return ()


def run_independent(modes, request, watch=None):
    """The `Outcome` of independent draws, or None where chains on all rows are worth more.

    Where importance sampling was asked for by name there is always an outcome, with a warning if
    the weights cannot be trusted.
    """
    frame, named = modes.frame, isinstance(request.sampler, Importance)
    if not named and not all(frame.whitened for frame in modes.frames):
        return None
    n, rng = request.n_chains * request.n_draws, streams.of_proposal(request.seed)
    budget = UNLIMITED if named else _budget(frame.target, request)
    seconds = seconds_of_chains(frame.target, request)
    least = POOR if seconds <= EXACT_SECONDS or len(modes) > 1 else HOPELESS
    with request.timed("weighing"):
        proposals = [_Laplace(frame) for frame in modes.frames]
        if not named and _few_are_effective(proposals[0], least, streams.child(rng)):
            return None
        weighing = n * seconds_of_rows(frame.target, frame.target.n_rows)
        warn_if_long(weighing, f"Weighing {n} independent draws", REMEDY, TOLD_SECONDS)
        if len(modes) > 1:
            found = _of_several(proposals, n, rng, request)
        else:
            found = certified_draws(proposals[0], n, rng, lambda proposal: budget)
        found = with_ess_in_theta(found, frame, request)
    if not named and _gives_way(found, n, seconds, len(modes)):
        return None
    if not found.holds:
        warn_of_weights(found)
    return _outcome(found, frame, request, watch)


def _of_several(proposals, n, rng, request):
    """Draws of a mixture of the proposals of several modes, or of one that grows beyond these.

    It grows where the weights of the first cannot be trusted or have no variance, as where a part
    of the posterior is far from all modes, and takes its place if its weights are better.
    """
    found = mixed_draws(proposals, n, rng)
    k = found.certificate.pareto_k
    if (found.holds and k <= FINITE) or not may_grow(proposals, request):
        return found
    grown = grown_draws(proposals, n, rng)
    is_better = grown is not None and not (found.holds and grown.certificate.pareto_k > k)
    return grown if is_better else found


def _few_are_effective(proposal, share, rng):
    """Whether less than a share of the first draws is effective, so that no more need be tried."""
    psi = rng.standard_normal((TRIED, proposal.n_parameters))
    with np.errstate(all="ignore"):
        log_weights = 0.5 * np.square(psi).sum(axis=1) - proposal.exact.values(psi)
    return certified(log_weights).ess < share * TRIED


def _budget(target, request):
    """The `Budget` of chains in lockstep: as many gradients as chains on all rows would take."""
    seconds = seconds_of_rows(target, target.n_rows)

    def tell(n_gradients):
        warn_of_lockstep(n_gradients * seconds, target.n_parameters, REMEDY)

    return Budget(leapfrogs_of_chains(request), tell)


def _gives_way(found, n_draws, seconds, n_modes):
    """Whether chains on all rows, which take so many seconds, are worth more than these draws.

    Between several modes chains may not cross: draws that hold are kept.
    """
    if not found.holds or n_modes > 1:
        return not found.holds
    poor = found.ess < POOR * n_draws
    tails = not found.chains and found.certificate.has_heavy_tail
    return seconds <= EXACT_SECONDS and (poor or tails)


def _outcome(found, frame, request, watch):
    """The `Outcome` of certified draws, with their diagnostics and evidence."""
    draws = frame.theta(found.phi).reshape(request.n_chains, request.n_draws, -1)
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    measured = found.measured
    measured |= {f"lockstep_{name}": value for name, value in found.chains.items()}
    rows = np.full(draws.shape[:2], float(frame.target.n_rows))
    chosen = chosen_without_steps(Importance(), frame.kind, frame.target.n_rows)
    return Outcome(draws, chosen, measured, rows, evidence=found.evidence(1))
