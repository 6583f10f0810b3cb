r"""Coefficients of K >= 3 classes, split into what the data determine and a common shift.

Class probabilities depend on the differences of the β_k alone. The posterior of their common shift
m = (1/K) Σ_k β_k is about the prior of m, and wide: each β_k has the uncertainty of m, whatever the
data say. A posterior therefore shows c_k = β_k - m, which sum to zero over the classes and have the
same probabilities; it keeps m beside them, because the prior and the scores are those of β = c + m.

In all arrays the last axis has the coefficients, class after class, then the K intercepts, if any.
"""

import numpy as np

__all__ = [
    "common_shift",
    "differences",
    "full_rank",
    "labels_of_full_rank",
    "names_of_axes",
    "pairs",
    "with_shift",
    "without_shift",
]


def _blocks(values, K, intercept):
    """Views (..., K, d) of the coefficients and (..., K, 1) of the intercepts, if there are any."""
    end = values.shape[-1] - (K if intercept else 0)
    parts = [values[..., :end], values[..., end:]] if intercept else [values]
    return [part.reshape(*values.shape[:-1], K, part.shape[-1] // K) for part in parts]


def _joined(blocks):
    """The blocks (..., K, n) of `_blocks` as one array, whose last axis has all their entries."""
    flat = [b.reshape(*b.shape[:-2], b.shape[-2] * b.shape[-1]) for b in blocks]
    return np.concatenate(flat, axis=-1)


def common_shift(beta, K, intercept):
    """The common shift m = (1/K) Σ_k β_k of each column and of the intercept, (..., d + 1)."""
    return _joined([b.mean(axis=-2, keepdims=True) for b in _blocks(beta, K, intercept)])


def without_shift(beta, K, intercept):
    """The coefficients c_k = β_k - m, which sum to zero over the classes."""
    blocks = _blocks(beta, K, intercept)
    return _joined([b - b.mean(axis=-2, keepdims=True) for b in blocks])


def with_shift(c, shift, K, intercept):
    """The coefficients β_k = c_k + m, with the common shift m."""
    d = shift.shape[-1] - intercept
    parts = shift[..., :d], shift[..., d:]
    blocks = _blocks(c, K, intercept)
    return _joined([b + m[..., None, :] for b, m in zip(blocks, parts[: len(blocks)], strict=True)])


def differences(c, K, intercept, pairs):
    """The differences c_a - c_b of pairs (a, b) of classes: all coefficients, then intercepts."""
    first, second = np.transpose(pairs)
    return _joined([b[..., first, :] - b[..., second, :] for b in _blocks(c, K, intercept)])


def full_rank(c, shift, scores, K, intercept):
    """Draws and scores in the coordinates u_k = β_k - β_K, k < K, and u_K = m.

    With β_k = m + u_k - (1/K) Σ_{j<K} u_j, the scores s of β become s_k - (1/K) Σ_j s_j for u_k,
    and Σ_j s_j for m. Unlike the c_k, of which one follows from the others, these have a density.
    """
    d = shift.shape[-1] - intercept
    draws, slopes = [], []
    parts = shift[..., None, :d], shift[..., None, d:]
    for b, s, m in zip(
        _blocks(c, K, intercept), _blocks(scores, K, intercept), parts, strict=False
    ):
        draws.append(np.concatenate([b[..., :-1, :] - b[..., -1:, :], m], axis=-2))
        total = s.sum(axis=-2, keepdims=True)
        slopes.append(np.concatenate([s[..., :-1, :] - total / K, total], axis=-2))
    return _joined(draws), _joined(slopes)


def labels_of_full_rank(columns, classes, intercept):
    """Names of the coordinates of `full_rank`, in their order."""
    rows = [f"{label} - {classes[-1]}" for label in classes[:-1]] + ["all classes"]
    return [f"coef[{row}, {name}]" for row in rows for name in columns] + [
        f"intercept[{row}]" for row in rows
    ] * intercept


def names_of_axes(labels, shapes, classes):
    """Names of the rows and of the columns of coefficients, as far as their labels tell them.

    Rows are classes, or differences of classes. Both are None without coefficients, and rows are
    None where coefficients have one axis.
    """
    shape = shapes.get("coef")
    if shape is None:
        return None, None
    rows = _names_of_rows(labels, shape[0], classes) if len(shape) == 2 else None
    starts = [f"coef[{rows[0]}, ", "coef["] if rows else ["coef["]
    return rows, tuple(_inside(label, starts) for label in labels[: shape[-1]])


def _inside(label, starts):
    """What stands between one of the beginnings and the last bracket, or else the whole label."""
    found = [label[len(start) : -1] for start in starts if label.startswith(start)]
    return found[0] if found else label


def _names_of_rows(labels, n, classes):
    if classes is not None:
        return tuple(str(label) for label in classes[-n:])
    of_intercepts = tuple(label[len("intercept[") : -1] for label in labels[-n:])
    return of_intercepts if labels[-1].startswith("intercept[") else None


def pairs(classes, first, reference):
    """The pairs (a, b) of positions of classes whose difference a - b is asked for.

    `first` and `reference` are labels or None, which stand for all others and for the first one.
    """
    if classes is None:
        raise ValueError("This posterior is not that of a classifier: it has no classes.")
    b = 0 if reference is None else _number(classes, reference)
    if first is None:
        return [(a, b) for a in range(len(classes)) if a != b]
    a = _number(classes, first)
    if a == b:
        raise ValueError(f"first and reference are the same class, {first!r}.")
    return [(a, b)]


def _number(classes, label):
    """The position of a label in `classes`; `ValueError` if it is none of them."""
    found = [k for k, known in enumerate(classes) if known == label]
    if not found:
        raise ValueError(f"There is no class {label!r}: the classes are {list(classes)}.")
    return found[0]
