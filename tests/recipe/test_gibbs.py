"""Thinning of draws of Gibbs samplers, and its price, on chains whose law is known."""

import numpy as np
import pytest

from skbayes_sg.exceptions import LongRunWarning
from skbayes_sg.recipe import gibbs
from skbayes_sg.recipe.request import Request


class Autoregressive:
    """Two chains z ← ρz + √(1 - ρ²) N(0, 1)."""

    def __init__(self, rho):
        self.rho, self.rng, self.n_sweeps = rho, np.random.default_rng(0), 0
        self.z = self.rng.standard_normal((2, 1))

    def sweep(self):
        self.n_sweeps += 1
        noise = self.rng.standard_normal(self.z.shape)
        self.z = self.rho * self.z + np.sqrt(1.0 - self.rho**2) * noise

    def draws(self):
        return self.z.copy()


def thinned(rho, thin=None):
    chain, told = Autoregressive(rho), []
    request = Request(n_draws=400, thin=thin)
    draws, thin = gibbs.thinned(chain.sweep, chain.draws, request, (2, 16, 0.5), told.append)
    assert draws.shape == (2, 400, 1)
    return chain, told, thin


def test_draws_are_thinned_until_enough_of_them_are_effective():
    assert thinned(0.1)[1:] == ([], 2)
    chain, told, thin = thinned(0.8)  # 1/9 of all sweeps are effective
    assert told == [4, 8][: len(told)]
    assert told[-1] == thin
    assert chain.n_sweeps == 400 * thin
    assert thinned(0.999)[1:] == ([4, 8, 16], 16)
    assert thinned(0.999, thin=3)[1:] == ([], 3)


def test_progress_leaves_room_for_draws_that_are_thinned_further():
    shares, chain = [], Autoregressive(0.999)

    def watch(so_far, share):
        shares.append(share)
        return share > 0.7

    parts = Request(n_draws=400), (2, 16, 0.5), lambda thin: None
    draws, thin = gibbs.thinned(chain.sweep, chain.draws, *parts, watch)
    assert shares == sorted(shares)
    assert shares[399] == 0.5  # of the first draws, which are followed by 200 others
    assert draws.shape == (2, len(shares) - 200, 1)
    assert thin == 4

    shares.clear()
    gibbs.thinned(chain.sweep, chain.draws, Request(n_draws=30, thin=2), *parts[1:], watch)
    assert shares == pytest.approx([k / 30 for k in range(1, 23)])


def test_a_price_of_more_than_ten_seconds_is_told(recwarn):
    tell = gibbs.price_of(0.01, 500, 1000, "The run", "Do less.")
    gibbs.price_of(0.0018, 500, 1000, "The run", "Do less.")(5)  # 9.9 seconds
    assert not recwarn
    with pytest.warns(LongRunWarning, match=r"The run is .* 55 seconds or more. Do less."):
        tell(5)
    assert len(recwarn) == 0
    tell(10)  # 105 seconds
    assert len(recwarn) == 0
    with pytest.warns(LongRunWarning, match=r"The run is .* 4.2 minutes or more. Do less."):
        tell(25)
