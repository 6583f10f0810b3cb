"""Levels: step sizes, durations, and costs of paths.

    h_l = h₀ 2^-l,        T_l = (m (l + 1) + A) h₀,        T_l - T_{l-1} = m h₀.

The fine path of level l ≥ 1 runs alone for the time T_l - T_{l-1}; then fine and coarse path run
jointly for the time T_{l-1} (Nagapetyan et al. 2017, sec. 3, with A = 0). So each level reduces the
influence of the starting point as well as that of the step size. The average (sec. 3.3) is over the
positions at the last instants, A h₀ from first to last, the *same* instants on all levels. The
average of the coarse path of level l therefore has the law of that of the fine path of level l - 1,
and no variance comes from comparing averages over different times.
"""

from dataclasses import dataclass

from .double_step import Route

__all__ = ["Hierarchy"]


@dataclass(frozen=True)
class Hierarchy:
    """The levels of one run.

    Parameters
    ----------
    h0 : float
        Step size of level 0.
    shift : int
        The number m of steps of h₀ by which a level is longer than the one below.
    kept : int
        Number of instants that are averaged.
    stride : int
        Steps of h₀ from one instant to the next.
    batch_size : int
        Number of rows a step.
    n_coarse : int
        Number of coarse paths of a level.
    """

    h0: float
    shift: int
    kept: int
    stride: int
    batch_size: int
    n_coarse: int

    def step_size(self, level):
        """Step size h_l of the fine path of a level."""
        return self.h0 / 2**level

    def duration(self, level):
        """Duration T_l of the fine path of a level, in units of h₀."""
        return self.shift * (level + 1) + self.stride * (self.kept - 1)

    def route(self, level):
        """The `Route` of the paths of a level."""
        h = self.step_size(level)
        if level == 0:
            return Route(h, self.duration(0), 0, self.stride, 0)
        half = 2 ** (level - 1)
        joint = self.duration(level - 1) * half
        return Route(h, 2 * half * self.shift, joint, self.stride * half, self.n_coarse)

    def n_states(self, level):
        """Number of paths of a level, fine and coarse."""
        return 1 + self.route(level).n_coarse

    def n_units(self, level):
        """Number of units that one sample takes: see `double_step.Route`."""
        route = self.route(level)
        return route.n_alone + route.n_joint

    def cost(self, level):
        """Number of rows that all steps of all paths of one sample read."""
        _, n_alone, n_joint, _, n_coarse = self.route(level)
        return self.batch_size * (n_alone + n_joint * (2 + n_coarse))
