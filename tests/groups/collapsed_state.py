"""A factor in collapsed coordinates at random, and kernels that only other kernels call."""

import numpy as np

from skbayes_sg._base.jit import uncached
from skbayes_sg.groups import collapsed_kernels, split_hmc
from skbayes_sg.groups.algebra import propose_effects
from skbayes_sg.groups.collapsed import CollapsedRows, Reference
from skbayes_sg.groups.collapsed_kernels import UNKNOWN, new_place
from skbayes_sg.groups.covariance import n_scales
from skbayes_sg.groups.kernels import losses_of_levels, residual_pass


@uncached
def _potential(factor, rows, model, x, zeta, known, at):
    return collapsed_kernels.potential(factor, rows, model, x, zeta, known, at)


@uncached
def _whitened(factor, x, u, at, zeta):
    collapsed_kernels.whitened(factor, x, u, at, zeta)


@uncached
def _proposed(factor, at, x, u, noise, law, gain):
    propose_effects(
        factor.H, factor.S, factor.t, at.omega, at.C, x[: factor.S.shape[2]], u, noise.narrow,
        noise.normal, law, at.squares, at.u, gain,
    )  # fmt: skip


@uncached
def _losses(factor, rows, model, x, u, proposed, at, eta, losses):
    theta = x[: factor.prior.shape[0]]
    losses_of_levels(
        rows, model, theta, u, proposed, factor.offset, at.blocks, at.line, eta, losses
    )


@uncached
def _residuals(factor, rows, model, x, u, at, eta, residuals):
    D = factor.prior.shape[0]
    residual_pass(rows, model, x[:D], u, eta, at.blocks, at.line, at.g[:D], residuals)


@uncached
def _moved(factor, rows, model, x, u, noise, at, residuals):
    return split_hmc.moved_effects(factor, rows, model, x, u, noise, at, residuals)


@uncached
def _trajectory(factor, rows, model, coordinates, steps, noise, x, zeta, at):
    return split_hmc.trajectory(
        factor, rows, model, coordinates, steps, noise, x, zeta, UNKNOWN, at
    )


class At:
    """Factor k at a random reference, and a random state: x = (θ, ψ), ζ, and effects.

    Parameters
    ----------
    problem : GroupProblem
    k : int
    u, reference : list of ndarray, optional
        Effects of all factors, and those of the reference.
    """

    def __init__(self, problem, k=0, seed=0, u=None, reference=None):
        rng = np.random.default_rng(seed)
        self.rows, self.D, self.k = CollapsedRows(problem), problem.target.n_parameters, k
        shapes = list(zip(problem.sizes, problem.widths, strict=True))
        theta = 0.3 * rng.standard_normal(self.D)
        reference = reference or [0.5 * rng.standard_normal(own) for own in shapes]
        self.u = u or [0.5 * rng.standard_normal(own) for own in shapes]
        self.factor = Reference(self.rows, theta, reference).law_of_factor(k, self.u)
        psi = 0.5 * rng.standard_normal(n_scales(shapes[k][1])) - 0.3
        self.x = np.concatenate([0.4 * rng.standard_normal(self.D), psi])
        self.zeta = rng.standard_normal(shapes[k])
        n_predictors = problem.target.model.n_predictors
        self.place = new_place(shapes[k], len(self.x), n_predictors)
        self.seen = self.factor, self.rows.sorted[k], self.rows.model

    def potential(self, x=None, known=UNKNOWN):
        """U, and its gradient."""
        x = self.x if x is None else x
        value = _potential(*self.seen, x, self.zeta, known, self.place)
        return value, self.place.g.copy()

    def effects(self, x=None, zeta=None):
        """u of ζ."""
        x, zeta = self.x if x is None else x, self.zeta if zeta is None else zeta
        collapsed_kernels.placed(self.factor, x, zeta, self.place)
        return self.place.u.copy()

    def whitened(self, u):
        """ζ of u."""
        zeta = np.empty(u.shape)
        _whitened(self.factor, self.x, u, self.place, zeta)
        return zeta

    def noise(self, seed=0):
        """The random numbers of a visit."""
        rng = np.random.default_rng(seed)
        return split_hmc.drawn_noise(rng, self.u[self.k].shape, len(self.x))

    def proposed(self, law):
        """New effects of all levels, and log (target without the rows / proposal)."""
        self.effects()  # sets the covariance
        gain = np.empty(len(self.zeta))
        _proposed(self.factor, self.place, self.x, self.u[self.k], self.noise(), law, gain)
        return self.place.u.copy(), gain

    def losses(self, u, proposed):
        """Of all levels at two effects; what the rows say at the first is left in the place."""
        losses, self.eta = np.zeros((len(u), 2)), np.empty(self.rows.n_rows)
        _losses(*self.seen, self.x, u, proposed, self.place, self.eta, losses)
        return losses

    def residuals(self, u):
        """w_i ∂ℓ_i/∂η_i right after `losses`; their sums in θ and u are left in the place."""
        found = np.empty(self.rows.n_rows)
        self.place.g[:] = 0.0
        _residuals(*self.seen, self.x, u, self.place, self.eta, found)
        self.place.G[:] = self.rows.by_level(self.rows.unsorted(found, self.k), self.k)
        return found

    def moved(self, seed=0):
        """Effects after a proposal for each level, the share accepted, and Σ w_i ℓ_i."""
        self.effects()
        u, residuals = self.u[self.k].copy(), np.empty(self.rows.n_rows)
        share, loss = _moved(*self.seen, self.x, u, self.noise(seed), self.place, residuals)
        return u, share, loss

    def trajectory(self, x, steps, momentum, accept_uniform=-1.0, width=0.2):
        """x and momentum after a trajectory, the probability of its acceptance is left here.

        Without `accept_uniform`, a uniform number, it is accepted whatever it is.
        """
        x, noise = x.copy(), self.noise()
        noise = noise._replace(momentum=momentum.copy(), accept_uniform=accept_uniform)
        root = width * (np.eye(len(x)) + 0.1 * np.tri(len(x)))
        coordinates = split_hmc.coordinates_of(self.x - 2.0, root)
        self.probability = _trajectory(
            *self.seen, coordinates, steps, noise, x, self.zeta, self.place
        )
        return x, noise.momentum
