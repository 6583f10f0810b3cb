"""Collapsed coordinates and potentials: differences, and identities of Gaussian integrals."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import linalg

from skbayes_sg.priors import HalfCauchy, InverseGamma, Normal, Units
from skbayes_sg.shrinkage.collapse import ManyScales, _roots, collapse_of
from skbayes_sg.shrinkage.path import ModePath, _Place
from skbayes_sg.shrinkage.potential import ScaledPotential, ScalePrior

D, P = 6, 5  # parameters, and coefficients among them
GROUPS = {"one": None, "blocks": [[0, 1], [2, 3, 4]], "columns": "columns"}


class Cubic:
    """Any smooth function of φ in the place of a potential at fixed scales."""

    n_exact, work = 0, 0.0

    @staticmethod
    def values(phi):
        return 0.5 * np.square(phi).sum(axis=1) + 0.1 * np.sin(phi).sum(axis=1)

    @staticmethod
    def gradients(phi):
        return phi + 0.1 * np.cos(phi)


def problem(groups, prior=None, seed=0):
    """A frame of a made quadratic, its scales and their collapse."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(20, D))
    units = Units(columns=lambda: rng.uniform(0.5, 2.0, P))
    prior = prior or HalfCauchy("auto")
    scales = Normal(loc=0.2, scale=prior, scale_groups=GROUPS[groups])._learned((P,), units)
    s = 0.3 * rng.normal(size=scales.n_scales)
    H = A.T @ A
    H[range(P), range(P)] += (np.exp(-s)[scales.group] / scales.unit) ** 2
    frame = SimpleNamespace(
        F=linalg.inv(linalg.cholesky(H)),
        offset=0.2 * rng.normal(size=D),
        centre=SimpleNamespace(theta=rng.normal(size=D)),
    )
    return frame, scales, collapse_of(frame, scales, s, ScalePrior(scales)), rng


def places(collapse, rng, n=4):
    return rng.normal(size=(n, D)), collapse.log_scales + rng.normal(size=(n, collapse.n_scales))


def quadratic(frame, scales, collapse, phi, s):
    """U of the module's docstring, by its definition."""
    r = (frame.centre.theta + phi @ frame.F.T)[:, :P] - scales.loc
    r = r / scales.unit
    precision = np.exp(-2.0 * s) - np.exp(-2.0 * collapse.log_scales)
    prior = 0.5 * precision[:, scales.group] * r**2 + s[:, scales.group]
    own = phi @ frame.offset + 0.5 * np.square(phi).sum(axis=1)
    return own + prior.sum(axis=1) + collapse.prior.values(s)


def differences(f, x, step=1e-6):
    moves = step * np.eye(x.shape[1])
    return np.stack([(f(x + move) - f(x - move)) / (2.0 * step) for move in moves], axis=1)


@pytest.mark.parametrize("groups", GROUPS)
def test_collapsed_coordinates_of_a_quadratic_are_standard_normal(groups):
    frame, scales, collapse, rng = problem(groups)
    z, s = places(collapse, rng)
    phi, log_det = collapse.position(z, s)
    found = quadratic(frame, scales, collapse, phi, s) - log_det
    expected = 0.5 * np.square(z).sum(axis=1) + collapse.negative_log_marginal(s)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("groups", GROUPS)
def test_the_determinant_is_that_of_the_map(groups):
    _, _, collapse, rng = problem(groups)
    z, s = places(collapse, rng, 1)
    moved = differences(lambda x: collapse.position(x, s)[0], z)[0]
    np.testing.assert_allclose(np.linalg.slogdet(moved)[1], collapse.position(z, s)[1], rtol=1e-6)


@pytest.mark.parametrize("groups", GROUPS)
def test_gradients_are_pulled_back_by_the_derivative_of_the_map(groups):
    _, _, collapse, rng = problem(groups)
    z, s = places(collapse, rng)

    def f(z, s):
        phi, log_det = collapse.position(z, s)
        return Cubic.values(phi) - log_det

    of_z, of_s = collapse.pull_back(z, s, Cubic.gradients(collapse.position(z, s)[0]))
    np.testing.assert_allclose(of_z, differences(lambda z: f(z, s), z), atol=1e-7)
    np.testing.assert_allclose(of_s, differences(lambda s: f(z, s), s), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("groups", GROUPS)
def test_sections_are_those_of_the_marginal(groups):
    _, _, collapse, rng = problem(groups, InverseGamma(1.5, 0.7))
    s = places(collapse, rng, 1)[1][0]
    t = np.array([-8.0, -3.0, -0.1, 0.0, 0.2, 4.0, 9.0])
    for g in range(collapse.n_scales):
        rows = s + np.outer(t, np.eye(len(s))[g])
        expected = collapse.negative_log_marginal(rows)
        np.testing.assert_allclose(collapse.section(s, g)(t), expected, rtol=1e-7)


@pytest.mark.parametrize("groups", GROUPS)
def test_the_marginal_has_its_slope(groups):
    _, _, collapse, rng = problem(groups, InverseGamma(1.5, 0.7))
    _, s = places(collapse, rng)
    expected = differences(collapse.negative_log_marginal, s)
    np.testing.assert_allclose(collapse.marginal_slope(s), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("groups", GROUPS)
def test_potentials_have_their_gradients(groups):
    frame, scales, collapse, rng = problem(groups)
    potential, x = ScaledPotential(Cubic, collapse), np.concatenate(places(collapse, rng), axis=1)
    found = potential.gradients(x)
    np.testing.assert_allclose(found, differences(potential.values, x), rtol=1e-6, atol=1e-6)
    r = ((frame.centre.theta + x[:, :D] @ frame.F.T)[:, :P] - scales.loc) / scales.unit
    tau = np.exp(x[:, D:])[:, scales.group]
    wide = np.exp(collapse.log_scales)[scales.group]
    expected = 0.5 * r**2 * (tau**-2 - wide**-2) + np.log(tau)
    expected = expected.sum(axis=1) + collapse.prior.values(x[:, D:]) + Cubic.values(x[:, :D])
    np.testing.assert_allclose(potential.values(x), expected, rtol=1e-10)


def test_one_scale_and_several_have_the_same_law():
    frame, scales, one, rng = problem("one")
    z, s = places(one, rng)
    many = ManyScales(frame, scales, one.log_scales, one.prior)
    np.testing.assert_allclose(
        many.negative_log_marginal(s), one.negative_log_marginal(s), rtol=1e-10
    )
    np.testing.assert_allclose(many.marginal_slope(s), one.marginal_slope(s), rtol=1e-8)
    np.testing.assert_allclose(many.position(z, s)[1], one.position(z, s)[1], rtol=1e-10)


def test_nothing_cancels_as_a_scale_goes_to_zero():
    _, _, collapse, _ = problem("one")
    s = np.array([[-40.0], [-41.0]])
    with np.errstate(over="raise", invalid="raise"):
        low, lower = collapse.negative_log_marginal(s)
    np.testing.assert_allclose(lower - low, 1.0, rtol=1e-9)  # p(τ) τ, and the likelihood of β = loc


@pytest.fixture(scope="module")
def path():
    """A made path of four modes, and their frames."""
    frame, scales, one, rng = problem("one")

    def place(s):
        F = linalg.inv(linalg.cholesky(2.0 * np.eye(D) + np.cov(rng.normal(size=(D, 30)))))
        centre = SimpleNamespace(theta=rng.normal(size=D))
        return _Place(s, float(s**2), SimpleNamespace(F=F, centre=centre, offset=frame.offset))

    places = [place(s) for s in (-1.5, -0.5, 0.3, 1.4)]
    return ModePath(places[2], scales, one.prior, places), places, rng


def test_a_path_leads_through_its_modes_with_their_covariances(path):
    own, places, _ = path
    best, s = places[2].frame, np.array([[place.s] for place in places])
    zero, _ = own.position(np.zeros((4, D)), s)
    for k, place in enumerate(places):
        np.testing.assert_allclose(best.centre.theta + best.F @ zero[k], place.frame.centre.theta)
        moved = own.position(np.eye(D), np.repeat(s[[k]], D, axis=0))[0] - zero[k]
        root = best.F @ moved.T
        np.testing.assert_allclose(root @ root.T, place.frame.F @ place.frame.F.T, rtol=1e-9)


@pytest.mark.parametrize("shift", [0.0, 4.0, -4.0])
def test_derivatives_of_a_path(path, shift):
    """Of the map, its determinant and the marginal, between the places and beyond them."""
    own, _, rng = path
    z, s = rng.normal(size=(5, D)), rng.normal(size=(5, 1)) + shift

    def f(z, s):
        phi, log_det = own.position(z, s)
        return Cubic.values(phi) - log_det

    of_z, of_s = own.pull_back(z, s, Cubic.gradients(own.position(z, s)[0]))
    np.testing.assert_allclose(of_z, differences(lambda z: f(z, s), z), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(of_s, differences(lambda s: f(z, s), s), rtol=1e-5, atol=1e-6)
    slope = differences(own.negative_log_marginal, s)
    np.testing.assert_allclose(own.marginal_slope(s), slope, rtol=1e-6, atol=1e-6)
    moved = differences(lambda x: own.position(x, s[:1])[0], z[:1])[0]
    found = own.position(z[:1], s[:1])[1]
    np.testing.assert_allclose(np.linalg.slogdet(moved)[1], found, rtol=1e-6)


def test_matrices_with_rounding_errors_for_eigenvalues_have_roots():
    """Under a tiny and a huge scale, a direction of which the rows say nothing has none left."""
    v = np.array([1.0, 1.0, 0.5])
    Q = 1e10 * np.outer(v, v) + 1e-12 * np.eye(3)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(Q)
    usual = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
    found = _roots(np.stack([Q, usual]))
    np.testing.assert_allclose(found[0] @ found[0].T, Q, rtol=1e-5)
    np.testing.assert_array_equal(found[1], np.linalg.cholesky(usual))
    with pytest.raises(np.linalg.LinAlgError):
        _roots(-usual[None])
