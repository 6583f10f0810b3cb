"""The arguments of a `Posterior`: each is checked by one function, which names what is wrong."""

import math

import numpy as np

__all__ = ["checked_draws", "checked_edges", "checked_labels", "checked_scores", "checked_shapes"]


def _as_array(values):
    """Arrays as they are, memory-mapped ones too, and lists as arrays."""
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def checked_draws(flat):
    """The draws as an array; `ValueError` unless they are numbers with three axes."""
    wanted = "flat must be numbers of shape (n_chains, n_draws, n_parameters)"
    try:
        flat = _as_array(flat)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{wanted}: {error}") from None
    if flat.ndim != 3 or flat.dtype.kind not in "biuf":
        raise ValueError(f"{wanted}, got {flat.dtype} of shape {flat.shape}.")
    return flat


def checked_shapes(shapes, n):
    """The shapes as a dict; `ValueError` unless they are tuples for n parameters in all."""
    shapes = dict(shapes)
    try:
        total = sum(math.prod(shape) for shape in shapes.values())
    except TypeError:
        total = None
    if total != n:
        raise ValueError(
            f"shapes must have a tuple for each variable, with {n} parameters in all as flat has, "
            f"got {shapes!r}."
        )
    return shapes


def checked_scores(scores, flat):
    """The scores as an array; `ValueError` if they do not have the shape of the draws."""
    if scores is None:
        return None
    scores = _as_array(scores)
    if scores.shape != flat.shape:
        raise ValueError(
            f"scores must have the shape {flat.shape} of the draws, got {scores.shape}."
        )
    return scores


def checked_labels(labels, n):
    """The labels as a tuple; `ValueError` unless they are n different names."""
    names = tuple(labels)
    if isinstance(labels, str) or len(names) != n:
        got = f"the text {labels!r}" if isinstance(labels, str) else f"{len(names)}"
        raise ValueError(f"labels must be {n} names, one for each parameter, got {got}.")
    if len(set(names)) < n:
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"labels must differ from each other, got {twice!r} more than once.")
    return names


def checked_edges(edges, labels):
    """The positions of the labels `edges`; `ValueError` for other names."""
    unknown = [label for label in edges if label not in labels]
    if unknown:
        raise ValueError(f"edges must be among the labels, got {unknown[0]!r}.")
    return [labels.index(label) for label in edges]
