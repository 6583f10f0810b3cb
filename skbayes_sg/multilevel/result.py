"""What an estimate of an expectation is, and what is known of its error."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Expectation"]


@dataclass(frozen=True)
class Expectation:
    """A posterior expectation with its estimated errors, and what it took.

    Parameters
    ----------
    value : float or ndarray
        The estimate, of the shape of a value of the function.
    standard_error : float or ndarray
        Standard deviation of the estimate, √(Σ_l V_l/N_l).
    bias : float or ndarray
        Estimated size of what is missing beyond the finest level, from the means of the last
        levels and their standard errors. Zero after randomised truncation, which has none.
    tolerance : float or ndarray
        The root mean square error that was asked for, in units of the value.
    step_sizes : ndarray of shape (n_levels,)
        h_l.
    samples : ndarray of int of shape (n_levels,)
        N_l, those that the estimate is made of.
    means, variances : ndarrays of shape (n_levels, ...)
        Of the differences of levels: what they add to the value, and V_l. Not a number where a
        level has no samples, or only one.
    order : float
        β, measured: variances fall as h^β.
    cost : int
        Rows touched by all steps of all paths, pilots included; the mode is not counted.
    passes : float
        The same in passes over the data.

    Attributes
    ----------
    levels : int
        Number of levels.
    error : float or ndarray
        √(standard_error² + bias²), the estimated root mean square error.
    is_accurate : bool
        Whether the error is within the tolerance, in all components.

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
    def levels(self):
        """Number of levels."""
        return len(self.step_sizes)

    @property
    def error(self):
        """√(standard_error² + bias²), the estimated root mean square error."""
        return np.hypot(self.standard_error, self.bias)

    @property
    def is_accurate(self):
        """Whether the estimated error is within the tolerance, in all components."""
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
