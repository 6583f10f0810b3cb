"""What every "auto" became, as fitted attributes and in the heading of summaries."""

import numpy as np

from ..gradients import GRADIENTS
from ..subsampling import SUBSAMPLING, AllRows

__all__ = ["chosen_pieces", "origin_of"]


def _name(component, choices):
    """The name of a component as users give it, from `choices` of names and classes.

    A sampler may be a name already; a component without a name has that of its class.
    """
    if isinstance(component, str):
        return component
    names = {kind: name for name, kind in choices.items()}
    return names.get(type(component), type(component).__name__)


def chosen_pieces(outcome, samplers):
    """The fitted attributes of an `Outcome`, by name; `samplers` has names and their classes."""
    chosen = outcome.chosen
    return {
        "sampler_": _name(chosen["sampler"], samplers),
        "gradient_": _name(chosen["gradient"], GRADIENTS),
        "subsampling_": _name(chosen["subsampling"], SUBSAMPLING | {"all_rows": AllRows}),
        "preconditioner_": chosen["preconditioner"],
        "batch_size_": int(chosen["batch_size"]),
        "step_size_": float(chosen["step_size"]),
        "thin_": int(chosen["thin"]),
        "n_warmup_": int(chosen["n_warmup"]),
        "n_steps_": int(chosen["n_warmup"] + chosen["thin"] * outcome.n_made),
        "diagnostics_": {name: float(v) for name, v in outcome.diagnostics.items()},
        "seconds_": {name: float(np.round(v, 6)) for name, v in outcome.seconds.items()},
    }


def origin_of(pieces):
    """A dict on how the draws were made, for the heading of summaries, from `chosen_pieces`.

    It has the sampler only, if that takes no steps.
    """
    sampler = {"sampler": pieces["sampler_"]}
    if np.isnan(pieces["step_size_"]):
        return sampler
    found = {name: pieces[f"{name}_"] for name in ("gradient", "batch_size", "step_size", "thin")}
    return sampler | found | {"step_size": float(f"{found['step_size']:.4g}")}
