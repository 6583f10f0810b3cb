"""Expectations to a stated accuracy: the rule, the claims, and what users see of it."""

import pickle
import subprocess
import sys
import warnings
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import estimators
import levels
import numpy as np
import pytest
from gaussian import Gaussian
from interrupts import heard, pressed_at
from problems import binary, multinomial, quick
from scipy import stats
from sklearn.exceptions import NotFittedError

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, multilevel
from skbayes_sg.diagnostics.convergence import mcse_mean
from skbayes_sg.dynamics import MALA
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import (
    AccuracyNotReachedError,
    CouplingError,
    InvalidParameterError,
    LongRunWarning,
    SamplerConvergenceWarning,
    SamplerDivergedError,
)
from skbayes_sg.inspection import known_posteriors as targets
from skbayes_sg.models import LinearKnownNoise, Logistic
from skbayes_sg.multilevel import MultilevelSGLD, adaptive_levels, giles, method
from skbayes_sg.multilevel.integrand import Integrand, Tolerance
from skbayes_sg.multilevel.level_moments import Level
from skbayes_sg.multilevel.truncation import RATIO, chance
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.choose import sample_posterior
from skbayes_sg.recipe.request import Request

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning:skbayes_sg.estimators"
)
MODELS = {"gaussian": Gaussian, "logistic": Logistic}


def coordinate(theta):
    return theta[..., 0]


def square(theta):
    return theta[..., 0] ** 2


# -- the rule -------------------------------------------------------------------------------------


def test_moments_of_a_level():
    rng = np.random.default_rng(0)
    samples = 100.0 + rng.gamma(2.0, size=(480, 3)) * [1.0, 1e-3, 0.0]
    level = Level(cost=7)
    for block in np.split(samples, 30):
        level.add(block)
    assert (level.n, level.n_blocks, level.cost) == (480, 30, 7)
    np.testing.assert_allclose(level.mean, samples.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(level.variance, samples.var(axis=0, ddof=1), rtol=1e-8)
    kurtosis = stats.kurtosis(samples[:, :2], fisher=False)
    np.testing.assert_allclose(level.kurtosis, [*kurtosis, 1.0], rtol=1e-6)


def test_numbers_of_samples_have_the_variance_and_no_others_are_cheaper():
    V, C, budget = np.array([[4.0], [0.3], [0.02]]), np.array([10.0, 50.0, 200.0]), 1e-3
    N = giles.optimal_numbers(V, C, np.array([budget]))
    assert (V[:, 0] / N).sum() == pytest.approx(budget, rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = N * np.exp(0.2 * rng.standard_normal(3))
        other *= (V[:, 0] / other).sum() / budget
        assert other @ C > N @ C


def test_numbers_of_samples_serve_the_hardest_component():
    V = np.array([[4.0, 1.0, 0.0], [0.01, 0.5, 0.0]])
    budget = np.array([0.01, 0.02, 0.01])
    N = giles.optimal_numbers(V, [1.0, 4.0], budget)
    assert ((V / N[:, None]).sum(axis=0) <= budget * (1 + 1e-12)).all()
    assert (giles.optimal_numbers(np.zeros((2, 1)), [1.0, 4.0], np.ones(1)) == 0.0).all()


def test_remaining_bias_is_the_tail_of_means_that_halve():
    means = 3.0 * 0.5 ** np.arange(5)[:, None]
    tail = 3.0 * 0.5**4  # Σ_{l > 4} 3 / 2^l
    assert giles.remaining_bias(means, np.zeros((5, 1))) == pytest.approx(tail)
    means[4] = 0.0  # a last mean that is small by chance does not hide it
    assert giles.remaining_bias(means, np.zeros((5, 1))) == pytest.approx(tail)
    assert giles.remaining_bias(0.0 * means, np.full((5, 1), 0.1)) == pytest.approx(0.1)


def level_of(variance, n=320, seed=0):
    level = Level(1)
    level.add(np.sqrt(variance) * np.random.default_rng(seed).standard_normal((n, 1)))
    return level


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
def test_order_of_variances(beta):
    found = [giles.variance_order([level_of(2.0 ** (-beta * k), seed=10 * s + k) for k in range(4)])
             for s in range(200)]  # fmt: skip
    value, error = np.array(found).T
    assert value.mean() == pytest.approx(beta, abs=0.05)
    assert value.std() == pytest.approx(error.mean(), rel=0.2)


def test_levels_without_variance_meet():
    assert giles.variance_order([level_of(0.0), level_of(0.0), level_of(0.0)]) == (np.inf, 0.0)
    exact = [level_of(1.0), level_of(1e-30), level_of(1e-30)]
    assert giles.variance_order(exact)[0] == np.inf


def test_regularised_variances():
    V = giles.regularised([[8.0], [4.0], [0.1], [0.1]], 1.0)
    assert np.array_equal(V, [[8.0], [4.0], [1.0], [0.25]])


def test_levels_of_which_all_samples_agree_are_not_without_variance():
    V = giles.seen([[8.0, 0.0], [0.0, 0.0], [0.5, 0.0]], [64, 32, 32], np.array([3.0, 3.2]))
    assert np.array_equal(V, [[8.0, 3.2], [0.25, 0.1], [0.5, 0.1]])
    assert not giles.seen(np.zeros((3, 1)), [64, 32, 32]).any()  # of a constant
    unseen = [level_of(1.0), level_of(0.0), level_of(0.25)]
    assert giles.variance_order(unseen) == (np.inf, 0.0)


class Filled:
    """A sampler whose levels have the variance 1 in the pilot samples, and others later."""

    def __init__(self, later):
        self.levels, self.later = [level_of(1.0, 32, seed) for seed in range(4)], later
        self.costs, self.asked = np.ones(4), 0

    @property
    def numbers(self):
        return np.array([level.n for level in self.levels])

    def afford(self, cost):
        self.asked += cost

    def fill(self, level, n):
        self.levels[level] = level_of(self.later[level], n, seed=level)


def test_paths_are_accused_after_enough_samples():
    falling = Filled([1.0, 0.25, 0.06, 0.016])
    assert adaptive_levels.order_of_variances(falling, 0.5) > 1.5
    assert falling.asked == 3 * (adaptive_levels.SURE - 32)
    constant = Filled(np.ones(4))
    constant.paths = SimpleNamespace(coupling=SimpleNamespace(order=1.0))
    with pytest.raises(CouplingError, match="do not meet"):
        adaptive_levels.order_of_variances(constant, 0.5)


def test_price_is_told_from_the_time_so_far(monkeypatch, recwarn):
    clock = iter([0.0, 1.0, 2.0, 3.0, 10.0])
    monkeypatch.setattr(
        "skbayes_sg.multilevel.adaptive_levels.time.perf_counter", lambda: next(clock)
    )
    hierarchy = SimpleNamespace(cost=lambda level: 10)
    paths = SimpleNamespace(hierarchy=hierarchy, positions=lambda *_: [np.zeros((32, 1, 1))])
    draws = np.random.default_rng(0).normal(size=(32, 1))
    integrand = SimpleNamespace(differences=lambda theta: draws)
    sampler = adaptive_levels.LevelSampler(paths, integrand, lambda positions: positions)
    tolerance = Tolerance(None, 0.1)
    sampler.add_level()  # at 0 s
    sampler.add_level()  # 320 rows by 1 s
    for expected in (3200, 3500):  # 9 s, then, at 2 s, 19.9 s
        sampler.expected = expected
        warned = pytest.warns(LongRunWarning, match="atol=0.1 is predicted to take 20 seconds")
        with warned if expected == 3500 else nullcontext():
            sampler.tell_price(tolerance)
    sampler.expected = 7000  # at 3 s, 62.6 s: more than three times as long
    with pytest.warns(LongRunWarning, match="1 minute"):
        sampler.tell_price(tolerance)
    sampler.tell_price(tolerance)  # at 10 s, 209 s
    assert len(recwarn) == 1


# -- the claims -----------------------------------------------------------------------------------


def relative_errors(target, truth, g, n_repetitions, **options):
    """(errors, claimed errors) in tolerances, of independent estimates."""
    tolerance = options.pop("tolerance")
    runs = [
        MultilevelSGLD(random_state=seed, **options).expect(target, g, rtol=tolerance)
        for seed in range(n_repetitions)
    ]
    errors = np.array([run.value / truth - 1.0 for run in runs]) / tolerance
    return errors, np.array([run.error / run.tolerance for run in runs])


def limits(n):
    """Within which the root mean square of n normal numbers of variance 1 lies, p = 1e-4."""
    return np.sqrt(stats.chi2.ppf([1e-4, 1.0 - 1e-4], n) / n)


CLAIMS = {
    "default": {"tolerance": 0.02},
    "plain": {"tolerance": 0.02, "coupling": "plain"},
    "rows": {"tolerance": 0.03, "gradient": "minibatch", "batch_size": 16},
    "randomised": {"tolerance": 0.03, "truncation": "randomised"},
}


def check_claims(model, name, g, n):
    target = levels.target_of(MODELS[model]())
    truth = levels.posterior_mean(target, lambda theta: g(theta[..., None]))
    errors, claimed = relative_errors(target, truth, g, n, **CLAIMS[name])
    rms = np.sqrt((errors**2).mean())
    assert 0.1 < rms < (1.0 if n >= 200 else 1.0 * limits(n)[1])
    assert rms < limits(n)[1] * np.sqrt((claimed**2).mean())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gaussian", pytest.param("logistic", marks=pytest.mark.slow)])
def test_error_of_few_repetitions(model):
    check_claims(model, "default", square, 16)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.parametrize("g", [coordinate, square])
@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("model", MODELS)
def test_error_of_200_repetitions(model, name, g):
    check_claims(model, name, g, 200)


@pytest.mark.slow
@pytest.mark.parametrize(("planted", "tolerance"), [("bias", 0.02), ("variance", 0.01)])
def test_repetitions_find_an_accuracy_that_was_not_estimated(planted, tolerance, monkeypatch):
    if planted == "bias":  # nothing is missing beyond level 2, whatever its mean: at a large step
        monkeypatch.setattr(
            "skbayes_sg.multilevel.adaptive_levels.remaining_bias", lambda m, e: 0.0 * m[0]
        )
    else:

        def too_few(*args):
            return giles.optimal_numbers(*args) / 50.0

        monkeypatch.setattr("skbayes_sg.multilevel.adaptive_levels.optimal_numbers", too_few)
    target = levels.target_of(Logistic(), n_rows=16)
    truth = levels.posterior_mean(target, np.square)
    errors, _ = relative_errors(target, truth, square, 8, tolerance=tolerance, step_size=2.0)
    assert np.sqrt((errors**2).mean()) > limits(8)[1]


def test_chances_of_levels_are_those_of_the_geometric_law():
    level = np.arange(1, 50)
    np.testing.assert_allclose(chance(level), stats.geom(1.0 - RATIO).pmf(level), rtol=1e-12)


@pytest.mark.slow
def test_randomised_truncation_has_no_bias():
    target = levels.target_of(Logistic(), n_rows=16)
    truth = levels.posterior_mean(target, np.square)
    options = {"step_size": 1.0, "batch_size": 8, "random_state": 0}
    found = MultilevelSGLD(truncation="randomised", **options).expect(target, square, rtol=0.01)
    assert abs(found.means[0] - truth) > 8.0 * found.standard_error  # level 0 alone has one
    assert abs(found.value - truth) < 4.0 * found.standard_error
    assert found.bias == 0.0
    assert found.value == pytest.approx(found.means.sum(), rel=1e-12)
    assert "no bias" in repr(found)


@pytest.mark.slow
def test_randomised_truncation_says_where_its_pilot_was_wrong(monkeypatch):
    own = giles.optimal_numbers
    monkeypatch.setattr(
        "skbayes_sg.multilevel.truncation.optimal_numbers", lambda *args: own(*args) / 100.0
    )
    made = MultilevelSGLD(truncation="randomised", random_state=0)
    with pytest.warns(SamplerConvergenceWarning, match=r"rtol=0.001 was not reached"):
        found = made.expect(levels.target_of(Logistic()), square, rtol=0.001)
    assert not found.is_accurate


@pytest.mark.slow
def test_rows_touched_beside_mala():
    rng = np.random.default_rng(0)
    n, beta = 100_000, [1.0, -0.5]
    X = rng.standard_normal((n, 2))
    target = Target(
        X, (X @ beta + rng.logistic(size=n) > 0).astype(float), np.ones(n), Logistic(),
        Normal()._table((3,)),
    )  # fmt: skip
    frame = levels.whitened(target)

    def distance(theta):
        return ((theta - frame.centre.theta) ** 2).sum(axis=-1)

    asked = Request(sampler=MALA(), n_draws=400, n_chains=4, thin=1, seed=0)
    values = distance(sample_posterior(target, asked).draws)
    error = float(mcse_mean(values)) / values.mean()
    needed = values.size * n * (error / 2.0**-5) ** 2  # rows for this relative error of an average
    found = MultilevelSGLD(random_state=0).expect(target, distance, rtol=2.0**-5)
    assert found.is_accurate
    assert abs(found.value / values.mean() - 1.0) < 4.5 * np.hypot(2.0**-5, error)
    assert needed > 10.0 * found.cost


@pytest.mark.slow
def test_paths_that_do_not_meet(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.normal(rng.choice([-1.0, 1.0], (20, 1)), 1.0)
    target = targets.location_posterior(targets.MixtureLocations(np.eye(1)), points, Normal())
    made = MultilevelSGLD(random_state=0, max_cost=1e8)
    with pytest.raises(CouplingError, match="has 3 modes or more"):
        made.expect(target, lambda theta: theta, atol=0.05)
    # Where the search finds no other mode, the paths tell.
    monkeypatch.setattr("skbayes_sg.multilevel.method.confirming", lambda *_: None)
    with pytest.raises(CouplingError, match=r"do not meet: .* longer `shift`.*sampler='hmc'"):
        made.expect(target, lambda theta: theta, atol=0.05)


@pytest.mark.slow
def test_paths_that_meet_are_not_accused():
    target = levels.target_of(Logistic(), n_rows=100, n_features=2)
    for seed in range(10):
        made = MultilevelSGLD(random_state=seed)
        assert made.expect(target, lambda theta: theta, atol=0.05).order > 1.0


# -- the estimate ---------------------------------------------------------------------------------

N, D = 300, 3
X, y = binary(N, D)
Y = X @ [1.0, -1.0, 0.5] + np.random.default_rng(0).normal(size=N)
FEW = {"n_draws": 25, "n_chains": 2, "n_warmup": 50, "random_state": 0}
all_coefs = {"func": lambda p: p["coef"], "atol": 0.05}


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X, y)


def test_result_adds_up(fitted):
    found = fitted.expect(lambda p: p["coef"][..., 0, :] ** 2, rtol=0.1, X=X, y=y)
    assert found.value.shape == found.bias.shape == found.tolerance.shape == (D,)
    assert found.means.shape == found.variances.shape == (found.levels, D)
    np.testing.assert_allclose(found.means.sum(axis=0), found.value, rtol=1e-12)
    np.testing.assert_allclose(found.tolerance, 0.1 * found.value, rtol=1e-12)
    error = np.sqrt((found.variances / found.samples[:, None]).sum(axis=0))
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-12)
    assert (found.standard_error <= found.tolerance / np.sqrt(2.0)).all()
    assert (found.bias <= found.tolerance / np.sqrt(2.0)).all()
    assert found.is_accurate
    np.testing.assert_array_equal(found.step_sizes, 0.5 / 2.0 ** np.arange(found.levels))
    hierarchy = method._Plan(MultilevelSGLD(), _target(fitted)).hierarchy(0.5)
    costs = [hierarchy.cost(level) for level in range(found.levels)]
    assert found.cost == found.samples @ costs
    assert found.passes == found.cost / N
    assert "3 components" in repr(found)


def _target(model):
    prior = Normal()._table((D + 1,))
    return Target(X, y.astype(float), np.ones(N), Logistic(), prior)


@pytest.mark.slow
def test_rows_that_are_not_those_of_the_fit_are_told():
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.expect(**all_coefs, X=X, y=y)
    twice = np.full(N, 2.0)
    for others in ((X, 1 - y, None), (10.0 * X, y, None), (X, y, twice), (X[:-1], y[:-1], None)):
        with pytest.warns(UserWarning, match="rows are not those of the fit: .* was fitted to"):
            model.expect(**all_coefs, X=others[0], y=others[1], sample_weight=others[2])


def test_rows_that_move_the_mean_are_told_where_those_of_the_fit_are_not_known():
    model = BayesianLogisticRegression(random_state=0).partial_fit(X, y, classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.expect(**all_coefs, X=X, y=y)
    with pytest.warns(UserWarning, match="probably not the rows of the fit"):
        model.expect(**all_coefs, X=10.0 * X, y=y)


def test_estimates_agree_with_draws():
    model = BayesianLogisticRegression(n_draws=4000, random_state=0).fit(X, y)
    new = X[:3]

    def everything(p):
        eta = p["coef"][..., 0, :] @ new.T + p["intercept"]
        return np.concatenate([p["coef"][..., 0, :], p["intercept"], 1 / (1 + np.exp(-eta))], -1)

    draws = everything(model.posterior_).reshape(-1, D + 4)
    atol = 0.1 * draws.std(axis=0).min()
    found = model.expect(everything, atol=atol, X=X, y=y)
    ess = model.diagnostics_["min_ess"]
    error = np.hypot(found.error, draws.std(axis=0) / np.sqrt(ess))
    assert (np.abs(found.value - draws.mean(axis=0)) < 4.5 * error).all()
    np.testing.assert_allclose(found.value[-3:], model.predict_proba(new)[:, 1], atol=0.05)


@pytest.mark.slow
def test_linear_regression_with_unknown_noise():
    model = BayesianLinearRegression(n_draws=8000, random_state=0).fit(X, Y)
    for name in ("noise_std", "intercept"):
        exact, sd = model.posterior_.mean(name), model.posterior_.std(name)
        found = model.expect(lambda p, name=name: p[name], atol=0.05 * sd, X=X, y=Y)
        assert abs(found.value - exact) < 4.5 * np.hypot(found.error, sd / np.sqrt(32_000))


def test_known_noise_and_rows_with_weights():
    weight = np.random.default_rng(1).integers(1, 4, N).astype(float)
    model = BayesianLinearRegression(noise=1.0, n_draws=8000, random_state=0, prior=Normal())
    model.fit(X, Y, sample_weight=weight)
    found = model.expect(lambda p: p["coef"], atol=0.004, X=X, y=Y, sample_weight=weight)
    A = np.column_stack([X, np.ones(N)])
    mean = np.linalg.solve(A.T @ (weight[:, None] * A) + np.diag([1, 1, 1, 0]), A.T @ (weight * Y))
    assert (np.abs(found.value - mean[:3]) < 4.5 * found.error).all()


@pytest.mark.slow_for(
    "BayesianLinearRegression-{}",
    "BayesianRobustRegression-{}",
    "BayesianNegativeBinomialRegressor-{}",
)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[(name, {}) for name in estimators.OF_ROWS],
        ("BayesianLogisticRegression", {"class_weight": "balanced"}),
    ],
    ids=str,
)
def test_estimators_of_rows(name, options):
    rng, model = np.random.default_rng(0), estimators.CLASSES[name](**FEW, **options)
    labels = estimators.ESTIMATORS[name].response(X @ [0.5, -0.5, 0.25], rng)
    found = model.fit(X, labels).expect(**all_coefs, X=X, y=labels)
    assert found.value.shape == model.coef_.shape
    gap = (found.value - model.coef_) / model.coef_std_
    assert np.abs(gap).max() < 1.5  # few draws of the fit; the posterior is the same


def test_several_classes():
    rows, labels = multinomial(200)
    model = quick().fit(rows, labels)
    found = model.expect(lambda p: p["coef"], atol=0.1, X=rows, y=labels)
    assert np.abs((found.value - model.coef_) / model.coef_std_).max() < 1.5


def test_estimates_are_reproducible(fitted):
    ask = partial(fitted.expect, lambda p: p["coef"] ** 2, rtol=0.2, X=X, y=y)
    one, again = ask(), ask(method=MultilevelSGLD(random_state=0, n_jobs=2))
    assert np.array_equal(one.value, again.value)
    assert np.array_equal(one.samples, again.samples)
    other = ask(method=MultilevelSGLD(random_state=1))
    assert not np.array_equal(one.value, other.value)


def test_the_estimator_is_as_it_was(fitted):
    before = pickle.dumps({k: v for k, v in vars(fitted).items() if not k.startswith("_")})
    fitted.expect(**all_coefs, X=X, y=y)
    assert pickle.dumps({k: v for k, v in vars(fitted).items() if not k.startswith("_")}) == before
    assert isinstance(pickle.loads(pickle.dumps(fitted)), BayesianLogisticRegression)


def test_steps_that_are_too_large_are_halved(monkeypatch):
    monkeypatch.setattr(method, "LARGEST_STEP", 16.0)
    target = levels.target_of(Logistic(), n_rows=200)
    found = MultilevelSGLD(random_state=0).expect(target, coordinate, rtol=0.05)
    assert found.step_sizes[0] in (1.0, 2.0)
    assert found.is_accurate


def test_steps_are_halved_for_paths_that_explode_later(monkeypatch):
    own, calls = method.adapt, []

    def adapt(sampler, *args):
        calls.append(sampler.cost)
        if len(calls) < 3:
            raise method.Diverged(2, None)
        return own(sampler, *args)

    monkeypatch.setattr(method, "adapt", adapt)
    target = levels.target_of(Logistic(), n_rows=64)
    found = MultilevelSGLD(random_state=0).expect(target, coordinate, rtol=0.1)
    assert found.step_sizes[0] == 0.125
    hierarchy = method._Plan(MultilevelSGLD(), target).hierarchy(0.125)
    costs = [hierarchy.cost(level) for level in range(found.levels)]
    assert found.cost == calls[1] + found.samples @ costs > 2 * calls[0]  # all attempts count


@pytest.mark.slow
@pytest.mark.parametrize(
    "gradient", [pytest.param("taylor", marks=pytest.mark.slow), "control_variate"]
)
def test_many_parameters_have_a_diagonal_preconditioner(gradient, monkeypatch):
    monkeypatch.setattr(method, "DENSE_LIMIT", 3)
    rng = np.random.default_rng(0)
    rows = X + 1.5 * rng.normal(size=(N, 1))  # columns that depend on each other
    model = BayesianLogisticRegression(n_draws=2000, random_state=0).fit(rows, y)
    made = MultilevelSGLD(gradient=gradient, random_state=0)
    atol = 0.15 * model.coef_std_.min()
    found = model.expect(lambda p: p["coef"][..., 0, :], atol=atol, X=rows, y=y, method=made)
    error = np.hypot(found.error, model.coef_std_[0] / np.sqrt(model.diagnostics_["min_ess"]))
    assert (np.abs(found.value - model.coef_[0]) < 4.5 * error).all()
    assert found.step_sizes[0] < 0.5


@pytest.mark.parametrize(
    ("gradient", "step"), [("taylor", 0.5), ("full", 0.5), ("minibatch", 1 / 16)]
)
def test_first_step_goes_with_the_noise(gradient, step):
    plan = method._Plan(MultilevelSGLD(gradient=gradient), levels.target_of(Logistic(), 64))
    assert plan.n == (64 if gradient == "full" else 4)
    assert plan.steps[0] == step


# -- progress, threads, imports -------------------------------------------------------------------


class Recorder:
    def __init__(self, stop=False):
        self.stop, self.names = stop, []

    def setup(self, estimator, context):
        self.names.append(context.task_name)

    def teardown(self, estimator, context):
        self.names.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        pass

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.names.append(context.task_name)
        return self.stop


@pytest.mark.parametrize("stop", [pytest.param(False, marks=pytest.mark.slow), True])
def test_callbacks_see_the_progress(stop):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    model, recorder = quick().fit(X, y), Recorder(stop)
    ask = partial(model.expect, lambda p: p["coef"], atol=0.005, X=X, y=y)
    plain = ask()
    model.set_callbacks(recorder)
    if stop:
        with pytest.raises(AccuracyNotReachedError, match="a callback ended the run"):
            ask()
    else:
        assert np.array_equal(ask().value, plain.value)
        assert "draws" in recorder.names
    assert recorder.names[0] == "expect"
    assert recorder.names[-1] == "teardown"


@pytest.mark.parametrize("number", [1, 3])
def test_interrupt(number):
    model = quick().fit(X, y)
    hook, later = pressed_at(number)

    def g(p):
        hook()
        return p["coef"] ** 2

    with heard(), pytest.raises(KeyboardInterrupt):
        model.expect(g, atol=1e-5, X=X, y=y)
    assert not later
    assert model.predict(X).shape == (N,)


@pytest.mark.slow
def test_multilevel_is_imported_when_it_is_asked_for():
    code = (
        "import sys, skbayes_sg; assert 'skbayes_sg.multilevel' not in sys.modules; "
        "assert skbayes_sg.multilevel.MultilevelSGLD()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert multilevel.Expectation


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -0.1, np.nan, np.inf, "0.1", True, [0.1, 0.2]])
@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_tolerances(fitted, name, size):
    with pytest.raises(ValueError, match=rf"{name} must be a positive finite number, got"):
        fitted.expect(lambda p: p["coef"], **{name: size}, X=X, y=y)


@pytest.mark.parametrize("both", [{}, {"rtol": 0.1, "atol": 0.2}])
def test_one_tolerance(fitted, both):
    with pytest.raises(ValueError, match=r"Exactly one of rtol and atol must be given, got rtol="):
        fitted.expect(lambda p: p["coef"], **both, X=X, y=y)


class Changing:
    """Values of another shape at the second call."""

    calls = 0

    def __call__(self, p):
        self.calls += 1
        return p["coef"][..., 0, :] if self.calls == 1 else p["coef"][..., 0, 0]


@pytest.mark.parametrize(
    ("func", "text"),
    [
        (lambda p: np.log(-np.abs(p["intercept"])), "func returned nan at a draw"),
        (lambda p: p["intercept"] / 0.0, r"func returned -?inf at a draw"),
        (
            lambda p: p["coef"].mean(),
            r"shape begins with \(16, 33\), got an array of float64 of shape \(\)",
        ),
        (lambda p: p["coef"][:, 0], r"shape begins with \(16, 33\), .* of shape \(16, 1, 3\)"),
        (lambda p: p["coef"].astype(str), r"array of numbers .* got an array of <U32"),
        (lambda p: 1j * p["coef"], r"array of numbers .* got an array of complex128"),
        (Changing(), r"same shape at every call, got \(\) after \(3,\)"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_of_the_function(fitted, func, text):
    with pytest.raises(ValueError, match=text):
        fitted.expect(func, atol=0.1, X=X, y=y)


def test_something_that_is_no_function(fitted):
    with pytest.raises(TypeError, match="func must be callable, got 'coef'"):
        fitted.expect("coef", atol=0.1, X=X, y=y)
    with pytest.raises(TypeError, match="func must be callable, got None"):
        Integrand(None)


def test_before_fit():
    with pytest.raises(NotFittedError):
        quick().expect(**all_coefs, X=X, y=y)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ({"X": X}, "y is missing"),
        ({"y": y}, "X is missing"),
        ({}, "X and y are missing"),
        ({"X": X[:, :2], "y": y}, "X has 2 features, but .* is expecting 3 features"),
        ({"X": X, "y": y[:9]}, "inconsistent numbers of samples"),
        ({"X": np.full_like(X, np.nan), "y": y}, "Input X contains NaN"),
        ({"X": X, "y": y + 1}, "y has the label 2: .* fitted to the classes"),
        ({"X": X, "y": 0 * y}, "y lacks the label 1: .* fitted to the classes"),
        ({"X": X, "y": y, "sample_weight": np.full(N, -1.0)}, "[Nn]egative"),
    ],
)
def test_rows(fitted, rows, text):
    with pytest.raises(ValueError, match=text):
        fitted.expect(**all_coefs, **rows)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coupling", "both"), ("gradient", "saga"), ("batch_size", 0), ("batch_size", 1.5),
        ("step_size", 0.0), ("step_size", "small"), ("shift", 0.0), ("shift", np.nan),
        ("window", -1.0), ("window", True), ("truncation", "none"), ("max_level", 1),
        ("max_cost", 0), ("random_state", -1), ("n_jobs", 0),
    ],
)  # fmt: skip
def test_parameters(name, value):
    text = rf"The '{name}' parameter of MultilevelSGLD must be .* Got .* instead"
    with pytest.raises(InvalidParameterError, match=text):
        MultilevelSGLD(**{name: value}).expect(_target(None), coordinate, atol=0.1)


def test_parameters_that_do_not_go_together(fitted):
    made = MultilevelSGLD(gradient="full", batch_size=5)
    with pytest.raises(InvalidParameterError, match="all rows with gradient='full'"):
        made.expect(_target(None), coordinate, atol=0.1)
    made = MultilevelSGLD(coupling="plain", truncation="randomised")
    with pytest.raises(InvalidParameterError, match="variances fall too slowly"):
        made.expect(_target(None), coordinate, atol=0.1)
    with pytest.raises(TypeError, match="method must be a MultilevelSGLD object"):
        fitted.expect(**all_coefs, X=X, y=y, method="adaptive")


def test_a_step_that_explodes():
    with pytest.raises(SamplerDivergedError, match=r"level 0 diverged with step size 9 and"):
        MultilevelSGLD(step_size=9.0, shift=2000.0).expect(_target(None), coordinate, atol=0.1)


@pytest.mark.parametrize("truncation", ["adaptive", "randomised"])
def test_more_rows_than_allowed(truncation):
    made = MultilevelSGLD(max_cost=1e6, truncation=truncation, random_state=0)
    with pytest.raises(
        AccuracyNotReachedError, match=r"rtol=0.0001 needs about .* max_cost=1e\+06"
    ):
        made.expect(_target(None), coordinate, rtol=1e-4)


@pytest.mark.parametrize(("cost", "known"), [(100.0, False), (1.5e5, False), (4e5, True)])
def test_rows_of_pilots_count(cost, known):
    made = MultilevelSGLD(max_cost=cost, random_state=0)
    with pytest.raises(AccuracyNotReachedError, match=r"needs about .* rows or more") as caught:
        made.expect(_target(None), coordinate, rtol=1e-3)
    assert (caught.value.result is not None) == known
    if known:
        assert caught.value.result.cost <= cost


def test_more_levels_than_allowed():
    target = levels.target_of(LinearKnownNoise(), n_rows=16)
    made = MultilevelSGLD(max_level=2, random_state=0, step_size=2.0, shift=2.0, window=4.0)
    with pytest.raises(AccuracyNotReachedError, match="needs levels beyond max_level=2") as caught:
        made.expect(target, square, rtol=0.03)
    result = caught.value.result
    assert not result.is_accurate
    assert result.standard_error <= result.tolerance < result.error
