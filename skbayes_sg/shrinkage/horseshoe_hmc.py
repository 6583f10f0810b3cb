"""Coefficients under a horseshoe in any model, by Hamiltonian Monte Carlo given the scales.

A trajectory moves all parameters at once, in the metric of the Hessian of the likelihood at a
reference, plus diag(1/v).
"""

from dataclasses import replace

import numpy as np
from scipy import linalg

from ..geometry.frame import build_frame, shear, shear_back, slopes_of
from ..importance.lockstep import chance_of
from ..importance.potential import Potential
from ..kernels.layout import frozen
from ..priors import Flat
from ..recipe.price import seconds_of_steps
from .effective import curvature_along
from .normal_rows import lower_root, solved

__all__ = ["CoefficientsGivenScales", "acceptance_of"]

LEAPFROGS = 3  # leapfrog steps of a trajectory
# Seconds of a trajectory of a chain beside its gradients: in any case, and times columns².
OF_CHAIN = 2.8e-4, 1.4e-8
LARGEST = 0.5 * np.pi / LEAPFROGS  # largest leapfrog step: beyond it trajectories turn back
ACCEPTANCE, GAIN = 0.8, 0.1  # acceptance rate aimed at, and gain of the adaptation of the log step


def _inverted(roots, p):
    """(L Lᵀ)⁻¹ p of each chain."""
    return np.stack(
        [linalg.lapack.dpotrs(L, q, lower=True)[0] for L, q in zip(roots, p, strict=True)]
    )


class CoefficientsGivenScales:
    """All parameters of a model that is not linear, by Hamiltonian Monte Carlo given v."""

    def __init__(self, frame, scales, n_chains, n_warmup, rng):
        del n_warmup
        self.n, self.rng, self.unit = len(scales.group), rng, scales.unit
        prior = frame.target.prior.copy()
        prior[: self.n] = Flat()._table((self.n,))
        flat = frame.target.with_prior(frozen(prior))
        self.centre = frame.centre.theta
        self.potential = Potential(build_frame(flat, replace(frame.centre, prior=prior), "none"))
        H = frame.centre.hessian + np.diag(flat.prior_curvature(self.centre))
        n_intercepts = flat.model.n_linear if flat.intercept else 0
        # Positions x are sheared, since the Hessian in θ has no digits left for the coefficient of
        # a column far from zero. They are also in units in which intercepts have about unit
        # curvature: that of a response in large units would be lost beside the others.
        self.slopes = slopes_of(H, n_intercepts, flat.n_features)
        self.scale = np.append(scales.unit, np.ones(len(H) - self.n))
        own = slice(self.n, self.n + n_intercepts)
        curvature = np.diag(self._pulled_back(self._pulled_back(H).T))[own]
        self.scale[own] = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0))
        self.H = self._in_x(H)
        self._place(np.tile(self.centre, (n_chains, 1)))
        self.log_step, self.accepted = np.log(0.8 * LARGEST), []
        self.of_rows = seconds_of_steps(flat, n_chains, flat.n_rows)
        self.seconds = n_chains * (OF_CHAIN[0] + OF_CHAIN[1] * self.n**2)
        self.seconds += (LEAPFROGS + 1) * self.of_rows

    @property
    def beta(self):
        """β = θ/u of all chains, (n_chains, p)."""
        return self.x[:, : self.n]

    def _theta(self, x):
        """θ at positions x."""
        return shear(self.slopes, x * self.scale)

    def _pulled_back(self, g):
        """Gradients in x from gradients g in θ."""
        return shear_back(self.slopes, g) * self.scale

    def _in_x(self, H):
        """A Hessian in θ as one in x, made positive definite."""
        values, axes = linalg.eigh(self._pulled_back(self._pulled_back(H).T))
        return axes * np.maximum(np.abs(values), 1e-10 * np.abs(values).max()) @ axes.T

    def _hessian(self, x):
        """The Hessian of U without the prior of the coefficients at x, made positive definite."""
        flat, theta = self.potential.target, self._theta(x)
        return self._in_x(flat.likelihood_hessian(theta) + np.diag(flat.prior_curvature(theta)))

    def _value(self, x):
        """U without the prior of the coefficients at positions x, up to a constant."""
        with np.errstate(all="ignore"):
            return self.potential.values(self._theta(x) - self.centre)

    def _slope(self, x):
        """The gradient of `_value` in x."""
        with np.errstate(all="ignore"):
            return self._pulled_back(self.potential.gradients(self._theta(x) - self.centre))

    def update(self, local, warming_up):
        """Move all chains by a trajectory given the scales; adapt ε in warm-up."""
        precision = local.precision
        self.value = self._value(self.x) if self.value is None else self.value
        self.slope = self._slope(self.x) if self.slope is None else self.slope
        L = [self._metric(own) for own in precision]
        x = self.x
        g = self._with(self.slope, x, precision)
        p = np.stack([own @ z for own, z in zip(L, self.rng.standard_normal(x.shape), strict=True)])
        before = self._energy(self.value, x, p, precision, L)
        h = np.exp(self.log_step) * (1.0 + 0.2 * (2.0 * self.rng.random() - 1.0))
        for _ in range(LEAPFROGS):
            p = p - 0.5 * h * g
            x = x + h * _inverted(L, p)
            slope = self._slope(x)
            g = self._with(slope, x, precision)
            p = p - 0.5 * h * g
        value = self._value(x)
        with np.errstate(all="ignore"):
            chance = chance_of(before - self._energy(value, x, p, precision, L))
        moved = self.rng.random(len(chance)) < chance
        slope = np.where(moved[:, None], slope, self.slope)
        self._move(x, value, moved)
        self.slope = slope
        if warming_up:
            step = self.log_step + GAIN * (chance.mean() - ACCEPTANCE)
            self.log_step = min(step, np.log(LARGEST))
        else:
            self.accepted.append(chance.mean())

    def _place(self, theta):
        """Take all chains to θ."""
        self.x = shear(-self.slopes, theta) / self.scale
        self.value = self.slope = None  # until the next trajectory

    def _move(self, x, value, moved):
        """Take the chains that moved to x, where U has the given values."""
        self.x = np.where(moved[:, None], x, self.x)
        self.value = np.where(moved, value, self.value)
        self.slope = None if moved.any() else self.slope

    def _metric(self, precision):
        """The lower Cholesky factor of the metric of one chain."""
        Q = self.H.copy()
        Q[np.arange(self.n), np.arange(self.n)] += precision
        return lower_root(Q)

    def _with(self, slope, x, precision):
        """The gradient in x with the prior of the coefficients given v."""
        g = slope.copy()
        g[:, : self.n] += precision * x[:, : self.n]
        return g

    def _energy(self, value, x, p, precision, L):
        """The Hamiltonian of each chain at positions x and momenta p."""
        own = [solved(root, q) for root, q in zip(L, p, strict=True)]
        kinetic = 0.5 * np.square(own).sum(axis=1)
        return value + 0.5 * (precision * x[:, : self.n] ** 2).sum(axis=1) + kinetic

    def draws(self):
        """The parameters of the target in all chains, (n_chains, n_parameters)."""
        return self._theta(self.x)

    def curvature(self):
        """Curvature of the likelihood along each β_j, all but coefficients integrated out."""
        return np.broadcast_to(curvature_along(self.H, self.n), self.beta.shape)

    @property
    def told(self):
        """Diagnostics: see `acceptance_of`."""
        return acceptance_of(self.accepted)


def acceptance_of(accepted):
    """Diagnostics: the mean acceptance rate after the warm-up, if there were trajectories."""
    return {"acceptance": float(np.mean(accepted))} if accepted else {}
