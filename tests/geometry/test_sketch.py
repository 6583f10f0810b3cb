"""Random projections of gradients: their lengths are about those in the chain's coordinates."""

import numpy as np

from skbayes_sg.geometry.preconditioning import sketch

RNG = np.random.default_rng(0)


def test_a_sketch_as_wide_as_there_are_parameters_is_exact():
    F, g = RNG.standard_normal((5, 5)), RNG.standard_normal((7, 5))
    assert np.allclose(np.linalg.norm(g @ sketch(F, 5), axis=1), np.linalg.norm(g @ F, axis=1))


def test_squares_of_a_narrow_sketch_have_the_stated_error():
    F, g = RNG.uniform(0.5, 2.0, (1, 2000)), RNG.standard_normal((500, 2000))
    ratio = ((g @ sketch(F, 64)) ** 2).sum(axis=1) / ((g * F) ** 2).sum(axis=1)
    # 500 nearly orthogonal vectors: the mean has an error of sqrt(2/64/500), the spread of 3 %
    assert abs(ratio.mean() - 1.0) < 0.04
    assert abs(ratio.std() / np.sqrt(2.0 / 64) - 1.0) < 0.2


def test_a_sketch_of_a_million_parameters_needs_no_square_matrix():
    F = np.full((1, 1_000_000), 2.0)  # a matrix of them has eight terabytes
    assert sketch(F, 2).shape == (1_000_000, 2)
