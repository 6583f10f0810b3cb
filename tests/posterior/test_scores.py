"""Scores of the draws: what fits keep is the gradient of the log posterior, in its coordinates."""

import copy
import dataclasses
import pickle
import warnings

import estimators
import numpy as np
import pytest
from cases import DYNAMICS
from probe import Probe
from problems import STOCHASTIC, binary, quick
from scenes import close, make_scene
from scipy import stats
from sklearn.linear_model import LogisticRegression

from skbayes_sg import BayesianLinearRegression, Posterior
from skbayes_sg._base import streams
from skbayes_sg.diagnostics import kernel_stein_discrepancy
from skbayes_sg.dynamics import BAOAB, HMC
from skbayes_sg.engine import run
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.gradients import SAGA, SVRG, ControlVariate
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.priors import HalfNormal, Normal
from skbayes_sg.recipe.final_run import Production
from skbayes_sg.subsampling import Uniform

KEPT = {"keep_slopes": True, "bounds": np.full(3, 1e6)}


def draws_and_slopes(kernels, n_draws=6, thin=3, **options):
    draws, chains = kernels.sample(np.full((2, 3), 0.3), 5, n_draws, thin, **KEPT, **options)
    setup = dataclasses.replace(kernels.setup, **KEPT, **options)
    return draws, run.slopes_at_draws(setup, chains, n_draws, thin)


@pytest.mark.parametrize("name", ["sgld", "baoab", "sghmc", "sgnht"])
def test_slopes_are_the_gradients_at_the_draws(name):
    kernels = Probe(make_scene().frame(kind="hessian"), dynamics=DYNAMICS[name].dynamics)
    draws, slopes = draws_and_slopes(kernels, step_size=run.Constant(0.05))
    for z, slope in zip(draws.reshape(-1, 3), slopes.reshape(-1, 3), strict=True):
        close(slope, kernels.estimate(z), 1e-12, np.abs(slope).max())


def test_slopes_of_exact_samplers_are_the_gradients_at_the_draws():
    kernels = Probe(make_scene().frame(kind="hessian"), dynamics=HMC())
    draws, slopes = draws_and_slopes(kernels)
    for z, slope in zip(draws.reshape(-1, 3), slopes.reshape(-1, 3), strict=True):
        close(slope, kernels.potential_and_gradient(z)[1], 1e-12, np.abs(slope).max())


@pytest.mark.parametrize("gradient", [ControlVariate(), SAGA(), SVRG(refresh=4)])
def test_estimates_are_those_that_moved_the_chain(gradient):
    # of SGLD, θ' = θ - (h/2) ĝ + √h ξ: with every draw kept, each slope follows from two of them
    h = 0.05
    kernels = Probe(make_scene().frame(), gradient, Uniform(), batch_size=2)
    draws, slopes = draws_and_slopes(kernels, 8, 1, step_size=run.Constant(h))
    setup = dataclasses.replace(kernels.setup, **KEPT, step_size=run.Constant(h))
    noise = [streams.of_chain(5, k).noise.standard_normal((8, 3)) for k in range(2)]
    moved = (draws[:, :-1] - draws[:, 1:] + np.sqrt(h) * np.array(noise)[:, 1:]) / (0.5 * h)
    close(slopes[:, :-1], moved, 1e-11, np.abs(moved).max())
    # the last one is what the next step will use
    _, chains = kernels.sample(np.full((2, 3), 0.3), 5, 8, 1, **KEPT, step_size=setup.step_size)
    before = run.slopes_at_draws(setup, chains, 8, 1)[:, -1]
    run.sample(setup, chains, 1, 1)
    assert np.array_equal(before, [chain.slopes[0] for chain in chains])


def test_keeping_slopes_changes_no_draw():
    kernels = Probe(make_scene().frame(), SVRG(refresh=4), Uniform(), BAOAB(), batch_size=2)
    options = {"step_size": run.Constant(0.05), "bounds": np.full(3, 1e6)}
    plain, chains = kernels.sample(np.zeros((2, 3)), 5, 9, 2, **options)
    kept, more = kernels.sample(np.zeros((2, 3)), 5, 9, 2, keep_slopes=True, **options)
    run.slopes_at_draws(kernels.setup, more, 9, 2)
    assert np.array_equal(plain, kept)
    assert [c.rng_rows.random() for c in chains] == [c.rng_rows.random() for c in more]
    assert chains[0].slopes.shape == (0, 3)


def test_where_calls_of_the_kernel_end_does_not_matter():
    kernels = Probe(make_scene().frame(), ControlVariate(), Uniform(), batch_size=2)
    kernels.setup = dataclasses.replace(kernels.setup, step_size=run.Constant(0.05), **KEPT)
    found = []
    for sizes in ([12], [1, 4, 2, 5]):
        (chain,) = run.new_chains(kernels.setup, np.zeros((1, 3)), 5)
        chain.begin(4, keep_slopes=True)
        for size in sizes:
            run._advance(kernels.setup, 3, size, chain)
        found.append(chain.slopes[:4])
    assert np.array_equal(*found)


# -- in the parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "diagonal", "hessian"])
def test_scores_are_in_the_parameters(kind):
    scene = make_scene(columns=[1e-3, 1e3])
    frame = scene.frame(kind=kind)
    kernels = Probe(frame)
    z = np.random.default_rng(0).normal(size=(2, 4, 3)) * (1.0 if kind != "none" else 1e-3)
    slopes = np.array([[kernels.potential_and_gradient(p)[1] for p in row] for row in z])
    for theta, score in zip(
        frame.theta(z).reshape(-1, 3), frame.scores(slopes).reshape(-1, 3), strict=True
    ):
        expected = -scene.posterior.gradient(theta)
        # what is lost in units of 1e±3
        assert np.allclose(score, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("options", [{}, STOCHASTIC], ids=["exact", "stochastic"])
def test_scores_of_a_fit(options):
    X, y = binary(4100 if options else 300)  # scores of up to 4000 rows are exact
    model = quick(**options).set_params(n_draws=40, prior=Normal(scale=0.5)).fit(X, y)
    posterior = model.posterior_
    assert posterior.scores.shape == posterior.flat.shape
    assert posterior.scores.dtype == np.float32
    exact = full_scores(model, X, y)
    theta = posterior.flat[1, 7]
    A = np.column_stack([X, np.ones(len(X))])
    expected = A.T @ (y - 1.0 / (1.0 + np.exp(-A @ theta)))
    expected -= theta / np.array([0.25, 0.25, 0.25, 100.0])
    assert np.allclose(exact.scores[1, 7], expected, rtol=1e-10)
    assert exact.scores_of == "all rows"
    if options:
        assert posterior.scores_of == "20 rows a draw, Taylor()"
        assert not posterior.has_exact_scores
        off = (posterior.scores - exact.scores) * posterior.std()
        assert 0.01 < np.sqrt((off**2).mean()) < 1.0  # noise, of the right size
        assert (np.abs(off.mean(axis=(0, 1))) < 5.0 * off.std(axis=(0, 1)) / np.sqrt(80)).all()
    else:
        assert posterior.scores_of == "all rows"
        assert np.allclose(posterior.scores, exact.scores, rtol=1e-5, atol=1e-5)


def test_scores_of_a_positive_parameter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=40)
    model = BayesianLinearRegression(
        sampler="hmc", prior=Normal(scale=1.0), noise_prior=HalfNormal(scale=2.0),
        fit_intercept=False, n_draws=30, n_chains=2, random_state=0,
    )  # fmt: skip
    posterior = model.fit(X, y).posterior_

    def log_density(theta):
        prior = stats.norm.logpdf(theta[:2]).sum() + stats.halfnorm.logpdf(theta[2], scale=2.0)
        return prior + stats.norm.logpdf(y, X @ theta[:2], theta[2]).sum()

    theta = posterior.flat[1, 5]
    steps = 1e-5 * np.eye(3)
    expected = [(log_density(theta + e) - log_density(theta - e)) / 2e-5 for e in steps]
    assert np.allclose(posterior.scores[1, 5], expected, rtol=1e-4, atol=1e-4)
    assert np.allclose(full_scores(model, X, y).scores[1, 5], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", estimators.REGRESSORS)
def test_full_scores_of_regressions_are_those_of_exact_samplers(name):
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, 30)
    y = rng.poisson(np.exp(0.5 * X[:, 0]) + 1.0).astype(float)
    model = estimators.quick(name, sampler="hmc", n_warmup=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerConvergenceWarning)  # there are so few draws
        posterior = model.fit(X, y, sample_weight=weight).posterior_
    exact = full_scores(model, X, y, sample_weight=weight)
    assert np.allclose(posterior.scores, exact.scores, rtol=1e-4, atol=1e-3)


def test_independent_draws_get_scores_from_all_rows():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 0.0, -1.0] + rng.normal(size=200)
    model = BayesianLinearRegression(random_state=0).fit(X, y)
    assert model.posterior_.scores is None
    exact = full_scores(model, X, y)
    assert exact.check()
    assert not full_scores(model, X, 2.0 * y).check()  # other data are noticed


def test_full_scores_are_for_sums_over_rows():
    with pytest.raises(TypeError, match="estimator must be a logistic, linear"):
        full_scores(LogisticRegression(), np.ones((3, 1)), [0, 1, 0])


def test_thinning_again_keeps_the_scores_of_what_is_kept(monkeypatch):
    monkeypatch.setattr(Production, "_too_little", lambda self, draws, worst: self.thin < 15)
    X, y = binary(400)
    model = quick(sampler="baoab", step_size=0.5, thin=5).fit(X, y)  # every step sees all rows
    assert model.thin_ == 20
    exact = full_scores(model, X, y)
    assert np.allclose(model.posterior_.scores, exact.scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("unit", [1e-59, 1e59])
def test_columns_in_any_unit_keep_their_scores(unit):
    X, y = binary(100)
    prior = Normal(scale=1.0 / unit)
    model = quick(sampler="hmc", prior=prior, n_draws=250).fit(X * unit, y)
    posterior = model.posterior_
    assert posterior.scores.dtype == np.float64
    assert np.isfinite(posterior.scores).all()
    assert posterior.check()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_have_the_scores(duplicate):
    draws = np.random.default_rng(0).normal(size=(2, 10, 1))
    one = Posterior(draws, {"coef": (1,)}, ["a"], scores=-draws, evidence={"noise_share": [0.1]})
    two = duplicate(one)
    assert np.array_equal(two.scores, -draws)
    assert two.evidence == {"noise_share": [0.1]}


def test_a_density_may_be_positive_at_an_edge():
    """exp(-v) for v > 0: the mean of its score is -1, and that of the score of log v is 0."""
    v = np.random.default_rng(0).exponential(size=(4, 1000, 1))
    known = {"flat": v, "shapes": {"dispersion": (1,)}, "labels": ["dispersion"]}
    known["scores"] = np.full(v.shape, -1.0)
    assert Posterior(**known, edges=["dispersion"]).check()
    assert not Posterior(**known).check()


def test_equal_draws_count_once_in_the_discrepancy():
    """Draws that resampling repeats are those draws with weights, and no cluster of draws."""
    rng = np.random.default_rng(5)
    x, times = rng.normal(size=300), rng.integers(1, 5, 300)
    repeated = np.repeat(x, times)[None, :, None]
    posterior = Posterior(repeated, {"coef": (1,)}, ["a"], scores=-repeated)
    wanted = kernel_stein_discrepancy(x[:, None], -x[:, None], weights=times.astype(float))
    found = posterior.ksd()
    assert np.isclose(found, wanted, rtol=1e-10)
    assert np.isclose(found.z, wanted.z, rtol=1e-6)
    # the z-scores of eight seeds are in -1.0 ... 2.8, and without merging in 0 ... 11.4
    assert found.z < 3.0 < kernel_stein_discrepancy(repeated, -repeated).z


def test_scores_must_have_the_shape_of_the_draws():
    draws = np.zeros((2, 10, 1))
    with pytest.raises(ValueError, match=r"scores must have the shape \(2, 10, 1\)"):
        Posterior(draws, {"coef": (1,)}, ["a"], scores=np.zeros((2, 9, 1)))
    with pytest.raises(ValueError, match="This posterior has no scores"):
        Posterior(draws, {"coef": (1,)}, ["a"]).ksd()
