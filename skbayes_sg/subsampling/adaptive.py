"""Adaptive subsample size (Putcha, Nemeth and Fearnhead 2023, eq. 19 and algorithm 2): ASGLD-CV.

The noise of a control variate grows as ‖θ - θ̂‖², so for a threshold V₀ of its pseudo-variance the
rows of a step are ``n_t = ‖θ_t - θ̂‖² Σ_i L_i²/p_i / V₀``, with L_i the Lipschitz constants of the
gradients of the rows. With V₀ the value for n rows at the 95 % quantile q of squared distances,
as in sec. 5.3.3 of the paper, the constants cancel: ``n_t = ⌈n ‖θ_t - θ̂‖² / q⌉``. The number of
rows is known before they are drawn, so the estimate is unbiased.
"""

import numpy as np

from .._base.jit import inlined, pointee
from .._base.validation import check_whole
from ..exceptions import InvalidParameterError
from .preferential import Preferential, draw_row
from .uniform import Uniform

__all__ = ["Adaptive"]


@inlined
def n_rows_at(subsample, position):
    """Return the number of rows of a step, ⌈n ‖position‖² / q⌉, clipped to [least, most]."""
    distance = 0.0
    for j in range(position.shape[0]):
        distance += position[j] * position[j]
    wanted = np.ceil(subsample.batch_size * distance / subsample.reach)
    return int(min(max(wanted, float(subsample.least)), float(subsample.most)))


@pointee
def _draw_uniform(rng, subsample, position, rows_out, coefficients_out):
    N, n = subsample.n_rows, n_rows_at(subsample, position)
    for k in range(n):
        rows_out[k] = int(rng.random() * N)
        coefficients_out[k] = N / n
    return n


@pointee
def _draw_preferential(rng, subsample, position, rows_out, coefficients_out):
    n = n_rows_at(subsample, position)
    share = subsample.batch_size / n
    for k in range(n):
        rows_out[k] = draw_row(rng, subsample)
        coefficients_out[k] = share * subsample.chances[rows_out[k], 1]
    return n


class Adaptive(Preferential):
    """More rows when the chain is far from the centre: ASGLD-CV and ASGLD-CV-PS.

    ``n_t = ⌈n ‖θ_t - θ̂‖² / q⌉`` rows with replacement at step t, for the batch size n and the 95 %
    quantile q of the squared distance from the centre (of pilot draws if there are any, otherwise
    of the Laplace approximation); distances are measured in the chain's preconditioned coordinates.
    The estimate is unbiased
    (``tests/subsampling/test_adaptive.py::test_unbiased_at_every_position``). It is for gradients
    that are exact at the centre, "control_variate" and "taylor". The fitted attribute
    ``batch_sizes_`` says how many rows were used for each draw.

    Parameters
    ----------
    min_size : int, default=1
        Smallest number of rows a step.
    max_size : int, optional
        Largest number of rows a step. The default is twice the batch size, or all rows if there are
        fewer.
    preferential : bool, default=False
        Whether rows are drawn with the probabilities of `Preferential` (ASGLD-CV-PS) instead of
        uniformly (ASGLD-CV).
    uniform_share : float in [0, 1], default=0.1
        As in `Preferential`; only used with ``preferential=True``.
    weights : {"posterior", "gradient", "hessian"}, default="posterior"
        As in `Preferential`; only used with ``preferential=True``.

    Raises
    ------
    InvalidParameterError
        By `fit`, if sizes are not positive ints, or `min_size` exceeds the largest number of rows;
        for a share outside [0, 1] and for unknown weights, also where they are not used; and with
        ``preferential=True`` where `Preferential` raises it.
    ValueError
        By `fit`, if the gradient is not exact at the centre.

    References
    ----------
    S. Putcha, C. Nemeth and P. Fearnhead (2023). Preferential subsampling for stochastic gradient
    Langevin dynamics. AISTATS, algorithm 2.

    Examples
    --------
    >>> from skbayes_sg.subsampling import Adaptive
    >>> Adaptive(min_size=5, preferential=True)
    Adaptive(min_size=5, preferential=True)
    """

    needs_reach = True

    def __init__(
        self,
        min_size: int = 1,
        max_size: int | None = None,
        preferential: bool = False,
        uniform_share: float = 0.1,
        weights: str = "posterior",
    ) -> None:
        super().__init__(uniform_share=uniform_share, weights=weights)
        self.min_size = min_size
        self.max_size = max_size
        self.preferential = preferential

    @property
    def needs_weights(self):
        """Whether rows are drawn with unequal probabilities: the parameter `preferential`."""
        return self.preferential

    @property
    def draw(self):
        """The kernel that draws the rows of a step, with equal or with unequal probabilities."""
        return _draw_preferential if self.preferential else _draw_uniform

    def most_rows(self, n_rows, batch_size):
        """Return `max_size`, by default twice the batch size, but at most the number of rows."""
        most = 2 * batch_size if self.max_size is None else self.max_size
        return min(most, n_rows)

    def check(self, n_rows, batch_size):
        """Raise `InvalidParameterError` for limits, a share or weights that cannot be used."""
        super().check(n_rows, batch_size)
        check_whole("min_size", self.min_size, self, 1)
        check_whole("max_size", self.max_size, self, 1, none=True)
        if self.min_size > self.most_rows(n_rows, batch_size):
            raise InvalidParameterError(
                f"The min_size of {self!r} must not exceed the largest number of rows a step: it "
                f"is {self.most_rows(n_rows, batch_size)} with batch_size={batch_size}."
            )

    def state(self, n_rows, batch_size, chances=None, reach=1.0):
        """Return a fresh `Subsample`; `reach` is q, the squared distance for `batch_size` rows."""
        scheme = super() if self.preferential else Uniform()
        plain = scheme.state(n_rows, batch_size, chances)
        most = self.most_rows(n_rows, batch_size)
        return plain._replace(least=int(self.min_size), most=most, reach=float(reach))
