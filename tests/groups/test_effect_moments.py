"""Means and standard deviations of effects, from the draws of chains in parts."""

import numpy as np
import pytest

from skbayes_sg.groups.effect_moments import EffectMoments


@pytest.mark.parametrize("far", [0.0, 1e9])
def test_parts_of_any_size_have_the_moments_of_all(far):
    rng = np.random.default_rng(0)
    chains = far + rng.normal(size=(3, 50, 4)) * [1.0, 1e-2, 5.0, 0.0]
    parts = []
    for u in chains:
        total = EffectMoments.none(4)
        for part in np.split(u, [1, 2, 30]):
            total = total + EffectMoments.of(part)
        assert total.n == 50
        parts.append(total)
    mean, sd = EffectMoments.mean_and_sd(parts)
    off = chains - far  # exact
    np.testing.assert_allclose(mean - far, off.mean(axis=(0, 1)), rtol=0, atol=1e-15 * far + 1e-15)
    np.testing.assert_allclose(sd, off.std(axis=(0, 1)), rtol=1e-6 if far else 1e-13)
