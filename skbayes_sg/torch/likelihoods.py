"""Likelihoods: -log p(y | output of the module), a number for each row.

A row may have several positions, such as the words of a sentence: their terms are summed.

* Classes: the output has one logit for each class along its last axis, or a single one, the
  log-odds of the second of two classes.
* Numbers with one noise: y ~ N(f, σ²) with f the output; log σ is known or a part of θ.
* Numbers with a noise of their own: the output has two halves along its last axis, f and log σ.
"""

import math

import torch
from torch.nn import functional

__all__ = ["LOG_2PI", "class_logits", "class_terms", "normal_parts", "normal_terms", "sum_of_row"]

LOG_2PI = math.log(2.0 * math.pi)


def class_logits(output, n_classes):
    """Return the logits along the last axis; a single log-odds becomes two logits, 0 and itself."""
    if n_classes == 2 and (output.ndim == 1 or output.shape[-1] == 1):
        odds = output if output.ndim == 1 else output[..., 0]
        return torch.stack([torch.zeros_like(odds), odds], dim=-1)
    if output.shape[-1] != n_classes:
        raise ValueError(
            f"The output of the module has {output.shape[-1]} numbers along its last axis, and "
            f"there are {n_classes} classes. It must have a logit for each class."
        )
    return output


def class_terms(logits, y):
    """Return -log softmax(logits)_y for each position of each row, in the shape of y."""
    if y.shape != logits.shape[:-1]:
        raise ValueError(
            f"The logits have the shape {tuple(logits.shape)} and the labels {tuple(y.shape)}: "
            "they must agree but for the last axis, that of the classes."
        )
    if y.ndim == 1:  # saves the views, which take as long as a small network
        return functional.cross_entropy(logits, y, reduction="none")
    flat = functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), y.reshape(-1), reduction="none"
    )
    return flat.view(y.shape)


def normal_parts(output, log_noise, shape):
    """Return f and log σ in `shape`, that of y; log_noise=None takes log σ from the output."""
    if log_noise is None:
        if output.shape[-1] % 2:
            raise ValueError(
                "With noise='module' the last axis of the output must have an even length: means, "
                f"then logarithms of standard deviations; it has {output.shape[-1]}."
            )
        output, log_noise = output.chunk(2, dim=-1)
        log_noise = _in_shape(log_noise, shape)
    return _in_shape(output, shape), log_noise


def _in_shape(output, shape):
    if output.shape == shape:
        return output
    if output.shape == (*shape, 1):
        return output[..., 0]
    raise ValueError(
        f"The module gives numbers of shape {tuple(output.shape)} where y has {tuple(shape)}."
    )


def normal_terms(f, log_noise, y, floor=0.0):
    """Return log σ + ((y - f)² + floor²)/(2σ²) + log(2π)/2 for each number."""
    z = (y - f) * torch.exp(-log_noise)
    terms = 0.5 * z * z + log_noise + 0.5 * LOG_2PI
    return terms + 0.5 * (floor * torch.exp(-log_noise)) ** 2 if floor else terms


def sum_of_row(terms):
    """Return the sum of the terms of each row, over all axes but the first."""
    return terms if terms.ndim == 1 else terms.reshape(len(terms), -1).sum(dim=1)
