r"""Stochastic gradient Langevin dynamics for :math:`\varphi_k = \text{softmax}(x_k)`.

.. math::

    x'_{kw} = x_{kw} + \tfrac{h}{2} \bigl( a_{kw} - a_k \varphi_{kw} \bigr) + \sqrt h\, \xi, \qquad
    a_{kw} = \beta + \hat E[n_{kw} \mid \varphi], \quad a_k = \sum_w a_{kw}.

The bracket is the gradient of the log posterior in x: the likelihood contributes :math:`E[n_{kw}] -
E[n_k] \varphi_{kw}` (Fisher's identity), and the Dirichlet prior, with the Jacobian of the softmax,
:math:`\beta - V \beta \varphi_{kw}`. Baker et al. (2019, section 6.3) sample LDA in this way,
without a Riemannian metric. A step is stable if h is below 4 over the largest mass of a word in a
topic, so rare words mix slowly. This sampler is here for comparison with the literature.
"""

import math

from .._base.jit import entry

__all__ = ["softmax_step"]


@entry
def softmax_step(x, phi, a, mass, h, rng, x_out):
    """Take a step of all x (V, K), written to `x_out`; `mass` (K,) is the sum of a over words."""
    for w in range(x.shape[0]):
        for k in range(x.shape[1]):
            drift = a[w, k] - mass[k] * phi[w, k]
            x_out[w, k] = x[w, k] + 0.5 * h * drift + math.sqrt(h) * rng.standard_normal()
