"""The shape of a multilayer perceptron, and the order of its parameters in a vector θ.

θ = (W_1, b_1, ..., W_L, b_L, extras): each W_l (n_in, n_out) in C order, each b_l (n_out,). The
extra, if there is one, is log σ for a standard deviation σ of the noise that all rows share.
"""

from typing import NamedTuple

import numpy as np

from .activations import ACTIVATIONS

__all__ = ["MEAN_LOG_SD", "SD_LOG_SD", "Network", "WeightBlock", "blocks_of", "make_network"]
__all__ += ["n_weights"]

# Mean and standard deviation of the normal prior of an extra, log σ of the standardised response.
MEAN_LOG_SD, SD_LOG_SD = -1.0, 1.5


class Network(NamedTuple):
    """The predictor map, in the form that kernels take."""

    sizes: np.ndarray  # int64, (n_layers + 1,): columns, units of each hidden layer, outputs
    activation: int  # one of the values of `ACTIVATIONS`
    log_sd: int  # index of the predictor that is the logarithm of a standard deviation, or -1
    n_extra: int  # 1 if that predictor is a parameter of its own instead of an output, else 0


class WeightBlock(NamedTuple):
    """The weights, or the biases, of one layer."""

    name: str  # coefs_0, intercepts_0, ..., like the fitted attributes of scikit-learn's networks
    layer: int
    start: int  # index of its first entry in θ
    shape: tuple

    @property
    def stop(self):
        """Index in θ just after the last entry of the block."""
        return self.start + int(np.prod(self.shape))


def make_network(sizes, activation, log_sd=-1, n_extra=0):
    """Return the `Network` with layers of these sizes, and the activation of this name."""
    return Network(np.array(sizes, dtype=np.int64), ACTIVATIONS[activation], log_sd, n_extra)


def blocks_of(network):
    """Return every `WeightBlock` of a network, in the order of θ; extras belong to none."""
    blocks, start = [], 0
    for layer, (n_in, n_out) in enumerate(zip(network.sizes[:-1], network.sizes[1:], strict=True)):
        for name, shape in (("coefs", (int(n_in), int(n_out))), ("intercepts", (int(n_out),))):
            blocks.append(WeightBlock(f"{name}_{layer}", layer, start, shape))
            start = blocks[-1].stop
    return blocks


def weights_of_log_sd(network):
    """Return the indices in θ of the weights, without the bias, of an output that is log σ."""
    if network.log_sd < 0 or network.n_extra:
        return np.empty(0, dtype=np.intp)
    last = blocks_of(network)[-2]
    return np.arange(last.start, last.stop).reshape(last.shape)[:, network.log_sd]


def n_weights(network):
    """Return the length of θ: the number of weights, biases and extras."""
    return blocks_of(network)[-1].stop + network.n_extra
