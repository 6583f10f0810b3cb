r"""The exact noise of each gradient estimator at posterior draws, without sampling.

The pseudo-variance of Putcha, Nemeth and Fearnhead (2023, eq. 6) is the trace of the covariance of
an estimate over all batches. With a_i the contribution of row i (`skbayes_sg.gradients`), in
coordinates whitened by the Laplace approximation at the mode, it is:

* for n uniform rows with replacement ``[N Σ ‖a_i‖² - ‖Σ a_i‖²] / n``, and without replacement
  ``(N - n)/(N - 1)`` times as much;
* for n rows with probabilities p_i, with replacement, ``[Σ ‖a_i‖²/p_i - ‖Σ a_i‖²] / n``;
* for row i included independently with probability π_i (Poisson sampling)
  ``Σ (1/π_i - 1) ‖a_i‖²``.

All are linear in ‖a_i‖² and ‖Σ a_i‖², so their means over the draws need two passes over the rows
and a few numbers for each row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import streams
from .._base import weights as weighting
from .._base.threads import one_blas_thread
from .._base.typing import ArrayLike, MatrixLike
from .._base.validation import check_count, is_whole
from ..geometry import preconditioning
from ..geometry.frame import build_frame
from ..geometry.mode import find_centre
from ..gradients import SAGA, SVRG, ControlVariate, Gradient, Minibatch, Taylor
from ..recipe.measure import Survey
from ..subsampling import Preferential
from .full_scores import target_of, unconstrained

__all__ = ["GradientNoise", "gradient_noise"]

REMEMBERING = (SAGA, SVRG)  # estimators whose noise depends on gradients that they have stored
GRADIENTS: dict[str, Any] = {
    "minibatch": Minibatch,
    "control_variate": ControlVariate,
    "taylor": Taylor,
}
GRADIENTS |= {"saga": SAGA, "svrg": SVRG}
PREFERENTIAL = ("gradient", "hessian", "posterior", "exact", "capped")
SCHEMES = ("uniform", "uniform_without_replacement", *PREFERENTIAL, "poisson")
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # default batch sizes, as shares of the rows


class GradientNoise:
    """Pseudo-variances of gradient estimators, as a table.

    Parameters
    ----------
    columns : dict of str to array
        ``gradient``, ``subsampling`` (strings), ``batch_size``, ``share`` and ``pseudo_variance``,
        with one entry for each row of the table.
    n_rows, n_parameters, n_points : int
        Numbers of rows, of parameters, and of draws that were averaged over.

    Examples
    --------
    >>> from skbayes_sg.inspection.gradient_noise import GradientNoise
    >>> columns = {"gradient": ["taylor"], "subsampling": ["uniform"], "batch_size": [10]}
    >>> columns |= {"share": [0.01], "pseudo_variance": [0.4]}
    >>> GradientNoise(columns, n_rows=1000, n_parameters=3, n_points=10)
    pseudo-variance of the gradient, 1000 rows, 3 parameters, mean over 10 draws
    gradient  subsampling  n = 10 (1%)
    taylor    uniform              0.4
    """

    def __init__(self, columns: Any, n_rows: int, n_parameters: int, n_points: int) -> None:
        self.columns = {name: np.asarray(values) for name, values in columns.items()}
        self.n_rows, self.n_parameters, self.n_points = n_rows, n_parameters, n_points

    def __getitem__(self, column):
        """A column of the table, with one value for each row."""
        return self.columns[column]

    def curve(self, gradient: str, subsampling: str) -> np.ndarray:
        """Pseudo-variances of one estimator, one for each batch size.

        Parameters
        ----------
        gradient, subsampling : str

        Returns
        -------
        ndarray
            The values in the order of the batch sizes.
        """
        here = (self["gradient"] == gradient) & (self["subsampling"] == subsampling)
        if not here.any():
            raise KeyError((gradient, subsampling))
        return self["pseudo_variance"][here]

    def to_frame(self) -> Any:
        """The table as a `pandas.DataFrame`, with a row for each estimator and batch size."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def _lines(self):
        """Yield the cells of the header and of one line for each estimator."""
        pairs = dict.fromkeys(zip(self["gradient"], self["subsampling"], strict=True))
        sizes = dict.fromkeys(zip(self["batch_size"], self["share"], strict=True))
        yield [
            "gradient",
            "subsampling",
            *(f"n = {n} ({share:.2g}%)" for n, share in ((n, 100 * s) for n, s in sizes)),
        ]
        for pair in pairs:
            yield [*pair, *(f"{value:.3g}" for value in self.curve(*pair))]

    def __repr__(self):
        lines = list(self._lines())
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        left = [f"{line[0]:<{widths[0]}}  {line[1]:<{widths[1]}}" for line in lines]
        right = [
            "".join(f"  {cell:>{w}}" for cell, w in zip(line[2:], widths[2:], strict=True))
            for line in lines
        ]
        heading = (
            f"pseudo-variance of the gradient, {self.n_rows} rows, {self.n_parameters} parameters, "
            f"mean over {self.n_points} draws"
        )
        return "\n".join([heading, *(a + b for a, b in zip(left, right, strict=True))])


def gradient_noise(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    *,
    gradients: Sequence[str] = ("minibatch", "control_variate", "taylor", "saga"),
    subsampling: Sequence[str] = ("uniform", "posterior", "capped"),
    batch_sizes: Sequence[int] | None = None,
    n_points: int = 10,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> GradientNoise:
    r"""Pseudo-variance of gradient estimators at posterior draws, against the share of data used.

    This is the trace of the covariance of the estimated :math:`\nabla_\varphi U` over all batches,
    in coordinates :math:`\theta = \hat\theta + F \varphi` that are whitened by the Laplace
    approximation at the mode (:math:`F F^\top = H^{-1}`). There the posterior has about unit
    variance, so the number has no unit: with D parameters, SGLD with step size h raises posterior
    variances by the share :math:`h V / (4 D)` on average. With :math:`a_i` the contribution of row
    i, it is

    .. math::

        V_{\text{uniform}} = \frac1n \Bigl[ N \sum_i \|a_i\|^2 - \|\sum_i a_i\|^2 \Bigr], \quad
        V_p = \frac1n \Bigl[ \sum_i \frac{\|a_i\|^2}{p_i} - \|\sum_i a_i\|^2 \Bigr], \quad
        V_\pi = \sum_i \Bigl( \frac1{\pi_i} - 1 \Bigr) \|a_i\|^2,

    averaged over draws. No batch is drawn, so the numbers are exact at these draws
    (``tests/inspection/test_gradient_noise.py::test_pseudo_variance_is_that_of_all_batches``).

    Parameters
    ----------
    estimator : BayesianLogisticRegression, BayesianLinearRegression or another regression
        A fitted estimator; the noise is computed at its draws. Parameters that must be positive,
        such as the standard deviation of the noise, count as their logarithms.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The data of the fit.
    y : array-like of shape (n_rows,)
        Labels or responses of the rows.
    gradients : sequence of str
        Some of "minibatch", "control_variate", "taylor", "saga" and "svrg". The last two remember
        gradients, which are assumed to be from independent posterior draws: one draw for each row
        for "saga", one for all rows for "svrg". This holds long after the gradients were stored.
    subsampling : sequence of str
        Some of "uniform"; "uniform_without_replacement"; "gradient", "hessian" and "posterior", the
        weights of `Preferential`; "exact", with probabilities in proportion to :math:`\|a_i\|` at
        every draw, which is the lower bound but not affordable; "capped", which with the p of
        "posterior" and :math:`\pi_i = \min(1, c\, p_i)`, :math:`\sum \pi_i = n`, always takes the
        m rows with :math:`\pi_i = 1` and draws n - m of the others with replacement; "poisson",
        which includes each row independently with probability :math:`\pi_i`, n rows on average.
    batch_sizes : sequence of int, optional
        Numbers of rows of a step. The default is 0.1 %, 0.3 %, 1 %, 3 %, 10 % and 30 % of the rows.
    n_points : int, default=10
        Number of draws to average over, at least 2. They are evenly spaced over all chains.
    sample_weight : array-like of shape (n_rows,), optional
        As given to `fit`.
    exposure : array-like of shape (n_rows,), optional
        Exposures of counts, as given to `fit`.

    Returns
    -------
    GradientNoise
        It prints as a table; ``.to_frame()`` converts it for pandas.

    Raises
    ------
    TypeError
        For an estimator of another kind.
    ValueError
        For names, sizes or labels that cannot be used.

    References
    ----------
    S. Putcha, C. Nemeth and P. Fearnhead (2023). Preferential subsampling for stochastic gradient
    Langevin dynamics. AISTATS, eq. 6 and figure 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.inspection.gradient_noise import gradient_noise
    >>> X, y = make_classification(1000, 5, weights=[0.97], random_state=0)
    >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
    >>> noise = gradient_noise(model, X, y, gradients=["minibatch", "taylor"], batch_sizes=[10])
    >>> bool(noise.curve("taylor", "posterior")[0] < noise.curve("minibatch", "posterior")[0])
    True
    """
    names = _names("gradients", gradients, GRADIENTS), _names("subsampling", subsampling, SCHEMES)
    target = target_of(estimator, X, y, sample_weight, exposure)
    sizes = _sizes(batch_sizes, target.n_rows)
    with one_blas_thread:
        survey = _survey(target)
        points = _points(survey.frame, estimator.posterior_, n_points)
        rows = []
        for name in names[0]:
            moments = _moments(survey, GRADIENTS[name](), points)
            for scheme in names[1]:
                rule = _rule(scheme, survey, moments)
                rows += [(name, scheme, n, n / target.n_rows, rule(n)) for n in sizes]
    titles = ("gradient", "subsampling", "batch_size", "share", "pseudo_variance")
    columns = dict(zip(titles, zip(*rows, strict=True), strict=True))
    return GradientNoise(columns, target.n_rows, target.n_parameters, len(points))


# -- arguments ------------------------------------------------------------------------------------


def _names(argument, values, known):
    """The names as a list; `ValueError` for an unknown name, or for none."""
    values = [values] if isinstance(values, str) else list(values)
    strange = [value for value in values if value not in known]
    if strange or not values:
        raise ValueError(f"{argument} must be among {list(known)}, got {strange or values!r}.")
    return values


def _sizes(batch_sizes, n_rows):
    """The checked batch sizes: positive ints up to the number of rows."""
    if batch_sizes is None:
        return sorted({max(1, round(share * n_rows)) for share in SHARES})
    sizes = list(np.atleast_1d(np.asarray(batch_sizes, dtype=object)))
    if not sizes or not all(map(is_whole, sizes)) or min(sizes) < 1 or max(sizes) > n_rows:
        raise ValueError(f"batch_sizes must be ints from 1 to {n_rows}, got {batch_sizes!r}.")
    return [int(n) for n in sizes]


def _survey(target):
    """A `Survey` around the mode, in coordinates whitened by the Laplace approximation."""
    centre = find_centre(target, dense=True, rng=streams.fixed())
    return Survey(build_frame(target, centre, "hessian"))


def _points(frame, posterior, n_points):
    """`n_points` draws, evenly spaced over the chains, in the whitened coordinates of a frame."""
    check_count("n_points", n_points, least=2)
    draws = posterior.sampled.reshape(-1, posterior.flat.shape[-1])
    weights = np.ones(posterior.n_draws) if posterior.weights is None else posterior.weights
    chosen = weighting.representatives(np.tile(weights, posterior.n_chains), n_points)
    thetas = unconstrained(draws[chosen], frame.target)
    return preconditioning.solve(frame.F, thetas - frame.centre.theta)


# -- contributions of rows ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Moments:
    """The moments of the contributions a_i of rows that the formulas for pseudo-variances need.

    The a_i depend on a scenario that all rows share (the draw, for SVRG also the anchor), and for
    SAGA on the memory of the row, which is independent of those of the other rows.
    """

    gradient: Gradient
    points: np.ndarray  # the draws, in whitened coordinates
    squares: np.ndarray  # (n_rows,), the mean of ‖a_i‖² over scenarios and memories
    scatter: np.ndarray  # (n_rows,), the variance of a_i over memories, averaged over scenarios
    sums: np.ndarray  # (n_scenarios, n_parameters), the Σ a_i of each scenario, mean over memories
    length: float  # the mean of (Σ ‖a_i‖)²

    @property
    def square(self):
        """Mean of ‖Σ a_i‖²."""
        return _mean_square(self.sums) + self.scatter.sum()


def _mean_square(sums):
    """Mean over the scenarios of the squared length of a sum."""
    return float((sums**2).sum(axis=1).mean())


def _terms(survey, gradient, rows, A, points):
    """Weighted derivatives of rows with respect to predictors, (n_scenarios, n_memories, n, K).

    The scenarios are the points, and for SVRG the pairs of a point and another one as anchor. For
    SAGA the memories of a row are its gradients at the other points.
    """
    if not isinstance(gradient, REMEMBERING):
        return survey.terms_at(gradient, rows, A, points)[:, None]
    terms, P = survey.terms_at(Minibatch(), rows, A, points), len(points)
    others = np.array([np.delete(np.arange(P), s) for s in range(P)])
    differences = terms[:, None] - terms[others]
    if isinstance(gradient, SAGA):
        return differences
    return differences.reshape(P * (P - 1), 1, *terms.shape[1:])


def _scenario_sums(survey, A, terms):
    """Σ a_i over the rows of a design A, averaged over memories: (n_scenarios, n_parameters)."""
    sums = [survey.target.row_sum(A, t) for t in terms.mean(axis=1)]
    return preconditioning.pull_back(survey.frame.F, np.transpose(sums)).T


def _lengths(survey, A, terms):
    """The lengths ‖a_i‖ of rows of a design A in whitened coordinates, from terms (..., n, K)."""
    JF = survey.target.along(A, survey._matrix(survey.frame.F))
    gram = np.einsum("nkd,nld->nkl", JF, JF)
    squares = (np.einsum("...nk,nkl->...nl", terms, gram) * terms).sum(axis=-1)
    return np.sqrt(np.maximum(squares, 0.0))


def _over_rows(survey, measure, points):
    """The results of ``measure(rows)`` for all rows, in chunks of bounded memory."""
    target = survey.target
    return target.over_chunks(measure, target.n_features + len(points) ** 2 * survey.K)


def _moments(survey, gradient, points):
    """The `_Moments` of an estimator, by one pass over the rows."""

    def measure(rows):
        A = survey.target.design(rows)
        terms = _terms(survey, gradient, rows, A, points)
        lengths = _lengths(survey, A, terms)
        squares = (lengths**2).mean(axis=(0, 1))
        middle = _lengths(survey, A, terms.mean(axis=1))
        scatter = squares - (middle**2).mean(axis=0)
        spread = lengths.var(axis=1).mean(axis=0).sum()
        sums = _scenario_sums(survey, A, terms)
        return squares, scatter, sums, lengths.mean(axis=1).sum(axis=1), spread

    parts = list(zip(*_over_rows(survey, measure, points), strict=True))
    length = float((sum(parts[3]) ** 2).mean() + sum(parts[4]))
    squares, scatter = np.concatenate(parts[0]), np.concatenate(parts[1])
    return _Moments(gradient, points, squares, scatter, sum(parts[2]), length)


# -- pseudo-variances -----------------------------------------------------------------------------


def _rule(scheme, survey, moments):
    """The pseudo-variance under a scheme, as a function of the batch size."""
    N, squares = survey.target.n_rows, moments.squares
    if scheme == "uniform":
        return lambda n: float((N * squares.sum() - moments.square) / n)
    if scheme == "uniform_without_replacement":
        plain = _rule("uniform", survey, moments)
        return lambda n: plain(n) * (N - n) / (N - 1)
    if scheme == "exact":
        return lambda n: float((moments.length - moments.square) / n)
    p = _chances(scheme, survey, moments)
    if scheme == "poisson":
        return lambda n: float(((1.0 / inclusion(p, n) - 1.0) * squares).sum())
    if scheme == "capped":
        return lambda n: _capped(survey, moments, p, n)
    return lambda n: float(((squares / p).sum() - moments.square) / n)


def _chances(scheme, survey, moments):
    """The probabilities p_i of rows under `Preferential` with the weights of a scheme."""
    N = survey.target.n_rows
    main = moments.gradient.measured(N, 1)[0][0]
    points = None if survey.frame.whitened and survey.K == 1 else moments.points
    named = {"gradient": survey.gradient_norms, "hessian": survey.hessian_norms}
    measure = named.get(scheme, lambda rows: survey.row_noise(main, rows, points))
    return Preferential().probabilities(survey.of_all_rows(measure))


def inclusion(p, n):
    """The inclusion probabilities π_i = min(1, c p_i) with Σ π_i = n, for n of at most all rows."""
    if n == len(p):
        return np.ones(len(p))
    sizes = -np.sort(-p)
    rest = np.cumsum(sizes[::-1])[::-1]  # rest[m] is the sum of sizes[m:]
    left = n - np.arange(n)
    m = int(np.argmax(left * sizes[:n] <= rest[:n]))
    return np.minimum(1.0, left[m] / rest[m] * p)


def _capped(survey, moments, p, n):
    """The pseudo-variance of n rows of which those with π_i = 1 are always taken.

    The others are drawn with replacement, with probabilities in proportion to p.
    """
    always = np.flatnonzero(inclusion(p, n) >= 1.0)
    if len(always) >= n:
        return 0.0
    rest = np.delete(np.arange(len(p)), always)
    q = p[rest] / p[rest].sum()
    sums = moments.sums - _sums_of(survey, moments, always)
    square = _mean_square(sums) + moments.scatter[rest].sum()
    return float(((moments.squares[rest] / q).sum() - square) / (n - len(always)))


def _sums_of(survey, moments, rows):
    """Σ a_i over some rows in each scenario, averaged over memories: like `_Moments.sums`."""
    total, size = np.zeros_like(moments.sums), 2048
    for first in range(0, len(rows), size):
        some = rows[first : first + size]
        A = survey.target.design(some)
        terms = _terms(survey, moments.gradient, some, A, moments.points)
        total += _scenario_sums(survey, A, terms)
    return total
