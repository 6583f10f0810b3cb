"""Sums of remainders to fourth order: identities, then what they leave, then when they are used."""

import numpy as np
import pytest
from scipy import special

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.engine.target import Target
from skbayes_sg.importance import fit, sample
from skbayes_sg.importance.fit import fit_proposal
from skbayes_sg.importance.fourth_order import FourthOrder, _coefficients, seconds_of_fourth_order
from skbayes_sg.importance.potential import NearAndFar, Potential
from skbayes_sg.importance.proposal import matched_normals
from skbayes_sg.importance.remainders import row_factors
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.models import LinearKnownNoise, Logistic, Poisson
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.choose import frame_of


def frame_around(model, n=400, d=3, seed=0, shift=1.0):
    """Coordinates around the mode of made rows, some of which count more than others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = {
        "Logistic": lambda: (rng.random(n) < special.expit(X[:, 0] - shift)).astype(float),
        "Poisson": lambda: rng.poisson(np.exp(0.5 * X[:, 0])).astype(float),
        "LinearKnownNoise": lambda: X[:, 0] + rng.normal(size=n),
    }[type(model).__name__]()
    prior = np.concatenate([Normal(scale=2.0)._table((d,)), Normal(scale=3.0)._table((1,))])
    target = Target(X, y, rng.integers(1, 4, n).astype(float), model, prior)
    return frame_of(target, "hessian", True, np.random.default_rng(0))


def none(frame):
    return np.zeros(frame.target.n_rows, bool)


def draws(frame, n=500):
    return matched_normals(np.random.default_rng(1), n, frame.target.n_parameters)


@pytest.mark.parametrize("model", [Logistic(), Poisson()], ids=["logistic", "poisson"])
def test_sums_over_products_are_sums_over_rows(model):
    frame = frame_around(model)
    left_out = np.arange(frame.target.n_rows) % 5 == 0
    rows = slice(0, frame.target.n_rows)
    (Z,) = row_factors(frame, frame.target.design(rows))
    a, u = _coefficients(frame, rows, Z)[:, ~left_out], draws(frame) @ Z[~left_out].T
    expected = (a[0] * u + a[1] * u**2 / 2 + a[2] * u**3 / 3 + a[3] * u**4 / 4).sum(axis=1)
    found = FourthOrder(frame, left_out).values(draws(frame))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("model", [Logistic(), Poisson()], ids=["logistic", "poisson"])
def test_slopes_are_those_of_the_rows_at_the_nodes(model):
    """Along z, where a row has moved by a node, and between them nearly so."""
    frame = frame_around(model, n=6)
    rows, target = slice(0, 6), frame.target
    (Z,) = row_factors(frame, target.design(rows))
    a, v = _coefficients(frame, rows, Z), np.linalg.norm(Z, axis=1)
    eta = target.design(rows) @ frame.centre.theta
    weights = target.weights_at(frame.centre.theta)[:, 0, 0]
    start = target.derivative(target.data.facts, eta[:, None].copy())[:, 0]
    for s in np.polynomial.hermite_e.hermegauss(4)[0]:
        u = s * v
        moved = target.derivative(target.data.facts, (eta + u)[:, None].copy())[:, 0]
        expected = target.weight * (moved - start) - weights * u
        np.testing.assert_allclose(
            a[0] + a[1] * u + a[2] * u**2 + a[3] * u**3, expected, atol=1e-10
        )


def test_gradients_are_derivatives():
    frame, step = frame_around(Logistic()), 1e-5
    beyond, phi = FourthOrder(frame, none(frame)), draws(frame)[:4]
    ways = step * np.eye(frame.target.n_parameters)
    expected = [
        [np.diff(beyond.values(np.array([one - way, one + way])))[0] / (2 * step) for way in ways]
        for one in phi
    ]
    np.testing.assert_allclose(beyond.gradients(phi), expected, atol=1e-7)


def test_of_a_quadratic_likelihood_there_is_nothing():
    frame = frame_around(LinearKnownNoise())
    assert np.abs(FourthOrder(frame, none(frame)).values(draws(frame))).max() < 1e-10


@pytest.mark.parametrize("model", [Logistic(), Poisson()], ids=["logistic", "poisson"])
def test_fourth_order_leaves_far_less_than_second(model):
    frame = frame_around(model)
    proposal, phi = fit_proposal(frame), draws(frame, 2000)
    exact, no_rows = proposal.exact.values(phi), np.arange(0)
    second = np.std(exact - Potential(frame, no_rows, proposal.drift).values(phi))
    beyond = FourthOrder(frame, none(frame))
    fourth = np.std(exact - Potential(frame, no_rows, beyond=beyond).values(phi))
    assert second > 0.02
    assert fourth < 0.1 * second


def proposal_of():
    """Of few events, so that many rows are not quadratic."""
    return fit_proposal(frame_around(Logistic(), n=5000, shift=4.5))


def test_far_draws_are_exact():
    proposal, phi = proposal_of(), draws(frame_around(Logistic()), 1000)
    exact, near = proposal.exact.values(phi), proposal.to_fourth_order.values(phi)
    distance = np.linalg.norm(phi, axis=1)
    radius = np.quantile(distance, 0.9)
    found = NearAndFar(proposal.to_fourth_order, proposal.exact, radius)
    is_far = distance >= radius
    np.testing.assert_array_equal(found.values(phi), np.where(is_far, exact, near))
    error = np.abs(exact - near)[np.argsort(np.where(is_far, 0.0, distance))[-8:]]
    assert np.isclose(found.error_far(phi), error.max(), rtol=1e-2)


def test_polynomials_that_are_wrong_are_not_used():
    """Anywhere, or only far from the centre."""
    phi = draws(frame_around(Logistic()), 4000)
    assert sample.accurate(proposal_of(), phi)[0].order == 4
    for name, factor in (("T", 30.0), ("M", -1.0)):
        wrong = proposal_of()
        beyond = wrong.to_fourth_order.beyond
        setattr(beyond, name, factor * getattr(beyond, name))
        potential, left = sample.accurate(wrong, phi)
        assert potential.order == 2
        assert left <= sample.LEFT
    only_far = proposal_of()
    beyond, values = only_far.to_fourth_order.beyond, only_far.to_fourth_order.beyond.values
    beyond.values = lambda phi: values(phi) + (np.linalg.norm(phi, axis=1) > 2.6)
    assert np.mean(np.linalg.norm(phi, axis=1) > 2.6) < 0.3
    potential, _ = sample.accurate(only_far, phi)
    assert potential.order == 2 or potential.radius <= 2.7


def test_rows_with_large_scores_are_exact(monkeypatch):
    proposal = proposal_of()
    least = np.sort(proposal.scores)[-7]
    monkeypatch.setattr(fit, "STRONG", least)
    potential = proposal.to_fourth_order
    assert potential.n_exact == (proposal.scores > least).sum() == 6


def test_it_is_used_where_it_is_cheaper(monkeypatch):
    """Not if a few draws are cheaper with rows that are exact, nor with several predictors."""
    proposal = proposal_of()
    phi = draws(proposal.frame, 4000)
    price, numbers = seconds_of_fourth_order(5000, 4000, 4), list(proposal.numbers_exact(np.inf))
    orders = [potential.order for potential in proposal.potentials(np.inf, phi)]
    assert orders.index(4) == sum(n * fit.LOSS * 4000 <= price for n in numbers)
    assert orders.count(4) == len(fit.FAR)
    few = [potential.order for potential in proposal.potentials(np.inf, phi[:600])]
    assert 4 not in few  # all rows are exact in 9 ms
    monkeypatch.setattr(fit, "seconds_of_fourth_order", lambda *args: 1e9)
    assert 4 not in [potential.order for potential in proposal.potentials(0.05, phi)]


@pytest.mark.slow
def test_scores_of_many_rows_are_to_fourth_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = rng.random(5000) < special.expit(X[:, 0] - 4.5)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert model.posterior_.scores_of == "0 rows, and the others to fourth order"
    exact = full_scores(model, X, y).scores
    error = np.abs(model.posterior_.scores - exact)
    assert np.quantile(error, 0.99) < 0.01 * exact.std()
