"""Draws in the format of the ArviZ that is installed, with the names of columns and classes.

ArviZ below 1.0 has ``arviz.InferenceData``, and cannot read the ``xarray.DataTree`` of ArviZ 1.x
and of ``arviz-base``, which in turn convert the former: so the former is returned wherever an old
ArviZ is installed.
"""

from importlib import metadata

import numpy as np

__all__ = ["to_arviz"]

CLASSES, COLUMNS = "class_dim", "coef_dim"
ROWS = "obs_id"


def to_arviz(posterior, groups=None):
    """An `xarray.DataTree` or `arviz.InferenceData`.

    Parameters
    ----------
    posterior : Posterior
    groups : dict of str to dict of str to array, optional
        Further groups; the last axis of their arrays are the rows of the data.
    """
    found = {"posterior": {name: np.asarray(posterior[name]) for name in posterior.names}}
    if posterior.weights is not None:
        weight = np.broadcast_to(posterior.weights, posterior.flat.shape[:2])
        found["sample_stats"] = {"weight": np.array(weight)}
    coords, dims = _coordinates(posterior)
    for group in (groups or {}).values():
        dims |= {name: [ROWS] for name in group}
    return _converted(found | (groups or {}), coords, dims)


def _converted(groups, coords, dims):
    if _is_old_arviz():
        from arviz import from_dict

        return from_dict(**groups, coords=coords, dims=dims)
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise ImportError(
            'to_arviz needs ArviZ: pip install "skbayes_sg[arviz]", or pip install arviz.'
        ) from error
    return from_dict(groups, coords=coords, dims=dims)


def _is_old_arviz():
    try:
        return int(metadata.version("arviz").partition(".")[0]) == 0
    except metadata.PackageNotFoundError:
        return False


def _coordinates(posterior):
    """Names along the axes of coefficients and intercepts, as far as the labels say them."""
    if "coef" not in posterior.shapes:
        return {}, {}
    shape = posterior.shapes["coef"]
    rows = _names_of_rows(posterior, shape[0]) if len(shape) == 2 else None
    first = f"coef[{rows[0]}, " if rows else "coef["
    labels = posterior.labels[: shape[-1]]
    start = len(first) if labels[0].startswith(first) else len("coef[")
    coords = {COLUMNS: [label[start:-1] for label in labels]}
    if rows:
        coords[CLASSES] = rows
    dims = {"coef": [CLASSES, COLUMNS][-len(shape) :]}
    if "intercept" in posterior.shapes and len(shape) == 2:
        dims["intercept"] = [CLASSES]
    return coords, dims


def _names_of_rows(posterior, n):
    """Of the rows of coefficients: classes, or differences between classes."""
    of_intercepts = [label[len("intercept[") : -1] for label in posterior.labels[-n:]]
    if posterior.classes is not None:
        return [str(label) for label in posterior.classes[-n:]]
    return of_intercepts if posterior.labels[-1].startswith("intercept[") else None
