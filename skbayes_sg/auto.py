"""The default recipe: how a posterior is sampled when nobody says how.

1. A centre near the mode, and coordinates in which the posterior has unit width (`modes`, `frame`).
2. **Exact** where that is affordable (few rows): Hamiltonian Monte Carlo on all rows (`exact`).
3. **Stochastic gradients** otherwise: kinetic Langevin dynamics with the Taylor gradient, its step,
   rows and their chances chosen by what pilot chains meet, and checked (`stochastic`).
4. Where the rows that the noise asks for are no longer few, or the check fails twice: exact again,
   unless something was asked for that the exact sampler does not do.

What was chosen is returned beside the draws. Decisions depend on data and seed only, never on time.
"""

import numpy as np

from . import preconditioning
from .dynamics import Metropolis
from .exact import predicted_seconds, run_exact
from .frame import build_frame
from .gradients import Full
from .modes import check_independent, check_proper, find_centre
from .priors import FLAT, KIND
from .stochastic import Refused, run_stochastic

__all__ = ["sample_posterior"]

FEW_ROWS = 1000  # up to here every gradient is the full one
EXACT_SECONDS = 1.0  # predicted cost up to which the exact sampler is preferred


def _wants_exact(target, request):
    """Whether the request names, or leaves room for and affords, a sampler on all rows."""
    if request.sampler is not None:
        return isinstance(request.sampler, Metropolis)
    if isinstance(request.gradient, Full):
        return True
    if not (request.gradient is None and request.subsampling is None):
        return False
    if request.batch_size is not None:
        return request.batch_size >= target.n_rows
    few = target.n_rows <= FEW_ROWS
    return few or (request.is_open and predicted_seconds(target, request) <= EXACT_SECONDS)


def _preconditioner(target, request):
    if request.preconditioner != "auto":
        return request.preconditioner or "none"
    return "hessian" if target.n_parameters <= preconditioning.DENSE_LIMIT else "diagonal"


def sample_posterior(target, request, watch=None):
    """Draws from the posterior by the sampler asked for, or by the one that suits it.

    Parameters
    ----------
    target : skbayes_sg.engine.target.Target
    request : Request
    watch : callable, optional
        ``watch(draws, share) -> stop`` between chunks of the final run: a function that returns
        the draws so far, and the share of the run that is done.

    Returns
    -------
    Outcome
    """
    kind = _preconditioner(target, request)
    dense = kind == "hessian" or target.n_parameters <= preconditioning.DENSE_LIMIT
    if request.gradient is not None and request.gradient.uses_linear:
        dense = True  # the gradient itself is made of the Hessian
    rng = np.random.default_rng([request.seed, 1])
    flat = dense and (target.prior[:, KIND] == FLAT).any()
    if flat:
        check_independent(target)
    centre = find_centre(target, dense=dense, rng=rng)
    if flat:
        centre = check_proper(target, centre)
    frame = build_frame(target, centre, kind)
    if _wants_exact(target, request):
        return run_exact(frame, request, watch)
    try:
        return run_stochastic(frame, request, rng, watch)
    except Refused:
        return run_exact(frame, request, watch)
