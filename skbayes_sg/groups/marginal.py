r"""The likelihood of one column with levels, with the effect of each level integrated out.

Given the coefficients, the extras and τ, the effects of levels are independent, and the likelihood
is a product of integrals in one dimension,

    p(y | θ, τ) = Π_l ∫ N(u; 0, τ²) Π_{i in l} p(y_i | η_i + u, extras) du.

Each is computed at even steps of x, with u = m_l + P_l^-½ t, t = sinh(a x)/a. The place m_l and the
precision P_l follow θ and τ as those of the effects of a quadratic expansion at one reference do
(`collapsed`), so that few nodes suffice. The trapezoidal rule converges faster than any power of
its step for such integrands. Each level has the smallest of the `RULES` that is accurate at some
draws: eight nodes where the rows make its likelihood nearly normal, and more where one side of it
is flat as far as the prior reaches, as for a class that is certain or a count of zero.

The same nodes give draws of the effects: of the log density that is a cubic between them.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._base import streams
from .._base.jit import pointer
from .._base.threads import in_threads
from ..importance.sample import LEFT
from ..kernels.layout import SHIFTED, frozen
from ..kernels.many_draws import prior_values
from .marginal_kernels import LevelRows, Rule, integrate_levels

__all__ = ["MarginalLikelihood"]

# Number of nodes, their distance in x, and a, of rules that are chosen, and of those by which these
# are judged. Errors of the latter were below 0.0005 nats, also at levels of a few rows and τ = 5.
RULES = [(8, 1.3, 0.0), (16, 0.7, 0.15), (24, 0.5, 0.25), (32, 0.45, 0.35), (48, 0.4, 0.45)]
RULES += [(64, 0.4, 0.55), (96, 0.3, 0.5), (128, 0.25, 0.5)]
FINEST = ((32, 0.4, 0.4), (64, 0.3, 0.4), (96, 0.3, 0.5), (128, 0.25, 0.8))
# For likelihoods with several peaks, such as of rows that disagree under heavy tails.
FINEST_OF_PEAKS = ((128, 0.2, 0.3), (256, 0.1, 0.3), (1024, 0.06, 0.2), (1024, 0.045, 0.5))
ERROR = 0.02  # nats that the errors of all levels together may leave
PRIORS = 6.0  # standard deviations of the prior that the finest rule must reach
MOST_ERROR = 0.001  # nats that the error of a level may be
# Effects are drawn between the ends of a rule: the density must be so many nats lower there, and
# the mass of its cubics must be right up to this share.
ENDS, BETWEEN = 8.0, 0.005
BLOCK_ROWS = 2048  # rows of levels that are evaluated together
AT_ONCE = 32  # draws that a thread evaluates before it takes others


def _rule(n, h, a):
    """The `Rule` with n nodes at distances h in x."""
    x = h * (np.arange(n) - 0.5 * (n - 1))
    nodes = np.sinh(a * x) / a if a else x
    return Rule(h, a, frozen(nodes), frozen(np.log(h * np.cosh(a * x))))


class _Block(NamedTuple):
    """Levels that are evaluated together: their rows, and what places their nodes."""

    which: np.ndarray  # (n_levels,): their numbers
    rule: Rule
    levels: LevelRows
    X: np.ndarray  # (n_coefficients, n_rows)
    S: np.ndarray  # (n_coefficients, n_levels)
    t: np.ndarray  # (n_levels,)


class MarginalLikelihood:
    """The potential -log p(θ, log τ | y), up to a constant, with the effects integrated out.

    Parameters
    ----------
    reference : skbayes_sg.groups.collapsed.Reference
        The expansion by which nodes are placed.
    rules : sequence of tuple
        Number of nodes, their distance in x, and a, of rules from the cheapest to the dearest.
    chosen : ndarray of int, shape (n_levels,)
        The rule of each level; those without a rule, -1, are left out.
    """

    def __init__(self, reference, rules, chosen):
        self.reference, self.rules, self.chosen = reference, rules, chosen
        problem = reference.rows.problem
        self.target, self.n = problem.target, problem.n_coefficients
        self.prior = frozen(np.concatenate([problem.target.prior, problem.scales[0]]))
        self.add_shifted = pointer(self.target.model.add_shifted, SHIFTED)

    @classmethod
    def finest(cls, reference, s):
        """The potential with rules that judge others, for τ up to e^s.

        They reach `PRIORS` times as far as the prior of an effect, since a likelihood may be flat
        on one side as far as the prior reaches; `ValueError` if none does. If there may be several
        peaks, they reach so far beyond zero, where there may be another.
        """
        convex, n = reference.is_convex, reference.rows.problem.n_coefficients
        H, S, t = (part[:, 0] for part in reference.factors[0])
        P = H[:, 0] + np.exp(-2.0 * s)
        needed = PRIORS * np.exp(s) * np.sqrt(P)
        if not convex:
            needed += np.abs(t - S @ reference.theta[:n]) / np.sqrt(P)
        rules = FINEST if convex else FINEST_OF_PEAKS
        chosen = np.searchsorted([_rule(*rule).nodes[-1] for rule in rules], needed)
        if (chosen == len(rules)).any():
            raise ValueError(f"The prior of an effect is wider than any rule at log τ = {s:.3g}.")
        return cls(reference, rules, chosen)

    def check_resolution(self, thetas):
        """`ValueError` if rules of half the step disagree about a level at a few draws."""
        rules = [(2 * n, 0.5 * h, a) for n, h, a in self.rules]
        finer = MarginalLikelihood(self.reference, rules, self.chosen)
        error = self.of_levels(thetas)[0] - finer.of_levels(thetas)[0]
        if not max(np.abs(error).max(), np.ptp(error.sum(axis=1))) <= LEFT:
            raise ValueError("The likelihood of a level has peaks that no rule resolves.")

    @classmethod
    def of(cls, finest, thetas):
        """The potential with the cheapest rules that are accurate at each of a few draws.

        The second result is the largest difference of its errors at two of these draws, or the
        largest error of a level.
        """
        reference, (truth, _), L = finest.reference, finest.of_levels(thetas), len(finest.chosen)
        chosen, error = np.full(L, -1), np.full((len(thetas), L), np.inf)
        for tolerance in (ERROR / np.sqrt(L), ERROR / L):  # levels that are alike err alike
            for k in range(len(RULES)):
                left = (np.abs(error).max(axis=0) > min(tolerance, MOST_ERROR)) & (chosen < k)
                if not left.any():
                    continue
                chosen[left] = k
                found, checks = cls(reference, RULES, np.where(left, k, -1)).of_levels(thetas)
                error[:, left] = (found - truth)[:, left]
                (ends, between), last = checks.T, k == len(RULES) - 1
                bad = (ends.min(axis=1) < ENDS) | (between.max(axis=1) > BETWEEN)
                error[:, left & bad & (not last)] = np.inf
            total = float(max(np.ptp(error.sum(axis=1)), np.abs(error).max()))
            if total <= LEFT:
                break
        return cls(reference, RULES, chosen), total

    @cached_property
    def _blocks(self):
        """Every `_Block`: levels with up to `BLOCK_ROWS` rows together, or one with more."""
        rows, (H, S, t) = self.reference.rows.sorted[0], self.reference.factors[0]
        sizes, found = np.diff(rows.starts), []
        for number, rule in enumerate(self.rules):
            which = np.flatnonzero(self.chosen == number)
            part = np.cumsum(sizes[which]) // BLOCK_ROWS
            for own in np.split(which, np.flatnonzero(np.diff(part)) + 1):
                if not len(own):
                    continue
                here = np.concatenate([np.arange(*rows.starts[k : k + 2]) for k in own])
                starts = frozen(np.append(0, np.cumsum(sizes[own])), np.int64)
                levels = LevelRows(frozen(rows.facts[here]), starts, frozen(H[own, 0, 0]))
                parts = rows.X[:, here], S[own, 0].T, t[own, 0]
                found.append(_Block(own, _rule(*rule), levels, *parts))
        return found

    def values(self, thetas):
        """The potential at rows (θ, log τ) of `thetas`, (n_draws,)."""
        return self._everywhere(thetas, lambda own, _: self._value(own))

    def values_and_effects(self, thetas, rng):
        """The potential at rows of `thetas`, and for each a draw of all effects, as float32."""
        effects = np.empty((len(thetas), len(self.chosen)), dtype=np.float32)
        of_chunks = [streams.child(rng) for _ in range(0, len(thetas), AT_ONCE)]

        def work(own, first):
            effects_rng = of_chunks[first // AT_ONCE]
            return self._value(own, effects_rng, effects[first : first + len(own)])

        return self._everywhere(thetas, work), effects

    def of_levels(self, thetas):
        """-log of the integrals of all levels, (n_draws, n_levels), and checks of the effects.

        The checks are those of `marginal_kernels`, (n_draws, n_levels, 2).
        """
        out = np.zeros((len(thetas), len(self.chosen)))
        checks = np.zeros((*out.shape, 2))
        for which, found, _, own in self._pieces(thetas, checked=True):
            out[:, which], checks[:, which] = found, own
        return out, checks

    def peaks(self, theta):
        """The effects of all levels at their highest nodes, (n_levels,), for (θ, log τ)."""
        precision, beta, extras = np.exp(-2.0 * theta[-1]), theta[: self.n], theta[self.n : -1]
        found = np.empty(len(self.chosen))
        for which, rule, levels, X, S, t in self._blocks:
            P = levels.information + precision
            shifts = ((t - beta @ S) / P)[:, None] + rule.nodes / np.sqrt(P)[:, None]
            heights = 0.5 * precision * shifts**2
            self.target.model.add_shifted(
                levels.facts, levels.starts, beta @ X, frozen(extras), shifts, heights
            )
            found[which] = shifts[np.arange(len(P)), heights.argmin(axis=1)]
        return found

    def _everywhere(self, thetas, work):
        """Join ``work(some rows, number of the first)`` for chunks of rows."""
        firsts = range(0, len(thetas), AT_ONCE)
        found = in_threads(
            lambda first: work(thetas[first : first + AT_ONCE], first), firsts, self.target.n_jobs
        )
        return np.concatenate(found)

    def _value(self, thetas, rng=None, effects_out=None):
        """The potential at rows of `thetas`; effects are drawn if `effects_out` is given."""
        values = np.zeros(len(thetas))
        prior_values(self.prior, np.ascontiguousarray(thetas), values)
        for which, found, effects, _ in self._pieces(thetas, rng):
            values += found.sum(axis=1)
            if effects_out is not None:
                effects_out[:, which] = effects
        return values

    def _pieces(self, thetas, rng=None, checked=False):
        """Yield numbers of levels, -log of their integrals, draws of their effects, and checks."""
        J, n = len(thetas), self.n
        precision, beta = np.exp(-2.0 * thetas[:, -1]), thetas[:, :n]
        extras = frozen(thetas[:, n:-1])
        for which, rule, levels, X, S, t in self._blocks:
            middle = (t - beta @ S) / (levels.information + precision[:, None])
            values = np.empty(middle.shape)
            effects = np.empty((J if rng is not None else 0, len(t)), dtype=np.float32)
            checks = np.empty((J if checked else 0, len(t), 2))
            integrate_levels(
                self.add_shifted, levels, rule, beta @ X, extras, middle, precision,
                rng or streams.fixed(), values, effects, checks,
            )  # fmt: skip
            yield which, values, effects, checks
