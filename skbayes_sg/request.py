"""What is asked of the engine, and what it answers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Outcome", "Request"]


@dataclass
class Request:
    """What was asked for. None is "auto", except for the preconditioner, where "auto" is."""

    sampler: Any = None
    gradient: Any = None
    subsampling: Any = None
    batch_size: int | None = None
    schedule: Any = None
    preconditioner: str | None = "auto"
    n_draws: int = 1000
    n_chains: int = 4
    n_warmup: int | None = None
    thin: int | None = None
    seed: int = 0
    n_jobs: int | None = None
    names: Any = ()  # of the parameters, for messages

    def name_of(self, parameter):
        """The name of a parameter, given its number."""
        return self.names[parameter] if len(self.names) else f"parameter {parameter}"

    @property
    def is_open(self):
        """Whether the method is left to the recipe."""
        asked = self.sampler, self.gradient, self.subsampling, self.batch_size, self.schedule
        return all(value is None for value in asked) and self.preconditioner == "auto"


@dataclass
class Outcome:
    """Draws, what made them, and what was measured on the way."""

    draws: np.ndarray  # (n_chains, n_draws, n_parameters), in θ
    chosen: dict  # sampler, gradient, ..., step_size, batch_size, n_warmup, thin, n_steps
    diagnostics: dict = field(default_factory=dict)
    weights: np.ndarray | None = None  # of the draws, (n_draws,) with mean 1; None: all the same
