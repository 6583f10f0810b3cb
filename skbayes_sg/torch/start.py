"""Where chains begin: initial parameters of their own, and a search for a mode of the posterior.

Each chain has an initialisation of its own, so that chains tell whether predictions depend on it.
The search is Adam on U(θ)/N, the negative log posterior with its prior, with a step that falls to
zero along a cosine. In such a round a parameter moves by about `learning_rate` times half the
steps and no further, which need not be enough. A search that goes on ends when U no longer falls:
on all rows L-BFGS follows (see `finish`); with noise there are further rounds of Adam.
A fall of U by less than `SMALL` P for P parameters does not count, since draws lie about P/2 above
a mode. Nothing of the search affects the draws but the place where it ends.
"""

import math

import torch
from torch import nn

from ..exceptions import InvalidParameterError, SamplerDivergedError
from .device import seeded
from .flat import copy_of

__all__ = ["begin_alike", "initialised", "search"]

BETAS = (0.9, 0.99)  # decay rates of the averages of gradients and their squares in Adam
SMALL = 0.02  # least fall of U, in nats for each parameter, that counts
MOST_ROUNDS = 4  # rounds of Adam
SIGMAS = 2.0  # least fall of the estimates of U that counts, in standard errors


def initialised(module, seed, how):
    """Return a module with initial parameters that follow from a seed.

    Parameters
    ----------
    module : torch.nn.Module or callable
        The parameters of a module are drawn anew by the methods `reset_parameters` of its layers,
        which all layers of torch have, except for parameters that require no gradient; a callable
        returns a new module at each call.
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
    """Yield all layers, inner before outer as constructors end: outer resets have the last word."""
    for part in module.children():
        yield from _parts_first(part)
    yield module


def _fixed(module):
    """Yield parameters without gradient, and buffers of layers whose parameters are all such."""
    for layer in module.modules():
        own = list(layer.parameters(recurse=False))
        yield from (p for p in own if not p.requires_grad)
        if own and not any(p.requires_grad for p in own):
            yield from layer.buffers(recurse=False)


def begin_alike(module):
    """Return names of parameters that no reset changes, and that are not constant throughout.

    All chains begin at the values that these parameters have in the module.
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
        Number of steps of a round of Adam.
    learning_rate : float
        The largest step of Adam, which is the first.
    goes_on : bool
        Whether rounds of Adam follow while U falls.

    Returns
    -------
    loss : float
        The estimate of U per row, averaged over the last tenth of the steps.
    n_steps : int
        Number of steps of all rounds.
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
    """Run a round of Adam; return estimates of U at its last tenth of steps.

    They have the prior of the last step of all: it hardly changes in so many short steps.
    """
    target = gradient.target
    flat, N = target.flat, target.rows.n_rows
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
    prior = float(target.prior_value()) / target.temperature
    last = torch.stack(last).double().cpu() + prior
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
    """Whether U has fallen from one round to the next by more than its estimates vary."""
    error = math.hypot(*(float(x.std(correction=0)) / len(x) ** 0.5 for x in (before, last)))
    return float(before.mean() - last.mean()) > max(SMALL * n_parameters, SIGMAS * error)
