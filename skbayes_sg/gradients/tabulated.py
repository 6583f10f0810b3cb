"""Taylor gradient with tables for groups of rows; "auto" uses it for skewed parameters.

The predictors of all rows of a rare level change much with the coefficient of that level, and
little with anything else: a Taylor expansion does not describe these rows in the tail. With s the
value of the level's coefficient, each row is compared with *itself at that value* instead::

    t_k = ∂ℓ_k/∂η(η_k) - Σ_j λ_j ∂ℓ_k/∂η(η̂_k + s_j)

with λ the weights of linear interpolation between the two knots s_j around s. The sum of the second
part over the group depends on s alone, and is linear in λ: it is tabulated at the knots, once, and
the estimate is exactly unbiased. All other rows have their Taylor terms. The remaining noise comes
from the other parameters of a row. It is for models with one predictor a row.
"""

from .._base.jit import jit
from ..kernels.layout import FACT_PREDICTOR
from ._base import Gradient

__all__ = ["Tabulated"]


@jit
def _terms(facts, derivative, curvature, rows, start, stop, bracket, eta, extra_out, terms_out):
    centre, own, group = FACT_PREDICTOR, FACT_PREDICTOR + 1, FACT_PREDICTOR + 2
    reference, change = extra_out, eta
    derivative(facts, rows, start, stop, eta, terms_out)
    for k in range(stop - start):
        reference[k, 0] = facts[rows[start + k], centre]
        change[k, 0] = eta[k, 0] - reference[k, 0]
    curvature(facts, rows, start, stop, reference, change)
    for k in range(stop - start):
        i = rows[start + k]
        if facts[i, group] < 0.0:
            terms_out[k, 0] -= facts[i, own] + change[k, 0]
    for side in range(2):
        for k in range(stop - start):
            i = rows[start + k]
            g = int(facts[i, group])
            reference[k, 0] = facts[i, centre] + (bracket[g, side] if g >= 0 else 0.0)
        derivative(facts, rows, start, stop, reference, change)
        for k in range(stop - start):
            g = int(facts[rows[start + k], group])
            if g >= 0:
                between = bracket[g, 2]
                terms_out[k, 0] -= (between if side == 1 else 1.0 - between) * change[k, 0]


class Tabulated(Gradient):
    """Taylor terms; for rows of a group, differences along the parameter of the group.

    "auto" chooses it if a few parameters are so skewed that it warps the coordinates. For a row
    of a group, ``t_k = ∂ℓ_k/∂η(η_k) - Σ_j λ_j ∂ℓ_k/∂η(η̂_k + s_j)``, with s_j the two knots around
    the place of the group, and λ_j the weights of linear interpolation; the sum of the second part
    over the group is tabulated exactly. All other rows have their Taylor terms. The estimate is
    unbiased. Users cannot request it: only "auto" makes the groups, for models with one predictor.

    Examples
    --------
    >>> from skbayes_sg.gradients import Tabulated
    >>> Tabulated()
    Tabulated()
    """

    terms = staticmethod(_terms)
    uses_constant = True
    uses_centre = True
    uses_linear = True
    uses_tables = True
