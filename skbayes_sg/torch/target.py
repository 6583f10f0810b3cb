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
NOISE_DF = 3.0  # of the half Student's t prior of the noise, whose scale is that of y


def block_for(numbers_of_a_row, batch_size):
    """Rows of a block: as many as `HELD` allows, but no fewer than a step takes."""
    return max(min(batch_size, BLOCK), rows_at_a_time(numbers_of_a_row, HELD, BLOCK))


class Value(NamedTuple):
    """Σ w_i ℓ_i over a batch, which is computed only if it is asked for.

    Parameters
    ----------
    terms, weights : tensors of shape (n_rows,)
    """

    terms: torch.Tensor
    weights: torch.Tensor

    def total(self):
        """The sum, a tensor in double precision: of many rows its changes are small."""
        return (self.weights * self.terms).sum(dtype=torch.float64)


class ClassLikelihood:
    """Rows of classes; no parameters of its own."""

    n_extra = 0

    def __init__(self, n_classes):
        self.n_classes = n_classes

    def terms(self, output, y, extra):
        """-log p(y | output) for each position of each row."""
        del extra
        return likelihoods.class_terms(likelihoods.class_logits(output, self.n_classes), y)

    def functions(self, output, y):
        """What is compared between chains: the log probabilities of all classes."""
        del y
        return torch.log_softmax(likelihoods.class_logits(output, self.n_classes), dim=-1)

    def add_prior_gradient(self, extra, gradient_out, factor):
        """Do nothing: there are no parameters."""

    def prior_value(self, extra):
        """Zero: there are no parameters."""
        del extra
        return 0.0

    def with_floor(self, floor):
        """The same: there are no residuals."""
        del floor
        return self


class NormalLikelihood:
    """Rows of numbers, in units of their standard deviation.

    Parameters
    ----------
    log_noise : float, array, "infer" or "module"
        log σ; a number of θ, whose prior is half Student's t in σ; or a part of the output.
    floor : float, default=0.0
        Of searches: residuals r count as (r² + floor²)^½.
    """

    def __init__(self, log_noise, floor=0.0):
        self.log_noise, self.floor = log_noise, floor
        self.of_module = isinstance(log_noise, str) and log_noise == "module"
        self.n_extra = int(isinstance(log_noise, str) and log_noise == "infer")

    def noise(self, output, extra):
        """log σ as a tensor; None where the module gives it."""
        if self.of_module:
            return None
        return extra[0] if self.n_extra else output.new_tensor(np.asarray(self.log_noise))

    def terms(self, output, y, extra):
        """-log p(y | output) for each number of each row."""
        f, log_noise = likelihoods.normal_parts(output, self.noise(output, extra), y.shape)
        return likelihoods.normal_terms(f, log_noise, y, self.floor)

    def with_floor(self, floor):
        """The same where σ is not known, but for the residuals."""
        is_known = not (self.n_extra or self.of_module)
        return self if is_known else NormalLikelihood(self.log_noise, floor)

    def functions(self, output, y):
        """What is compared between chains: the means of all numbers."""
        log_noise = None if self.of_module else output.new_zeros(())
        return likelihoods.normal_parts(output, log_noise, y.shape)[0]

    def add_prior_gradient(self, extra, gradient_out, factor):
        """Add the gradient of -log(p(σ) σ) with respect to s = log σ."""
        if self.n_extra:
            square = torch.exp(2.0 * extra)
            slope = (NOISE_DF + 1.0) * square / (NOISE_DF + square) - 1.0
            gradient_out.add_(slope, alpha=factor)

    def prior_value(self, extra):
        """-log(p(σ) σ), up to a constant."""
        return self.prior_values(extra).sum() if self.n_extra else 0.0

    @staticmethod
    def prior_values(log_noise):
        """The same for each of many log σ."""
        square = torch.exp(2.0 * log_noise)
        return 0.5 * (NOISE_DF + 1.0) * torch.log1p(square / NOISE_DF) - log_noise


class ModuleTarget:
    """The law of one chain.

    Parameters
    ----------
    flat : FlatModule
        Its parameters are those of the module, then those of the likelihood.
    likelihood : ClassLikelihood or NormalLikelihood
    groups : list of priors.Group
    rows : TensorRows or DatasetRows
    temperature : float
        T; the posterior itself has 1.
    block : int
        Rows at a time in sums over many of them.
    """

    def __init__(self, flat, likelihood, groups, rows, temperature=1.0, block=BLOCK):
        self.flat, self.likelihood, self.rows = flat, likelihood, rows
        self.groups, self.temperature, self.block = groups, float(temperature), block
        self.extra = slice(flat.n_own, flat.n_parameters)
        # A leaf of the graph, whose memory is that of the vector, as for the module's parameters.
        self._extra = torch.nn.Parameter(flat.theta[self.extra])
        self._extra.grad = flat.gradient[self.extra]

    def with_floor(self, floor):
        """The same law of the same vector, but for small residuals: see `NormalLikelihood`."""
        law = self.likelihood.with_floor(floor), self.groups, self.rows, self.temperature
        return ModuleTarget(self.flat, *law, self.block)

    def twin(self):
        """The same law with a vector and a module of its own."""
        own = self.likelihood, self.groups, self.rows, self.temperature, self.block
        return ModuleTarget(self.flat.twin(), *own)

    def generator(self, seed):
        """A source of random numbers on the device."""
        return torch.Generator(self.flat.device).manual_seed(seed)

    def row_terms(self, batch):
        """ℓ_i of each row of a batch."""
        x, y, _ = batch
        return likelihoods.sum_of_row(self.likelihood.terms(self.flat.module(x), y, self._extra))

    def factors(self, n):
        """What the terms of n rows are multiplied by to stand for all N: N/nT, n times."""
        factor = self.rows.n_rows / n / self.temperature
        return torch.full((n,), factor, dtype=self.flat.theta.dtype, device=self.flat.device)

    def add_rows(self, batch, factors):
        """gradient += Σ f_i w_i ∇ℓ_i over a batch, for a factor f_i of each row.

        Returns
        -------
        Value
            Σ f_i w_i ℓ_i
        """
        terms = self.row_terms(batch)
        weights = factors if batch[2] is None else factors * batch[2]
        terms.backward(weights)
        return Value(terms.detach(), weights)

    def add_prior(self, factor):
        """gradient += factor ∇(-log p)."""
        flat = self.flat
        priors.add_gradient(self.groups, flat.theta, flat.gradient, factor)
        if self.likelihood.n_extra:
            own = flat.theta[self.extra], flat.gradient[self.extra]
            self.likelihood.add_prior_gradient(*own, factor)

    def prior_value(self):
        """-log p up to a constant."""
        theta = self.flat.theta
        value = priors.negative_log_density(self.groups, theta)
        return value + self.likelihood.prior_value(theta[self.extra])

    def sum_gradient(self, index=None):
        """gradient ← (N/n) Σ w_i ∇ℓ_i / T over n rows, all of them by default.

        They are taken in blocks of about the same size: batch normalisation needs two rows.
        """
        index = np.arange(self.rows.n_rows) if index is None else index
        factors = self.factors(len(index))
        self.flat.gradient.zero_()
        total = 0.0
        for part in np.array_split(index, -(-len(index) // self.block)):
            total = total + self.add_rows(self.rows.batch(part), factors[: len(part)]).total()
        return total

    def potential(self):
        """U(θ) over all rows, and its gradient in ``flat.gradient``."""
        total = self.sum_gradient()
        self.add_prior(1.0 / self.temperature)
        return total + self.prior_value() / self.temperature
