"""SVRG-LD (Dubey et al. 2016) and vrSG-MCMC (Chen et al. 2019, algorithm 1) for modules.

ĝ(θ) = ∇(-log p(θ)) + (N/n1) Σ_j ∇ℓ_j(θ̃) + (N/n2) Σ_k [∇ℓ_k(θ) - ∇ℓ_k(θ̃)]

with n1 rows drawn anew at each refresh, every m steps, at which θ̃ ← θ; n1 = N is SVRG-LD. The
gradient of the prior is never estimated. Gradients at θ̃ are those of a second copy of the module.
"""

from .._base import streams
from ..exceptions import InvalidParameterError
from .minibatch import MinibatchGradient

__all__ = ["SVRGGradient"]


class SVRGGradient(MinibatchGradient):
    """The gradient at an anchor plus differences to it on batches.

    Parameters
    ----------
    target, batch_size, rng
        As for `MinibatchGradient`; the batch size is n2.
    twin : ModuleTarget
        The same law, with a module of its own that is moved to the anchor.
    refresh : int
        The number m of steps from one refresh to the next.
    anchor_size : int
        The number n1 of rows of the sum at the anchor.
    """

    def __init__(self, target, batch_size, rng, twin, refresh, anchor_size):
        super().__init__(target, batch_size, rng)
        if not batch_size < anchor_size <= target.rows.n_rows:
            raise InvalidParameterError(
                f"The anchor_size of SVRG must be larger than batch_size={batch_size} and at most "
                f"the number of rows, {target.rows.n_rows}; it is {anchor_size}."
            )
        self.twin, self.rng = twin, streams.child(rng)
        self.refresh, self.anchor_size, self.left = refresh, anchor_size, 0
        self.total = target.flat.gradient.clone()

    def move_anchor(self, index):
        """Move the anchor θ̃ to θ, and sum the gradients there over the rows with these numbers."""
        self.twin.flat.theta.copy_(self.target.flat.theta)
        self.twin.sum_gradient(index)
        self.total.copy_(self.twin.flat.gradient)
        self.n_evaluated += len(index)
        self.left = self.refresh

    def start_anew(self):
        """Move the anchor at the next step."""
        self.left = 0

    def of_batch(self, batch):
        """Refresh if due; fill ``target.flat.gradient`` from a batch; return U without prior."""
        if self.left == 0:
            N = self.target.rows.n_rows
            self.move_anchor(self.rng.choice(N, self.anchor_size, replace=False))
        self.left -= 1
        self.n_evaluated += self.batch_size
        return super().of_batch(batch)

    def estimate(self, batch):
        """Do what `of_batch` does between refreshes by operations on tensors alone."""
        value = super().estimate(batch)
        there = self.twin.flat.gradient.zero_()
        self.twin.add_rows(batch, self.factors)
        self.target.flat.gradient.add_(self.total).sub_(there)
        return value
