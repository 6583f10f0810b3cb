"""Priors of parameter groups: -log p and its gradient, for parts of the vector θ.

The families are those of `skbayes_sg.priors`, with the same formulas:

    Normal     z²/2                               Laplace   |z|
    StudentT   (df + 1)/2 log(1 + z²/df)          Flat      0

with z = (θ - loc)/scale. Patterns of names say which parameters have which prior.
"""

import math
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from ..exceptions import InvalidParameterError
from ..priors import Flat, Laplace, Normal, Prior, StudentT
from ..priors.families import PRIORS

__all__ = ["Group", "add_gradient", "fan_in_scale", "groups_of", "negative_log_density"]
__all__ += ["precisions"]

NORMALISED = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


class Group(NamedTuple):
    """Parameters that are neighbours in θ, `theta[part]`, and have the same prior."""

    prior: Prior
    part: slice
    names: tuple


def groups_of(prior, flat):
    """Return the groups of the parameters of a module, in the order of θ.

    Parameters
    ----------
    prior : str, Prior or dict of str to these
        One prior for all parameters, where a normal prior of the factors of a normalisation layer,
        such as BatchNorm, has its mean at 1; or priors by patterns of names, of which the first
        that fits counts.
    flat : FlatModule

    Returns
    -------
    list of Group
    """
    table = prior if isinstance(prior, dict) else _default_table(prior, flat.module)
    if isinstance(prior, dict):
        _check_patterns(prior, flat.slices)
    groups = []
    for name, part in flat.slices.items():
        own = _chosen(table, name, flat.shapes[name])
        last = groups[-1] if groups else None
        if last is not None and repr(last.prior) == repr(own) and last.part.stop == part.start:
            merged = slice(last.part.start, part.stop)
            groups[-1] = Group(own, merged, (*last.names, name))
        else:
            groups.append(Group(own, part, (name,)))
    return groups


def _check_patterns(table, names):
    for pattern in table:
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
            raise InvalidParameterError(
                f"The pattern {pattern!r} of the prior fits none of the parameters that require "
                f"gradients, {list(names)}."
            )


def _default_table(prior, module):
    """Return the table of priors by name that one prior for all parameters stands for.

    Factors of normalisation layers begin at 1, which is the mean of their normal prior. Under a
    flat prior they would have no proper posterior: the likelihood does not vanish as they grow.
    """
    if not (isinstance(prior, Normal) or prior in ("normal", "fan_in")):
        return {"*": prior}
    scale = prior.scale if isinstance(prior, Normal) else 1.0
    factors = {
        f"{path}.weight" if path else "weight": Normal(loc=1.0, scale=scale)
        for path, layer in module.named_modules()
        if isinstance(layer, NORMALISED)
    }
    return factors | {"*": prior}


def _chosen(table, name, shape):
    """Return the prior of a parameter, from the first pattern that fits its name."""
    for pattern, prior in table.items():
        if name == pattern or fnmatchcase(name, pattern):
            return _checked(_made(prior, shape), name)
    raise InvalidParameterError(
        f"No pattern of the prior fits the parameter {name!r}; the patterns are {list(table)}. "
        "Add one for all others, '*'."
    )


def _made(prior, shape):
    if isinstance(prior, str) and prior == "fan_in":
        return Normal(scale=fan_in_scale(shape))
    if isinstance(prior, str) and prior in PRIORS:
        return PRIORS[prior]()
    return prior


def fan_in_scale(shape):
    """Return √(2 / inputs of a unit) for weights, as in He et al. (2015), and 1 for vectors."""
    return math.sqrt(2.0 / math.prod(shape[1:])) if len(shape) > 1 else 1.0


def _checked(prior, name):
    if type(prior) not in _VALUES:
        strings = ", ".join(repr(s) for s in ("fan_in", *PRIORS))
        raise InvalidParameterError(
            f"The prior of the parameter {name!r} must be one of {strings}, or an object "
            f"Normal, Laplace, StudentT or Flat of skbayes_sg.priors, got {prior!r}."
        )
    if not isinstance(prior, Flat):
        scale, loc = prior.scale, prior.loc
        real = all(np.isscalar(v) and not isinstance(v, str) for v in (scale, loc))
        if not (real and np.isfinite([scale, loc]).all() and scale > 0):
            raise InvalidParameterError(
                f"The prior of the parameter {name!r} needs a number loc and a positive number "
                f"scale, got {prior!r}."
            )
    return prior


def _normal(z, prior):
    del prior
    return 0.5 * z * z, z


def _laplace(z, prior):
    del prior
    return z.abs(), z.sign()


def _student_t(z, prior):
    df = float(prior.df)
    return 0.5 * (df + 1.0) * torch.log1p(z * z / df), (df + 1.0) * z / (df + z * z)


_VALUES = {Normal: _normal, Laplace: _laplace, StudentT: _student_t, Flat: None}


def add_gradient(groups, theta, gradient_out, factor=1.0):
    """Add factor ∇(-log p) at θ to gradient_out."""
    for prior, part, _ in groups:
        own = theta[part]
        if type(prior) is Normal:  # without intermediate vectors
            away = own - prior.loc if prior.loc else own
            gradient_out[part].add_(away, alpha=factor / float(prior.scale) ** 2)
        elif type(prior) is not Flat:
            slope = _VALUES[type(prior)]((own - prior.loc) / prior.scale, prior)[1]
            gradient_out[part].add_(slope, alpha=factor / float(prior.scale))


def precisions(groups, theta):
    """Return 1/scale² of the prior of each parameter; zero under a flat prior."""
    found = torch.zeros_like(theta)
    for prior, part, _ in groups:
        if type(prior) is not Flat:
            found[part] = float(prior.scale) ** -2
    return found


def negative_log_density(groups, theta):
    """Return -log p(θ) up to a constant, a tensor without axes."""
    total = theta.new_zeros(())
    for prior, part, _ in groups:
        if type(prior) is not Flat:
            z = (theta[part] - prior.loc) / prior.scale
            total = total + _VALUES[type(prior)](z, prior)[0].sum()
    return total
