"""Where chains start: with one noise for all rows, if the noise is an output of the network."""

import warnings

import numpy as np
import pytest

from skbayes_sg import BayesianMLPRegressor
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.models import Linear
from skbayes_sg.networks import chain as chains
from skbayes_sg.networks.architecture import make_network, n_weights, weights_of_log_sd
from skbayes_sg.networks.guard import GuardedBAOAB
from skbayes_sg.networks.minibatches import corrected
from skbayes_sg.networks.predictor_map import new_scratch
from skbayes_sg.networks.prior_scales import make_groups, prior_of
from skbayes_sg.networks.problem import NetworkProblem
from skbayes_sg.networks.run import predictors_of

N = 60


def problem_with(network, prior_scale=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3)).astype(np.float32)
    facts = np.column_stack([X[:, 0] + 0.3 * rng.standard_normal(N), np.ones(N)])
    return NetworkProblem(
        X, facts, np.zeros(3), np.ones(3), network, Linear(), make_groups(network), prior_scale
    )


def test_weights_of_log_sd_change_nothing_else():
    network = make_network((3, 4, 2), "tanh", log_sd=1)
    held = weights_of_log_sd(network)
    assert len(held) == 4
    rng = np.random.default_rng(1)
    theta = rng.standard_normal((2, n_weights(network))).astype(np.float32)
    theta[1] = theta[0]
    theta[1, held] += 0.1
    x = rng.standard_normal((5, 3)).astype(np.float32)
    eta = predictors_of(network, theta, x, new_scratch(network, np.dtype(np.float32)))
    assert np.array_equal(eta[0, :, 0], eta[1, :, 0])
    assert (eta[0, :, 1] != eta[1, :, 1]).all()


@pytest.mark.parametrize(
    "network",
    [make_network((3, 4, 1), "tanh"), make_network((3, 4, 1), "tanh", log_sd=1, n_extra=1)],
    ids=["known", "one number"],
)
def test_other_noise_has_no_weights(network):
    assert len(weights_of_log_sd(network)) == 0
    chain = chains.new_chain(problem_with(network), 0, 0)
    assert not chain.holds


@pytest.mark.parametrize("prior_scale", [None, 2.0])
def test_weights_of_log_sd_are_held_until_they_are_released(prior_scale):
    network = make_network((3, 4, 2), "tanh", log_sd=1)
    problem = problem_with(network, prior_scale)
    held, chain = weights_of_log_sd(network), chains.new_chain(problem, 0, 0)
    group = problem.groups.of_weight[held[0]]
    others = np.setdiff1d(np.arange(n_weights(network)), held)
    began = chain.theta.copy()
    chains.find_start(problem, chain, 20)
    for _ in range(3):
        chains.redraw_scales(problem, chain)
        assert (chain.prior[0, held] == chains.HELD).all()
        assert chain.scales_now[group] == (prior_scale or 1.0)
    assert (chain.theta[held] == 0.0).all()
    assert (chain.theta[others] != began[others]).all()
    chains.release(problem, chain)
    assert np.array_equal(chain.prior, prior_of(network, problem.groups, chain.scales_now))
    chains.find_start(problem, chain, 20)
    assert (chain.theta[held] != 0.0).all()


@pytest.mark.parametrize("in_batches", [False, True])
def test_no_weights_are_held_when_draws_begin(in_batches):
    problem = problem_with(make_network((3, 4, 2), "tanh", log_sd=1))
    sampler = corrected(20) if in_batches else GuardedBAOAB(None, 12, 2)
    chain = chains.new_chain(problem, 0, 0)
    sampler.start(problem, chain)
    sampler.warm_up(problem, chain)
    assert not chain.holds
    assert chain.prior[0].max() < chains.HELD
    assert (chain.theta[weights_of_log_sd(problem.network)] != 0.0).all()


@pytest.mark.slow
def test_what_the_mean_can_learn_is_not_taken_for_noise():
    """Twenty people with thirty rows each: with noise that is free at once the error is 0.74."""
    rng = np.random.default_rng(2)
    who, centres = np.repeat(np.arange(20), 30), rng.normal(size=(20, 6))
    time = rng.uniform(-1.0, 1.0, 600)
    X = np.column_stack([centres[who] + 0.1 * rng.normal(size=(600, 6)), time])
    y = 2.0 * rng.normal(size=20)[who] + rng.normal(size=20)[who] * time
    y += 0.1 * rng.normal(size=600)
    new = rng.permutation(600) < 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerConvergenceWarning)
        model = BayesianMLPRegressor(random_state=0, max_doublings=0).fit(X[~new], y[~new])
    assert np.sqrt(np.square(model.predict(X[new]) - y[new]).mean()) < 0.2
