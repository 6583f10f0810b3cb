"""Draws that do not count the same: where weights come from, and that everything respects them."""

import pickle
from types import SimpleNamespace

import cases
import numpy as np
import probe
import pytest
from problems import STOCHASTIC, binary, multinomial, quick
from scipy.special import expit, softmax
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import Posterior, schedules
from skbayes_sg._base import weights as weighting
from skbayes_sg.demo._models import named_posterior
from skbayes_sg.diagnostics import convergence
from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.schedules import Constant, Cyclical, Polynomial, TwoPhase, draw_weights

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)
VARYING = [name for name in cases.SCHEDULES if name != "constant"]
SHAPES = {"coef": (2, 2), "intercept": (1,)}
LABELS = ["a", "b", "c", "d", "i"]


def made(weights=None, n_chains=3, n_draws=40):
    """A posterior of made draws."""
    flat = np.random.default_rng(0).normal(size=(n_chains, n_draws, 5)) * np.arange(1, 6)
    return Posterior(flat, SHAPES, LABELS, {"sampler": "sgld"}, weights)


@pytest.fixture
def weights():
    return np.random.default_rng(1).exponential(size=40)


def naive_weights(formula, n_warmup, thin, n_draws):
    """Step by step: the sizes of the steps since the draw before, with mean 1."""
    found, total = [], 0.0
    for t in range(n_warmup, n_warmup + thin * n_draws):
        total += formula(t)
        if (t + 1 - n_warmup) % thin == 0:
            found.append(total)
            total = 0.0
    return np.array(found) * n_draws / sum(found)


def naive_quantile(x, w, q):
    """The first draw, in order of size, at which the share q of the weight is reached."""
    order, reached = np.argsort(x), 0.0
    for k in order:
        reached += w[k]
        if reached >= q * w.sum():
            return x[k]
    return x[order[-1]]


# -- what a posterior computes --------------------------------------------------------------------


def test_moments_are_those_of_the_formulas(weights):
    posterior, pooled, w = made(weights), made().flat.reshape(-1, 5), np.tile(weights, 3)
    mean = sum(a * x for a, x in zip(w, pooled, strict=True)) / w.sum()
    variance = sum(a * (x - mean) ** 2 for a, x in zip(w, pooled, strict=True)) / w.sum()
    np.testing.assert_allclose(posterior.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(posterior.std(), np.sqrt(variance), rtol=1e-12)
    np.testing.assert_allclose(posterior.mean("coef"), mean[:4].reshape(2, 2), rtol=1e-12)
    np.testing.assert_allclose(posterior.std("intercept"), np.sqrt(variance[4:]), rtol=1e-12)
    np.testing.assert_allclose(posterior.mean("c"), mean[2], rtol=1e-12)
    assert np.abs(made().mean() - mean).max() > 0.01  # what draws without weights have


def test_quantiles_are_those_of_the_formula(weights):
    posterior, pooled, w = made(weights), made().flat.reshape(-1, 5), np.tile(weights, 3)
    for q in (0.0, 0.05, 0.31, 0.5, 0.9, 1.0):
        expected = [naive_quantile(x, w, q) for x in pooled.T]
        np.testing.assert_array_equal(posterior.quantile(q), expected)
    lower, upper = posterior.interval(0.8, "coef")
    expected = [[naive_quantile(x, w, q) for x in pooled.T[:4]] for q in (0.1, 0.9)]
    np.testing.assert_array_equal([lower.ravel(), upper.ravel()], expected)
    assert posterior.quantile([0.1, 0.5, 0.9], "coef").shape == (3, 2, 2)


def test_whole_weights_are_repetitions():
    times = np.random.default_rng(2).integers(0, 4, 40)
    repeated, posterior = np.repeat(made().flat, times, axis=1), made(times)
    np.testing.assert_allclose(posterior.mean(), repeated.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(posterior.std(), repeated.std(axis=(0, 1)), rtol=1e-12)
    expected = np.quantile(repeated, 0.3, axis=(0, 1), method="inverted_cdf")
    np.testing.assert_array_equal(posterior.quantile(0.3), expected)


def test_weights_have_mean_one_and_any_unit(weights):
    posterior, other = made(weights), made(8.0 * weights)
    np.testing.assert_allclose(posterior.weights, weights / weights.mean(), rtol=1e-15)
    np.testing.assert_allclose(other.mean(), posterior.mean(), rtol=1e-13)


@pytest.mark.parametrize("equal", [0.3, 1.0, 7])
def test_equal_weights_change_no_bit(equal):
    plain, posterior = made(), made(np.full(40, equal))
    assert posterior.weights is None
    assert repr(posterior) == repr(plain)
    for name in (None, "coef", "b"):
        assert posterior.mean(name).tobytes() == plain.mean(name).tobytes()
        assert posterior.std(name).tobytes() == plain.std(name).tobytes()
        assert posterior.quantile([0.1, 0.6], name).tobytes() == (
            plain.quantile([0.1, 0.6], name).tobytes()
        )
    for column, values in plain.summary().columns.items():
        assert posterior.summary()[column].tobytes() == values.tobytes()


def test_without_weights_all_is_numpy_to_the_last_bit():
    x = made().flat
    assert weighting.mean(x, None, (0, 1)).tobytes() == x.mean(axis=(0, 1)).tobytes()
    assert weighting.std(x, None, (0, 1)).tobytes() == x.std(axis=(0, 1)).tobytes()
    for values, q in ((x, 0.3), (x[:1, :1], [0.5]), (x[:, :2], [0.0, 0.5, 1.0])):
        found = weighting.quantile(values, q, None, (0, 1))
        assert found.tobytes() == np.quantile(values, q, axis=(0, 1)).tobytes()
    x[1, 2] = np.nan
    assert np.isnan(weighting.quantile(x, 0.1, None, (0, 1))).all()
    x[1, 2] = 0.0
    logistic = weighting.quantile(x, [0.2, 0.7], None, (0, 1), of=expit)
    np.testing.assert_allclose(logistic, np.quantile(expit(x), [0.2, 0.7], axis=(0, 1)), rtol=1e-14)
    found = weighting.quantile(x, [0.2, 0.7], None, (0, 1))
    assert found.tobytes() == np.quantile(x, [0.2, 0.7], axis=(0, 1)).tobytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones(39), r"shape \(40,\), got \(39,\)"),
        (np.ones((3, 40)), r"got \(3, 40\)"),
        (np.zeros(40), "not all zero"),
        (np.r_[-1.0, np.ones(39)], "finite and nonnegative"),
        (np.r_[np.nan, np.ones(39)], "finite"),
    ],
)
def test_weights_are_one_a_draw(wrong, message):
    with pytest.raises(ValueError, match=message):
        made(wrong)


def test_draws_stay_as_they_are(weights):
    posterior, plain = made(weights), made()
    assert np.array_equal(posterior.flat, plain.flat)
    assert np.array_equal(posterior["coef"], plain["coef"])


def test_a_weighted_posterior_travels_and_prints(weights):
    posterior = made(weights)
    twin = pickle.loads(pickle.dumps(posterior))
    assert np.array_equal(twin.weights, posterior.weights)
    assert np.array_equal(twin.mean(), posterior.mean())
    assert "3 chains x 40 weighted draws: sampler sgld" in repr(posterior)
    frame = posterior.summary().to_frame()
    assert frame.loc["c", "mean"] == posterior.mean()[2]
    assert frame.loc["c", "5%"] == posterior.interval(0.9)[0][2]


# -- how much weighted draws tell -----------------------------------------------------------------


def test_summary_of_weighted_draws(weights):
    summary, plain = made(weights).summary(), made().summary()
    share = weights.sum() ** 2 / (40 * (weights**2).sum())
    assert 0.3 < share < 0.7
    for column in ("ess_bulk", "ess_tail"):
        np.testing.assert_allclose(summary[column], share * plain[column], rtol=1e-12)
    for column in ("mcse_mean", "mcse_sd"):
        np.testing.assert_allclose(summary[column], plain[column] / np.sqrt(share), rtol=1e-12)
    assert np.array_equal(summary["rhat"], plain["rhat"])


def test_efficiency_is_exact_for_independent_draws(weights):
    # Var(Σ w x / Σ w) = Σ w² / (Σ w)², against 1/n.
    share = convergence.weight_efficiency(weights)
    variance = (weights**2).sum() / weights.sum() ** 2
    assert abs(share * 40 * variance - 1.0) < 1e-13
    assert convergence.weight_efficiency(None) == convergence.weight_efficiency(np.ones(3)) == 1.0


def falling_chains(h, thin, n_warmup, rng, n_chains):
    """Chains of SGLD on N(0, 1) with step sizes h, every `thin`-th state after the warm-up."""
    x, draws = rng.standard_normal(n_chains), []
    for t, step in enumerate(h):
        x = (1.0 - 0.5 * step) * x + np.sqrt(step) * rng.standard_normal(n_chains)
        if t >= n_warmup and (t + 1 - n_warmup) % thin == 0:
            draws.append(x)
    return np.array(draws).T


def error_of_the_weighted_mean(h, thin, n_warmup, weights):
    """Standard deviation of Σ w x / Σ w for one such chain, by the share of every noise in it."""
    reach, variance = 0.0, 0.0
    for t in range(len(h) - 1, -1, -1):
        if t >= n_warmup and (t + 1 - n_warmup) % thin == 0:
            reach += weights[(t + 1 - n_warmup) // thin - 1] / weights.sum()
        variance += h[t] * reach**2
        reach *= 1.0 - 0.5 * h[t]
    return np.sqrt(variance + reach**2)  # the start has variance 1


@pytest.mark.parametrize("b", [1.0, 100.0])
def test_monte_carlo_errors_of_weighted_draws_are_on_the_safe_side(b):
    schedule, thin, n_warmup, n_draws = Polynomial(a=1.0, b=b, gamma=0.4), 5, 100, 1000
    h = schedule(np.arange(n_warmup + thin * n_draws))
    weights = draw_weights(schedule, n_warmup + thin * np.arange(1, n_draws + 1), thin)
    exact = error_of_the_weighted_mean(h, thin, n_warmup, weights)
    draws = falling_chains(h, thin, n_warmup, np.random.default_rng(0), 160)
    stated = np.mean([convergence.mcse_mean(part, weights) for part in draws.reshape(40, 4, -1)])
    assert 1.0 < stated / (exact / 2.0) < 1.5  # of four chains


# -- where weights come from ----------------------------------------------------------------------


@pytest.mark.parametrize("name", VARYING)
@pytest.mark.parametrize(("n_warmup", "thin", "n_draws"), [(0, 1, 20), (3, 4, 9), (5, 3, 1)])
def test_weight_is_the_sum_of_the_steps_since_the_draw_before(name, n_warmup, thin, n_draws):
    schedule, formula = cases.SCHEDULES[name]
    found = draw_weights(schedule, n_warmup + thin * np.arange(1, n_draws + 1), thin)
    expected = naive_weights(formula, n_warmup, thin, n_draws)
    if found is None:
        found = np.ones(n_draws)
        assert n_draws == 1
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_weights_do_not_depend_on_how_many_steps_are_looked_at_at_a_time(monkeypatch, block):
    schedule, ends = Cyclical(0.3, 11), 4 + 3 * np.arange(1, 50)
    expected = draw_weights(schedule, ends, 3)
    monkeypatch.setattr(schedules, "BLOCK", block)
    np.testing.assert_array_equal(draw_weights(schedule, ends, 3), expected)


@pytest.mark.parametrize(
    "schedule",
    [Constant(0.1), TwoPhase(0.5, 0.1, 7), Cyclical(0.2, 3), Cyclical(0.2, 5, 1.0), None],
)
def test_steps_that_sum_alike_give_no_weights(schedule):
    assert draw_weights(schedule, 7 + 3 * np.arange(1, 200), 3) is None


def test_weighted_second_moment_has_the_law_of_the_recursion():
    # SGLD on a Gaussian of precision A, θ' = (1 - hA/2) θ + √h ξ, is linear in its start and its
    # noises: E θ² is the sum of the squared responses to each of them. By the formula it is
    # v' = (1 - hA/2)² v + h; both are averaged over the draws by weight.
    table, y = (
        cases.priors.Normal(loc=0.3, scale=2.0)._table((1,)),
        np.random.default_rng(0).normal(size=6),
    )
    model, A = cases.MODELS["gaussian"].model, 6.0 + 0.25
    target = probe.make_target(model, np.ones((6, 1)), y, np.ones(6), table, intercept=False)
    kernels = probe.Probe(probe.frame_at(target, np.array([(y.sum() + 0.3 / 4.0) / A])))
    schedule, n_warmup, thin, n_draws, start = Polynomial(0.25, 1.0, 0.7), 4, 3, 6, 1.5
    T = n_warmup + thin * n_draws

    def response(source):
        state, found = kernels.start([start if source < 0 else 0.0]), []
        for t, h in enumerate(schedule(np.arange(T))):
            state = kernels.step(state, *kernels.all_rows, [float(t == source)], h)
            found.append(state[0, 0])
        return found[n_warmup + thin - 1 :: thin]

    squares = np.array([response(source) for source in range(-1, T)])[..., None] ** 2
    ends = n_warmup + thin * np.arange(1, n_draws + 1)
    found = [
        len(squares) * Posterior(squares, {"v": ()}, ["v"], weights=w).mean("v")
        for w in (draw_weights(schedule, ends, thin), None)
    ]
    v, total, weight, part = start**2, 0.0, 0.0, 0.0
    for t in range(T):
        h = 0.25 * (1.0 + t) ** -0.7
        v, part = (1.0 - 0.5 * h * A) ** 2 * v + h, part + h
        if t < n_warmup:
            part = 0.0
        elif (t + 1 - n_warmup) % thin == 0:
            total, weight, part = total + part * v, weight + part, 0.0
    assert abs(found[0] - total / weight) < 1e-13
    assert abs(found[1] - total / weight) > 1e-3  # without weights


@pytest.mark.parametrize(
    ("schedule", "argument"),
    [
        (TwoPhase(0.0, 0.1, 5), "first"),
        (TwoPhase(0.1, np.inf, 5), "second"),
        (TwoPhase(0.1, "0.1", 5), "second"),
        (TwoPhase(0.1, 0.1, 2.5), "switch"),
        (TwoPhase(0.1, 0.1, -1), "switch"),
        (TwoPhase(0.1, 0.1, True), "switch"),
        (Cyclical(-0.1, 5), "h_max"),
        (Cyclical(0.1, 0), "cycle"),
        (Cyclical(0.1, None), "cycle"),
        (Cyclical(0.1, 5, floor=0.0), "floor"),
        (Cyclical(0.1, 5, floor=1.5), "floor"),
        (Polynomial(None), "a"),
    ],
)
def test_schedules_name_the_argument_that_is_wrong(schedule, argument):
    value = getattr(schedule, argument)
    with pytest.raises(InvalidParameterError, match=f"The {argument} of .* got {value!r}"):
        schedule(np.arange(3))
    with pytest.raises(InvalidParameterError, match=f"The {argument} of"):
        quick(step_size=schedule).fit(*binary())


def test_a_cycle_never_stands_still():
    h = Cyclical(0.2, 1000, floor=0.03)(np.arange(3000))
    assert h.min() == 0.2 * 0.03
    assert h[999] == h[1999] == h.min()
    assert h[0] == h[1000] == 0.2


# -- estimators -----------------------------------------------------------------------------------


FALLING = STOCHASTIC | {"sampler": "sgld", "step_size": Polynomial(0.4, 2.0, 0.6), "thin": 3}


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = (
        binary(1500, 3) if request.param == 2 else multinomial(1500, 3)  # beyond the full gradient
    )
    return quick(**FALLING).fit(X, y), X[:7]


def probabilities(model, X):
    """Of all classes under every draw, chain after chain: (n_draws, n_rows, n_classes)."""
    B, b = (model.posterior_[name] for name in ("coef", "intercept"))
    eta = X @ np.swapaxes(B.reshape(-1, *B.shape[2:]), 1, 2) + b.reshape(-1, 1, b.shape[-1])
    if eta.shape[-1] == 1:
        return np.concatenate([expit(-eta), expit(eta)], axis=-1)
    return softmax(eta, axis=-1)


def test_weights_of_a_fit(fitted):
    model, _ = fitted
    expected = naive_weights(lambda t: 0.4 * (2.0 + t) ** -0.6, 50, 3, 25)
    np.testing.assert_allclose(model.posterior_.weights, expected, rtol=1e-13)
    assert np.ptp(expected) > 0.1


def test_fitted_attributes_are_weighted(fitted):
    model, _ = fitted
    posterior = model.posterior_
    w = np.tile(posterior.weights, (2, 1))
    for name in ("coef", "intercept"):
        draws, mean = posterior[name], getattr(model, f"{name}_")
        expected = np.einsum("cd,cd...->...", w, draws) / w.sum()
        np.testing.assert_allclose(mean, expected, atol=1e-13)
        variance = np.einsum("cd,cd...->...", w, (draws - expected) ** 2) / w.sum()
        np.testing.assert_allclose(getattr(model, f"{name}_std_"), np.sqrt(variance), atol=1e-13)
        assert np.abs(mean - draws.mean(axis=(0, 1))).max() > 1e-5


def test_smallest_effective_sample_size_allows_for_weights(monkeypatch):
    seen, worst = [], convergence.worst_of_chains
    watched = lambda draws: seen.append(worst(draws)) or seen[-1]  # noqa: E731
    monkeypatch.setattr(convergence, "worst_of_chains", watched)
    model = quick(**FALLING).fit(*binary(1500, 3))
    share = convergence.weight_efficiency(model.posterior_.weights)
    assert share < 0.99
    assert abs(model.diagnostics_["min_ess"] / (share * seen[-1][0]) - 1.0) < 1e-12
    assert model.diagnostics_["max_rhat"] == seen[-1][2]


def test_predictions_are_weighted(fitted):
    model, X = fitted
    p, w = probabilities(model, X), np.tile(model.posterior_.weights, 2)
    mean = np.einsum("s,snk->nk", w, p) / w.sum()
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-14)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(mean), atol=1e-13)
    log_odds = np.log(mean[:, 1] / mean[:, 0]) if p.shape[2] == 2 else np.log(mean)
    np.testing.assert_allclose(model.decision_function(X), log_odds, atol=1e-12)
    assert np.abs(p.mean(axis=0) - mean).max() > 1e-6
    bounds = model.predict_proba_interval(X, 0.8)
    for found, q in zip(bounds, (0.1, 0.9), strict=True):
        expected = [[naive_quantile(x, w, q) for x in row] for row in p.transpose(1, 2, 0)]
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_samples_of_probabilities_count_the_same(fitted):
    model, X = fitted
    p, w = probabilities(model, X), np.tile(model.posterior_.weights, 2)
    reached = np.cumsum(w) / w.sum()
    for n in (None, 7):
        size = len(p) if n is None else n
        draws = [
            next(k for k, r in enumerate(reached) if r >= (i + 0.5) / size) for i in range(size)
        ]
        np.testing.assert_allclose(model.predict_proba_samples(X, n), p[draws], atol=1e-14)


def test_representatives_come_as_often_as_they_weigh(weights):
    n = 10_000
    counts = np.bincount(weighting.representatives(weights, n), minlength=40)
    assert np.abs(counts - n * weights / weights.sum()).max() <= 1.0
    np.testing.assert_array_equal(weighting.representatives(np.ones(9), 9), np.arange(9))
    assert weighting.representatives([1.0, 1.0, 0.0], 5).max() == 1


def test_far_predictors_keep_their_weighted_logarithms(weights):
    x = np.random.default_rng(0).normal(scale=300.0, size=(2, 40, 3))
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    expected = np.log((weights[:, None] * shifted).sum(axis=1) / weights.sum()) + x.max(axis=1)
    np.testing.assert_allclose(weighting.log_mean_exp(x - 5000.0, weights, 1), expected - 5000.0)


@pytest.mark.parametrize("n_draws", [40, pytest.param(41, marks=pytest.mark.slow)])
def test_thinning_again_keeps_the_weights_of_what_is_kept(n_draws):
    # Small steps, so that draws are dependent and chains are thinned further on the way.
    X, y = binary(1500, 3)
    options = FALLING | {"step_size": Polynomial(4.0, 500.0, 0.5), "n_draws": n_draws}
    model = quick(**options | {"thin": "auto"}).fit(X, y)
    whole = quick(**options | {"thin": 1, "n_draws": model.n_steps_ + model.thin_}).fit(X, y)
    every = whole.posterior_.flat[0, :, 0]
    steps = [int(np.flatnonzero(every == x)[0]) for x in model.posterior_.flat[0, :, 0]]
    gaps = set(np.diff(steps) / model.thin_)
    assert model.thin_ in (22, 44)  # the relaxation time 2 / h of the first step, doubled
    assert gaps == {1.0} if n_draws == 40 else gaps > {1.0}
    sizes = 4.0 * (500.0 + 50 + np.arange(len(every))) ** -0.5
    sums = np.array([sizes[k + 1 - model.thin_ : k + 1].sum() for k in steps])
    np.testing.assert_allclose(model.posterior_.weights, sums / sums.mean(), rtol=1e-12)


@pytest.mark.slow
def test_phases_that_end_in_the_warm_up_leave_the_draws_alike():
    X, y = binary(1500, 3)
    two = quick(**FALLING | {"step_size": TwoPhase(0.1, 0.1, 50)}).fit(X, y)
    one = quick(**FALLING | {"step_size": 0.1}).fit(X, y)
    assert two.posterior_.weights is None
    assert one.posterior_.weights is None
    assert two.posterior_.flat.tobytes() == one.posterior_.flat.tobytes()
    assert two.coef_.tobytes() == one.coef_.tobytes()
    assert two.diagnostics_["min_ess"] == one.diagnostics_["min_ess"]
    late = quick(**FALLING | {"step_size": TwoPhase(0.2, 0.1, 51)}).fit(X, y)
    assert late.posterior_.weights[0] > late.posterior_.weights[1]


@pytest.mark.parametrize("sampler", ["mala", "hmc"])
def test_exact_samplers_have_no_weights(sampler):
    model = quick(sampler=sampler, step_size=Polynomial(0.3), thin=1).fit(*binary())
    assert model.posterior_.weights is None


@pytest.mark.slow
def test_estimators_on_the_way_are_weighted():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    seen = []

    class Watcher:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, **data): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, X=None, y=None):
            if context.task_name == "draws":
                seen.append(fitted_estimator)

    model = quick(**FALLING | {"n_draws": 3000})
    model.set_callbacks(Watcher()).fit(*binary(1500, 3))
    for estimator in (seen[0], seen[-1]):
        n = estimator.posterior_.n_draws
        expected = model.posterior_.weights[:n] / model.posterior_.weights[:n].mean()
        np.testing.assert_allclose(estimator.posterior_.weights, expected, rtol=1e-12)
        mean = np.average(estimator.posterior_["coef"], axis=1, weights=expected).mean(axis=0)
        np.testing.assert_allclose(estimator.coef_, mean, atol=1e-12)


def test_posterior_with_names_of_the_demonstration_keeps_weights():
    X, y = binary(1500, 3)
    pipeline = make_pipeline(StandardScaler(), quick(**FALLING)).fit(X, y)
    named = named_posterior(pipeline, SimpleNamespace(names=["u", "v", "w"]))
    assert named.labels == ("u", "v", "w", "intercept")
    np.testing.assert_allclose(named.mean("coef"), pipeline[-1].coef_, rtol=1e-14)
