"""Checks of what a module returns: one tensor, a row of which depends on no other row.

A likelihood is a product over rows, and predictions are made in blocks. A module that mixes rows,
such as a recurrent layer that takes the first axis for time, would have another likelihood in each
batch and another prediction in each block, with shapes that look right.
"""

import contextlib

import torch

from ..exceptions import InvalidParameterError
from .device import seeded

__all__ = ["applied", "checked_output"]

# Largest difference between outputs of a row alone and among others, in units of the largest
# output: far more than rounding errors of deep modules.
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-6}
SHAKEN = 0.3  # standard deviation of what is added to parameters, where all outputs are the same
FAILURES = IndexError, RuntimeError, TypeError, ValueError


def applied(module, x):
    """Return the output of a module for rows x; errors say what was given to it."""
    try:
        with torch.no_grad():
            return module(x)
    except FAILURES as error:
        raise InvalidParameterError(
            f"The module cannot be applied to rows of X, here a tensor of shape "
            f"{tuple(x.shape)} and type {x.dtype}: {error}"
        ) from error


def checked_output(module, x):
    """Return the output of a module in evaluation mode for some rows x, after all checks of it.

    The module may be changed: it is a copy that is not used afterwards.
    """
    version = x._version
    found = applied(module, x)
    if x._version != version:
        raise InvalidParameterError(
            "The module changes its input in place, which the next draw would meet changed: "
            "write x = x - mean instead of x -= mean, or leave out inplace=True."
        )
    _check_type(found)
    _check_first_axis(module, x, found)
    _check_rows_apart(module, x)
    return found


def _check_type(output):
    """Raise an error for what is not one tensor of single or double precision."""
    if not isinstance(output, torch.Tensor):
        kind = type(output).__name__
        kind += f" of {len(output)}" if isinstance(output, (tuple, list, dict)) else ""
        raise InvalidParameterError(f"The module must return one tensor, got a {kind}.")
    if output.dtype not in TOLERANCE:
        raise InvalidParameterError(
            f"The module returns numbers of the type {output.dtype}, in which sums over rows "
            "and small steps are lost. It must be single or double precision: convert the "
            "module, for example with module.float()."
        )


def _check_first_axis(module, x, output):
    """Raise an error for outputs without an axis of rows, as after squeeze() of one row."""
    one = output if len(x) == 1 else applied(module, x[:1])
    if one.ndim != output.ndim or output.ndim == 0 or (len(one), len(output)) != (1, len(x)):
        raise InvalidParameterError(
            f"The first axis of the output must be that of the rows: {len(x)} rows give the "
            f"shape {tuple(output.shape)}, and one row {tuple(one.shape)}. Use squeeze(-1) "
            "instead of squeeze(), and batch_first=True in recurrent layers."
        )


def _check_rows_apart(module, x):
    """Raise an error for a module whose output for a row depends on the other rows.

    A single row is compared with two copies of itself. Modules that draw random numbers in
    evaluation mode are left alone, since their outputs cannot be compared.
    """
    x = torch.cat([x, x]) if len(x) == 1 else x
    if _is_random(module, x):
        return
    k, difference = _most_changed(module, x)
    if difference == 0.0 and _are_same(applied(module, x)):
        # A last layer that begins at zero would hide all that comes before it.
        with contextlib.suppress(InvalidParameterError):  # not all parameters can be used
            k, difference = _most_changed(_shaken(module), x)
    if difference > 0.0:
        raise InvalidParameterError(
            f"module mixes rows: for row {k} of X it returns other numbers among {len(x)} rows "
            f"than alone, with a difference of {difference:.2g}. The output for a row must depend "
            "on that row only. Use batch_first=True in recurrent and attention layers, and no "
            "mean, sum, sorting or normalisation over the first axis."
        )


def _most_changed(module, x):
    """Return (row, difference) where outputs alone and among others differ most; 0 if nowhere.

    Differences that rounding explains count as zero.
    """
    output, worst = applied(module, x), (0, 0.0)
    scale = float(output.abs().max()) if output.numel() else 0.0
    for k in range(len(x)):
        alone = applied(module, x[k : k + 1])
        same_shape = alone.shape == output[k : k + 1].shape
        off = float((alone - output[k : k + 1]).abs().max()) if scale and same_shape else 0.0
        if off > TOLERANCE[output.dtype] * scale and off > worst[1]:
            worst = k, off
    return worst


def _are_same(output):
    """Whether all rows of an output are the same."""
    return bool((output == output[:1]).all())


def _shaken(module):
    """Return the module, after normal random numbers have been added to its free parameters."""
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in module.parameters():
            if p.requires_grad:
                p.add_(SHAKEN * torch.randn(p.shape, generator=rng).to(p))
    return module


def _is_random(module, x):
    """Whether a module draws random numbers, or returns other numbers when it is called again."""
    found = []
    for seed in range(2):
        with seeded(seed, x.device):
            before = _random_state(x.device)
            found.append(applied(module, x))
            if not torch.equal(before, _random_state(x.device)):
                return True
    # Sums of a GPU may differ in their last digits.
    return not torch.allclose(*found, rtol=1e-4, atol=1e-6, equal_nan=True)


def _random_state(device):
    """Return the state of torch's random numbers on a device."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
