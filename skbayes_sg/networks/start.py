"""The start of a chain: random weights, and steps of Adam from there (Kingma and Ba 2015).

m ← 0.9 m + 0.1 g,  s ← 0.999 s + 0.001 g²,  θ ← θ - r_t m̂/(√ŝ + ε),  r_t falling from 0.01 to 0.

Each chain has a start of its own, so that the chains can disagree. The start need not be a mode: a
chain leaves it at once, because draws are not near modes.
"""

import numpy as np

__all__ = ["Adam", "random_weights"]

# The first r_t, the decay rates of m and s, and ε.
LEARNING_RATE, DECAYS, EPSILON = 0.01, (0.9, 0.999), 1e-8


def random_weights(groups, prior, rng):
    """Draw θ with weights from N(0, 1/fan_in), zero biases, and extras at their prior means."""
    sd = np.append(1.0 / np.sqrt(groups.fan_in), 0.0)[groups.of_weight]
    return prior[1] + sd * rng.standard_normal(len(sd))


class Adam:
    """The state of the optimiser Adam, whose learning rate falls linearly to zero.

    Parameters
    ----------
    n_weights : int
    n_steps : int
        Number of steps after which the learning rate is zero.
    """

    def __init__(self, n_weights, n_steps):
        self.mean, self.square = np.zeros(n_weights), np.zeros(n_weights)
        self.taken, self.n_steps = 0, n_steps

    def step(self, theta, gradient):
        """Take one step: move θ in place, given the gradient there."""
        rate = LEARNING_RATE * (1.0 - self.taken / self.n_steps)
        self.taken += 1
        for average, value, decay in zip(
            (self.mean, self.square), (gradient, gradient * gradient), DECAYS, strict=True
        ):
            average *= decay
            average += (1.0 - decay) * value
        mean = self.mean / (1.0 - DECAYS[0] ** self.taken)
        square = self.square / (1.0 - DECAYS[1] ** self.taken)
        theta -= rate * mean / (np.sqrt(square) + EPSILON)
