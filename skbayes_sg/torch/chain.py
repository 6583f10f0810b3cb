"""The loop of one chain: steps with gradient and noise, draws, their evidence, and a guard."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from .._base import streams
from ..exceptions import SamplerDivergedError
from .moves import MOVES, is_kinetic, velocity_variance, waits
from .noise import EVERY, NoiseDraws
from .replay import Replay
from .survey import functions_at, squared_motions

__all__ = ["Evidence", "ModuleChain", "advance"]

HOT = 100.0  # kinetic temperature beyond which a chain is lost
# The limit of the kinetic temperature of draws without gradient noise, and the number of standard
# errors of that temperature, for normal velocities, that is added to it.
HOT_DRAWS, SIGMAS = 3.0, 10.0
FAR = 1e6  # absolute value of a parameter beyond which a chain is lost
STILL = 1e-20  # entry of F for parameters that do not move
GUARD = 50  # steps from one check of the state to the next
# What users can do about a chain that has diverged.
FIXED = (
    "Use step_size='auto', a smaller step_size, or more rows a step, and standardise the columns "
    "of X."
)
AUTO = (
    "The step size was found by the rule 'auto', which was not enough here: standardise the "
    "columns of X (sklearn.preprocessing.StandardScaler), leave start_steps='auto', use a module "
    "in double precision, or set a smaller step_size."
)


class Evidence(NamedTuple):
    """The measurements that are recorded at each draw of a chain.

    Parameters
    ----------
    functions : array of shape (n_draws, n_functions)
        Predictions for rows of the fit.
    temperature : array of shape (n_draws,)
        v·v/d, the mean square of all velocities, over its expected value; NaN without velocities.
    squared_motions : array of shape (2, n_draws)
        Sums of squares of the velocities of predictions, and the same sums for fresh normal
        velocities. Their means over draws are to be compared, not the ratios of single draws.
    potential : array of shape (n_draws,)
        The estimate of U without the prior in the step before the draw.
    """

    functions: np.ndarray
    temperature: np.ndarray
    squared_motions: np.ndarray
    potential: np.ndarray


class ModuleChain:
    """The state of one chain, on a device.

    Parameters
    ----------
    number : int
    gradient : MinibatchGradient
    dynamics : skbayes_sg.dynamics.Dynamics
    schedule : skbayes_sg.schedules.Schedule
    F : tensor or None
        The scales of the coordinates φ: θ = F φ; None for θ = φ.
    seed : int
        Seed of the normal random numbers of the steps.
    is_fixed : bool
        Whether the step size was given by the user, and not found by "auto".
    """

    def __init__(self, number, gradient, dynamics, schedule, F, seed, is_fixed=True):
        flat = gradient.target.flat
        self.number, self.gradient, self.schedule = number, gradient, schedule
        self.flat, self.target, self.F = flat, gradient.target, _without_padding(F, flat)
        self.dynamics, self.update = dynamics, MOVES[type(dynamics)]
        self.remedy, self.hottest = FIXED if is_fixed else AUTO, HOT
        self.parameters = tuple(float(p) for p in dynamics.parameters())
        self.generator = torch.Generator(flat.device).manual_seed(seed)
        self.noise, self.t, self.h = torch.empty_like(flat.theta), 0, 0.0
        may_record = not waits(dynamics)
        self.replay = Replay(flat.device, self.generator, lambda move: may_record)
        self.state, self.noise_draws = self._first_state(), None

    def _first_state(self):
        """Return the rows of the state: position, velocities from N(0, I), and others if any.

        Each row beyond the velocities starts with the same number everywhere, which is taken from
        `Dynamics.start`.
        """
        theta = self.flat.theta
        others = self.dynamics.start(np.zeros(1), streams.fixed())[2:, 0]
        state = [theta if self.F is None else theta / self.F]
        if is_kinetic(self.dynamics):
            state.append(torch.empty_like(theta).normal_(generator=self.generator))
        return state + [torch.full_like(theta, float(value)) for value in others]

    def draw_noise(self):
        """From now on hold log σ, the last parameter, fixed in steps, and draw it between them."""
        self.noise_draws = NoiseDraws.of(self.target)
        self.replay.is_open = False  # h follows σ, and changes too often for recordings

    def _redraw(self):
        """Draw log σ given all other parameters."""
        u = float(torch.rand((), generator=self.generator, device=self.flat.device))
        s = self.noise_draws.drawn(self.gradient().total(), u)
        self.flat.theta[-1] = s
        self.state[0][-1] = s if self.F is None else s / float(self.F[-1])

    def zero_noise_entry(self, vector):
        """Set the entry of a gradient or velocity that would move log σ to zero, if σ is drawn."""
        if self.noise_draws is not None:
            vector[-1:].zero_()

    def set_reference_noise(self, longest):
        """Let step sizes refer to the present σ from now on, if σ is drawn between steps."""
        if self.noise_draws is not None:
            self.noise_draws.set_reference_noise(longest)

    def watch_closely(self):
        """Apply the stricter limit of the kinetic temperature from now on: the warm-up is over."""
        self.hottest = HOT_DRAWS + SIGMAS * math.sqrt(2.0 / len(self.flat.theta))

    def set_dynamics(self, dynamics):
        """Go on with dynamics of the same kind and another friction."""
        self.dynamics, self.parameters = dynamics, tuple(float(p) for p in dynamics.parameters())

    def go_to(self, state):
        """Move to the position of a state, with fresh velocities."""
        for own, row in zip(self.state, state, strict=True):
            own.copy_(row)
        if is_kinetic(self.dynamics):
            self.state[1].normal_(generator=self.generator)
        if self.F is not None:
            torch.mul(self.F, self.state[0], out=self.flat.theta)
        self.gradient.start_anew()

    def step(self, h, noise=None):
        """Take one step with fresh or given normals; return the estimate of U at its beginning.

        The prior is left out of the estimate.
        """
        value = self.gradient()
        move = partial(self._move, h, noise)
        if noise is None:
            self.replay(move, key=(h, self.parameters))
        else:
            move()
        return value

    def _move(self, h, noise):
        gradient, held = self.flat.gradient, self.noise_draws is not None
        self.zero_noise_entry(gradient)
        last = self.state[0][-1:].clone() if held else None
        if self.F is not None:
            gradient.mul_(self.F)
        if noise is None:
            noise = self.noise.normal_(generator=self.generator)
        self.update(self.state, gradient, noise, h, self.parameters)
        if held:
            self.state[0][-1:] = last
        if self.F is not None:
            torch.mul(self.F, self.state[0], out=self.flat.theta)

    def sizes(self, n_steps):
        """Return the next `n_steps` step sizes of the schedule."""
        found = self.schedule(np.arange(self.t, self.t + n_steps))
        return np.broadcast_to(found, n_steps).tolist()

    def run(self, n_steps):
        """Take `n_steps` steps under the guard; return the last estimate of U without the prior."""
        value = None
        for h in self.sizes(n_steps):
            if self.noise_draws is not None:
                if self.t % EVERY == 0:
                    self._redraw()
                h = self.noise_draws.step(h)
                self.parameters = (self.noise_draws.friction(self.dynamics.friction, h),)
            value, self.h = self.step(h), h
            self.t += 1
            if self.t % GUARD == 0:
                self.check_state(h)
        if n_steps:
            self.check_state(h)
        return value

    def check_state(self, h):
        """Raise `SamplerDivergedError` if parameters are not finite, too large, or too fast."""
        far = float(self.flat.theta.abs().max())
        heat = self.temperature(h)
        if math.isfinite(far) and far < FAR and not heat > self.hottest:
            return
        worst = int(torch.nan_to_num(self.flat.theta.abs(), nan=math.inf).argmax())
        names = [n for n, part in self.flat.slices.items() if part.start <= worst < part.stop]
        reason = "is not finite" if not math.isfinite(far) else f"has reached {far:.3g}"
        if math.isfinite(far) and far < FAR:
            reason = f"moves with a kinetic temperature of {heat:.3g} instead of 1"
        raise SamplerDivergedError(
            f"Chain {self.number} has diverged at step {self.t}: the parameter "
            f"{(names or ['log noise'])[0]!r} {reason}, with step_size={h:.3g} and "
            f"batch_size={self.gradient.batch_size}. {self.remedy}"
        )

    def temperature(self, h):
        """Return v·v/d over its expected value for step size h; NaN without velocities."""
        if not is_kinetic(self.dynamics):
            return math.nan
        return float(self.state[1].square().mean()) / velocity_variance(self.dynamics, h)

    def squared_motions(self, batch, h):
        """Return Σ_x (J_x v)², over the variance of v, and Σ_x (J_x z)²; NaN without velocities."""
        if not is_kinetic(self.dynamics):
            return math.nan, math.nan
        moved, normal = squared_motions(self.target, batch, self.F, self.state[1], self.generator)
        return moved / velocity_variance(self.dynamics, h), normal


def _without_padding(F, flat):
    """Return F with tiny entries for vectors of padding, which are thus practically fixed."""
    if len(flat.still):
        F = torch.ones_like(flat.theta) if F is None else F.clone()
        F[torch.from_numpy(flat.still).to(flat.device)] = STILL
    return F


def advance(chain, n_draws, thin, seen, keep):
    """Make the draws of a chain, and record the evidence at each.

    Parameters
    ----------
    chain : ModuleChain
    n_draws, thin : int
        Number of draws, and of steps from one to the next.
    seen : tuple
        A batch of rows at which predictions are recorded.
    keep : callable
        ``keep(k, chain)`` takes draw k.

    Returns
    -------
    Evidence
    """
    functions, records = [], np.empty((4, n_draws))
    for k in range(n_draws):
        value = chain.run(thin)
        keep(k, chain)
        functions.append(functions_at(chain.target, seen).double().flatten().cpu().numpy())
        records[:, k] = (
            chain.temperature(chain.h),
            *chain.squared_motions(seen, chain.h),
            float(value.total()),
        )
    return Evidence(np.array(functions), records[0], records[1:3], records[3])
