"""Coupled paths of the tests: small posteriors, paths of one level, and the same by hand.

What is done by hand here follows the formulas of the paper, one step after the other, on batches
and normals that are read off copies of a block's streams.
"""

import numpy as np
import probe
from gaussian import Gaussian

from skbayes_sg._base import streams
from skbayes_sg._base.jit import jit, pointer
from skbayes_sg.dynamics import SGLD
from skbayes_sg.engine import run
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.gradients import Full, Minibatch, Taylor
from skbayes_sg.kernels.layout import frozen
from skbayes_sg.models import Logistic
from skbayes_sg.multilevel import double_step as kernels
from skbayes_sg.multilevel.couplings import COUPLE, Antithetic, Common, Plain
from skbayes_sg.multilevel.hierarchy import Hierarchy
from skbayes_sg.multilevel.paths import Paths
from skbayes_sg.priors import Normal
from skbayes_sg.subsampling import AllRows, Uniform

COUPLINGS = {"plain": Plain, "antithetic": Antithetic, "common": Common}


@jit
def _double_step(
    problem, pieces, parameters, states, rows, n, coefficients, noises, h, n_coarse, scratch
):  # fmt: skip
    kernels.double_step(
        problem, pieces, parameters, states, rows, n, coefficients, noises, h, n_coarse, scratch
    )


@jit
def _couple(couple, rng, n, rows, coefficients):
    couple(rng, n, rows, coefficients)


# -- posteriors -----------------------------------------------------------------------------------


def target_of(model, n_rows=64, n_features=1, seed=0):
    """Standard normal columns, coefficients 1, no intercept; prior N(0, 1)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    eta = X.sum(axis=1)
    if isinstance(model, Logistic):
        y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    else:
        y = eta + rng.standard_normal(n_rows)
    prior = Normal()._table((n_features,))
    return probe.make_target(model, X, y, np.ones(n_rows), prior, intercept=False)


def mean_of_rows(y):
    """θ given rows y_i ~ N(θ, 1), hardly any prior: gradients are N θ - (N/n) Σ y_i."""
    prior = Normal(scale=1e8)._table((1,))
    X, w = np.ones((len(y), 1)), np.ones(len(y))
    return probe.make_target(Gaussian(), X, y, w, prior, intercept=False)


def whitened(target):
    """The frame around the mode in which the posterior has unit width."""
    centre = find_centre(target, dense=True, rng=np.random.default_rng(0))
    return build_frame(target, centre, "hessian")


def posterior_mean(target, g):
    """E g(θ) of a posterior of one parameter, by quadrature."""
    centre = whitened(target).centre
    width = 1.0 / np.sqrt(centre.hessian[0, 0])
    theta = centre.theta[0] + width * np.linspace(-9.0, 9.0, 1801)
    U = np.array([target.value_and_gradient(np.array([t]))[0] for t in theta])
    weight = np.exp(U.min() - U)
    return float((weight * g(theta)).sum() / weight.sum())


# -- paths ----------------------------------------------------------------------------------------


def paths_of(
    frame, coupling="antithetic", gradient=None, batch_size=4, h0=0.5, shift=4.0, kept=1, stride=1,
    seed=0, n_jobs=None,
):  # fmt: skip
    """Paths in a frame; `shift` in units of time."""
    coupling, gradient = COUPLINGS[coupling](), gradient or Minibatch()
    n = frame.target.n_rows if isinstance(gradient, Full) else batch_size
    scheme = AllRows() if isinstance(gradient, Full) else Uniform()
    setup = run.Setup(
        frame.problem(gradient), frame.target.model, gradient, scheme, SGLD(), n,
        bounds=np.full(frame.target.n_parameters, 1e6),
    )  # fmt: skip
    hierarchy = Hierarchy(h0, round(shift / h0), kept, stride, n, coupling.n_coarse)
    return Paths(setup, coupling, hierarchy, seed, n_jobs)


def records_of(paths, level, n_paths, first=0):
    """(n_paths, n_kept, n_states, n_parameters) of one level."""
    return np.concatenate(list(paths.positions(level, first, n_paths)))


def differences(paths, level, n_paths, g=lambda theta: theta[..., 0]):
    """Δ_l of g of the positions."""
    values = g(records_of(paths, level, n_paths)).mean(axis=1)
    return values[:, 0] - (values[:, 1:].mean(axis=1) if values.shape[1] > 1 else 0.0)


def double_step(paths, states, rows, coefficients, noises, h):
    """All states after one double step of the kernel, with its randomness given."""
    setup, n_coarse = paths.setup, paths.coupling.n_coarse
    subsample, _, _, _, scratch = paths.workspace()
    states = np.array(states, dtype=float).reshape(3, 1, -1)
    noises = np.concatenate([noises, np.zeros((1, states.shape[2]))])
    _double_step(
        setup.problem, run.pieces(setup, subsample, scratch), frozen(np.zeros(0)), states,
        np.array(rows), np.shape(rows)[1], np.array(coefficients, dtype=float), noises, float(h),
        n_coarse, scratch,
    )  # fmt: skip
    return states[:, 0]


def coupled(coupling, rows, coefficients, rng):
    """Rows and coefficients with those of the coarse paths, of two fine batches."""
    n = np.shape(rows)[1]
    rows = np.concatenate([rows, np.full((2, n), -1)])
    coefficients = np.concatenate([coefficients, np.zeros((2, n))])
    _couple(pointer(coupling.couple, COUPLE), rng, n, rows, coefficients)
    return rows, coefficients


# -- the same by hand -----------------------------------------------------------------------------


class ByHand:
    """Inputs of one path of a block, in the order in which the kernel uses them."""

    def __init__(self, paths, level, number=0):
        self.paths, self.level = paths, level
        self.rng_rows, self.rng_noise = streams.of_paths(paths.seed, level, number)

    def _batch(self):
        setup = self.paths.setup
        N, n = setup.n_rows, setup.batch_size
        if isinstance(setup.subsampling, AllRows):
            return np.arange(N), np.ones(N)
        rows = [int(self.rng_rows.random() * N) for _ in range(n)]
        return np.array(rows), np.full(n, N / n)

    def inputs(self):
        """Of the next path: (steps of the fine path, those of each coarse path).

        A step is (rows, coefficients, noise).
        """
        h = self.paths.hierarchy
        D, level, coupling = self.paths.setup.n_parameters, self.level, self.paths.coupling
        fine, coarse = [], [[] for _ in range(coupling.n_coarse if level else 0)]
        lead = h.shift * 2**level if level else h.duration(0)
        for _ in range(lead):
            fine.append((*self._batch(), self.rng_noise.standard_normal(D)))
        for _ in range(h.duration(level - 1) * 2 ** (level - 1) if level else 0):
            first = (*self._batch(), self.rng_noise.standard_normal(D))
            second = (*self._batch(), self.rng_noise.standard_normal(D))
            fine += [first, second]
            rows, coefficients = coupled(
                coupling, np.stack([first[0], second[0]]), np.stack([first[1], second[1]]),
                self.rng_rows,
            )  # fmt: skip
            noise = np.sqrt(0.5) * (first[2] + second[2])
            for k, steps in enumerate(coarse):
                steps.append((rows[2 + k], coefficients[2 + k], noise))
        return fine, coarse


def fine_path(paths, level, steps, probe_):
    """What a fine path of a level keeps, if it takes these steps: (n_kept, n_parameters)."""
    hierarchy, h = paths.hierarchy, paths.hierarchy.h0 * 2.0**-level
    n_steps = hierarchy.duration(level) * 2**level
    assert len(steps) == n_steps  # T_l / h_l
    every = hierarchy.stride * 2**level
    state, kept = np.zeros((1, paths.setup.n_parameters)), {}
    for k, (rows, coefficients, noise) in enumerate(steps, start=1):
        state = probe_.step(state, rows, coefficients, noise, h)
        kept[k] = state[0]
    return np.stack([kept[n_steps - every * b] for b in reversed(range(hierarchy.kept))])


GRADIENTS = {"minibatch": Minibatch, "taylor": Taylor, "full": Full}
