"""The shape of a multilayer perceptron, and the order of its parameters in a vector θ.

θ = (W_1, b_1, ..., W_L, b_L, extras): each W_l (n_in, n_out) in C order, each b_l (n_out,). The
extra, if there is one, is the logarithm of a standard deviation that all rows have.
"""

from typing import NamedTuple

import numpy as np

from .activations import ACTIVATIONS

__all__ = ["MEAN_LOG_SD", "SD_LOG_SD", "Network", "WeightBlock", "blocks_of", "make_network"]
__all__ += ["n_weights"]

MEAN_LOG_SD, SD_LOG_SD = -1.0, 1.5  # of the normal prior of an extra, in standardised units


class Network(NamedTuple):
    """The predictor map, as kernels see it."""

    sizes: np.ndarray  # int64, (n_layers + 1,): columns, units of each hidden layer, outputs
    activation: int
    log_sd: int  # number of the predictor that is a logarithm of a standard deviation, or -1
    n_extra: int  # 1 if that predictor is a parameter instead of an output


class WeightBlock(NamedTuple):
    """The weights, or the biases, of one layer."""

    name: str  # as the fitted attributes of scikit-learn: coefs_0, intercepts_0, ...
    layer: int
    start: int
    shape: tuple

    @property
    def stop(self):
        """End of the block in θ."""
        return self.start + int(np.prod(self.shape))


def make_network(sizes, activation, log_sd=-1, n_extra=0):
    """The `Network` of these sizes, with an activation by its name."""
    return Network(np.array(sizes, dtype=np.int64), ACTIVATIONS[activation], log_sd, n_extra)


def blocks_of(network):
    """All `WeightBlock` of a network, in the order of θ; extras are in none."""
    blocks, start = [], 0
    for layer, (n_in, n_out) in enumerate(zip(network.sizes[:-1], network.sizes[1:], strict=True)):
        for name, shape in (("coefs", (int(n_in), int(n_out))), ("intercepts", (int(n_out),))):
            blocks.append(WeightBlock(f"{name}_{layer}", layer, start, shape))
            start = blocks[-1].stop
    return blocks


def weights_of_log_sd(network):
    """Where θ has the weights, without the bias, of an output that is log σ."""
    if network.log_sd < 0 or network.n_extra:
        return np.empty(0, dtype=np.intp)
    last = blocks_of(network)[-2]
    return np.arange(last.start, last.stop).reshape(last.shape)[:, network.log_sd]


def n_weights(network):
    """Number of parameters, extras included."""
    return blocks_of(network)[-1].stop + network.n_extra
