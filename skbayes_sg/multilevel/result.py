"""An estimate of an expectation, with its errors."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Expectation"]


@dataclass(frozen=True)
class Expectation:
    """A posterior expectation with its estimated errors and its cost.

    Parameters
    ----------
    value : float or ndarray
        The estimate, in the shape of a value of the function.
    standard_error : float or ndarray
        Standard deviation of the estimate, √(Σ_l V_l/N_l).
    bias : float or ndarray
        Estimated size of the bias because of the missing finer levels, from the means of the last
        levels and their standard errors. It is zero after randomised truncation.
    tolerance : float or ndarray
        The requested root mean square error, in units of the value.
    step_sizes : ndarray of shape (n_levels,)
        The step sizes h_l.
    samples : ndarray of int of shape (n_levels,)
        The numbers N_l of samples in the estimate.
    means, variances : ndarrays of shape (n_levels, ...)
        Contributions of the levels to the value, and variances V_l of the differences. They are NaN
        if a level has no samples, or only one.
    order : float
        The measured β: variances fall as h^β.
    cost : int
        Rows read by all steps of all paths, with pilots but without the search for the mode.
    passes : float
        The cost in passes over the data.

    Attributes
    ----------
    levels : int
        Number of levels.
    error : float or ndarray
        √(standard_error² + bias²), the estimated root mean square error.
    is_accurate : bool
        Whether the error is within the tolerance in all components.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> model = BayesianLogisticRegression(random_state=0).fit(X, X[:, 0] > 0.5)
    >>> found = model.expect(lambda p: p["coef"][..., 0, 0], rtol=0.02, X=X, y=X[:, 0] > 0.5)
    >>> bool(found.error <= found.tolerance)
    True
    """

    value: np.ndarray
    standard_error: np.ndarray
    bias: np.ndarray
    tolerance: np.ndarray
    step_sizes: np.ndarray
    samples: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    order: float
    cost: int
    passes: float

    @property
    def levels(self) -> int:
        """Number of levels."""
        return len(self.step_sizes)

    @property
    def error(self) -> np.ndarray:
        """√(standard_error² + bias²), the estimated root mean square error."""
        return np.hypot(self.standard_error, self.bias)

    @property
    def is_accurate(self) -> bool:
        """Whether the estimated error is within the tolerance in all components."""
        return bool(np.all(self.error <= self.tolerance))

    def __repr__(self):
        bias = f"bias at most about {np.max(self.bias):.2g}" if np.any(self.bias) else "no bias"
        error = f"standard error {np.max(self.standard_error):.2g}, {bias}"
        if np.size(self.value) == 1:
            head = f"{float(np.squeeze(self.value)):.6g} ({error})"
        else:
            head = f"{np.size(self.value)} components (largest {error})"
        lines = [head, f"cost: {self.cost} rows, {self.passes:.3g} passes over the data"]
        lines.append("level  step size    samples")
        for level, (h, n) in enumerate(zip(self.step_sizes, self.samples, strict=True)):
            lines.append(f"{level:5}  {h:9.3g}  {n:9}")
        return "\n".join(lines)
