"""Mixtures of Gaussians: against quadrature, between samplers, labels, predictions, bad input."""

import warnings
from copy import copy

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from skbayes_sg import BayesianGaussianMixture
from skbayes_sg.custom import CustomDensity
from skbayes_sg.densities import mixture_chains, mixture_fit, mixture_modes
from skbayes_sg.densities.density import density_target
from skbayes_sg.densities.mixture import ComponentsPrior
from skbayes_sg.densities.mixture_density import MixtureDensity, rows_of
from skbayes_sg.densities.mixture_modes import MixtureModes
from skbayes_sg.densities.relabel import permutations_of
from skbayes_sg.diagnostics import check_draws
from skbayes_sg.exceptions import LongRunWarning, MultimodalPosteriorWarning
from skbayes_sg.priors import Normal
from skbayes_sg.priors.columns import KIND, SCALE, SHAPE
from skbayes_sg.recipe import price

SIX = np.array([-1.4, -1.0, -0.2, 0.3, 0.9, 1.4])[:, None]


def grid_of_tied_mixture(x, points=48):
    """Posterior means and standard deviations of label-free quantities, two components in 1D.

    The prior is that of the estimator with mean_scale=2, degrees of freedom 3 and the data's
    variance over 4 (K^(2/d)): in units of half a standard deviation, means are N(0, 4²), and the
    precision is Gamma(3/2, 1/2).
    """
    z = (x - x.mean()) / (0.5 * x.std())
    u, weight_u = np.polynomial.legendre.leggauss(points)
    w, mass_w = 0.5 * (u + 1.0), 0.5 * weight_u
    mu, mass_mu = 12.0 * u, 12.0 * weight_u * stats.norm(0.0, 4.0).pdf(12.0 * u)
    s, mass_s = 4.5 * u - 0.5, 4.5 * weight_u  # log τ
    tau = np.exp(s)
    mass_s = mass_s * stats.gamma(1.5, scale=2.0).pdf(tau) * tau
    pdf = np.exp(-0.5 * tau * (z[:, None, None] - mu[:, None]) ** 2) * np.sqrt(tau)  # (i, mu, tau)
    total, first = np.zeros((3, 2)), 0.0
    for a, (ua, ma) in enumerate(zip(w, mass_w, strict=True)):
        del a
        p = ua * pdf[:, :, None, :] + (1.0 - ua) * pdf[:, None, :, :]
        density = ma * np.prod(p, axis=0) * mass_mu[:, None, None] * mass_mu[:, None] * mass_s
        first += density.sum()
        for row, values in enumerate(
            [mu[:, None, None] + mu[:, None] + 0.0 * s, s + 0.0 * density, ua * (1 - ua) + 0 * s]
        ):
            total[row] += (density * values).sum(), (density * values**2).sum()
    mean = total[:, 0] / first
    return mean, np.sqrt(total[:, 1] / first - mean**2)


@pytest.mark.parametrize("sampler", ["gibbs", pytest.param("hmc", marks=pytest.mark.slow)])
def test_law_against_quadrature(sampler):
    """Six rows: means within 0.05 sd, sds within 5 %, of what does not depend on labels."""
    x, options = SIX[:, 0], {"covariance_type": "tied", "sampler": sampler, "random_state": 0}
    model = BayesianGaussianMixture(2, n_draws=8000, thin=2, **options).fit(SIX)
    mean, sd = grid_of_tied_mixture(x)
    p, unit = model.posterior_, 0.5 * x.std()
    means = (p["means"][..., 0] - x.mean()) / unit
    found = [
        means.sum(axis=2),
        -np.log(p["covariances"][..., 0, 0] / unit**2),
        p["weights"].prod(axis=2),
    ]
    for draws, m, s in zip(found, mean, sd, strict=True):
        assert abs(draws.mean() - m) < 0.05 * s
        assert abs(draws.std() / s - 1.0) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "diag", "spherical", "tied"])
def test_sweeps_and_trajectories_have_the_same_law(kind):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 2)) * [1.0, 0.5]
    X[:30] += [4.0, 1.0]
    options = {"covariance_type": kind, "random_state": 0}
    one = BayesianGaussianMixture(2, n_draws=4000, **options).fit(X)
    two = BayesianGaussianMixture(2, n_draws=2000, sampler="hmc", **options).fit(X)
    for name in ("weights", "means", "covariances", "log_likelihood"):
        sd = one.posterior_.std(name)
        apart = np.abs(one.posterior_.mean(name) - two.posterior_.mean(name)) / sd
        assert apart.max() < 0.12, name  # five MCSE of 2000 effective draws
        assert np.abs(two.posterior_.std(name) / sd - 1.0).max() < 0.15, name


def mixture_of_dubey(theta, row):
    """½ N(μ, 5²) + ½ N(20 - μ, 5²): Dubey et al. (2016), section 5.4."""
    a = -0.5 * ((row[0] - theta[0]) / 5.0) ** 2
    b = -0.5 * ((row[0] - 20.0 + theta[0]) / 5.0) ** 2
    most = max(a.real, b.real)
    return most + np.log(0.5 * np.exp(a - most) + 0.5 * np.exp(b - most))


@pytest.mark.slow
def test_both_modes_of_the_mixture_with_one_parameter():
    """300 rows: the posterior has a mode at -5, and one at 25 by the prior's leave."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(300) < 0.5, -5.0, 25.0) + 5.0 * rng.standard_normal(300)
    prior = Normal(loc=10.0, scale=20.0)
    model = CustomDensity(
        mixture_of_dubey, {"mu": prior}, start=[[-4.0], [24.0]], n_draws=1000, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(x[:, None])
    assert model.sampler_ == "importance"
    assert model.diagnostics_["n_modes"] == 2.0
    draws = model.posterior_["mu"].ravel()
    grid = np.linspace(-8.0, 28.0, 40_001)
    logs = [-0.5 * ((x - m) / 5.0) ** 2 for m in (grid[:, None], 20.0 - grid[:, None])]
    log_p = logsumexp(logs, axis=0).sum(axis=1) - 0.5 * ((grid - 10.0) / 20.0) ** 2
    p = np.exp(log_p - log_p.max())
    for left in (True, False):
        own, here = np.where((grid < 10.0) == left, p, 0.0), draws[(draws < 10.0) == left]
        own /= own.sum()
        mean = own @ grid
        sd = np.sqrt(own @ (grid - mean) ** 2)
        assert abs(here.mean() - mean) < 0.1 * sd  # four MCSE of 2000 draws, about 1600 effective
        assert abs(here.std() / sd - 1.0) < 0.07
    assert np.isclose((draws < 10.0).mean(), p[grid < 10.0].sum() / p.sum(), atol=0.05)


def test_the_prior_of_a_precision_is_a_wishart_law():
    """Moments of A Aᵀ, for A of the coordinates' prior: E P = (ν/c) I, var P_jj = 2ν/c²."""
    own = ComponentsPrior(0, 1, 3, 1.0, np.ones(3), 6.5)
    table, rng = own.table, np.random.default_rng(0)
    theta = np.zeros((40_000, own.n_parameters))
    gammas = table[:, KIND] == table[0, KIND]
    for j in np.flatnonzero(gammas):
        theta[:, j] = np.log(rng.gamma(table[j, SHAPE], table[j, SCALE], size=40_000))
    theta[:, ~gammas] = rng.standard_normal((40_000, (~gammas).sum()))
    A = own.unpack(theta)[2][:, 0]
    P = A @ np.swapaxes(A, 1, 2)
    nu, c = 6.5, own.c
    # an average of 40 000: 5 standard errors of a mean are 0.025 sd, of a variance about 6 %
    sd = np.sqrt(2.0 * nu) / c
    assert np.abs(P.mean(axis=0) - nu / c * np.eye(3)).max() < 0.025 * sd
    assert np.allclose(P.var(axis=0).diagonal(), 2.0 * nu / c**2, rtol=0.08)
    assert np.allclose(P.var(axis=0)[0, 1:], nu / c**2, rtol=0.08)


def three_groups(seed):
    """Three groups in a row, of which a component takes two: on the left, or on the right."""
    rng = np.random.default_rng(seed)
    return np.r_[rng.normal(size=30) - 6, rng.normal(size=30), rng.normal(size=30) + 6][:, None]


def mean_of_the_heavier(model):
    heavier = model.posterior_["weights"].argmax(axis=2)[..., None]
    return np.take_along_axis(model.posterior_["means"][..., 0], heavier, axis=2)[..., 0]


@pytest.mark.slow
def test_chains_cross_between_modes_as_often_as_they_weigh():
    """Tempering from the prior, 12 000 particles, gives the smaller mode a share of 0.13."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianGaussianMixture(2, random_state=0).fit(three_groups(5))
    heavier = mean_of_the_heavier(model)
    # at least 400 effective draws: four standard errors of the share are 0.07
    assert 0.06 < (heavier > 0.0).mean() < 0.20
    assert ((heavier > 0.0).mean(axis=1) > 0.0).all()
    assert model.diagnostics_["n_modes"] == 2


@pytest.mark.slow
def test_modes_of_mirrored_rows_weigh_the_same():
    rng = np.random.default_rng(0)
    half = np.r_[rng.normal(size=15) - 6, rng.normal(size=8)]
    model = BayesianGaussianMixture(2, random_state=0).fit(np.r_[half, -half][:, None])
    assert 0.4 < (mean_of_the_heavier(model) > 0.0).mean() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("part", [1, 3, 7])
def test_jumps_do_not_depend_on_how_sweeps_are_divided(monkeypatch, part):
    """Rounds of sweeps follow a clock; draws may not."""
    whole, X = mixture_chains._advance, three_groups(5)
    calls = []

    def in_parts(*arguments):
        *others, work, chain = arguments
        calls.append(chain)
        whole(*others, part if work is None else min(part, work), chain)
        return whole(*others, work, chain) if work is None else chain

    fits = [BayesianGaussianMixture(2, n_draws=60, n_warmup=40, random_state=0).fit(X)]
    monkeypatch.setattr(mixture_chains, "_advance", in_parts)
    fits.append(BayesianGaussianMixture(2, n_draws=60, n_warmup=40, random_state=0).fit(X))
    assert calls
    assert fits[0].diagnostics_["n_modes"] == 2.0
    for name in fits[0].posterior_:
        np.testing.assert_array_equal(fits[1].posterior_[name], fits[0].posterior_[name])


@pytest.mark.slow
def test_a_mode_that_no_chain_visits_is_told(monkeypatch):
    monkeypatch.setattr(MixtureModes, "jump", lambda modes, chain: None)
    model = BayesianGaussianMixture(2, n_chains=2, random_state=0)
    message = r"has 2 modes.*weights 0.68, .* at \[-3.* and 100% of the draws; .* 0% of the draws"
    with pytest.warns(MultimodalPosteriorWarning, match=message):
        model.fit(three_groups(5))
    assert model.diagnostics_["mode_share_1"] == 0.0


@pytest.mark.slow
def test_groups_that_are_as_many_as_components_have_one_mode():
    X = np.r_[three_groups(0)[:30], three_groups(0)[60:]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianGaussianMixture(2, random_state=0).fit(X)
    assert "n_modes" not in model.diagnostics_


def test_points_of_other_modes_are_offered_under_the_nearest_labels():
    """The labels of θ do not change log π - log Q, and the offers are those nearest to a mode."""
    mixture = ComponentsPrior(0, 3, 2, 1.0, np.full(2, 3.0), 4.0)
    rng = np.random.default_rng(0)
    target = density_target(
        MixtureDensity(mixture),
        rows_of(rng.standard_normal((20, 2)), mixture),
        np.ones(20),
        mixture.table,
    )
    centres = rng.standard_normal((2, mixture.n_parameters))
    roots = np.tile(np.diag(rng.uniform(0.5, 1.0, mixture.n_parameters)), (2, 1, 1))
    modes = MixtureModes(mixture, target, centres, roots, np.array([0.7, 0.3]), True)
    theta, log_weights = modes._propose(rng, 50)
    offered = np.isfinite(log_weights)
    assert 0 < offered.sum() < 50
    w, mu, A = mixture.unpack(theta[offered])
    total = np.log(np.exp(theta[offered, :3]).sum(axis=1))[:, None]
    swapped = mixture.pack(np.log(w[:, ::-1]), mu[:, ::-1], A[:, ::-1])
    swapped[:, :3] += total - np.log(3.0)  # `pack` has a total of its own
    np.testing.assert_allclose(modes._log_weights(swapped), log_weights[offered])


def test_labels_are_aligned():
    """Classifications whose components are permuted come back in one order."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.2, 0.2, 0.2], size=50)
    drawn = [rng.permutation(3) for _ in range(40)]
    permuted = np.stack([P[:, order] for order in drawn])
    found = permutations_of(permuted)
    back = np.take_along_axis(permuted, found[:, None, :], axis=2)
    assert np.array_equal(back, np.broadcast_to(back[0], back.shape))
    assert len({tuple(row) for row in found}) > 3


@pytest.mark.slow
def test_check_looks_at_what_does_not_depend_on_labels():
    """Of components that nothing tells apart, labels mix slowly and densities do not."""
    X = np.random.default_rng(0).normal(size=(40, 1))
    model = BayesianGaussianMixture(2, n_draws=100, random_state=0).fit(X)
    values, labels = model.posterior_.judged
    moved = values[..., 0] - model.posterior_["log_likelihood"]
    np.testing.assert_allclose(moved, moved[0, 0])
    assert values.shape[-1] == len(labels)
    assert str(check_draws(values, labels=labels)) == str(model.posterior_.check())
    swapped = model.posterior_.flat.copy()
    swapped[0, :, 2:4] = swapped[0, :, 3:1:-1]  # the means of one chain, by other names
    other = copy(model.posterior_)
    other.flat = swapped
    assert bool(other.check()) == bool(model.posterior_.check())
    other.judged = None
    assert not other.check()


@pytest.mark.slow
def test_predictions_are_means_over_draws():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 2)) + 5.0 * (np.arange(60)[:, None] % 2)
    model = BayesianGaussianMixture(2, n_draws=100, n_chains=2, random_state=0).fit(X)
    p = model.posterior_
    w, mu, S = (
        p[name].reshape(200, *p.shapes[name]) for name in ("weights", "means", "covariances")
    )
    rows = np.array([[0.0, 0.0], [2.5, 2.5], [5.0, 6.0]])
    parts = np.array(
        [
            [w[s, k] * stats.multivariate_normal(mu[s, k], S[s, k]).pdf(rows) for k in range(2)]
            for s in range(200)
        ]
    )
    assert np.allclose(model.score_samples(rows), np.log(parts.sum(axis=1).mean(axis=0)))
    shares = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0).T
    assert np.allclose(model.predict_proba(rows), shares)
    assert np.array_equal(model.predict(rows), shares.argmax(axis=1))
    assert np.isclose(model.score(rows), model.score_samples(rows).mean())
    loglik = np.log(
        [sum(w[0, k] * stats.multivariate_normal(mu[0, k], S[0, k]).pdf(X) for k in range(2))]
    ).sum()
    assert np.isclose(p["log_likelihood"][0, 0], loglik)
    drawn, labels = model.sample(20_000)
    assert abs((labels == 0).mean() - model.weights_[0]) < 0.02
    assert np.abs(drawn[labels == 0].mean(axis=0) - model.means_[0]).max() < 0.1
    assert np.allclose(np.cov(drawn[labels == 1].T), model.covariances_[1], atol=0.25)


@pytest.mark.parametrize(("n_rows", "n_averaged"), [(12, 1000), (150, 800), (500, 400)])
def test_fewer_rows_are_predicted_from_more_draws(n_rows, n_averaged):
    X = np.random.default_rng(0).standard_normal((n_rows, 1))
    few = {"n_draws": 500, "n_chains": 2, "n_warmup": 10, "thin": 1, "random_state": 0}
    model = BayesianGaussianMixture(1, **few).fit(X)
    sd = np.sqrt(model.posterior_["covariances"].ravel())
    mean = model.posterior_["means"].ravel()
    chosen = np.unique(np.linspace(0, 999, n_averaged).astype(int))
    x = X.max() + 1.0
    density = stats.norm.pdf(x, mean[chosen], sd[chosen]).mean()
    assert np.isclose(model.score_samples([[x]])[0], np.log(density), rtol=1e-10)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("full", marks=pytest.mark.slow),
        pytest.param("diag", marks=pytest.mark.slow),
        pytest.param("spherical", marks=pytest.mark.slow),
        "tied",
    ],
)
def test_shapes_are_those_of_scikit_learn(kind):
    X = np.random.default_rng(0).standard_normal((30, 3))
    few = {"n_draws": 20, "n_chains": 1, "n_warmup": 10, "thin": 1, "random_state": 0}
    model = BayesianGaussianMixture(2, covariance_type=kind, **few).fit(X)
    known = GaussianMixture(2, covariance_type=kind).fit(X)
    for name in ("weights_", "means_", "covariances_"):
        assert getattr(model, name).shape == getattr(known, name).shape


@pytest.mark.slow
def test_units_do_not_matter():
    X = np.random.default_rng(0).standard_normal((40, 2))
    few = {"n_draws": 50, "n_chains": 1, "n_warmup": 10, "thin": 1, "random_state": 0}
    one = BayesianGaussianMixture(2, **few).fit(X)
    other = BayesianGaussianMixture(2, **few).fit(1e6 * X + 1e7)
    assert np.allclose(other.means_, 1e6 * one.means_ + 1e7, rtol=1e-6)
    assert np.allclose(other.score(1e6 * X + 1e7), one.score(X) - 2 * np.log(1e6), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "X",
    [
        np.repeat([[0.0, 1.0], [2.0, 3.0]], 10, axis=0),
        pytest.param(np.arange(20).reshape(10, 2), marks=pytest.mark.slow),
        pytest.param(np.column_stack([np.ones(15), np.arange(15.0)]), marks=pytest.mark.slow),
        pytest.param(np.random.default_rng(0).standard_cauchy((50, 1)), marks=pytest.mark.slow),
    ],
    ids=["repeated", "integers", "a constant column", "outliers"],
)
def test_ordinary_tables(X):
    model = BayesianGaussianMixture(3, n_draws=100, n_chains=2, random_state=0).fit(X)
    assert np.isfinite(model.posterior_.flat).all()
    assert np.isfinite(model.score(X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_stochastic_gradients():
    X = np.random.default_rng(0).standard_normal((300, 1))
    X[:100] += 6.0
    options = {"random_state": 0, "n_draws": 200, "covariance_type": "diag"}
    model = BayesianGaussianMixture(2, sampler="sgld", gradient="svrg", **options).fit(X)
    wanted = BayesianGaussianMixture(2, **options).fit(X)
    assert (model.gradient_, model.batch_size_) == ("svrg", 100)
    apart = np.abs(model.means_ - wanted.means_) / wanted.means_std_
    assert apart.max() < 0.5


@pytest.mark.slow
def test_long_runs_are_told_before_they_begin(monkeypatch):
    """By the number of sweeps at first, or by that of a doubling: again where it is much more."""
    X = np.random.default_rng(0).standard_normal((300, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", LongRunWarning)
        short = BayesianGaussianMixture(3, n_draws=200, random_state=0).fit(X)
    assert short.thin_ > 1
    mixture = ComponentsPrior(0, 3, 1, 1.0, np.ones(1), 2.5)
    known = mixture_chains.PriceOfSweeps(X, mixture, 4)
    for search in (mixture_modes.seconds_of_search(mixture, 300), 0.0):
        monkeypatch.setattr(mixture_fit, "seconds_of_search", lambda *_, s=search: s)
        first = (700 + known.n_short) * known.seconds + search
        monkeypatch.setattr(price, "TOLD_SECONDS", 0.99 * first)
        with pytest.warns(LongRunWarning, match="700 Gibbs sweeps") as told:
            BayesianGaussianMixture(3, n_draws=200, random_state=0).fit(X)
        again = 200 * short.thin_ * known.seconds > 3 * first
        assert sum(w.category is LongRunWarning for w in told) == 1 + again
    last = 200 * short.thin_ * known.seconds
    assert last > 2.0 * first
    monkeypatch.setattr(price, "TOLD_SECONDS", 0.99 * last)
    with pytest.warns(LongRunWarning, match=f"{200 * short.thin_} Gibbs sweeps"):
        BayesianGaussianMixture(3, n_draws=200, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"n_components": 0}, "'n_components'"),
        ({"covariance_type": "round"}, "'covariance_type'"),
        ({"weight_concentration_prior": -1.0}, "'weight_concentration_prior'"),
        ({"mean_scale": 0.0}, "'mean_scale'"),
        ({"degrees_of_freedom_prior": 3.0}, "above n_features \\+ 1 = 3"),
        ({"covariance_prior": [1.0, 2.0, 3.0]}, "'covariance_prior'"),
        ({"covariance_prior": [1.0, 2.0], "covariance_type": "spherical"}, "a single number"),
        ({"sampler": "gibbs", "batch_size": 5}, "'auto' with sampler='gibbs'"),
        ({"sampler": "slice"}, "'gibbs', 'sgld'"),
        ({"gradient": "taylor"}, "second derivatives"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, text):
    with pytest.raises(ValueError, match=text):
        BayesianGaussianMixture(**parameters).fit(np.eye(2).repeat(4, axis=0))


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_no_chain_stays_at_a_mode_that_is_far_below_the_others(seed):
    """A column of 0 and 1: of 40 short runs some end 120 nats below, and chains began there."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 3))
    X[:40, :2] += 5.0
    X[:, 2] = rng.integers(0, 2, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianGaussianMixture(2, n_draws=200, random_state=seed).fit(X)
    assert model.diagnostics_["max_rhat"] < 1.05


def test_constant_columns_are_told():
    """Their variances are what the prior says, whose unit nothing sets."""
    X = np.column_stack([np.random.default_rng(0).standard_normal(50), np.full(50, 7.0)])
    options = {"n_draws": 50, "n_chains": 1, "random_state": 0}
    with pytest.warns(UserWarning, match=r"columns \['x1'\] of X are constant"):
        BayesianGaussianMixture(1, **options).fit(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the columns")
        BayesianGaussianMixture(1, covariance_prior=1.0, **options).fit(X)


@pytest.mark.slow
def test_jumps_between_modes_are_in_the_price(monkeypatch):
    """On few rows they take several times as long as the sweeps."""
    told = []
    monkeypatch.setattr(
        mixture_chains.PriceOfSweeps, "tell_sweeps", lambda price, *_: told.append(price.seconds)
    )
    monkeypatch.setattr(mixture_chains, "ENOUGH", 1.0)  # so that draws are thinned
    model = BayesianGaussianMixture(2, n_draws=20, random_state=0).fit(three_groups(5))
    assert model.diagnostics_["n_modes"] == 2.0
    assert told[-1] > 2.0 * told[0]
