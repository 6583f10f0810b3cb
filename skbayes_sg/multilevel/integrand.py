"""The function whose expectation is computed, and the tolerance."""

import numpy as np

from .._base.validation import is_real

__all__ = ["Integrand", "Tolerance"]


class Integrand:
    """A function of parameters, with the shape of its values after the first call.

    Parameters
    ----------
    func : callable
        ``func(theta)`` of an array (n_paths, n_draws, n_parameters) returns the values at all
        draws, (n_paths, n_draws, ...).

    Attributes
    ----------
    spread : float or ndarray of shape (n_components,)
        Variance of the values over draws of the posterior; 0 where none are known.
    """

    def __init__(self, func):
        if not callable(func):
            raise TypeError(f"func must be callable, got {func!r}.")
        self.func, self.shape, self.spread = func, None, 0.0

    def values(self, theta):
        """Values, (n_paths, n_draws, n_components); `ValueError` unless they are finite numbers."""
        values = np.asarray(self.func(theta))
        lead = theta.shape[:2]
        if values.dtype.kind not in "biuf" or values.shape[:2] != lead:
            raise ValueError(
                f"func must return an array of numbers whose shape begins with {lead}, "
                f"got an array of {values.dtype} of shape {values.shape}."
            )
        if self.shape is None:
            self.shape = values.shape[2:]
        if values.shape[2:] != self.shape:
            raise ValueError(
                f"func must return values of the same shape at every call, got {values.shape[2:]} "
                f"after {self.shape}."
            )
        values = values.astype(np.float64, copy=False).reshape(*lead, -1)
        if not np.isfinite(values).all():
            bad = values[~np.isfinite(values)][0]
            raise ValueError(
                f"func returned {bad} at a draw of the posterior, but an expectation needs finite "
                "values at all draws."
            )
        return values

    def differences(self, theta):
        """Return Δ_l (n_paths, n_components) of paths (n_paths, n_kept, n_states, n_parameters).

        This is the average over the instants of the fine path, less that of the coarse paths, of
        which level 0 has none.
        """
        n, kept, n_states, D = theta.shape
        theta = theta.transpose(0, 2, 1, 3).reshape(n * n_states, kept, D)
        averages = self.values(theta).mean(axis=1).reshape(n, n_states, -1)
        if n_states == 1:
            return averages[:, 0]
        return averages[:, 0] - averages[:, 1:].mean(axis=1)


class Tolerance:
    """The requested root mean square error: absolute, or in units of |value|."""

    def __init__(self, rtol, atol):
        if (rtol is None) == (atol is None):
            raise ValueError(
                f"Exactly one of rtol and atol must be given, got rtol={rtol!r} and atol={atol!r}. "
                "rtol is relative to the absolute value of each component, atol is in its units."
            )
        self.name, self.size = ("rtol", rtol) if atol is None else ("atol", atol)
        if not (is_real(self.size) and np.isfinite(self.size) and self.size > 0):
            raise ValueError(f"{self.name} must be a positive finite number, got {self.size!r}.")

    def __str__(self):
        return f"{self.name}={float(self.size):g}"

    def of(self, value):
        """The tolerance ε of each component."""
        return float(self.size) * (np.abs(value) if self.name == "rtol" else np.ones_like(value))
