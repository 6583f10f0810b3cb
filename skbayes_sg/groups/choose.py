"""The rule that says which sampler draws group effects."""

from ..priors import Flat, Normal
from ..priors.families import of_family
from .chains import run_chains
from .collapsed_hmc import CollapsedHMC
from .independent import run_independent, suits_independent
from .linear_crossed import CrossedGibbs
from .linear_exact import run_exact
from .linear_slopes import run_slopes

__all__ = ["sample_groups"]

MANY = 100  # coefficients, beyond which factors of matrices cost more than passes over rows


def sample_groups(problem, request, watch=None):
    """Sample the posterior of a `GroupProblem`; return the `GroupOutcome`.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    request : skbayes_sg.recipe.request.Request
    watch : callable, optional
        ``watch(so_far, share)``: see `skbayes_sg.recipe.choose.sample_posterior`.
    """
    normal = of_family(problem.target.prior[: problem.n_coefficients], Normal, Flat).all()
    slopes = any(problem.slopes)
    if problem.is_linear and normal and problem.n_factors == 1:
        return (run_slopes if slopes else run_exact)(problem, request, watch)
    if problem.is_linear and normal and not slopes and problem.n_coefficients <= MANY:
        return run_chains(problem, request, CrossedGibbs, watch)
    independent = None
    if normal and suits_independent(problem, request):
        independent = run_independent(problem, request, watch)
    return independent or run_chains(problem, request, CollapsedHMC, watch)
