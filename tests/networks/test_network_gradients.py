"""Gradients of networks against complex steps and enumeration."""

import cases
import numpy as np
import pytest

from skbayes_sg._base.jit import entry
from skbayes_sg.kernels.layout import BLOCK, frozen
from skbayes_sg.networks.architecture import blocks_of, make_network, n_weights
from skbayes_sg.networks.gradient import (
    Rows,
    add_likelihood,
    add_squares,
    gradient_at,
    pieces_of,
)
from skbayes_sg.networks.predictor_map import forward, load, new_scratch, rate

ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda z: np.where(z.real > 0.0, z, 0.0),
    "logistic": lambda z: 1.0 / (1.0 + np.exp(-z)),
    "identity": lambda z: z,
}
KINDS = {  # of outputs: case of the likelihood, outputs, which is a log sd, and extras
    "mean and log sd": ("linear", 2, 1, 0),
    "one sd": ("linear", 1, 1, 1),
    "known sd": ("linear_known_noise", 1, -1, 0),
    "two classes": ("logistic", 1, -1, 0),
    "three classes": ("softmax", 3, -1, 0),
}


def made(kind, activation, dtype=np.float64, hidden=(7, 5), n=300, seed=0):
    """A network, rows, and a position."""
    name, outputs, log_sd, extra = KINDS[kind]
    rng, case = np.random.default_rng(seed), cases.MODELS[name]
    network = make_network((4, *hidden, outputs), activation, log_sd, extra)
    x = rng.standard_normal((n, 4)).astype(dtype)
    facts = frozen(np.column_stack([case.labels(rng, n), rng.uniform(0.5, 2.0, n)]))
    theta = 0.7 * rng.standard_normal(n_weights(network))
    return case, network, Rows(x, facts, np.arange(n)), theta


def naive_predictors(network, theta, x, activation):
    """The map, by its formula; it takes complex θ."""
    blocks, a = blocks_of(network), x
    for weights, biases in zip(blocks[::2], blocks[1::2], strict=True):
        W = theta[weights.start : weights.stop].reshape(weights.shape)
        z = a @ W + theta[biases.start : biases.stop]
        a = z if biases is blocks[-1] else ACTIVATIONS[activation](z)
    if network.n_extra:
        a = np.column_stack([a, np.full(len(x), theta[-1])])
    if network.log_sd >= 0:
        s = a[:, network.log_sd]
        a[:, network.log_sd] = np.where(np.abs(s.real) < 6.0, s, 6.0 * np.sign(s.real))
    return a


def naive_loss(case, network, rows, theta, activation):
    eta = naive_predictors(network, theta, rows.x, activation)
    y = rows.facts[:, 0].astype(int) if case is cases.MODELS["softmax"] else rows.facts[:, 0]
    return -(rows.facts[:, 1] * case.log_likelihood(eta, y)).sum()


def loss_and_gradient(case, network, rows, theta, c=1.0):
    scratch, g = new_scratch(network, rows.x.dtype), np.empty(len(theta))
    return gradient_at(pieces_of(case.model), network, rows, theta, c, scratch, g), g


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_complex_steps(kind, activation):
    case, network, rows, theta = made(kind, activation)
    _, g = loss_and_gradient(case, network, rows, theta)
    steps = theta + 1e-30j * np.eye(len(theta))
    wanted = [naive_loss(case, network, rows, own, activation).imag / 1e-30 for own in steps]
    assert np.abs(g - wanted).max() < 1e-12 * np.abs(wanted).max()


def gradients_of_rows(case, network, rows, theta):
    """∇(w_i ℓ_i)(θ), (n, P), one row at a time."""
    each = []
    for i in range(len(rows.x)):
        own = Rows(rows.x[i : i + 1], frozen(rows.facts[i : i + 1]), np.arange(1))
        each.append(loss_and_gradient(case, network, own, theta)[1])
    return np.array(each)


@entry
def rates_of(network, theta, velocity, x, scratch, eta_out):
    load(theta, scratch.weights)
    load(velocity, scratch.velocity)
    forward(network, scratch.weights, x, scratch.values, eta_out)
    rate(network, x, scratch, x.shape[0], eta_out)


@entry
def add_with_friction(likelihood, network, rows, theta, velocity, c, friction, scratch, g):
    load(theta, scratch.weights)
    load(velocity, scratch.velocity)
    n = rows.x.shape[0]
    return add_likelihood(likelihood, network, rows, 0, n, c, False, scratch, g, friction)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_those_of_complex_steps(kind, activation):
    _, network, rows, theta = made(kind, activation, n=BLOCK)
    theta *= 0.3  # no log sd is at the end of its range, where there are no terms
    velocity, scratch = np.cos(np.arange(len(theta))), new_scratch(network, np.float64)
    moved = np.empty((BLOCK, scratch.eta.shape[1]))
    rates_of(network, theta, velocity, rows.x, scratch, moved)
    wanted = naive_predictors(network, theta + 1e-30j * velocity, rows.x, activation).imag / 1e-30
    assert moved == pytest.approx(wanted, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [(), (3,), (7, 5)])
def test_rows_whose_gradients_lie_along_the_velocity_count_more(kind, hidden):
    case, network, rows, theta = made(kind, "tanh", hidden=hidden)
    each, c, f = gradients_of_rows(case, network, rows, theta), 2.0, 0.05
    scratch, g = new_scratch(network, np.float64), np.zeros(len(theta))
    velocity, pieces = np.cos(np.arange(len(theta))), pieces_of(case.model)
    add_with_friction(pieces, network, rows, theta, velocity, c, f, scratch, g)
    factor = 1.0 + np.clip(f * c * each @ velocity, -1.0, 1.0)
    assert 0.0 <= factor.min() < 0.9
    assert g == pytest.approx(c * factor @ each, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [(), (1,), (300,)], ids=["no layer", "one unit", "wide"])
def test_differences_of_losses_are_those_of_the_formula(kind, hidden):
    case, network, rows, theta = made(kind, "tanh", hidden=hidden)
    found = [loss_and_gradient(case, network, rows, at)[0] for at in (theta, 0.5 * theta)]
    wanted = [naive_loss(case, network, rows, at, "tanh") for at in (theta, 0.5 * theta)]
    assert np.diff(found) == pytest.approx(np.diff(wanted), rel=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_single_precision_is_as_precise_as_it_can_be(activation):
    case, network, rows, theta = made("mean and log sd", activation)
    _, g = loss_and_gradient(case, network, rows, theta)
    _, single = loss_and_gradient(case, network, rows._replace(x=rows.x.astype("f4")), theta)
    assert 0.0 < np.abs(single - g).max() < 3e-6 * np.abs(g).max()


def test_a_log_sd_at_the_end_of_its_range_has_no_gradient():
    case, network, rows, theta = made("one sd", "tanh")
    theta[-1] = -7.0
    assert loss_and_gradient(case, network, rows, theta)[1][-1] == 0.0
    theta[-1] = -5.9
    assert loss_and_gradient(case, network, rows, theta)[1][-1] != 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_squares_are_those_of_single_rows(kind):
    case, network, rows, theta = made(kind, "tanh")
    scratch, units = new_scratch(network, np.float64), int(network.sizes[1:].sum())
    each = [rows._replace(x=rows.x[i : i + 1], facts=rows.facts[i : i + 1]) for i in range(300)]
    each = np.array([loss_and_gradient(case, network, row, theta)[1] for row in each])
    for power in (1.0, 2.0):
        found = np.zeros((2, units))
        add_squares(pieces_of(case.model), network, rows, theta, power, scratch, found)
        squares = (each**2 * rows.facts[:, 1:] ** (power - 2.0)).sum(axis=0)
        blocks, first = blocks_of(network), 0
        for weights, biases in zip(blocks[::2], blocks[1::2], strict=True):
            last = first + biases.shape[0]
            of_weights = squares[weights.start : weights.stop].reshape(weights.shape).sum(axis=0)
            assert found[0, first:last] == pytest.approx(of_weights, rel=1e-12)
            assert found[1, first:last] == pytest.approx(squares[biases.start : biases.stop])
            first = last
