"""Checks of draws, scores, weights and labels, and their conversion to plain arrays."""

import numpy as np

__all__ = ["as_chains", "as_labels", "as_matrix", "as_pair", "as_weights", "check_same_shape"]


def as_chains(name, draws):
    """Draws (n_chains, n_draws, d) as float64, which may be infinite or NaN; `ValueError` if not.

    There must be at least one draw, and one parameter.
    """
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim != 3 or x.size == 0:
        raise ValueError(f"{name} must have the shape (n_chains, n_draws, d), got {x.shape}.")
    return x


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


def as_pair(draws, scores):
    """The draws of all chains and their scores as two matrices (n, d): see `as_matrix`."""
    x, s = as_matrix("draws", draws), as_matrix("scores", scores)
    check_same_shape(draws, scores)
    return x, s


def check_same_shape(draws, scores):
    """Raise `ValueError` if draws and their scores have different shapes."""
    one, other = np.shape(draws), np.shape(scores)
    if one != other:
        raise ValueError(f"draws and scores must have the same shape, got {one} and {other}.")


def as_labels(labels, n_parameters):
    """The names of the parameters as a list: x0, x1, ... if `labels` is None."""
    if labels is None:
        return [f"x{j}" for j in range(n_parameters)]
    if isinstance(labels, str) or len(labels) != n_parameters:
        raise ValueError(f"labels must be {n_parameters} names, got {labels!r}.")
    return list(labels)


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
