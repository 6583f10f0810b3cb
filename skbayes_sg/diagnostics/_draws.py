"""Conversion of draws, scores and weights to plain arrays."""

import numpy as np

__all__ = ["as_matrix", "as_weights"]


def as_matrix(name, draws):
    """The draws of all chains as one matrix (n, d) of float64; `ValueError` if not finite."""
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim not in (2, 3) or x.size == 0:
        raise ValueError(
            f"{name} must have the shape (n_draws, d) or (n_chains, n_draws, d), got {x.shape}."
        )
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must be finite.")
    return x.reshape(-1, x.shape[-1])


def as_weights(weights, draws):
    """The checked weights of the rows that `as_matrix` returns: those of a chain, for each chain.

    All are 1 if `weights` is None.
    """
    shape = np.shape(draws)
    n_chains, n_draws = shape[:2] if len(shape) == 3 else (1, shape[0])
    if weights is None:
        return np.ones(n_chains * n_draws)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n_draws,):
        raise ValueError(f"weights must have the shape ({n_draws},), got {w.shape}.")
    if not (np.isfinite(w).all() and (w >= 0.0).all() and (w > 0.0).any()):
        raise ValueError(
            "weights must be finite and nonnegative, and not all zero; got values from "
            f"{w.min():g} to {w.max():g}."
        )
    return np.tile(w, n_chains)
