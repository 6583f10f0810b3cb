"""Where chains begin: initial parameters of their own, and a search for a mode of the posterior.

Each chain has an initialisation of its own, so that chains tell whether predictions depend on it.
The search is Adam on U(θ)/N with a step that falls to zero along a cosine: the negative log
posterior, prior included. In such a round a parameter moves by about `learning_rate` times half the
steps and no further, which need not be enough. A search that goes on ends when U no longer falls:
on all rows L-BFGS follows (see `finish`); with noise there are further rounds of Adam.
A fall by less than `SMALL` of P for P parameters does not count, for chains lie about P/2 above a
mode. Nothing of the search affects the draws but the place where it ends.
"""

import math

import torch
from torch import nn

from ..exceptions import InvalidParameterError, SamplerDivergedError
from .device import seeded
from .flat import copy_of

__all__ = ["begin_alike", "initialised", "search"]

BETAS = (0.9, 0.99)
SMALL = 0.02  # a fall of U, for each parameter
MOST_ROUNDS = 4  # of Adam
SIGMAS = 2.0  # by which U of batches has fallen if it falls


def initialised(module, seed, how):
    """A module with initial parameters that follow from a seed.

    Parameters
    ----------
    module : torch.nn.Module or callable
        Of a module the layers with a method `reset_parameters` are drawn anew, as all layers of
        torch have it, but for parameters that require no gradient; a callable returns a new module
        at each call.
    seed : int
    how : {"reset", "given"}
        "given" leaves a module as it is.

    Returns
    -------
    torch.nn.Module
    """
    with seeded(seed, torch.device("cpu")):
        if not isinstance(module, nn.Module):
            return module()
        module = copy_of(module)
        if how == "given":
            return module
        resets = [_reset_of(layer) for layer in dict.fromkeys(_parts_first(module))]
        if not any(resets):
            raise InvalidParameterError(
                "No layer of the module has a method reset_parameters, with which chains begin at "
                "different places. Give a function that returns a new module instead of a module, "
                "or initialisation='given' to begin all chains at the parameters it has."
            )
        fixed = [(p, p.detach().clone()) for p in _fixed(module)]
        for reset in filter(None, resets):
            reset()
        for p, value in fixed:
            p.data.copy_(value)
    return module


def _parts_first(module):
    """All layers in the order in which constructors end: the outer one has the last word."""
    for part in module.children():
        yield from _parts_first(part)
    yield module


def _fixed(module):
    """Parameters that require no gradient, and buffers of layers that have no others."""
    for layer in module.modules():
        own = list(layer.parameters(recurse=False))
        yield from (p for p in own if not p.requires_grad)
        if own and not any(p.requires_grad for p in own):
            yield from layer.buffers(recurse=False)


def begin_alike(module):
    """Names of parameters that no reset changes, and that are not the same number throughout.

    All chains begin at the values they have.
    """
    made = [dict(initialised(module, seed, "reset").named_parameters()) for seed in range(2)]
    return [
        name
        for name, p in made[0].items()
        if p.requires_grad
        and torch.equal(p, made[1][name])
        and not bool((p == p.flatten()[0]).all())
    ]


def _reset_of(layer):
    own = getattr(layer, "reset_parameters", None) or getattr(layer, "_reset_parameters", None)
    return own if callable(own) else None


def search(gradient, n_steps, learning_rate, goes_on=False):
    """Move the module of a gradient towards a mode, in place.

    Parameters
    ----------
    gradient : MinibatchGradient
    n_steps : int
        Of a round of Adam.
    learning_rate : float
        The largest step of Adam, that of the beginning.
    goes_on : bool
        Whether rounds of Adam follow while U falls.

    Returns
    -------
    loss : float
        The estimate of U per row, averaged over the last tenth of the steps.
    n_steps : int
        Of all rounds.
    """
    last = _adam(gradient, n_steps, learning_rate)
    taken, N = n_steps, gradient.target.rows.n_rows
    while goes_on and taken < MOST_ROUNDS * n_steps:
        before, last = last, _adam(gradient, n_steps, learning_rate)
        taken += n_steps
        if not _falls(before, last, len(gradient.target.flat.theta)):
            break
    return float(last.mean()) / N, taken


def _adam(gradient, n_steps, learning_rate):
    """One round; estimates of U at the last tenth of its steps, as a tensor in double precision."""
    flat, N = gradient.target.flat, gradient.target.rows.n_rows
    theta = nn.Parameter(flat.theta)
    theta.grad = flat.gradient
    optimiser = torch.optim.Adam([theta], lr=learning_rate, betas=BETAS)
    last, tail = [flat.theta.new_tensor(math.nan)] * (n_steps == 0), max(1, n_steps // 10)
    for t in range(n_steps):
        optimiser.param_groups[0]["lr"] = (
            learning_rate * 0.5 * (1 + math.cos(math.pi * t / n_steps))
        )
        value = gradient()
        if t == 0:
            _check_first(value.total(), flat)
        flat.gradient.div_(N)
        optimiser.step()
        if t >= n_steps - tail:
            last.append(value.total())
    last = torch.stack(last).double().cpu()
    if n_steps and not bool(last.isfinite().all() and flat.theta.isfinite().all()):
        raise SamplerDivergedError(
            f"The search for a mode, with which a chain begins, did not stay finite in {n_steps} "
            f"steps of Adam with learning_rate={learning_rate!r}. Use a smaller learning_rate, and "
            "standardise the columns of X (sklearn.preprocessing.StandardScaler)."
        )
    return last


def _check_first(value, flat):
    if bool(value.isfinite()):
        return
    begin = "finite" if bool(flat.theta.isfinite().all()) else "not finite either"
    raise SamplerDivergedError(
        f"U is not finite where a chain begins, before any step; the parameters are {begin}. The "
        "module returns NaN, infinity or numbers whose squares overflow at its initialisation: "
        "look at its output for the rows of the fit."
    )


def _falls(before, last, n_parameters):
    """Whether U has fallen from one round to the next, by more than its estimates vary."""
    error = math.hypot(*(float(x.std(correction=0)) / len(x) ** 0.5 for x in (before, last)))
    return float(before.mean() - last.mean()) > max(SMALL * n_parameters, SIGMAS * error)
