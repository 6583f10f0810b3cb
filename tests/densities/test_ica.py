"""Independent components: against quadrature, signs and order, whitening, bad input."""

import warnings

import numpy as np
import pytest
from scenes import close
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianICA
from skbayes_sg.densities.density import density_target
from skbayes_sg.densities.fit import sample_density
from skbayes_sg.densities.ica import LogisticSources, aligned, log_density
from skbayes_sg.diagnostics import convergence
from skbayes_sg.exceptions import PriorConflictWarning
from skbayes_sg.metrics import amari_distance
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.request import Request

MIXING = np.array([[1.0, 0.5], [0.3, 1.0]])
FEW = {"n_draws": 100, "n_chains": 2, "random_state": 0}


def sources(n, seed=0):
    return np.random.default_rng(seed).laplace(size=(n, 2)) @ MIXING.T


def importance(X, centre, n=200_000, seed=0):
    """Mean and sd of W under the posterior: importance weights of a wide normal law."""
    rng = np.random.default_rng(seed)
    target = density_target(LogisticSources(4), X, np.ones(len(X)), Normal()._table((4,)))
    step = 1e-4
    H = np.array(
        [
            (
                target.value_and_gradient(centre + step * e)[1]
                - target.value_and_gradient(centre - step * e)[1]
            )
            / (2 * step)
            for e in np.eye(4)
        ]
    )
    root = 1.3 * np.linalg.cholesky(np.linalg.inv(0.5 * (H + H.T)))
    z = rng.standard_t(8, size=(n, 4))
    theta = centre + z @ root.T
    log_q = -0.5 * 9.0 * np.log1p(z**2 / 8.0).sum(axis=1)
    log_p = log_density(X, theta.reshape(-1, 2, 2)).sum(axis=1) - 0.5 * (theta**2).sum(axis=1)
    W = theta.reshape(-1, 2, 2)
    own = (aligned(W, centre.reshape(2, 2)) == W).all(axis=(1, 2))  # other orders and signs
    w = own * np.exp(log_p - log_q - (log_p - log_q)[own].max())
    w /= w.sum()
    mean = w @ theta
    return mean, np.sqrt(w @ (theta - mean) ** 2), 1.0 / (w @ w)


@pytest.mark.slow
def test_law_of_two_by_two_against_integration():
    """Means within 0.05 sd and sds within 5 %, in the chamber of one order and sign."""
    X = sources(150)
    centre = BayesianICA(**FEW).fit(X)
    Z = (X - centre.mean_) @ centre.whitening_.T
    target = density_target(LogisticSources(4), Z, np.ones(150), Normal()._table((4,)))
    request = Request(seed=0, n_draws=5000, n_chains=4)
    start = np.linalg.solve(MIXING, np.linalg.inv(centre.whitening_)) * 1.8
    outcome, modes = sample_density(target, start.reshape(1, 4), request)
    mean, sd, size = importance(Z, modes.frame.centre.theta)
    assert size > 50_000
    reference = modes.frame.centre.theta.reshape(2, 2)
    draws = aligned(outcome.draws.reshape(-1, 2, 2), reference).reshape(-1, 4)
    assert (np.abs(draws.mean(axis=0) - mean) < 0.05 * sd).all()
    assert (np.abs(draws.std(axis=0) / sd - 1.0) < 0.05).all()


def test_order_and_signs_are_aligned():
    rng = np.random.default_rng(0)
    W = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.1], [0.3, 0.0, 1.0]])
    draws = np.stack(
        [np.diag(rng.choice([-1.0, 1.0], 3)) @ W[rng.permutation(3)] for _ in range(20)]
    )
    assert np.allclose(aligned(draws, W), W)


def test_the_recovered_sources():
    X = sources(2000)
    ica = BayesianICA(**FEW).fit(X)
    assert amari_distance(ica.components_, MIXING) < 0.05
    S = ica.transform(X)
    assert np.allclose(S, (X - ica.mean_) @ ica.components_.T)
    assert np.allclose(ica.inverse_transform(S), X)
    assert list(ica.get_feature_names_out()) == ["bayesianica0", "bayesianica1"]
    draws = ica.posterior_["components"].reshape(-1, 2, 2)
    known = [-np.log(4.0) * 2 + np.linalg.slogdet(W)[1] for W in draws]
    row = X[:1] - ica.mean_
    own = [
        c - 2 * np.log(np.cosh(0.5 * W @ row[0])).sum() for c, W in zip(known, draws, strict=True)
    ]
    assert np.isclose(ica.score_samples(X[:1])[0], np.log(np.mean(np.exp(own))), atol=1e-6)
    assert np.isclose(ica.score(X), ica.score_samples(X).mean())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_sources_whose_tails_are_light_are_told(seed):
    """FastICA separates uniform sources, and the model of this estimator takes sums of them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((2, 2))
    with pytest.warns(PriorConflictWarning, match="excess kurtosis -.*FastICA"):
        fit = BayesianICA(n_draws=50, random_state=0).fit(rng.uniform(size=(1000, 2)) @ A.T)
    assert amari_distance(fit.components_, A) > 0.3
    for sources in (rng.laplace(size=(1000, 2)), rng.logistic(size=(1000, 2))):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriorConflictWarning)
            BayesianICA(n_draws=50, random_state=0).fit(sources @ A.T)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_judges_the_parameters_that_check_judges():
    model = BayesianICA(**FEW).fit(sources(150))
    ess, _, rhat, _ = convergence.worst_of_chains(model.posterior_.flat)
    assert (model.diagnostics_["min_ess"], model.diagnostics_["max_rhat"]) == (ess, rhat)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_densities_of_fewer_components_are_those_of_rows(seed):
    """They integrate to one, whatever the units, so that the number of components can be chosen."""
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(300, 3)) @ rng.normal(size=(3, 3)).T * [1.0, 20.0, 0.1]
    scores = []
    for unit in (1.0, 1e-3):
        own = [BayesianICA(d, n_draws=20, random_state=0).fit(X * unit) for d in (1, 2, 3)]
        scores.append([ica.score(X * unit) + 3.0 * np.log(unit) for ica in own])
    assert np.argmax(scores[0]) == 2
    close(scores[1], scores[0], 1e-3)
    for ica in own[:2]:  # an estimate of the integral by draws of another law
        C = np.cov(X.T) * unit**2
        Z = stats.multivariate_t(X.mean(axis=0) * unit, C, df=3, seed=seed)
        rows = Z.rvs(40_000)
        ratio = np.exp(ica.score_samples(rows) - Z.logpdf(rows))
        assert abs(ratio.mean() - 1.0) < 5.0 * ratio.std() / 200.0
        assert ratio.std() < 5.0


@pytest.mark.slow
def test_densities_in_a_subspace():
    """Rows of rank 2 in 3 columns: the density in coordinates of their plane."""
    rng = np.random.default_rng(0)
    S = rng.laplace(size=(300, 2))
    B = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    one = BayesianICA(n_draws=20, random_state=0).fit(S)
    plane, line = (BayesianICA(d, n_draws=20, random_state=0).fit(S @ B.T) for d in (2, 1))
    assert abs(plane.score(S @ B.T) - one.score(S)) < 0.03
    assert line.score(S @ B.T) < one.score(S)
    # A direction that is orthogonal to the plane where columns are standardised.
    off = np.var(S @ B.T, axis=0) * np.cross(*B.T)
    for ica in (plane, line):
        close(ica.score_samples(S @ B.T + 5.0 * off), ica.score_samples(S @ B.T), 1e-8)


@pytest.mark.slow
def test_rank_and_units():
    X = sources(300)
    deficient = np.column_stack([X, X[:, 0] + X[:, 1]])
    ica = BayesianICA(**FEW).fit(deficient)
    assert ica.components_.shape == (2, 3)
    assert np.allclose(ica.inverse_transform(ica.transform(deficient)), deficient)
    with pytest.raises(ValueError, match=r"n_components=3 is more than the rank.*, 2"):
        BayesianICA(3, **FEW).fit(deficient)
    one, other = BayesianICA(**FEW).fit(X), BayesianICA(**FEW).fit(X * [1e6, 1e-3])
    assert amari_distance(other.components_ * [1e6, 1e-3], one.mixing_) < 0.02
    assert np.isclose(other.score(X * [1e6, 1e-3]) + np.log(1e3), one.score(X), atol=0.01)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["saga", "svrg"])
def test_stochastic_gradients(gradient):
    X = sources(400)
    model = BayesianICA(sampler="sgld", gradient=gradient, batch_size=20, **FEW).fit(X)
    wanted = BayesianICA(**FEW | {"n_draws": 500}).fit(X)
    apart = np.abs(model.components_ - wanted.components_) / wanted.components_std_
    assert apart.max() < 0.6
    assert np.abs(model.components_std_ / wanted.components_std_ - 1.0).max() < 0.35


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_named_sampler_and_step_begin_at_once():
    X = sources(200)
    model = BayesianICA(sampler="sgld", step_size=1e-3, batch_size=10, **FEW).fit(X)
    assert (model.preconditioner_, model.step_size_) == ("none", 1e-3)
    assert make_pipeline(StandardScaler(), BayesianICA(**FEW)).fit_transform(X).shape == (200, 2)


@pytest.mark.parametrize(
    ("parameters", "X", "text"),
    [
        ({"n_components": 0}, sources(20), "'n_components'"),
        ({"prior_precision": -1.0}, sources(20), "'prior_precision'"),
        ({"gradient": "taylor"}, sources(20), "second derivatives"),
        ({}, np.ones((5, 2)), "at least 2 different rows"),
    ],
)
def test_bad_input(parameters, X, text):
    with pytest.raises(ValueError, match=text):
        BayesianICA(**parameters).fit(X)


def test_amari_distance():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    scrambled = (3.0 * np.linalg.inv(A))[rng.permutation(4)] * [[-1.0], [2.0], [1.0], [0.5]]
    assert amari_distance(scrambled, A) < 1e-12
    assert amari_distance(np.ones((3, 3)), np.eye(3)) == 1.0
    with pytest.raises(ValueError, match="square"):
        amari_distance(np.eye(2), np.ones((2, 3)))
    with pytest.raises(ValueError, match="square"):
        amari_distance(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="zeros"):
        amari_distance(np.diag([1.0, 0.0]), np.eye(2))
