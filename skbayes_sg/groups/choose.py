"""Which sampler draws group effects."""

from ..priors import Flat, Normal
from ..priors.families import of_family
from .collapsed_hmc import run_chains
from .linear_exact import run_exact
from .linear_slopes import run_slopes

__all__ = ["sample_groups"]


def sample_groups(problem, request, watch=None):
    """The `GroupOutcome` of a `GroupProblem`.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    request : skbayes_sg.recipe.request.Request
    watch : callable, optional
        ``watch(so_far, share)``: see `skbayes_sg.recipe.choose.sample_posterior`.
    """
    normal = of_family(problem.target.prior[: problem.n_coefficients], Normal, Flat).all()
    if not (problem.is_linear and normal and problem.n_factors == 1):
        return run_chains(problem, request, watch)
    run = run_slopes if any(problem.slopes) else run_exact
    return run(problem, request, watch)
