r"""Stochastic gradient Riemannian Langevin dynamics (Patterson and Teh 2013), mirrored at zero.

.. math::

    \theta' = \Bigl| \theta + h\, (a - \theta) + \sqrt{2 h \theta}\, \xi \Bigr|, \qquad
    a_{kw} = \beta + \hat E[n_{kw} \mid \varphi],

This is the Euler step of the process that `cir` solves exactly (their ε is 2 h). The reflection at
zero causes a bias where a is below 1: for Gamma(0.1, 1) the mean is 3.2 times too large at ε = 0.1
(``tests/topics/test_topics.py::test_mirrors_are_biased_where_the_exact_step_is_not``). All words
move at every step. This sampler is here for comparison with the literature.
"""

import math

from .._base.jit import entry

__all__ = ["mirrored_step"]


@entry
def mirrored_step(theta, a, h, rng, theta_out):
    """Take a step of all θ (V, K), written to `theta_out`; `a` has the shape of θ."""
    for w in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            x = theta[w, k]
            noise = math.sqrt(2.0 * h * x) * rng.standard_normal()
            theta_out[w, k] = abs(x + h * (a[w, k] - x) + noise)
