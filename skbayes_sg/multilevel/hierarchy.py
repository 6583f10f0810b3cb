"""Levels: step sizes, durations, and what a path costs.

    h_l = h₀ 2^-l,        T_l = (m (l + 1) + A) h₀,        T_l - T_{l-1} = m h₀.

The fine path of level l ≥ 1 goes T_l - T_{l-1} alone; then fine and coarse path go T_{l-1} jointly
(Nagapetyan et al. 2017, sec. 3; A = 0 is theirs). So a level lets go of where paths begin, as well
as of the step size. What is averaged (sec. 3.3) are the positions at the last instants, A h₀ from
first to last, the *same* instants on all levels: then the average of the coarse path of level l is
that of the fine path of level l - 1, and none of the variance of a level comes of comparing
averages over different times.
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
        m: steps of h₀ by which a level is longer than the one below.
    kept : int
        Instants that are averaged.
    stride : int
        Steps of h₀ from one of them to the next.
    batch_size : int
        Rows a step.
    n_coarse : int
        Coarse paths of a level.
    """

    h0: float
    shift: int
    kept: int
    stride: int
    batch_size: int
    n_coarse: int

    def step_size(self, level):
        """h_l."""
        return self.h0 / 2**level

    def duration(self, level):
        """T_l / h₀."""
        return self.shift * (level + 1) + self.stride * (self.kept - 1)

    def route(self, level):
        """What the paths of a level do."""
        h = self.step_size(level)
        if level == 0:
            return Route(h, self.duration(0), 0, self.stride, 0)
        half = 2 ** (level - 1)
        joint = self.duration(level - 1) * half
        return Route(h, 2 * half * self.shift, joint, self.stride * half, self.n_coarse)

    def n_states(self, level):
        """Fine and coarse paths."""
        return 1 + self.route(level).n_coarse

    def n_units(self, level):
        """Calls of steps that one sample takes: see `double_step.Route`."""
        route = self.route(level)
        return route.n_alone + route.n_joint

    def cost(self, level):
        """Rows that one sample touches: those of every step of every path."""
        _, n_alone, n_joint, _, n_coarse = self.route(level)
        return self.batch_size * (n_alone + n_joint * (2 + n_coarse))
