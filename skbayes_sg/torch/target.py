"""The law that chains sample: π(θ) ∝ (p(θ) Π_i p(y_i | x_i, θ)^(w_i))^(1/T), and its gradients.

U(θ) = (1/T) [-log p(θ) + Σ_i w_i ℓ_i(θ)] with ℓ_i = -log p(y_i | x_i, θ). Sums over rows are never
means, and the prior is never scaled with a batch.
"""

from typing import NamedTuple

import numpy as np
import torch

from . import likelihoods, priors
from .auto import rows_at_a_time

__all__ = ["ClassLikelihood", "ModuleTarget", "NormalLikelihood", "Value", "block_for"]

BLOCK = 500  # rows of a block in sums over many rows, at most
HELD = 1 << 27  # numbers that a block holds for its gradient: half a gigabyte
NOISE_DF = 3.0  # degrees of freedom of the half Student's t prior of σ, whose scale is that of y


def block_for(numbers_of_a_row, batch_size):
    """Return the number of rows of a block: as `HELD` allows, but no fewer than a step takes."""
    return max(min(batch_size, BLOCK), rows_at_a_time(numbers_of_a_row, HELD, BLOCK))


class Value(NamedTuple):
    """The sum Σ w_i ℓ_i over a batch, which is computed only if `total` is called.

    Parameters
    ----------
    terms, weights : tensors of shape (n_rows,)
        ℓ_i and w_i; the weights include the factor that makes the batch stand for all rows.
    """

    terms: torch.Tensor
    weights: torch.Tensor

    def total(self):
        """Return the sum in double precision: its changes are small next to it for many rows."""
        return (self.weights * self.terms).sum(dtype=torch.float64)


class ClassLikelihood:
    """The likelihood of class labels, which has no parameters of its own."""

    n_extra = 0

    def __init__(self, n_classes):
        self.n_classes = n_classes

    def terms(self, output, y, extra):
        """Return -log p(y | output) for each position of each row."""
        del extra
        return likelihoods.class_terms(likelihoods.class_logits(output, self.n_classes), y)

    def functions(self, output, y):
        """Return what is compared between chains: the log probabilities of all classes."""
        del y
        return torch.log_softmax(likelihoods.class_logits(output, self.n_classes), dim=-1)

    def add_prior_gradient(self, extra, gradient_out, factor):
        """Do nothing: there are no parameters."""

    def prior_value(self, extra):
        """Return zero: there are no parameters."""
        del extra
        return 0.0

    def with_floor(self, floor):
        """Return the likelihood itself: there are no residuals."""
        del floor
        return self


class NormalLikelihood:
    """The normal likelihood of numbers, in units of their standard deviation.

    Parameters
    ----------
    log_noise : float, array, "infer" or "module"
        The known log σ; "infer" if log σ is the last number of θ, whose prior is half Student's t
        in σ; or "module" if log σ is a part of the output.
    floor : float, default=0.0
        Residuals r count as (r² + floor²)^½, in searches for a mode.
    """

    def __init__(self, log_noise, floor=0.0):
        self.log_noise, self.floor = log_noise, floor
        self.of_module = isinstance(log_noise, str) and log_noise == "module"
        self.n_extra = int(isinstance(log_noise, str) and log_noise == "infer")

    def noise(self, output, extra):
        """Return log σ as a tensor; None where the module gives it."""
        if self.of_module:
            return None
        return extra[0] if self.n_extra else output.new_tensor(np.asarray(self.log_noise))

    def terms(self, output, y, extra):
        """Return -log p(y | output) for each number of each row."""
        f, log_noise = likelihoods.normal_parts(output, self.noise(output, extra), y.shape)
        return likelihoods.normal_terms(f, log_noise, y, self.floor)

    def with_floor(self, floor):
        """Return the likelihood with a floor of residuals if σ is unknown, otherwise itself."""
        is_known = not (self.n_extra or self.of_module)
        return self if is_known else NormalLikelihood(self.log_noise, floor)

    def functions(self, output, y):
        """Return what is compared between chains: the means of all numbers."""
        log_noise = None if self.of_module else output.new_zeros(())
        return likelihoods.normal_parts(output, log_noise, y.shape)[0]

    def add_prior_gradient(self, extra, gradient_out, factor):
        """Add the gradient of -log(p(σ) σ) with respect to s = log σ."""
        if self.n_extra:
            square = torch.exp(2.0 * extra)
            slope = (NOISE_DF + 1.0) * square / (NOISE_DF + square) - 1.0
            gradient_out.add_(slope, alpha=factor)

    def prior_value(self, extra):
        """Return -log(p(σ) σ) up to a constant; zero if σ is not a parameter."""
        return self.prior_values(extra).sum() if self.n_extra else 0.0

    @staticmethod
    def prior_values(log_noise):
        """Return -log(p(σ) σ), up to a constant, for each entry of a tensor of log σ."""
        square = torch.exp(2.0 * log_noise)
        return 0.5 * (NOISE_DF + 1.0) * torch.log1p(square / NOISE_DF) - log_noise


class ModuleTarget:
    """The law that one chain samples, at the parameters of its module.

    Parameters
    ----------
    flat : FlatModule
        The module; its vector has the parameters of the module, then those of the likelihood.
    likelihood : ClassLikelihood or NormalLikelihood
    groups : list of priors.Group
    rows : TensorRows or DatasetRows
    temperature : float
        T; the posterior itself has 1.
    block : int
        Number of rows at a time in sums over many rows.
    """

    def __init__(self, flat, likelihood, groups, rows, temperature=1.0, block=BLOCK):
        self.flat, self.likelihood, self.rows = flat, likelihood, rows
        self.groups, self.temperature, self.block = groups, float(temperature), block
        self.extra = slice(flat.n_own, flat.n_parameters)
        # A leaf of the graph that shares the memory of the vector, like the module's parameters.
        self._extra = torch.nn.Parameter(flat.theta[self.extra])
        self._extra.grad = flat.gradient[self.extra]

    def with_floor(self, floor):
        """Return the law of the same vector with a floor of residuals: see `NormalLikelihood`."""
        law = self.likelihood.with_floor(floor), self.groups, self.rows, self.temperature
        return ModuleTarget(self.flat, *law, self.block)

    def twin(self):
        """Return the same law for a copy of the module and its vector."""
        own = self.likelihood, self.groups, self.rows, self.temperature, self.block
        return ModuleTarget(self.flat.twin(), *own)

    def generator(self, seed):
        """Return a new generator of random numbers on the device."""
        return torch.Generator(self.flat.device).manual_seed(seed)

    def row_terms(self, batch):
        """Return ℓ_i of each row of a batch, (n_rows,)."""
        x, y, _ = batch
        return likelihoods.sum_of_row(self.likelihood.terms(self.flat.module(x), y, self._extra))

    def factors(self, n):
        """Return the factors N/(nT), (n,), with which the terms of n rows stand for all N rows."""
        factor = self.rows.n_rows / n / self.temperature
        return torch.full((n,), factor, dtype=self.flat.theta.dtype, device=self.flat.device)

    def add_rows(self, batch, factors):
        """Add Σ f_i w_i ∇ℓ_i over a batch to ``flat.gradient``, with a factor f_i for each row.

        Returns
        -------
        Value
            The sum Σ f_i w_i ℓ_i.
        """
        terms = self.row_terms(batch)
        weights = factors if batch[2] is None else factors * batch[2]
        terms.backward(weights)
        return Value(terms.detach(), weights)

    def add_prior(self, factor):
        """Add factor ∇(-log p(θ)) to ``flat.gradient``."""
        flat = self.flat
        priors.add_gradient(self.groups, flat.theta, flat.gradient, factor)
        if self.likelihood.n_extra:
            own = flat.theta[self.extra], flat.gradient[self.extra]
            self.likelihood.add_prior_gradient(*own, factor)

    def prior_value(self):
        """Return -log p(θ) up to a constant, the prior of σ included."""
        theta = self.flat.theta
        value = priors.negative_log_density(self.groups, theta)
        return value + self.likelihood.prior_value(theta[self.extra])

    def sum_gradient(self, index=None):
        """Set ``flat.gradient`` to (N/n) Σ w_i ∇ℓ_i / T over n rows; return (N/n) Σ w_i ℓ_i / T.

        All rows are taken by default, in blocks of about the same size: batch normalisation needs
        two rows.
        """
        index = np.arange(self.rows.n_rows) if index is None else index
        factors = self.factors(len(index))
        self.flat.gradient.zero_()
        total = 0.0
        for part in np.array_split(index, -(-len(index) // self.block)):
            total = total + self.add_rows(self.rows.batch(part), factors[: len(part)]).total()
        return total

    def potential(self):
        """Return U(θ) over all rows, and set ``flat.gradient`` to its gradient."""
        total = self.sum_gradient()
        self.add_prior(1.0 / self.temperature)
        return total + self.prior_value() / self.temperature
