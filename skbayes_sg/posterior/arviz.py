"""Draws in the format of the ArviZ that is installed, with the names of columns and classes.

ArviZ below 1.0 has ``arviz.InferenceData``, and cannot read the ``xarray.DataTree`` of ArviZ 1.x
and of ``arviz-base``. These can convert ``InferenceData``, which is therefore returned wherever an
old ArviZ is installed.
"""

from importlib import metadata

import numpy as np

__all__ = ["to_arviz"]

CLASSES, COLUMNS = "class_dim", "coef_dim"  # names of the axes of coefficients
ROWS = "obs_id"  # name of the axis of the rows of the data


def to_arviz(posterior, groups=None):
    """Return a posterior as `xarray.DataTree`, or as `arviz.InferenceData` for an old ArviZ.

    Parameters
    ----------
    posterior : Posterior
    groups : dict of str to dict of str to array, optional
        Further groups; the last axis of their arrays is that of the rows of the data.
    """
    found = {"posterior": {name: np.asarray(posterior[name]) for name in posterior.names}}
    if posterior.weights is not None:
        weight = np.broadcast_to(posterior.weights, posterior.flat.shape[:2])
        found["sample_stats"] = {"weight": np.array(weight)}
    coords, dims = _of_coefficients(posterior)
    for name, shape in posterior.shapes.items():
        own = [label for label in posterior.labels if label.startswith(f"{name}[")]
        if name not in dims and len(shape) == 1 and len(own) == shape[0]:
            coords[f"{name}_dim"] = [label[len(name) + 1 : -1] for label in own]
            dims[name] = [f"{name}_dim"]
    for group in (groups or {}).values():
        dims |= {name: [ROWS] for name in group}
    return _converted(found | (groups or {}), coords, dims)


def _converted(groups, coords, dims):
    """The groups in the format of the installed ArviZ; `ImportError` if there is none."""
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
    """Whether a version of ArviZ below 1.0 is installed."""
    try:
        return int(metadata.version("arviz").partition(".")[0]) == 0
    except metadata.PackageNotFoundError:
        return False


def _of_coefficients(posterior):
    """Coordinates and dimensions of coefficients and intercepts, as far as the labels tell them.

    The first dict has the names along each axis, and the second the axes of each variable.
    """
    shapes = posterior.shapes
    rows, columns = posterior._names_of_axes
    if columns is None:
        return {}, {}
    coords = {COLUMNS: list(columns)} | ({CLASSES: list(rows)} if rows else {})
    dims = {"coef": [CLASSES, COLUMNS][-len(shapes["coef"]) :]}
    if "intercept" in shapes and len(shapes["coef"]) == 2:
        dims["intercept"] = [CLASSES]
    return coords, dims
