"""Columns far from zero: right, or refused by name."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.estimators import _centring
from skbayes_sg.exceptions import PriorConflictWarning
from skbayes_sg.multilevel import MultilevelSGLD
from skbayes_sg.priors import HalfCauchy, Normal

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.integers(0, 5, 400), RNG.random(400) < 0.1]).astype(float)
ETA = -1.0 + 0.4 * X[:, 0] + X[:, 1]
Y = {
    BayesianLinearRegression: ETA + RNG.normal(size=400),
    BayesianRobustRegression: ETA + RNG.standard_t(3, 400),
    BayesianLogisticRegression: RNG.random(400) < 1.0 / (1.0 + np.exp(-ETA)),
    BayesianPoissonRegressor: RNG.poisson(np.exp(ETA)),
}
every = pytest.mark.parametrize("kind", Y)


def quick(kind, **options):
    return kind(n_draws=250, intercept_prior="flat", random_state=0, **options)


def check_same(far, near, offset, x=X):
    """Same slopes, same predictors: a posterior mean within its Monte Carlo error, spreads too."""
    sd = near.coef_std_
    assert np.abs((far.coef_ - near.coef_) / sd).max() < 0.2  # 1000 draws each: 0.045 is one error
    np.testing.assert_allclose(far.coef_std_, sd, rtol=0.15)
    eta = [
        fit.posterior_["coef"].reshape(1000, -1) @ (x + shift).T
        + fit.posterior_["intercept"].reshape(1000, 1)
        for fit, shift in ((far, offset), (near, 0.0))
    ]
    np.testing.assert_allclose(eta[0].mean(axis=0), eta[1].mean(axis=0), atol=0.2 * eta[1].std())
    np.testing.assert_allclose(eta[0].std(axis=0), eta[1].std(axis=0), rtol=0.15)


@pytest.mark.slow_for("BayesianRobustRegression")
@every
@pytest.mark.parametrize("offset", [1e7, 1e8, 1e10])
def test_an_offset_moves_the_intercept_alone(kind, offset):
    near = quick(kind).fit(X, Y[kind])
    check_same(quick(kind).fit(X + offset, Y[kind]), near, offset)
    check_same(quick(kind, sampler="hmc").fit(X + offset, Y[kind]), near, offset)


@pytest.mark.slow
def test_a_response_and_columns_that_are_both_some_way_from_zero():
    # An error of ε |y| m/s in units of the noise: half a posterior standard deviation, uncentred.
    rng = np.random.default_rng(0)
    x = np.column_stack([1e6 + 50.0 * rng.normal(size=400), rng.normal(size=400)])
    y = 2e-4 * x[:, 0] + 0.01 * rng.normal(size=400)
    for prior in ("normal", "laplace"):
        options = {"prior": prior, "random_state": 0}
        far = BayesianLinearRegression(**options).fit(x, 1e8 + y)
        near = BayesianLinearRegression(**options).fit(x - [1e6, 0.0], y - y.mean())
        assert np.abs((far.coef_ - near.coef_) / near.coef_std_).max() < 0.02


def test_some_columns_with_an_offset_and_a_constant():
    kind, offset = BayesianLinearRegression, np.array([3e9, 0.0])
    Z = np.column_stack([X + offset, np.full(400, 7.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = quick(kind).fit(Z, Y[kind])
    np.testing.assert_array_equal(_centring.centre_of(far, Z, np.ones(400)) != 0.0, [1, 0, 0])
    near_rows = np.column_stack([X, np.full(400, 7.0)])
    near = quick(kind).fit(near_rows, Y[kind])
    check_same(far, near, np.append(offset, 0.0), near_rows)


def test_shards_and_moments_alone():
    kind, offset = BayesianLinearRegression, 1e8
    near = quick(kind).fit(X, Y[kind])
    check_same(quick(kind, n_subposteriors=2).fit(X + offset, Y[kind]), near, offset)
    moments = quick(kind, keep="moments").fit(X + offset, Y[kind])
    all_draws = quick(kind).fit(X + offset, Y[kind])
    np.testing.assert_allclose(moments.intercept_, all_draws.intercept_, rtol=1e-6)
    np.testing.assert_allclose(moments.intercept_std_, all_draws.intercept_std_, rtol=1e-6)


@every
def test_where_an_offset_changes_the_posterior_columns_are_refused(kind):
    far, match = X + 1e8, r"column 0 of X is too far from zero .* mean is 1e\+08"
    for options in ({"intercept_prior": Normal(scale=1e12)}, {"fit_intercept": False}):
        with pytest.raises(ValueError, match=match):
            kind(random_state=0, **options).fit(far, Y[kind])
    with pytest.raises(ValueError, match=match):
        _centring.centre_of(quick(kind), sparse.csr_array(far), np.ones(400))
    with pytest.raises(ValueError, match=match):
        quick(kind).fit_shards([(far[::2], Y[kind][::2]), (far[1::2], Y[kind][1::2])])


@pytest.mark.parametrize("groups", [None, [2]], ids=["alone", "with groups"])
@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegressor])
def test_the_default_takes_a_column_at_a_million(kind, groups):
    rng = np.random.default_rng(5)
    near = rng.normal(size=(1500, 2))
    eta, far = 0.5 * near[:, 0] - 0.3 * near[:, 1], [0.0, 1e6]
    y = (
        rng.poisson(np.exp(eta))
        if kind is BayesianPoissonRegressor
        else rng.logistic(size=1500) < eta
    )
    code = rng.integers(0, 15, 1500)

    def fit(x, **options):
        rows = x if groups is None else np.column_stack([x, code])
        return kind(group_effects=groups, random_state=0, **options).fit(rows, y)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(near * [1.0, 0.3] + far)
    wanted = fit(near * [1.0, 0.3], intercept_prior="flat")
    assert found.sampler_ == "importance"
    assert np.abs((found.coef_ - wanted.coef_) / wanted.coef_std_).max() < 0.1
    np.testing.assert_allclose(found.coef_std_, wanted.coef_std_, rtol=0.07)


def test_a_file_is_refused(tmp_path):
    np.save(tmp_path / "X.npy", X + 1e8)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="a dense X in memory"):
        quick(BayesianLinearRegression).fit(mapped, Y[BayesianLinearRegression])


def test_expect_refuses_them():
    fit = quick(BayesianLinearRegression).fit(X + 1e8, Y[BayesianLinearRegression])
    with pytest.raises(ValueError, match="too far from zero"):
        fit.expect(
            lambda p: p["coef"],
            rtol=0.5,
            X=X + 1e8,
            y=Y[BayesianLinearRegression],
            method=MultilevelSGLD(),
        )


def test_a_single_column_without_an_intercept_is_no_difficulty():
    x = X[:, :1] + 1e8
    fit = BayesianLinearRegression(fit_intercept=False, random_state=0).fit(x, x[:, 0] * 2.0)
    np.testing.assert_allclose(fit.coef_, 2.0, rtol=1e-6)


def test_columns_that_rounding_alone_moves():
    kind, Z = BayesianLinearRegression, X + np.array([1e16, 0.0])
    with pytest.warns(UserWarning, match="column 0 of X is constant but for its last digits"):
        fit = quick(kind).fit(Z, Y[kind])
    without = quick(kind).fit(X[:, 1:], Y[kind])
    np.testing.assert_allclose(fit.coef_[1], without.coef_[0], atol=0.2 * without.coef_std_[0])


# -- the default prior of the intercept -----------------------------------------------------------


def years(kind):
    """Rows with a year whose effect is 0.1 a year, and responses."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.integers(1990, 2021, 500), rng.normal(size=500)]).astype(float)
    eta = 0.1 * (x[:, 0] - 2005.0)
    y = {
        BayesianLogisticRegression: (rng.logistic(size=500) < eta).astype(float),
        BayesianLinearRegression: eta + rng.normal(size=500),
        BayesianRobustRegression: eta + rng.standard_t(3, 500),
    }
    return x, y.get(kind, rng.poisson(np.exp(eta)).astype(float))


def by_default(kind, **options):
    return kind(**{"n_draws": 250, "random_state": 0} | options)


WITH_DEFAULT = [
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianNegativeBinomialRegressor,
]


def scale_beside(m, s, u=1.0, least=10.0):
    """The scale that the default prior of an intercept has beside one column far from zero."""
    return np.sqrt(least**2 + (5.0 * m * min(u, least / s)) ** 2)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@pytest.mark.parametrize("kind", WITH_DEFAULT)
def test_the_default_prior_gives_way_to_an_effect_of_years(kind):
    x, y = years(kind)
    far, near = (by_default(kind).fit(x - [away, 0.0], y) for away in (0.0, 2005.0))
    tolerance = 0.2 * near.coef_std_.ravel()
    assert (np.abs(far.coef_ - near.coef_).ravel() < tolerance).all()
    np.testing.assert_allclose(far.coef_std_, near.coef_std_, rtol=0.05)
    assert near.intercept_prior_.scale == 10.0
    s = x[:, 0].std()
    u = 1.0 if kind is BayesianLogisticRegression else 2.5 / s  # "auto" of counts
    expected = scale_beside(x[:, 0].mean(), s, u)
    np.testing.assert_allclose(far.intercept_prior_.scale, expected, rtol=1e-12)


FAINT = np.random.default_rng(25)  # an effect that N(0, 10²) would hide without a word
YEARS = FAINT.integers(1990, 2024, 150).astype(float)[:, None]
EVENTS = (FAINT.random(150) < 1.0 / (1.0 + np.exp(-0.03 * (YEARS[:, 0] - 2007.0)))).astype(int)


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (sparse.csr_array, {}),
        (np.array, {"prior": Normal(scale=HalfCauchy())}),
        (np.array, {"prior": "flat"}),
        (np.array, {"keep": 10}),
        (np.array, {"n_subposteriors": 2}),
        pytest.param(np.array, {"group_effects": [1]}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_it_does_so_for_all_rows_and_priors(made, options):
    x = np.column_stack([YEARS, np.arange(150) % 5]) if "group_effects" in options else YEARS
    away = np.array([2007.0, 0.0])[: x.shape[1]]
    far, near = (by_default(BayesianLogisticRegression, **options) for _ in range(2))
    far, near = far.fit(made(x), EVENTS), near.fit(made(x - away), EVENTS)
    tolerance = 0.3 * near.coef_std_.ravel()[0]
    np.testing.assert_allclose(far.coef_.ravel()[0], near.coef_.ravel()[0], atol=tolerance)
    assert far.intercept_prior_.scale > 1000.0
    assert near.intercept_prior_.scale == 10.0


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (BayesianLogisticRegression, {}),
        pytest.param(BayesianLogisticRegression, {"prior": "laplace"}, marks=pytest.mark.slow),
        pytest.param(BayesianPoissonRegressor, {}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_constant_that_is_added_leaves_a_coefficient_that_few_rows_tell(kind, options):
    """Classes that are separated, and some events: the intercept's prior is no second one of it."""
    rng = np.random.default_rng(2027)
    x = rng.normal(size=(15, 1))
    events = x[:, 0] + 0.3 * rng.normal(size=15) > 0.0
    y = events if kind is BayesianLogisticRegression else rng.poisson(np.exp(0.8 * x[:, 0] - 1.0))
    near, *others = (
        kind(random_state=0, **options).fit(x + away, y) for away in (0.0, 1.0, 2.0, 2000.0)
    )
    for far in others:
        moved = (far.coef_ - near.coef_) / near.coef_std_
        assert np.abs(moved).max() < 0.1
        np.testing.assert_allclose(far.coef_std_, near.coef_std_, rtol=0.1)


@pytest.mark.slow
def test_shards_batches_and_several_classes_have_the_same_prior():
    x, kind = YEARS, BayesianLogisticRegression
    expected = scale_beside(x.mean(), x.std())
    parts = [(x[k::2], EVENTS[k::2]) for k in range(2)]
    shards = by_default(kind).fit_shards(parts)
    batches = by_default(kind).partial_fit(*parts[0], classes=[0, 1]).partial_fit(*parts[1])
    classes = by_default(kind).fit(x, EVENTS + (np.arange(150) % 3 == 0))
    for fit in (shards, batches, classes):
        np.testing.assert_allclose(fit.intercept_prior_.scale, expected, rtol=1e-9)


def test_coefficients_of_small_scale_need_no_wide_intercept():
    prior = Normal(scale=0.001)
    fit = by_default(BayesianLogisticRegression, prior=prior).fit(YEARS, EVENTS)
    expected = scale_beside(YEARS.mean(), YEARS.std(), u=0.001)
    np.testing.assert_allclose(fit.intercept_prior_.scale, expected)
    fit = by_default(BayesianLogisticRegression).fit(100.0 * YEARS, EVENTS)  # u s is above 10
    expected = scale_beside(100.0 * YEARS.mean(), 100.0 * YEARS.std())
    np.testing.assert_allclose(fit.intercept_prior_.scale, expected)


@pytest.mark.parametrize("asked", ["flat", Normal(scale=10.0)])
def test_a_prior_that_is_given_stays(asked):
    fit = by_default(BayesianLogisticRegression, intercept_prior=asked).fit(YEARS, EVENTS)
    assert repr(fit.intercept_prior_) in (repr(asked), "Flat()")
    held = by_default(BayesianLogisticRegression, fit_intercept=False).fit(YEARS, EVENTS)
    assert held.intercept_prior_ is None


def mostly_one():
    """Rows of many indicators that are more often one than zero, and an effect of all."""
    rng = np.random.default_rng(4)
    x = (rng.random((400, 80)) < 0.6).astype(float)
    eta = 1.5 * (x - 0.6).sum(axis=1)
    return x, (rng.logistic(size=400) < eta).astype(float)


@pytest.mark.slow
def test_a_default_prior_that_still_holds_back_is_told():
    x, y = mostly_one()
    said = r"N\(0, 10²\), has moved it by \d.*StandardScaler"
    with pytest.warns(PriorConflictWarning, match=said):
        BayesianLogisticRegression(n_draws=250, random_state=0).fit(x, y)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (BayesianLinearRegression, {}),
        pytest.param(BayesianRobustRegression, {}, marks=pytest.mark.slow),
        pytest.param(
            BayesianLogisticRegression, {"intercept_prior": "flat"}, marks=pytest.mark.slow
        ),
        pytest.param(
            BayesianLogisticRegression,
            {"intercept_prior": Normal(scale=10.0)},
            marks=pytest.mark.slow,
        ),
        pytest.param(BayesianLogisticRegression, {"fit_intercept": False}, marks=pytest.mark.slow),
    ],
)
def test_priors_that_were_chosen_or_do_not_hold_back_are_not(kind, options):
    x, y = mostly_one()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorConflictWarning)
        kind(n_draws=250, random_state=0, **options).fit(x, y)


@pytest.mark.parametrize(
    "made", ["separable", "few events", pytest.param("one count", marks=pytest.mark.slow)]
)
def test_intercepts_of_which_the_rows_say_little_are_not(made):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(200, 3)), np.zeros(200)
    if made == "separable":
        y = (x[:, 0] > 0.0).astype(float)
    else:
        y[: 3 if made == "few events" else 1] = 1.0
    kind = BayesianPoissonRegressor if made == "one count" else BayesianLogisticRegression
    model = kind(n_draws=250, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorConflictWarning)
        model.fit(x, y)
