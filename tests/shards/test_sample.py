"""Rows in shards: that together they are the posterior, and how fits with shards behave."""

import pickle
import threading
import warnings

import cases
import joblib
import numpy as np
import pytest
from interrupts import WatchedStep, heard, join_all_but, pressed_at
from problems import STOCHASTIC, binary, multinomial, quick
from scenes import close, make_scene
from scipy import sparse
from sklearn.base import clone

import skbayes_sg
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    combine,
)
from skbayes_sg._base import streams, threads
from skbayes_sg.engine.target import Target
from skbayes_sg.estimators import _base
from skbayes_sg.exceptions import (
    InvalidParameterError,
    SamplerConvergenceWarning,
    SamplerDivergedError,
    SubposteriorWarning,
)
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.priors.table import powered, prior_curvature, prior_gradient, prior_value
from skbayes_sg.recipe.choose import sample_posterior
from skbayes_sg.recipe.request import Outcome, Request
from skbayes_sg.shards import sample as subposteriors
from skbayes_sg.shards.sample import Sharded

pytestmark = [
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SubposteriorWarning"),
]
X, y = binary(60)
PRIORS = {name: case.prior for name, case in cases.PRIORS.items()}


# -- shares of the prior ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIORS)
def test_a_power_of_a_prior_is_that(name):
    table, p = PRIORS[name]._table((1,)), 0.3
    share = powered(table, p)
    points = np.array([-1.7, -0.4, 0.0, 0.9, 2.2])[:, None]

    def kernels(prior):
        found = []
        for theta in points:
            g = np.zeros(1)
            prior_gradient(prior, theta, g)
            found.append((prior_value(prior, theta), g[0], prior_curvature(prior, theta)[0]))
        return np.array(found).T

    whole, part = kernels(table), kernels(share)
    close(part[0] - part[0, 0], p * (whole[0] - whole[0, 0]), 1e-12)
    close(part[1:], p * whole[1:], 1e-12, np.abs(whole[1:]).max())
    assert (powered(table, 1.0) == table).all()


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("model", cases.with_marks(cases.MODELS))
def test_shards_together_are_the_posterior(model, prior):
    """Σ_s U_s(θ) = U(θ) + constant, and so for gradients and Hessians."""
    scene = make_scene(model, prior, n_rows=25)
    target = scene.target
    sharded = Sharded(target, 4, target.data.facts[:, 0] if model == "softmax" else None, seed=3)
    origin = scene.point(5)

    def total(what, theta):
        return sum(what(sharded[s], theta) for s in range(len(sharded)))

    def value(posterior, theta):
        return posterior.value_and_gradient(theta)[0] - posterior.value_and_gradient(origin)[0]

    def gradient(posterior, theta):
        return posterior.value_and_gradient(theta)[1]

    def hessian(posterior, theta):
        return posterior.likelihood_hessian(theta) + np.diag(posterior.prior_curvature(theta))

    for theta in (scene.point(), scene.point(1)):
        for what in (value, gradient, hessian):
            close(total(what, theta), what(target, theta), 1e-12, scene.posterior.scale(theta))


# -- which rows ------------------------------------------------------------------------------------


def contents(X, y, parts):
    """What each shard holds: the total weight of every distinct row."""
    found = []
    for rows, weight in parts:
        held = {}
        for i, w in zip(rows, weight, strict=True):
            key = (*np.asarray(X[i]).ravel(), y[i])
            held[key] = held.get(key, 0.0) + w
        found.append(held)
    return found


def same(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        for key, w in a.items():
            assert b[key] == pytest.approx(w, abs=1e-9)


@pytest.mark.parametrize("n_shards", [1, 2, 5, 7])
def test_shards_have_equal_weight_in_every_class(n_shards):
    rng = np.random.default_rng(0)
    labels = np.repeat([0.0, 1.0, 2.0], [50, 17, 2])  # two rows of one class, for up to 7 shards
    Z, w = rng.normal(size=(69, 2)), rng.uniform(0.5, 3.0, 69)
    parts = subposteriors.split(Z, labels, w, n_shards, labels)
    for rows, weight in parts:
        for k in range(3):
            share = weight[labels[rows] == k].sum()
            assert share == pytest.approx(w[labels == k].sum() / n_shards, rel=1e-9)
        assert (weight > 0.0).all()
    whole = np.zeros(69)
    for rows, weight in parts:
        np.add.at(whole, rows, weight)
    np.testing.assert_allclose(whole, w, rtol=1e-9)
    copies = np.rint(w).sum()  # a row of weight 3 is 3 rows; beyond that few rows are shared
    assert sum(len(rows) for rows, _ in parts) <= copies + 3 * (n_shards - 1)
    once = subposteriors.split(Z, labels, np.ones(69), n_shards, labels)
    assert sum(len(rows) for rows, _ in once) <= 69 + 3 * (n_shards - 1)


def test_repeated_rows_are_rows_with_weights_and_order_makes_no_difference():
    rng = np.random.default_rng(1)
    w = rng.integers(1, 5, 40)
    rows, order = np.repeat(np.arange(40), w), rng.permutation(40)
    Z, labels = rng.normal(size=(40, 3)), np.arange(40.0) % 2
    weighted = contents(Z, labels, subposteriors.split(Z, labels, w * 1.0, 3, labels))
    repeated = subposteriors.split(Z[rows], labels[rows], np.ones(len(rows)), 3, labels[rows])
    same(weighted, contents(Z[rows], labels[rows], repeated))
    moved = subposteriors.split(Z[order], labels[order], w[order] * 1.0, 3, labels[order])
    same(weighted, contents(Z[order], labels[order], moved))
    other = subposteriors.split(Z, labels, w * 1.0, 3, labels, seed=1)
    assert contents(Z, labels, other)[0].keys() != weighted[0].keys()


REPEATED = {  # (levels of each row, weights, how much a row that comes once weighs)
    "four levels": (np.arange(20_000) % 4, None, 1.0),
    "unequal levels": (np.repeat([0, 1, 2], [19_000, 990, 10]), None, 1.0),
    "two levels": (np.arange(1000) // 700, None, 1.0),
    "all equal": (np.zeros(1000), None, 1.0),
    "whole weights": (np.arange(300) % 4, np.arange(300.0) % 19 + 1.0, 1.0),
    "weights": (np.arange(300) % 4, np.random.default_rng(0).uniform(0.1, 9.0, 300), 1.0),
    "one row a level": (np.arange(4), np.array([5e3, 4e3, 10.0, 3.0]), 1.0),
    "weights divided by a variance": (np.arange(300) % 4, np.full(300, 1e-4), 1e-4),
}


@pytest.mark.parametrize("n_shards", [2, 4, 7])
@pytest.mark.parametrize("name", REPEATED)
def test_every_shard_has_its_share_of_repeated_rows(name, n_shards):
    """Within one row of what is left over, and one that is cut."""
    levels, w, unit = REPEATED[name]
    w = np.full(len(levels), unit) if w is None else w
    Z, labels = np.stack([levels, -levels], axis=1), np.zeros(len(levels))
    parts = subposteriors.split(Z, labels, w, n_shards, unit=unit)
    for rows, weight in parts:
        assert weight.sum() == pytest.approx(w.sum() / n_shards, rel=1e-9)
        for level in np.unique(levels):
            share = weight[levels[rows] == level].sum()
            assert abs(share - w[levels == level].sum() / n_shards) < 2.0 * unit


def test_rows_have_the_same_key_in_every_layout():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 4)).astype(np.float32).astype(np.float64)
    Z[rng.random(Z.shape) < 0.5] = 0.0
    Z[3] = 0.0
    labels = rng.normal(size=30)
    keys = subposteriors.row_keys(Z, labels, 7)
    assert len(set(keys)) == 30
    explicit = sparse.csr_array(Z + 1.0)
    explicit.data -= 1.0  # zeros that are stored
    for other in (explicit, sparse.csr_array(Z), Z.astype(np.float32), np.asfortranarray(Z)):
        np.testing.assert_array_equal(
            subposteriors.row_keys(other, labels, 7), subposteriors.row_keys(Z, labels, 7)
        )
    negative_zeros = np.where(Z == 0.0, -0.0, Z)
    np.testing.assert_array_equal(subposteriors.row_keys(negative_zeros, labels, 7), keys)
    assert (subposteriors.row_keys(Z, labels, 8) != keys).all()
    assert (subposteriors.row_keys(Z[:, ::-1], labels, 7) != keys)[Z.any(axis=1)].all()


def test_keys_are_in_random_order():
    """No trace of the rows' own order: each third is spread over the places like the others."""
    Z = np.arange(3000.0)[:, None]
    place = subposteriors.row_keys(Z, np.zeros(3000), 0).argsort().argsort() / 3000
    for third in np.split(place, 3):  # uniform: mean 1/2, variance 1/12
        assert abs(third.mean() - 0.5) < 5.0 / np.sqrt(12 * 1000)
    assert abs(np.corrcoef(place[1:], place[:-1])[0, 1]) < 5.0 / np.sqrt(3000)


# -- random numbers --------------------------------------------------------------------------------


def test_every_shard_has_random_numbers_of_its_own():
    seeds = {streams.shard_seed(seed, s) for seed in range(20) for s in range(50)}
    assert len(seeds) == 1000
    fit = quick(n_draws=500, n_subposteriors=3).fit(X, y)
    draws = [shard.flat.reshape(1000, -1) for shard in fit.subposteriors_]
    for a in range(3):
        for b in range(a):
            together = np.corrcoef(draws[a].T, draws[b].T)[:4, 4:]
            assert np.abs(together).max() < 0.25  # about 5/sqrt(effective draws)


@pytest.mark.slow_except("exact-consensus", "stochastic-parametric")
@pytest.mark.parametrize("name", combine.COMBINERS)
@pytest.mark.parametrize("options", [{}, STOCHASTIC], ids=["exact", "stochastic"])
def test_same_draws_however_many_workers(name, options):
    model = quick(**options, n_subposteriors=3, combine=name)
    one = model.fit(X, y)
    for n_jobs in (2, 4):
        other = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        np.testing.assert_array_equal(one.posterior_.flat, other.posterior_.flat)
    for a, b in zip(one.subposteriors_, other.subposteriors_, strict=True):
        np.testing.assert_array_equal(a.flat, b.flat)


@pytest.mark.slow
def test_same_draws_in_processes():
    model = quick(**STOCHASTIC, n_subposteriors=3)
    one = model.fit(X, y)
    with joblib.parallel_config("loky", n_jobs=2):
        other = clone(model).set_params(n_jobs=2).fit(X, y)
        few = quick(sampler="hmc", n_draws=5, n_warmup=0, n_subposteriors=3, n_jobs=2)
        with pytest.warns(match="shard 1 of 3: "):  # which would be lost there
            few.set_params(combine="weierstrass").fit(X, y)
    np.testing.assert_array_equal(one.posterior_.flat, other.posterior_.flat)


# -- fits ------------------------------------------------------------------------------------------


def test_one_subposterior_is_none():
    one, default = quick(n_subposteriors=1, combine="weierstrass").fit(X, y), quick().fit(X, y)
    np.testing.assert_array_equal(one.posterior_.flat, default.posterior_.flat)
    assert one.subposteriors_ == [one.posterior_]
    assert one.combine_check_ == {}


@pytest.mark.parametrize("name", combine.COMBINERS)
def test_the_posterior_is_what_the_combination_makes_of_the_subposteriors(name):
    fit = quick(n_subposteriors=3, combine=name, n_draws=50).fit(X, y)
    shards = np.stack([shard.flat for shard in fit.subposteriors_])
    assert shards.shape == (3, 2, 50, 4)
    seed = fit._request(20).seed
    wanted, _ = combine.COMBINERS[name]()._combine(shards, np.random.default_rng([seed, 3]))
    np.testing.assert_array_equal(fit.posterior_.flat, wanted)
    np.testing.assert_array_equal(fit.coef_, fit.posterior_["coef"].mean(axis=(0, 1)))
    assert fit.combine_check_["distance"] > 0.0
    copy = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(copy.subposteriors_[2].flat, shards[2])


def test_positive_parameters_are_combined_as_logarithms():
    Y = X @ [1.0, -1.0, 0.5] + np.random.default_rng(0).normal(size=60)
    fit = BayesianLinearRegression(n_subposteriors=2, n_draws=200, random_state=0).fit(X, Y)
    shards = np.stack([shard.flat for shard in fit.subposteriors_])
    shards[..., -1] = np.log(shards[..., -1])
    wanted, _ = combine.Consensus()._combine(shards, None)
    np.testing.assert_allclose(np.log(fit.posterior_["noise_std"]), wanted[..., -1], atol=1e-12)
    wrong, _ = combine.Consensus()._combine(np.exp(shards), None)
    assert np.abs(fit.posterior_["noise_std"] - np.log(wrong[..., -1])).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["normal", "student_t", "laplace"])
def test_consensus_is_near_the_posterior(prior):
    Z, labels = binary(4000, 3, seed=2)
    options = {"prior": prior, "n_draws": 1500, "n_warmup": 200, "thin": 1}
    whole = quick(**options).fit(Z, labels)
    fit = quick(n_subposteriors=4, **options).fit(Z, labels)
    sd = whole.posterior_.std()
    # Monte Carlo errors of both means, 1/sqrt(ESS) each, and what averages are predicted to miss.
    assert np.abs((fit.posterior_.mean() - whole.posterior_.mean()) / sd).max() < 0.2
    np.testing.assert_allclose(fit.posterior_.std(), sd, rtol=0.1)


def level_posteriors(levels, labels, scale):
    """Means and deviations of the log odds of levels under N(0, scale²), by quadrature."""
    b = np.linspace(-8.0, 8.0, 20_001)
    found = []
    for level in np.unique(levels):
        own = labels[levels == level]
        log_p = own.sum() * b - len(own) * np.logaddexp(0.0, b) - 0.5 * (b / scale) ** 2
        p = np.exp(log_p - log_p.max())
        mean = p @ b / p.sum()
        found.append((mean, np.sqrt(p @ (b - mean) ** 2 / p.sum())))
    return np.array(found).T


@pytest.mark.parametrize("name", combine.COMBINERS)
def test_repeated_rows_are_combined_correctly(name):
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 4, 20_000)
    labels = rng.random(20_000) < 0.3 + 0.1 * (levels == 2)
    model = BayesianLogisticRegression(
        prior=Normal(scale=2.0), fit_intercept=False, n_subposteriors=4, combine=name
    )
    fit = model.set_params(random_state=0).fit(np.eye(4)[levels], labels)
    mean, sd = level_posteriors(levels, labels, 2.0)
    # 4000 draws; products by kernels are wider by their bandwidth.
    assert np.abs((fit.coef_ - mean) / sd).max() < 0.1
    wide = 0.15 if name == "nonparametric" else 0.08
    np.testing.assert_allclose(fit.coef_std_, [sd], rtol=wide)


@pytest.mark.slow
def test_shards_with_the_full_prior_are_seen(monkeypatch):
    """The twin of `test_consensus_is_near_the_posterior`, under a prior that says a lot."""
    Z, labels = binary(400, 3, seed=2)
    options = {"prior": Normal(scale=0.1), "n_draws": 1500, "n_warmup": 200, "thin": 1}
    whole = quick(**options).fit(Z, labels)
    right = quick(n_subposteriors=4, **options).fit(Z, labels)
    monkeypatch.setattr(subposteriors, "powered", lambda prior, power: prior)
    wrong = quick(n_subposteriors=4, **options).fit(Z, labels)
    errors = [
        np.abs((fit.posterior_.mean() - whole.posterior_.mean()) / whole.posterior_.std()).max()
        for fit in (right, wrong)
    ]
    assert errors[0] < 0.25
    assert errors[1] > 0.8


@pytest.mark.slow
def test_rows_with_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, 60)
    rows = rng.permutation(np.repeat(np.arange(60), w))
    weighted = quick(n_subposteriors=3).fit(X, y, sample_weight=w)
    repeated = quick(n_subposteriors=3).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)


def test_draws_with_weights_are_resampled():
    rng = np.random.default_rng(0)
    draws, w = rng.normal(size=(2, 6, 1)), np.array([0.0, 3.0, 1.0, 0.0, 1.0, 1.0])
    found = subposteriors.equal_draws(Outcome(draws, {}, weights=w))
    np.testing.assert_array_equal(found, draws[:, [1, 1, 1, 2, 4, 5]])
    assert subposteriors.equal_draws(Outcome(draws, {})) is draws


def test_diagnostics_are_the_worst_of_the_shards():
    found = subposteriors._worst([{"min_ess": 3.0, "a": 1.0}, {"min_ess": 2.0, "a": 4.0, "b": 0.5}])
    assert found == {"min_ess": 2.0, "a": 4.0, "b": 0.5}


@pytest.mark.slow
def test_rare_classes_are_in_all_shards():
    Z, labels = multinomial(300)
    labels[labels == 2] = 1
    labels[:2] = 2
    fit = quick(n_subposteriors=4).fit(Z, labels)
    assert fit.coef_.shape == (3, 3)
    assert all(shard.shapes["coef"] == (3, 3) for shard in fit.subposteriors_)


# -- warnings and errors ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_combined_draws_that_depend_on_each_other_come_with_a_warning(seed):
    """Gaussian shards of nine parameters: few of their draws have most of the weight."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((3, 1, 1, 9)) + rng.standard_normal((3, 4, 1000, 9))
    outcomes = [Outcome(own, {}, {"min_ess": 4000.0}, np.ones(4)) for own in draws]
    with pytest.warns(SamplerConvergenceWarning, match=r"combine=Semiparametric\(\) .* of 4000"):
        subposteriors.combine_shards(outcomes, combine.Semiparametric(), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subposteriors.combine_shards(outcomes, combine.Consensus(), seed)
        subposteriors.combine_shards(outcomes, combine.Weierstrass(), seed)
    for own in outcomes:  # of draws that depended on each other before there has been a warning
        own.diagnostics["min_ess"] = 20.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplerConvergenceWarning)
        subposteriors.combine_shards(outcomes, combine.Semiparametric(), seed)


@pytest.mark.parametrize("combiner", [combine.Nonparametric(0.3), combine.Semiparametric()])
@pytest.mark.parametrize("ess", [4000.0, 20.0], ids=["dependent", "few"])
def test_products_that_rest_on_few_draws_come_with_one_warning(combiner, ess):
    """Gaussian shards that hardly overlap: the warning of dependence has the same cause."""
    rng = np.random.default_rng(0)
    draws = np.stack([rng.normal(1.0, 1.0, (4, 250, 2)), rng.normal(6.0, 2.0, (4, 250, 2))])
    outcomes = [Outcome(own, {}, {"min_ess": ess}, np.ones(4)) for own in draws]
    with pytest.warns(UserWarning) as caught:  # noqa: PT030
        _, check = subposteriors.combine_shards(outcomes, combiner, 0)
    assert check["effective_draws"] < 30.0
    about = [str(w.message) for w in caught if "depend on each" in str(w.message)]
    about += [str(w.message) for w in caught if "rests on" in str(w.message)]
    assert len(about) == 1
    assert ess > 20.0 or "effective number of" in about[0]


@pytest.mark.slow
def test_shards_of_classes_are_judged_by_differences_of_classes():
    """Beside their common shift, which only the prior determines, all errors would look small."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(900, 2))
    eta = np.c_[np.zeros(900), Z[:, 0], Z[:, 1] - 3.0]
    labels = (eta + rng.gumbel(size=(900, 3))).argmax(axis=1)  # the last class is rare
    model = BayesianLogisticRegression(n_draws=500, n_subposteriors=3, random_state=0)
    with pytest.warns(SubposteriorWarning, match="a posterior mean is off by"):
        model.fit(Z, labels)
    own = [shard.contrast(reference=0).flat.reshape(-1, 6) for shard in model.subposteriors_]
    expected = combine.agreement(own)
    for key in ("distance", "distance_p", "skewness", "variance_shift", "mean_shift"):
        close(model.combine_check_[key], expected[key], 1e-8)


@pytest.mark.slow
def test_shards_that_are_too_small_to_be_averaged_come_with_a_warning():
    Z, labels = binary(400, 2, seed=1)
    labels[np.flatnonzero(labels == 1)[12:]] = 0  # twelve of a class: shards are skewed
    model = quick(n_draws=2000, n_subposteriors=6)
    with pytest.warns(SubposteriorWarning, match=r"a posterior .* is off by .*Use fewer subpost"):
        model.fit(Z, labels)
    with pytest.warns(SubposteriorWarning, match="smooths them with kernels of"):
        model.set_params(combine=combine.Weierstrass(bandwidth=2.0)).fit(Z, labels)
    with pytest.warns(SubposteriorWarning, match="all variances are too large by about 25%"):
        model.set_params(combine=combine.Nonparametric(bandwidth=0.5)).fit(Z, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SubposteriorWarning)
        model.set_params(combine="semiparametric").fit(Z, labels)  # takes nothing for Gaussian
        quick(n_draws=2000, n_subposteriors=3).fit(*binary(6000, 3))


@pytest.mark.slow
@pytest.mark.filterwarnings("default::skbayes_sg.exceptions.SamplerConvergenceWarning")
def test_combined_draws_are_judged_by_the_scores_of_all_rows(monkeypatch):
    """A combination that is wrong, which its own prediction does not see."""
    model, own = quick(n_draws=1000, n_subposteriors=2), combine.Consensus._combine

    def shifted(self, shards, rng):
        draws, found = own(self, shards, rng)
        return draws + 0.5 * draws.std(axis=(0, 1)), found

    Z, labels = binary(2000, 2)
    assert model.fit(Z, labels).posterior_.check()
    assert model.posterior_.scores_of == "all rows"
    exact = full_scores(model, Z, labels).scores
    np.testing.assert_allclose(model.posterior_.scores, exact, atol=1e-5 * np.abs(exact).max())
    monkeypatch.setattr(combine.Consensus, "_combine", shifted)
    with pytest.warns(SamplerConvergenceWarning, match="Use fewer subposteriors, another comb"):
        model.fit(Z, labels)


def test_combined_draws_of_many_rows_get_no_scores(monkeypatch):
    monkeypatch.setattr(_base, "MOST_SCORED", 0.0)
    assert quick(n_subposteriors=2).fit(X, y).posterior_.scores is None


@pytest.mark.parametrize(
    ("shift", "error", "p", "told"),
    [
        (0.19, 0.05, 0.5, True),  # 3.8 errors, of five parameters
        (0.19, 0.08, 1e-4, False),
        (0.21, 0.2, 1e-3, True),  # all shifts together are not chance
        (0.41, 0.2, 0.1, False),
        (0.11, 0.02, 1e-4, False),
    ],
)
def test_shifts_that_are_told(shift, error, p, told):
    check = {"mean_shift": shift, "mean_shift_error": error, "mean_shift_p": p}
    check |= {"variance_shift": 0.1, "variance_shift_error": 0.01, "skewness": 0.3}
    check |= {"spread_shift": 0.05, "spread_shift_error": 0.01}
    assert bool(subposteriors._predicted_errors(check, 5)) == told


@pytest.mark.parametrize(
    ("spread", "error", "told"),
    [
        (0.13, 0.02, "too large by about 13% on average"), (0.11, 0.02, ""), (0.13, 0.04, ""),
        (-0.13, 0.02, "too small by about 13% on average"), (0.17, 0.04, "too large by about 17%"),
    ],
)  # fmt: skip
def test_variances_that_are_wrong_on_average_are_told(spread, error, told):
    check = {"mean_shift": 0.1, "mean_shift_error": 0.1, "mean_shift_p": 0.5, "skewness": 0.3}
    check |= {"variance_shift": 0.1, "variance_shift_error": 0.01}
    check |= {"spread_shift": spread, "spread_shift_error": error}
    found = subposteriors._predicted_errors(check, 5)
    assert len(found) == bool(told)
    assert told in "".join(found)


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_few_rows_are_too_wide_and_that_is_told(seed):
    """Variances of eight parts of fifty rows were 1.3 to 1.6 times as large as those of all."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(400, 6))
    labels = rng.random(400) < 1.0 / (1.0 + np.exp(-Z @ rng.normal(size=6)))
    model = BayesianLogisticRegression(random_state=0)
    ratio = np.square(model.fit(Z, labels).coef_std_)
    with pytest.warns(SubposteriorWarning, match="posterior variances are too large by about"):
        model.fit_shards([(Z[k::8], labels[k::8]) for k in range(8)])
    ratio = (np.square(model.coef_std_) / ratio).mean() - 1.0
    assert ratio > 0.2
    assert model.combine_check_["spread_shift"] == pytest.approx(ratio, abs=0.5 * ratio)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "seed"), [(20, 0), (20, 1), (50, 2)])
def test_gaussian_shards_with_many_parameters_are_not_called_skewed(d, seed):
    """Only their estimated covariances add errors, which are told from a tenth of an sd on."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((4000, d))
    y = Z @ rng.standard_normal(d) + rng.standard_normal(4000)
    exact = BayesianLinearRegression(random_state=0, n_draws=4000).fit(Z, y)
    n_draws = 1000 if d == 20 else 500
    model = BayesianLinearRegression(random_state=0, n_subposteriors=8, n_draws=n_draws)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(Z, y)
    said = [str(one.message) for one in caught if one.category is SubposteriorWarning]
    assert len(said) == (d == 50)
    assert all("covariances estimated from the draws of 52 parameters" in one for one in said)
    error = np.sqrt(np.mean(((model.coef_ - exact.coef_) / exact.coef_std_) ** 2))
    assert error == pytest.approx(model.combine_check_["weights_error"], rel=0.5)


@pytest.mark.slow
def test_a_rare_level_of_counts_makes_shards_too_skewed_to_average():
    """Of four shards one has no event of the level: the prediction is a fifth of the error."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.standard_normal(4000), rng.random(4000) < 0.02])
    rng.random(4000)
    counts = rng.poisson(np.exp(-2.0 + Z @ [0.5, 1.0]))
    whole = BayesianPoissonRegressor(n_draws=500, random_state=0).fit(Z, counts)
    model = BayesianPoissonRegressor(n_draws=500, random_state=0)
    parts = np.split(np.arange(4000), [300, 800, 2000])
    with pytest.warns(SubposteriorWarning, match="the skewness of a shard is"):
        model.fit_shards([(Z[rows], counts[rows]) for rows in parts])
    assert abs(model.coef_[1] - whole.coef_[1]) > 0.25 * whole.coef_std_[1]
    assert model.combine_check_["mean_shift"] < 0.15


def test_modes_that_shards_disagree_on_come_with_a_warning():
    rng = np.random.default_rng(0)
    modes = 4.0 * rng.choice([-1, 1], (6, 1, 1, 1))
    outcomes = [Outcome(x, {}, {"min_ess": 900.0}) for x in rng.normal(modes, 1.0, (6, 2, 500, 1))]
    for combiner in combine.COMBINERS.values():
        with pytest.warns(SubposteriorWarning, match="times as far apart as their widths imply"):
            subposteriors.combine_shards(outcomes, combiner(), 0)
    both = rng.normal(4.0 * rng.choice([-1, 1], (6, 2, 500, 1)), 1.0)  # each shard knows both
    outcomes = [Outcome(x, {}, {"min_ess": 900.0}) for x in both]
    with pytest.warns(SubposteriorWarning, match="a posterior variance is off by about"):
        subposteriors.combine_shards(outcomes, combine.Consensus(), 0)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"n_subposteriors": 0}, r"'n_subposteriors' parameter of .* must be an int in the range"),
        ({"n_subposteriors": 2.0}, "'n_subposteriors' parameter"),
        ({"n_subposteriors": True}, "'n_subposteriors' parameter"),
        ({"combine": "average"}, r"'combine' parameter of .* one of 'consensus', .* or a Combiner"),
        ({"combine": None}, "'combine' parameter"),
        ({"combine": combine.Weierstrass(acceptance=2.0)}, "'combine' parameter: acceptance"),
        ({"combine": combine.Nonparametric(bandwidth=-1)}, "'combine' parameter: bandwidth"),
        ({"combine": combine.Semiparametric(n_sweeps=0)}, "'combine' parameter: n_sweeps"),
    ],
)
def test_parameters_that_are_not_accepted(parameters, text):
    with pytest.raises(InvalidParameterError, match=text):
        quick(**parameters).fit(X, y)


GLMS = [
    kind
    for kind in map(vars(skbayes_sg).get, skbayes_sg.__all__)
    if isinstance(kind, type) and issubclass(kind, _base.BayesianGLM)
]


@pytest.mark.parametrize("kind", GLMS)
def test_more_shards_than_rows_are_refused(kind):
    labels = y[:10]
    model, zeros = kind(n_subposteriors=11), np.r_[np.ones(10), np.zeros(20)]
    with pytest.raises(ValueError, match=r"n_subposteriors=11 is more than the 10 rows of posit"):
        model.fit(X[:10], labels)
    with pytest.raises(ValueError, match=r"n_subposteriors=11 is more than the 10 rows of posit"):
        model.fit(X[:30], y[:30], sample_weight=zeros)
    assert not hasattr(model, "posterior_")


@pytest.mark.slow
def test_rows_of_large_weight_are_many_rows():
    """A row of weight three is a row that comes three times, and can lie in three shards."""
    labels = np.r_[0, 0, 1, 1]
    weighted = quick(n_subposteriors=6).fit(X[:4], labels, sample_weight=np.full(4, 3.0))
    repeated = quick(n_subposteriors=6).fit(np.repeat(X[:4], 3, 0), np.repeat(labels, 3))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)
    fractions = np.full(8, 0.1)
    quick(n_subposteriors=4).fit(X[:8], y[:8], sample_weight=fractions)


def messages_of_small_shards(fit, *data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(*data)
    return [str(w.message) for w in caught if "parameters. The prior shapes" in str(w.message)]


@pytest.mark.slow
def test_small_shards_are_named_before_they_are_sampled():
    (text,) = messages_of_small_shards(quick(n_subposteriors=20).fit, X, y)
    assert "of 20 shards, one has about 3 rows for 4 parameters" in text
    assert not messages_of_small_shards(quick(n_subposteriors=12).fit, X, y)
    assert not messages_of_small_shards(quick().fit, X[:3], y[:3] * 0 + [0, 1, 1])
    few = np.flatnonzero(y == 1)[:1].tolist() + np.flatnonzero(y == 0)[:1].tolist()
    (text,) = messages_of_small_shards(quick().fit_shards, [(X, y), (X[few], y[few])])
    assert "of 2 shards, one has about 2 rows for 4 parameters. " in text

    def never(*_):
        raise AssertionError("sampled")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skbayes_sg.estimators._base.sample_shards", never)
        with (
            pytest.warns(SubposteriorWarning, match="of 20 shards"),
            pytest.raises(AssertionError, match="sampled"),
        ):
            quick(n_subposteriors=20).fit(X, y)


def test_errors_name_the_shard():
    model = quick(**STOCHASTIC | {"step_size": 1e4, "sampler": "sgld"}, n_subposteriors=3)
    with pytest.raises(SamplerDivergedError, match=r"shard \d of 3: chain 0 diverged.*of shard \d"):
        model.fit(X, y)
    assert not hasattr(model, "posterior_")
    separable = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match=r"shard \d of 2: Improper posterior"):
        quick(prior="flat", n_subposteriors=2).fit(X, separable)


def test_other_errors_say_in_which_shard():
    class Broken:
        n_rows = 5

        def __len__(self):
            return 2

        def __getitem__(self, s):
            raise OSError("no such file")

    with pytest.raises(OSError, match="no such file") as caught:
        subposteriors.sample_shards(Broken(), Request())
    assert caught.value.__notes__ == ["This was in shard 0 of 2."]


def test_too_few_draws_for_weights():
    with pytest.raises(ValueError, match=r"has 2 draws of 4 parameters.*Use more draws"):
        quick(n_draws=1, n_subposteriors=2).fit(X, y)
    fit = quick(n_draws=1, n_subposteriors=2, combine=combine.Consensus(diagonal=True)).fit(X, y)
    assert np.isfinite(fit.coef_).all()
    assert fit.combine_check_ == {}


def test_files_are_cut_where_they_lie(tmp_path):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3000, 2))
    np.save(tmp_path / "X.npy", Z)
    mapped, labels = np.load(tmp_path / "X.npy", mmap_mode="r"), (rng.random(3000) < 0.5) * 1.0
    prior = cases.PRIORS["normal"].prior._table((1, 3))
    target = Target(mapped, labels, np.ones(3000), Logistic(), prior)
    sharded = Sharded(target, 3, labels)
    assert sharded.on_disk
    for s in range(3):
        assert np.shares_memory(sharded[s].X, mapped)
        np.testing.assert_array_equal(sharded[s].X, Z[1000 * s : 1000 * (s + 1)])
    sorted_rows = Target(mapped, np.sort(labels), np.ones(3000), Logistic(), prior)
    with pytest.raises(ValueError, match=r"Shard 0 of 3, rows 0 to 1000 .*Shuffle the file once"):
        Sharded(sorted_rows, 3, np.sort(labels))


# -- workers ---------------------------------------------------------------------------------------


def test_results_come_with_their_numbers():
    found = dict(threads.as_done(lambda a, b: a * b, [(k, 10) for k in range(7)], 7, 3))
    assert found == {k: 10 * k for k in range(7)}


def test_other_threads_stop_after_an_error():
    ended, going = [], threading.Event()

    def work(k):
        if k == 1:
            going.wait()
            raise RuntimeError("this one")
        going.set()
        try:
            while True:
                threads.raise_if_stopped()
                threading.Event().wait(1e-3)
        except threads.Stopped:
            ended.append(k)
            raise

    with pytest.raises(RuntimeError, match="this one"):
        list(threads.as_done(work, [(0,), (1,)], 2, 2))
    assert ended == [0]
    threads.raise_if_stopped()  # not here


@pytest.mark.slow
def test_threads_of_shards(monkeypatch):
    """Jobs that shards leave over go to each of them."""
    seen = []
    monkeypatch.setattr(
        subposteriors,
        "sample_posterior",
        lambda t, r: seen.append(r.n_jobs) or sample_posterior(t, r),
    )
    for n_jobs, each in ((1, 1), (2, 1), (4, 2), (7, 3)):
        seen.clear()
        quick(n_subposteriors=2, n_jobs=n_jobs).fit(X, y)
        assert seen == [each, each]


@pytest.mark.slow
def test_models_with_several_predictors():
    Z, labels = multinomial(90)
    fit = quick(n_subposteriors=2).fit(Z, labels)
    assert fit.coef_.shape == (3, 3)


def test_shards_of_overdispersed_counts_that_are_far_apart_are_told():
    """Whose average is half a standard deviation off, as their cumulants do not say."""
    rng = np.random.default_rng(86)
    Z = rng.standard_t(3, (300, 1))
    counts = rng.poisson(np.exp(0.5 + 0.05 * Z[:, 0]) * rng.gamma(0.4, 1.0 / 0.4, 300))
    whole = BayesianPoissonRegressor(n_draws=500, random_state=0).fit(Z, counts)
    model = clone(whole).set_params(n_subposteriors=2)
    with pytest.warns(SubposteriorWarning, match="times as far apart as their widths imply"):
        model.fit(Z, counts)
    assert abs(model.coef_[0] - whole.coef_[0]) > 0.4 * whole.coef_std_[0]
    assert model.combine_check_["mean_shift"] < 0.1
    assert 1e-6 < model.combine_check_["distance_p"] < 1e-3


@pytest.mark.slow
def test_a_combination_that_came_with_a_warning_is_not_trusted():
    """Of shards that came one by one there are no scores, by which the verdict would know."""
    rng = np.random.default_rng(0)
    Z, parts = rng.standard_normal((3000, 1)), np.split(np.arange(3000), [40, 100, 1000])
    counts = rng.poisson(np.exp(-2.0 + 0.5 * Z[:, 0]) * rng.gamma(1.0, 1.0, 3000))
    model = BayesianNegativeBinomialRegressor(n_draws=500, random_state=0)
    with pytest.warns(SubposteriorWarning, match="do not agree") as told:
        model.fit_shards([(Z[rows], counts[rows]) for rows in parts])
    assert not any("posterior_.check()" in str(one.message) for one in told)
    verdict = model.posterior_.check()
    assert [finding.name for finding in verdict.findings] == ["shards"]
    assert "combine_check_" in str(verdict)


# -- interruption and callbacks --------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_all_shards(n_jobs):
    hook, later = pressed_at(5)
    options = STOCHASTIC | {"thin": 5, "step_size": WatchedStep(hook=hook)}
    model = quick(**options, n_draws=100_000, n_subposteriors=4, n_jobs=n_jobs)
    alive = threading.enumerate()
    with heard(), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    join_all_but(alive)  # they stop
    of_all = 4 * 2 * 5 * 100_000
    # The two shards that run may have begun on their steps; no other shard begins.
    assert sum(n_steps for (n_steps,) in later) < (0.75 * of_all if n_jobs > 1 else 1)
    assert not hasattr(model, "posterior_")


class Listener:
    """Counts tasks, and keeps what estimators on the way predict; asks for an end in vain."""

    def __init__(self):
        self.tasks, self.means = 0, []

    def setup(self, estimator, context):
        """Nothing."""

    def teardown(self, estimator, context):
        """Nothing."""

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        """Nothing."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, X=None, y=None):
        """Stop at the first task."""
        if context.task_name == "draws":
            self.tasks += 1
            self.means.append(fitted_estimator.coef_)
        return True


@pytest.mark.slow
def test_callbacks_hear_of_every_shard():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    heard = Listener()
    model = quick(n_subposteriors=3, n_jobs=2)
    model.set_callbacks(heard)
    model.fit(X, y)
    assert heard.tasks == 3  # each asked for an end, and was told of the next shard all the same
    assert all(np.isfinite(mean).all() for mean in heard.means)
    np.testing.assert_array_equal(model.coef_, quick(n_subposteriors=3).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("distance", "p", "disagree", "noted"),
    [
        (1.6, 1e-3, False, True),
        (1.6, 0.1, False, False),
        (1.4, 0.0, False, False),
        (1.6, 0, True, False),
    ],
)
def test_check_is_told_of_a_distance_that_is_no_chance(distance, p, disagree, noted):
    check = {"mean_shift": 0.1, "distance": distance, "distance_p": p}
    evidence = subposteriors._evidence(check, disagree)
    assert ("shards_apart" in evidence) == noted
    assert not noted or evidence["shards_apart"] == pytest.approx(np.sqrt(distance))


def test_the_verdict_takes_over_what_shards_know_of_their_steps():
    own = {"sd_bias": np.array([0.1, -0.3]), "sd_bias_mcse": np.array([0.01, 0.02]), "inflation": 0}
    own |= {"mean_bias": np.array([0.2, 0.0]), "mean_bias_mcse": np.array([0.03, 0.0])}
    more = {"sd_bias": np.array([0.2, 0.2]), "sd_bias_mcse": np.array([0.03, 0.04])}
    more |= {"inflation": 0.5, "noise_share": np.array([0.1, 0.2]), "n_modes": np.array([2.0])}
    more |= {"mean_bias": np.array([0.2, 0.1]), "mean_bias_mcse": np.array([0.04, 0.1])}
    found = subposteriors._of_steps([own, more, {}, {}])
    assert found["sd_bias"].tolist() == [0.2, -0.3]
    assert found["sd_bias_mcse"].tolist() == [0.03, 0.02]
    assert found["inflation"].tolist() == [0.5]
    assert found["noise_share"].tolist() == [0.1, 0.2]
    np.testing.assert_allclose(found["mean_bias"], [0.2, 0.05])  # two of four shards have it
    np.testing.assert_allclose(found["mean_bias_mcse"], [0.025, 0.05])
    assert "n_modes" not in found
    assert subposteriors._of_steps([{}, {}]) == {}
