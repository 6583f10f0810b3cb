"""How long modes of row densities are looked for."""

import warnings

import numpy as np
import pytest

from skbayes_sg.custom import CustomDensity
from skbayes_sg.densities import modes
from skbayes_sg.exceptions import MultimodalPosteriorWarning
from skbayes_sg.priors import HalfNormal, Normal

NOISE, SCALE = 0.8, 3.0


def wave(theta, row):
    return -0.5 * ((row[1] - theta[0] * np.sin(theta[1] * row[0])) / NOISE) ** 2


def rows_of_wave(seed, n=25):
    """Noisy points of sin(1.7 x)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, n)
    return x, np.sin(1.7 * x) + NOISE * rng.standard_normal(n)


def exact_frequencies(x, y):
    """A grid of frequencies, and their probabilities with the amplitude integrated out."""
    w = np.linspace(1e-4, 20.0, 40_001)
    S = np.sin(np.outer(w, x))
    A, B = (S**2).sum(axis=1) / NOISE**2 + 1.0, S @ y / NOISE**2
    log_p = 0.5 * B**2 / A - 0.5 * np.log(A) - 0.5 * (w / SCALE) ** 2
    p = np.exp(log_p - log_p.max())
    return w, p / p.sum()


def fitted(x, y, **options):
    scales = {"a": "normal", "w": HalfNormal(scale=SCALE)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MultimodalPosteriorWarning)
        return CustomDensity(wave, scales, **options).fit(x[:, None], y)


def distance(model, x, y):
    """The Kolmogorov-Smirnov distance of the frequencies from the exact ones."""
    w, p = exact_frequencies(x, y)
    draws = np.sort(model.posterior_["w"].ravel())
    found = np.arange(1, len(draws) + 1) / len(draws)
    return np.abs(np.interp(draws, w, np.cumsum(p)) - found).max()


def test_a_frequency_that_few_searches_find():
    """The first 21 searches from this seed find twelve modes, and not the one with 99.8 %."""
    x, y = rows_of_wave(10)
    model = fitted(x, y, random_state=10)
    assert model.posterior_.check()
    assert distance(model, x, y) < 0.03


def test_a_part_of_the_posterior_that_is_far_from_all_modes():
    """Frequencies near zero, whose logarithms have a long tail, have 5 % of the mass."""
    x, y = rows_of_wave(134)
    model = fitted(x, y, random_state=0)
    w, p = exact_frequencies(x, y)
    exact = p[w < 0.2].sum()
    assert exact == pytest.approx(0.051, abs=0.001)
    assert (model.posterior_["w"] < 0.2).mean() == pytest.approx(exact, abs=0.015)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_frequencies_of_tables_have_their_exact_law(seed):
    """At 4000 draws, of which half are effective, 0.05 is beyond the 0.999 quantile."""
    x, y = rows_of_wave(seed)
    model = fitted(x, y, random_state=seed)
    assert not model.posterior_.check() or distance(model, x, y) < 0.05


@pytest.mark.parametrize("seed", [12, 15, 22])
def test_aliases_of_a_frequency(seed):
    """At whole times a frequency and those 2π away fit alike; the prior gives the second 2 %."""
    rng, t = np.random.default_rng(seed), np.arange(1.0, 13.0)
    angle = np.round(0.7 * t + 0.5 * rng.standard_normal(12))
    w = np.linspace(-14.0, 14.0, 100_001)
    log_p = 2.0 * np.cos(angle[:, None] - w * t[:, None]).sum(axis=0) - w**2 / 8.0
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    exact = np.sqrt(p @ (w - p @ w) ** 2)

    def turned(theta, row):
        return 2.0 * np.cos(row[0] - theta[0] * row[1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MultimodalPosteriorWarning)
        model = CustomDensity(turned, {"w": Normal(scale=2.0)}, random_state=seed)
        model.fit(np.column_stack([angle, t]))
    assert model.posterior_.std()[0] == pytest.approx(exact, rel=0.15)


def test_a_search_that_ends_too_early_is_told(monkeypatch):
    monkeypatch.setattr(modes, "MOST", 0)
    x, y = rows_of_wave(10)
    with pytest.warns(MultimodalPosteriorWarning, match="may miss others. Use narrower priors"):
        model = CustomDensity(
            wave, {"a": "normal", "w": HalfNormal(scale=SCALE)}, random_state=10, n_draws=100
        ).fit(x[:, None], y)
    verdict = model.posterior_.check()
    assert not verdict
    assert "others are likely" in " ".join(repr(verdict).split())


def test_points_that_are_given_are_all_that_are_used(monkeypatch):
    monkeypatch.setattr(modes._Found, "wants_more", property(lambda found: pytest.fail("asked")))
    x, y = rows_of_wave(10)
    model = fitted(x, y, start=[[0.5, 1.6], [0.5, 6.0]], random_state=0, n_draws=100)
    assert model.diagnostics_["n_modes"] <= 2.0


@pytest.mark.parametrize(("counts", "evidence", "wants_more", "is_complete"), [
    ([21], [0.0], False, True),
    ([3, 1], [0.0, -1.0], True, False),  # one in four alone at a mode that matters
    ([20, 1], [0.0, -1.0], True, False),
    ([60, 1], [0.0, -1.0], True, True),
    ([30, 31], [0.0, -1.0], False, True),
    ([60, 1], [0.0, -50.0], True, True),
    ([1500, 1], [0.0, -50.0], False, True),  # a mode that does not matter
    ([10, 1], [0.0, -50.0], True, True),  # every second mode matters, and others are likely
    ([40, 20, 2, 1, 1], [0.0, -1.0, -2.0, -50.0, -60.0], True, True),
])  # fmt: skip
def test_searches_end_where_modes_have_been_found_twice(counts, evidence, wants_more, is_complete):
    found = modes._Found(None, "hessian")
    found.counts, found.evidence = counts, evidence
    assert bool(found.wants_more) is wants_more
    assert bool(found.is_complete) is is_complete
