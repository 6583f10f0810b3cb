"""How the draws of factorisations are judged."""

import numpy as np
import pytest

from skbayes_sg.diagnostics import convergence
from skbayes_sg.factorisation.factor_posterior import FactorPosterior, largest_rhat


@pytest.mark.parametrize("n_chains", [1, 4])
@pytest.mark.parametrize("by_chance", [0.1, 0.01])
@pytest.mark.slow
def test_converged_chains_exceed_the_limit_of_rhat_by_chance(n_chains, by_chance):
    """Chains with the correlation 0.8 from one draw to the next: a ninth of them is effective."""
    rng, n = np.random.default_rng(0), 300
    draws = rng.standard_normal((n_chains, n, 4000))
    for t in range(1, n):
        draws[:, t] = 0.8 * draws[:, t - 1] + 0.6 * draws[:, t]
    limit = largest_rhat(n_chains, n_chains * n / 9.0, by_chance)
    exceeded = np.mean(convergence.rhat(draws) > limit)
    assert 0.4 * by_chance < exceeded < 2.5 * by_chance


def test_few_effective_draws_may_disagree_by_chance_and_not_more():
    rng, chance = np.random.default_rng(0), largest_rhat(1, 30.0, 0.1)
    assert 1.05 < chance < 1.12

    def judged(drift):
        white = rng.standard_normal((1, 100, 50))
        slow = np.cumsum(white, axis=1) * 0.03 + white + drift * np.linspace(-1, 1, 100)[:, None]
        return FactorPosterior(rng.standard_normal((1, 100)), np.zeros((1, 100)), slow, {}).check()

    assert judged(0.0)
    assert "R-hat of predictions" in str(judged(3.0).findings)
    assert "predictions and noise: 1 of 52 are NaN" in str(judged(np.r_[np.nan, np.zeros(49)]))


@pytest.mark.parametrize(("n_chains", "numbers", "noted"), [(1, 1.7, 1), (1, 0.9, 0), (2, 1.7, 0)])
def test_one_chain_of_few_ratings_is_noted(n_chains, numbers, noted):
    """The noise of 120 ratings of 40 x 12 was off by up to 0.95 sd in eight of 24 trusted fits."""
    rng = np.random.default_rng(0)
    noise, probes = rng.normal(size=(n_chains, 400)), rng.normal(size=(n_chains, 400, 50))
    evidence = {"numbers_a_rating": numbers}
    verdict = FactorPosterior(noise, 0.0 * noise, probes, {}, evidence).check()
    assert verdict
    assert [finding.name for finding in verdict.findings] == ["few ratings"] * noted
    assert "each rating determines 1.7 numbers" in str(verdict) or not noted


def test_a_single_draw_says_that_nothing_is_known():
    one = np.zeros((4, 1))
    verdict = FactorPosterior(one, one, np.zeros((4, 1, 50)), {}).check()
    assert [finding.name for finding in verdict.findings] == ["few draws"]
    assert verdict.findings[0].is_note
